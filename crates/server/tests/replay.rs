//! Repeats by the clock: what a trial says of the past is what an engine really sent, in virtual time.

#[path = "../../engine/tests/support/telling.rs"]
mod telling;
#[path = "../../engine/tests/support/upstream.rs"]
mod upstream;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::alert::EVENT_TYPE;
use stakeout_core::{Source, Time};
use stakeout_engine::{Engine, virtual_runtime};
use stakeout_server::alerts::{Around, Remark, Replayed, try_rule};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_sources::json::JsonSource;
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, EventWrite, ReadMark, Store};

use telling::{event, tell};
use upstream::{T, Upstream, book, minute, under};

/// Looked at every minute, with the jitter that is usual.
fn source() -> Arc<dyn Source> {
    let config = json!({
        "url": "http://sim/x", "every": "1m", "records": "items", "key": "id", "fields": ["value"],
    });
    let config = serde_json::from_value(config).expect("a configuration");
    Arc::new(JsonSource::new("s", &config, vec![]).expect("a source"))
}

/// Has another value from these minutes on.
fn changing(changes: &'static [i64]) -> Upstream {
    Upstream::serving(move |now| {
        let value = changes.iter().filter(|change| minute(**change) <= now).count();
        json!({ "items": [{ "id": "a", "value": value }] }).to_string()
    })
}

/// Two days on which the value changed twice, and polls failed and were missed.
struct Lived {
    store: Arc<SqliteStore>,
    book: RuleBook,
}

impl Lived {
    /// Under these rules; at some minutes somebody reads the newest notification of one of them.
    fn under(rules: &Json, reads: &[(i64, &str)]) -> Lived {
        let book = book(rules);
        let store = Arc::new(SqliteStore::in_memory().expect("store"));
        let upstream = Arc::new(Upstream {
            fails: vec![(100, 104), (150, 170)],
            away: vec![(200, 230), (2_000, 2_010)],
            ..changing(&[10, 300])
        });
        let (runtime, clock) = virtual_runtime(T).expect("runtime");
        let config = under(book.clone(), &store, source(), &upstream, &clock);
        runtime.block_on(async {
            let engine = Engine::start(config).await.expect("start");
            for (at, alert) in reads {
                clock.sleep_until(minute(*at)).await;
                let told = store.notifications(u64::MAX, &Default::default(), 100).await.expect("told");
                let newest = told.iter().find(|told| told.event.data["alert"] == *alert).expect("it rang");
                store.mark_read(&ReadMark::One(newest.event.seq), clock.now()).await.expect("marked");
            }
            clock.sleep_until(minute(2 * 24 * 60)).await;
            engine.shutdown().await.expect("stop");
        });
        Lived { store, book }
    }

    /// What a rule really sent since a minute.
    fn sent(&self, name: &str, since: i64) -> Vec<Sent> {
        let alerts = EventFilter { event_type: Some(EVENT_TYPE.to_owned()), ..EventFilter::default() };
        let runtime = tokio::runtime::Runtime::new().expect("runtime");
        let events = runtime.block_on(self.store.events(0, &alerts, 10_000)).expect("events");
        let own = events.into_iter().filter(|event| event.data["alert"] == name && event.at >= minute(since));
        own.map(|event| sent(event.at, &event.data)).collect()
    }

    fn tried(&self, name: &str, rule: Option<AlertConfig>, since: i64) -> Replayed {
        let around = Around { names: vec!["s".to_owned()], sources: vec![source()], rules: &self.book };
        let rule = rule.unwrap_or_else(|| self.book.rules()[name].clone());
        let window = (minute(since), minute(2 * 24 * 60));
        let runtime = tokio::runtime::Runtime::new().expect("runtime");
        runtime.block_on(try_rule(&*self.store, name, rule, &around, window)).expect("the store answers")
    }
}

/// When, the how manieth, and in which words.
type Sent = (Time, u64, String);

fn sent(at: Time, data: &Json) -> Sent {
    let number = data["repeat"]["number"].as_u64().unwrap_or(0);
    (at, number, data["text"].as_str().expect("words").to_owned())
}

#[test]
fn what_was_repeated_by_the_clock_is_what_would_have_been() {
    let changed = json!({ "on": "event", "type": "json.*" });
    let rules = json!({
        "read": { "when": changed, "repeat": "15m" },
        "unread": { "when": changed, "repeat": "5h" },
        "quiet": { "when": changed, "repeat": "1h", "quiet": "90m" },
        "day": { "when": changed, "repeat": "40m", "hours": { "from": "08:00", "to": "14:30", "zone": "UTC" } },
        "one": { "when": { "on": "missed" }, "repeat": "25s" },
        "five": { "when": { "on": "missed", "polls": 5 }, "repeat": "8m" },
        "night": { "when": { "on": "missed" }, "repeat": "1m",
            "hours": { "from": "11:40", "to": "11:25", "zone": "UTC" } },
    });
    // The second change is read later than the first one, in the midst of the night's silence.
    let lived = Lived::under(&rules, &[(80, "read"), (500, "day"), (700, "read"), (1_000, "quiet")]);
    for name in lived.book.rules().keys() {
        // From the beginning, and from a moment at which something is being repeated.
        for since in [-60, 95, 215, 640] {
            let tried = lived.tried(name, None, since);
            let would: Vec<Sent> = tried.rings.iter().map(|ring| sent(ring.at, &ring.data)).collect();
            assert_eq!(would, lived.sent(name, since), "{name} since minute {since}");
            assert!(tried.remarks.is_empty(), "{name}: {:?}", tried.remarks);
        }
        let sent = lived.sent(name, -60);
        assert!(sent.iter().any(|(_, number, _)| *number > 1), "{name}: {sent:?}");
    }
}

#[test]
fn what_kept_silent_keeps_silent_where_only_the_end_of_it_is_looked_at() {
    let down = json!({ "on": "unhealthy", "failures": 2 });
    let rules = json!({
        "rare": { "when": { "on": "event", "type": "json.*" }, "quiet": "6h" },
        "down": { "when": down },
        "impatient": { "when": down, "quiet": "5m" },
        "patient": { "when": down, "quiet": "52m" },
        "again": { "when": down, "repeat": "6m" },
        "missed": { "when": { "on": "missed" } },
    });
    let lived = Lived::under(&rules, &[]);
    for name in lived.book.rules().keys() {
        for since in [-60, 95, 102, 105, 155, 160, 165, 205, 290, 640] {
            let tried = lived.tried(name, None, since);
            let would: Vec<Sent> = tried.rings.iter().map(|ring| sent(ring.at, &ring.data)).collect();
            assert_eq!(would, lived.sent(name, since), "{name} since minute {since}");
        }
    }
    let minutes = |name: &str| -> Vec<i64> {
        lived.sent(name, -60).iter().map(|(at, ..)| (*at - T).as_ms() / 60_000).collect()
    };
    assert_eq!(minutes("rare").len(), 1, "the second change was in the quiet time of the first");
    assert!(
        (152..170).contains(&minutes("patient")[1]),
        "told when the quiet time was over: {:?}",
        minutes("patient")
    );
}

#[test]
fn refused_credentials_would_have_rung() {
    let lived = Lived::under(&json!({}), &[]);
    let refused = EventWrite {
        event_type: "tables.credentials".to_owned(),
        data: json!({ "source": "s", "class": "unauthorized", "message": "401" }),
        ..event("s", "s", minute(700))
    };
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(tell(&*lived.store, "s", minute(700), vec![refused]));
    let rule = json!({ "when": { "on": "unhealthy", "failures": 100 } });
    let tried = lived.tried("draft", Some(serde_json::from_value(rule).expect("a rule")), 0);
    let rings: Vec<_> = tried.rings.iter().map(|ring| (ring.at, ring.text.as_str())).collect();
    assert_eq!(rings, [(minute(700), "s does not take our credentials: 401")]);
}

#[test]
fn what_was_never_sent_is_repeated_as_if_nobody_had_read_it() {
    let rules = json!({ "read": { "when": { "on": "event", "type": "json.*" }, "repeat": "2h" } });
    let lived = Lived::under(&rules, &[(80, "read")]);
    let hours = |tried: &Replayed| -> Vec<i64> {
        tried.rings.iter().map(|ring| (ring.at - T).as_ms() / 3_600_000).collect()
    };
    let real = lived.tried("read", None, -60);
    let second: Vec<i64> = (5..=29).step_by(2).collect();
    assert_eq!(hours(&real), [vec![0], second.clone()].concat(), "only the first one was read");
    assert!(real.remarks.is_empty());
    // The same rule under another name, and under its name but changed: that one nobody can have read.
    let louder = AlertConfig {
        severity: stakeout_sources::alert::Severity::Critical,
        ..lived.book.rules()["read"].clone()
    };
    for (name, rule) in [("draft", lived.book.rules()["read"].clone()), ("read", louder)] {
        let tried = lived.tried(name, Some(rule), -60);
        assert_eq!(hours(&tried), [vec![0, 2, 4], second.clone()].concat(), "{name}");
        assert_eq!(Vec::from_iter(tried.remarks), [Remark::Unread], "{name}");
    }
}
