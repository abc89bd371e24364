//! An upstream that knows every state it ever had, and what must have become of them.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_sim::{Script, ScriptServer, serve};

use crate::support::{Eye, now_ms};

pub(crate) const SEED: u64 = 20_261_116;
pub(crate) const INTERVAL_MS: u64 = 40;
/// How long a request may take.
pub(crate) const TIMEOUT_MS: u64 = 500;
/// A state that was shown for so long while somebody was polling must be known.
const SURE_MS: u64 = 1_000;

/// A script, its server, and the times at which somebody was polling.
pub(crate) struct Truth {
    script: Script,
    pub(crate) server: ScriptServer,
    calm: Vec<(u64, u64)>,
}

impl Truth {
    pub(crate) fn new(mean_hold_ms: u64) -> Truth {
        let script = Script::new(SEED, 6, mean_hold_ms, now_ms());
        let server = serve(script.clone());
        Truth { script, server, calm: Vec::new() }
    }

    /// The source that watches it.
    pub(crate) fn source(&self, every: &str) -> String {
        format!(
            r#"
[source.script]
kind = "json"
url = "{url}"
every = "{every}"
records = "items"
key = "id"
fields = ["value"]
history = ["value"]
doubt = {{ at_least = 1000 }}
limits = {{ requests_per_second = 1000, burst = 100, timeout = "{TIMEOUT_MS}ms" }}
"#,
            url = self.server.url("/state"),
        )
    }

    /// From then until now somebody was polling all the time.
    pub(crate) fn calm_since(&mut self, began_ms: u64) {
        self.calm.push((began_ms, now_ms()));
    }

    /// What was shown long enough is in history and was told; nothing is invented, written or told twice. Answers how
    /// many states were checked.
    pub(crate) fn compare(&self, eye: &Eye) -> usize {
        // What is gone is told without its last value.
        let told = count(eye.texts("SELECT data FROM events ORDER BY seq"), |data| {
            data.get("natural").is_none().then(|| data["record"]["value"].as_i64().expect("a value"))
        });
        let history = count(eye.texts("SELECT values_json FROM history"), |values| values["value"].as_i64());
        let truth = self.script.truth(0, now_ms());
        let real: BTreeSet<i64> = truth.iter().map(|segment| segment.value as i64).collect();
        assert!(told.keys().chain(history.keys()).all(|value| real.contains(value)), "invented");
        assert!(told.values().all(|times| *times == 1), "told twice: {told:?}");
        assert!(history.values().all(|times| *times == 1), "written twice: {history:?}");
        let mut checked = 0;
        for segment in &truth {
            let shown = |(from, to): &(u64, u64)| {
                let (from, to) = (segment.from_ms.max(*from), segment.until_ms.min(*to));
                to.saturating_sub(from) >= SURE_MS
            };
            if !self.calm.iter().any(shown) {
                continue;
            }
            let value = segment.value as i64;
            assert!(history.contains_key(&value), "{segment:?} is not in history (seed {SEED})");
            // What was there at the baseline is not told.
            if segment.from_ms > self.calm[0].0 {
                assert!(told.contains_key(&value), "{segment:?} was never told (seed {SEED})");
                checked += 1;
            }
        }
        println!("{checked} states checked, {} told, {} rows of history", told.len(), history.len());
        checked
    }
}

fn count(texts: Vec<String>, value: fn(&serde_json::Value) -> Option<i64>) -> BTreeMap<i64, u64> {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for text in texts {
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        if let Some(value) = value(&json) {
            *counts.entry(value).or_default() += 1;
        }
    }
    counts
}
