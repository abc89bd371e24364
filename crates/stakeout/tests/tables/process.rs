//! The real binary against a venue search on loopback.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};
use stakeout_sim::{Act, Loopback, Seen};
use tempfile::TempDir;

use crate::support::{page, page_of, venue_on};

const WHO: [(&str, &str); 2] = [("RESY_API_KEY", "k3y-s3cret"), ("RESY_AUTH_TOKEN", "t0ken-s3cret")];

struct Process {
    upstream: Loopback,
    directory: TempDir,
}

impl Process {
    fn new(answer: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Process {
        let upstream = Loopback::start(answer);
        let directory = tempfile::tempdir().expect("a directory");
        let text = format!(
            "[source.nyc]\nkind = \"tables\"\nbase_url = \"{}\"\ndays = 2\nbudget = \"60000/min\"\n",
            upstream.url("")
        );
        std::fs::write(directory.path().join("stakeout.toml"), text).expect("written");
        Process { upstream, directory }
    }

    fn run(&self, words: &str, variables: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_stakeout"))
            .args(words.split(' '))
            .current_dir(self.directory.path())
            .env_clear()
            .envs(variables.iter().copied())
            .output()
            .expect("the binary runs")
    }

    fn says(&self, words: &str) -> String {
        let output = self.run(words, &WHO);
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn buckets(&self) -> Vec<String> {
        let rows = self.says("targets --json");
        let rows = rows.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
        let keys = rows.filter_map(|row| row["spec"]["key"].as_str().map(str::to_owned));
        keys.filter(|key| key != "window").collect()
    }

    fn database(&self) -> PathBuf {
        self.directory.path().join("stakeout.db")
    }
}

/// Two venues, if the request is as the upstream wants it.
fn search(seen: &Seen) -> Act {
    let header = |name: &str| {
        let found = seen.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str()).to_owned()
    };
    if header("user-agent").is_empty() {
        return Act::status(500);
    }
    let authorized = header("authorization") == "ResyAPI api_key=\"k3y-s3cret\""
        && header("x-resy-auth-token") == "t0ken-s3cret"
        && header("content-type") == "application/json";
    if !authorized || seen.method != "POST" || seen.path != "/3/venuesearch/search" {
        return Act::Redirect("/login?token=t0ken-s3cret".into());
    }
    let asked: Json = serde_json::from_slice(&seen.body).expect("a JSON body");
    let day = asked["slot_filter"]["day"].as_str().expect("a day");
    Act::json(&page(&[venue_on(day, 1, &["20:30"]), venue_on(day, 2, &[])]))
}

#[test]
fn check_looks_at_a_bucket_and_says_what_the_budget_buys() {
    let process = Process::new(search);
    let checked = process.says("check");
    assert!(checked.contains("ok      source nyc: target 2"), "{checked}");
    assert!(checked.contains("2 venues: 2 requests per poll, 8 for a sweep of 4 buckets"), "{checked}");
    assert!(checked.contains("a drop waits "), "{checked}");
    assert!(!process.database().exists(), "check writes nothing");
    let refused = process.run("check", &[("RESY_API_KEY", "other"), ("RESY_AUTH_TOKEN", "t0ken-s3cret")]);
    let said = format!("{refused:?}");
    assert!(!refused.status.success() && said.contains("redirect") && !said.contains("s3cret"), "{said}");
}

/// Ten pages per party size, two venues each.
fn large(seen: &Seen) -> Act {
    let asked: Json = serde_json::from_slice(&seen.body).expect("a JSON body");
    let day = asked["slot_filter"]["day"].as_str().expect("a day");
    let first = 2 * asked["page"].as_i64().expect("a number");
    let broken = json!({ "id": null, "name": "Nobody" });
    let hits =
        [venue_on(day, first, &["20:30"]), if first == 2 { broken } else { venue_on(day, first + 1, &[]) }];
    Act::json(&page_of(20, 10, &hits))
}

#[test]
fn check_looks_at_the_first_pages_of_a_large_box_and_does_not_miss_the_others() {
    let process = Process::new(large);
    let checked = process.says("check");
    assert!(process.upstream.stats().requests < 10, "enough to see that it works");
    assert!(checked.contains("records in the first of its pages"), "{checked}");
    assert!(checked.contains("20 venues: "), "{checked}");
    assert!(!checked.contains("missing_page") && !checked.contains("do_not_add_up"), "{checked}");
    assert!(checked.contains("bad_venue"), "what was seen is still looked at: {checked}");
    let down = Process::new(|_| Act::status(500));
    let said = format!("{:?}", down.run("check", &WHO));
    assert!(said.contains("server_error"), "{said}");
}

#[test]
fn an_upstream_that_repeats_what_it_was_sent_gives_no_secret_away() {
    // The text that is shown of an answer ends in the middle of the key.
    let cut = format!("{{\"note\":\"{}k3y-s3cret\"}}", "x".repeat(120 - 10 - 9));
    let echo = move |seen: &Seen| {
        let headers: Vec<Json> = seen.headers.iter().map(|(name, value)| json!([name, value])).collect();
        match seen.n % 4 {
            0 => Act::json(&json!({ "error": "bad key k3y-s3cret, token t0ken-s3cret" })),
            1 => Act::json(&json!({ "you_sent": headers })),
            2 => Act::json(&json!({ "you_sent": json!(headers).to_string() })),
            _ => Act::body("text/html", cut.clone()),
        }
    };
    let process = Process::new(echo);
    let mut said = Vec::new();
    let mut run = |words: &str| {
        let output = process.run(words, &WHO);
        said.push((words.to_owned(), [output.stdout, output.stderr].concat()));
    };
    run("poll");
    for bucket in process.buckets() {
        run(&format!("targets poll-now {bucket}"));
        run("poll -vv");
        run(&format!("targets poll-now {bucket}"));
        run("poll -vv --log-format json");
    }
    ["check", "check --json", "targets --json"].into_iter().for_each(run);
    for file in std::fs::read_dir(process.directory.path()).expect("a directory") {
        let path = file.expect("a file").path();
        said.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.iter().any(|(_, found)| text(found).contains("[redacted]")), "something was repeated");
    let conn = rusqlite::Connection::open(process.database()).expect("open");
    let samples: i64 = conn.query_row("SELECT count(*) FROM samples", [], |row| row.get(0)).expect("counted");
    assert!(samples > 0, "and kept");
    for (place, found) in &said {
        for secret in ["k3y-s", "t0ken-"] {
            let found = text(found);
            let at = found.find(secret).map(|at| found[at.saturating_sub(200)..at].to_owned());
            assert_eq!(at, None, "{place} has {secret}");
        }
    }
}

#[test]
fn simulated_days_are_reported_by_these_names() {
    let process = Process::new(search);
    let words = "simulate tables --days 1 --venues 6 --budget 1/min --seed 2 --json";
    let output = process.run(words, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    for name in ["seed", "days", "venues", "budget", "drops", "adaptive_to_uniform", "known_rates_to_uniform"]
    {
        assert!(!report[name].is_null(), "{name}: {report}");
    }
    let numbers = [
        "requests",
        "polls",
        "reported",
        "false_drops",
        "outdated_drops",
        "seen",
        "missed",
        "missed_too_short",
        "missed_beside",
        "missed_unproven",
        "missed_though_seen",
        "mean_delay_ms",
    ];
    for way in ["adaptive", "uniform", "oracle"] {
        let way = &report[way];
        for name in numbers {
            assert!(way[name].is_i64(), "{name}: {way}");
        }
        assert!(["p50", "p99"].iter().all(|name| way["delay_ms"][*name].is_i64()), "{way}");
        let count = |name: &str| way[name].as_u64().expect("a number");
        assert_eq!(count("seen") + count("missed"), report["drops"].as_u64().expect("a number"), "{way}");
        let why =
            ["too_short", "beside", "unproven", "though_seen"].map(|why| count(&format!("missed_{why}")));
        assert_eq!(count("missed"), why.iter().sum::<u64>(), "{way}");
    }
    let help = process.says("simulate tables --help");
    assert!(help.contains("Exits with 1 when, whatever went wrong"), "{help}");
}

#[test]
fn nothing_is_asked_without_credentials_and_no_message_shows_them() {
    let process = Process::new(search);
    for (variables, expected) in [
        (&WHO[..1], "[source.nyc] auth_token: the environment variable RESY_AUTH_TOKEN is not set"),
        (
            &[WHO[0], ("RESY_AUTH_TOKEN", "s3cret\u{e9}")],
            "RESY_AUTH_TOKEN is malformed: expected printable ASCII",
        ),
        (&[WHO[0], WHO[1], ("DISCOVERY_PARTY_SIZES", "many")], "expected party sizes such as 2,4"),
    ] {
        let output = process.run("poll", variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && !said.contains("s3cret"), "{said}");
    }
    assert_eq!(process.upstream.stats().requests, 0);
}

#[test]
fn passes_poll_what_is_due_and_a_new_baseline_can_be_wanted() {
    let process = Process::new(search);
    process.says("poll");
    let targets: Vec<Json> = process
        .says("targets --json")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let keys: Vec<&str> = targets.iter().filter_map(|row| row["spec"]["key"].as_str()).collect();
    assert_eq!(keys.len(), 5, "the window and four buckets: {keys:?}");
    let bucket = keys.iter().find(|key| key.ends_with("_20:30")).expect("a bucket");
    process.says(&format!("targets poll-now {bucket}"));
    let report: Json = serde_json::from_str(&process.says("poll --json")).expect("a report");
    // On a slow machine another bucket's own time may have come meanwhile.
    assert_eq!(report["failed"], json!(0), "{report}");
    assert!(report["baselines"].as_u64() >= Some(1), "{report}");
    let said = process.says(&format!("tables rebaseline {bucket}"));
    assert!(said.contains(&format!("nyc/{bucket} is its new baseline")), "{said}");
    assert!(process.says("tables rebaseline --all").ends_with("4 buckets\n"));
    let said = process.says("settings set source.nyc.follow [\"60029\",87134]");
    assert!(said.contains("source.nyc.follow is [\"60029\",87134]"), "{said}");
    let refused = process.run("settings set source.nyc.budget 60", &WHO);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give a rate such as"), "{refused:?}");
}

#[test]
fn saved_answers_are_described() {
    let process = Process::new(search);
    let save = |name: &str, body: Json| {
        std::fs::write(process.directory.path().join(name), body.to_string()).expect("written");
    };
    let day = "2026-02-28";
    save("before.json", page(&[venue_on(day, 1, &[]), venue_on(day, 2, &["18:00", "19:00"])]));
    save("now.json", page(&[venue_on(day, 1, &["20:30"]), venue_on(day, 2, &["18:00"])]));
    let words = "try tables --file now.json --previous before.json --json";
    let seen: Json = serde_json::from_str(&process.says(words)).expect("JSON");
    let count = |list: &str| seen[list].as_array().map(Vec::len);
    assert_eq!(
        ["slots", "added", "closed", "drops", "warnings"].map(count),
        [2, 1, 1, 1, 0].map(Some),
        "{seen}"
    );
    assert_eq!(seen["coverage"], json!("complete"));
    let shown = process.says("try tables --file now.json --previous before.json");
    assert!(shown.contains("Dining Room  drop") && shown.contains("1 added, 1 closed, 1 drops"), "{shown}");
    let broken = process.run("try tables --file stakeout.toml", &[]);
    assert_eq!(broken.status.code(), Some(1));
    let planned: Json =
        serde_json::from_str(&process.says("plan tables --venues 2722 --json")).expect("JSON");
    assert_eq!((&planned["requests_per_sweep"], planned["warning"].is_string()), (&json!(2072), true));
}

#[test]
fn a_configured_source_is_planned_market_by_market() {
    let process = Process::new(search);
    let config = r#"
[source.nyc]
kind = "tables"
days = 7
party_sizes = [2]
budget = "120/min"
more_markets = [{ name = "boston", box = [42.2, -71.2, 42.4, -71.0], zone = "America/New_York" }]

[source.other]
kind = "racing"
"#;
    std::fs::write(process.directory.path().join("two.toml"), config).expect("written");
    let planned = |words: &str| -> Json {
        serde_json::from_str(&process.says(&format!("plan tables -c two.toml --source nyc {words} --json")))
            .expect("JSON")
    };
    let seen = planned("--venues 2722 --venues boston=700");
    // Seven days, two times, one party size: 37 and 10 pages a bucket.
    let sweeps = [0, 1].map(|n| seen["markets"][n]["requests_per_sweep"].clone());
    assert_eq!(sweeps, [json!(14 * 37), json!(14 * 10)]);
    assert_eq!((&seen["markets"][1]["name"], &seen["markets"][0]["name"]), (&json!("boston"), &Json::Null));
    assert_eq!(seen["requests_per_sweep"], json!(14 * 47));
    assert_eq!(seen["sweep_ms"], json!(365_555), "two a second, nine tenths of them");
    assert_eq!(
        planned("--venues 75 --days 1 --budget 60/min")["requests_per_sweep"],
        json!(4),
        "typed over it"
    );
    let shown = process.says("plan tables -c two.toml --source nyc --venues 75 --venues boston=700");
    assert!(shown.contains("MARKET") && shown.contains("boston"), "{shown}");
    for (words, expected) in [
        ("--source other --venues 75", "there is nyc"),
        ("--source nyc --venues boston=75", "the first market"),
        ("--source nyc --venues 75 --venues paris=5", "no market \"paris\""),
    ] {
        let refused = process.run(&format!("plan tables -c two.toml {words}"), &[]);
        assert_eq!(refused.status.code(), Some(2), "{words}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(expected), "{said}");
    }
}
