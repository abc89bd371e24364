//! Ringing again: how often, how long, and what marks a ring as one that may be repeated.
//!
//! Prices, money, bands and failures are looked at with every poll, so polls repeat them; a start has bells of its own.
//! The other conditions tell of something that no poll brings up again: the engine repeats them by the clock. What it has
//! to know for that stands in what was told, under `repeat`: `rule`, a mark of the rule as it was then, `since`, when it
//! first rang, and `number`, which is 0 the first time.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Again, Lasts, RULE_PREFIX, Ring};
use stakeout_core::judge::Effect;
use stakeout_core::{Event, Fingerprint, Span, Time};

use super::told::{flies, is_wanted};
use super::{AlertConfig, When, words};
use crate::fpv::UPCOMING;

/// An event that nobody reads is repeated so long at most.
pub(super) const UNREAD_AT_MOST: Span = Span::hours(24);

/// Whether the clock repeats what this rule tells.
pub(super) fn is_by_clock(rule: &AlertConfig) -> bool {
    let told = matches!(
        rule.when,
        When::Event { .. } | When::Drop { .. } | When::Pilot { .. } | When::Missed { .. }
    );
    told && rule.repeat.is_some()
}

/// What stands in the first ring of a rule that repeats.
pub(super) fn first(name: &str, rule: &AlertConfig, at: Time) -> Json {
    json!({ "rule": mark(name, rule), "since": at, "number": 0 })
}

/// A rule that was changed is another rule: what it told before is not repeated.
fn mark(name: &str, rule: &AlertConfig) -> String {
    Fingerprint::of("alert", &[name, &json!(rule).to_string()]).to_string()
}

/// The rule that told this, if it is still the same.
pub(super) fn rule_of<'a>(
    rules: &'a BTreeMap<String, AlertConfig>,
    rung: &Event,
) -> Option<(&'a String, &'a AlertConfig)> {
    let (name, rule) = rules.get_key_value(rung.rule.strip_prefix(RULE_PREFIX)?)?;
    (is_by_clock(rule) && rung.data["repeat"]["rule"] == mark(name, rule)).then_some((name, rule))
}

/// How this rings again.
pub(super) fn again(name: &str, rule: &AlertConfig, rung: &Event, now: Time) -> Option<Again> {
    let lasts = match &rule.when {
        When::Event { .. } => Lasts::Unread(UNREAD_AT_MOST),
        When::Drop { .. } => Lasts::Held,
        When::Pilot { .. } => Lasts::Published(UPCOMING.to_owned(), rung.source.clone()),
        When::Missed { polls } => Lasts::Missed(rung.subject_key.clone(), *polls),
        _ => return None,
    };
    let awake = rule.is_awake(&rung.source, now);
    Some(Again { after: rule.again()?, awake, lasts, ring: repeated(name, rule, rung, &first_text(rung)) })
}

/// What rings again, if what is there now is what was told of: the table is still one that is wanted, or the pilot is still
/// to fly in the race that they were called for.
pub(super) fn still(name: &str, rule: &AlertConfig, rung: &Event, now: &Json) -> Option<Ring> {
    let told = &rung.data["about"]["data"];
    let words = match &rule.when {
        When::Drop { .. } => {
            let mut table = told.clone();
            // Of all that a rule looks at, only this can change while a table is open.
            if now["party_sizes"].is_array() {
                table["party_sizes"] = now["party_sizes"].clone();
            }
            is_wanted(&rule.when, &table).then(|| words::table(&table))?
        }
        When::Pilot { pilot, within } => {
            let (_, called_for) = flies(name, &told["upcoming"], pilot, *within)?;
            let (words, key) = flies(name, &now["upcoming"], pilot, *within)?;
            (key == called_for).then_some(words)?
        }
        _ => return None,
    };
    let mut ring = repeated(name, rule, rung, &words.text);
    ring.data["title"] = words.title.into();
    Some(ring)
}

/// The same once more. Each ring has one successor at most, whoever makes it: so it is one across nodes and crashes.
fn repeated(name: &str, rule: &AlertConfig, rung: &Event, text: &str) -> Ring {
    let mut data = rung.data.clone();
    let ending = match rule.when {
        When::Event { .. } => "not read yet",
        _ => "still so",
    };
    data["repeat"]["number"] = json!(number(rung) + 1);
    data["repeat"]["text"] = json!(text);
    data["text"] = json!(format!("{text} – {ending}"));
    Ring {
        alert: name.to_owned(),
        follows: None,
        subject: rung.subject,
        subject_key: rung.subject_key.clone(),
        requires: Effect::Any,
        quiet: rule.quiet.map(|quiet| quiet.0),
        dedupe_key: Some(format!("again|{}", rung.id)),
        sinks: rule.sinks.clone(),
        data,
    }
}

fn number(rung: &Event) -> u64 {
    rung.data["repeat"]["number"].as_u64().unwrap_or(0)
}

/// What the first ring said: a repeat has an ending of its own.
fn first_text(rung: &Event) -> String {
    let text = rung.data["repeat"]["text"].as_str().or(rung.data["text"].as_str());
    text.unwrap_or_default().to_owned()
}

/// The bells of a race that come after `now`: the first, and if it repeats those that follow until the start.
pub(super) fn bells(first: Time, start: Time, again: Option<Span>, now: Time) -> impl Iterator<Item = Time> {
    let passed = match again {
        Some(again) if now >= first => (now - first).as_us() / again.as_us() + 1,
        _ => 0,
    };
    let bell = move |number: i64| match again {
        Some(again) => Some(first + again.times(number)),
        None => (number == 0).then_some(first),
    };
    (passed..).map_while(bell).take_while(move |bell| *bell < start).filter(move |bell| *bell > now)
}

/// Which of a race's bells it is time for, and the silence before it. A look that came late must not bring two bells
/// at once, nor a little lateness take one away: so they keep most of their distance.
pub(super) fn bell_number(rule: &AlertConfig, first: Time, at: Time) -> (i64, Option<Span>) {
    let quiet = rule.quiet.map(|quiet| quiet.0);
    let Some(again) = rule.again() else { return (0, quiet) };
    match (at - first).as_us() / again.as_us() {
        // It leaves its trace for the next one.
        0 => (0, Some(quiet.unwrap_or(Span::ZERO))),
        number => (number, Some(again.times(9).over(10))),
    }
}
