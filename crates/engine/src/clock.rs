//! Engine time: the system's, a faster one, or one that a simulation turns by hand.
//!
//! Due times, leases, quiet times, backoff and Retry-After run in engine time. Time limits of real I/O do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_core::{Span, Time};

use crate::virtual_time::{Busy, NotBeyond, VirtualTime};

/// Where time comes from. Cheap to clone; clones share the clock.
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    /// The wall clock plus what it is off from the clock that all nodes go by; tests step it, too.
    System { offset_us: Arc<AtomicI64> },
    /// Runs `speed` times as fast as real time from a given moment on.
    Scaled { started: Instant, origin: Time, speed: f64 },
    /// Stands still until nobody has anything left to do.
    Virtual(Arc<VirtualTime>),
}

/// A sleep is cut into pieces of this length, so that a step of the wall clock is noticed soon.
const LONGEST_NAP: Duration = Duration::from_millis(500);

impl Clock {
    /// The system's wall clock.
    pub fn system() -> Clock {
        Clock(Kind::System { offset_us: Arc::default() })
    }

    /// The wall clock now, running `speed` times as fast from here on.
    pub fn scaled(speed: f64) -> Clock {
        Clock::scaled_from(wall(), speed)
    }

    /// As [`Clock::scaled`], beginning at `origin`.
    pub fn scaled_from(origin: Time, speed: f64) -> Clock {
        assert!(speed.is_finite() && speed > 0.0, "a clock's speed is a positive number");
        Clock(Kind::Scaled { started: Instant::now(), origin, speed })
    }

    pub(crate) fn virtual_time(time: Arc<VirtualTime>) -> Clock {
        Clock(Kind::Virtual(time))
    }

    /// Now, in engine time.
    pub fn now(&self) -> Time {
        match &self.0 {
            Kind::System { offset_us } => wall() + Span(offset_us.load(Ordering::Relaxed)),
            Kind::Scaled { started, origin, speed } => {
                *origin + Span::from_secs_f64(started.elapsed().as_secs_f64() * speed)
            }
            Kind::Virtual(time) => time.now(),
        }
    }

    /// Returns at `time` or a little later. When the clock is stepped meanwhile, it may return before: a clock that
    /// is set back makes nobody sleep longer than they meant to.
    pub async fn sleep_until(&self, time: Time) {
        if let Kind::Virtual(clock) = &self.0 {
            return clock.sleep_until(time).await;
        }
        let latest = Instant::now() + self.real(time - self.now());
        loop {
            let left = self.real(time - self.now()).min(latest.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LONGEST_NAP)).await;
        }
    }

    /// How long `span` of engine time takes in real time. Virtual time takes none, so limits on real I/O are
    /// left as they are.
    pub fn real(&self, span: Span) -> Duration {
        match &self.0 {
            Kind::Scaled { speed, .. } => Duration::from_secs_f64(span.to_std().as_secs_f64() / speed),
            Kind::System { .. } | Kind::Virtual(_) => span.to_std(),
        }
    }

    /// How many times as fast as life it runs; `None` where it stands still and jumps.
    pub fn speed(&self) -> Option<f64> {
        match &self.0 {
            Kind::System { .. } => Some(1.0),
            Kind::Scaled { speed, .. } => Some(*speed),
            Kind::Virtual(_) => None,
        }
    }

    /// Whether time stands still while there is work.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Kind::Virtual(_))
    }

    /// Steps the system clock, as an administrator or a broken time server would.
    pub fn step(&self, by: Span) {
        if let Kind::System { offset_us } = &self.0 {
            offset_us.fetch_add(by.as_us(), Ordering::Relaxed);
        }
    }

    /// Whether it can be set by another clock.
    pub(crate) fn can_follow(&self) -> bool {
        matches!(self.0, Kind::System { .. })
    }

    /// Marks work as outstanding: virtual time stands still until the guard is dropped.
    pub fn busy(&self) -> Option<Busy> {
        match &self.0 {
            Kind::Virtual(time) => Some(time.busy()),
            Kind::System { .. } | Kind::Scaled { .. } => None,
        }
    }

    /// Marks work as outstanding that brings nothing before `stop`: virtual time does not reach it until the guard is
    /// dropped.
    pub(crate) fn not_beyond(&self, stop: Time) -> Option<NotBeyond> {
        match &self.0 {
            Kind::Virtual(time) => Some(time.not_beyond(stop)),
            Kind::System { .. } | Kind::Scaled { .. } => None,
        }
    }

    /// Does this whenever virtual time has to wait for work that is marked so.
    pub(crate) fn when_held_up(&self, hurry: impl Fn() + Send + Sync + 'static) {
        if let Kind::Virtual(time) = &self.0 {
            time.when_held_up(hurry);
        }
    }

    /// In virtual time, returns when no work is outstanding and no task can run; at once otherwise.
    pub(crate) async fn quiescence(&self) {
        if let Kind::Virtual(time) = &self.0 {
            time.quiescence().await;
        }
    }
}

fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Notices when the wall clock was stepped: it then disagrees with the monotonic one.
pub(crate) struct StepDetector {
    clock: Clock,
    wall: Time,
    monotonic: Instant,
    least: Span,
}

/// Smaller disagreements are time servers slewing, scheduling delays or suspended laptops waking up.
pub(crate) const STEP: Span = Span::secs(2);

/// Where another clock counts, there is no harm in asking it once too often.
const DOUBT: Span = Span::ms(20);

impl StepDetector {
    /// Watches a clock; `follows` says that it goes by another one.
    pub(crate) fn new(clock: &Clock, follows: bool) -> StepDetector {
        let least = if follows { DOUBT } else { STEP };
        StepDetector { clock: clock.clone(), wall: clock.now(), monotonic: Instant::now(), least }
    }

    /// By how much the clock was stepped since the last call, if it was.
    pub(crate) fn check(&mut self) -> Option<Span> {
        if !matches!(self.clock.0, Kind::System { .. }) {
            return None;
        }
        let (wall, monotonic) = self.read();
        let step = (wall - self.wall) - Span::from_std(monotonic - self.monotonic);
        (self.wall, self.monotonic) = (wall, monotonic);
        (step.as_us().abs() > self.least.as_us()).then_some(step)
    }

    /// Both clocks at one moment: whoever is held up between the two looks again.
    fn read(&self) -> (Time, Instant) {
        let mut tries = 0;
        loop {
            let (before, wall, after) = (Instant::now(), self.clock.now(), Instant::now());
            tries += 1;
            if after - before < Duration::from_millis(1) || tries == 4 {
                return (wall, before);
            }
        }
    }

    /// The clock was moved on purpose: that is no step.
    pub(crate) fn was_moved(&mut self, by: Span) {
        self.wall += by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_noticed_unless_it_was_meant() {
        let clock = Clock::system();
        let (mut alone, mut follower) = (StepDetector::new(&clock, false), StepDetector::new(&clock, true));
        clock.step(-Span::hours(1));
        follower.was_moved(-Span::hours(1));
        assert!(alone.check().is_some_and(|step| step < -Span::mins(59)));
        assert!(follower.check().is_none_or(|step| step.as_us().abs() < Span::mins(1).as_us()));
        clock.step(-Span::secs(1));
        assert!(follower.check().is_some(), "where another clock counts, a second is a reason to ask it");
    }
}
