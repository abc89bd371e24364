//! `/v1/records`: what is known of each thing.

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::{Fingerprint, Time};
use stakeout_store::{RecordFilter, StoredRecord};

use crate::app::App;
use crate::ask::{Asked, Path, page_size, print};
use crate::problem::Problem;
use crate::reply::{Page, Reply};
use crate::schema::{Instant, Print};

/// A thing with an identity, and what is known of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Record {
    /// Its kind: `racing_entrants`.
    pub(crate) kind: String,
    /// Who it is.
    #[schemars(with = "Print")]
    pub(crate) fingerprint: Fingerprint,
    /// Its readable key.
    pub(crate) key: String,
    /// The record it hangs on.
    #[schemars(with = "Option<Print>")]
    pub(crate) parent: Option<Fingerprint>,
    /// Its fields.
    pub(crate) body: Json,
    /// How many targets hold it.
    pub(crate) holders: u32,
    /// When it was first seen.
    #[schemars(with = "Instant")]
    pub(crate) first_seen: Time,
    /// When it last changed.
    #[schemars(with = "Instant")]
    pub(crate) last_changed: Time,
    /// When the last target let go of it; null while it is there.
    #[schemars(with = "Option<Instant>")]
    pub(crate) gone: Option<Time>,
}

impl From<StoredRecord> for Record {
    fn from(record: StoredRecord) -> Record {
        Record {
            kind: record.kind,
            fingerprint: record.fingerprint,
            key: record.key,
            parent: record.parent,
            body: record.body,
            holders: record.holders,
            first_seen: record.first_seen,
            last_changed: record.last_changed,
            gone: record.gone,
        }
    }
}

/// Which records.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecordQuery {
    /// Only of this kind, by its full name.
    kind: Option<String>,
    /// Only those that hang on this record: a fingerprint.
    parent: Option<String>,
    /// Those that are gone, too.
    gone: bool,
    /// Those after this place, from `next` of an earlier page.
    after: Option<u64>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Lists the records of a source.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(source): Path<String>,
    Asked(query): Asked<RecordQuery>,
) -> Result<Page<Record>, Problem> {
    let limit = page_size(query.limit)?;
    let filter = RecordFilter {
        source,
        kind: query.kind,
        parent: query.parent.as_deref().map(print).transpose()?,
        gone: query.gone,
        after: query.after,
        limit,
    };
    let listed = app.store.list_records(&filter).await?;
    let whole = listed.len() == limit as usize;
    let cursor = listed.last().filter(|_| whole).map(|listed| listed.row.to_string());
    let records = listed.into_iter().map(|listed| listed.record.into()).collect();
    Ok(Page::new(records, &uri, "after", cursor))
}

/// One record of a source.
pub(crate) async fn one(
    State(app): State<App>,
    Path((source, fingerprint)): Path<(String, String)>,
) -> Result<Reply<Record>, Problem> {
    Ok(Reply(find(&app, &source, print(&fingerprint)?).await?.into()))
}

/// A stored record.
pub(crate) async fn find(app: &App, source: &str, print: Fingerprint) -> Result<StoredRecord, Problem> {
    let found = app.store.records(source, &[print]).await?.pop();
    found.ok_or_else(|| Problem::not_found(format!("source {source:?} has no record {print}")))
}
