//! What a perfect watcher that looked at the same moments would have told about a simulated racing day, and whether
//! those were the moments to look at.
//!
//! The oracle sees the simulator's truth at every moment the engine got an answer, and nothing else: what it expects
//! and the engine did not tell is a miss of ours, what the engine told and it does not expect is invented. What no
//! poll could see is neither; but a poll that the schedule asks for and that never came is a miss, too.

mod schedule;
mod watcher;

use std::collections::BTreeMap;

use stakeout_core::{Event, Source, Span, Time};
use stakeout_sim::nztab::{Day, RaceTruth};
use stakeout_sources::racing::RacingConfig;

use super::nztab::Asked;

/// One thing that should be told: the event's type, what it is about, and when it was first to be seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expected {
    pub(super) at: Time,
    pub(super) subject: String,
    pub(super) event_type: String,
    /// From when it was served.
    pub(super) since: Time,
}

/// What was told against what should have been.
pub(super) struct Verdict {
    pub(super) expected: usize,
    pub(super) missed: Vec<Expected>,
    /// Type and subject of events that nothing called for.
    pub(super) wrong: Vec<(String, String, Time)>,
    /// Polls that were due and never came, and polls of races that were over, in words.
    pub(super) lapses: Vec<String>,
    /// From when something was served to its event.
    pub(super) delays: Vec<Span>,
}

/// A day as it was watched.
pub(super) struct Watched<'a> {
    pub(super) days: &'a [Day],
    pub(super) asked: &'a [Asked],
    pub(super) events: &'a [Event],
    pub(super) config: &'a RacingConfig,
    /// Whose schedule the polls are compared with; none where requests fail and are put off.
    pub(super) source: Option<&'a dyn Source>,
    /// When the watch ended.
    pub(super) until: Time,
}

/// The types that the oracle judges always.
const JUDGED: [&str; 9] = [
    "racing.race.closed",
    "racing.race.interim",
    "racing.race.final",
    "racing.race.abandoned",
    "racing.race.reopened",
    "racing.race.retimed",
    "racing.race.started",
    "racing.runner.scratched",
    "racing.favourite.changed",
];
/// And those that a quiet time would suppress.
const MOVES: [&str; 2] = ["racing.odds.moved", "racing.money.moved"];

/// A look at one race at one moment.
struct Look {
    at: Time,
    /// Whether its runners were seen, too.
    event: bool,
}

/// The pages of one listing may be some moments apart; its events carry the last one's time.
const ONE_POLL: Span = Span::secs(2);

pub(super) fn judge(watched: &Watched<'_>) -> Verdict {
    let asked = Index::new(watched.asked);
    let moves = Some(&watched.config.events).filter(|events| events.quiet.is_none());
    let mut expected: Vec<Expected> = Vec::new();
    let mut lapses = Vec::new();
    for day in watched.days {
        for race in day.truth() {
            let looks = asked.looks_at(&race, &day.date().to_string());
            expected.extend(watcher::tells(&race, &looks, moves));
            if let Some(source) = watched.source.filter(|_| schedule::is_watched(&race, watched.config)) {
                lapses.extend(schedule::lapses(source, &race, &looks, watched.until));
            }
        }
    }
    expected.sort();
    let judged = |kind: &str| JUDGED.contains(&kind) || (moves.is_some() && MOVES.contains(&kind));
    let mut told: BTreeMap<(String, String), Vec<Time>> = BTreeMap::new();
    for event in watched.events.iter().filter(|event| judged(&event.event_type)) {
        told.entry((event.event_type.clone(), event.subject_key.clone())).or_default().push(event.at);
    }
    let count = expected.len();
    let (mut missed, mut delays) = (Vec::new(), Vec::new());
    for expected in expected {
        let times = told.get_mut(&(expected.event_type.clone(), expected.subject.clone()));
        let window = expected.at..=expected.at + ONE_POLL;
        match times.and_then(|times| times.iter().position(|at| window.contains(at)).map(|i| times.remove(i)))
        {
            Some(at) => delays.push(at - expected.since),
            None => missed.push(expected),
        }
    }
    let left = told.into_iter().flat_map(|((event_type, subject), times)| {
        times.into_iter().map(move |at| (event_type.clone(), subject.clone(), at))
    });
    Verdict { expected: count, missed, wrong: left.collect(), lapses, delays }
}

/// What was asked, by race and by listed date.
struct Index<'a> {
    events: BTreeMap<&'a str, Vec<Time>>,
    listings: BTreeMap<&'a str, Vec<Time>>,
}

impl<'a> Index<'a> {
    fn new(asked: &'a [Asked]) -> Index<'a> {
        let mut index = Index { events: BTreeMap::new(), listings: BTreeMap::new() };
        for Asked { at, path } in asked {
            let between = |before: &str, after: char| {
                let rest = path.split_once(before)?.1;
                Some(rest.split_once(after).map_or(rest, |(part, _)| part))
            };
            if let Some(id) = between("/events/", '?') {
                index.events.entry(id).or_default().push(*at);
            } else if let Some(date) = between("date_from=", '&') {
                index.listings.entry(date).or_default().push(*at);
            }
        }
        index
    }

    /// When a race was looked at, by its own target or by the listing of its date.
    fn looks_at(&self, race: &RaceTruth, date: &str) -> Vec<Look> {
        let times = |map: &BTreeMap<&str, Vec<Time>>, key: &str, event: bool| {
            let times = map.get(key).cloned().unwrap_or_default();
            times.into_iter().map(move |at| Look { at, event })
        };
        let mut looks: Vec<Look> =
            times(&self.events, &race.id, true).chain(times(&self.listings, date, false)).collect();
        looks.sort_by_key(|look| look.at);
        looks
    }
}
