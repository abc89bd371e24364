//! What polls tell by themselves: that a race starts soon, that a source does not answer, that looks were missed.

use serde_json::json;
use stakeout_core::alert::{Ring, Went};
use stakeout_core::compare::target_fingerprint;
use stakeout_core::{Span, Value};

use super::super::look::starts_in;
use super::super::words::Words;
use super::super::{AlertConfig, again};
use super::Seen;
use crate::racing::FAMILY as RACING;

/// How the type of the event ends that tells of refused credentials.
const CREDENTIALS: &str = ".credentials";

impl Seen<'_> {
    pub(super) fn bell(&self, name: &str, rule: &AlertConfig, before: Span) -> Option<Ring> {
        let target = self.occasion.target?;
        let (start, at) = (starts_in(self.occasion, before)?, self.occasion.at);
        let races =
            self.occasion.records.iter().find(|r| r.kind.family == RACING && r.kind.collection == "races");
        let called = races.and_then(|race| race.get("name")).and_then(Value::as_text).unwrap_or(&target.key);
        let words = Words::new(
            format!("{called} starts in {}", Span::secs(((start - at).as_secs_f64()).round() as i64)),
            format!("{called} is to start at {start}"),
        );
        let subject = (target_fingerprint(&target.key), target.key.as_str());
        let ring = self.ring(name, rule, subject, words, json!({ "start": start }));
        let key = format!("alert|{name}|{}|{}|{start}", self.occasion.source, target.key);
        let (number, quiet) = again::bell_number(rule, start - before, at);
        // The first one's key has no number, as it has none where nothing repeats.
        let dedupe_key = Some(if number == 0 { key } else { format!("{key}|{number}") });
        Some(Ring { dedupe_key, quiet, ..ring })
    }

    pub(super) fn unhealthy(&self, name: &str, rule: &AlertConfig, failures: u32) -> Option<Ring> {
        let failed = self.occasion.went.failures;
        // Whoever is refused asks only once in a while: there will not be so many failures in a row soon.
        let refused = self.occasion.told.iter().find(|told| told.event_type.ends_with(CREDENTIALS));
        if refused.is_none() && failed < failures {
            return None;
        }
        let quiet = match failed > failures {
            true => self.quiet_of_outage(rule, refused.is_some())?,
            false => rule.silence(),
        };
        let (source, target) = (self.occasion.source, self.occasion.target?);
        let text = match refused {
            Some(told) => format!(
                "{source} does not take our credentials: {}",
                told.data["message"].as_str().unwrap_or("it does not say why")
            ),
            None => format!("{failed} polls of {source}/{} failed in a row", target.key),
        };
        let words = Words::new(format!("{source} does not answer as it should"), text);
        let subject = (target_fingerprint(source), source);
        let ring = self.ring(name, rule, subject, words, json!({ "target": target.key, "failures": failed }));
        Some(Ring { quiet: Some(quiet), ..ring })
    }

    /// The silence before an outage that goes on is told. One is told once, unless the rule repeats; but one that began in the
    /// quiet time of another is told when that is over. Anything that rang since the last good look was about this one.
    fn quiet_of_outage(&self, rule: &AlertConfig, refused: bool) -> Option<Span> {
        match (rule.again(), self.occasion.looked) {
            (Some(again), _) => Some(again),
            (None, _) if refused => Some(rule.silence()),
            (None, Some(looked)) => Some(rule.silence().max(self.occasion.at - looked)),
            // Since when it lasts nobody knows: it was told when it began, or never is.
            (None, None) => None,
        }
    }

    pub(super) fn missed(&self, name: &str, rule: &AlertConfig, polls: u64) -> Option<Ring> {
        let Went { missed, missed_before, .. } = self.occasion.went;
        let target = self.occasion.target.filter(|_| missed >= polls)?;
        // While it goes on it is the clock that repeats it.
        if rule.repeat.is_some() && missed_before >= polls {
            return None;
        }
        let words = Words::new(
            format!("{} was not looked at in time", target.key),
            format!(
                "{missed} polls of {}/{} did not happen when they should have",
                self.occasion.source, target.key
            ),
        );
        let subject = (target_fingerprint(&target.key), target.key.as_str());
        let ring = self.ring(name, rule, subject, words, json!({ "target": target.key, "missed": missed }));
        Some(Ring { quiet: Some(rule.silence()), ..ring })
    }
}
