//! `stakeout settings`: live settings, which stand over the configuration file.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value as Json;
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

/// Validated as the running process would, then stored for its next start.
async fn directly(place: &Place, store: &dyn Store, key: &str, value: &Json) -> Result<()> {
    let parts = key.strip_prefix("source.").and_then(|rest| rest.split_once('.'));
    let (name, setting) = parts
        .ok_or_else(|| UsageError(format!("there is no setting {key:?}: expected source.NAME.SETTING")))?;
    let prefix = format!("source.{name}.");
    let stored = store.settings().await?;
    if value.is_null() {
        // Even one of a source that is no longer configured must be removable.
        store.set_setting(key, None, now()).await?;
        return Ok(());
    }
    let Wired { sources, .. } = place.loaded.sources(&Secrets::Environment)?;
    let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
    let source = sources.iter().find(|source| source.name() == name).ok_or_else(|| {
        UsageError(format!(
            "there is no source {name:?} in the configuration: {}",
            suggest::instead(name, &names)
        ))
    })?;
    let own =
        stored.into_iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value)));
    let mut settings: BTreeMap<String, Json> = own.collect();
    settings.insert(setting.to_owned(), value.clone());
    source.configured(&settings).map_err(|refused| UsageError(refused.to_string()))?;
    store.set_setting(key, Some(value.clone()), now()).await.context("the setting cannot be stored")
}
