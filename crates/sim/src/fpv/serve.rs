//! The simulated upstream as a real server on loopback.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stakeout_core::Time;

use super::upstream::{Reply, Upstream};
use crate::act::Act;
use crate::loopback::Loopback;

/// How often the server looks whether the program is running.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A server of the upstream, stopped when dropped. Its traffic is counted by the [`Loopback`] it derefs to.
///
/// Requests are served one by one: with a latency, a second one waits until the first has its answer. It looks every
/// 5 ms whether the program is running, and refuses connections while it is not.
pub struct Server {
    gate: Arc<Gate>,
    watch: Option<thread::JoinHandle<()>>,
}

struct Gate {
    loopback: Loopback,
    upstream: Arc<Upstream>,
    now: Arc<dyn Fn() -> Time + Send + Sync>,
    refusing: Mutex<bool>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

/// Serves the upstream at the time that `now` tells: real, scaled or standing still.
///
/// # Panics
/// When the machine has no free port on loopback or no thread.
pub fn serve(upstream: Arc<Upstream>, now: impl Fn() -> Time + Send + Sync + 'static) -> Server {
    let now: Arc<dyn Fn() -> Time + Send + Sync> = Arc::new(now);
    let loopback = Loopback::start({
        let (upstream, now, queue) = (Arc::clone(&upstream), Arc::clone(&now), Mutex::new(Instant::now()));
        move |seen| {
            let act = match seen.method.as_str() {
                "GET" => upstream.answer(&seen.path, now()).into(),
                // The real one's handler throws.
                _ => Act::Reset,
            };
            match upstream.latency().to_std() {
                Duration::ZERO => act,
                latency => act.after_ms(wait_ms(&queue, latency)),
            }
        }
    });
    let (refusing, stopped) = (Mutex::new(false), Mutex::new(false));
    let gate = Arc::new(Gate { loopback, upstream, now, refusing, stopped, stop: Condvar::new() });
    gate.settle();
    let watched = Arc::clone(&gate);
    let watch = thread::Builder::new()
        .name("upstream-gate".to_owned())
        .spawn(move || watched.keep())
        .expect("a thread must start because the gate lives on it");
    Server { gate, watch: Some(watch) }
}

impl Server {
    /// Refuses or takes connections as is right now, without waiting for the next look.
    pub fn settle(&self) {
        self.gate.settle();
    }
}

impl Deref for Server {
    type Target = Loopback;
    fn deref(&self) -> &Loopback {
        &self.gate.loopback
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        *self.gate.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.gate.stop.notify_all();
        if let Some(watch) = self.watch.take() {
            // One that panicked has already printed why.
            let _ = watch.join();
        }
    }
}

impl Gate {
    fn settle(&self) {
        // Held while it changes, so that two who settle at once agree.
        let mut refusing = self.refusing.lock().unwrap_or_else(PoisonError::into_inner);
        let off = self.upstream.event().truth().is_off((self.now)());
        if off != *refusing {
            if off {
                self.loopback.pause()
            } else {
                self.loopback.resume()
            }
            *refusing = off;
        }
    }

    fn keep(&self) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            self.settle();
            let waited = self.stop.wait_timeout(stopped, LOOK_EVERY);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How long this request waits for those before it and for itself.
fn wait_ms(queue: &Mutex<Instant>, latency: Duration) -> u64 {
    let mut free_at = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    *free_at = (*free_at).max(now) + latency;
    let wait = *free_at - now;
    wait.as_micros().div_ceil(1_000) as u64
}

impl From<Reply> for Act {
    fn from(reply: Reply) -> Act {
        match reply {
            Reply::Answer(answer) => {
                Act::Answer { status: answer.status, headers: answer.headers, body: answer.body }
            }
            // A connection taken just before the program went away.
            Reply::Reset | Reply::Refused => Act::Reset,
            Reply::Timeout => Act::Hang,
        }
    }
}
