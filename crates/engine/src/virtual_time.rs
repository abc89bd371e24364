//! Virtual time: it moves only when nobody has anything left to do, so a simulated day is as exact as it is fast.
//!
//! The engine runs unchanged on a single-threaded tokio runtime. Whenever that runtime is about to park its thread,
//! no task can run. If then no work is outstanding elsewhere (a fetch, a commit, a delivery: whoever does one holds
//! a [`Busy`]), the system is quiescent: first those who wait for quiescence go on (the committer, with its batch
//! in a fixed order), and when there are none, time jumps to the earliest sleeper. The order of everything follows
//! from the seed, not from the machine's load.
//!
//! Some work can bring nothing before a moment that is known (a commit: its target is due again then). Whoever waits for it
//! holds a `NotBeyond`: time may pass meanwhile, but only up to there, so nobody can tell how long it took. When it gets
//! there, whoever has put that work off is told to do it.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};

use stakeout_core::Time;
use tokio::runtime::Runtime;

use crate::clock::Clock;

type Hurry = Box<dyn Fn() + Send + Sync>;

pub(crate) struct VirtualTime {
    state: Mutex<State>,
    /// What is done when time has to wait for work that is under way.
    held_up: Mutex<Vec<Hurry>>,
}

struct State {
    now: Time,
    outstanding: usize,
    /// Where time stops for the sake of work that is under way, and for how much of it.
    stops: BTreeMap<Time, usize>,
    sleepers: BinaryHeap<Reverse<Sleeper>>,
    /// Tasks that wait for quiescence, in the order they asked.
    quiet: Vec<Waiter>,
    /// Counts wake-ups for quiescence, so that a waiter knows whether its own came.
    quiet_round: u64,
    order: u64,
}

struct Sleeper {
    at: Time,
    order: u64,
    waiter: Waiter,
}

/// Whom to wake, if anybody still waits: waking a task that was stopped meanwhile moves nothing, and nothing would ever
/// move again.
struct Waiter {
    waker: Waker,
    waits: Weak<()>,
}

impl Waiter {
    fn new(context: &Context<'_>, waits: &Arc<()>) -> Waiter {
        Waiter { waker: context.waker().clone(), waits: Arc::downgrade(waits) }
    }

    fn is_gone(&self) -> bool {
        self.waits.strong_count() == 0
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Sleeper) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Sleeper {}
impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Sleeper) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sleeper {
    fn cmp(&self, other: &Sleeper) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Outstanding work: while one of these lives, virtual time stands still.
pub struct Busy(Arc<VirtualTime>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.state().outstanding -= 1;
    }
}

/// Work that brings nothing before a moment: while one of these lives, virtual time does not reach it.
pub(crate) struct NotBeyond {
    time: Arc<VirtualTime>,
    stop: Time,
}

impl Drop for NotBeyond {
    fn drop(&mut self) {
        if let Entry::Occupied(mut work) = self.time.state().stops.entry(self.stop) {
            *work.get_mut() -= 1;
            if *work.get() == 0 {
                work.remove();
            }
        }
    }
}

/// A single-threaded runtime whose clock stands at `start` and moves only when everything is at rest.
pub fn virtual_runtime(start: Time) -> std::io::Result<(Runtime, Clock)> {
    let state = Mutex::new(State {
        now: start,
        outstanding: 0,
        stops: BTreeMap::new(),
        sleepers: BinaryHeap::new(),
        quiet: Vec::new(),
        quiet_round: 0,
        order: 0,
    });
    let time = Arc::new(VirtualTime { state, held_up: Mutex::default() });
    let at_rest = Arc::clone(&time);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || at_rest.advance())
        .build()?;
    Ok((runtime, Clock::virtual_time(time)))
}

impl VirtualTime {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("never poisoned, because nothing panics while it is held")
    }

    fn hurries(&self) -> MutexGuard<'_, Vec<Hurry>> {
        self.held_up.lock().expect("never poisoned, because nothing panics while it is held")
    }

    pub(crate) fn now(&self) -> Time {
        self.state().now
    }

    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.state().outstanding += 1;
        Busy(Arc::clone(self))
    }

    pub(crate) fn when_held_up(&self, hurry: impl Fn() + Send + Sync + 'static) {
        self.hurries().push(Box::new(hurry));
    }

    pub(crate) fn not_beyond(self: &Arc<Self>, stop: Time) -> NotBeyond {
        *self.state().stops.entry(stop).or_default() += 1;
        NotBeyond { time: Arc::clone(self), stop }
    }

    pub(crate) async fn sleep_until(&self, at: Time) {
        let waits = Arc::new(());
        poll_fn(|context| {
            let mut state = self.state();
            if state.now >= at {
                return Poll::Ready(());
            }
            // A sleeper that is polled again for another reason (a select) leaves its older waker behind: one
            // spurious wake-up, no harm.
            state.order += 1;
            let order = state.order;
            state.sleepers.push(Reverse(Sleeper { at, order, waiter: Waiter::new(context, &waits) }));
            Poll::Pending
        })
        .await;
    }

    pub(crate) async fn quiescence(&self) {
        let waits = Arc::new(());
        let mut asked_in = None;
        poll_fn(|context| {
            let mut state = self.state();
            match asked_in {
                Some(round) if state.quiet_round > round => Poll::Ready(()),
                _ => {
                    asked_in = Some(state.quiet_round);
                    state.quiet.push(Waiter::new(context, &waits));
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Called when no task can run.
    fn advance(&self) {
        let mut state = self.state();
        if state.outstanding > 0 {
            return;
        }
        state.quiet.retain(|waiter| !waiter.is_gone());
        if !state.quiet.is_empty() {
            state.quiet_round += 1;
            let waiting = std::mem::take(&mut state.quiet);
            drop(state);
            waiting.into_iter().for_each(|waiter| waiter.waker.wake());
            return;
        }
        while state.sleepers.peek().is_some_and(|Reverse(first)| first.waiter.is_gone()) {
            state.sleepers.pop();
        }
        // Also when nobody sleeps any more: at the end of a day somebody may still wait for the last commit.
        let stop = state.stops.first_key_value().map(|(stop, _)| *stop);
        let next = state.sleepers.peek().map(|Reverse(first)| first.at);
        if stop.is_some_and(|stop| next.is_none_or(|next| next >= stop)) {
            drop(state);
            self.hurries().iter().for_each(|hurry| hurry());
            return;
        }
        let Some(Reverse(first)) = state.sleepers.pop() else { return };
        state.now = state.now.max(first.at);
        let mut due = vec![first.waiter.waker];
        while state.sleepers.peek().is_some_and(|Reverse(next)| next.at <= state.now) {
            due.extend(state.sleepers.pop().map(|Reverse(sleeper)| sleeper.waiter.waker));
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stakeout_core::Span;

    /// Real work on another thread; its duration must not show in virtual time.
    async fn real_work() {
        let (done, wait) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let sum: u64 = (0..2_000_000_u64).fold(0, |a, b| a ^ b.wrapping_mul(31));
            done.send(sum).expect("receiver lives");
        });
        wait.await.expect("work");
    }

    #[test]
    fn those_who_were_stopped_hold_up_nobody() {
        let start = Time::from_secs(1_000);
        let (runtime, clock) = virtual_runtime(start).expect("runtime");
        runtime.block_on(async {
            let sleeper = tokio::spawn({
                let clock = clock.clone();
                async move { clock.sleep_until(start + Span::secs(5)).await }
            });
            let listener = tokio::spawn({
                let clock = clock.clone();
                async move {
                    let _still = clock.busy();
                    clock.quiescence().await;
                }
            });
            tokio::task::yield_now().await;
            for stopped in [sleeper, listener] {
                stopped.abort();
                let _ = stopped.await;
            }
            clock.sleep_until(start + Span::secs(10)).await;
            assert_eq!(clock.now(), start + Span::secs(10));
        });
    }

    #[test]
    fn a_day_passes_at_once_and_in_order() {
        let start = Time::from_secs(1_000);
        let (runtime, clock) = virtual_runtime(start).expect("runtime");
        let log: Arc<Mutex<Vec<(i64, &str)>>> = Arc::default();
        runtime.block_on(async {
            let sleeper = |name: &'static str, hours: i64| {
                let (clock, log) = (clock.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    for n in 1..=2 {
                        clock.sleep_until(start + Span::hours(hours * n)).await;
                        log.lock().expect("lock").push(((clock.now() - start).as_us() / 3_600_000_000, name));
                    }
                })
            };
            let (a, b) = (sleeper("a", 10), sleeper("b", 7));
            a.await.expect("a");
            b.await.expect("b");
        });
        assert_eq!(*log.lock().expect("lock"), [(7, "b"), (10, "a"), (14, "b"), (20, "a")]);
    }

    #[test]
    fn time_passes_up_to_where_work_may_bring_something_and_no_further() {
        let start = Time::from_secs(0);
        let (runtime, clock) = virtual_runtime(start).expect("runtime");
        let log: Arc<Mutex<Vec<(&str, i64)>>> = Arc::default();
        runtime.block_on(async {
            let sleeper = |name: &'static str, secs: i64| {
                let (clock, log) = (clock.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    clock.sleep_until(start + Span::secs(secs)).await;
                    log.lock().expect("lock").push((name, (clock.now() - start).as_us() / 1_000_000));
                })
            };
            let (before, there) = (sleeper("before", 4), sleeper("there", 5));
            let (nearer, _further) =
                (clock.not_beyond(start + Span::secs(5)), clock.not_beyond(start + Span::secs(8)));
            before.await.expect("nothing holds it up");
            real_work().await;
            log.lock().expect("lock").push(("work", (clock.now() - start).as_us() / 1_000_000));
            drop(nearer);
            there.await.expect("it is done");
        });
        assert_eq!(*log.lock().expect("lock"), [("before", 4), ("work", 4), ("there", 5)]);
    }

    /// A commit that was put off at the end of a day is written, though nobody sleeps any more.
    #[test]
    fn whoever_has_put_work_off_does_it_when_time_waits_for_it_and_when_nobody_sleeps() {
        let start = Time::from_secs(0);
        let (runtime, clock) = virtual_runtime(start).expect("runtime");
        runtime.block_on(async {
            for sleeps in [true, false] {
                let (done, wait) = tokio::sync::oneshot::channel();
                let done = Mutex::new(Some(done));
                clock.when_held_up(move || {
                    let waiting = done.lock().expect("lock").take();
                    waiting.into_iter().for_each(|done| done.send(()).expect("somebody waits"));
                });
                let stop = clock.now() + Span::secs(1);
                let not_beyond = clock.not_beyond(stop);
                let sleeper = clock.clone();
                let sleeper = sleeps.then(|| tokio::spawn(async move { sleeper.sleep_until(stop).await }));
                wait.await.expect("it is done");
                assert!(clock.now() < stop);
                drop(not_beyond);
                if let Some(sleeper) = sleeper {
                    sleeper.await.expect("time goes on");
                }
            }
        });
    }

    #[test]
    fn time_stands_still_while_work_is_outstanding() {
        let start = Time::from_secs(0);
        let (runtime, clock) = virtual_runtime(start).expect("runtime");
        let finished_at = runtime.block_on(async {
            let work = clock.busy();
            let sleeper = {
                let clock = clock.clone();
                tokio::spawn(async move { clock.sleep_until(start + Span::secs(5)).await })
            };
            real_work().await;
            let finished_at = clock.now();
            drop(work);
            sleeper.await.expect("sleeper");
            assert_eq!(clock.now(), start + Span::secs(5));
            finished_at
        });
        assert_eq!(finished_at, start);
    }
}
