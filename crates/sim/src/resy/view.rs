//! What one search shows of every venue, over time.

use jiff::civil::Date;
use stakeout_core::Time;

use super::market::Market;
use super::seating::Seating;
use crate::timeline::Timeline;

/// What decides which tables an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ViewKey {
    pub(crate) day: Date,
    /// The time asked for, in minutes since midnight; without one the whole day counts.
    pub(crate) minute: Option<u16>,
    pub(crate) party: u8,
}

/// For every venue the tables shown, as numbers into its date's tables.
#[derive(Debug)]
pub(crate) struct View {
    lines: Vec<Timeline<Vec<u16>>>,
    /// Every change: when, and whose.
    changes: Vec<(Time, u32)>,
}

/// A place in a view's time. Moving it costs as much as changed between.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// Changes that have happened: the version of what is shown.
    applied: usize,
    /// By venue, which of its line's values holds.
    current: Vec<u32>,
    /// By venue, whether that shows anything: apart from the rest because every page looks at all of it.
    bookable: Vec<bool>,
}

impl View {
    pub(crate) fn new(market: &Market, key: ViewKey) -> View {
        let config = market.config();
        let tables = market.tables(key.day);
        let none = Vec::new();
        let lines: Vec<Timeline<Vec<u16>>> = (0..market.venues().len())
            .map(|n| {
                let chosen = chosen(tables.get(n).unwrap_or(&none), key, config.reach_minutes);
                line(
                    tables.get(n).unwrap_or(&none),
                    &chosen,
                    config.slot_cap.map_or(usize::MAX, |n| n as usize),
                )
            })
            .collect();
        let changed = |(line, venue): (&Timeline<Vec<u16>>, u32)| {
            let later: Vec<(Time, u32)> = line.changes()[1..].iter().map(|(at, _)| (*at, venue)).collect();
            later
        };
        let mut changes: Vec<(Time, u32)> = lines.iter().zip(0..).flat_map(changed).collect();
        changes.sort_unstable();
        View { lines, changes }
    }

    /// What is shown of a venue, over time; the first value has always held.
    pub(crate) fn line(&self, venue: u32) -> &Timeline<Vec<u16>> {
        &self.lines[venue as usize]
    }

    pub(crate) fn start(&self) -> Cursor {
        let bookable = self.lines.iter().map(|line| !line.changes()[0].1.is_empty()).collect();
        Cursor { applied: 0, current: vec![0; self.lines.len()], bookable }
    }
}

impl Cursor {
    /// Moves to `now`, forwards or backwards, and tells the version.
    pub(crate) fn seek(&mut self, view: &View, now: Time) -> usize {
        let goal = view.changes.partition_point(|(at, _)| *at <= now);
        while self.applied < goal {
            let venue = view.changes[self.applied].1;
            self.current[venue as usize] += 1;
            self.bookable[venue as usize] = !self.shown(view, venue).is_empty();
            self.applied += 1;
        }
        while self.applied > goal {
            self.applied -= 1;
            let venue = view.changes[self.applied].1;
            self.current[venue as usize] -= 1;
            self.bookable[venue as usize] = !self.shown(view, venue).is_empty();
        }
        goal
    }

    /// By venue, whether any table is shown of it here.
    pub(crate) fn bookable(&self) -> &[bool] {
        &self.bookable
    }

    /// The tables shown of a venue here.
    pub(crate) fn shown<'a>(&self, view: &'a View, venue: u32) -> &'a [u16] {
        &view.lines[venue as usize].changes()[self.current[venue as usize] as usize].1
    }
}

/// The tables that a search is about, the nearest to its time first.
fn chosen(tables: &[Seating], key: ViewKey, reach: u16) -> Vec<u16> {
    let far = |seating: &Seating| key.minute.map_or(0, |minute| minute.abs_diff(seating.minute));
    let mut chosen: Vec<(u16, u16)> = tables
        .iter()
        .zip(0..)
        .filter(|(seating, _)| seating.takes(key.party) && far(seating) <= reach)
        .map(|(seating, n)| (far(seating), n))
        .collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, n)| n).collect()
}

/// Which of the chosen tables are shown, over time: of those open, the first `cap`, in order of time.
fn line(tables: &[Seating], chosen: &[u16], cap: usize) -> Timeline<Vec<u16>> {
    const ALWAYS: Time = Time(i64::MIN);
    let mut turns: Vec<(Time, usize, bool)> = Vec::new();
    for (place, n) in chosen.iter().enumerate() {
        for (from, until) in &tables[usize::from(*n)].open {
            turns.push((*from, place, true));
            if until.us() < i64::MAX {
                turns.push((*until, place, false));
            }
        }
    }
    turns.sort_unstable();
    let mut open = vec![false; chosen.len()];
    let mut changes = vec![(ALWAYS, Vec::new())];
    for at_once in turns.chunk_by(|a, b| a.0 == b.0) {
        at_once.iter().for_each(|(_, place, is_open)| open[*place] = *is_open);
        let mut shown: Vec<u16> = (0..open.len()).filter(|n| open[*n]).take(cap).map(|n| chosen[n]).collect();
        shown.sort_unstable();
        changes.push((at_once[0].0, shown));
    }
    Timeline::new(changes)
}
