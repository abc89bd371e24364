//! Alerts by command: what a rule would have sent is what it sent, and rules are kept without a running process.

#[path = "../../engine/tests/support/telling.rs"]
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};
use stakeout::config::{Loaded, Secrets};
use stakeout::simulate::racing::RacingDay;
use stakeout_core::{Span, Time};
use stakeout_server::alerts::{Around, Remark, try_rule};
use stakeout_sources::alert::{AlertConfig, RuleBook, When};
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use stakeout_store::{EventWrite, Store as _};

/// What was sent or would have been: when, about what, and in which words.
type Sent = BTreeSet<(Time, String, String)>;

/// Runs a day under some rules, and tries each of them on it afterwards: what each really sent, and what it would have.
fn lived_and_tried(rules: Json, day: RacingDay) -> BTreeMap<String, (Sent, Sent, BTreeSet<Remark>)> {
    let alerts: BTreeMap<String, AlertConfig> = serde_json::from_value(rules).expect("rules");
    let day = RacingDay { alerts: alerts.clone(), ..day };
    let finished = day.run().expect("the day runs");
    let rules = RuleBook::new(alerts.clone()).expect("a book");
    let sources = vec![day.source().expect("a source")];
    let around = Around { names: vec!["nz".to_owned()], sources, rules: &rules };
    let window = (Time(0), finished.until);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let mut compared = BTreeMap::new();
    for (name, rule) in alerts {
        let is_bell = matches!(rule.when, When::Start { .. });
        let tried = try_rule(&*finished.store, &name, rule, &around, window);
        let tried = runtime.block_on(tried).expect("the store answers");
        // A bell is told at the look that is due there, a moment later.
        let precise = |at: Time| if is_bell { Time::from_secs(at.us().div_euclid(1_000_000)) } else { at };
        let would =
            tried.rings.iter().map(|ring| (precise(ring.at), ring.subject.clone(), ring.text.clone()));
        let own = finished.events.iter().filter(|event| event.rule == format!("alert:{name}"));
        let text = |event: &stakeout_core::Event| event.data["text"].as_str().unwrap_or_default().to_owned();
        let rang = own.map(|event| (precise(event.at), event.subject_key.clone(), text(event)));
        let both = (rang.collect(), would.collect(), tried.remarks);
        compared.insert(name, both);
    }
    compared
}

/// Says where the two differ.
fn differences(compared: &BTreeMap<String, (Sent, Sent, BTreeSet<Remark>)>) -> String {
    let mut words = String::new();
    for (name, (rang, would, _)) in compared {
        let count = (rang.len(), would.len());
        for (which, one, other) in [("rang only", rang, would), ("would only", would, rang)] {
            for (at, subject, text) in one.difference(other).take(5) {
                words.push_str(&format!("{name} {count:?} {which}: {at} {subject}: {text}\n"));
            }
        }
    }
    words
}

#[test]
fn what_a_rule_would_have_sent_is_what_it_sent() {
    let rules = json!({
        "bell": { "when": { "on": "start", "before": "1m" } },
        "finals": { "when": { "on": "event", "type": "racing.race.final" } },
        "rare": { "when": { "on": "event", "type": "racing.*" }, "quiet": "1h" },
        "scratched": { "when": { "on": "event", "type": "racing.runner.scratched" }, "source": "nz" },
        "plunge": { "when": { "on": "money", "points": 3, "within": "10m" } },
        "elsewhere": { "when": { "on": "event", "type": "racing.race.final" }, "source": "other" },
    });
    let compared = lived_and_tried(rules, RacingDay { races: 12, ..RacingDay::new(6) });
    assert_eq!(differences(&compared), "");
    for (name, (rang, _, remarks)) in compared {
        assert_eq!(rang.is_empty(), name == "elsewhere", "{name} rang {} times", rang.len());
        assert!(remarks.is_empty(), "{name}: {remarks:?}");
    }
}

#[test]
fn what_a_rule_would_have_repeated_is_what_it_repeated() {
    let shortened = json!({ "on": "odds", "direction": "shortened", "percent": 8, "within": "10m" });
    let lengthened = json!({ "on": "odds", "direction": "lengthened", "percent": 8, "within": "20m" });
    let rules = json!({
        "bells": { "when": { "on": "start", "before": "3m" }, "repeat": "50s" },
        "steamer": { "when": shortened, "repeat": "2m" },
        "steamer-by-day": { "when": shortened, "repeat": "1m", "quiet": "3m",
            "hours": { "from": "12:10", "to": "16:20", "zone": "Pacific/Auckland" } },
        "drifter": { "when": lengthened, "repeat": "30s" },
        "plunge": { "when": { "on": "money", "points": 2, "within": "10m" }, "repeat": "2m" },
        "band-odds": { "when": { "on": "indicator", "of": "odds", "percent": 5 }, "repeat": "1m", "quiet": "1m" },
        "band-money": { "when": { "on": "indicator", "of": "money", "percent": 10 }, "repeat": "3m", "quiet": "2m" },
        "unread": { "when": { "on": "event", "type": "racing.race.final" }, "repeat": "50m" },
    });
    // What happens is served at once: by which look a price was seen first is known then.
    let day = RacingDay { races: 12, refresh: Span::ms(1), ..RacingDay::new(6) };
    let compared = lived_and_tried(rules, day);
    assert_eq!(differences(&compared), "");
    for (name, (rang, _, mut remarks)) in compared {
        // But the source does not count on it.
        if ["steamer", "steamer-by-day", "drifter", "band-odds"].contains(&name.as_str()) {
            assert!(remarks.remove(&Remark::WhenSeen), "{name}");
        }
        assert!(!rang.is_empty() && remarks.is_empty(), "{name} rang {} times: {remarks:?}", rang.len());
    }
}

#[test]
fn repeats_of_a_day_with_faults_are_what_they_were() {
    let rules = json!({
        "missed": { "when": { "on": "missed" }, "repeat": "20s" },
        "plunge": { "when": { "on": "money", "points": 2, "within": "10m" }, "repeat": "2m" },
    });
    let day = RacingDay { races: 12, faults: 0.02, ..RacingDay::new(6) };
    let compared = lived_and_tried(rules, day);
    assert_eq!(differences(&compared), "");
    for (name, (rang, _, remarks)) in compared {
        assert!(!rang.is_empty() && remarks.is_empty(), "{name} rang {} times: {remarks:?}", rang.len());
    }
}

fn stakeout(dir: &Path, arguments: &[&str]) -> Output {
    let config = "[store]\nurl = \"sqlite:s.db\"\n[server]\nlisten = \"off\"\n\
        [source.x]\nkind = \"json\"\nurl = \"http://127.0.0.1:9/\"\nevery = \"1h\"\n\
        [alert.down]\nwhen = { on = \"unhealthy\", failures = 1 }\n";
    std::fs::write(dir.join("stakeout.toml"), config).expect("write");
    Command::new(env!("CARGO_BIN_EXE_stakeout")).args(arguments).current_dir(dir).output().expect("runs")
}

fn said(dir: &Path, arguments: &[&str]) -> String {
    let output = stakeout(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = stakeout(dir, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn rules_are_kept_and_tried_without_a_running_process() {
    let dir = tempfile::tempdir().expect("dir");
    let dir = dir.path();
    // Nobody answers there: one failed poll.
    stakeout(dir, &["poll"]);
    let rule = r#"{"when": {"on": "event", "type": "json.*"}, "user": "anna"}"#;
    assert!(said(dir, &["settings", "set", "alert.mine", rule]).contains("alert.mine is"));
    let listed = said(dir, &["alerts", "list"]);
    assert!(listed.contains("mine") && listed.contains("anna") && listed.contains("down"), "{listed}");
    let lines = said(dir, &["alerts", "list", "--json"]);
    let lines: Vec<Json> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let origins: Vec<(&str, &str)> = lines
        .iter()
        .map(|one| (one["name"].as_str().expect("name"), one["origin"].as_str().expect("origin")))
        .collect();
    assert_eq!(origins, [("down", "file"), ("mine", "live")]);

    let tried = said(dir, &["alerts", "test", "down", "--since", "1h"]);
    assert!(
        tried.contains("failed in a row") && tried.contains("down would have rung once in the last"),
        "{tried}"
    );
    let tried = said(dir, &["alerts", "test", "down", "--json"]);
    let ring: Json = serde_json::from_str(tried.trim()).expect("one line of JSON");
    assert_eq!((&ring["source"], &ring["data"]["about"]["failures"]), (&json!("x"), &json!(1)));
    let draft = r#"{"when": {"on": "missed", "polls": 99}}"#;
    assert!(said(dir, &["alerts", "test", draft]).contains("draft would have rung 0 times"));

    for (value, words) in [
        (r#"{"when": {"on": "missed", "polls": 0}}"#, "at least 1"),
        (r#"{"when": {"on": "missed"}, "sinks": ["hook"]}"#, "there is no sink \"hook\""),
        (r#"{"when": {"on": "missed"}, "source": "y"}"#, "there is no source \"y\""),
        ("nonsense", "alert \"bad\""),
    ] {
        let error = refused(dir, &["settings", "set", "alert.bad", value]);
        assert!(error.contains(words), "{value}: {error}");
    }
    assert!(refused(dir, &["alerts", "test", "dwon"]).contains("down"), "a hint");
    assert!(refused(dir, &["alerts", "test", "down", "--since", "ever"]).contains("24h"));
    said(dir, &["settings", "unset", "alert.mine"]);
    assert!(!said(dir, &["alerts", "list"]).contains("mine"));
}

/// What was given up of a sink, by the numbers of the events.
fn given_up(dir: &Path) -> Vec<u64> {
    let lines = said(dir, &["deliveries", "list", "--json"]);
    let event = |line: &str| -> Option<u64> { serde_json::from_str::<Json>(line).ok()?["event"].as_u64() };
    lines.lines().map(|line| event(line).expect("a number")).collect()
}

#[test]
fn what_was_given_up_is_retried_and_dropped_by_command() {
    let dir = tempfile::tempdir().expect("dir");
    let dir = dir.path();
    stakeout(dir, &["poll"]);
    let at = Time::from_secs(1_800_000_000);
    let event =
        |n: u32| EventWrite { sinks: vec!["hook".to_owned()], ..telling::event("x", &n.to_string(), at) };
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let seqs: Vec<u64> = runtime.block_on(async {
        let store = SqliteStore::open(dir.join("s.db"), OpenOptions::default()).expect("a store");
        let told = telling::tell(&store, "x", at, (0..4).map(event).collect()).await;
        for seq in &told[..3] {
            store.delivery_failed("hook", *seq, None, "500").await.expect("given up");
        }
        told
    });
    assert_eq!(given_up(dir), seqs[..3]);
    let one = seqs[1].to_string();
    let again = said(dir, &["deliveries", "retry", "hook", &one]);
    assert_eq!(
        (again.trim(), given_up(dir)),
        ("1 delivery of hook to be made again", vec![seqs[0], seqs[2]])
    );
    let last = seqs[2].to_string();
    assert_eq!(said(dir, &["deliveries", "drop", "hook", &last]).trim(), "1 delivery of hook dropped");
    assert!(refused(dir, &["deliveries", "drop", "hook", &last]).contains("has no delivery"));
    assert_eq!(said(dir, &["deliveries", "retry", "hook"]).trim(), "1 delivery of hook to be made again");
    assert_eq!(given_up(dir), [0_u64; 0]);
    // Two that were retried and one that was never tried wait.
    let all = said(dir, &["deliveries", "drop", "hook", "--waiting"]);
    assert_eq!(all.trim(), "3 deliveries of hook dropped");
}

#[test]
fn every_example_of_the_guide_is_a_configuration() {
    let guide = include_str!("../../../docs/alerts.md");
    let blocks: Vec<&str> =
        guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 8, "only {} examples", blocks.len());
    let set = [
        ("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("NTFY_AUTHORIZATION", "Bearer tk_x"),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.example/services/x"),
        ("DISCORD_WEBHOOK_URL", "https://discord.example/api/webhooks/x"),
        ("TELEGRAM_URL", "https://telegram.example/bot1/sendMessage"),
        ("SMTP_USER", "u"),
        ("SMTP_PASSWORD", "p"),
    ];
    let secrets = Secrets::Only(set.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let mut rules = 0;
    for block in blocks {
        let loaded =
            Loaded::from_text("docs/alerts.md", block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        rules += loaded.alerts().unwrap_or_else(|error| panic!("{error}\n{block}")).written().len();
        if let Err(error) = loaded.sinks(&secrets) {
            panic!("{error}\n{block}");
        }
    }
    assert!(rules >= 7, "only {rules} rules");
}

#[test]
fn every_example_of_the_readme_is_a_configuration() {
    let readme = include_str!("../../../README.md");
    let blocks = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut found = 0;
    for block in blocks {
        found += 1;
        let loaded = Loaded::from_text("README.md", block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        loaded.alerts().unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    assert!(found >= 5, "only {found} examples");
}
