//! `/v1/kv`: values that sources publish under a name.

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_store::KvRow;

use crate::app::App;
use crate::ask::{Asked, PAGE_MAX, Path, page_size};
use crate::problem::Problem;
use crate::reply::{Listed, Reply, percent};
use crate::schema::Instant;

/// A published value.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Value {
    /// `race`
    namespace: String,
    /// `currentOrder`
    key: String,
    /// Any JSON.
    value: Json,
    /// When it last changed.
    #[schemars(with = "Instant")]
    updated: Time,
}

impl From<KvRow> for Value {
    fn from(KvRow { namespace, key, value, updated }: KvRow) -> Value {
        Value { namespace, key, value, updated }
    }
}

/// Which values.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KvQuery {
    /// Only of this namespace.
    namespace: Option<String>,
    /// Those after this place, `namespace/key`, from the `Link` header of an earlier part.
    #[schemars(regex(pattern = "^[^/]+/.+$"))]
    after: Option<String>,
    /// At most so many: a thousand unless given.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists published values.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Asked(query): Asked<KvQuery>,
) -> Result<Listed<Value>, Problem> {
    let limit = page_size(query.limit.or(Some(PAGE_MAX)))?;
    let after = query.after.as_deref().map(place).transpose()?;
    let rows = app.store.list_kv(query.namespace.as_deref(), after, limit).await?;
    let full = rows.len() == limit as usize;
    let last = rows.last().filter(|_| full);
    let cursor = last.map(|row| percent(&format!("{}/{}", row.namespace, row.key)));
    Ok(Listed::new(rows.into_iter().map(Value::from).collect(), &uri, "after", cursor))
}

/// A value's place in the list.
fn place(text: &str) -> Result<(&str, &str), Problem> {
    let place = text.split_once('/').filter(|(namespace, key)| !namespace.is_empty() && !key.is_empty());
    place.ok_or_else(|| Problem::bad_input(format!("after: expected namespace/key, found {text:?}")))
}

/// One published value, as it is.
pub(crate) async fn one(
    State(app): State<App>,
    Path((namespace, key)): Path<(String, String)>,
) -> Result<Reply<Json>, Problem> {
    let value = app.store.kv(&namespace, &key).await?;
    value.map(|row| Reply(row.value)).ok_or_else(|| {
        Problem::not_found(format!("nothing is published as {namespace}/{key}: /v1/kv lists what is"))
    })
}
