//! Whatever several targets see, in whatever order, a record has as many holders as targets that hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use stakeout_store::Effect;
use stakeout_store::conformance::story::{Poll, World};
use stakeout_store::sqlite::SqliteStore;

const TARGETS: [&str; 3] = ["a", "b", "c"];
const RECORDS: [&str; 4] = ["w", "x", "y", "z"];

/// What each target holds, by the plainest means.
#[derive(Default)]
struct Model {
    held: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Model {
    fn holders(&self, record: &str) -> usize {
        self.held.values().filter(|held| held.contains(record)).count()
    }

    /// The target now sees these; answers what appeared and what vanished.
    fn see(
        &mut self,
        target: &str,
        seen: BTreeSet<&'static str>,
    ) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
        let present =
            |model: &Model| RECORDS.into_iter().filter(|r| model.holders(r) > 0).collect::<BTreeSet<_>>();
        let before = present(self);
        self.held.insert(target.to_owned(), seen);
        let now = present(self);
        (&now - &before, &before - &now)
    }
}

async fn play(steps: Vec<(usize, u8, i64)>) {
    let world = World::with(Arc::new(SqliteStore::in_memory().expect("opens")), &TARGETS).await;
    let mut model = Model::default();
    for (n, (target, mask, price)) in steps.into_iter().enumerate() {
        let now = n as i64 * 100;
        let claims = world.claim(now).await;
        let claim = claims.iter().find(|claim| claim.spec.key == TARGETS[target]).expect("all are due");
        let seen: BTreeSet<&'static str> = RECORDS
            .into_iter()
            .enumerate()
            .filter(|(i, _)| mask & (1 << i) != 0)
            .map(|(_, name)| name)
            .collect();
        let prices: Vec<(&str, i64)> = seen.iter().map(|name| (*name, price)).collect();
        let mut poll = Poll::of(claim, now).sees(claim, &prices);
        for name in RECORDS {
            poll = poll.tells(claim, "appeared", name, Effect::Appeared).tells(
                claim,
                "vanished",
                name,
                Effect::Vanished,
            );
        }
        let events = world.done(poll).await.events;
        let (appeared, vanished) = model.see(TARGETS[target], seen);
        let told = |rule: &str| -> BTreeSet<&str> {
            events.iter().filter(|e| e.rule == rule).map(|e| e.subject_key.as_str()).collect()
        };
        assert_eq!((told("appeared"), told("vanished")), (appeared, vanished), "step {n}");
        for name in RECORDS {
            let stored = world.record(name).await;
            assert_eq!(
                stored.as_ref().map_or(0, |r| r.holders as usize),
                model.holders(name),
                "step {n}, {name}"
            );
            assert!(stored.is_none_or(|r| (r.holders == 0) == r.gone.is_some()), "step {n}, {name}");
        }
        let other: Vec<_> =
            claims.iter().filter(|c| c.target != claim.target).map(|c| (c.target, c.fence)).collect();
        world.store.release(&other).await.expect("release");
    }
    world.roots(&[]).await;
    for name in RECORDS {
        assert_eq!(world.record(name).await.map_or(0, |r| r.holders), 0, "nobody is left to hold {name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn holders_are_the_targets_that_hold(steps in prop::collection::vec((0..3_usize, 0..16_u8, 0..3_i64), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        runtime.block_on(play(steps));
    }
}
