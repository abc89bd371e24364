use std::sync::Arc;

use super::*;
use crate::{Entry, Field, FieldType, Kind, Stream, history};

fn kind() -> Arc<Kind> {
    Arc::new(Kind {
        family: "shop".into(),
        collection: "offers".into(),
        version: 1,
        fields: vec![Field::new("price", FieldType::Float), Field::new("state", FieldType::Text)],
        streams: vec![Stream { name: "price_history".into(), fields: vec!["price".into()] }],
        merges: false,
        views: vec![],
        layout: Default::default(),
    })
}

fn offer(key: &str, price: f64, state: &str) -> Record {
    Record::new(&kind(), &[key], vec![price.into(), state.into()]).in_group(Fingerprint::of("shop", &["s1"]))
}

fn rule(on: Trigger) -> Rule {
    Rule::new("r", "shop.offer.x", "shop_offers", on)
}

fn changed<'a>(old: &Record, new: &'a Record) -> Change<'a> {
    Change::Changed { record: new, fields: history::changed_fields(new, &old.body()) }
}

fn removed(record: &Record, natural: bool) -> Change<'static> {
    Change::Removed {
        fingerprint: record.fingerprint,
        kind: record.kind.full_name(),
        key: record.key.clone(),
        body: record.body(),
        natural,
    }
}

/// How many events one rule makes of one change.
fn check(rule: &Rule, before: &[&Record], change: Change<'_>, expected: usize) {
    let snapshot = Snapshot::new(before.iter().map(|r| Entry::of(r)).collect());
    let drafts = drafts(std::slice::from_ref(rule), &snapshot, &[change]);
    assert_eq!(drafts.len(), expected, "{rule:?}");
}

fn drafts(rules: &[Rule], before: &Snapshot, changes: &[Change<'_>]) -> Vec<Draft> {
    drafts_with(rules, before, &Memory::default(), changes)
}

fn drafts_with(rules: &[Rule], before: &Snapshot, memory: &Memory, changes: &[Change<'_>]) -> Vec<Draft> {
    let judgement = Judgement {
        source: "s",
        target: &TargetSpec::new("2026-02-28_20:30", "bucket"),
        at: Time::parse("2026-02-20T10:15:42Z").expect("valid"),
        facts_before: &Facts::default(),
        facts: &Facts::default(),
        before,
        memory,
        changes,
    };
    by_rules(rules, &judgement)
}

#[test]
fn triggers_pick_their_sort_of_change() {
    let (a, b) = (offer("x", 10.0, "open"), offer("x", 12.0, "open"));
    let any = || Trigger::Changed { fields: vec![] };
    check(&rule(Trigger::Added), &[], Change::Added(&a), 1);
    check(&rule(Trigger::Added), &[&a], changed(&a, &b), 0);
    check(&rule(any()), &[&a], changed(&a, &b), 1);
    check(&rule(any()), &[], Change::Added(&a), 0);
    check(&rule(Trigger::Changed { fields: vec!["state".into()] }), &[&a], changed(&a, &b), 0);
    check(&rule(Trigger::Changed { fields: vec!["price".into()] }), &[&a], changed(&a, &b), 1);
    check(&rule(Trigger::Removed { natural: None }), &[&a], removed(&a, true), 1);
    check(&rule(Trigger::Removed { natural: Some(false) }), &[&a], removed(&a, true), 0);
    check(&Rule { kind: "shop_others".into(), ..rule(Trigger::Added) }, &[], Change::Added(&a), 0);
}

#[test]
fn conditions_filter() {
    let (a, b) = (offer("x", 10.0, "open"), offer("x", 8.0, "sold"));
    let when = |field: &str, test: Test| Rule {
        when: vec![Condition { field: field.into(), test }],
        ..rule(Trigger::Changed { fields: vec![] })
    };
    for (rule, expected) in [
        (when("state", Test::Is("sold".into())), 1),
        (when("state", Test::IsNot("sold".into())), 0),
        (when("state", Test::OneOf(vec!["x".into(), "sold".into()])), 1),
        (when("state", Test::Became("sold".into())), 1),
        (when("price", Test::AtLeast(8.0)), 1),
        (when("price", Test::AtMost(7.99)), 0),
        (when("price", Test::FellBy(Step::Percent(20.0))), 1),
        (when("price", Test::FellBy(Step::Percent(20.1))), 0),
        (when("price", Test::FellBy(Step::Absolute(2.0))), 1),
        (when("price", Test::RoseBy(Step::Absolute(0.0))), 0),
        (when("missing", Test::AtLeast(0.0)), 0),
    ] {
        check(&rule, &[&a], changed(&a, &b), expected);
    }
}

#[test]
fn the_gate_lets_through_only_what_enters_an_empty_group() {
    let (a, b) = (offer("a", 1.0, "open"), offer("b", 1.0, "open"));
    let elsewhere = offer("c", 1.0, "open").in_group(Fingerprint::of("shop", &["s2"]));
    let gated = Rule { gate: Gate::GroupWasEmpty, ..rule(Trigger::Added) };
    check(&gated, &[], Change::Added(&a), 1);
    check(&gated, &[&b], Change::Added(&a), 0);
    check(&gated, &[&elsewhere], Change::Added(&a), 1);
}

#[test]
fn zero_needs_proof() {
    let shop = Record::new(&kind(), &["s1"], vec![Value::Null, Value::Null]);
    let other = Record::new(&kind(), &["s2"], vec![Value::Null, Value::Null]);
    let a = offer("a", 1.0, "open").under(shop.fingerprint);
    let b = offer("b", 1.0, "open").under(shop.fingerprint);
    let gated = Rule { gate: Gate::GroupWasZero, ..rule(Trigger::Added) };
    let told = |before: &[&Record], answers: u8, left: &[&Record]| {
        let before = Snapshot::new(before.iter().map(|r| Entry::of(r)).collect());
        let left = left.iter().map(|r| r.fingerprint).collect();
        let memory = Memory { answers, left, ..Memory::default() };
        let drafts = drafts_with(std::slice::from_ref(&gated), &before, &memory, &[Change::Added(&a)]);
        assert!(drafts.iter().all(|draft| draft.requires == Effect::AppearedFirst));
        drafts.len()
    };
    assert_eq!(told(&[&shop], 1, &[]), 1, "seen with nothing");
    assert_eq!(told(&[&shop, &b], 2, &[]), 0, "it had another");
    assert_eq!(told(&[&other], 1, &[]), 0, "absent from the only answer");
    assert_eq!(told(&[&other], 2, &[&shop]), 0, "absent from the last answer, but not from the one before");
    assert_eq!(told(&[&other], 2, &[&other]), 1, "absent from two answers");
    let before = Snapshot::new(vec![Entry::of(&shop)]);
    let memory = Memory { answers: 2, unsure: vec![a.group], ..Memory::default() };
    let drafts = drafts_with(std::slice::from_ref(&gated), &before, &memory, &[Change::Added(&a)]);
    assert_eq!(drafts.len(), 0, "it was there, but what it had could not be read");
}

#[test]
fn drafts_carry_what_the_commit_needs() {
    let a = offer("a", 1.0, "open");
    let rule = Rule {
        quiet: Some(Span::mins(30)),
        dedupe: Some("{target}|{key}|{minute}".into()),
        ..rule(Trigger::Added)
    };
    let drafts = drafts(&[rule], &Snapshot::default(), &[Change::Added(&a)]);
    let draft = &drafts[0];
    assert_eq!(draft.dedupe_key.as_deref(), Some("2026-02-28_20:30|a|2026-02-20T10:15"));
    assert_eq!((draft.requires, draft.quiet), (Effect::Appeared, Some(Span::mins(30))));
    assert_eq!(draft.data, json!({"record": {"price": 1, "state": "open"}}));
}

#[test]
fn a_to_b_to_a_is_two_changes_in_history() {
    let (a, b) = (offer("x", 10.0, "open"), offer("x", 12.0, "open"));
    let there = history::rows(&b, Some(&a.body()), |_| true);
    let back = history::rows(&a, Some(&b.body()), |_| true);
    assert_eq!((there.len(), back.len()), (1, 1));
    assert_eq!(back[0].clone().text(), r#"{"price":10}"#);
    let repriced = offer("x", 10.0, "sold");
    assert_eq!(
        history::rows(&repriced, Some(&a.body()), |_| true),
        [],
        "another field is not this stream's business"
    );
    assert_eq!(history::rows(&a, None, |_| true).len(), 1, "the first sight is a row");
}
