//! What is to be told of one race by whoever sees it at these moments.

use stakeout_core::{Stage, Time};
use stakeout_sim::nztab::{EntrantTruth, RaceTruth, Status, held, held_since};
use stakeout_sources::racing::RacingEventsConfig;

use super::{Expected, Look};

/// Everything that is to be told; the moves of prices and money only with their thresholds.
pub(super) fn tells(race: &RaceTruth, looks: &[Look], moves: Option<&RacingEventsConfig>) -> Vec<Expected> {
    let mut watcher = Watcher::new(race, moves);
    for look in looks {
        watcher.look(look);
    }
    watcher.expected
}

/// Where a race is in its life, for whoever knew it as `before`: Closed proves a start only with an actual start that is not
/// in the future.
pub(super) fn stage(race: &RaceTruth, at: Time, before: Stage) -> Stage {
    match race.status_at(at) {
        Status::Open => Stage::Pending,
        Status::Closed if race.actual_start_at(at).is_some_and(|start| start <= at) => Stage::Started,
        Status::Closed if before == Stage::Pending => Stage::Pending,
        Status::Closed | Status::Interim => Stage::Started,
        Status::Final | Status::Abandoned => Stage::Over,
    }
}

/// What somebody knows who has looked at a race.
struct Watcher<'a> {
    race: &'a RaceTruth,
    moves: Option<&'a RacingEventsConfig>,
    expected: Vec<Expected>,
    status: Option<Status>,
    start: Option<Time>,
    /// Whether it has started, as far as anybody said so either way.
    started: Option<bool>,
    stage: Stage,
    favourite: Option<usize>,
    /// By the runners' indices; empty before they were first seen.
    runners: Vec<Known>,
}

/// What is known of a runner.
#[derive(Clone, Copy, Default)]
struct Known {
    scratched: bool,
    /// Dollars.
    price: Option<f64>,
    /// Percent of the money held.
    hold: Option<f64>,
}

impl<'a> Watcher<'a> {
    fn new(race: &'a RaceTruth, moves: Option<&'a RacingEventsConfig>) -> Watcher<'a> {
        Watcher {
            race,
            moves,
            expected: Vec::new(),
            status: None,
            start: None,
            started: None,
            stage: Stage::Pending,
            favourite: None,
            runners: Vec::new(),
        }
    }

    /// Notes what came to be at `since` and is seen at `at`.
    fn tell(&mut self, at: Time, subject: &str, event: &str, since: Time) {
        let since = self.race.seen_from(since).min(at);
        let (subject, event_type) = (subject.to_owned(), format!("racing.{event}"));
        self.expected.push(Expected { at, subject, event_type, since });
    }

    fn look(&mut self, look: &Look) {
        let (race, at) = (self.race, look.at);
        let served = race.served_at(at);
        let (status, start) = (race.status_at(at), race.start_at(at));
        let since = held_since(&race.statuses, served).unwrap_or(at);
        let known = self.status.is_some();
        if let Some(event) = self.status.and_then(|before| status_event(before, status)) {
            self.tell(at, &race.id, event, since);
        }
        if self.start.is_some_and(|before| before != start) {
            self.tell(at, &race.id, "race.retimed", held_since(&race.starts, served).unwrap_or(at));
        }
        (self.status, self.start) = (Some(status), Some(start));
        if look.event {
            self.stage = stage(race, at, self.stage);
        }
        let started = match status {
            Status::Interim | Status::Final => Some(true),
            // The listing knows no actual start, and an abandoned race may or may not have jumped.
            _ if !look.event => None,
            Status::Open => Some(false),
            Status::Closed => Some(self.stage == Stage::Started),
            Status::Abandoned => None,
        };
        if started == Some(true) && self.started != started && known {
            let shown = race.actual_start_told.filter(|told| *told <= served).or(race.actual_start_at(at));
            let since = if status == Status::Closed { since.max(shown.unwrap_or(since)) } else { since };
            self.tell(at, &race.id, "race.started", since);
        }
        self.started = started.or(self.started);
        if look.event {
            self.see_runners(at, served);
        }
    }

    fn see_runners(&mut self, at: Time, served: Time) {
        let race = self.race;
        let before = std::mem::take(&mut self.runners);
        let mut now = Vec::with_capacity(race.entrants.len());
        for (index, entrant) in race.entrants.iter().enumerate() {
            let known = before.get(index).copied();
            let seen = Known::of(entrant, served, known.unwrap_or_default());
            if let Some(known) = known {
                self.tell_runner(entrant, known, seen, at, served);
            }
            now.push(seen);
        }
        self.runners = now;
        self.tell_favourite(at, served);
    }

    fn tell_runner(&mut self, entrant: &EntrantTruth, known: Known, seen: Known, at: Time, served: Time) {
        if let Some(scratching) = entrant.scratched.filter(|_| seen.scratched) {
            if !known.scratched {
                self.tell(at, &entrant.id, "runner.scratched", scratching.at);
            }
            return;
        }
        let Some(moves) = self.moves else { return };
        if known.price.zip(seen.price).is_some_and(|(old, new)| {
            new != old && (new - old).abs() / old.abs() * 100.0 >= moves.odds_moved_percent
        }) {
            self.tell(at, &entrant.id, "odds.moved", held_since(&entrant.odds, served).unwrap_or(at));
        }
        if known
            .hold
            .zip(seen.hold)
            .is_some_and(|(old, new)| new != old && (new - old).abs() >= moves.money_moved_points)
        {
            self.tell(at, &entrant.id, "money.moved", held_since(&entrant.money, served).unwrap_or(at));
        }
    }

    /// The lowest price of those that run; of equals the favourite so far, then the lowest number. After the start the
    /// prices are history.
    fn tell_favourite(&mut self, at: Time, served: Time) {
        let race = self.race;
        let runs = self.runners.iter().enumerate().filter(|(_, known)| !known.scratched);
        let priced = runs.filter_map(|(index, known)| Some((index, known.price?)));
        let rank = |index: usize| (self.favourite != Some(index), race.entrants[index].number);
        let lowest = priced.min_by(|a, b| a.1.total_cmp(&b.1).then(rank(a.0).cmp(&rank(b.0))));
        let Some((now, _)) = lowest else { return };
        let before = self.favourite.replace(now);
        if let Some(before) = before.filter(|before| *before != now && self.stage == Stage::Pending) {
            let moved = |index: usize| held_since(&race.entrants[index].odds, served);
            let scratched = race.entrants[before].scratched.map(|s| s.at).filter(|at| *at <= served);
            let since = moved(now).max(moved(before)).max(scratched).unwrap_or(at);
            self.tell(at, &race.id, "favourite.changed", since);
        }
    }
}

impl Known {
    /// What is served of a runner; what is not served says nothing.
    fn of(entrant: &EntrantTruth, served: Time, before: Known) -> Known {
        let scratched = entrant.scratched.is_some_and(|s| s.at <= served);
        let price = held(&entrant.odds, served).map(|odds| f64::from(odds.fixed_win) / 100.0);
        Known {
            scratched,
            price: price.filter(|_| !scratched).or(before.price),
            hold: held(&entrant.money, served).map(|share| f64::from(share.hold)).or(before.hold),
        }
    }
}

fn status_event(before: Status, now: Status) -> Option<&'static str> {
    match now {
        _ if before == now => None,
        Status::Closed => Some("race.closed"),
        Status::Interim => Some("race.interim"),
        Status::Final => Some("race.final"),
        Status::Abandoned => Some("race.abandoned"),
        Status::Open => Some("race.reopened"),
    }
}
