//! What is told of a drop.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use stakeout_core::judge::{Change, Draft, Judgement, by_rules};
use stakeout_core::{Fingerprint, Record, Rule, Time, Value};

/// The drops of a poll, without those at venues that nobody wants to hear of.
pub(super) fn judge(
    rules: &[Rule],
    follow: &BTreeSet<String>,
    exclude: &BTreeSet<String>,
    judgement: &Judgement<'_>,
) -> Vec<Draft> {
    let drafts = by_rules(rules, judgement);
    if drafts.is_empty() {
        return drafts;
    }
    let had_any = judgement.before.entries().iter().any(|entry| entry.group != Fingerprint::default());
    let evidence = if had_any { "nonempty_prev" } else { "empty_prev" };
    // A restaurant may open a whole month at once.
    let added: BTreeMap<Fingerprint, &Record> = judgement
        .changes
        .iter()
        .filter_map(|change| match change {
            Change::Added(record) => Some((record.fingerprint, *record)),
            _ => None,
        })
        .collect();
    let told = |mut draft: Draft| {
        let record = *added.get(&draft.subject)?;
        let text = |field: &str| record.get(field).and_then(Value::as_text);
        let venue_id = text("venue_id")?;
        if exclude.contains(venue_id) {
            return None;
        }
        // A bucket takes a minute to read: what counts is when the slot's own page was.
        let opened_at = text("seen_at").map_or_else(|| judgement.at.to_string(), str::to_owned);
        draft.at = Time::parse(&opened_at);
        let minute = opened_at.get(..16).unwrap_or(&opened_at);
        draft.dedupe_key = Some(format!("{}|{}|{minute}", judgement.target.key, draft.subject));
        let body = record.body();
        let copied = ["venue_id", "venue_name", "neighborhood", "date", "start", "starts_at", "party_sizes"];
        let mut data: Map<String, Json> = Map::new();
        for field in copied {
            data.insert(field.to_owned(), body.get(field).cloned().unwrap_or_default());
        }
        data.insert("opened_at".to_owned(), json!(opened_at));
        data.insert("evidence".to_owned(), json!(evidence));
        data.insert("followed".to_owned(), json!(follow.contains(venue_id)));
        data.insert("record".to_owned(), Json::Object(body));
        draft.data = Json::Object(data);
        Some(draft)
    };
    drafts.into_iter().filter_map(told).collect()
}
