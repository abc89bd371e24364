//! A race as the day planned it, and what became of it.

use std::sync::{Mutex, OnceLock};

use stakeout_core::{Span, Time};

use super::book::Book;
use super::names::{self, Category};
use crate::rng::SplitMix64;
use crate::timeline::Timeline;

/// The states the upstream gives a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Betting goes on.
    Open,
    /// Betting has ended.
    Closed,
    /// Placings are known, not yet confirmed.
    Interim,
    /// Placings are confirmed.
    Final,
    /// It will not be run.
    Abandoned,
}

impl Status {
    /// As the upstream writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Open => "Open",
            Status::Closed => "Closed",
            Status::Interim => "Interim",
            Status::Final => "Final",
            Status::Abandoned => "Abandoned",
        }
    }

    /// Nothing follows it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Final | Status::Abandoned)
    }
}

/// What `actual_start` shows before the jump is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeforeJump {
    /// No such field.
    Absent,
    /// 0.
    Zero,
    /// The advertised start.
    Advertised,
}

/// A protest, told with the final placings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protest {
    /// Second against first, upheld: they change places between Interim and Final.
    Upheld,
    /// Second against first, dismissed.
    Dismissed,
}

/// Everything that happens to a race, from its seed or laid down by a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// From the last advertised start to the jump.
    pub(crate) delay: Span,
    /// From the jump to Closed; negative when betting closes first.
    pub(crate) close_lag: Span,
    /// From the jump to Interim; `None` goes straight to Final.
    pub(crate) interim_after: Option<Span>,
    /// From the jump to Final.
    pub(crate) final_after: Span,
    /// When it was told, and the new start.
    pub(crate) retimings: Vec<(Time, Time)>,
    /// When it was called off.
    pub(crate) abandoned: Option<Time>,
    /// Closed by mistake and opened again, from … to.
    pub(crate) reopened: Option<(Time, Time)>,
    /// A protest, if there is one.
    pub(crate) protest: Option<Protest>,
    /// When one runner is scratched late, on top of those the seed scratches.
    pub(crate) late_scratching: Option<Time>,
    /// What `actual_start` shows before the jump.
    pub(crate) before_jump: BeforeJump,
    /// The jump is told only with Interim, not with Closed.
    pub(crate) jump_told_late: bool,
}

/// Cumulative share in percent and delay in seconds, straight lines between: median 68 s, 90th percentile 275 s,
/// never beyond 24 min. A table, because logarithms differ between machines and this must not.
const DELAYS: [(u64, u64); 9] =
    [(0, 0), (10, 17), (25, 33), (50, 68), (75, 142), (90, 275), (97, 530), (99, 860), (100, 1_440)];

impl Fate {
    /// What a seed has in store for a race that is planned for `start`.
    pub(crate) fn draw(rng: &mut SplitMix64, start: Time) -> Fate {
        let secs = |rng: &mut SplitMix64, low, high| Span::secs(rng.between(low, high) as i64);
        let delay = draw_delay(rng);
        let close_lag = secs(rng, 0, 40) - Span::secs(15);
        let interim = secs(rng, 75, 240);
        let final_after = interim + secs(rng, 60, 300);
        let retimings = if rng.one_in(8) { draw_retimings(rng, start) } else { Vec::new() };
        let called_off = rng.one_in(80).then(|| start - secs(rng, 0, 5_400) + Span::mins(10));
        let reopened = rng.one_in(60).then(|| {
            let closed = start - secs(rng, 30, 240);
            (closed, closed + Span::secs(25))
        });
        Fate {
            delay,
            close_lag,
            interim_after: (!rng.one_in(25)).then_some(interim),
            final_after,
            abandoned: called_off,
            reopened: if retimings.is_empty() { reopened } else { None },
            retimings,
            protest: rng.one_in(40).then(|| if rng.one_in(2) { Protest::Upheld } else { Protest::Dismissed }),
            late_scratching: rng.one_in(10).then(|| start - secs(rng, 20, 3_300)),
            before_jump: match rng.between(0, 2) {
                0 => BeforeJump::Absent,
                1 => BeforeJump::Zero,
                _ => BeforeJump::Advertised,
            },
            jump_told_late: rng.one_in(6),
        }
    }
}

fn draw_delay(rng: &mut SplitMix64) -> Span {
    let share = rng.unit() * 100.0;
    let above = DELAYS.iter().position(|(p, _)| *p as f64 > share).unwrap_or(DELAYS.len() - 1);
    let ((p0, d0), (p1, d1)) = (DELAYS[above - 1], DELAYS[above]);
    let part = (share - p0 as f64) / (p1 - p0) as f64;
    // Whole seconds, as the upstream tells the jump.
    Span::secs((d0 as f64 + part * (d1 - d0) as f64) as i64)
}

/// Mostly later; earlier only when told early enough that nobody's schedule has passed the new start.
fn draw_retimings(rng: &mut SplitMix64, start: Time) -> Vec<(Time, Time)> {
    let told = start - Span::secs(rng.between(120, 3_000) as i64);
    let earlier = rng.one_in(5) && start - told > Span::mins(20);
    let minutes = rng.between(1, if earlier { 3 } else { 12 }) as i64;
    let moved = start + if earlier { -Span::mins(minutes) } else { Span::mins(minutes) };
    let mut all = vec![(told, moved)];
    if !earlier && rng.one_in(4) {
        all.push((moved - Span::secs(90), moved + Span::mins(rng.between(1, 5) as i64)));
    }
    all
}

/// What a race is, whatever becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) id: String,
    pub(crate) meeting_id: String,
    pub(crate) meeting_name: String,
    pub(crate) country: &'static str,
    pub(crate) state: &'static str,
    pub(crate) category: Category,
    pub(crate) number: u32,
    /// How many races the meeting has: its multi-leg pools end with the last one.
    pub(crate) of: u32,
    pub(crate) name: String,
    pub(crate) distance: u32,
    pub(crate) track_condition: &'static str,
    pub(crate) weather: &'static str,
}

/// How the upstream shows its races, the same for a whole day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Showing {
    /// From when races can be bet on.
    pub(crate) opened: Time,
    /// Nine in the morning, whose price the upstream remembers.
    pub(crate) nine_am: Time,
    /// How often the upstream's data is renewed.
    pub(crate) refresh: Span,
    /// Fixed-odds moves per runner, about.
    pub(crate) moves: u32,
    /// One in so many races shows its flucs one refresh late; 0 is none.
    pub(crate) lagging_flucs_one_in: u64,
    pub(crate) full: bool,
}

/// A race: its card, its timelines, and its book, which is made when first asked for.
#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) card: Card,
    pub(crate) seed: u64,
    pub(crate) fate: Fate,
    pub(crate) showing: Showing,
    /// Refreshes of different races do not coincide, and never with whole minutes by plan.
    pub(crate) refresh_phase: Span,
    pub(crate) statuses: Timeline<Status>,
    pub(crate) starts: Timeline<Time>,
    /// `None` when it never jumped.
    pub(crate) jump: Option<Time>,
    /// From when the jump is told.
    pub(crate) jump_told: Option<Time>,
    book: OnceLock<Book>,
    /// Its row of the listing as it was last shown, with the start and the status that it shows: these are all that changes.
    pub(crate) listed: Mutex<Option<(Time, Status, String)>>,
}

impl Race {
    pub(crate) fn new(card: Card, seed: u64, start: Time, fate: Fate, showing: Showing) -> Race {
        let mut rng = SplitMix64::new(seed ^ 0x7261_6365);
        let starts = Timeline::new(
            std::iter::once((showing.opened, start)).chain(fate.retimings.iter().copied()).collect(),
        );
        let last_start = starts.last().copied().unwrap_or(start);
        let jump = last_start + fate.delay;
        let closed = jump + fate.close_lag;
        let mut statuses = vec![(showing.opened, Status::Open), (closed, Status::Closed)];
        if let Some((from, to)) = fate.reopened.filter(|(_, to)| *to < closed) {
            statuses.extend([(from, Status::Closed), (to, Status::Open)]);
        }
        let placed = fate.interim_after.unwrap_or(fate.final_after);
        if fate.interim_after.is_some() {
            statuses.push((jump + placed, Status::Interim));
        }
        statuses.push((jump + fate.final_after, Status::Final));
        // Only a race that has not jumped can be called off.
        let abandoned = fate.abandoned.filter(|at| *at < jump.min(closed));
        if let Some(at) = abandoned {
            statuses.retain(|(from, _)| *from < at);
            statuses.push((at, Status::Abandoned));
        }
        let ran = abandoned.is_none();
        let told = if fate.jump_told_late { jump + placed } else { jump.max(closed) };
        let phase_ms = rng.between(0, (showing.refresh.as_ms() as u64).saturating_sub(1));
        Race {
            card,
            seed,
            showing,
            refresh_phase: Span::ms(phase_ms as i64),
            statuses: Timeline::new(statuses),
            starts,
            jump: ran.then_some(jump),
            jump_told: ran.then_some(told),
            book: OnceLock::new(),
            listed: Mutex::new(None),
            fate: Fate { abandoned, ..fate },
        }
    }

    pub(crate) fn book(&self) -> &Book {
        self.book.get_or_init(|| Book::new(self))
    }

    /// When the data served at `now` was renewed.
    pub(crate) fn served_at(&self, now: Time) -> Time {
        let (step, phase) = (self.showing.refresh.as_us(), self.refresh_phase.as_us());
        if step <= 0 {
            return now;
        }
        Time((now.us() - phase).div_euclid(step) * step + phase)
    }

    pub(crate) fn status_at(&self, at: Time) -> Status {
        self.statuses.at(at).copied().unwrap_or(Status::Open)
    }

    /// The start advertised at `at`; before it opened, the first one.
    pub(crate) fn start_at(&self, at: Time) -> Time {
        self.starts.at(at).copied().unwrap_or_else(|| self.first_start())
    }

    pub(crate) fn first_start(&self) -> Time {
        self.starts.changes()[0].1
    }

    pub(crate) fn last_start(&self) -> Time {
        self.starts.last().copied().unwrap_or_else(|| self.first_start())
    }

    pub(crate) fn time_of(&self, status: Status) -> Option<Time> {
        self.statuses.changes().iter().rev().find(|(_, s)| *s == status).map(|(at, _)| *at)
    }

    /// When betting ended for good: closed or called off.
    pub(crate) fn betting_ended(&self) -> Time {
        self.time_of(Status::Closed)
            .filter(|_| self.jump.is_some())
            .or(self.fate.abandoned)
            .unwrap_or_else(|| self.last_start())
    }
}

impl Card {
    /// The card's own details from its seed; who and where it is comes from the meeting.
    pub(crate) fn details(rng: &mut SplitMix64, category: Category) -> (String, u32) {
        let distance = match category {
            Category::Thoroughbred => 1_000 + 100 * rng.between(0, 16) as u32,
            Category::Harness => {
                *[1_609, 1_980, 2_200, 2_600, 2_700].get(rng.between(0, 4) as usize).unwrap_or(&2_200)
            }
            Category::Greyhound => *[295, 375, 457, 520].get(rng.between(0, 3) as usize).unwrap_or(&375),
        };
        (names::race(rng, category, distance), distance)
    }
}
