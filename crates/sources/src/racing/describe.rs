//! An observation as people read it: what a payload says, without storing anything.

use serde_json::{Map, Value as Json, json};
use stakeout_core::{Facts, Failure, Observation, Record, Time};

use super::kinds::{Kinds, ODDS_HISTORY};
use super::normalize::{Expected, event};

/// Reads the answer about one race from a file's bytes. What depends on the moment is told as of the answer's own
/// stamp, or as of `now` where it has none.
pub fn describe_file(body: &[u8], now: Time) -> Result<Json, Failure> {
    let facts = Facts::default();
    let read = |now: Time| {
        let expected = Expected { event_id: None, meeting_id: None, start: None, facts: &facts, now };
        event(&Kinds::new(), &expected, body)
    };
    // The stamp is in the answer: the second reading knows when "now" was.
    let first = read(now)?;
    match first.as_of {
        Some(stamp) => read(stamp).map(|observation| describe(&observation)),
        None => Ok(describe(&first)),
    }
}

/// The observation of a race as JSON: race, entrants, odds_history, pools, results, dividends, coverage, warnings.
pub fn describe(observation: &Observation) -> Json {
    let of = |collection: &str| -> Vec<&Record> {
        observation.records.iter().filter(|record| record.kind.collection == collection).collect()
    };
    let bodies = |collection: &str| -> Vec<Json> {
        of(collection).into_iter().map(|record| Json::Object(record.body())).collect()
    };
    let warning = |w: &stakeout_core::Warning| json!({ "code": w.code, "detail": w.detail });
    json!({
        "race": bodies("races").into_iter().next(),
        "meeting": bodies("meetings").into_iter().next(),
        "entrants": of("entrants").into_iter().map(entrant).collect::<Vec<_>>(),
        "odds_history": of("entrants").into_iter().flat_map(|r| odds_rows(r, observation.as_of)).collect::<Vec<_>>(),
        "pools": bodies("race_pools"),
        "results": bodies("race_results"),
        "dividends": bodies("dividends"),
        "stage": observation.facts.stage,
        "as_of": observation.as_of,
        "coverage": observation.coverage.name(),
        "warnings": observation.warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}

/// The entrant's fields, its fixed prices by the upstream's names too.
fn entrant(record: &Record) -> Json {
    let mut body: Map<String, Json> = record.body();
    for (ours, theirs) in [("win_odds", "fixed_win"), ("place_odds", "fixed_place")] {
        let value = body.get(ours).cloned().unwrap_or_default();
        body.insert(theirs.to_owned(), value);
    }
    Json::Object(body)
}

/// The rows that the entrant's history would get: the upstream's own, and one of ours where they do not tell the
/// present price.
fn odds_rows(record: &Record, as_of: Option<Time>) -> Vec<Json> {
    let value = |name: &str| record.get(name).map(stakeout_core::Value::to_json).unwrap_or_default();
    let own = record.points.iter().filter(|point| point.stream == ODDS_HISTORY);
    let mut rows: Vec<Json> = own
        .map(|point| {
            let win = point.values.first().map(stakeout_core::Value::to_json);
            json!({ "entrant": record.key, "win_odds": win, "place_odds": value("place_odds"),
                "timestamp": point.at, "stamped_by": "upstream", "oldest_known": point.oldest_known })
        })
        .collect();
    let win = value("win_odds");
    if record.told.is_empty() && !win.is_null() {
        rows.push(json!({ "entrant": record.key, "win_odds": win, "place_odds": value("place_odds"),
            "timestamp": as_of, "stamped_by": "observation", "oldest_known": false }));
    }
    rows
}
