//! Chains: what rang and rings again by the clock. The engine follows them with a store that it asks, whoever tries a rule on
//! the past with what the past says; when something is due again and whether it still lasts is decided here for both.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Again, Alerts, Lasts, Ring};
use crate::{Event, Fingerprint, Span, Time};

/// A rule that keeps silent at the moment is asked again after this.
const LATER: Span = Span::mins(1);

/// The alert's rule, the source, and what it is about.
pub type ChainKey = (String, String, Fingerprint);

/// What rang about one thing.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The last one.
    pub last: Event,
    /// The numbers of all of them, the first first.
    pub seqs: Vec<u64>,
    due: Time,
}

/// When something that rang, or rang again, first did.
pub fn began(rung: &Event) -> Time {
    rung.data["repeat"]["since"].as_str().and_then(Time::parse).unwrap_or(rung.at)
}

/// What was found out about something that is due again, as its [`Lasts`] asks for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Whether somebody has read any of its notifications.
    Read(bool),
    /// What is held or published there; `None` when nothing is.
    There(Option<Json>),
    /// How many polls did not happen before the target's last one; `None` when it is not polled.
    Missed(Option<u64>),
}

impl Again {
    /// What is told again, if it is still so.
    pub fn lasting(self, rules: &dyn Alerts, rung: &Event, found: &Found, now: Time) -> Option<Ring> {
        let lasts = match (&self.lasts, found) {
            (Lasts::Unread(at_most), Found::Read(is_read)) => !is_read && now - began(rung) <= *at_most,
            (Lasts::Held | Lasts::Published(..), Found::There(there)) => {
                return there.as_ref().and_then(|there| rules.still(rung, there));
            }
            (Lasts::Missed(_, polls), Found::Missed(missed)) => missed.is_some_and(|missed| missed >= *polls),
            // An answer to another question says nothing about this one.
            _ => false,
        };
        lasts.then_some(self.ring)
    }
}

/// Everything that may ring again.
#[derive(Clone, Debug, Default)]
pub struct Chains(BTreeMap<ChainKey, Chain>);

impl Chains {
    /// A ring begins its chain, a repeat goes on with it. What rang anew about the same thing takes the place of what rang
    /// before.
    pub fn take(&mut self, rules: &dyn Alerts, event: Event, now: Time) {
        let key = (event.rule.clone(), event.source.clone(), event.subject);
        // What was told here is read from the log, too.
        if self.0.get(&key).is_some_and(|chain| chain.last.seq >= event.seq) {
            return;
        }
        let before = self.0.remove(&key);
        let Some(again) = rules.again(&event, now) else { return };
        let is_repeat = event.data["repeat"]["number"] != 0;
        let mut seqs = before.filter(|_| is_repeat).map(|chain| chain.seqs).unwrap_or_default();
        seqs.push(event.seq);
        self.0.insert(key, Chain { due: event.at + again.after, last: event, seqs });
    }

    /// When the next one is due.
    pub fn next_due(&self) -> Option<Time> {
        self.0.values().map(|chain| chain.due).min()
    }

    /// Those that are due.
    pub fn due(&self, now: Time) -> Vec<ChainKey> {
        let due = self.0.iter().filter(|(_, chain)| chain.due <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// One that is due, and how it rings again. `None` when it does not now: its rule is another, or keeps silent at the
    /// moment and is asked later.
    pub fn ask(&mut self, rules: &dyn Alerts, key: &ChainKey, now: Time) -> Option<(&Chain, Again)> {
        let Some(again) = rules.again(&self.0.get(key)?.last, now) else {
            self.0.remove(key);
            return None;
        };
        let chain = self.0.get_mut(key)?;
        if !again.awake {
            chain.due = now + LATER.min(again.after);
            return None;
        }
        Some((chain, again))
    }

    /// It rings no sooner than this.
    pub fn put_off(&mut self, key: &ChainKey, until: Time) {
        if let Some(chain) = self.0.get_mut(key) {
            chain.due = until;
        }
    }

    /// It does not last.
    pub fn end(&mut self, key: &ChainKey) {
        self.0.remove(key);
    }

    /// Keeps so many of each rule at most: lets go of those that rang longest ago, and answers of which rule how many.
    pub fn keep(&mut self, most: usize) -> BTreeMap<String, usize> {
        let mut let_go = BTreeMap::new();
        // The usual case: as long as they are not too many together, those of no rule are.
        if self.0.len() <= most {
            return let_go;
        }
        let mut by_rule: BTreeMap<String, Vec<(u64, ChainKey)>> = BTreeMap::new();
        for (key, chain) in &self.0 {
            by_rule.entry(key.0.clone()).or_default().push((chain.last.seq, key.clone()));
        }
        for (rule, mut by_age) in by_rule {
            let Some(over) = by_age.len().checked_sub(most).filter(|over| *over > 0) else { continue };
            by_age.sort_unstable();
            by_age.iter().take(over).for_each(|(_, key)| self.end(key));
            let_go.insert(rule, over);
        }
        let_go
    }
}
