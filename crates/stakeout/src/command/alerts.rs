//! `stakeout alerts`: the rules in force, and what one of them would have sent.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value as Json, json};
use stakeout_engine::with_settings;
use stakeout_server::alerts::{Around, Replayed, try_rule};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_store::StoreError;

use super::now;
use crate::cli::{AlertsAction, AlertsTestArgs};
use crate::config::Secrets;
use crate::open::Place;
use crate::output::Table;
use crate::{UsageError, output, suggest, when};

/// Live rules are settings under this prefix.
const PREFIX: &str = "alert.";

/// What a rule is called that was given as JSON.
const DRAFT: &str = "draft";

pub(super) async fn alerts(place: &Place, action: AlertsAction) -> Result<ExitCode> {
    match action {
        AlertsAction::List(args) => list(place, args.json).await?,
        AlertsAction::Test(args) => test(place, &args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The rules in force, and whether each is a live one. Live ones that cannot be understood are not in force.
async fn in_force(place: &Place) -> Result<BTreeMap<String, (AlertConfig, bool)>> {
    let stored = match place.read().await {
        Ok(store) => store.settings().await?,
        Err(StoreError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let filed = place.loaded.config.alert.iter().map(|(name, rule)| (name.clone(), (rule.clone(), false)));
    let mut rules: BTreeMap<String, (AlertConfig, bool)> = filed.collect();
    for (key, value) in stored {
        let Some(name) = key.strip_prefix(PREFIX) else { continue };
        if let Ok(rule) = understood(name, &value) {
            rules.insert(name.to_owned(), (rule, true));
        }
    }
    Ok(rules)
}

/// A rule that can ring.
fn understood(name: &str, value: &Json) -> Result<AlertConfig, UsageError> {
    let refused = |detail: String| UsageError(format!("alert {name:?}: {detail}"));
    let rule: AlertConfig = serde_path_to_error::deserialize(value)
        .map_err(|error| refused(format!("{}: {}", error.path(), error.inner())))?;
    rule.check(name).map_err(|error| refused(error.to_string()))?;
    Ok(rule)
}

/// Whether a live rule can be stored: as the running process would say, and for a source and sinks that there are.
pub(super) fn check(place: &Place, name: &str, value: &Json) -> Result<(), UsageError> {
    let rule = understood(name, value)?;
    let config = &place.loaded.config;
    let known = |what: &str, wanted: &str, there: Vec<&str>| match there.contains(&wanted) {
        true => Ok(()),
        false => Err(UsageError(format!(
            "alert {name:?}: there is no {what} {wanted:?} in the configuration: {}",
            suggest::instead(wanted, &there)
        ))),
    };
    if let Some(source) = &rule.source {
        known("source", source, config.source.keys().map(String::as_str).collect())?;
    }
    rule.sinks
        .iter()
        .try_for_each(|sink| known("sink", sink, config.sink.keys().map(String::as_str).collect()))
}

async fn list(place: &Place, json: bool) -> Result<()> {
    let mut table = Table::new(&["ALERT", "FROM", "FOR", "SEVERITY", "ON", "WHEN", "SINKS"]);
    for (name, (rule, live)) in in_force(place).await? {
        let origin = if live { "live" } else { "file" };
        if json {
            output::json(&json!({ "name": name, "origin": origin, "user": rule.user, "rule": rule }))?;
            continue;
        }
        let when = json!(rule.when);
        table.row([
            name,
            origin.to_owned(),
            rule.user.clone().unwrap_or_else(|| "everybody".to_owned()),
            rule.severity.name().to_owned(),
            if rule.enabled { "yes" } else { "no" }.to_owned(),
            when.to_string(),
            rule.sinks.join(", "),
        ]);
    }
    match (json, table.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => output::line("no alerts: add [alert.NAME] to the configuration, or set alert.NAME"),
        (false, false) => output::line(&table.render()),
    }
}

async fn test(place: &Place, args: &AlertsTestArgs) -> Result<()> {
    let (name, rule) = match serde_json::from_str::<Json>(&args.rule) {
        Ok(value) if value.is_object() => (DRAFT.to_owned(), understood(DRAFT, &value)?),
        _ => {
            let mut rules = in_force(place).await?;
            let names: Vec<String> = rules.keys().cloned().collect();
            let (rule, _) = rules.remove(&args.rule).ok_or_else(|| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let hint = suggest::instead(&args.rule, &names);
                UsageError(format!("there is no alert {:?}: {hint}", args.rule))
            })?;
            (args.rule.clone(), rule)
        }
    };
    RuleBook::new(BTreeMap::from([(name.clone(), rule.clone())]))
        .map_err(|refused| UsageError(format!("alert {name:?}: {refused}")))?;
    let store = place.read().await?;
    let in_force = in_force(place).await?.into_iter().map(|(name, (rule, _))| (name, rule));
    let rules = RuleBook::new(in_force.collect()).unwrap_or_default();
    // Without its secrets a source cannot be made; what it would add is when exactly there was a look.
    let filed = place.loaded.sources(&Secrets::Environment).map(|wired| wired.sources).unwrap_or_default();
    let stored = store.settings().await?;
    let sources = filed.iter().map(|source| with_settings(source, &stored)).collect();
    let names = place.loaded.config.source.keys().cloned().collect();
    let around = Around { names, sources, rules: &rules };
    let until = now();
    let done = try_rule(&*store, &name, rule, &around, (until - args.since, until)).await?;
    show(&name, &done, args)
}

fn show(name: &str, done: &Replayed, args: &AlertsTestArgs) -> Result<()> {
    if args.json {
        return done.rings.iter().try_for_each(output::json);
    }
    let mut table = Table::new(&["AT", "SOURCE", "WHAT", "SINKS"]);
    for ring in &done.rings {
        let words = if ring.text.is_empty() { &ring.title } else { &ring.text };
        table.row([
            when::relative(ring.at, now()),
            ring.source.clone(),
            words.clone(),
            ring.sinks.join(", "),
        ]);
    }
    if !table.is_empty() {
        output::line(&table.render())?;
    }
    let times = if done.rings.len() == 1 { "once" } else { "times" };
    let count = if done.rings.len() == 1 { String::new() } else { format!("{} ", done.rings.len()) };
    let mut words = format!("{name} would have rung {count}{times} in the last {}", args.since);
    if done.kept_quiet > 0 {
        words.push_str(&format!(", and kept quiet {} times", done.kept_quiet));
    }
    if done.cut {
        words.push_str("; there was more than is looked at, so the beginning is left out");
    }
    for remark in &done.remarks {
        words.push_str(&format!("; {}", remark.words()));
    }
    output::line(&words)
}
