//! What is told: the rules' drafts, and what no rule can say.

use serde_json::{Value as Json, json};
use stakeout_core::judge::{Change, Draft, Effect, Judgement, by_rules};
use stakeout_core::{Fingerprint, Rule, Stage, Value};

use super::kinds::{FAMILY, REOPENED, RETIMED, SCRATCHED};
use super::normalize::{FAVOURITE, favourite_id};
use super::plan::{RACE, event_id};

const FAVOURITE_CHANGED: &str = "favourite_changed";

/// The type of the one event that no rule makes.
pub(super) fn favourite_changed_type() -> String {
    format!("{FAMILY}.favourite.changed")
}

/// The drafts of a poll.
pub(super) fn judge(rules: &[Rule], judgement: &Judgement<'_>) -> Vec<Draft> {
    let mut drafts = by_rules(rules, judgement);
    // A start that becomes known is no change of plan, and a status that becomes known reopens nothing.
    drafts.retain(|draft| match &*draft.rule {
        RETIMED => was_known(judgement, draft.subject, "start_time"),
        REOPENED => was_known(judgement, draft.subject, "status"),
        _ => true,
    });
    for draft in drafts.iter_mut().filter(|draft| draft.rule == SCRATCHED) {
        draft.data["late"] = Json::Bool(draft.data["record"]["is_late_scratched"] == Json::Bool(true));
    }
    drafts.extend(favourite_changed(judgement));
    drafts
}

/// Whether the field that moved had a value before.
fn was_known(judgement: &Judgement<'_>, subject: Fingerprint, field: &str) -> bool {
    judgement.changes.iter().any(|change| match change {
        Change::Changed { record, fields } if record.fingerprint == subject => {
            fields.iter().any(|moved| moved.field == field && !moved.old.is_null())
        }
        _ => false,
    })
}

/// Told of the race, while bets are taken: after the start the prices are history.
fn favourite_changed(judgement: &Judgement<'_>) -> Option<Draft> {
    if judgement.target.role != RACE || judgement.facts.stage != Stage::Pending {
        return None;
    }
    let (before, now) = (judgement.facts_before.notes.get(FAVOURITE)?, judgement.facts.notes.get(FAVOURITE)?);
    if favourite_id(before)? == favourite_id(now)? {
        return None;
    }
    let race_id = event_id(judgement.target);
    Some(Draft {
        rule: FAVOURITE_CHANGED.to_owned(),
        event_type: favourite_changed_type(),
        subject: Fingerprint::of(&format!("{FAMILY}_races"), &[race_id]),
        subject_key: race_id.to_owned(),
        at: None,
        data: json!({ "race_id": race_id, "before": before.to_json(), "now": priced(judgement, now) }),
        dedupe_key: None,
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
    })
}

/// The favourite with its price, when that moved too.
fn priced(judgement: &Judgement<'_>, note: &Value) -> Json {
    let mut json = note.to_json();
    let id = favourite_id(note);
    let price = judgement.changes.iter().find_map(|change| match change {
        Change::Changed { record, .. } | Change::Added(record) if Some(record.key.as_str()) == id => {
            record.get("win_odds").map(Value::to_json)
        }
        _ => None,
    });
    if let Some(price) = price {
        json["win_odds"] = price;
    }
    json
}
