//! The commands about racing as programs use them: what they print as JSON, and how they exit.

use serde_json::{Value as Json, json};

use crate::support::{World, stdout};

fn printed(world: &World, words: &str) -> Json {
    serde_json::from_str(&stdout(&world.stakeout(words, &[]))).expect("JSON")
}

fn keys(object: &Json) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn plan_prints_every_poll_of_a_race_up_to_the_one_that_sees_final() {
    let race = "plan racing --start 2026-01-10T02:00:00Z --started 2026-01-10T02:01:08Z --final 2026-01-10T02:09:00Z --json";
    let planned = printed(&World::new(), race);
    let polls = planned["polls"].as_array().expect("polls");
    assert!(polls.iter().all(|poll| keys(poll) == ["at", "interval_ms", "phase", "reason"]), "{planned}");
    let at = |poll: Option<&Json>| poll.expect("a poll")["at"].clone();
    assert_eq!(
        (at(polls.first()), at(polls.last())),
        (json!("2026-01-10T01:00:00.000Z"), json!("2026-01-10T02:11:15.000Z"))
    );
    // 8 at five minutes, 5 at two, 5 at one, 26 at fifteen seconds, the last of which sees the start, and two more.
    assert_eq!(polls.len(), 8 + 5 + 5 + 26 + 2, "{planned}");
}

#[test]
fn try_prints_what_an_answer_says() {
    let world = World::new();
    let body = json!({
        "race": { "event_id": "r1", "status": "Open", "advertised_start": 1_767_999_600, "description": "Cup" },
        "entrants": [{ "entrant_id": "e1", "name": "Night Owl", "runner_number": 1, "odds": { "fixed_win": 5.0 } }],
    });
    world.write("event.json", &body.to_string());
    let seen = printed(&world, "try racing --file event.json --json");
    for part in ["race", "entrants", "odds_history", "pools", "results", "coverage", "warnings"] {
        assert!(!seen[part].is_null(), "{part}: {seen}");
    }
    let race = keys(&seen["race"]);
    assert!(
        ["race_id", "status", "start_time", "actual_start"].iter().all(|key| race.contains(key)),
        "{seen}"
    );
    let entrant = keys(&seen["entrants"][0]);
    let wanted = "entrant_id name runner_number jockey trainer_name is_scratched fixed_win fixed_place pool_win pool_place hold_percentage bet_percentage";
    assert!(wanted.split(' ').all(|key| entrant.contains(&key)), "{seen}");
    assert!(!world.database().exists(), "nothing is written");
    world.write("event.json", "<html>");
    assert_eq!(world.stakeout("try racing --file event.json --json", &[]).status.code(), Some(1));
}

#[test]
fn simulate_prints_what_came_of_the_day() {
    let day = printed(&World::new(), "simulate racing --races 4 --seed 1 --json");
    assert_eq!(
        (&day["misses"], &day["wrong_events"], &day["races"]),
        (&json!(0), &json!(0), &json!(4)),
        "{day}"
    );
    assert!(
        day["requests"].as_u64() > Some(100) && day["events"]["racing.race.final"].as_u64() > Some(0),
        "{day}"
    );
    let phase = &day["adherence"]["T-5m"];
    assert!(phase["polls"].as_u64() > Some(0), "{day}");
    assert!(["p50", "p99"].iter().all(|q| day["detection_delay_ms"][q].is_number()), "{day}");
}
