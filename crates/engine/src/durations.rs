//! How long requests usually take, by the role of their target.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use stakeout_core::Span;

/// So many requests are remembered per role.
const REMEMBERED: usize = 40;

/// The durations of the newest requests of a source.
#[derive(Default)]
pub(crate) struct Durations(Mutex<BTreeMap<String, VecDeque<Span>>>);

impl Durations {
    /// A request of a target with this role took so long.
    pub(crate) fn note(&self, role: &str, took: Span) {
        let mut roles = self.lock();
        if !roles.contains_key(role) {
            roles.insert(role.to_owned(), VecDeque::with_capacity(REMEMBERED));
        }
        let Some(newest) = roles.get_mut(role) else { return };
        if newest.len() == REMEMBERED {
            newest.pop_front();
        }
        newest.push_back(took);
    }

    /// What 95 of 100 requests of this role do not exceed; nothing known is no time at all.
    pub(crate) fn usual(&self, role: &str) -> Span {
        let mut newest: Vec<Span> = self.lock().get(role).into_iter().flatten().copied().collect();
        newest.sort_unstable();
        let rank = (newest.len() * 95).div_ceil(100);
        newest.get(rank.saturating_sub(1)).copied().unwrap_or(Span::ZERO)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<Span>>> {
        self.0.lock().expect("never poisoned, because nothing panics while it is held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_duration_forgives_one_outlier_in_twenty() {
        let durations = Durations::default();
        assert_eq!(durations.usual("race"), Span::ZERO);
        for ms in [5; 19].into_iter().chain([900]) {
            durations.note("race", Span::ms(ms));
        }
        assert_eq!(durations.usual("race"), Span::ms(5));
        durations.note("race", Span::ms(800));
        durations.note("race", Span::ms(700));
        assert_eq!(durations.usual("race"), Span::ms(800));
        assert_eq!(durations.usual("event"), Span::ZERO);
        for _ in 0..REMEMBERED {
            durations.note("race", Span::ms(7));
        }
        assert_eq!(durations.usual("race"), Span::ms(7), "what is long ago is forgotten");
    }
}
