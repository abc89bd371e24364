//! `/v1/alerts`: the rules in force, what they would have told, and changes to them.

mod gather;
mod looks;
mod repeats;
mod replay;

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::alert::is_type;
use stakeout_core::{Span, Time};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_store::{Store, StoreError};

pub use gather::Around;
pub use replay::{Remark, Replayed, WouldRing};

use crate::app::App;
use crate::ask::{Asked, Path, Told};
use crate::problem::{Problem, Sort};
use crate::reply::Reply;

/// The longest time that a rule is tried on.
const LONGEST_SINCE: Span = Span::hours(31 * 24);
/// The time that a rule is tried on unless said otherwise.
const USUAL_SINCE: Span = Span::hours(24);

/// A rule in force.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rule {
    /// Its name.
    name: String,
    /// Where it stands: `file`, or `live` when it was made here or by `stakeout settings`.
    origin: &'static str,
    /// Whether it stands over one of the same name in the configuration file, which holds again when it is removed.
    over_file: bool,
    /// Whose it is; null is everybody.
    user: Option<String>,
    /// The rule as it would be written.
    rule: Json,
}

fn rule_of(name: String, rule: Json, filed: &BTreeMap<String, Json>, live: bool) -> Rule {
    Rule {
        origin: if live { "live" } else { "file" },
        over_file: live && filed.contains_key(&name),
        user: rule["user"].as_str().map(str::to_owned),
        name,
        rule,
    }
}

/// All rules in force, by name.
pub(crate) async fn list(State(app): State<App>) -> Result<Reply<Vec<Rule>>, Problem> {
    let stored: BTreeMap<String, Json> = app.store.settings().await?.into_iter().collect();
    let filed = app.control.filed_alerts();
    let rule = |(name, rule): (String, Json)| {
        let live = stored.contains_key(&setting(&name));
        rule_of(name, rule, &filed, live)
    };
    Ok(Reply(app.control.alerts().into_iter().map(rule).collect()))
}

fn setting(name: &str) -> String {
    format!("alert.{name}")
}

/// Makes a rule, or changes one. It acts at once.
pub(crate) async fn set(
    State(app): State<App>,
    Path(name): Path<String>,
    Told(rule): Told<Json>,
) -> Result<Reply<Rule>, Problem> {
    let config = understood(&app, &name, &rule)?;
    app.control.set_setting(&setting(&name), Some(rule)).await?;
    Ok(Reply(rule_of(name, serde_json::json!(config), &app.control.filed_alerts(), true)))
}

/// Removes a live rule; one of the same name in the configuration file holds again.
pub(crate) async fn remove(State(app): State<App>, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let stored = app.store.settings().await?;
    if !stored.iter().any(|(key, _)| *key == setting(&name)) {
        return Err(match app.control.filed_alerts().contains_key(&name) {
            true => Problem::new(
                Sort::Refused,
                format!(
                    "alert {name:?} stands in the configuration file: remove it there, or set one of this name with \"enabled\": false over it"
                ),
            ),
            false => unknown(&name),
        });
    }
    app.control.set_setting(&setting(&name), None).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn unknown(name: &str) -> Problem {
    Problem::not_found(format!("there is no alert {name:?}: GET /v1/alerts lists them"))
}

/// A rule that can ring here: understood, and for a source and sinks that there are.
fn understood(app: &App, name: &str, rule: &Json) -> Result<AlertConfig, Problem> {
    let refused = |detail: String| Problem::new(Sort::Refused, format!("alert {name:?}: {detail}"));
    let config: AlertConfig = serde_path_to_error::deserialize(rule)
        .map_err(|error| refused(format!("{}: {}", error.path(), error.inner())))?;
    config.check(name).map_err(|error| refused(error.to_string()))?;
    let known = |what: &str, wanted: &str, there: Vec<String>| match there.iter().any(|name| name == wanted) {
        true => Ok(()),
        false if there.is_empty() => Err(refused(format!("there is no {what} {wanted:?}, and no other"))),
        false => Err(refused(format!("there is no {what} {wanted:?}: expected one of {}", there.join(", ")))),
    };
    if let Some(source) = &config.source {
        known("source", source, source_names(app))?;
    }
    if let Some(pattern) = config.event_type() {
        let told = told_by(app, config.source.as_deref());
        if !told.iter().any(|event_type| is_type(event_type, pattern)) {
            let told: Vec<String> = told.into_iter().collect();
            let detail = format!("nobody tells of {pattern:?}: expected one of {}", told.join(", "));
            return Err(refused(detail));
        }
    }
    let sinks: Vec<String> = app.control.sinks().into_iter().map(|sink| sink.name).collect();
    config.sinks.iter().try_for_each(|sink| known("sink", sink, sinks.clone()))?;
    Ok(config)
}

/// The types of all events that may be told, by all sources or by one.
fn told_by(app: &App, source: Option<&str>) -> BTreeSet<String> {
    let sources = app.control.sources();
    let meant = sources.iter().filter(|known| source.is_none_or(|name| name == known.name()));
    meant.flat_map(|source| source.event_types()).collect()
}

fn source_names(app: &App) -> Vec<String> {
    app.control.sources().iter().map(|source| source.name().to_owned()).collect()
}

/// How much of the past.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TestQuery {
    /// So long ago and since: `24h` unless said otherwise, `31d` at most.
    since: Option<String>,
}

impl TestQuery {
    fn span(&self) -> Result<Span, Problem> {
        let Some(text) = &self.since else { return Ok(USUAL_SINCE) };
        let span = Span::parse(text).filter(|span| *span > Span::ZERO && *span <= LONGEST_SINCE);
        span.ok_or_else(|| {
            Problem::bad_input(format!("since: expected a duration such as 24h, 31d at most, found {text:?}"))
        })
    }
}

/// What a rule in force would have told.
pub(crate) async fn test(
    State(app): State<App>,
    Path(name): Path<String>,
    Asked(query): Asked<TestQuery>,
) -> Result<Reply<Replayed>, Problem> {
    let rule = app.control.alerts().remove(&name).ok_or_else(|| unknown(&name))?;
    let config = understood(&app, &name, &rule)?;
    Ok(Reply(tried(&app, &name, config, query.span()?).await?))
}

/// What a rule would have told, had it been in force.
pub(crate) async fn test_draft(
    State(app): State<App>,
    Asked(query): Asked<TestQuery>,
    Told(rule): Told<Json>,
) -> Result<Reply<Replayed>, Problem> {
    let config = understood(&app, DRAFT, &rule)?;
    Ok(Reply(tried(&app, DRAFT, config, query.span()?).await?))
}

/// What a rule is called that has no name yet.
const DRAFT: &str = "draft";

async fn tried(app: &App, name: &str, rule: AlertConfig, since: Span) -> Result<Replayed, Problem> {
    let now = app.now();
    let rules = in_force(app.control.alerts());
    let around = Around { names: source_names(app), sources: app.control.sources(), rules: &rules };
    Ok(try_rule(&*app.store, name, rule, &around, (now - since, now)).await?)
}

/// The rules in force, as they are written.
fn in_force(written: BTreeMap<String, Json>) -> RuleBook {
    let read = |(name, rule): (String, Json)| Some((name, serde_json::from_value(rule).ok()?));
    RuleBook::new(written.into_iter().filter_map(read).collect()).unwrap_or_default()
}

/// What a rule would have told within a time. It rings whether it is enabled or not.
pub async fn try_rule(
    store: &dyn Store,
    name: &str,
    rule: AlertConfig,
    around: &Around<'_>,
    window: (Time, Time),
) -> Result<Replayed, StoreError> {
    let rule = AlertConfig { enabled: true, ..rule };
    // A rule that was not checked rings as far as it can.
    let book = RuleBook::new(BTreeMap::from([(name.to_owned(), rule.clone())])).unwrap_or_default();
    let past = gather::gather(store, (&rule, &book), around, window).await?;
    Ok(replay::replay(&book, &past))
}
