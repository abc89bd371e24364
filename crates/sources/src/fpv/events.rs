//! What is told: the rules' drafts, the turns in a race's life, and another event.

use serde_json::{Value as Json, json};
use stakeout_core::judge::{Change, Draft, Effect, Judgement, by_rules};
use stakeout_core::{FieldChange, Fingerprint, Record, Rule, Value};

use super::discovery::OPEN_EVENT;
use super::kinds::{FAMILY, event_fingerprint};
use super::plan::PAGE;

/// The drafts of a poll.
pub(super) fn judge(rules: &[Rule], judgement: &Judgement<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for change in judgement.changes {
        if let Change::Changed { record, fields } = change
            && record.kind.collection == "races"
        {
            let turns = turns(record, fields).into_iter();
            drafts.extend(turns.map(|turn| draft(turn, record.fingerprint, &record.key, change.data())));
        }
    }
    // A race that was reset says so before its new laps do.
    drafts.extend(by_rules(rules, judgement));
    drafts.extend(switched(judgement));
    drafts
}

/// The turns that a race has taken between two looks, in the order in which they happened.
fn turns(record: &Record, fields: &[FieldChange]) -> Vec<&'static str> {
    let is = |name: &str| record.get(name).is_some_and(|value| !value.is_null());
    let moved = |name: &str| fields.iter().find(|change| change.field == name);
    let was = |name: &str| moved(name).map_or(is(name), |change| !change.old.is_null());
    let mut turns = Vec::new();
    // A start that moved to another moment: it was reset and started again while nobody looked.
    if was("start") && (!is("start") || moved("start").is_some()) {
        turns.push("reset");
    }
    let fresh = is("start") && moved("start").is_some();
    if fresh && !is("end") {
        turns.push("started");
    }
    // Start and end that appear together are a result that was set by hand, or a race nobody saw: it is over.
    if is("end") && (fresh || !was("end")) {
        turns.push("ended");
    }
    if is("start") && !fresh && was("end") && !is("end") {
        turns.push("resumed");
    }
    let invalidated = moved("valid").is_some_and(|change| change.new == Json::Bool(false));
    if invalidated {
        turns.push("invalidated");
    }
    turns
}

fn draft(turn: &str, subject: Fingerprint, key: &str, data: Json) -> Draft {
    Draft {
        rule: format!("race_{turn}"),
        event_type: format!("{FAMILY}.race.{turn}"),
        subject,
        subject_key: key.to_owned(),
        at: None,
        data,
        dedupe_key: None,
        requires: Effect::Changed,
        quiet: None,
        unseen_for: None,
    }
}

/// The page shows another event than before.
fn switched(judgement: &Judgement<'_>) -> Option<Draft> {
    if judgement.target.role != PAGE {
        return None;
    }
    let open = |notes: &std::collections::BTreeMap<String, Value>| {
        notes.get(OPEN_EVENT).and_then(Value::as_text).map(str::to_owned)
    };
    let (before, now) = (open(&judgement.facts_before.notes)?, open(&judgement.facts.notes)?);
    (before != now).then(|| Draft {
        rule: "event_switched".to_owned(),
        event_type: format!("{FAMILY}.event.switched"),
        requires: Effect::Any,
        ..draft("", event_fingerprint(&now), &now, json!({ "before": before, "event_id": now }))
    })
}
