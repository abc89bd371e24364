//! Countdown tables: the two that ship, and the check of a user's own.

use std::borrow::Cow;

use crate::Span;

use super::{Countdown, Phase};

/// The most phases a table may have.
const MAX_PHASES: usize = 16;
/// The shortest and the longest interval that a table may name.
const INTERVALS: (Span, Span) = (Span::ms(10), Span::hours(24));
/// The earliest that a table may begin before T.
const MAX_AHEAD: Span = Span::hours(24 * 7);

/// Why a countdown table was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CadenceError {
    /// There is no phase, or too many.
    #[error("expected 1 to {MAX_PHASES} phases before the start, found {0}")]
    Phases(usize),
    /// A phase begins at or after T, or too long before it.
    #[error("phase {phase}: expected it to begin up to {MAX_AHEAD} before the start, found {from}")]
    From {
        /// The phase's name.
        phase: String,
        /// When it would begin, before T.
        from: Span,
    },
    /// A phase does not begin after the one before it.
    #[error("phase {phase} must begin after {previous}: list the phases from the earliest to the latest")]
    Order {
        /// The phase's name.
        phase: String,
        /// The name of the one before it.
        previous: String,
    },
    /// An interval is out of bounds.
    #[error("phase {phase}: expected an interval of {} to {}, found {every}", INTERVALS.0, INTERVALS.1)]
    Every {
        /// The phase's name, `overdue` and `after` included.
        phase: String,
        /// The interval found.
        every: Span,
    },
}

impl Phase {
    /// A phase that begins `from` before T, named after that: `T-60m`, `T-90s`.
    pub fn new(from: Span, every: Span) -> Phase {
        Phase { name: Cow::Owned(name(from)), from, every }
    }
}

fn name(from: Span) -> String {
    const MINUTE: i64 = Span::mins(1).as_us();
    const SECOND: i64 = Span::secs(1).as_us();
    match from.as_us() {
        us if us % MINUTE == 0 => format!("T-{}m", us / MINUTE),
        us if us % SECOND == 0 => format!("T-{}s", us / SECOND),
        us if us % 1_000 == 0 => format!("T-{}ms", us / 1_000),
        us => format!("T-{us}us"),
    }
}

impl Countdown {
    /// An own table: phases from the earliest to the latest, each interval and beginning within bounds.
    pub fn new(before: Vec<Phase>, overdue: Span, after: Span) -> Result<Countdown, CadenceError> {
        if before.is_empty() || before.len() > MAX_PHASES {
            return Err(CadenceError::Phases(before.len()));
        }
        for phase in &before {
            if phase.from <= Span::ZERO || phase.from > MAX_AHEAD {
                return Err(CadenceError::From { phase: phase.name.to_string(), from: phase.from });
            }
        }
        for pair in before.windows(2) {
            if pair[1].from >= pair[0].from {
                let (phase, previous) = (pair[1].name.to_string(), pair[0].name.to_string());
                return Err(CadenceError::Order { phase, previous });
            }
        }
        let intervals = before.iter().map(|phase| (&*phase.name, phase.every));
        for (phase, every) in intervals.chain([("overdue", overdue), ("after", after)]) {
            if every < INTERVALS.0 || every > INTERVALS.1 {
                return Err(CadenceError::Every { phase: phase.to_owned(), every });
            }
        }
        Ok(Countdown { before, overdue, after })
    }

    /// The racing table as first asked for: every 5 min from T-60m, ever closer to 15 s from T-5m until the
    /// start is confirmed, then every 5 min until the end.
    pub fn seed() -> Countdown {
        let phase = |name, from, every| Phase { name: Cow::Borrowed(name), from: Span::mins(from), every };
        Countdown {
            before: vec![
                phase("T-60m", 60, Span::mins(5)),
                phase("T-20m", 20, Span::mins(2)),
                phase("T-10m", 10, Span::mins(1)),
                phase("T-5m", 5, Span::secs(15)),
            ],
            overdue: Span::secs(15),
            after: Span::mins(5),
        }
    }

    /// As [`Countdown::seed`], but every 30 s after the start: real races pass Closed and Interim within one to
    /// eight minutes, which a 5 min step mostly misses.
    pub fn tight() -> Countdown {
        Countdown { after: Span::secs(30), ..Countdown::seed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &[(i64, i64)], overdue: i64, after: i64, expected: &str) {
        let before = before.iter().map(|&(from, every)| Phase::new(Span::secs(from), Span::secs(every)));
        let found = match Countdown::new(before.collect(), Span::secs(overdue), Span::secs(after)) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_presets_pass_their_own_check() {
        for preset in [Countdown::seed(), Countdown::tight()] {
            assert_eq!(
                Countdown::new(preset.before.clone(), preset.overdue, preset.after),
                Ok(preset.clone())
            );
            for phase in &preset.before {
                assert_eq!(Phase::new(phase.from, phase.every), *phase);
            }
        }
    }

    #[test]
    fn a_wrong_table_says_what_to_do() {
        check(&[(600, 60), (90, 5)], 5, 60, "fine");
        check(&[], 5, 60, "expected 1 to 16 phases before the start, found 0");
        check(&[(60, 5); 17], 5, 60, "expected 1 to 16 phases before the start, found 17");
        check(
            &[(90, 5), (600, 60)],
            5,
            60,
            "phase T-10m must begin after T-90s: list the phases from the earliest to the latest",
        );
        check(
            &[(60, 5), (60, 5)],
            5,
            60,
            "phase T-1m must begin after T-1m: list the phases from the earliest to the latest",
        );
        check(&[(0, 5)], 5, 60, "phase T-0m: expected it to begin up to 7 d before the start, found 0 s");
        check(&[(60, 0)], 5, 60, "phase T-1m: expected an interval of 10 ms to 24 h, found 0 s");
        check(&[(60, 5)], -1, 60, "phase overdue: expected an interval of 10 ms to 24 h, found -1 s");
        check(&[(60, 5)], 5, 90_000, "phase after: expected an interval of 10 ms to 24 h, found 25 h");
    }
}
