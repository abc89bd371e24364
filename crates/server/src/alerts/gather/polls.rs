//! Polls as they went: those that failed or were missed, when the others were, and what an upstream said of our credentials.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::alert::Went;
use stakeout_core::{Facts, Span, TargetSpec, Time, credentials_type};
use stakeout_sources::{fpv, racing, tables};
use stakeout_store::{EventFilter, StoreError};

use super::super::looks::looks;
use super::super::replay::Happening;
use super::races::Turns;
use super::{Gathering, MOST_EVENTS, PAGE, plain};

/// Failures in a row began so long before the first one that counts at most.
const FAILING_SINCE: Span = Span::hours(1);

impl Gathering<'_> {
    /// What says whether a source was healthy.
    pub(super) async fn health(&mut self, failures: u32) -> Result<(), StoreError> {
        self.polls().await?;
        // Whether an outage that goes on was told is known by the last good look before it.
        self.looks(|went| went.failures > failures).await?;
        for happening in &mut self.past.happenings {
            let looks = place(happening).and_then(|place| self.past.looks.get(&place));
            let before = looks
                .into_iter()
                .flatten()
                .rev()
                .find(|look| look.ended < happening.at && look.is_complete());
            happening.looked = before.map(|look| look.sent);
        }
        self.refusals().await
    }

    /// What was told of credentials that an upstream does not take, with the poll that found out.
    async fn refusals(&mut self) -> Result<(), StoreError> {
        for family in [tables::FAMILY, racing::FAMILY, fpv::FAMILY] {
            let event_type = Some(credentials_type(family));
            for event in self.log(EventFilter { event_type, ..EventFilter::default() }).await? {
                let is_of = |happening: &Happening| {
                    let target = happening.target.as_ref().is_some_and(|target| target.key == event.target);
                    target && happening.source == event.source && happening.at == event.at
                };
                match self.past.happenings.iter().position(is_of) {
                    Some(poll) => self.past.happenings[poll].told.push(event),
                    // The poll log may be kept for a shorter time.
                    None => {
                        let target = Some(TargetSpec::new(&event.target, ""));
                        let happening = plain(event.source.clone(), event.at);
                        self.past.happenings.push(Happening { target, told: vec![event], ..happening });
                    }
                }
            }
        }
        Ok(())
    }

    /// How each poll of the log went.
    pub(super) async fn polls(&mut self) -> Result<(), StoreError> {
        let (mut before, mut found) = (None, Vec::new());
        'pages: loop {
            let page = self.store.newest_polls(before, PAGE).await?;
            let whole = page.len() as u32 == PAGE;
            for listed in page {
                before = Some(listed.row);
                if listed.poll.ended < self.from - FAILING_SINCE {
                    break 'pages;
                }
                if let (Some(source), Some(target)) = (listed.source, listed.target) {
                    found.push((source, target, listed.poll));
                }
            }
            self.past.cut = found.len() >= MOST_EVENTS;
            if !whole || self.past.cut {
                break;
            }
        }
        let mut before: BTreeMap<(String, String), (u64, Went)> = BTreeMap::new();
        for (source, target, poll) in found.into_iter().rev() {
            let (last, went) = before.entry((source.clone(), target.clone())).or_default();
            // One of which only a part failed counts, too. Every failed poll and every missed one is in the log: between two that are not one after the other, one went well.
            let known = if *last + 1 == poll.poll_no { *went } else { Went::default() };
            let failures = if poll.error_class.is_some() { known.failures + 1 } else { 0 };
            *went = Went { failures, missed: poll.missed, missed_before: known.missed };
            *last = poll.poll_no;
            if poll.ended >= self.from && poll.ended < self.until {
                let (went, spec) = (*went, TargetSpec::new(&target, ""));
                self.past.happenings.push(Happening {
                    target: Some(spec),
                    went,
                    ..plain(source, poll.ended)
                });
            }
        }
        Ok(())
    }

    /// When the targets were looked at of which a poll went so.
    pub(super) async fn looks(&mut self, so: impl Fn(&Went) -> bool) -> Result<(), StoreError> {
        let meant = self.past.happenings.iter().filter(|happening| so(&happening.went));
        let places: BTreeSet<(String, String)> = meant.filter_map(place).collect();
        let mut started: BTreeMap<String, Turns> = BTreeMap::new();
        for (source, target) in places {
            let Some(row) = self.store.target(&source, &target).await? else { continue };
            if !started.contains_key(&source) {
                started.insert(source.clone(), self.starts_told(&source).await?);
            }
            let life = self.life_of(&source, &target, &started[&source]).await?;
            // Of anything but a race only what is known now is kept.
            let facts: &(dyn Fn(Time) -> Facts + Sync) =
                &|at| life.as_ref().map_or_else(|| row.state.facts.clone(), |life| life.facts(at));
            let rhythm = self.source(&source).map(|source| self.rhythm(source, &row.spec, facts));
            let looks = looks(self.store, &row, rhythm.as_ref(), self.from - FAILING_SINCE).await?;
            if !row.enabled {
                self.past.off.insert((source.clone(), target.clone()));
            }
            self.past.looks.insert((source, target), looks);
        }
        Ok(())
    }
}

/// Whose poll it was.
fn place(happening: &Happening) -> Option<(String, String)> {
    Some((happening.source.clone(), happening.target.clone()?.key))
}
