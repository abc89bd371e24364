//! The grid of a race: what the source's pure function makes of the stored history.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::Time;
use stakeout_sources::racing::timeline::{self as grid, RunnerHistory};
use stakeout_sources::racing::{MONEY_FLOW_HISTORY, ODDS_HISTORY, STATUS_HISTORY, Status};
use stakeout_store::{HistoryRow, StoredRecord};

use super::{below, find, start_of};
use crate::app::App;
use crate::ask::{Asked, Path};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::schema::Instant;

/// Rows of history per runner and stream; a race has a few hundred.
const ROWS_MAX: u32 = 10_000;

/// Which pool's money.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pool {
    /// The win pool.
    #[default]
    Win,
    /// The place pool.
    Place,
}

/// Which grid.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TimelineQuery {
    /// Whose money.
    pool: Pool,
}

/// The grid of a race.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Timeline")]
pub(crate) struct TimelineView {
    /// The race's id.
    race: String,
    /// Its advertised start.
    #[schemars(with = "Instant")]
    start: Time,
    /// Up to when it is filled.
    #[schemars(with = "Instant")]
    until: Time,
    /// The columns, in minutes to the start: 60, 55, … 1, 0, -0.5, ….
    buckets: Vec<f64>,
    /// One line per runner, by number.
    lines: Vec<Line>,
}

/// A runner's line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// The runner's id.
    entrant: String,
    runner_number: Option<i64>,
    name: Option<String>,
    is_scratched: bool,
    /// One cell per column.
    cells: Vec<Cell>,
}

/// One runner in one column.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cell {
    /// The money on it, in cents.
    amount_cents: Option<i64>,
    /// What was added since the column before.
    increment_cents: Option<i64>,
    /// Its part of what was added to all runners.
    share_percent: Option<f64>,
    /// Its fixed win price.
    odds: Option<f64>,
    /// Its part of the added money grew.
    money: Option<Indicator>,
    /// Its price shortened.
    shortened: Option<Indicator>,
}

/// A move that is worth a colour.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Indicator {
    /// How strong: `5-10`, `10-15`, `15-20`, `20-25`, `25-50` or `50+`.
    band: String,
    /// The exact figure: percentage points of money, percent of price.
    percent: f64,
}

impl From<grid::Indicator> for Indicator {
    fn from(indicator: grid::Indicator) -> Indicator {
        let band = serde_json::to_value(indicator.band).ok();
        let band = band.as_ref().and_then(|band| band.as_str()).unwrap_or_default().to_owned();
        Indicator { band, percent: indicator.percent }
    }
}

impl From<grid::Cell> for Cell {
    fn from(cell: grid::Cell) -> Cell {
        Cell {
            amount_cents: cell.amount_cents,
            increment_cents: cell.increment_cents,
            share_percent: cell.share_percent,
            odds: cell.odds,
            money: cell.money.map(Indicator::from),
            shortened: cell.shortened.map(Indicator::from),
        }
    }
}

/// The grid of a race.
pub(crate) async fn timeline(
    State(app): State<App>,
    Path((source, id)): Path<(String, String)>,
    Asked(query): Asked<TimelineQuery>,
) -> Result<Reply<TimelineView>, Problem> {
    let race = find(&app, &source, &id).await?;
    let start =
        start_of(&race).ok_or_else(|| Problem::not_found(format!("race {id:?} has no start time yet")))?;
    let until = until(&app, &source, &race).await?;
    let entrants = below(&app, &source, race.fingerprint, "entrants", ["runner_number", "name"]).await?;
    let mut runners = Vec::with_capacity(entrants.len());
    for entrant in &entrants {
        runners.push(history(&app, &source, entrant, query.pool).await?);
    }
    let grid = grid::timeline(start, until, &runners);
    let line = |(line, entrant): (grid::Line, &StoredRecord)| Line {
        entrant: line.entrant,
        runner_number: entrant.body["runner_number"].as_i64(),
        name: entrant.body["name"].as_str().map(str::to_owned),
        is_scratched: entrant.body["is_scratched"] == true,
        cells: line.cells.into_iter().map(Cell::from).collect(),
    };
    Ok(Reply(TimelineView {
        race: id,
        start,
        until,
        buckets: grid.buckets.iter().map(|bucket| bucket.minutes()).collect(),
        lines: grid.lines.into_iter().zip(&entrants).map(line).collect(),
    }))
}

/// A race that is over gains no columns: they end where it was seen to be. Its record may change later, when its day's
/// list learns that it is over.
async fn until(app: &App, source: &str, race: &StoredRecord) -> Result<Time, Problem> {
    let now = app.now();
    let over = [Status::Final, Status::Abandoned].iter().any(|status| race.body["status"] == status.name());
    if !over {
        return Ok(now);
    }
    let newest = app.store.history(source, race.fingerprint, Some(STATUS_HISTORY), 1).await?;
    Ok(newest.last().map_or(race.last_changed, |row| row.at).min(now))
}

async fn history(
    app: &App,
    source: &str,
    entrant: &StoredRecord,
    pool: Pool,
) -> Result<RunnerHistory, Problem> {
    let rows =
        async |stream: &str| app.store.history(source, entrant.fingerprint, Some(stream), ROWS_MAX).await;
    let field = match pool {
        Pool::Win => "win_pool_amount",
        Pool::Place => "place_pool_amount",
    };
    let (money, odds): (Vec<HistoryRow>, Vec<HistoryRow>) =
        (rows(MONEY_FLOW_HISTORY).await?, rows(ODDS_HISTORY).await?);
    Ok(RunnerHistory {
        entrant: entrant.key.clone(),
        is_scratched: entrant.body["is_scratched"] == true,
        money: money.iter().filter_map(|row| grid::money_row(row.at, &row.values, field)).collect(),
        odds: odds.iter().filter_map(|row| grid::odds_row(row.at, &row.values)).collect(),
    })
}
