//! Races as they were seen: their starts, and their runners look by look.

mod runner;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use stakeout_core::adherence::Run;
use stakeout_core::alert::{Alerts, Occasion, Went};
use stakeout_core::{Facts, FieldChange, Fingerprint, Record, Span, Stage, TargetSpec, Time};
use stakeout_sources::racing::{FAMILY as RACING, STATUS_HISTORY, Status};
use stakeout_store::{
    EventFilter, HistoryRow, HistoryWindow, PollOutcome, RecordFilter, Store, StoreError, StoredRecord,
};

use self::runner::{Runner, record};
use super::super::looks::{Known, Look, looks, looks_of_runs};
use super::super::replay::{Happening, Row};
use super::{BEFORE_START, Gathering, PAGE, plain};

/// The most races.
const MOST_RACES: usize = 500;
/// The most rows of one stream of a runner.
const MOST_ROWS: u32 = 5_000;
/// A race is over so long after its start at the latest.
const AFTER_START: Span = Span::hours(2);
/// The role of a race's target, and how its key begins.
const RACE: &str = "race";

/// The price whose moves the upstream stamps itself.
const STAMPED: &str = "win_odds";

/// When things happened to races or runners of a source, by their records.
pub(super) type Turns = BTreeMap<Fingerprint, Time>;

impl Gathering<'_> {
    /// The races that may have something to do with this time.
    async fn races_of(&mut self, source: &str) -> Result<Vec<StoredRecord>, StoreError> {
        let mut filter = RecordFilter {
            source: source.to_owned(),
            kind: Some(format!("{RACING}_races")),
            gone: true,
            limit: PAGE,
            ..RecordFilter::default()
        };
        let mut found: Vec<StoredRecord> = Vec::new();
        loop {
            let page = self.store.list_records(&filter).await?;
            filter.after = page.last().map(|listed| listed.row);
            let whole = page.len() as u32 == PAGE;
            found.extend(page.into_iter().map(|listed| listed.record).filter(|race| {
                start_of(&race.body).is_some_and(|start| {
                    start >= self.from - AFTER_START && start <= self.until + BEFORE_START
                })
            }));
            if !whole {
                break;
            }
        }
        found.sort_by_key(|race| start_of(&race.body));
        self.past.cut |= found.len() > MOST_RACES;
        // The latest ones matter most.
        Ok(found.split_off(found.len().saturating_sub(MOST_RACES)))
    }

    pub(super) async fn starts(&mut self, before: Span) -> Result<(), StoreError> {
        for source in self.sources() {
            for race in self.races_of(&source).await? {
                let window = (Time(0), self.until);
                let rows = stream(self.store, &source, race.fingerprint, STATUS_HISTORY, window).await?;
                self.bells(&source, &race, &rows, before);
            }
        }
        Ok(())
    }

    fn bells(&mut self, source: &str, race: &StoredRecord, rows: &[HistoryRow], before: Span) {
        for (n, HistoryRow { at: from, values, .. }) in rows.iter().enumerate() {
            let Some(start) = start_of(values) else { continue };
            let ends = rows.get(n + 1).map_or(self.until, |row| row.at);
            let moment = (*from).max(start - before);
            let is_open = matches!(values["status"].as_str(), None | Some("Open" | "Closed"));
            let bells = std::iter::once(moment).chain(self.rule.bells(start, moment));
            let within = |bell: &Time| is_open && *bell >= self.from && *bell < ends.min(self.until);
            for bell in bells.filter(within) {
                let facts = Facts { start: Some(start), stage: Stage::Pending, ..Facts::default() };
                self.past.happenings.push(Happening {
                    target: Some(TargetSpec::new(format!("{RACE}/{}", race.key), RACE)),
                    facts,
                    records: vec![record("races", race, race.body.as_object().cloned().unwrap_or_default())],
                    ..plain(source.to_owned(), bell)
                });
            }
        }
    }

    /// What was seen of a stream of all runners, with so much of the time before.
    pub(super) async fn races(&mut self, name: &str, lookback: Span) -> Result<(), StoreError> {
        for source in self.sources() {
            let races = self.races_of(&source).await?;
            let started = self.starts_told(&source).await?;
            let scratched = self.turns(&source, "racing.runner.scratched").await?;
            let mut gone = None;
            for race in races {
                let life = self.life(&source, &race, &started).await?;
                let looks = self.looks_at(&source, &race, &life, &mut gone).await?;
                let runners = self.runners(&source, &race, (name, lookback), &looks, &scratched).await?;
                self.see(&source, &race, &life, &looks, runners);
            }
        }
        Ok(())
    }

    /// When races were seen to have started.
    pub(super) async fn starts_told(&mut self, source: &str) -> Result<Turns, StoreError> {
        self.turns(source, "racing.race.started").await
    }

    /// When each of these was told for the last time.
    async fn turns(&mut self, source: &str, event_type: &str) -> Result<Turns, StoreError> {
        let (source, event_type) = (Some(source.to_owned()), Some(event_type.to_owned()));
        let told = self.log(EventFilter { source, event_type, ..EventFilter::default() }).await?;
        Ok(told.into_iter().rev().map(|event| (event.subject, event.at)).collect())
    }

    async fn life(&self, source: &str, race: &StoredRecord, started: &Turns) -> Result<Life, StoreError> {
        let window = (Time(0), self.until);
        let rows = stream(self.store, source, race.fingerprint, STATUS_HISTORY, window).await?;
        let actual = || race.body["actual_start"].as_str().and_then(Time::parse);
        let started = started.get(&race.fingerprint).copied().or_else(actual);
        Ok(Life { rows, started, start: start_of(&race.body) })
    }

    /// The life of the race that a target stands for; `None` for any other target.
    pub(super) async fn life_of(
        &self,
        source: &str,
        target: &str,
        started: &Turns,
    ) -> Result<Option<Life>, StoreError> {
        let Some(key) = target.strip_prefix(RACE).and_then(|rest| rest.strip_prefix('/')) else {
            return Ok(None);
        };
        let race = Fingerprint::of(&format!("{RACING}_races"), &[key]);
        let Some(race) = self.store.records(source, &[race]).await?.pop() else { return Ok(None) };
        self.life(source, &race, started).await.map(Some)
    }

    /// When a race was looked at. `gone` has the stretches of all targets of the source, once somebody needs them.
    async fn looks_at(
        &self,
        source: &str,
        race: &StoredRecord,
        life: &Life,
        gone: &mut Option<BTreeMap<String, Vec<Run>>>,
    ) -> Result<Vec<Look>, StoreError> {
        let key = format!("{RACE}/{}", race.key);
        let row = self.store.target(source, &key).await?;
        let spec = row.as_ref().map_or_else(|| TargetSpec::new(&key, RACE), |row| row.spec.clone());
        let facts: &(dyn Fn(Time) -> Facts + Sync) = &|at| life.facts(at);
        let rhythm = self.source(source).map(|source| self.rhythm(source, &spec, facts));
        if let Some(row) = row {
            return looks(self.store, &row, rhythm.as_ref(), self.from).await;
        }
        if gone.is_none() {
            *gone = Some(self.stretches(source).await?);
        }
        let runs = gone.as_ref().and_then(|gone| gone.get(&key)).map_or(&[][..], Vec::as_slice);
        Ok(looks_of_runs(runs, rhythm.as_ref(), self.from))
    }

    async fn stretches(&self, source: &str) -> Result<BTreeMap<String, Vec<Run>>, StoreError> {
        let mut stretches: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.store.source_runs(source, self.from, self.until, after, PAGE).await?;
            after = page.last().map(|found| found.row);
            let whole = page.len() as u32 == PAGE;
            page.into_iter().for_each(|found| stretches.entry(found.key).or_default().push(found.run));
            if !whole {
                return Ok(stretches);
            }
        }
    }

    async fn runners(
        &mut self,
        source: &str,
        race: &StoredRecord,
        (name, lookback): (&str, Span),
        looks: &[Look],
        scratched: &Turns,
    ) -> Result<Vec<Runner>, StoreError> {
        let filter = RecordFilter {
            source: source.to_owned(),
            kind: Some(format!("{RACING}_entrants")),
            parent: Some(race.fingerprint),
            gone: true,
            limit: PAGE,
            ..RecordFilter::default()
        };
        let refresh = self.source(source).map_or(Span::ZERO, |source| source.limits().refresh);
        let brought = Brought::by(looks, refresh);
        let mut runners = Vec::new();
        for runner in self.store.list_records(&filter).await? {
            let runner = runner.record;
            let window = (self.from - lookback, self.until);
            let rows = stream(self.store, source, runner.fingerprint, name, window).await?;
            let (rows, unsure) = brought.rows(rows);
            self.past.unsure |= unsure;
            self.past.rows.insert((runner.fingerprint, name.to_owned()), rows.clone());
            let scratched = scratched.get(&runner.fingerprint).copied();
            runners.push(Runner::new(runner, rows, scratched));
        }
        Ok(runners)
    }

    /// A race as it was seen, moment by moment.
    fn see(
        &mut self,
        source: &str,
        race: &StoredRecord,
        life: &Life,
        looks: &[Look],
        mut runners: Vec<Runner>,
    ) {
        let target = TargetSpec::new(format!("{RACE}/{}", race.key), RACE);
        let by_end: BTreeMap<Time, &Look> = looks.iter().map(|look| (look.ended, look)).collect();
        let rows = runners.iter().flat_map(|runner| runner.moments());
        let moments: BTreeSet<Time> = rows.chain(by_end.keys().copied()).collect();
        let mut looked = None;
        for at in moments {
            let look = by_end.get(&at).copied();
            let moved: Vec<Vec<FieldChange>> = runners.iter_mut().map(|runner| runner.advance(at)).collect();
            let before = looked;
            looked = look.filter(|look| look.is_complete()).map(|look| look.sent).or(looked);
            if at < self.from || at >= self.until {
                continue;
            }
            // A baseline is taken as it is: nothing of it has moved.
            let tells = look.is_none_or(|look| look.outcome != PollOutcome::Baseline);
            let failures = u32::from(look.is_some_and(|look| look.outcome == PollOutcome::Failed));
            let seen = Happening {
                target: Some(target.clone()),
                looked: before.filter(|_| look.is_some()),
                facts: life.facts(at),
                went: Went { failures, ..Went::default() },
                ..plain(source.to_owned(), at)
            };
            let has_moved = tells && moved.iter().any(|fields| !fields.is_empty());
            if !has_moved && !self.book.wants_records(&bare(&seen)) {
                continue;
            }
            self.past.guessed |= look.is_some_and(|look| look.known == Known::Guessed);
            let known =
                runners.iter().zip(moved).filter_map(|(runner, moved)| Some((runner.seen(at)?, moved)));
            let (records, moved): (Vec<Record>, Vec<Vec<FieldChange>>) = known.unzip();
            let moved = moved.into_iter().enumerate().filter(|(_, fields)| tells && !fields.is_empty());
            let moved = moved.collect();
            self.past.happenings.push(Happening { records, moved, ..seen });
        }
    }
}

/// A look at which nothing was new, before anybody has asked for what is held.
fn bare(seen: &Happening) -> Occasion<'_> {
    Occasion {
        source: &seen.source,
        target: seen.target.as_ref(),
        at: seen.at,
        looked: seen.looked,
        facts: Some((&seen.facts, &seen.facts)),
        records: &[],
        changes: &[],
        told: &[],
        went: seen.went,
    }
}

/// What a race went through.
pub(super) struct Life {
    /// Its status and its start.
    rows: Vec<HistoryRow>,
    /// When somebody saw that it had started.
    started: Option<Time>,
    /// When it is to start, as it is known now.
    start: Option<Time>,
}

impl Life {
    /// What was known of it at a moment.
    pub(super) fn facts(&self, at: Time) -> Facts {
        let known = &self.rows[..self.rows.partition_point(|row| row.at <= at)];
        let start = known.iter().rev().find_map(|row| start_of(&row.values)).or(self.start);
        let has_started = self.started.is_some_and(|started| started <= at);
        let word = known.last().and_then(|row| row.values["status"].as_str()).unwrap_or_default();
        let stage = match Status::parse(word) {
            Some(Status::Closed) if has_started => Stage::Started,
            None | Some(Status::Open | Status::Closed) => Stage::Pending,
            Some(Status::Interim) => Stage::Started,
            Some(Status::Final | Status::Abandoned) => Stage::Over,
        };
        Facts { start, stage, ..Facts::default() }
    }
}

/// Which looks brought the rows of history. What the upstream stamps itself was seen by a look after that; by which one is
/// not kept, but the rows that are stamped by the looks themselves say what was not there yet.
struct Brought {
    /// When those ended that brought anything.
    looks: Vec<Time>,
    /// What is older may have been brought by a look that nobody knows any more.
    since: Time,
    /// The upstream serves what happened so much later at most.
    refresh: Span,
}

impl Brought {
    fn by(looks: &[Look], refresh: Span) -> Brought {
        let brings = |look: &&Look| {
            let new = [PollOutcome::Changed, PollOutcome::Baseline, PollOutcome::Partial];
            look.known == Known::Logged && new.contains(&look.outcome)
        };
        let logged: Vec<Time> = looks.iter().filter(brings).map(|look| look.ended).collect();
        if logged.is_empty() {
            // Of a target that is gone there is no log: any of its looks may have.
            let since = looks.first().map_or(Time(i64::MAX), |look| look.sent);
            return Brought { looks: looks.iter().map(|look| look.ended).collect(), since, refresh };
        }
        let first_logged = looks.iter().position(|look| look.known == Known::Logged).unwrap_or_default();
        let since = if first_logged == 0 { Time(i64::MIN) } else { looks[first_logged].sent };
        Brought { looks: logged, since, refresh }
    }

    /// When each of a stream's rows was seen, and whether some may have been seen one look later.
    fn rows(&self, history: Vec<HistoryRow>) -> (Vec<Row>, bool) {
        let stamped_here = history.iter().filter(|row| !row.upstream).map(|row| (row.at, row.values.clone()));
        let shown: BTreeMap<Time, Json> = stamped_here.collect();
        let mut unsure = false;
        let mut rows = Vec::with_capacity(history.len());
        for HistoryRow { at, values, upstream, .. } in history {
            let seen = if upstream { self.seen(at, &values, &shown, &mut unsure) } else { at };
            rows.push(Row { seen, at, values });
        }
        (rows, unsure)
    }

    fn seen(&self, at: Time, values: &Json, shown: &BTreeMap<Time, Json>, unsure: &mut bool) -> Time {
        let after = self.looks.partition_point(|ended| *ended < at);
        for look in self.looks[after..].iter().filter(|_| at >= self.since) {
            let there = shown.get(look).map(|shown| shown[STAMPED] == values[STAMPED]);
            if *look - at >= self.refresh || there == Some(true) {
                return *look;
            }
            if there.is_none() {
                *unsure = true;
                return *look;
            }
        }
        at
    }
}

fn start_of(body: &Json) -> Option<Time> {
    body["start_time"].as_str().and_then(Time::parse)
}

/// A stream within a time, with what held at its beginning.
async fn stream(
    store: &dyn Store,
    source: &str,
    record: Fingerprint,
    name: &str,
    (from, to): (Time, Time),
) -> Result<Vec<HistoryRow>, StoreError> {
    let held = store.history_at(source, record, from).await?;
    let window = HistoryWindow { source: source.to_owned(), record, stream: Some(name.to_owned()), from, to };
    let rows = store.history_between(&window, MOST_ROWS).await?;
    let held = held.into_iter().filter(|row| row.stream == name && row.at < from);
    Ok(held.chain(rows).collect())
}
