//! `/v1/tables`: tables that just opened and those that are still open, the buckets they were seen in, the venues.

mod stored;
pub(crate) mod venues;

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{OriginalUri, State};
use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::{Event, Fingerprint, Span, Time};
use stakeout_sources::tables::FAMILY;
use stakeout_sources::tables::feed::{self, BucketHealth, Filter, JUST_OPENED};

use crate::app::App;
use crate::ask::{Asked, PAGE_MAX, Path, page_size};
use crate::problem::Problem;
use crate::reply::{Listed, Reply};
use crate::schema::{Instant, Print};

use self::stored::{Stored, buckets_of};

/// The longest time that a table counts as just opened.
const MINUTES_MAX: u32 = 100_000;

/// Which tables.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TableQuery {
    /// Only of this date: `2026-02-28`.
    date: Option<String>,
    /// Only those that a search for so many people has seen.
    party_size: Option<u32>,
    /// Not before this time of the day: `18:30`.
    from: Option<String>,
    /// Not after this time of the day: `21:00`.
    to: Option<String>,
    /// Only there, in any spelling of small and capital letters.
    neighborhood: Option<String>,
    /// Only these venues: ids, separated by commas.
    follow: Option<String>,
    /// None of these venues: ids, separated by commas.
    exclude: Option<String>,
    /// For `just-opened`: opened within so many minutes; 30 unless given.
    #[schemars(range(min = 1, max = MINUTES_MAX))]
    minutes: Option<u32>,
    /// Only what opened after this sequence number.
    after: Option<u64>,
    /// At most so many slots, the first by their sequence numbers; the `Link` header leads to the others.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

impl TableQuery {
    fn filter(&self) -> Result<Filter, Problem> {
        let ids = |text: &Option<String>| -> BTreeSet<String> {
            let words = text.iter().flat_map(|text| text.split(','));
            words.map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        Ok(Filter {
            date: parsed("date", &self.date, "a date such as 2026-02-28", feed::date)?,
            party_size: self.party_size,
            from: parsed("from", &self.from, "a time such as 18:30", feed::time_of_day)?,
            to: parsed("to", &self.to, "a time such as 21:00", feed::time_of_day)?,
            neighborhood: self.neighborhood.clone(),
            follow: ids(&self.follow),
            exclude: ids(&self.exclude),
            after: self.after,
            most: Some(page_size(self.limit.or(Some(PAGE_MAX)))? as usize),
        })
    }

    fn within(&self) -> Result<Span, Problem> {
        match self.minutes {
            Some(minutes @ 1..=MINUTES_MAX) => Ok(Span::mins(i64::from(minutes))),
            Some(found) => {
                Err(Problem::bad_input(format!("minutes: expected 1 to {MINUTES_MAX}, found {found}")))
            }
            None => Ok(JUST_OPENED),
        }
    }
}

/// A part of the query that has a form of its own.
fn parsed<T>(
    name: &str,
    given: &Option<String>,
    expected: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = given else { return Ok(None) };
    let refused = || Problem::bad_input(format!("{name}: expected {expected}, found {text:?}"));
    parse(text).map(Some).ok_or_else(refused)
}

/// The open tables of a date.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Day {
    date: String,
    /// By name.
    venues: Vec<Venue>,
    /// How fresh that is: the searches for this date, by id.
    buckets: Vec<Health>,
}

/// How a search is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    bucket_id: String,
    /// Its last scan.
    #[schemars(with = "Option<Instant>")]
    last_scan: Option<Time>,
    polls: u64,
    staleness_ms: Option<i64>,
    /// Not scanned for so long that it says nothing about now.
    stale: bool,
}

impl From<&BucketHealth> for Health {
    fn from(health: &BucketHealth) -> Health {
        Health {
            bucket_id: health.bucket_id.clone(),
            last_scan: health.last_scan,
            polls: health.polls,
            staleness_ms: health.staleness_ms,
            stale: health.stale,
        }
    }
}

/// The open tables of a venue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Venue {
    venue_id: String,
    venue_name: Option<String>,
    neighborhood: Option<String>,
    /// By time.
    slots: Vec<Slot>,
}

/// A table that opened and still is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Slot {
    #[schemars(with = "Print")]
    slot_id: Fingerprint,
    /// On the venue's clock.
    start: String,
    /// The party sizes that saw it.
    party_sizes: Vec<u32>,
    /// When its page was first read with it.
    #[schemars(with = "Instant")]
    opened_at: Time,
    /// When it was ever first seen.
    #[schemars(with = "Instant")]
    first_seen: Time,
    /// When it was last seen: the beginning of the last whole scan that had it, or its own page if that was read later.
    #[schemars(with = "Instant")]
    last_seen: Time,
    /// What the bucket had before.
    evidence: String,
    /// The bucket that saw it first.
    bucket_id: String,
    /// The event's sequence number.
    seq: u64,
}

/// A search, and what it found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Bucket {
    #[serde(flatten)]
    health: Health,
    /// Tables that are open by its last scan, whether they were told of or not, also those that another bucket shows.
    open_slots: u64,
    /// The venues that have them.
    venues_open: u64,
    /// Tables that opened within a day.
    drops_24h: u64,
    /// Of all that were told of: still open.
    drops_open: u64,
}

impl From<feed::Day> for Day {
    fn from(day: feed::Day) -> Day {
        let slot = |slot: feed::SlotOpen| Slot {
            slot_id: slot.slot_id,
            start: slot.start,
            party_sizes: slot.party_sizes,
            opened_at: slot.opened_at,
            first_seen: slot.first_seen,
            last_seen: slot.last_seen,
            evidence: slot.evidence,
            bucket_id: slot.bucket_id,
            seq: slot.seq,
        };
        let venue = |venue: feed::VenueOpen| Venue {
            venue_id: venue.venue_id,
            venue_name: venue.venue_name,
            neighborhood: venue.neighborhood,
            slots: venue.slots.into_iter().map(slot).collect(),
        };
        Day {
            date: day.date,
            venues: day.venues.into_iter().map(venue).collect(),
            buckets: day.buckets.iter().map(Health::from).collect(),
        }
    }
}

/// What the feed shows, with the way to what comes after it.
fn listed(shown: feed::Shown, uri: &Uri) -> Listed<Day> {
    let days = shown.days.into_iter().map(Day::from).collect();
    Listed::new(days, uri, "after", shown.next.map(|seq| seq.to_string()))
}

/// Tables that opened a moment ago and still are open.
pub(crate) async fn just_opened(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(source): Path<String>,
    Asked(query): Asked<TableQuery>,
) -> Result<Listed<Day>, Problem> {
    let (within, filter) = (query.within()?, query.filter()?);
    let mut stored = Stored::read(&app, &source, Some(app.now() - within), |_| false).await?;
    stored.read_scans(&app).await?;
    let shown = stored.with(|holding| feed::just_opened(holding, app.now(), within, &filter));
    Ok(listed(shown, &uri))
}

/// All tables that were told of and still are open, of the newest 100,000 drops.
pub(crate) async fn still_open(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(source): Path<String>,
    Asked(query): Asked<TableQuery>,
) -> Result<Listed<Day>, Problem> {
    let filter = query.filter()?;
    let mut stored = Stored::read(&app, &source, None, |_| false).await?;
    stored.read_scans(&app).await?;
    let shown = stored.with(|holding| feed::still_open(holding, &filter));
    Ok(listed(shown, &uri))
}

/// What is open in a bucket, and what opened.
#[derive(Default)]
struct Count {
    open: u64,
    venues: u64,
    drops: u64,
    drops_open: u64,
}

/// The searches, and how they are doing.
pub(crate) async fn buckets(
    State(app): State<App>,
    Path(source): Path<String>,
) -> Result<Reply<Vec<Bucket>>, Problem> {
    let day = app.now() - Span::hours(24);
    let of_today = |drop: &Event| feed::opened_at(drop) >= day;
    let stored = Stored::read(&app, &source, None, of_today).await?;
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for (bucket, row) in &stored.rows {
        // What a bucket holds is what its last scan showed, whichever of two had news of it last.
        let held = app.store.snapshot(*row).await?;
        let slots = held.entries().iter().filter(|entry| entry.group != Fingerprint::default());
        let venues: BTreeSet<Fingerprint> = slots.clone().map(|entry| entry.group).collect();
        let count = counts.entry(bucket).or_default();
        (count.open, count.venues) = (slots.count() as u64, venues.len() as u64);
    }
    for drop in stored.drops.iter().filter(|drop| of_today(drop)) {
        counts.entry(&drop.target).or_default().drops += 1;
    }
    let still = stored.with(|holding| feed::still_open(holding, &Filter::default()));
    let still: Vec<String> = still
        .days
        .into_iter()
        .flat_map(|day| day.venues.into_iter().flat_map(|venue| venue.slots))
        .map(|slot| slot.bucket_id)
        .collect();
    for bucket in &still {
        counts.entry(bucket).or_default().drops_open += 1;
    }
    let bucket = |health: &BucketHealth| {
        let count = counts.get(health.bucket_id.as_str());
        let counted = |n: fn(&Count) -> u64| count.map_or(0, n);
        Bucket {
            health: health.into(),
            open_slots: counted(|count| count.open),
            venues_open: counted(|count| count.venues),
            drops_24h: counted(|count| count.drops),
            drops_open: counted(|count| count.drops_open),
        }
    };
    Ok(Reply(stored.buckets.values().map(bucket).collect()))
}

/// What a wish for new baselines came to.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rebaselined {
    /// How many buckets begin anew with their next complete answer.
    buckets: usize,
}

/// Takes the next complete answer of every bucket as it is, without telling anybody.
pub(crate) async fn rebaseline(
    State(app): State<App>,
    Path(source): Path<String>,
) -> Result<Reply<Rebaselined>, Problem> {
    crate::sources::of_family(&app, &source, FAMILY)?;
    let (_, buckets) = buckets_of(&app, &source).await?;
    for bucket in buckets.keys() {
        app.control.rebaseline(&source, bucket).await?;
    }
    Ok(Reply(Rebaselined { buckets: buckets.len() }))
}
