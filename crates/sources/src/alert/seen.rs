//! What rings on an occasion: which rules are meant by what was seen and told.

mod polls;
mod runners;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Moment, Occasion, Question, Ring, Told, is_type};
use stakeout_core::compare::target_fingerprint;
use stakeout_core::judge::Effect;
use stakeout_core::{Fingerprint, Record};

use super::look::{PRICE, SHARE, looked_at};
use super::test::at_path;
use super::told::{flies_soon, is_wanted};
use super::words::{self, Words};
use super::{AlertConfig, When, again};

/// An occasion with the history that was asked for.
pub(super) struct Seen<'a> {
    pub(super) occasion: &'a Occasion<'a>,
    pub(super) answers: &'a [(Question, Vec<Moment>)],
}

impl Seen<'_> {
    pub(super) fn rings(&self, name: &str, rule: &AlertConfig) -> Vec<Ring> {
        match &rule.when {
            When::Event { event_type, filters } => self.each_told(name, rule, |told| {
                let meant = is_type(told.event_type, event_type)
                    && filters.iter().all(|(path, test)| test.holds(at_path(told.data, path)));
                meant.then(|| (words::event(told), None))
            }),
            When::Drop { .. } => self.each_told(name, rule, |told| {
                let meant = told.event_type == "tables.drop" && is_wanted(&rule.when, told.data);
                meant.then(|| (words::table(told.data), None))
            }),
            When::Pilot { pilot, within } => {
                let rings = self.each_told(name, rule, |told| flies_soon(name, told, pilot, *within));
                // Each of their races is told of as another subject: quiet is kept about the pilot.
                let subject = target_fingerprint(&format!("pilot/{}", pilot.to_lowercase()));
                rings.into_iter().map(|ring| Ring { subject, subject_key: pilot.clone(), ..ring }).collect()
            }
            When::Odds { direction, percent, within } => {
                let of = looked_at(rule, self.occasion, PRICE);
                of.filter_map(|(record, step)| {
                    self.price(name, rule, record, step, (*direction, *percent, within.0))
                })
                .collect()
            }
            When::Money { points, within } => {
                let of = looked_at(rule, self.occasion, SHARE);
                of.filter_map(|(record, step)| self.share(name, rule, record, step, (*points, within.0)))
                    .collect()
            }
            When::Indicator { of, percent } => self.indicators(name, rule, *of, *percent),
            When::Start { before } => self.bell(name, rule, before.0).into_iter().collect(),
            When::Unhealthy { failures } => self.unhealthy(name, rule, *failures).into_iter().collect(),
            When::Missed { polls } => self.missed(name, rule, *polls).into_iter().collect(),
        }
    }

    /// Rings with each event that is meant, if that comes about.
    fn each_told(
        &self,
        name: &str,
        rule: &AlertConfig,
        meant: impl Fn(&Told<'_>) -> Option<(Words, Option<String>)>,
    ) -> Vec<Ring> {
        let mut rings = Vec::new();
        for (index, told) in self.occasion.told.iter().enumerate() {
            let Some((words, dedupe_key)) = meant(told) else { continue };
            let subject = (told.subject, told.subject_key);
            let ring =
                self.ring(name, rule, subject, words, json!({ "type": told.event_type, "data": told.data }));
            rings.push(Ring {
                follows: Some(index),
                dedupe_key,
                quiet: rule.quiet.map(|quiet| quiet.0),
                ..ring
            });
        }
        rings
    }

    fn ring(
        &self,
        name: &str,
        rule: &AlertConfig,
        (subject, subject_key): (Fingerprint, &str),
        words: Words,
        about: Json,
    ) -> Ring {
        let mut data = json!({
            "alert": name,
            "user": rule.user,
            "severity": rule.severity,
            "title": words.title,
            "text": words.text,
            "about": about,
        });
        if again::is_by_clock(rule) {
            data["repeat"] = again::first(name, rule, self.occasion.at);
        }
        Ring {
            alert: name.to_owned(),
            follows: None,
            subject,
            subject_key: subject_key.to_owned(),
            requires: Effect::Any,
            quiet: None,
            dedupe_key: None,
            sinks: rule.sinks.clone(),
            data,
        }
    }

    /// The history of a record's stream that was asked for.
    fn rows(&self, record: &Record, stream: &str) -> &[Moment] {
        let found = self
            .answers
            .iter()
            .find(|(question, _)| question.record == record.fingerprint && question.stream == stream);
        found.map_or(&[], |(_, rows)| rows.as_slice())
    }
}
