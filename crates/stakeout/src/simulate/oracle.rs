//! What a perfect watcher that looked at the same moments would have told about a simulated racing day.
//!
//! The oracle sees the simulator's truth at every moment the engine got an answer, and nothing else: what it expects
//! and the engine did not tell is a miss of ours, what the engine told and it does not expect is invented. What no
//! poll could see is neither.

use std::collections::BTreeMap;

use stakeout_core::{Event, Span, Time};
use stakeout_sim::nztab::{Day, RaceTruth, Status};

use super::nztab::Asked;

/// One thing that should be told: the event's type, what it is about, and when it was first to be seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expected {
    pub(super) at: Time,
    pub(super) subject: String,
    pub(super) event_type: String,
    /// How long it had been served by then.
    pub(super) delay: Span,
}

/// What was told against what should have been.
pub(super) struct Verdict {
    pub(super) expected: usize,
    pub(super) missed: Vec<Expected>,
    /// Type and subject of events that nothing called for.
    pub(super) wrong: Vec<(String, String, Time)>,
    pub(super) delays: Vec<Span>,
}

/// The types that the oracle judges; moves of odds and money depend on thresholds and are checked elsewhere.
const JUDGED: [&str; 7] = [
    "racing.race.closed",
    "racing.race.interim",
    "racing.race.final",
    "racing.race.abandoned",
    "racing.race.reopened",
    "racing.race.retimed",
    "racing.runner.scratched",
];

/// A look at one race at one moment.
struct Look {
    at: Time,
    /// Whether its runners were seen, too.
    event: bool,
}

/// The pages of one listing may be some moments apart; its events carry the last one's time.
const ONE_POLL: Span = Span::secs(2);

pub(super) fn judge(days: &[Day], asked: &[Asked], events: &[Event]) -> Verdict {
    let asked = Index::new(asked);
    let mut expected: Vec<Expected> = Vec::new();
    for day in days {
        for race in day.truth() {
            expected.extend(of_race(&race, &asked.looks_at(&race, &day.date().to_string())));
        }
    }
    expected.sort();
    let mut told: BTreeMap<(String, String), Vec<Time>> = BTreeMap::new();
    for event in events.iter().filter(|event| JUDGED.contains(&event.event_type.as_str())) {
        told.entry((event.event_type.clone(), event.subject_key.clone())).or_default().push(event.at);
    }
    let delays = expected.iter().map(|expected| expected.delay).collect();
    let count = expected.len();
    let mut missed = Vec::new();
    for expected in expected {
        let times = told.get_mut(&(expected.event_type.clone(), expected.subject.clone()));
        let window = expected.at..=expected.at + ONE_POLL;
        match times.and_then(|times| times.iter().position(|at| window.contains(at)).map(|i| times.remove(i)))
        {
            Some(_) => {}
            None => missed.push(expected),
        }
    }
    let left = told.into_iter().flat_map(|((event_type, subject), times)| {
        times.into_iter().map(move |at| (event_type.clone(), subject.clone(), at))
    });
    Verdict { expected: count, missed, wrong: left.collect(), delays }
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

fn of_race(race: &RaceTruth, looks: &[Look]) -> Vec<Expected> {
    let mut expected = Vec::new();
    let mut tell = |at: Time, subject: &str, event_type: &str, since: Time| {
        let (subject, event_type) = (subject.to_owned(), event_type.to_owned());
        expected.push(Expected { at, subject, event_type, delay: at - since });
    };
    let mut status: Option<Status> = None;
    let mut start: Option<Time> = None;
    let mut runners_known = false;
    let mut scratched: Vec<&str> = Vec::new();
    for look in looks {
        let (now_status, now_start) = (race.status_at(look.at), race.start_at(look.at));
        if let Some(before) = status.filter(|before| *before != now_status) {
            let since =
                race.statuses.iter().rev().find(|(_, s)| *s == now_status).map_or(look.at, |(from, _)| *from);
            if let Some(name) = status_event(before, now_status) {
                tell(look.at, &race.id, name, race.seen_from(since).min(look.at));
            }
        }
        if start.is_some_and(|before| before != now_start) {
            let since =
                race.starts.iter().rev().find(|(_, s)| *s == now_start).map_or(look.at, |(from, _)| *from);
            tell(look.at, &race.id, "racing.race.retimed", race.seen_from(since).min(look.at));
        }
        (status, start) = (Some(now_status), Some(now_start));
        if !look.event {
            continue;
        }
        for entrant in &race.entrants {
            let Some(scratching) = &entrant.scratched else { continue };
            if scratched.contains(&entrant.id.as_str()) || race.served_at(look.at) < scratching.at {
                continue;
            }
            scratched.push(&entrant.id);
            if runners_known {
                tell(
                    look.at,
                    &entrant.id,
                    "racing.runner.scratched",
                    race.seen_from(scratching.at).min(look.at),
                );
            }
        }
        runners_known = true;
    }
    expected
}

fn status_event(before: Status, now: Status) -> Option<&'static str> {
    match (before, now) {
        (_, Status::Closed) => Some("racing.race.closed"),
        (_, Status::Interim) => Some("racing.race.interim"),
        (_, Status::Final) => Some("racing.race.final"),
        (_, Status::Abandoned) => Some("racing.race.abandoned"),
        (Status::Open, Status::Open) => None,
        (_, Status::Open) => Some("racing.race.reopened"),
    }
}
