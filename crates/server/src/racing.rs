//! `/v1/racing`: meetings, races, runners, the timeline with its indicators, results.

mod timeline;

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::{Fingerprint, Span, Time};
use stakeout_sources::racing::{FAMILY, Status};
use stakeout_store::{RecordFilter, StoredRecord};

use crate::app::App;
use crate::ask::{Asked, Path, When, page_size};
use crate::problem::Problem;
use crate::records::Record;
use crate::reply::{Listed, Reply, percent};
use crate::schema::Instant;
use crate::sources::of_family;
use crate::targets::Target;

pub(crate) use timeline::{TimelineQuery, TimelineView, timeline};

/// Records kept for one answer, the newest; a day has a few hundred races, and a race two dozen runners.
const RECORDS_MAX: usize = 5_000;
const PAGE: u32 = 1_000;
/// A race that should have started longer ago than this and still is not over is no longer upcoming.
const OVERDUE_MAX: Span = Span::mins(60);

/// A race with everything that hangs on it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Race {
    /// The race.
    race: Record,
    /// Its meeting.
    meeting: Option<Record>,
    /// Its runners, by number.
    entrants: Vec<Record>,
    /// Its pools.
    pools: Vec<Record>,
    /// How it is polled; null when it no longer is.
    target: Option<Target>,
}

/// How a race ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Results {
    /// The race.
    race: Record,
    /// The placed runners, by position.
    results: Vec<Record>,
    /// What was paid.
    dividends: Vec<Record>,
    /// The pools.
    pools: Vec<Record>,
}

/// Which meetings.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MeetingQuery {
    /// Only of this date, as the upstream writes it: `2026-01-10`.
    date: Option<String>,
}

/// Which races.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RaceQuery {
    /// Only those that are still to be run.
    upcoming: bool,
    /// Only those that start then or later.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Only those that start before then.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
    /// Only of this meeting, by its id.
    meeting: Option<String>,
    /// Those after this race in the order of the list, by its id: the `Link` of an earlier answer has it.
    after: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

fn kind(collection: &str) -> String {
    format!("{FAMILY}_{collection}")
}

fn race_print(id: &str) -> Fingerprint {
    Fingerprint::of(&kind("races"), &[id])
}

/// All records of a kind that are there, or those that hang on one.
async fn all(
    app: &App,
    source: &str,
    collection: &str,
    parent: Option<Fingerprint>,
) -> Result<Vec<StoredRecord>, Problem> {
    let mut found: Vec<StoredRecord> = Vec::new();
    let mut filter = RecordFilter {
        source: source.to_owned(),
        kind: Some(kind(collection)),
        parent,
        // What hangs on a race goes with it, and stays worth reading.
        gone: parent.is_some(),
        after: None,
        limit: PAGE,
    };
    loop {
        let page = app.store.list_records(&filter).await?;
        filter.after = page.last().map(|listed| listed.row);
        let last = page.len() < PAGE as usize;
        found.extend(page.into_iter().map(|listed| listed.record));
        // Rows are in the order in which they came: of too many the first go, so that today's are always there.
        found.drain(..found.len().saturating_sub(RECORDS_MAX));
        if last {
            return Ok(found);
        }
    }
}

fn start_of(race: &StoredRecord) -> Option<Time> {
    race.body["start_time"].as_str().and_then(Time::parse)
}

/// The place of a record in a list by one of its fields: numbers, then words, then lists such as the runners that a
/// dividend was paid on.
fn rank(record: &StoredRecord, field: &str) -> (i64, String) {
    match &record.body[field] {
        Json::Number(number) => (number.as_i64().unwrap_or(i64::MAX), String::new()),
        Json::String(word) => (i64::MAX, word.clone()),
        other => (i64::MAX, other.to_string()),
    }
}

/// Those that hang on a race, in the order of these fields.
async fn below(
    app: &App,
    source: &str,
    race: Fingerprint,
    collection: &str,
    order: [&str; 2],
) -> Result<Vec<StoredRecord>, Problem> {
    let mut found = all(app, source, collection, Some(race)).await?;
    found.sort_by_cached_key(|record| order.map(|field| rank(record, field)));
    Ok(found)
}

/// Those that hang on a race and count: what went while the race stayed was replaced, as an interim dividend is by the
/// final one. What went with its race stays worth reading. The SQL views have the same rule.
async fn counted(
    app: &App,
    source: &str,
    race: &StoredRecord,
    collection: &str,
    order: [&str; 2],
) -> Result<Vec<Record>, Problem> {
    let mut found = below(app, source, race.fingerprint, collection, order).await?;
    found.retain(|record| record.gone.is_none_or(|gone| race.gone.is_some_and(|over| gone >= over)));
    Ok(views(found))
}

fn views(records: Vec<StoredRecord>) -> Vec<Record> {
    records.into_iter().map(Record::from).collect()
}

/// Lists meetings.
pub(crate) async fn meetings(
    State(app): State<App>,
    Path(source): Path<String>,
    Asked(query): Asked<MeetingQuery>,
) -> Result<Reply<Vec<Record>>, Problem> {
    of_family(&app, &source, FAMILY)?;
    let mut found = all(&app, &source, "meetings", None).await?;
    found.retain(|meeting| query.date.as_deref().is_none_or(|date| meeting.body["date"] == date));
    found.sort_by(|a, b| a.body["name"].as_str().cmp(&b.body["name"].as_str()));
    Ok(Reply(views(found)))
}

/// Lists races by their start.
pub(crate) async fn races(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(source): Path<String>,
    Asked(query): Asked<RaceQuery>,
) -> Result<Listed<Record>, Problem> {
    of_family(&app, &source, FAMILY)?;
    let limit = page_size(query.limit)? as usize;
    let parent = query.meeting.as_deref().map(|meeting| Fingerprint::of(&kind("meetings"), &[meeting]));
    let mut found = all(&app, &source, "races", parent).await?;
    let now = app.now();
    let place = |race: &StoredRecord| (start_of(race), race.key.clone());
    let after = match &query.after {
        Some(id) => Some(place(&find(&app, &source, id).await?)),
        None => None,
    };
    found.retain(|race| after.as_ref().is_none_or(|after| place(race) > *after));
    found.retain(|race| {
        let start = start_of(race);
        let after =
            |bound: Option<When>| bound.is_none_or(|When(from)| start.is_some_and(|start| start >= from));
        let before = query.to.is_none_or(|When(to)| start.is_some_and(|start| start < to));
        after(query.from) && before && (!query.upcoming || is_upcoming(race, now))
    });
    found.sort_by_key(place);
    let more = found.len() > limit;
    found.truncate(limit);
    let cursor = found.last().filter(|_| more).map(|race| percent(&race.key));
    Ok(Listed::new(views(found), &uri, "after", cursor))
}

fn is_upcoming(race: &StoredRecord, now: Time) -> bool {
    let open = race.body["status"] == Status::Open.name() && race.gone.is_none();
    let started = race.body["start_confirmed"] == true;
    open && !started && start_of(race).is_some_and(|start| start > now - OVERDUE_MAX)
}

/// The race that starts next.
pub(crate) async fn next(State(app): State<App>, Path(source): Path<String>) -> Result<Reply<Race>, Problem> {
    of_family(&app, &source, FAMILY)?;
    let now = app.now();
    let upcoming = all(&app, &source, "races", None).await?.into_iter().filter(|race| is_upcoming(race, now));
    let next = upcoming.min_by_key(start_of);
    let next = next.ok_or_else(|| Problem::not_found("no race is still to be run, as far as is known"))?;
    whole(&app, &source, next).await
}

/// One race, with its runners.
pub(crate) async fn race(
    State(app): State<App>,
    Path((source, id)): Path<(String, String)>,
) -> Result<Reply<Race>, Problem> {
    let race = find(&app, &source, &id).await?;
    whole(&app, &source, race).await
}

async fn find(app: &App, source: &str, id: &str) -> Result<StoredRecord, Problem> {
    of_family(app, source, FAMILY)?;
    let found = app.store.records(source, &[race_print(id)]).await?.pop();
    found.ok_or_else(|| {
        Problem::not_found(format!("there is no race {id:?}: /v1/racing/{source}/races lists them"))
    })
}

async fn whole(app: &App, source: &str, race: StoredRecord) -> Result<Reply<Race>, Problem> {
    let meeting = match race.parent {
        Some(meeting) => app.store.records(source, &[meeting]).await?.pop(),
        None => None,
    };
    let entrants = below(app, source, race.fingerprint, "entrants", ["runner_number", "name"]).await?;
    let pools = counted(app, source, &race, "race_pools", ["product_type", "status"]).await?;
    let target = app.store.target(source, &format!("race/{}", race.key)).await?;
    Ok(Reply(Race {
        target: target.map(|row| Target::new(row, app.now())),
        race: race.into(),
        meeting: meeting.map(Record::from),
        entrants: views(entrants),
        pools,
    }))
}

/// The runners of a race, by number.
pub(crate) async fn entrants(
    State(app): State<App>,
    Path((source, id)): Path<(String, String)>,
) -> Result<Reply<Vec<Record>>, Problem> {
    let race = find(&app, &source, &id).await?;
    Ok(Reply(views(below(&app, &source, race.fingerprint, "entrants", ["runner_number", "name"]).await?)))
}

/// How a race ended.
pub(crate) async fn results(
    State(app): State<App>,
    Path((source, id)): Path<(String, String)>,
) -> Result<Reply<Results>, Problem> {
    let race = find(&app, &source, &id).await?;
    Ok(Reply(Results {
        results: counted(&app, &source, &race, "race_results", ["position", "runner_number"]).await?,
        dividends: counted(&app, &source, &race, "dividends", ["product", "positions"]).await?,
        pools: counted(&app, &source, &race, "race_pools", ["product_type", "status"]).await?,
        race: race.into(),
    }))
}
