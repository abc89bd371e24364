//! An upstream that knows every state it ever had, and what must have become of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use stakeout_sim::{Script, ScriptServer, Segment, serve};

use crate::support::{Eye, LEASE_MS, now_ms, until};

pub(crate) const SEED: u64 = 20_261_116;
pub(crate) const INTERVAL_MS: u64 = 40;
/// How long a request may take.
pub(crate) const TIMEOUT_MS: u64 = 500;
/// A state that was shown for so long while somebody was polling steadily must be known.
const SURE_MS: u64 = 1_000;
/// Answers that follow each other no later than this are steady. Whoever takes over from a node that was not heard of waits
/// a request's time-out first, so nobody's lease ran out between two of them: the first was committed before the second
/// was asked for. A pause of whoever it may be is a longer one.
const STEADY_MS: u64 = TIMEOUT_MS - 100;
/// So many steady answers with the same state: the last one may have been lost, and one more may be of a node that stood
/// still between looking at its lease and asking.
const SURE_ANSWERS: usize = 3;

/// The lease, one request time-out of the successor, a look, and a machine that has other things to do.
pub(crate) const SOON: Duration = Duration::from_millis(LEASE_MS + TIMEOUT_MS + 1_000 + 5_000);

/// Lets the nodes poll for a while.
pub(crate) fn some_polls(eye: &Eye, truth: &mut Truth) {
    let (mut began, mut last) = (now_ms(), now_ms());
    let (mut first, mut polls) = (eye.polls(), eye.polls());
    until("it is polled", || {
        let (now, counted) = (now_ms(), eye.polls());
        if now - last > SURE_MS / 2 {
            // After a fault work may still change hands: what was shown meanwhile need not have been seen.
            (began, first) = (now, counted);
        }
        if counted > polls {
            (polls, last) = (counted, now);
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

    /// From then until now nobody did anything to those who poll. Where they did not poll steadily, nothing is sure.
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
        let answers = self.answered();
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
        let answers = self.answered();
        self.compare_where(eye, |from, until| {
            self.calm.iter().any(|(began, ended)| is_sure(&answers, from.max(*began), until.min(*ended)))
        })
    }

    /// The moments of the answers, in their order.
    fn answered(&self) -> Vec<u64> {
        let mut answered: Vec<u64> = self.server.answers().iter().map(|answer| answer.at_ms).collect();
        answered.sort_unstable();
        answered
    }

    fn compare_where(&self, eye: &Eye, sure: impl Fn(u64, u64) -> bool) -> usize {
        // What is gone is told without its last value.
        let told = count(eye.texts("SELECT data FROM events ORDER BY seq"), |data| {
            data.get("natural").is_none().then(|| data["record"]["value"].as_i64().expect("a value"))
        });
        let history = count(eye.texts("SELECT values_json FROM history"), |values| values["value"].as_i64());
        let now = now_ms();
        let truth = self.script.truth(0, now);
        let real: BTreeSet<i64> = truth.iter().map(|segment| segment.value as i64).collect();
        assert!(told.keys().chain(history.keys()).all(|value| real.contains(value)), "invented");
        assert!(told.values().all(|times| *times == 1), "told twice: {told:?}");
        assert!(history.values().all(|times| *times == 1), "written twice: {history:?}");
        compare_removals(eye, &truth, now, &sure);
        let mut checked = 0;
        for segment in &truth {
            if !sure(segment.from_ms, segment.until_ms.min(now)) {
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

/// Whether what was shown all that time, in which nobody was hurt, must be known.
fn is_sure(answers: &[u64], from: u64, until: u64) -> bool {
    if until < from + SURE_MS {
        return false;
    }
    let begins = answers.partition_point(|at| *at < from);
    let ends = answers.partition_point(|at| *at < until);
    let shown = &answers[begins..ends];
    let moments: Vec<u64> = [from].into_iter().chain(shown.iter().copied()).chain([until]).collect();
    shown.len() >= SURE_ANSWERS && moments.windows(2).all(|two| two[1] - two[0] <= STEADY_MS)
}

/// No item was told gone more often than it went, nor less often than it must have been seen to.
fn compare_removals(eye: &Eye, truth: &[Segment], now: u64, sure: &impl Fn(u64, u64) -> bool) {
    let mut told: BTreeMap<String, u64> = BTreeMap::new();
    for item in eye.texts("SELECT subject_key FROM events WHERE data::jsonb ? 'natural'") {
        *told.entry(item).or_default() += 1;
    }
    let mut items: BTreeMap<&str, Vec<&Segment>> = BTreeMap::new();
    for segment in truth {
        items.entry(&segment.item).or_default().push(segment);
    }
    for item in told.keys() {
        assert!(items.contains_key(item.as_str()), "{item} was told gone and never existed");
    }
    for (item, segments) in items {
        let (went, surely) = times_gone(&segments, now, sure);
        let times = told.get(item).copied().unwrap_or_default();
        assert!(times <= went, "{item} was told gone {times} times and went {went} times");
        assert!(times >= surely, "{item} was told gone {times} times and surely went {surely} times");
    }
}

/// How often an item went until now, and how often that must have been seen: it was surely seen, and later surely away. An
/// absence alone proves nothing: where nobody saw it come back from the one before, nobody could tell that it went again.
fn times_gone(segments: &[&Segment], now: u64, sure: &impl Fn(u64, u64) -> bool) -> (u64, u64) {
    let (mut went, mut surely, mut is_known) = (0, 0, false);
    let backs = segments.iter().skip(1).map(|next| next.from_ms).chain([now]);
    for (segment, back) in segments.iter().zip(backs) {
        let gone = segment.until_ms;
        is_known |= sure(segment.from_ms, gone.min(now));
        if gone < back {
            went += 1;
            if is_known && sure(gone, back) {
                surely += 1;
                is_known = false;
            }
        }
    }
    (went, surely)
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

#[test]
fn what_is_shown_in_a_pause_is_not_sure() {
    let every = |ms: u64, from: u64, until: u64| (from..until).step_by(ms as usize);
    let steady: Vec<u64> = every(40, 0, 2_000).collect();
    assert!(is_sure(&steady, 0, 1_000) && is_sure(&steady, 500, 1_900));
    assert!(!is_sure(&steady, 0, 900), "too short");
    let paused: Vec<u64> = every(40, 0, 400).chain(every(40, 900, 2_000)).collect();
    assert!(!is_sure(&paused, 0, 1_800), "somebody stood still");
    assert!(is_sure(&paused, 900, 1_900), "and went on");
    assert!(!is_sure(&steady, 1_500, 2_600), "nobody asks any more");
}

#[test]
fn an_item_that_came_and_went_unseen_was_not_seen_to_go() {
    let there = |from_ms, until_ms| Segment { item: "d".to_owned(), value: 1, from_ms, until_ms };
    let segments = [there(0, 10), there(20, 30), there(40, 50)];
    let segments: Vec<&Segment> = segments.iter().collect();
    let all = |_: u64, _: u64| true;
    assert_eq!(times_gone(&segments, 60, &all), (3, 3));
    assert_eq!(times_gone(&segments, 45, &all), (2, 2), "it is there now");
    // Nobody looked from 15 to 35: it was away before and after.
    let looked = |from: u64, until: u64| from < 15 || until > 35;
    assert_eq!(times_gone(&segments, 45, &looked), (2, 1));
}
