//! An upstream that knows every state it ever had, and what must have become of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stakeout_sim::{Script, ScriptServer, Segment, serve};

use crate::support::{Eye, LEASE_MS, now_ms, until};

pub(crate) const SEED: u64 = 20_261_116;
pub(crate) const INTERVAL_MS: u64 = 40;
/// How long a request may take.
pub(crate) const TIMEOUT_MS: u64 = 500;
/// A state that was shown for so long while somebody was polling must be known.
const SURE_MS: u64 = 1_000;

/// The lease, one request time-out of the successor, a look, and a machine that has other things to do.
pub(crate) const SOON: Duration = Duration::from_millis(LEASE_MS + TIMEOUT_MS + 1_000 + 5_000);

/// Lets the nodes poll for a while.
pub(crate) fn some_polls(eye: &Eye, truth: &mut Truth) {
    let (mut began, mut last) = (now_ms(), now_ms());
    let (mut first, mut polls) = (eye.polls(), eye.polls());
    until("it is polled", || {
        let (now, counted) = (now_ms(), eye.polls());
        if counted > polls {
            (polls, last) = (counted, now);
        } else if now - last > SURE_MS / 2 {
            // After a fault work may still change hands: what was shown meanwhile need not have been seen.
            (began, first) = (now, counted);
        }
        polls - first > 40
    });
    truth.calm_since(began);
}

/// A time in which nobody polls. The report must name it.
pub(crate) struct Gap {
    polls: i64,
    began_ms: u64,
}

impl Gap {
    /// Begins a gap at this moment.
    pub(crate) fn begins(eye: &Eye) -> Gap {
        Gap { polls: eye.number("SELECT coalesce(max(id), 0)::text FROM polls"), began_ms: now_ms() }
    }

    /// Waits until the poll log has a line about polls that were missed since; answers it.
    pub(crate) fn is_named(&self, eye: &Eye) -> String {
        let sql = format!(
            "SELECT max(missed)::text || ' missed: ' || string_agg(DISTINCT missed_cause, ', ') FROM polls
             WHERE id > {} AND missed > 0 HAVING count(missed_cause) > 0",
            self.polls
        );
        let mut named = None;
        until("the report names the gap", || {
            named = eye.texts(&sql).pop();
            named.is_some()
        });
        format!("{} in {} ms", named.expect("just seen"), now_ms() - self.began_ms)
    }
}

/// A script, its server, and the times at which somebody was polling.
pub(crate) struct Truth {
    script: Script,
    pub(crate) server: ScriptServer,
    calm: Vec<(u64, u64)>,
    kills: Vec<u64>,
}

/// A poll that was answered so long before or after a kill may have gone down with it.
const NEAR_MS: u64 = 500;

impl Truth {
    pub(crate) fn new(mean_hold_ms: u64) -> Truth {
        let script = Script::new(SEED, 6, mean_hold_ms, now_ms());
        let server = serve(script.clone());
        Truth { script, server, calm: Vec::new(), kills: Vec::new() }
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

    /// When somebody began to poll: what was there at the first answer is the baseline.
    fn began_ms(&self) -> u64 {
        let first = self.server.answers().first().map_or(0, |answer| answer.at_ms);
        self.calm.first().map_or(first, |(began, _)| first.max(*began))
    }

    /// A node is about to be killed: what it was just answered may be lost with it.
    pub(crate) fn kill(&mut self) {
        self.kills.push(now_ms());
    }

    /// Everything that was answered more often than nodes were killed meanwhile is known: a kill loses one poll at most.
    /// Answers how many states were checked.
    pub(crate) fn compare_answers(&self, eye: &Eye) -> usize {
        let answers: Vec<u64> = self.server.answers().iter().map(|answer| answer.at_ms).collect();
        let within =
            |times: &[u64], from: u64, to: u64| times.iter().filter(|at| (from..to).contains(*at)).count();
        self.compare_where(eye, |from, until| {
            let kills = within(&self.kills, from.saturating_sub(NEAR_MS), until + NEAR_MS);
            within(&answers, from, until) > kills
        })
    }

    /// What was shown long enough is in history and was told; nothing is invented, written or told twice. Answers how
    /// many states were checked.
    pub(crate) fn compare(&self, eye: &Eye) -> usize {
        self.compare_where(eye, |from, until| {
            self.calm
                .iter()
                .any(|(began, ended)| until.min(*ended).saturating_sub(from.max(*began)) >= SURE_MS)
        })
    }

    fn compare_where(&self, eye: &Eye, sure: impl Fn(u64, u64) -> bool) -> usize {
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
        self.compare_removals(eye, &truth, &sure);
        let mut checked = 0;
        for segment in &truth {
            if !sure(segment.from_ms, segment.until_ms.min(now_ms())) {
                continue;
            }
            let value = segment.value as i64;
            assert!(history.contains_key(&value), "{segment:?} is not in history (seed {SEED})");
            // What was there at the baseline is not told.
            if segment.from_ms > self.began_ms() {
                assert!(told.contains_key(&value), "{segment:?} was never told (seed {SEED})");
                checked += 1;
            }
        }
        println!("{checked} states checked, {} told, {} rows of history", told.len(), history.len());
        checked
    }
}

impl Truth {
    /// Every absence that lasted long enough was told, no item went more often than it did, and whatever was told gone
    /// had been there.
    fn compare_removals(&self, eye: &Eye, truth: &[Segment], sure: &impl Fn(u64, u64) -> bool) {
        // What is gone is told without its value: which item it was is known from what was told of the same record.
        let items: BTreeMap<i64, &str> = truth.iter().map(|s| (s.value as i64, s.item.as_str())).collect();
        let (mut names, mut gone) = (BTreeMap::new(), Vec::new());
        for event in eye.texts("SELECT encode(subject, 'hex') || ' ' || data FROM events ORDER BY seq") {
            let (subject, data) = event.split_once(' ').expect("two words");
            let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
            if data.get("natural").is_some() {
                gone.push(subject.to_owned());
            } else if let Some(item) = data["record"]["value"].as_i64().and_then(|value| items.get(&value)) {
                names.insert(subject.to_owned(), *item);
            }
        }
        let mut told: BTreeMap<&str, u64> = BTreeMap::new();
        for item in gone.iter().filter_map(|subject| names.get(subject)) {
            *told.entry(item).or_default() += 1;
        }
        let mut absences: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for pair in truth.windows(2).filter(|pair| pair[0].item == pair[1].item) {
            let (gone, back) = (pair[0].until_ms, pair[1].from_ms);
            if gone < back {
                let (all, certain) = absences.entry(&pair[0].item).or_default();
                *all += 1;
                *certain += u64::from(gone > self.began_ms() && sure(gone, back));
            }
        }
        // One that is away at the end has gone, too, whether it was seen or not.
        for (item, times) in &told {
            let (all, _) = absences.get(item).copied().unwrap_or_default();
            assert!(*times <= all + 1, "{item} was told gone {times} times and went {all} times");
        }
        for (item, (_, certain)) in &absences {
            let times = told.get(*item).copied().unwrap_or_default();
            assert!(times >= *certain, "{item} was told gone {times} times and surely went {certain} times");
        }
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
