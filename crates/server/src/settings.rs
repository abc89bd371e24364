//! `/v1/settings`: live settings, which stand over the configuration file.

use std::collections::BTreeMap;

use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::app::App;
use crate::ask::{Path, Told};
use crate::problem::Problem;
use crate::reply::Reply;

/// A value for a setting.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewValue {
    /// A number, true, false, text, a list (venues to follow), or an object (an alert rule, under `alert.NAME`).
    value: Json,
    /// Only say whether it would be accepted.
    #[serde(default)]
    check: bool,
}

/// A setting as it is now.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Setting {
    /// `source.NAME.SETTING`, or `alert.NAME`
    key: String,
    /// What it is, or would be.
    value: Json,
    /// Whether it was changed, or only checked.
    changed: bool,
}

/// Something that can be set.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Known {
    /// `source.NAME.SETTING`
    key: String,
    /// What it is now; null where the configuration file says it in more than one value.
    value: Option<Json>,
    /// The unit of a number, or nothing.
    unit: String,
    /// What it does.
    about: String,
    /// Whether it was set here, over the configuration file.
    set: bool,
}

/// Everything that can be set.
pub(crate) async fn known(State(app): State<App>) -> Result<Reply<Vec<Known>>, Problem> {
    let set: BTreeMap<String, Json> = app.store.settings().await?.into_iter().collect();
    let mut known = Vec::new();
    for source in app.control.sources() {
        known.extend(source.known_settings().into_iter().map(|setting| {
            let key = format!("source.{}.{}", source.name(), setting.name);
            let stored = set.get(&key).cloned();
            Known {
                set: stored.is_some(),
                value: setting.value.or(stored),
                unit: setting.unit.to_owned(),
                about: setting.about.to_owned(),
                key,
            }
        }));
    }
    Ok(Reply(known))
}

/// All live settings.
pub(crate) async fn list(State(app): State<App>) -> Result<Reply<BTreeMap<String, Json>>, Problem> {
    Ok(Reply(app.store.settings().await?.into_iter().collect()))
}

/// One live setting.
pub(crate) async fn one(State(app): State<App>, Path(key): Path<String>) -> Result<Reply<Setting>, Problem> {
    let found = app.store.settings().await?.into_iter().find(|(name, _)| *name == key);
    let (key, value) =
        found.ok_or_else(|| Problem::not_found(format!("{key} is not set: the configuration file holds")))?;
    Ok(Reply(Setting { key, value, changed: false }))
}

/// Changes a setting, or checks a value. It acts at once.
pub(crate) async fn set(
    State(app): State<App>,
    Path(key): Path<String>,
    Told(NewValue { value, check }): Told<NewValue>,
) -> Result<Reply<Setting>, Problem> {
    if check {
        app.control.check_setting(&key, Some(&value)).await?;
    } else {
        app.control.set_setting(&key, Some(value.clone())).await?;
    }
    Ok(Reply(Setting { key, value, changed: !check }))
}

/// Goes back to the configuration file.
pub(crate) async fn unset(State(app): State<App>, Path(key): Path<String>) -> Result<StatusCode, Problem> {
    app.control.set_setting(&key, None).await?;
    Ok(StatusCode::NO_CONTENT)
}
