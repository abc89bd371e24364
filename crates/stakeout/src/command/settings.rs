//! `stakeout settings`: live settings, which stand over the configuration file.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value as Json;
use stakeout_core::Source;
use stakeout_store::{Store, StoreError};

use super::{ask, now};
use crate::UsageError;
use crate::cli::{SettingsAction, SettingsArgs};
use crate::config::{Secrets, Wired};
use crate::control::Request;
use crate::open::{Door, Place};
use crate::output::Table;
use crate::{output, suggest};

pub(super) async fn settings(place: &Place, args: SettingsArgs) -> Result<ExitCode> {
    match args.action {
        None => list(place, args.list.json).await?,
        Some(SettingsAction::List(args)) => list(place, args.json).await?,
        Some(SettingsAction::Set { key, value }) => {
            // What is no JSON is text, so that nobody has to quote quotes.
            let value = serde_json::from_str(&value).unwrap_or(Json::String(value));
            change(place, &key, value).await?;
        }
        Some(SettingsAction::Unset { key }) => change(place, &key, Json::Null).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(place: &Place, json: bool) -> Result<()> {
    let settings = match place.read().await {
        Ok(store) => store.settings().await?,
        Err(StoreError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if json {
        return output::pretty(&settings.into_iter().collect::<serde_json::Map<_, _>>());
    }
    let mut table = Table::new(&["SETTING", "VALUE"]);
    for (key, value) in settings {
        table.row([key, value.to_string()]);
    }
    match table.is_empty() {
        true => output::line("no live settings: the configuration file holds"),
        false => output::line(&table.render()),
    }
}

async fn change(place: &Place, key: &str, value: Json) -> Result<()> {
    match place.door().await? {
        Door::Running { socket, pid } => {
            let request = Request::Set { key: key.to_owned(), value: value.clone() };
            ask::running(&socket, &pid, &request).await?;
        }
        Door::Direct(store) => directly(place, &*store, key, &value).await?,
    }
    match value {
        Json::Null => output::line(&format!("{key} is what the configuration file says")),
        value => output::line(&format!("{key} is {value}")),
    }
}

/// Validated as the running process would, then stored: for its next start, or for those that share the store.
async fn directly(place: &Place, store: &dyn Store, key: &str, value: &Json) -> Result<()> {
    if value.is_null() {
        // Even one of a source that is no longer configured must be removable.
        store.set_setting(key, None, now()).await?;
        return Ok(());
    }
    if let Some(name) = key.strip_prefix("sink.").and_then(|rest| rest.strip_suffix(".enabled")) {
        check_switch(place, name, value)?;
        return store
            .set_setting(key, Some(value.clone()), now())
            .await
            .context("the setting cannot be stored");
    }
    if let Some(name) = key.strip_prefix("alert.") {
        super::alerts::check(place, name, value)?;
        return store
            .set_setting(key, Some(value.clone()), now())
            .await
            .context("the setting cannot be stored");
    }
    let stored = store.settings().await?;
    let Wired { sources, .. } = place.loaded.sources(&Secrets::Environment)?;
    for (source, setting) in meant(&sources, key)? {
        let prefix = format!("source.{}.", source.name());
        let own = stored
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())));
        let mut settings: BTreeMap<String, Json> = own.collect();
        settings.insert(setting.to_owned(), value.clone());
        source.configured(&settings).map_err(|refused| UsageError(refused.to_string()))?;
    }
    store.set_setting(key, Some(value.clone()), now()).await.context("the setting cannot be stored")
}

/// Whether the switch of a sink can be set so.
fn check_switch(place: &Place, sink: &str, value: &Json) -> Result<(), UsageError> {
    let names: Vec<&str> = place.loaded.config.sink.keys().map(String::as_str).collect();
    if !names.contains(&sink) {
        let hint = suggest::instead(sink, &names);
        return Err(UsageError(format!("there is no sink {sink:?} in the configuration: {hint}")));
    }
    match value.is_boolean() {
        true => Ok(()),
        false => Err(UsageError(format!("sink.{sink}.enabled: expected true or false, found {value}"))),
    }
}

/// A source that a setting is meant for, and its name there.
type Meant<'a> = (&'a Arc<dyn Source>, &'a str);

/// The sources that a setting is meant for: `source.NAME.SETTING`, or a plain name that some let be
/// given so.
fn meant<'a>(sources: &'a [Arc<dyn Source>], key: &'a str) -> Result<Vec<Meant<'a>>, UsageError> {
    let unknown = || {
        UsageError(format!(
            "there is no setting {key:?}: expected source.NAME.SETTING, sink.NAME.enabled or alert.NAME"
        ))
    };
    let Some(rest) = key.strip_prefix("source.") else {
        let is_open =
            |source: &&Arc<dyn Source>| source.open_settings().is_some_and(|prefix| key.starts_with(prefix));
        let open: Vec<_> = sources.iter().filter(is_open).map(|source| (source, key)).collect();
        return if open.is_empty() { Err(unknown()) } else { Ok(open) };
    };
    let (name, setting) = rest.split_once('.').ok_or_else(unknown)?;
    let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
    let source = sources.iter().find(|source| source.name() == name).ok_or_else(|| {
        UsageError(format!(
            "there is no source {name:?} in the configuration: {}",
            suggest::instead(name, &names)
        ))
    })?;
    Ok(vec![(source, setting)])
}
