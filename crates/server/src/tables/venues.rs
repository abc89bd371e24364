//! The venues; of each what is open there, what opened before, and whether anybody wants to hear of it.

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::{Event, Fingerprint, Span, Time};
use stakeout_sources::tables::{FAMILY, feed};
use stakeout_store::{RecordFilter, StoredRecord};

use super::stored::Stored;
use crate::app::App;
use crate::ask::{Asked, PAGE_MAX, Path, page_size};
use crate::problem::Problem;
use crate::records::Record;
use crate::reply::{Listed, Reply};
use crate::schema::{Instant, Print};

/// Venues that are looked through for one by its id.
const VENUES_MAX: usize = 20_000;
/// Tables that are shown of one venue…
const SLOTS_MAX: usize = 1_000;
/// …and pages of them that are looked through.
const SLOT_PAGES_MAX: usize = 50;

/// A venue, and its past.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VenueView {
    venue: Record,
    followed: bool,
    excluded: bool,
    /// Every table that was seen there, as long as it is kept: the latest evening first, at most a thousand, and before
    /// all others those that are open.
    slots: Vec<SlotLife>,
    /// Every time one opened that was told, of the newest 100,000 of the source: the newest first.
    drops: Vec<Drop>,
}

/// A table at a time, from when to when it was to be had.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SlotLife {
    #[schemars(with = "Print")]
    slot_id: Fingerprint,
    /// On the venue's clock.
    start: String,
    party_sizes: Vec<u32>,
    #[schemars(with = "Instant")]
    first_seen: Time,
    /// Since when nobody sees it any more; null while it is open.
    #[schemars(with = "Option<Instant>")]
    gone: Option<Time>,
    state: SlotState,
}

/// What became of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SlotState {
    /// It is to be had.
    Open,
    /// It was taken away: most likely booked.
    Closed,
    /// Its time had come.
    Passed,
}

impl SlotState {
    fn of(record: &StoredRecord) -> SlotState {
        match (record.gone, record.gone_natural) {
            (None, _) => SlotState::Open,
            (Some(_), false) => SlotState::Closed,
            (Some(_), true) => SlotState::Passed,
        }
    }
}

/// A table that opened.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Drop {
    /// The event's sequence number.
    seq: u64,
    #[schemars(with = "Print")]
    slot_id: Fingerprint,
    /// On the venue's clock.
    start: String,
    party_sizes: Vec<u32>,
    #[schemars(with = "Instant")]
    opened_at: Time,
    /// The hour of the day on the venue's clock at which it opened, 0 to 23.
    opened_hour: Option<u8>,
    /// When it was gone again; null while it is open, and where it opened once more since.
    #[schemars(with = "Option<Instant>")]
    closed_at: Option<Time>,
    /// Whether it is still open.
    open: bool,
    /// What became of it; one that opened once more since had been closed.
    state: SlotState,
}

/// Whom to follow and whom to leave out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Wishes {
    /// Venues by id.
    follow: Vec<String>,
    exclude: Vec<String>,
}

fn text(record: &StoredRecord, field: &str) -> String {
    record.body[field].as_str().unwrap_or_default().to_owned()
}

fn sizes(value: &serde_json::Value) -> Vec<u32> {
    let sizes = value["party_sizes"].as_array().into_iter().flatten();
    sizes.filter_map(|size| u32::try_from(size.as_u64()?).ok()).collect()
}

/// A venue by its id.
async fn find(app: &App, source: &str, venue: &str) -> Result<StoredRecord, Problem> {
    crate::sources::of_family(app, source, FAMILY)?;
    let mut filter = RecordFilter {
        source: source.to_owned(),
        kind: Some(format!("{FAMILY}_venues")),
        gone: true,
        limit: PAGE_MAX,
        ..RecordFilter::default()
    };
    let mut looked = 0;
    loop {
        let page = app.store.list_records(&filter).await?;
        filter.after = page.last().map(|listed| listed.row);
        looked += page.len();
        let last = page.len() < PAGE_MAX as usize || looked >= VENUES_MAX;
        let found =
            page.into_iter().map(|listed| listed.record).find(|record| text(record, "venue_id") == venue);
        match found {
            Some(record) => return Ok(record),
            None if last => break,
            None => {}
        }
    }
    Err(Problem::not_found(format!(
        "source {source:?} knows no venue {venue}: /v1/tables/{source}/venues lists them"
    )))
}

/// Which venues.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VenueQuery {
    /// Those that no search lists any more, too.
    gone: bool,
    /// Those after this place, from the `Link` header of an earlier part.
    after: Option<u64>,
    /// At most so many: a thousand unless given.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// The venues.
pub(crate) async fn list(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(source): Path<String>,
    Asked(query): Asked<VenueQuery>,
) -> Result<Listed<Record>, Problem> {
    crate::sources::of_family(&app, &source, FAMILY)?;
    let limit = page_size(query.limit.or(Some(PAGE_MAX)))?;
    let filter = RecordFilter {
        source,
        kind: Some(format!("{FAMILY}_venues")),
        gone: query.gone,
        after: query.after,
        limit,
        ..RecordFilter::default()
    };
    let found = app.store.list_records(&filter).await?;
    let full = found.len() == limit as usize;
    let cursor = found.last().filter(|_| full).map(|last| last.row.to_string());
    let venues = found.into_iter().map(|found| found.record.into()).collect();
    Ok(Listed::new(venues, &uri, "after", cursor))
}

/// One venue.
pub(crate) async fn one(
    State(app): State<App>,
    Path((source, venue)): Path<(String, String)>,
) -> Result<Reply<VenueView>, Problem> {
    let record = find(&app, &source, &venue).await?;
    let slots = slots(&app, &source, record.fingerprint).await?;
    let there = |drop: &Event| drop.data["venue_id"] == *venue;
    let stored = Stored::read(&app, &source, None, there).await?;
    let wishes = wishes(&app, &source)?;
    let has = |ids: &[String]| ids.contains(&venue);
    Ok(Reply(VenueView {
        followed: has(&wishes.follow),
        excluded: has(&wishes.exclude),
        venue: record.into(),
        slots,
        drops: drops(&stored, &venue),
    }))
}

/// The tables of a venue. Rows come in the order in which they were first seen, and the newest are wanted: all are
/// looked at.
async fn slots(app: &App, source: &str, venue: Fingerprint) -> Result<Vec<SlotLife>, Problem> {
    let mut filter = RecordFilter {
        source: source.to_owned(),
        kind: Some(format!("{FAMILY}_slots")),
        parent: Some(venue),
        gone: true,
        limit: PAGE_MAX,
        ..RecordFilter::default()
    };
    let mut slots: Vec<SlotLife> = Vec::new();
    for _ in 0..SLOT_PAGES_MAX {
        let page = app.store.list_records(&filter).await?;
        slots.extend(page.iter().map(|listed| slot_life(&listed.record)));
        filter.after = page.last().map(|listed| listed.row);
        if page.len() < PAGE_MAX as usize {
            break;
        }
    }
    slots.sort_by(|a, b| (b.gone.is_none(), &b.start).cmp(&(a.gone.is_none(), &a.start)));
    slots.truncate(SLOTS_MAX);
    slots.sort_by(|a, b| b.start.cmp(&a.start));
    Ok(slots)
}

fn slot_life(record: &StoredRecord) -> SlotLife {
    SlotLife {
        slot_id: record.fingerprint,
        start: text(record, "start"),
        party_sizes: sizes(&record.body),
        first_seen: record.first_seen,
        gone: record.gone,
        state: SlotState::of(record),
    }
}

/// The newest first. Of several drops of one slot only the newest can be open, or say when it closed.
fn drops(stored: &Stored, venue: &str) -> Vec<Drop> {
    let mut seen = std::collections::BTreeSet::new();
    let mut drops = Vec::new();
    for event in stored.drops.iter().rev().filter(|event| event.data["venue_id"] == venue) {
        let is_newest = seen.insert(event.subject);
        let slot = stored.slots.get(&event.subject).map(|slot| &slot.record).filter(|_| is_newest);
        drops.push(Drop {
            seq: event.seq,
            slot_id: event.subject,
            start: event.data["start"].as_str().unwrap_or_default().to_owned(),
            party_sizes: sizes(&event.data),
            opened_at: feed::opened_at(event),
            opened_hour: hour_there(&event.data, feed::opened_at(event)),
            closed_at: slot.and_then(|slot| slot.gone),
            open: slot.is_some_and(|slot| slot.gone.is_none()),
            state: slot.map_or(SlotState::Closed, SlotState::of),
        });
    }
    drops
}

/// The hour at `at` on the venue's clock, which is as far from ours as the table's own two times are from each other.
fn hour_there(drop: &serde_json::Value, at: Time) -> Option<u8> {
    let there = Time::parse(&format!("{}:00Z", drop["start"].as_str()?))?;
    let ahead = there - Time::parse(drop["starts_at"].as_str()?)?;
    let hours = (at + ahead).us().div_euclid(Span::hours(1).as_us());
    u8::try_from(hours.rem_euclid(24)).ok()
}

/// As the source goes by them now: the configuration file's, or what was set since.
fn wishes(app: &App, source: &str) -> Result<Wishes, Problem> {
    let known = crate::sources::find(app, source)?.known_settings();
    let ids = |name: &str| -> Vec<String> {
        let setting = known.iter().find(|setting| setting.name == name);
        let list =
            setting.and_then(|setting| setting.value.as_ref()?.as_array().cloned()).unwrap_or_default();
        list.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
    };
    Ok(Wishes { follow: ids("follow"), exclude: ids("exclude") })
}

/// Puts a venue on a list, or takes it off. The list is a live setting, so it acts at once and outlives a restart.
async fn wish(
    app: &App,
    source: &str,
    venue: &str,
    name: &str,
    wanted: bool,
) -> Result<Reply<Wishes>, Problem> {
    crate::sources::of_family(app, source, FAMILY)?;
    if wanted {
        find(app, source, venue).await?;
    }
    let _one_at_a_time = app.wishes.lock().await;
    let now = wishes(app, source)?;
    let mut list = if name == "follow" { now.follow } else { now.exclude };
    let known = list.iter().any(|id| id == venue);
    if known != wanted {
        list.retain(|id| id != venue);
        list.extend(wanted.then(|| venue.to_owned()));
        app.control.set_setting(&format!("source.{source}.{name}"), Some(list.into())).await?;
    }
    Ok(Reply(wishes(app, source)?))
}

type VenuePath = Path<(String, String)>;

/// Follows a venue.
pub(crate) async fn follow(
    State(app): State<App>,
    Path((source, venue)): VenuePath,
) -> Result<Reply<Wishes>, Problem> {
    wish(&app, &source, &venue, "follow", true).await
}

/// Follows it no longer.
pub(crate) async fn unfollow(
    State(app): State<App>,
    Path((source, venue)): VenuePath,
) -> Result<Reply<Wishes>, Problem> {
    wish(&app, &source, &venue, "follow", false).await
}

/// Tells nothing of a venue any more.
pub(crate) async fn exclude(
    State(app): State<App>,
    Path((source, venue)): VenuePath,
) -> Result<Reply<Wishes>, Problem> {
    wish(&app, &source, &venue, "exclude", true).await
}

/// Tells of it again.
pub(crate) async fn include(
    State(app): State<App>,
    Path((source, venue)): VenuePath,
) -> Result<Reply<Wishes>, Problem> {
    wish(&app, &source, &venue, "exclude", false).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hour_is_the_venues() {
        // New York in winter: five hours behind.
        let drop =
            serde_json::json!({ "start": "2026-02-28T20:30", "starts_at": "2026-03-01T01:30:00.000Z" });
        let hour = |at: &str| hour_there(&drop, Time::parse(at).expect("a time"));
        assert_eq!(hour("2026-02-27T16:59:59Z"), Some(11));
        assert_eq!(hour("2026-02-28T04:10:00Z"), Some(23), "the evening before");
        assert_eq!(hour_there(&serde_json::json!({}), Time(0)), None);
    }
}
