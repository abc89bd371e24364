//! What the feed is made of, as the store holds it: drops, their tables, and the buckets that have them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};
use stakeout_core::{Event, Fingerprint, Span, Time};
use stakeout_sources::tables::feed::{BucketHealth, Holding, SlotNow};
use stakeout_sources::tables::{DROP, FAMILY};
use stakeout_store::{EventFilter, StoredRecord, TargetFilter, TargetId, TargetRow};

use crate::app::App;
use crate::problem::Problem;

/// Drops are read in pages of this size, the newest first…
const DROPS_PAGE: u32 = 5_000;
/// …and at most so many for one answer: a city's for weeks.
const DROPS_MAX: usize = 100_000;
/// Buckets are read in pages of this size: all of them, however many are configured.
const BUCKETS_PAGE: u32 = 1_000;
/// A drop is stamped with the time of its page, so a later one in the log may be earlier by the length of a poll.
const POLL_AT_MOST: Span = Span::hours(1);
/// The role of the targets that search.
const BUCKET: &str = "bucket";

/// What the feed is made of.
pub(super) struct Stored {
    /// In sequence order.
    pub(super) drops: Vec<Event>,
    /// The tables of these drops.
    pub(super) slots: BTreeMap<Fingerprint, Slot>,
    pub(super) buckets: BTreeMap<String, BucketHealth>,
    /// The buckets' rows.
    pub(super) rows: BTreeMap<String, TargetId>,
}

/// A table as it is now.
pub(super) struct Slot {
    pub(super) record: StoredRecord,
    body: Map<String, Json>,
    /// The last whole scan of a bucket that still has it, once [`Stored::read_scans`] has looked.
    scanned: Option<Time>,
}

impl From<StoredRecord> for Slot {
    fn from(record: StoredRecord) -> Slot {
        let body = record.body.as_object().cloned().unwrap_or_default();
        Slot { record, body, scanned: None }
    }
}

impl Stored {
    /// The drops that are still open, as far back as `since`, and whichever others somebody wants to keep.
    pub(super) async fn read(
        app: &App,
        source: &str,
        since: Option<Time>,
        keep: impl Fn(&Event) -> bool,
    ) -> Result<Stored, Problem> {
        crate::sources::of_family(app, source, FAMILY)?;
        let (buckets, rows) = buckets_of(app, source).await?;
        let mut stored = Stored { drops: Vec::new(), slots: BTreeMap::new(), buckets, rows };
        stored.read_drops(app, source, since, keep).await?;
        Ok(stored)
    }

    /// Goes back through the log. Of several drops of one table only the newest can be open: it closed in between.
    async fn read_drops(
        &mut self,
        app: &App,
        source: &str,
        since: Option<Time>,
        keep: impl Fn(&Event) -> bool,
    ) -> Result<(), Problem> {
        let filter = EventFilter {
            source: Some(source.to_owned()),
            event_type: Some(DROP.to_owned()),
            ..EventFilter::default()
        };
        let mut met: BTreeSet<Fingerprint> = BTreeSet::new();
        let (mut before, mut looked_at) = (u64::MAX, 0);
        loop {
            let page = app.store.newest_events(before, &filter, DROPS_PAGE).await?;
            let Some(last) = page.last() else { break };
            before = last.seq;
            looked_at += page.len();
            let early = since.is_some_and(|since| last.at < since - POLL_AT_MOST);
            let over = early || page.len() < DROPS_PAGE as usize || looked_at >= DROPS_MAX;
            let new: BTreeSet<Fingerprint> =
                page.iter().map(|drop| drop.subject).filter(|slot| !met.contains(slot)).collect();
            let new: Vec<Fingerprint> = new.into_iter().collect();
            let records = app.store.records(source, &new).await?;
            let mut records: BTreeMap<Fingerprint, StoredRecord> =
                records.into_iter().map(|record| (record.fingerprint, record)).collect();
            for drop in page {
                let is_open = |record: &StoredRecord| record.gone.is_none();
                let newest = met.insert(drop.subject);
                if keep(&drop) || (newest && records.get(&drop.subject).is_some_and(is_open)) {
                    let slot = records.remove(&drop.subject).map(Slot::from);
                    self.slots.extend(slot.map(|slot| (drop.subject, slot)));
                    self.drops.push(drop);
                }
            }
            if over {
                break;
            }
        }
        self.drops.reverse();
        Ok(())
    }

    /// When each table was last seen to be there. Whoever told of it may have lost it, while another bucket has it.
    pub(super) async fn read_scans(&mut self, app: &App) -> Result<(), Problem> {
        let open = self.slots.values().filter(|slot| slot.record.gone.is_none());
        let dates: BTreeSet<String> =
            open.filter_map(|slot| slot.body.get("date")?.as_str().map(str::to_owned)).collect();
        for (bucket, health) in &self.buckets {
            let scan = health.last_scan.filter(|_| dates.contains(health.date()));
            let (Some(scan), Some(row)) = (scan, self.rows.get(bucket)) else { continue };
            for entry in app.store.snapshot(*row).await?.entries() {
                if let Some(slot) = self.slots.get_mut(&entry.fingerprint) {
                    slot.scanned = slot.scanned.max(Some(scan));
                }
            }
        }
        Ok(())
    }

    pub(super) fn with<T>(&self, show: impl FnOnce(&Holding<'_>) -> T) -> T {
        let mut slots: BTreeMap<Fingerprint, SlotNow<'_>> = BTreeMap::new();
        for (print, Slot { record, body, scanned }) in &self.slots {
            let (first_seen, gone) = (record.first_seen, record.gone);
            slots.insert(*print, SlotNow { body, first_seen, scanned: *scanned, gone });
        }
        show(&Holding { drops: &self.drops, slots: &slots, buckets: &self.buckets })
    }
}

type Buckets = (BTreeMap<String, BucketHealth>, BTreeMap<String, TargetId>);

/// The buckets of a source, how they are doing, and their rows.
pub(super) async fn buckets_of(app: &App, source: &str) -> Result<Buckets, Problem> {
    let mut filter = TargetFilter {
        source: Some(source.to_owned()),
        role: Some(BUCKET.to_owned()),
        limit: BUCKETS_PAGE,
        ..TargetFilter::default()
    };
    let now = app.now();
    let mut rows: Vec<TargetRow> = Vec::new();
    loop {
        let page = app.store.targets(&filter).await?;
        filter.after = page.last().map(|row| row.id);
        let last = page.len() < BUCKETS_PAGE as usize;
        rows.extend(page);
        if last {
            break;
        }
    }
    // A failed poll is no scan: the last one is the last complete look.
    let health = |row: &TargetRow| {
        let scanned = row.state.last_look();
        (row.spec.key.clone(), BucketHealth::at(now, &row.spec.key, scanned, row.poll_no))
    };
    let ids = rows.iter().map(|row| (row.spec.key.clone(), row.id)).collect();
    Ok((rows.iter().map(health).collect(), ids))
}
