//! What there is to show: the races that are closest, what was just told, and whether anything was missed.

use std::sync::Arc;

use stakeout_core::{Event, Fingerprint, Time};
use stakeout_engine::Clock;
use stakeout_store::{EventFilter, Result, Store, TargetFilter, TargetRow};

use super::drones::Drones;
use super::tables::Tables;
use super::{DRONES, HORSES};

/// Targets looked at for a picture.
const TARGETS: u32 = 2_000;
/// Events read for a picture.
const EVENTS: u32 = 1_000;

/// One race on the board.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Race {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) start: Option<Time>,
    pub(super) phase: String,
    pub(super) due: Option<Time>,
    pub(super) polls: u64,
}

/// Everything a picture is drawn from.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) now: Time,
    /// The races that are being polled, by start, and those that are over, the newest first.
    pub(super) races: Vec<Race>,
    pub(super) waiting: usize,
    pub(super) over: usize,
    /// What was told since the last picture.
    pub(super) news: Vec<Event>,
    pub(super) polls: u64,
    pub(super) late: u64,
    pub(super) missed: u64,
    pub(super) events: u64,
    pub(super) history: u64,
    /// The drone racing event, once it is known.
    pub(super) drones: Option<Drones>,
    /// The restaurants.
    pub(super) tables: Tables,
}

pub(super) struct Feed {
    store: Arc<dyn Store>,
    clock: Clock,
    seen: u64,
    tables: Tables,
}

impl Feed {
    pub(super) fn new(store: Arc<dyn Store>, clock: Clock) -> Feed {
        Feed { store, clock, seen: 0, tables: Tables::default() }
    }

    pub(super) async fn look(&mut self) -> Result<Picture> {
        let now = self.clock.now();
        let news = self.store.events(self.seen, &EventFilter::default(), EVENTS).await?;
        self.seen = news.last().map_or(self.seen, |event| event.seq);
        let filter = TargetFilter { limit: TARGETS, ..TargetFilter::default() };
        let rows = self.store.targets(&filter).await?;
        self.tables.look(&rows, &news);
        let stats = self.store.stats().await?;
        let runs = || rows.iter().filter_map(|row| row.state.run.as_ref());
        let races: Vec<&TargetRow> =
            rows.iter().filter(|row| row.source == HORSES && row.spec.role == "race").collect();
        let waiting = races.iter().filter(|row| row.poll_no == 0).count();
        let over = races.iter().filter(|row| row.schedule.due.is_none() && row.poll_no > 0).count();
        Ok(Picture {
            now,
            races: self.board(races).await?,
            waiting,
            over,
            news,
            polls: rows.iter().map(|row| row.poll_no).sum(),
            late: runs().map(|run| run.late).sum(),
            missed: runs().map(|run| run.missed).sum(),
            events: stats.events,
            history: stats.history,
            drones: Drones::look(&*self.store, DRONES, now).await?,
            tables: self.tables.clone(),
        })
    }

    /// Races that are polled first, by start; then those that are over, the latest first.
    async fn board(&self, mut rows: Vec<&TargetRow>) -> Result<Vec<Race>> {
        rows.retain(|row| row.poll_no > 0);
        let start = |row: &TargetRow| row.state.facts.start.or(row.spec.start);
        rows.sort_by_key(|row| match (row.schedule.due.is_some(), start(row)) {
            (true, start) => (0, start.map_or(i64::MAX, Time::us)),
            (false, start) => (1, -start.map_or(0, Time::us)),
        });
        rows.truncate(super::screen::ROWS);
        let mut races = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.spec.params["event_id"].as_str().unwrap_or_default();
            let print = Fingerprint::of("racing_races", &[id]);
            let record = self.store.records(&row.source, &[print]).await?.pop();
            let text =
                |field: &str| record.as_ref().and_then(|r| r.body[field].as_str()).unwrap_or("").to_owned();
            races.push(Race {
                name: text("name"),
                status: text("status"),
                start: start(row),
                phase: row.schedule.phase.clone(),
                due: row.schedule.due,
                polls: row.poll_no,
            });
        }
        Ok(races)
    }
}
