//! The book of rules: what it has to know, and what rings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Again, Alerts, Bell, Moment, Occasion, Places, Question, Ring};
use stakeout_core::{Event, Facts, Fingerprint, Record, SettingRefused, Stage, Time};

use super::look::{POOL, PRICE, SHARE, asks_if_still, grid_begin, looked_at, runners, starts_in};
use super::seen::Seen;
use super::{AlertConfig, IndicatorOf, When, again};
use crate::ConfigRefused;
use crate::racing::{MONEY_FLOW_HISTORY, ODDS_HISTORY};

/// The rules in force, by name.
#[derive(Clone, Debug, Default)]
pub struct RuleBook {
    rules: BTreeMap<String, AlertConfig>,
}

impl RuleBook {
    /// A book of these rules, each of which can ring.
    pub fn new(rules: BTreeMap<String, AlertConfig>) -> Result<RuleBook, ConfigRefused> {
        for (name, rule) in &rules {
            rule.check(name)?;
        }
        Ok(RuleBook { rules })
    }

    /// The rules, by name.
    pub fn rules(&self) -> &BTreeMap<String, AlertConfig> {
        &self.rules
    }

    /// Those that may ring for a source now.
    fn awake(&self, source: &str, at: Time) -> impl Iterator<Item = (&String, &AlertConfig)> {
        self.rules.iter().filter(move |(_, rule)| rule.is_awake(source, at))
    }
}

impl Alerts for RuleBook {
    fn configured(&self, stored: &BTreeMap<String, Json>) -> Result<Arc<dyn Alerts>, SettingRefused> {
        let mut rules = self.rules.clone();
        for (name, rule) in stored {
            rules.insert(name.clone(), read(name, rule)?);
        }
        Ok(Arc::new(RuleBook { rules }))
    }

    fn written(&self) -> BTreeMap<String, Json> {
        let written = |(name, rule): (&String, &AlertConfig)| (name.clone(), json!(rule));
        self.rules.iter().map(written).collect()
    }

    fn places(&self, rule: &str) -> Places {
        let places = |rule: &AlertConfig| Places {
            event_type: rule.event_type().map(str::to_owned),
            source: rule.source.clone(),
            sinks: rule.sinks.clone(),
        };
        self.rules.get(rule).map_or_else(Places::default, places)
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn wants_records(&self, occasion: &Occasion<'_>) -> bool {
        let wants = |rule: &AlertConfig| match &rule.when {
            // A race is called by its name.
            When::Start { before } => starts_in(occasion, before.0).is_some(),
            _ => asks_if_still(rule, occasion),
        };
        self.awake(occasion.source, occasion.at).any(|(_, rule)| wants(rule))
    }

    fn questions(&self, occasion: &Occasion<'_>) -> Vec<Question> {
        let mut wanted: BTreeMap<(Fingerprint, &str), Time> = BTreeMap::new();
        let mut ask = |record: &Record, stream: &'static str, since: Time| {
            let from = wanted.entry((record.fingerprint, stream)).or_insert(since);
            *from = (*from).min(since);
        };
        for (_, rule) in self.awake(occasion.source, occasion.at) {
            match &rule.when {
                When::Odds { within, .. } => looked_at(rule, occasion, PRICE)
                    .for_each(|(record, _)| ask(record, ODDS_HISTORY, occasion.at - within.0)),
                When::Money { within, .. } => looked_at(rule, occasion, SHARE)
                    .for_each(|(record, _)| ask(record, MONEY_FLOW_HISTORY, occasion.at - within.0)),
                When::Indicator { of, .. } => {
                    let Some(since) = grid_begin(occasion) else { continue };
                    match of {
                        IndicatorOf::Odds => {
                            looked_at(rule, occasion, PRICE)
                                .for_each(|(record, _)| ask(record, ODDS_HISTORY, since));
                        }
                        IndicatorOf::Money if looked_at(rule, occasion, POOL).next().is_some() => {
                            runners(occasion).for_each(|record| ask(record, MONEY_FLOW_HISTORY, since));
                        }
                        IndicatorOf::Money => {}
                    }
                }
                _ => {}
            }
        }
        let question = |((record, stream), since): ((Fingerprint, &str), Time)| Question {
            record,
            stream: stream.to_owned(),
            since,
        };
        wanted.into_iter().map(question).collect()
    }

    fn judge(&self, occasion: &Occasion<'_>, answers: &[(Question, Vec<Moment>)]) -> Vec<Ring> {
        let seen = Seen { occasion, answers };
        self.awake(occasion.source, occasion.at).flat_map(|(name, rule)| seen.rings(name, rule)).collect()
    }

    fn bell(&self, source: &str, facts: &Facts, now: Time) -> Option<Time> {
        let start = facts.start.filter(|_| facts.stage == Stage::Pending)?;
        let rings = |rule: &AlertConfig| rule.bells(start, now).find(|bell| rule.is_awake(source, *bell));
        self.rules.values().filter_map(rings).min()
    }

    fn bells(&self) -> BTreeSet<Bell> {
        let bell = |rule: &AlertConfig| {
            let hours = rule.hours.as_ref().map(|hours| json!(hours).to_string());
            Some((rule.source.clone(), rule.when.before()?, rule.again(), hours))
        };
        self.rules.values().filter(|rule| rule.enabled).filter_map(bell).collect()
    }

    fn repeats(&self) -> bool {
        self.rules.values().any(again::is_by_clock)
    }

    fn again(&self, rung: &Event, now: Time) -> Option<Again> {
        let (name, rule) = again::rule_of(&self.rules, rung)?;
        again::again(name, rule, rung, now)
    }

    fn still(&self, rung: &Event, now: &Json) -> Option<Ring> {
        let (name, rule) = again::rule_of(&self.rules, rung)?;
        again::still(name, rule, rung, now)
    }
}

/// A rule as it is stored.
fn read(name: &str, rule: &Json) -> Result<AlertConfig, SettingRefused> {
    let refused = |expected: String| SettingRefused::new(&format!("alert.{name}"), rule, expected);
    let config: AlertConfig = serde_path_to_error::deserialize(rule)
        .map_err(|error| refused(format!("{}: {}", error.path(), error.inner())))?;
    config.check(name).map_err(|error| refused(error.to_string()))?;
    Ok(config)
}
