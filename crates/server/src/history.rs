//! `/v1/records/…/history`: what a record said, change by change, at a moment, or thinned out for a chart.

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::{Span, Time};
use stakeout_store::{HistoryRow, HistoryWindow};

use crate::app::App;
use crate::ask::{Asked, Path, When, page_size, print};
use crate::problem::Problem;
use crate::reply::Page;
use crate::schema::Instant;

/// The most points of a chart.
const POINTS_MAX: u32 = 2_000;

/// What a record said from a moment on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Row {
    /// From then on.
    #[schemars(with = "Instant")]
    pub(crate) at: Time,
    /// The stream.
    pub(crate) stream: String,
    /// Its fields.
    pub(crate) values: Json,
    /// Whether the upstream says so, or the poll that saw it.
    pub(crate) upstream: bool,
    /// Whether moves between this row and the one before are lost.
    pub(crate) gap: bool,
}

impl From<HistoryRow> for Row {
    fn from(HistoryRow { at, stream, values, upstream, gap }: HistoryRow) -> Row {
        Row { at, stream, values, upstream, gap }
    }
}

/// Which part of the history.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HistoryQuery {
    /// Only this stream.
    stream: Option<String>,
    /// The values at this moment: of each stream the newest row that is not later. Alone, or with `stream`.
    #[schemars(with = "Option<Instant>")]
    at: Option<When>,
    /// From then on, that moment included.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Before then; now, unless given.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
    /// Thinned out: the window cut into so many parts, the last row of each. Needs `from`.
    #[schemars(range(min = 1, max = 2000))]
    points: Option<u32>,
    /// At most so many rows. Without `from`, the newest.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// Reads the history of a record, the oldest row first.
pub(crate) async fn read(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path((source, fingerprint)): Path<(String, String)>,
    Asked(query): Asked<HistoryQuery>,
) -> Result<Page<Row>, Problem> {
    let record = print(&fingerprint)?;
    let limit = page_size(query.limit)?;
    crate::records::find(&app, &source, record).await?;
    let last_page =
        |rows: Vec<HistoryRow>| Page { items: rows.into_iter().map(Row::from).collect(), next: None };
    if let Some(When(at)) = query.at {
        if query.from.is_some() || query.to.is_some() || query.points.is_some() {
            return Err(Problem::bad_input("at is a moment: from, to and points are about a window"));
        }
        let rows = app.store.history_at(&source, record, at).await?;
        let wanted = |row: &HistoryRow| query.stream.as_ref().is_none_or(|stream| *stream == row.stream);
        return Ok(last_page(rows.into_iter().filter(wanted).collect()));
    }
    let Some(When(from)) = query.from else {
        if query.to.is_some() || query.points.is_some() {
            return Err(Problem::bad_input("to and points need from: a window has a beginning"));
        }
        return Ok(last_page(app.store.history(&source, record, query.stream.as_deref(), limit).await?));
    };
    let to = query.to.map_or_else(|| app.now() + Span::us(1), |When(to)| to);
    let window = HistoryWindow { source, record, stream: query.stream, from, to };
    if let Some(points) = query.points {
        if !(1..=POINTS_MAX).contains(&points) {
            return Err(Problem::bad_input(format!("points: expected 1 to {POINTS_MAX}, found {points}")));
        }
        return Ok(last_page(app.store.history_points(&window, points).await?));
    }
    page(&app, &uri, window, limit).await
}

/// A page of a window. Rows of one moment stay together, so that the next page can begin at a time.
async fn page(app: &App, uri: &http::Uri, window: HistoryWindow, limit: u32) -> Result<Page<Row>, Problem> {
    let mut rows = app.store.history_between(&window, limit + 1).await?;
    let cursor = if rows.len() > limit as usize {
        let next = rows[limit as usize].at;
        let whole: usize = rows.partition_point(|row| row.at < next);
        // A moment with more rows than a page has: the page is longer rather than endless.
        if whole > 0 {
            rows.truncate(whole);
            Some(next.to_string())
        } else {
            rows = app
                .store
                .history_between(&HistoryWindow { to: next + Span::us(1), ..window }, 10_000)
                .await?;
            Some((next + Span::us(1)).to_string())
        }
    } else {
        None
    };
    Ok(Page::new(rows.into_iter().map(Row::from).collect(), uri, "from", cursor))
}
