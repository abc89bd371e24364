//! How fast a source may be asked, decided in engine time.
//!
//! Written here instead of taking `governor`: the limit must run in engine time, which may be scaled or virtual, and
//! has one owner, so it needs neither a clock nor atomics. Concurrency is the dispatcher's business.

use crate::source::Limits;
use crate::{Span, Time};

/// The most a penalised source is slowed down.
const MOST_SLOWDOWN: f64 = 64.0;
/// Complaints this close together are one: the requests were already in flight.
const ONE_COMPLAINT: Span = Span::secs(1);
/// What each success leaves of the slow-down.
const RECOVERY: f64 = 0.8;
/// The longest time between two requests that a configured rate may mean.
const LONGEST_STEP: Span = Span::hours(24);

/// Requests per second with burst (the generic cell rate algorithm), a minimum gap, and a slow-down while the
/// upstream complains.
#[derive(Clone, Debug)]
pub struct Limiter {
    /// Time per request at the configured rate.
    step: Span,
    burst: i64,
    min_gap: Span,
    /// When the requests admitted so far are paid for; the "theoretical arrival time".
    paid: Time,
    last: Option<Time>,
    slow_until: Option<Time>,
    complained: Option<Time>,
    slowdown: f64,
}

impl Limiter {
    /// A limiter that has admitted nothing yet.
    pub fn new(limits: &Limits) -> Limiter {
        let mut limiter = Limiter {
            step: Span::ZERO,
            burst: 1,
            min_gap: Span::ZERO,
            paid: Time(i64::MIN),
            last: None,
            slow_until: None,
            complained: None,
            slowdown: 1.0,
        };
        limiter.set(limits);
        limiter
    }

    /// Takes over changed limits; what was admitted and any slow-down stay remembered.
    pub fn set(&mut self, limits: &Limits) {
        let us = (1e6 / limits.requests_per_second.max(0.0)).ceil();
        self.step = if us.is_nan() { LONGEST_STEP } else { Span(us as i64).min(LONGEST_STEP) };
        self.burst = i64::from(limits.burst.max(1));
        self.min_gap = limits.min_gap.max(Span::ZERO);
    }

    /// Takes over another rate and burst, such as a node's part of a source's limits. What was in hand stays in hand and
    /// no more: a burst that grows begins empty, because somebody else may just have used it.
    pub fn share(&mut self, limits: &Limits, now: Time) {
        let (step, burst) = (self.step, self.burst);
        let owed = (self.paid.max(now) - now).0 as f64 / step.0.max(1) as f64;
        self.set(limits);
        let grown = (self.burst - burst).max(0) as f64;
        self.paid = now + Span(((owed + grown) * self.step.0 as f64).ceil() as i64);
    }

    /// Begins with nothing in hand: others may have asked until now.
    pub fn begin_empty(&mut self, now: Time) {
        self.paid = self.paid.max(now + self.step.times(self.burst));
        self.last = Some(now);
    }

    /// The upstream told somebody else to leave it alone until then.
    pub fn wait_until(&mut self, until: Time) {
        self.slow_until = Some(self.slow_until.map_or(until, |own| own.max(until)));
    }

    /// Admits one request now, or says when to ask again (always later than `now`).
    pub fn admit(&mut self, now: Time) -> Result<(), Time> {
        let step = self.slowed_step();
        // A clock set back, or a rate that was raised, must not leave a debt that nobody could have run up.
        self.paid = self.paid.min(now + step.times(self.burst));
        self.last = self.last.map(|last| last.min(now));

        // A source that complained gets no bursts until it has recovered.
        let burst = if self.slowdown > 1.0 { 1 } else { self.burst };
        let by_rate = self.paid - step.times(burst - 1);
        let by_gap = self.last.map_or(now, |last| last + self.min_gap);
        let by_complaint = self.slow_until.unwrap_or(now);
        let open = by_rate.max(by_gap).max(by_complaint);
        if open > now {
            return Err(open);
        }
        self.paid = self.paid.max(now) + step;
        self.last = Some(now);
        Ok(())
    }

    /// The upstream complained (429, 503): nothing before `retry_after` is over, and half as fast from then on.
    pub fn penalise(&mut self, now: Time, retry_after: Option<Span>) {
        let wait = retry_after.unwrap_or(self.slowed_step()).max(Span::ZERO);
        self.slow_until = Some(self.slow_until.map_or(now + wait, |until| until.max(now + wait)));
        let same = self.complained.is_some_and(|at| now >= at && now - at < ONE_COMPLAINT);
        if !same {
            self.slowdown = (self.slowdown * 2.0).min(MOST_SLOWDOWN);
            self.complained = Some(now);
        }
    }

    /// The upstream answered: the slow-down fades with every success after the wait it asked for.
    pub fn reward(&mut self, now: Time) {
        if self.slow_until.is_some_and(|until| now < until) {
            return;
        }
        self.slow_until = None;
        self.slowdown = (self.slowdown * RECOVERY).max(1.0);
    }

    /// Until when nothing is admitted because the upstream asked; `None` when it did not.
    pub fn slow_until(&self) -> Option<Time> {
        self.slow_until
    }

    /// How many times slower than configured the source is asked at present; 1 when it is well.
    pub fn slowdown(&self) -> f64 {
        self.slowdown
    }

    fn slowed_step(&self) -> Span {
        Span((self.step.0 as f64 * self.slowdown).ceil() as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(requests_per_second: f64, burst: u32, min_gap: Span) -> Limits {
        Limits { requests_per_second, burst, min_gap, ..Limits::default() }
    }

    /// Asks as soon as allowed, `count` times; the moments of admission.
    fn drain(limiter: &mut Limiter, mut now: Time, count: usize) -> Vec<Time> {
        let mut admitted = Vec::new();
        while admitted.len() < count {
            match limiter.admit(now) {
                Ok(()) => admitted.push(now),
                Err(later) => now = later,
            }
        }
        admitted
    }

    fn ms(times: &[Time]) -> Vec<i64> {
        times.iter().map(|time| time.us() / 1_000 - 1_000_000).collect()
    }

    const START: Time = Time::from_secs(1_000);

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate_binds() {
        let mut limiter = Limiter::new(&limits(5.0, 3, Span::ZERO));
        assert_eq!(ms(&drain(&mut limiter, START, 6)), [0, 0, 0, 200, 400, 600]);
        assert_eq!(ms(&drain(&mut limiter, START + Span::secs(10), 4)), [10_000, 10_000, 10_000, 10_200]);
    }

    #[test]
    fn the_minimum_gap_holds_within_a_burst() {
        let mut limiter = Limiter::new(&limits(1_000.0, 10, Span::ms(5)));
        assert_eq!(ms(&drain(&mut limiter, START, 4)), [0, 5, 10, 15]);
    }

    #[test]
    fn a_complaint_is_honoured_slows_the_source_and_is_recovered_from() {
        let mut limiter = Limiter::new(&limits(5.0, 3, Span::ZERO));
        limiter.penalise(START, Some(Span::secs(30)));
        limiter.penalise(START + Span::ms(20), None);
        assert_eq!(limiter.slowdown(), 2.0, "complaints of requests in flight together are one");
        assert_eq!(limiter.admit(START), Err(START + Span::secs(30)));
        limiter.reward(START + Span::secs(1));
        assert_eq!(limiter.slowdown(), 2.0, "an answer that was on its way proves nothing");

        let later = drain(&mut limiter, START, 3);
        assert_eq!(ms(&later), [30_000, 30_400, 30_800], "half as fast, without a burst");
        for _ in 0..4 {
            limiter.reward(START + Span::secs(31));
        }
        assert_eq!((limiter.slowdown(), limiter.slow_until()), (1.0, None));
        assert_eq!(ms(&drain(&mut limiter, START + Span::secs(40), 4)), [40_000, 40_000, 40_000, 40_200]);
    }

    #[test]
    fn complaints_without_end_have_a_limit() {
        let mut limiter = Limiter::new(&limits(1.0, 1, Span::ZERO));
        for n in 0..100 {
            limiter.penalise(START + Span::secs(2 * n), None);
        }
        assert_eq!(limiter.slowdown(), 64.0);
    }

    #[test]
    fn raised_limits_and_a_clock_set_back_leave_no_debt() {
        let mut limiter = Limiter::new(&limits(1.0 / 3_600.0, 1, Span::ZERO));
        assert_eq!(limiter.admit(START), Ok(()));
        assert_eq!(limiter.admit(START), Err(START + Span::hours(1)));
        limiter.set(&limits(10.0, 1, Span::ZERO));
        assert_eq!(limiter.admit(START), Err(START + Span::ms(100)));
        let yesterday = START - Span::hours(24);
        assert!(limiter.admit(yesterday).is_err_and(|later| later <= yesterday + Span::ms(100)));
    }

    #[test]
    fn a_part_that_grows_begins_empty() {
        let mut limiter = Limiter::new(&limits(10.0, 2, Span::ZERO));
        assert_eq!(ms(&drain(&mut limiter, START, 2)), [0, 0]);
        limiter.share(&limits(20.0, 6, Span::ZERO), START);
        assert_eq!(
            ms(&drain(&mut limiter, START, 2)),
            [50, 100],
            "faster, but no burst that others may have had"
        );
        limiter.share(&limits(10.0, 1, Span::ZERO), START + Span::secs(9));
        assert_eq!(ms(&drain(&mut limiter, START + Span::secs(9), 2)), [9_000, 9_100]);
        let mut newcomer = Limiter::new(&limits(10.0, 3, Span::ms(500)));
        newcomer.begin_empty(START);
        assert_eq!(ms(&drain(&mut newcomer, START, 2)), [500, 1_000], "the gap counts from the start");
    }

    #[test]
    fn no_rate_at_all_and_no_limit_at_all() {
        let mut stopped = Limiter::new(&limits(0.0, 1, Span::ZERO));
        assert_eq!(stopped.admit(START), Ok(()));
        assert_eq!(stopped.admit(START), Err(START + Span::hours(24)));
        let mut free = Limiter::new(&limits(f64::INFINITY, 1, Span::ZERO));
        assert!((0..1_000).all(|_| free.admit(START) == Ok(())));
    }

    proptest! {
        #[test]
        fn no_window_holds_more_than_the_burst_and_its_rate(
            rate in 0.5_f64..200.0,
            burst in 1_u32..20,
            gap_ms in 0_i64..20,
            steps in prop::collection::vec((0_i64..400_000, 0_u8..20), 1..300),
        ) {
            let gap = Span::ms(gap_ms);
            let mut limiter = Limiter::new(&limits(rate, burst, gap));
            let (mut now, mut admitted) = (START, Vec::new());
            for (pause, what) in steps {
                now += Span::us(if what < 10 { pause / 100 } else { pause });
                match what {
                    0 => limiter.penalise(now, Some(Span::ms(50))),
                    1..4 => limiter.reward(now),
                    _ => match limiter.admit(now) {
                        Ok(()) => admitted.push(now),
                        Err(later) => prop_assert!(later > now),
                    },
                }
            }
            for (index, &from) in admitted.iter().enumerate() {
                for (more, &to) in admitted[index..].iter().enumerate() {
                    let most = f64::from(burst) + rate * (to - from).as_secs_f64() + 1e-6;
                    prop_assert!((more + 1) as f64 <= most, "{} from {from} to {to}", more + 1);
                }
            }
            prop_assert!(admitted.windows(2).all(|pair| pair[1] - pair[0] >= gap));
        }
    }
}
