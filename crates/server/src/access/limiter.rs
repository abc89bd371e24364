//! How often an address may be wrong.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that are forgiven at once, and how long one stays remembered.
const TRIES: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses remembered; beyond it the stalest is forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// Counts failures by address.
#[derive(Default)]
pub(super) struct Limiter(Mutex<HashMap<IpAddr, Vec<Instant>>>);

/// Whoever has an address of version 6 has all of its network, so the network counts as one.
fn household(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64))),
    }
}

impl Limiter {
    /// Begins a try, or says in how many seconds one may be. It counts as a failure until it is [`forgiven`]: of many
    /// at once no more are answered than one after the other.
    ///
    /// [`forgiven`]: Limiter::forgive
    pub(super) fn try_once(&self, peer: IpAddr, now: Instant) -> Result<(), u64> {
        let peer = household(peer);
        let mut failures = self.failures();
        if failures.len() >= ADDRESSES_MAX && !failures.contains_key(&peer) {
            let stalest =
                failures.iter().min_by_key(|(_, times)| times.last().copied()).map(|(peer, _)| *peer);
            stalest.map(|peer| failures.remove(&peer));
        }
        let times = failures.entry(peer).or_default();
        times.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        match times.first().filter(|_| times.len() >= TRIES) {
            Some(first) => {
                let left = WINDOW.saturating_sub(now.saturating_duration_since(*first));
                Err(left.as_secs() + 1)
            }
            None => {
                times.push(now);
                Ok(())
            }
        }
    }

    /// Takes a try back that began at this moment: the token was right.
    pub(super) fn forgive(&self, peer: IpAddr, began: Instant) {
        let peer = household(peer);
        let mut failures = self.failures();
        let Some(times) = failures.get_mut(&peer) else { return };
        if let Some(at) = times.iter().position(|at| *at == began) {
            times.remove(at);
        }
        if times.is_empty() {
            failures.remove(&peer);
        }
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<IpAddr, Vec<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            assert_eq!(limiter.try_once(peer, begin + Duration::from_secs(n)), Ok(()));
        }
        let later = begin + Duration::from_secs(10);
        assert_eq!(limiter.try_once(peer, later), Err(51));
        assert_eq!(limiter.try_once(other, later), Ok(()));
        assert_eq!(limiter.try_once(peer, begin + WINDOW), Ok(()), "one of them is forgotten");
    }

    #[test]
    fn a_try_that_was_right_is_taken_back() {
        let limiter = Limiter::default();
        let (peer, now) = (IpAddr::from([10, 0, 0, 1]), Instant::now());
        for _ in 0..3 * TRIES {
            assert_eq!(limiter.try_once(peer, now), Ok(()));
            limiter.forgive(peer, now);
        }
        assert!(limiter.failures().is_empty(), "nothing is remembered of it");
    }

    #[test]
    fn a_network_of_version_6_counts_as_one() {
        let limiter = Limiter::default();
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let now = Instant::now();
        for n in 0..TRIES {
            assert_eq!(limiter.try_once(address(&format!("2001:db8:0:1:{n}::7")), now), Ok(()));
        }
        assert!(limiter.try_once(address("2001:db8:0:1:ffff::1"), now).is_err(), "the same network");
        assert_eq!(limiter.try_once(address("2001:db8:0:2::1"), now), Ok(()), "its neighbour");
        for _ in 0..TRIES {
            assert_eq!(limiter.try_once(address("10.0.0.1"), now), Ok(()));
        }
        assert!(limiter.try_once(address("::ffff:10.0.0.1"), now).is_err(), "the same, written otherwise");
        assert_eq!(limiter.try_once(address("::ffff:10.0.0.2"), now), Ok(()));
    }
}
