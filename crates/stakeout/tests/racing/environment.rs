use serde_json::{Value as Json, json};
use stakeout_sim::Act;

use crate::support::{WHO, World, stdout};

#[test]
fn nothing_is_asked_and_nothing_is_made_while_the_identity_is_missing_or_malformed() {
    let world = World::new();
    let others = &WHO[1..];
    let malformed = [others, &[("NZTAB_FROM", "s3cret-not-an-address")]].concat();
    for command in ["check", "run", "poll"] {
        for (variables, expected) in [
            (others, "NZTAB_FROM is not set: set it"),
            (&malformed, "NZTAB_FROM is malformed: expected an e-mail address"),
        ] {
            let output = world.stakeout(command, variables);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            let place = format!("[source.nz] from: the environment variable {expected}");
            assert!(said.contains(&place), "{command}: {said}");
            assert!(!said.contains("s3cret"), "{command}: {said}");
        }
    }
    assert_eq!(world.upstream.stats().requests, 0, "asked before it was known who asks");
    assert!(!world.database().exists());
}

#[test]
fn check_looks_at_the_catalogue() {
    let world = World::new();
    let checked = stdout(&world.stakeout("check", &WHO));
    assert!(checked.contains("ok      source nz: target catalogue: status 200"), "{checked}");
    assert!(!world.database().exists());
}

#[test]
fn a_pass_over_a_day_says_what_it_did() {
    let world = World::new();
    let report: Json = serde_json::from_str(&stdout(&world.stakeout("poll --json", &WHO))).expect("a report");
    assert_eq!(report["failed"], 0, "{report}");
    // The catalogue's own poll finds the races; those within the hour are due at once.
    assert_eq!(report["phases"]["nz fixed every 30 min"], 1, "{report}");
    let races = |report: &Json| -> u64 {
        let phases = report["phases"].as_object().expect("phases").iter();
        phases
            .filter(|(phase, _)| *phase != "nz fixed every 30 min")
            .filter_map(|(_, polls)| polls.as_u64())
            .sum()
    };
    assert!((7..30).contains(&races(&report)), "{report}");
    assert_eq!(report["targets"]["nz catalogue"], 1, "{report}");
    assert_eq!(report["targets"]["nz race"], races(&report), "races processed: {report}");
    let updated = |kind: &str| report["records"][kind].as_u64().unwrap_or_default();
    assert!(updated("racing_entrants") > 50 && updated("racing_meetings") > 1, "{report}");
    let all: u64 = report["records"].as_object().expect("kinds").values().filter_map(Json::as_u64).sum();
    assert_eq!(report["changes"], all, "{report}");
    assert!(report["history_rows"].as_u64() > Some(50), "{report}");
    assert!(report["next_due"].is_string(), "{report}");
}

/// One in four races, by its id.
fn is_unlucky(path: &str) -> bool {
    path.split_once("/events/").is_some_and(|(_, id)| "0123".contains(&id[..1]))
}

#[test]
fn what_succeeded_is_kept_whatever_happened_to_others_and_only_if_all_failed_the_exit_code_says_so() {
    let world = World::with(|seen| is_unlucky(&seen.path).then(|| Act::status(500)), "");
    let output = world.stakeout("poll --json", &WHO);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Json = serde_json::from_slice(&output.stdout).expect("a report");
    let count = |name: &str| report[name].as_u64().expect("a number");
    assert!(count("failed") > 0 && count("failed") < count("polled"), "{report}");
    let failures = report["failures"].as_array().expect("failures");
    assert_eq!(failures.len() as u64, count("failed"), "each with its cause: {report}");
    assert!(failures.iter().all(|failure| failure["class"] == "server_error"), "{report}");
    let targets = stdout(&world.stakeout("targets --json", &WHO));
    let polled = targets.lines().filter(|line| line.contains("\"last_outcome\":\"baseline\"")).count() as u64;
    assert_eq!(polled, count("polled") - count("failed"), "{targets}");

    let dead = World::with(|_| Some(Act::status(500)), "");
    let output = dead.stakeout("poll --json", &WHO);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Json = serde_json::from_slice(&output.stdout).expect("a report all the same");
    assert_eq!((&report["polled"], &report["failed"]), (&Json::from(1), &Json::from(1)), "{report}");
    // Not due yet: nothing was polled, so nothing failed.
    assert_eq!(dead.stakeout("poll", &WHO).status.code(), Some(0));
}

#[test]
fn a_pass_ends_within_its_limit_though_the_upstream_never_answers() {
    let world = World::with(|seen| seen.path.contains("/events/").then_some(Act::Hang), "timeout = \"10m\"");
    let report = stdout(&world.stakeout("poll --json --limit 1s", &WHO));
    let report: Json = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["targets"], json!({ "nz catalogue": 1 }), "what was done is told: {report}");
    // A few seconds beyond the limit for the polls in flight; nothing waits for the upstream's ten minutes.
    assert!(report["took_ms"].as_u64() < Some(60_000), "{report}");
}

#[test]
fn a_new_start_of_the_process_polls_no_race_before_its_hour() {
    let world = World::polled();
    let targets = stdout(&world.stakeout("targets --json", &WHO));
    stdout(&world.stakeout("poll", &WHO));
    let polled =
        |targets: &str| targets.lines().filter(|line| !line.contains("\"last_polled\":null")).count();
    let after = stdout(&world.stakeout("targets --json", &WHO));
    assert!(polled(&targets) < 30, "{} of {} targets polled", polled(&targets), targets.lines().count());
    assert_eq!(polled(&targets), polled(&after));
}

#[test]
fn a_negative_setting_is_refused_by_the_setting() {
    let world = World::new();
    stdout(&world.stakeout("poll", &WHO));
    let output = world.stakeout("settings set source.nz.odds_moved_percent -3", &WHO);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("odds_moved_percent") && said.contains("give a number above 0"), "{said}");
}
