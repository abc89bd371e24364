//! An upstream that changes by its own time, not by being polled, and knows afterwards what was true when.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::act::Act;
use crate::loopback::Loopback;
use crate::rng::mix;

/// Older answers leave the log first.
const ANSWERS_MAX: usize = 100_000;
/// Of these many items, the last comes and goes; the others are always there.
const VANISHING_EVERY: u64 = 4;
/// A vanishing item is away for one in so many of its segments.
const AWAY_ONE_IN: u64 = 3;

/// A deterministic upstream: each item holds a value for a while, then another; some items vanish and return.
///
/// An item's k-th change happens at `first change + k·mean + wobble(k)`, with a wobble of up to half the mean.
/// So any hold is between half and one and a half of the mean, and any moment is found without walking there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    seed: u64,
    items: u64,
    mean_hold_ms: u64,
    start_ms: u64,
}

/// A time during which one item had one value. Absences are the holes between segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The item's id.
    pub item: String,
    /// The value, unique among all items and times of the script.
    pub value: u64,
    /// The first millisecond, since the Unix epoch.
    pub from_ms: u64,
    /// The first millisecond after it.
    pub until_ms: u64,
}

impl Script {
    /// A script of `items` items that hold a value for `mean_hold_ms` on average, from `start_ms` (milliseconds
    /// since the Unix epoch) on. Before that there is nothing.
    ///
    /// # Panics
    /// When `mean_hold_ms` is less than 2, since a hold of no time cannot be seen.
    pub fn new(seed: u64, items: u64, mean_hold_ms: u64, start_ms: u64) -> Script {
        assert!(mean_hold_ms >= 2, "mean_hold_ms must be at least 2, not {mean_hold_ms}");
        Script { seed, items, mean_hold_ms, start_ms }
    }

    /// The shortest time a value holds.
    pub fn hold_min_ms(&self) -> u64 {
        self.mean_hold_ms - self.wobble_max()
    }

    /// The longest time a value holds.
    pub fn hold_max_ms(&self) -> u64 {
        self.mean_hold_ms + self.wobble_max()
    }

    /// What the upstream shows at that moment: `{"items":[{"id":"a","value":17,"name":"…"}…]}`.
    pub fn state_at(&self, t_ms: u64) -> Value {
        let shown =
            (0..self.items).filter_map(|item| self.segment_at(item, t_ms).map(|segment| (item, segment)));
        let items: Vec<Value> = shown
            .map(|(item, segment)| json!({"id": segment.item, "value": segment.value, "name": self.name(item)}))
            .collect();
        json!({ "items": items })
    }

    /// Every segment that overlaps `from_ms..to_ms`, whole, ordered by item and time.
    pub fn truth(&self, from_ms: u64, to_ms: u64) -> Vec<Segment> {
        if to_ms <= self.start_ms || from_ms >= to_ms {
            return Vec::new();
        }
        let mut segments = Vec::new();
        for item in 0..self.items {
            let mut k = self.index_at(item, from_ms.max(self.start_ms));
            while self.boundary(item, k) < to_ms {
                segments.extend(self.segment(item, k));
                k += 1;
            }
        }
        segments
    }

    /// The item's segment at that moment, if it is shown.
    fn segment_at(&self, item: u64, t_ms: u64) -> Option<Segment> {
        (t_ms >= self.start_ms).then(|| self.segment(item, self.index_at(item, t_ms)))?
    }

    fn segment(&self, item: u64, k: u64) -> Option<Segment> {
        let vanishing = item % VANISHING_EVERY == VANISHING_EVERY - 1;
        if vanishing && self.draw(item, k, Draw::Away).is_multiple_of(AWAY_ONE_IN) {
            return None;
        }
        let (from_ms, until_ms) = (self.boundary(item, k), self.boundary(item, k + 1));
        Some(Segment { item: id(item), value: k * self.items + item + 1, from_ms, until_ms })
    }

    /// The number of the segment that contains `t_ms`, which is not before the start.
    fn index_at(&self, item: u64, t_ms: u64) -> u64 {
        // Wobble and phase move a boundary by less than two means, so the guess is at most a few too low.
        let mut k = ((t_ms - self.start_ms) / self.mean_hold_ms).saturating_sub(1);
        while self.boundary(item, k + 1) <= t_ms {
            k += 1;
        }
        k
    }

    /// When segment `k` begins. The first one begins with the script; the phase keeps items from moving together.
    fn boundary(&self, item: u64, k: u64) -> u64 {
        if k == 0 {
            return self.start_ms;
        }
        let phase = self.hold_min_ms() + self.draw(item, 0, Draw::Phase) % (self.wobble_max() + 1);
        let wobble = self.draw(item, k, Draw::Wobble) % (self.wobble_max() + 1);
        self.start_ms + phase + (k - 1) * self.mean_hold_ms + wobble
    }

    fn wobble_max(&self) -> u64 {
        self.mean_hold_ms / 2
    }

    fn name(&self, item: u64) -> String {
        const FIRST: [&str; 8] = ["Amber", "Brisk", "Calm", "Dusky", "Early", "Fallow", "Gentle", "Hidden"];
        const LAST: [&str; 8] =
            ["Otter", "Harbour", "Kestrel", "Meadow", "Lantern", "Ridge", "Willow", "Ember"];
        let draw = self.draw(item, 0, Draw::Name) as usize;
        format!("{} {}", FIRST[draw % 8], LAST[draw / 8 % 8])
    }

    fn draw(&self, item: u64, k: u64, what: Draw) -> u64 {
        [what as u64, item, k].into_iter().fold(mix(self.seed), |hash, part| mix(hash.wrapping_add(part)))
    }
}

/// What a random number is for, so that no two uses share one.
#[derive(Clone, Copy)]
enum Draw {
    Phase = 1,
    Wobble = 2,
    Away = 3,
    Name = 4,
}

/// a, b, … z, aa, ab, …
fn id(item: u64) -> String {
    let mut letters = Vec::new();
    let mut rest = item + 1;
    while rest > 0 {
        letters.push(char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    letters.iter().rev().collect()
}

/// A script being served. Everything a [`Loopback`] can do, it can.
pub struct ScriptServer {
    loopback: Loopback,
    answers: Arc<Mutex<VecDeque<Answered>>>,
}

/// One answer that a [`ScriptServer`] gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The moment whose state it showed, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The [`body_hash`] of what it sent.
    pub body_hash: u64,
}

impl ScriptServer {
    /// The latest answers, oldest first: at most 100,000 are kept.
    pub fn answers(&self) -> Vec<Answered> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Deref for ScriptServer {
    type Target = Loopback;

    fn deref(&self) -> &Loopback {
        &self.loopback
    }
}

/// Serves the script at the real current time, on every path.
pub fn serve(script: Script) -> ScriptServer {
    serve_at(script, || {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    })
}

/// Serves the script at the time that `now_ms` tells (milliseconds since the Unix epoch), on every path.
pub fn serve_at(script: Script, now_ms: impl Fn() -> u64 + Send + Sync + 'static) -> ScriptServer {
    let answers = Arc::new(Mutex::new(VecDeque::new()));
    let log = Arc::clone(&answers);
    let loopback = Loopback::start(move |_| {
        let at_ms = now_ms();
        let body = script.state_at(at_ms).to_string();
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == ANSWERS_MAX {
            log.pop_front();
        }
        log.push_back(Answered { at_ms, body_hash: body_hash(body.as_bytes()) });
        Act::body("application/json", body)
    });
    ScriptServer { loopback, answers }
}

/// FNV-1a, 64 bits: enough to tell the bodies of one test apart.
pub fn body_hash(body: &[u8]) -> u64 {
    body.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    const START: u64 = 1_700_000_000_000;

    fn shown(script: &Script, t_ms: u64) -> BTreeMap<String, u64> {
        let state = script.state_at(t_ms);
        let items = state["items"].as_array().expect("items is a list");
        items
            .iter()
            .map(|item| (item["id"].as_str().expect("id").to_owned(), item["value"].as_u64().expect("value")))
            .collect()
    }

    #[test]
    fn a_seed_tells_the_same_story_every_time() {
        let (a, b) = (Script::new(5, 12, 800, START), Script::new(5, 12, 800, START));
        let other = Script::new(6, 12, 800, START);
        assert_eq!(a.truth(START, START + 60_000), b.truth(START, START + 60_000));
        assert_ne!(a.truth(START, START + 60_000), other.truth(START, START + 60_000));
        assert_eq!(a.state_at(START + 12_345).to_string(), b.state_at(START + 12_345).to_string());
    }

    #[test]
    fn the_state_at_any_moment_is_what_the_truth_says() {
        for seed in 0..4 {
            let script = Script::new(seed, 9, 40, START);
            let truth = script.truth(START, START + 2_000);
            for t in START..START + 2_000 {
                let told: BTreeMap<String, u64> = truth
                    .iter()
                    .filter(|s| (s.from_ms..s.until_ms).contains(&t))
                    .map(|s| (s.item.clone(), s.value))
                    .collect();
                assert_eq!(shown(&script, t), told, "seed {seed}, {} ms after the start", t - START);
            }
        }
    }

    #[test]
    fn values_are_unique_and_holds_stay_within_their_bounds() {
        let script = Script::new(3, 8, 1_000, START);
        let truth = script.truth(START, START + 500_000);
        let values: BTreeSet<u64> = truth.iter().map(|s| s.value).collect();
        assert_eq!(values.len(), truth.len(), "a value came twice");
        for s in &truth {
            let hold = s.until_ms - s.from_ms;
            assert!((script.hold_min_ms()..=script.hold_max_ms()).contains(&hold), "{s:?} held {hold} ms");
        }
        let mean = truth.iter().map(|s| s.until_ms - s.from_ms).sum::<u64>() / truth.len() as u64;
        assert!((980..1_020).contains(&mean), "mean hold {mean} ms");
    }

    #[test]
    fn some_items_vanish_and_return_and_the_others_stay() {
        let script = Script::new(1, 8, 100, START);
        let counts: Vec<usize> = (0..200).map(|i| shown(&script, START + i * 100).len()).collect();
        assert!(counts.contains(&8), "all eight are there at some time");
        assert!(counts.iter().all(|&n| n >= 6), "only the two vanishing ones go: {counts:?}");
        assert!(counts.windows(2).any(|w| w[0] > w[1]) && counts.windows(2).any(|w| w[0] < w[1]));
    }

    #[test]
    fn truth_is_cut_by_overlap_and_empty_before_the_start() {
        let script = Script::new(2, 3, 100, START);
        assert_eq!(script.truth(0, START), []);
        assert_eq!(script.state_at(START - 1), json!({"items": []}));
        let all = script.truth(START, START + 10_000);
        let window = script.truth(START + 4_000, START + 4_500);
        let expected: Vec<Segment> =
            all.into_iter().filter(|s| s.from_ms < START + 4_500 && s.until_ms > START + 4_000).collect();
        assert_eq!(window, expected);
    }

    #[test]
    fn ids_count_in_letters() {
        assert_eq!([0, 25, 26, 27, 701, 702].map(id), ["a", "z", "aa", "ab", "zz", "aaa"]);
    }
}
