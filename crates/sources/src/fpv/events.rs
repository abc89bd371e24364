//! What is told: the rules' drafts, the turns in a race's life, and another event.

use serde_json::{Value as Json, json};
use stakeout_core::judge::{Change, Draft, Effect, Judgement, by_rules};
use stakeout_core::{FieldChange, Record, Rule, Value};

use super::discovery::OPEN_EVENT;
use super::kinds::event_fingerprint;
use super::plan::PAGE;
use super::told::Told;

/// The drafts of a poll.
pub(super) fn judge(rules: &[Rule], judgement: &Judgement<'_>) -> Vec<Draft> {
    let (mut drafts, mut last) = (Vec::new(), Vec::new());
    for change in judgement.changes {
        if let Change::Changed { record, fields } = change
            && record.kind.collection == "races"
        {
            let subject = (record.fingerprint, record.key.as_str());
            for turn in turns(record, fields) {
                let draft = Draft { requires: Effect::Changed, ..turn.draft(subject, change.data()) };
                // A race that was reset says so before its new laps do, and one that is over after its last.
                let is_over = matches!(turn, Told::Ended | Told::Invalidated);
                if is_over { last.push(draft) } else { drafts.push(draft) }
            }
        }
    }
    drafts.extend(by_rules(rules, judgement));
    drafts.extend(last);
    drafts.extend(switched(judgement));
    drafts
}

/// The turns that a race has taken between two looks, in the order in which they happened.
fn turns(record: &Record, fields: &[FieldChange]) -> Vec<Told> {
    let is = |name: &str| record.get(name).is_some_and(|value| !value.is_null());
    let moved = |name: &str| fields.iter().find(|change| change.field == name);
    let was = |name: &str| moved(name).map_or(is(name), |change| !change.old.is_null());
    let mut turns = Vec::new();
    // A start that moved to another moment: it was reset and started again while nobody looked.
    if was("start") && (!is("start") || moved("start").is_some()) {
        turns.push(Told::Reset);
    }
    let fresh = is("start") && moved("start").is_some();
    if fresh && !is("end") {
        turns.push(Told::Started);
    }
    // Start and end that appear together are a result that was set by hand, or a race nobody saw: it is over.
    if is("end") && (fresh || !was("end")) {
        turns.push(Told::Ended);
    }
    if is("start") && !fresh && was("end") && !is("end") {
        turns.push(Told::Resumed);
    }
    let invalidated = moved("valid").is_some_and(|change| change.new == Json::Bool(false));
    if invalidated {
        turns.push(Told::Invalidated);
    }
    turns
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
    let data = json!({ "before": before, "event_id": now });
    (before != now).then(|| Told::Switched.draft((event_fingerprint(&now), &now), data))
}
