//! Reading the past that a rule looks at: events, histories of races, the poll log. Everything is bounded.

mod polls;
mod races;

use std::collections::BTreeMap;
use std::sync::Arc;

use stakeout_core::alert::{Alerts, EVENT_TYPE, Went, began};
use stakeout_core::{Event, Facts, Fingerprint, Source, Span, TargetSpec, Time};
use stakeout_sources::alert::{AlertConfig, IndicatorOf, RuleBook, When};
use stakeout_sources::racing::{MONEY_FLOW_HISTORY, ODDS_HISTORY};
use stakeout_store::{EventFilter, NotificationFilter, Store, StoreError, StoredRecord};

use super::looks::Rhythm;
use super::replay::{Happening, Past};

/// The most events and polls that are looked at.
const MOST_EVENTS: usize = 20_000;
const PAGE: u32 = 1_000;
/// Prices and money move so long before a race at most, as far as this looks.
const BEFORE_START: Span = Span::hours(24);
/// Who was asked, and what else is in force: both decide when there was a look.
pub struct Around<'a> {
    /// The sources by name.
    pub names: Vec<String>,
    /// The sources themselves, as far as they can be made here.
    pub sources: Vec<Arc<dyn Source>>,
    /// The rules in force.
    pub rules: &'a dyn Alerts,
}

/// What a rule looks at, within a time.
pub(super) async fn gather(
    store: &dyn Store,
    (rule, book): (&AlertConfig, &RuleBook),
    around: &Around<'_>,
    (since, until): (Time, Time),
) -> Result<Past, StoreError> {
    // What rang before the window may have been told again in it.
    let from = since - rule.reaches_back();
    let past = Past { since, until, ..Past::default() };
    let mut gathering = Gathering { store, rule, book, around, from, until, past };
    gathering.all().await?;
    let mut past = gathering.past;
    past.happenings.sort_by_key(|happening| happening.at);
    Ok(past)
}

struct Gathering<'a> {
    store: &'a dyn Store,
    rule: &'a AlertConfig,
    /// Of this rule alone.
    book: &'a RuleBook,
    around: &'a Around<'a>,
    from: Time,
    until: Time,
    past: Past,
}

impl Gathering<'_> {
    async fn all(&mut self) -> Result<(), StoreError> {
        match &self.rule.when {
            When::Event { event_type, .. } => {
                self.events(type_filter(event_type)).await?;
                if self.rule.repeat.is_some() {
                    self.read().await?;
                }
            }
            When::Drop { .. } => {
                self.events(Some("tables.drop".into())).await?;
                if self.rule.repeat.is_some() {
                    self.ends().await?;
                }
            }
            When::Pilot { .. } => {
                // Who flies soon, and what was flown.
                for event_type in ["fpv.race.current_changed", "fpv.race.reseated", "fpv.race.ended"] {
                    self.events(Some(event_type.into())).await?;
                }
            }
            When::Odds { within, .. } => self.races(ODDS_HISTORY, within.0).await?,
            When::Money { within, .. } => self.races(MONEY_FLOW_HISTORY, within.0).await?,
            When::Indicator { of: IndicatorOf::Odds, .. } => self.races(ODDS_HISTORY, BEFORE_START).await?,
            When::Indicator { of: IndicatorOf::Money, .. } => {
                self.races(MONEY_FLOW_HISTORY, BEFORE_START).await?;
            }
            When::Start { before } => self.starts(before.0).await?,
            When::Unhealthy { failures } => self.health(*failures).await?,
            When::Missed { polls } => {
                self.polls().await?;
                if self.rule.repeat.is_some() {
                    self.looks(|went| went.missed >= *polls).await?;
                }
            }
        }
        Ok(())
    }

    /// The sources that the rule is about.
    fn sources(&self) -> Vec<String> {
        let meant = |name: &&String| self.rule.source.as_ref().is_none_or(|wanted| wanted == *name);
        self.around.names.iter().filter(meant).cloned().collect()
    }

    fn source(&self, name: &str) -> Option<&dyn Source> {
        self.around.sources.iter().find(|source| source.name() == name).map(|source| &**source)
    }

    async fn events(&mut self, event_type: Option<String>) -> Result<(), StoreError> {
        let found = self.log(EventFilter { event_type, ..EventFilter::default() }).await?;
        // An alert is about what happened, not about alerts.
        for event in found.into_iter().filter(|event| event.event_type != EVENT_TYPE) {
            let (source, at) = (event.source.clone(), event.at);
            self.past.happenings.push(Happening { told: vec![event], ..plain(source, at) });
        }
        Ok(())
    }

    /// What the log says about this time, the newest first.
    async fn log(&mut self, filter: EventFilter) -> Result<Vec<Event>, StoreError> {
        let (mut before, mut found) = (u64::MAX, Vec::new());
        loop {
            let page = self.store.newest_events(before, &filter, PAGE).await?;
            let whole = page.len() as u32 == PAGE;
            for event in page {
                before = event.seq;
                if event.at < self.from {
                    return Ok(found);
                }
                if event.at < self.until {
                    found.push(event);
                }
            }
            if found.len() >= MOST_EVENTS {
                self.past.cut = true;
                return Ok(found);
            }
            if !whole {
                return Ok(found);
            }
        }
    }

    /// When somebody has read what this very rule told.
    async fn read(&mut self) -> Result<(), StoreError> {
        let (mut before, mut looked_at, all) = (u64::MAX, 0, NotificationFilter::default());
        loop {
            let page = self.store.notifications(before, &all, PAGE).await?;
            let whole = page.len() as u32 == PAGE;
            looked_at += page.len();
            for told in page {
                before = told.event.seq;
                if told.event.at < self.from {
                    return Ok(());
                }
                // A rule that was changed meanwhile is another one.
                if self.book.again(&told.event, told.event.at).is_none() {
                    continue;
                }
                let about = (told.event.source.clone(), told.event.subject);
                let first = self.past.read.entry(about).or_default().entry(began(&told.event)).or_default();
                *first = [*first, told.read].into_iter().flatten().min();
            }
            if !whole || looked_at >= MOST_EVENTS {
                return Ok(());
            }
        }
    }

    /// When what was told of was there no more. Of what came and went several times only the last time is known.
    async fn ends(&mut self) -> Result<(), StoreError> {
        let mut told: BTreeMap<String, Vec<Fingerprint>> = BTreeMap::new();
        for event in self.past.happenings.iter().flat_map(|happening| &happening.told) {
            told.entry(event.source.clone()).or_default().push(event.subject);
        }
        for (source, mut subjects) in told {
            subjects.sort_unstable();
            subjects.dedup();
            for page in subjects.chunks(PAGE as usize) {
                let held = self.store.records(&source, page).await?;
                let end = |record: StoredRecord| ((source.clone(), record.fingerprint), record.gone);
                self.past.ends.extend(held.into_iter().map(end));
            }
        }
        Ok(())
    }

    fn rhythm<'r>(
        &'r self,
        source: &'r dyn Source,
        spec: &'r TargetSpec,
        facts: &'r (dyn Fn(Time) -> Facts + Sync),
    ) -> Rhythm<'r> {
        Rhythm { source, spec, rules: self.around.rules, facts }
    }
}

/// The types that the log is asked for; `None` when all have to be looked at.
fn type_filter(pattern: &str) -> Option<String> {
    match pattern.strip_suffix('*') {
        None => Some(pattern.to_owned()),
        Some(beginning) if beginning.ends_with('.') => Some(beginning.to_owned()),
        Some(_) => None,
    }
}

fn plain(source: String, at: Time) -> Happening {
    Happening {
        source,
        target: None,
        at,
        looked: None,
        facts: Facts::default(),
        records: Vec::new(),
        moved: Vec::new(),
        told: Vec::new(),
        went: Went::default(),
    }
}
