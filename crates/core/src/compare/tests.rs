use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Field, FieldType, Kind, Record, Scope, Value};

fn kind() -> Arc<Kind> {
    Arc::new(Kind {
        family: "t".into(),
        collection: "things".into(),
        version: 1,
        fields: vec![Field::new("v", FieldType::Int)],
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    })
}

fn group(n: u32) -> Fingerprint {
    Fingerprint(u128::from(n) + 1)
}

/// Things are (id, value); the group is id / 10.
fn observe(things: &[(u32, i64)]) -> Observation {
    let record = |&(id, v): &(u32, i64)| {
        Record::new(&kind(), &[&id.to_string()], vec![Value::Int(v)]).in_group(group(id / 10))
    };
    Observation::complete(things.iter().map(record).collect())
}

fn partial(things: &[(u32, i64)], whole_groups: &[u32]) -> Observation {
    let scope = Scope(whole_groups.iter().map(|g| group(*g)).collect());
    Observation { coverage: Coverage::Partial(scope), ..observe(things) }
}

/// A target that is polled again and again, once a second.
struct Watch {
    snapshot: Snapshot,
    memory: Memory,
    meaning: u64,
    policy: DoubtPolicy,
    refresh: Span,
    now: Time,
}

impl Watch {
    fn new() -> Watch {
        Watch {
            snapshot: Snapshot::default(),
            memory: Memory::default(),
            meaning: 1,
            policy: DoubtPolicy::default(),
            refresh: Span::ZERO,
            now: Time::from_secs(0),
        }
    }

    fn holding(things: &[(u32, i64)]) -> Watch {
        let mut watch = Watch::new();
        assert_eq!(watch.poll(&observe(things)).verdict, Verdict::Baseline);
        watch
    }

    fn poll(&mut self, observation: &Observation) -> Comparison {
        self.now += Span::secs(1);
        let basis = Basis {
            snapshot: &self.snapshot,
            memory: &self.memory,
            meaning: self.meaning,
            policy: self.policy,
            refresh: self.refresh,
            sent: self.now,
            ended: self.now,
        };
        let comparison = compare(&basis, observation);
        if let Some(next) = &comparison.next {
            self.snapshot = next.clone();
        }
        self.memory = comparison.memory.clone();
        comparison
    }

    fn ids(&self) -> usize {
        self.snapshot.len()
    }
}

fn things(ids: std::ops::Range<u32>) -> Vec<(u32, i64)> {
    ids.map(|id| (id, 0)).collect()
}

#[test]
fn the_first_complete_answer_is_the_baseline() {
    let mut watch = Watch::new();
    let first = watch.poll(&observe(&[(1, 1), (2, 2)]));
    assert_eq!((first.verdict, first.added.len()), (Verdict::Baseline, 2));
    assert_eq!(watch.poll(&observe(&[(2, 2), (1, 1)])).verdict, Verdict::Unchanged);
    let third = watch.poll(&observe(&[(1, 1), (2, 3), (4, 4)]));
    assert_eq!(third.verdict, Verdict::Changed);
    assert_eq!(
        (third.added, third.changed, third.removed.len()),
        (vec![Item::Record(2)], vec![Item::Record(1)], 0)
    );
}

#[test]
fn a_partial_first_answer_is_stored_but_is_no_baseline() {
    let mut watch = Watch::new();
    assert_eq!(watch.poll(&partial(&[(1, 1)], &[])).verdict, Verdict::Baseline);
    assert_eq!(watch.memory.meaning, None);
    assert_eq!(watch.poll(&observe(&[(1, 1), (2, 2)])).verdict, Verdict::Baseline);
    assert_eq!(watch.poll(&observe(&[(1, 1)])).verdict, Verdict::Changed);
}

#[test]
fn absence_needs_proof() {
    let held = things(0..4);
    let mut watch = Watch::holding(&held);
    let nothing = Observation { coverage: Coverage::None, ..observe(&[]) };
    assert_eq!(watch.poll(&nothing).verdict, Verdict::Unchanged);
    assert_eq!(watch.poll(&partial(&[(0, 0)], &[])).verdict, Verdict::Unchanged);
    assert_eq!(watch.ids(), 4);
    assert_eq!(watch.poll(&observe(&[(0, 0)])).removed.len(), 3);
}

#[test]
fn a_partial_answer_proves_absence_only_within_its_scope() {
    let mut watch = Watch::holding(&[(10, 0), (11, 0), (20, 0), (30, 0)]);
    let seen = watch.poll(&partial(&[(10, 0)], &[1]));
    assert_eq!(seen.removed.len(), 1, "11 is gone, 20 and 30 were not looked for");
    assert_eq!(watch.ids(), 3);
}

#[test]
fn a_mass_removal_is_doubted_until_a_second_answer_agrees() {
    let held = things(0..10);
    let mut watch = Watch::holding(&held);
    let doubted = watch.poll(&observe(&things(0..2)));
    assert_eq!((doubted.verdict, doubted.removed.len(), watch.ids()), (Verdict::Doubted, 0, 10));
    let agreed = watch.poll(&observe(&things(0..2)));
    assert_eq!((agreed.verdict, agreed.removed.len(), watch.ids()), (Verdict::Changed, 8, 2));
    // Whoever went then may return untold, however many empty answers come first.
    let removals = removals(&watch);
    assert_eq!(removals, [(watch.now, 8)]);
    watch.poll(&observe(&things(0..2)));
    assert_eq!(self::removals(&watch), removals);
}

#[test]
fn a_baseline_is_doubted_like_any_other_answer() {
    let mut watch = Watch::holding(&things(0..10));
    watch.memory.rebaseline = true;
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted);
    assert_eq!(watch.ids(), 10, "one empty answer takes nothing away, even when a new baseline is wanted");
    assert_eq!(watch.poll(&observe(&things(0..10))).verdict, Verdict::Baseline);
    assert_eq!(watch.poll(&observe(&things(0..11))).verdict, Verdict::Changed);
}

#[test]
fn a_doubted_answer_that_was_a_hiccup_leaves_no_trace() {
    let held = things(0..10);
    let mut watch = Watch::holding(&held);
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&observe(&held)).verdict, Verdict::Unchanged);
    assert_eq!(watch.memory.doubt, None);
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted, "the count starts again");
}

#[test]
fn two_bad_answers_of_different_sorts_do_not_confirm_each_other() {
    let mut watch = Watch::holding(&things(0..12));
    assert_eq!(watch.poll(&observe(&things(0..5))).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&observe(&things(7..12))).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&observe(&things(7..12))).verdict, Verdict::Changed);
    assert_eq!(watch.ids(), 5);
}

#[test]
fn confirmation_waits_for_the_upstreams_refresh_time() {
    let mut watch = Watch { refresh: Span::secs(3), ..Watch::holding(&things(0..10)) };
    for _ in 0..3 {
        assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted);
    }
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Changed);
}

#[test]
fn ended_and_reset_records_go_without_doubt() {
    let ended = |mut o: Observation| {
        o.records = o.records.into_iter().map(|r| r.ending(Time::from_secs(2))).collect();
        o
    };
    let mut watch = Watch::new();
    watch.poll(&ended(observe(&things(0..10))));
    assert_eq!(watch.poll(&observe(&[])).removed.len(), 10, "their own time has passed");

    let mut watch = Watch::holding(&things(0..10));
    let reset = Observation { reset_groups: [group(0)].into(), ..observe(&[]) };
    assert_eq!(watch.poll(&reset).removed.len(), 10, "their parent was seen reset");
}

#[test]
fn few_records_are_never_doubted() {
    let mut watch = Watch::holding(&things(0..4));
    assert_eq!(watch.poll(&observe(&[])).removed.len(), 4);
}

#[test]
fn where_emptiness_is_doubted_so_is_the_loss_of_a_few() {
    let policy = DoubtPolicy { emptiness: true, ..DoubtPolicy::default() };
    let mut watch = Watch { policy, ..Watch::holding(&things(0..3)) };
    assert_eq!(watch.poll(&observe(&things(0..1))).removed.len(), 2, "most of a few is no mass");
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted, "nothing at all is");
    assert_eq!(watch.poll(&observe(&things(7..8))).removed.len(), 1, "another in its place is not");
    assert_eq!(watch.poll(&observe(&things(0..1))).removed.len(), 1);
    assert_eq!(watch.poll(&observe(&things(0..1))).verdict, Verdict::Unchanged);
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&observe(&[])).removed.len(), 1, "a second one agrees");
    let after = |span: Span| watch.memory.removals[0].awaits_singly(&policy, watch.now + span);
    assert!(after(Span::mins(14)) && !after(Span::mins(15)), "a few are not waited for very long");
}

#[test]
fn what_went_with_a_mass_is_news_again_when_it_was_away_for_long() {
    let mut watch = Watch::holding(&things(0..20));
    let policy = watch.policy;
    watch.poll(&observe(&[]));
    watch.poll(&observe(&[]));
    let cleared = watch.memory.removals[0].at;
    for _ in 0..SINGLY_AFTER {
        assert!(watch.memory.removals[0].awaits_singly(&policy, cleared + Span::hours(9)), "too few answers");
        watch.poll(&partial(&[], &[]));
        watch.poll(&observe(&[]));
    }
    let removal = watch.memory.removals[0];
    assert!(removal.awaits_singly(&policy, cleared + Span::mins(59)), "too soon");
    assert!(!removal.awaits_singly(&policy, cleared + Span::hours(1)));
    assert_eq!(removals(&watch), [(cleared, 20)], "that there was a mass is not forgotten");
}

#[test]
fn a_group_of_which_nothing_could_be_read_was_not_seen_with_nothing() {
    let but = |groups: &[u32], things: &[(u32, i64)]| {
        let scope = Scope(groups.iter().map(|g| group(*g)).collect());
        Observation { coverage: Coverage::CompleteBut(scope), ..observe(things) }
    };
    let mut watch = Watch::new();
    watch.poll(&but(&[0, 1, 2], &[(1, 1), (31, 1)]));
    assert_eq!(watch.memory.unsure, [group(1), group(2)], "of the first something was shown");
    watch.poll(&partial(&[(1, 1)], &[]));
    assert_eq!(watch.memory.unsure, [group(1), group(2)], "a part changes nothing");
    watch.poll(&observe(&[(1, 1), (31, 1)]));
    assert_eq!(watch.memory.unsure, []);
}

#[test]
fn an_empty_baseline_is_confirmed_where_the_source_asks_for_it() {
    let policy = DoubtPolicy { confirm_empty_baseline: true, ..DoubtPolicy::default() };
    let mut watch = Watch { policy, ..Watch::new() };
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&observe(&[])).verdict, Verdict::Baseline);
    assert_eq!(watch.poll(&observe(&[(1, 1)])).verdict, Verdict::Changed);
}

#[test]
fn a_change_of_meaning_is_a_new_baseline() {
    let mut watch = Watch::holding(&things(0..10));
    watch.meaning = 2;
    assert_eq!(watch.poll(&observe(&things(8..20))).verdict, Verdict::Doubted);
    let new = watch.poll(&observe(&things(8..20)));
    assert_eq!((new.verdict, new.removed.len()), (Verdict::Baseline, 8));
    assert_eq!(watch.poll(&observe(&things(8..21))).verdict, Verdict::Changed);
}

#[test]
fn versions_count_changes_and_never_restart() {
    let mut watch = Watch::holding(&[(1, 1)]);
    assert_eq!(watch.memory.version, 1);
    watch.poll(&observe(&[(1, 1)]));
    assert_eq!(watch.memory.version, 1);
    watch.meaning = 9;
    watch.poll(&observe(&[(1, 2)]));
    assert_eq!(watch.memory.version, 2);
}

#[test]
fn listings_are_compared_like_records() {
    let listing = |keys: &[&str]| Observation {
        targets: Some(keys.iter().map(|k| TargetSpec::new(*k, "race")).collect()),
        ..observe(&[])
    };
    let mut watch = Watch::new();
    let first = watch.poll(&listing(&["a", "b"]));
    assert_eq!(first.added.len(), 2);
    assert!(first.added.contains(&Item::Target(1)));
    let second = watch.poll(&listing(&["b"]));
    assert_eq!(second.removed[0].fingerprint, target_fingerprint("a"));
    assert_eq!(watch.poll(&listing(&["b"])).verdict, Verdict::Unchanged);
}

#[test]
fn the_last_of_equal_identities_counts() {
    let mut watch = Watch::new();
    assert_eq!(watch.poll(&observe(&[(1, 1), (1, 2)])).duplicates, 1);
    assert_eq!(watch.poll(&observe(&[(1, 2)])).verdict, Verdict::Unchanged);
}

proptest! {
    /// The merge finds exactly what maps would find.
    #[test]
    fn merge_equals_the_obvious_way(
        old in proptest::collection::btree_map(0_u32..60, 0_i64..3, 0..40),
        new in proptest::collection::btree_map(0_u32..60, 0_i64..3, 0..40),
    ) {
        let never = DoubtPolicy { at_least: usize::MAX, ..DoubtPolicy::default() };
        let list = |m: &BTreeMap<u32, i64>| m.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
        let mut watch = Watch { policy: never, ..Watch::new() };
        watch.poll(&observe(&list(&old)));
        let got = watch.poll(&observe(&list(&new)));
        prop_assert_eq!(got.added.len(), new.keys().filter(|k| !old.contains_key(k)).count());
        prop_assert_eq!(got.removed.len(), old.keys().filter(|k| !new.contains_key(k)).count());
        prop_assert_eq!(got.changed.len(), new.iter().filter(|(k, v)| old.get(k).is_some_and(|o| o != *v)).count());
        prop_assert_eq!(watch.snapshot, Snapshot::new(observe(&list(&new)).records.iter().map(Entry::of).collect()));
    }

    /// Whatever comes, nothing is removed that the observation does not prove absent.
    #[test]
    fn nothing_is_removed_without_proof(
        held in proptest::collection::btree_map(0_u32..100, 0_i64..3, 0..60),
        seen in proptest::collection::btree_map(0_u32..100, 0_i64..3, 0..60),
        whole in proptest::collection::btree_set(0_u32..10, 0..10),
    ) {
        let list = |m: &BTreeMap<u32, i64>| m.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>();
        let mut watch = Watch::holding(&list(&held));
        let whole: Vec<u32> = whole.into_iter().collect();
        let got = watch.poll(&partial(&list(&seen), &whole));
        for entry in &got.removed {
            prop_assert!(whole.iter().any(|g| group(*g) == entry.group));
        }
        prop_assert!(watch.ids() >= held.len() - got.removed.len());
    }
}

/// Things with companions: a companion (no group) per group, as venues accompany their slots.
fn accompanied(things: &[(u32, i64)], companions: &[u32]) -> Observation {
    let mut observation = observe(things);
    let companion = |n: &u32| Record::new(&kind(), &["companion", &n.to_string()], vec![Value::Null]);
    observation.records.extend(companions.iter().map(companion));
    observation
}

fn companion(n: u32) -> Fingerprint {
    Fingerprint::of("t_things", &["companion", &n.to_string()])
}

fn with_companions() -> Watch {
    let policy = DoubtPolicy { companions: true, confirm_empty_baseline: true, ..DoubtPolicy::default() };
    Watch { policy, ..Watch::new() }
}

#[test]
fn companions_neither_hide_a_mass_removal_nor_make_an_answer_full() {
    let mut watch = with_companions();
    assert_eq!(watch.poll(&accompanied(&[], &[0, 1, 2])).verdict, Verdict::Doubted, "nothing but company");
    assert_eq!(watch.poll(&accompanied(&[], &[0, 1, 2])).verdict, Verdict::Baseline);
    let many: Vec<u32> = (0..50).collect();
    let things: Vec<(u32, i64)> = (0..10).map(|n| (n, 1)).collect();
    assert_eq!(watch.poll(&accompanied(&things, &many)).verdict, Verdict::Changed);
    assert_eq!(
        watch.poll(&accompanied(&[], &many)).verdict,
        Verdict::Doubted,
        "10 of 60, but all that counts"
    );
    assert_eq!(watch.poll(&accompanied(&things, &[0])).verdict, Verdict::Changed, "company may leave");
}

#[test]
fn who_is_in_neither_of_two_answers_that_agree_on_a_mass_removal_has_been_absent_twice() {
    let things: Vec<(u32, i64)> = (0..8).map(|n| (10 * n, 1)).collect();
    let mut watch = with_companions();
    watch.poll(&accompanied(&things, &[1, 2, 3]));
    watch.poll(&accompanied(&things, &[1, 2, 3]));
    assert_eq!(watch.poll(&accompanied(&[], &[3])).verdict, Verdict::Doubted);
    assert_eq!(watch.poll(&accompanied(&[], &[])).verdict, Verdict::Changed);
    assert_eq!(watch.memory.left, [companion(3)], "only the doubted answer still had it");
}

#[test]
fn who_left_is_remembered_for_one_whole_answer() {
    let mut watch = with_companions();
    watch.poll(&accompanied(&[(1, 1)], &[0, 1]));
    assert_eq!((watch.memory.answers, watch.memory.left.as_slice()), (1, &[][..]));
    watch.poll(&accompanied(&[(1, 1)], &[0]));
    assert_eq!((watch.memory.answers, watch.memory.left.as_slice()), (2, &[companion(1)][..]));
    let part = Observation { coverage: Coverage::Partial(Scope::default()), ..accompanied(&[(1, 1)], &[]) };
    watch.poll(&part);
    assert_eq!(watch.memory.left, [companion(1)], "a part proves nothing");
    watch.poll(&accompanied(&[(1, 1)], &[0]));
    assert_eq!(watch.memory.left, []);
    watch.meaning += 1;
    watch.poll(&accompanied(&[(1, 1)], &[0]));
    assert_eq!(watch.memory.answers, 1, "a new baseline begins to count anew");
}

#[test]
fn a_group_that_was_cut_off_loses_nothing_in_an_otherwise_whole_answer() {
    let mut watch = Watch::holding(&[(1, 1), (2, 1), (11, 1), (12, 1)]);
    let cut = Scope([group(0)].into());
    let seen = Observation { coverage: Coverage::CompleteBut(cut), ..observe(&[(1, 1), (11, 1)]) };
    let comparison = watch.poll(&seen);
    let gone: Vec<Fingerprint> = comparison.removed.iter().map(|entry| entry.group).collect();
    assert_eq!((comparison.verdict, gone), (Verdict::Changed, vec![group(1)]));
    assert_eq!(watch.snapshot.len(), 3);
    let baseline = Observation { coverage: Coverage::CompleteBut(Scope::default()), ..observe(&[(1, 1)]) };
    assert_eq!(Watch::new().poll(&baseline).verdict, Verdict::Baseline);
}

#[test]
fn what_is_over_by_itself_needs_no_proof() {
    let mut watch = Watch::new();
    let mut first = observe(&[(1, 1), (2, 1)]);
    first.records[0].ends = Some(Time::from_secs(2));
    watch.poll(&first);
    let comparison = watch.poll(&partial(&[], &[]));
    assert_eq!(comparison.removed.len(), 1, "the one whose time has passed");
    assert_eq!(watch.snapshot.len(), 1);
}

#[test]
fn a_list_seen_in_part_is_another_than_the_same_list_seen_whole() {
    let lists =
        Arc::new(Kind { fields: vec![Field::new("v", FieldType::Int).gathered()], ..(*kind()).clone() });
    let seen = |v: i64, coverage: Coverage| {
        let record = Record::new(&lists, &["a"], vec![Value::Int(v)]).in_group(group(0));
        Observation { coverage, ..Observation::complete(vec![record]) }
    };
    let part = || Coverage::Partial(Scope::default());
    let mut watch = Watch::new();
    assert_eq!(watch.poll(&seen(1, Coverage::Complete)).verdict, Verdict::Baseline);
    assert_eq!(watch.poll(&seen(1, part())).verdict, Verdict::Unchanged, "as it was");
    assert_eq!(watch.poll(&seen(2, part())).verdict, Verdict::Changed);
    assert_eq!(watch.poll(&seen(2, part())).verdict, Verdict::Unchanged, "the same part");
    assert_eq!(watch.poll(&seen(2, Coverage::Complete)).verdict, Verdict::Changed, "now it is all");
    assert_eq!(watch.poll(&seen(2, Coverage::Complete)).verdict, Verdict::Unchanged);
}

/// The removals that are awaited: when, and how many went.
fn removals(watch: &Watch) -> Vec<(Time, u32)> {
    watch.memory.removals.iter().map(|removal| (removal.at, removal.went)).collect()
}

impl Watch {
    /// Shows this until it is believed however much it lacks, and says when that was.
    fn loses_all_but(&mut self, things: &[(u32, i64)]) -> Time {
        assert_eq!(self.poll(&observe(things)).verdict, Verdict::Doubted);
        assert_eq!(self.poll(&observe(things)).verdict, Verdict::Changed);
        self.now
    }

    /// Shows this for so long that what is away then is not awaited any more.
    fn settles(&mut self, things: &[(u32, i64)]) {
        (0..4).for_each(|_| drop(self.poll(&observe(things))));
    }
}

#[test]
fn a_few_that_go_while_a_mass_is_awaited_do_not_make_it_forgotten() {
    let policy = DoubtPolicy { emptiness: true, ..DoubtPolicy::default() };
    let mut watch = Watch { policy, ..Watch::holding(&things(0..20)) };
    let mass = watch.loses_all_but(&[]);
    watch.poll(&observe(&things(0..1)));
    let few = watch.loses_all_but(&[]);
    assert_eq!(removals(&watch), [(mass, 20), (few, 1)]);
    watch.settles(&things(0..1));
    assert_eq!(removals(&watch), [(mass, 20)], "that one is back, the others are not");
}

#[test]
fn a_second_mass_that_goes_does_not_make_the_first_forgotten() {
    let mut watch = Watch::holding(&things(0..20));
    let first = watch.loses_all_but(&things(0..8));
    let second = watch.loses_all_but(&[]);
    assert_eq!(removals(&watch), [(first, 12), (second, 8)]);
    watch.settles(&things(0..8));
    assert_eq!(removals(&watch), [(first, 12)], "what failed last is mended first");
    watch.settles(&things(0..20));
    assert_eq!(removals(&watch), []);
}

#[test]
fn two_masses_may_return_together() {
    let mut watch = Watch::holding(&things(0..20));
    watch.loses_all_but(&things(0..8));
    watch.loses_all_but(&[]);
    watch.settles(&things(0..18));
    assert_eq!(removals(&watch), [], "all but two, who were really taken");
}

#[test]
fn a_mass_that_was_back_and_goes_again_is_awaited_once() {
    let mut watch = Watch::holding(&things(0..20));
    let first = watch.loses_all_but(&[]);
    watch.poll(&observe(&things(0..18)));
    let second = watch.loses_all_but(&[]);
    assert_eq!(removals(&watch), [(first, 0), (second, 18)], "two of the first are still away");
    watch.settles(&things(0..18));
    assert_eq!(removals(&watch), [], "with the second they had their chance");
}

#[test]
fn something_new_in_the_answer_that_confirms_a_removal_is_no_return() {
    let mut watch = Watch::holding(&things(0..20));
    watch.poll(&observe(&things(0..8)));
    let mut shown = things(0..8);
    shown.push((99, 0));
    watch.poll(&observe(&shown));
    let removal = (watch.now, 12);
    watch.settles(&shown);
    assert_eq!(removals(&watch), [removal]);
}

#[test]
fn only_so_many_removals_are_remembered() {
    let mut watch = Watch::holding(&things(0..1_000));
    for left in [800, 790, 300, 120, 50, 20, 8, 0] {
        let _ = watch.poll(&observe(&things(0..left)));
        let _ = watch.poll(&observe(&things(0..left)));
    }
    let went: Vec<u32> = removals(&watch).into_iter().map(|(_, went)| went).collect();
    assert_eq!(went, [490, 180, 70, 30, 12, 8], "some were no mass");
    for round in 0..5 {
        watch.poll(&observe(&things(0..6 + round)));
        watch.loses_all_but(&[]);
    }
    let went: Vec<u32> = removals(&watch).into_iter().map(|(_, went)| went).collect();
    assert_eq!(went.len(), 8);
    assert!(went.starts_with(&[490, 180, 70, 30, 12]), "the largest: {went:?}");
}
