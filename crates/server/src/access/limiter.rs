//! How often an address may be wrong.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that are forgiven at once, and how long one stays remembered.
const TRIES: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses remembered; beyond it the stalest is forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// Counts failures by address.
#[derive(Default)]
pub(super) struct Limiter(Mutex<HashMap<IpAddr, Vec<Instant>>>);

impl Limiter {
    /// Whether an address may try, or in how many seconds.
    pub(super) fn may_try(&self, peer: IpAddr, now: Instant) -> Result<(), u64> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(times) = failures.get_mut(&peer) else { return Ok(()) };
        times.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        if times.is_empty() {
            failures.remove(&peer);
            return Ok(());
        }
        match times.first().filter(|_| times.len() >= TRIES) {
            Some(first) => {
                let left = WINDOW.saturating_sub(now.saturating_duration_since(*first));
                Err(left.as_secs() + 1)
            }
            None => Ok(()),
        }
    }

    /// Notes a failure.
    pub(super) fn failed(&self, peer: IpAddr, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&peer) {
            let stalest =
                failures.iter().min_by_key(|(_, times)| times.last().copied()).map(|(peer, _)| *peer);
            stalest.map(|peer| failures.remove(&peer));
        }
        failures.entry(peer).or_default().push(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_five_wrong_tokens_an_address_waits_and_the_others_do_not() {
        let limiter = Limiter::default();
        let (peer, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let begin = Instant::now();
        for n in 0..TRIES as u64 {
            let now = begin + Duration::from_secs(n);
            assert_eq!(limiter.may_try(peer, now), Ok(()));
            limiter.failed(peer, now);
        }
        assert_eq!(limiter.may_try(peer, begin + Duration::from_secs(10)), Err(51));
        assert_eq!(limiter.may_try(other, begin + Duration::from_secs(10)), Ok(()));
        assert_eq!(limiter.may_try(peer, begin + WINDOW), Ok(()), "one of them is forgotten");
    }
}
