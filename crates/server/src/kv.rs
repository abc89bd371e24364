//! `/v1/kv`: values that sources publish under a name.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_store::KvRow;

use crate::app::App;
use crate::ask::{Asked, Path};
use crate::feed::KV_MAX;
use crate::problem::Problem;
use crate::reply::Reply;
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
}

/// Lists published values, at most a thousand.
pub(crate) async fn list(
    State(app): State<App>,
    Asked(query): Asked<KvQuery>,
) -> Result<Reply<Vec<Value>>, Problem> {
    let rows = app.store.list_kv(query.namespace.as_deref(), KV_MAX).await?;
    Ok(Reply(rows.into_iter().map(Value::from).collect()))
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
