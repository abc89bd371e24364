//! A fetch that notes when it was asked and when it had the answer. Lateness is computed from these notes and the
//! schedule grid, not taken from the engine's own books: the two must not be wrong together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use stakeout_core::{Failure, Request, Span, TargetSpec, Time};
use stakeout_engine::Clock;
use stakeout_engine::fetch::{Answer, Fetch, FetchLimits};
use stakeout_engine::http::HttpFetch;
use stakeout_store::Validators;

use crate::scene::SOURCE;

/// Between the note of an answer and the engine's own note of it: a grid point that falls in between is taken as
/// over by the engine and as yet to come by the notes.
const NOTE_GAP: Span = Span::us(500);

/// One request: handed over, answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) sent: Time,
    pub(crate) ended: Time,
}

/// The real fetch, with notes by target: the last segment of the URL is its number.
pub(crate) struct StampedFetch {
    inner: HttpFetch,
    notes: Vec<Mutex<Vec<Note>>>,
    failed: AtomicU64,
}

impl StampedFetch {
    pub(crate) fn new(targets: u64) -> anyhow::Result<StampedFetch> {
        let notes = (0..targets).map(|_| Mutex::default()).collect();
        Ok(StampedFetch { inner: HttpFetch::new()?, notes, failed: AtomicU64::new(0) })
    }

    /// Requests that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// What was noted about every target, in order of sending.
    pub(crate) fn notes(&self) -> impl Iterator<Item = Vec<Note>> + '_ {
        self.notes.iter().map(|notes| notes.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn note(&self, url: &str, note: Note) {
        let number = url.rsplit('/').next().and_then(|last| last.parse::<usize>().ok());
        if let Some(notes) = number.and_then(|number| self.notes.get(number)) {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        }
    }
}

#[async_trait]
impl Fetch for StampedFetch {
    async fn fetch(
        &self,
        request: &Request,
        validators: &Validators,
        limits: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let sent = clock.now();
        let answer = self.inner.fetch(request, validators, limits, clock).await;
        self.note(&request.url, Note { sent, ended: clock.now() });
        self.failed.fetch_add(u64::from(answer.is_err()), Ordering::Relaxed);
        answer
    }
}

/// The due times of one target: whole intervals from its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    place: Time,
    every: Span,
}

impl Grid {
    /// The grid of the target with this number: its place is drawn from its name, as the cadence does.
    pub(crate) fn of(number: u64, every: Span) -> Grid {
        let spread = TargetSpec::new(number.to_string(), "document").spread(SOURCE);
        Grid { place: Time((spread % every.as_us().unsigned_abs()) as i64), every }
    }

    /// The first due time strictly after `time`.
    pub(crate) fn after(&self, time: Time) -> Time {
        let whole = (time - self.place).as_us().div_euclid(self.every.as_us());
        self.place + self.every.times(whole + 1)
    }
}

/// The polls of one target in a window, against its due times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    /// Handed over − due, of every poll due in the window, in milliseconds.
    pub(crate) lateness_ms: Vec<f64>,
    /// Due times in the window without a poll of their own.
    pub(crate) missed: u64,
}

/// Judges notes: the poll after one that ended at `e` was due at the first grid point after `e`.
pub(crate) fn judge(grid: Grid, notes: &[Note], from: Time, to: Time) -> Kept {
    let mut kept = Kept::default();
    let mut expected = grid.after(from - Span::us(1));
    for pair in notes.windows(2) {
        let mut due = grid.after(pair[0].ended);
        if due - pair[0].ended < NOTE_GAP && pair[1].sent >= due + grid.every {
            due += grid.every;
        }
        if due < from || due >= to {
            continue;
        }
        kept.missed += ((due - expected).as_us() / grid.every.as_us()).max(0) as u64;
        expected = due + grid.every;
        kept.lateness_ms.push((pair[1].sent - due).as_secs_f64().max(0.0) * 1e3);
    }
    kept.missed +=
        ((to - expected).as_us() + grid.every.as_us() - 1).div_euclid(grid.every.as_us()).max(0) as u64;
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Time {
        Time::from_ms(ms)
    }

    /// Due at 3, 13, 23, … ms.
    const GRID: Grid = Grid { place: Time(3_000), every: Span::ms(10) };

    fn check(notes: &[(i64, i64)], lateness_ms: &[f64], missed: u64) {
        let notes: Vec<Note> =
            notes.iter().map(|&(sent, ended)| Note { sent: ms(sent), ended: ms(ended) }).collect();
        let kept = judge(GRID, &notes, ms(10), ms(50));
        assert_eq!(kept, Kept { lateness_ms: lateness_ms.to_vec(), missed }, "{notes:?}");
    }

    #[test]
    fn every_due_time_in_the_window_is_polled_or_missed() {
        check(&[(3, 4), (13, 14), (24, 25), (33, 34), (45, 46), (53, 54)], &[0.0, 1.0, 0.0, 2.0], 0);
        // The poll of 13 lasts until 25: that of 23 is missed, the next one is due at 33.
        check(&[(3, 4), (13, 25), (34, 35), (43, 44)], &[0.0, 1.0, 0.0], 1);
        // One that waits beyond the next due time is late, and what it overran is missed.
        check(&[(3, 4), (13, 14), (38, 39), (43, 44)], &[0.0, 15.0, 0.0], 1);
        check(&[], &[], 4);
    }

    #[test]
    fn a_grid_point_between_two_notes_of_one_answer_is_over() {
        let notes = [Note { sent: ms(3), ended: Time(12_900) }, Note { sent: ms(23), ended: ms(24) }];
        let kept = judge(GRID, &notes, ms(10), ms(30));
        assert_eq!(kept, Kept { lateness_ms: vec![0.0], missed: 1 });
    }
}
