//! Alerts by command: what a rule would have sent is what it sent, and rules are kept without a running process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value as Json, json};
use stakeout::config::{Loaded, Secrets};
use stakeout::simulate::racing::RacingDay;
use stakeout_core::Time;
use stakeout_server::alerts::try_rule;
use stakeout_sources::alert::AlertConfig;

/// What a day's rules really rang: rule, subject, and what was said.
fn rung(events: &[stakeout_core::Event], name: &str) -> Vec<(String, String)> {
    let rule = format!("alert:{name}");
    let ours = events.iter().filter(|event| event.rule == rule);
    let mut rung: Vec<_> =
        ours.map(|event| (event.subject_key.clone(), event.data["text"].to_string())).collect();
    rung.sort();
    rung
}

#[test]
fn what_a_rule_would_have_sent_is_what_it_sent() {
    let rules = json!({
        "bell": { "when": { "on": "start", "before": "1m" } },
        "bells": { "when": { "on": "start", "before": "3m" }, "repeat": "50s" },
        "finals": { "when": { "on": "event", "type": "racing.race.final" } },
        "rare": { "when": { "on": "event", "type": "racing.*" }, "quiet": "1h" },
        "scratched": { "when": { "on": "event", "type": "racing.runner.scratched" }, "source": "nz" },
        "plunge": { "when": { "on": "money", "points": 3, "within": "10m" } },
        "elsewhere": { "when": { "on": "event", "type": "racing.race.final" }, "source": "other" },
    });
    let alerts: BTreeMap<String, AlertConfig> = serde_json::from_value(rules).expect("rules");
    let day = RacingDay { races: 12, alerts: alerts.clone(), ..RacingDay::new(6) };
    let finished = day.run().expect("the day runs");
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let window = (Time(0), Time::parse("2026-01-12T00:00:00Z").expect("a time"));
    let sources = ["nz".to_owned()];
    for (name, rule) in alerts {
        let tried = try_rule(&*finished.store, &name, rule, &sources, window);
        let tried = runtime.block_on(tried).expect("the store answers");
        let mut would: Vec<(String, String)> =
            tried.rings.iter().map(|ring| (ring.subject.clone(), ring.data["text"].to_string())).collect();
        would.sort();
        let rang = rung(&finished.events, &name);
        assert_eq!(would, rang, "{name}");
        assert_eq!(rang.is_empty(), name == "elsewhere", "{name} rang {} times", rang.len());
        assert!(!tried.repeats_left_out, "{name}: all of it is known");
    }
    // Nobody knows who would have read it.
    let unread = json!({ "when": { "on": "event", "type": "racing.race.final" }, "repeat": "1h" });
    let unread = serde_json::from_value(unread).expect("a rule");
    let tried = try_rule(&*finished.store, "unread", unread, &sources, window);
    let tried = runtime.block_on(tried).expect("the store answers");
    assert!(tried.repeats_left_out && tried.rings.len() == rung(&finished.events, "finals").len());
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
