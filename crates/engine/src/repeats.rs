//! Repeats: what an alert told and what still lasts is told again after the rule's time, without a poll that says so.
//!
//! What rang is in the event log, and nowhere else: a chain is a ring and its repeats so far, read back from there at the
//! start. Each ring has at most one successor, by its key, so it is told once however many nodes look at it and whenever
//! one of them dies; the repeat, its notification and its deliveries are one commit.

use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::alert::{Alerts, Chain, Chains, EVENT_TYPE, Found, Lasts, Ring};
use stakeout_core::{Event, EventId, Span, Time};
use stakeout_store::{DeriveCommit, DeriveOutcome, EventFilter, NotificationFilter, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::alerts;
use crate::shared::Shared;

/// How far back a ring may lie that is still repeated: a day until the next one, and a day in which the rule keeps silent.
const REACH: Span = Span::hours(48);
/// Rings are read no more often than this, however many events come.
const COALESCE: Span = Span::secs(1);
/// A store that did not answer is asked again after this.
const LATER: Span = Span::mins(1);
/// The most chains of one rule that are followed; of more, those that rang longest ago are let go. By rule, so that a
/// noisy one costs no other its repeats.
const MOST_OF_A_RULE: usize = 2_000;
const PAGE: u32 = 500;

/// Everything that may ring again.
#[derive(Default)]
pub(crate) struct Repeats {
    chains: Chains,
    /// How far the log was read; nothing of it while no rule repeats.
    read: Option<u64>,
}

/// Repeats what lasts until told to stop.
pub(crate) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let mut newest = shared.newest.subscribe();
    let mut repeats = Repeats::default();
    loop {
        let busy = shared.clock.busy();
        let next = repeats.turn(&shared).await;
        drop(busy);
        let looked = shared.clock.now();
        let due = async {
            match next {
                Some(due) => shared.clock.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(due);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = &mut due => continue,
            told = newest.changed() => if told.is_err() { return },
        }
        // However much happens, what is due is told at its moment.
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = due => {}
            () = shared.clock.sleep_until(looked + COALESCE) => {}
        }
    }
}

impl Repeats {
    /// Tells what is due again; answers when the next one is.
    pub(crate) async fn turn(&mut self, shared: &Shared) -> Option<Time> {
        let rules = shared.alerts.now();
        if !rules.repeats() {
            *self = Repeats::default();
            return None;
        }
        let now = shared.clock.now();
        let turned = async {
            self.read(shared, &*rules, now).await?;
            self.ring(shared, &*rules, now).await
        };
        if let Err(error) = turned.await {
            warn!(%error, "what lasts could not be told again: it is tried later");
            shared.store_failed(&error);
            return Some(now + LATER);
        }
        self.chains.next_due()
    }

    /// Takes in what rang since the last turn; at first, all that rang in the time within reach, however much that is.
    async fn read(&mut self, shared: &Shared, rules: &dyn Alerts, now: Time) -> Result<(), StoreError> {
        // Numbers become visible in their order: up to here nothing new can come. Hints of what other nodes told get lost,
        // so it is the store that is asked.
        let newest = shared.store.log_ends().await?.newest;
        let mut after = match self.read {
            Some(read) => read,
            None => last_before(shared, newest, now - REACH).await?,
        };
        let alerts = EventFilter { event_type: Some(EVENT_TYPE.to_owned()), ..EventFilter::default() };
        while after < newest {
            let page = shared.store.events(after, &alerts, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            page.into_iter().for_each(|event| self.chains.take(rules, event, now));
            for (alert, let_go) in self.chains.keep(MOST_OF_A_RULE) {
                warn!(
                    alert,
                    let_go,
                    most = MOST_OF_A_RULE,
                    "too much lasts at once: the oldest is not told again"
                );
            }
        }
        self.read = Some(after.max(newest));
        Ok(())
    }

    async fn ring(&mut self, shared: &Shared, rules: &dyn Alerts, now: Time) -> Result<(), StoreError> {
        for key in self.chains.due(now) {
            let Some((chain, again)) = self.chains.ask(rules, &key, now) else { continue };
            let (rung, after) = (chain.last.clone(), again.after);
            let found = found(shared, chain, &again.lasts).await?;
            let Some(ring) = again.lasting(rules, &rung, &found, now) else {
                self.chains.end(&key);
                continue;
            };
            let told = tell(shared, &rung, ring, now).await?;
            // What does not come about, because somebody else was faster or the quiet time is not over, is not tried again
            // at once; but that the focus moved meanwhile is no matter for a repeat.
            self.chains.put_off(&key, now + if told.is_some() { after } else { COALESCE });
            told.into_iter().flatten().for_each(|event| self.chains.take(rules, event, now));
        }
        Ok(())
    }
}

/// The number of the last event that is as old as this or older. Found by halving: the events in between may be many.
async fn last_before(shared: &Shared, newest: u64, moment: Time) -> Result<u64, StoreError> {
    let (mut old, mut young) = (0, newest);
    while old < young {
        let middle = old + (young - old) / 2;
        let page = shared.store.events(middle, &EventFilter::default(), 1).await?;
        match page.first() {
            Some(event) if event.at <= moment => old = event.seq,
            _ => young = middle,
        }
    }
    Ok(old)
}

/// What has to be known about something that is due again.
async fn found(shared: &Shared, chain: &Chain, lasts: &Lasts) -> Result<Found, StoreError> {
    let (store, rung) = (&shared.store, &chain.last);
    Ok(match lasts {
        Lasts::Unread(_) => Found::Read(is_read(shared, &chain.seqs).await?),
        Lasts::Held => {
            let records = store.records(&rung.source, &[rung.subject]).await?;
            let held = records.into_iter().find(|record| record.gone.is_none());
            Found::There(held.map(|record| record.body))
        }
        Lasts::Published(namespace, key) => {
            Found::There(Some(store.kv(namespace, key).await?.map_or(Json::Null, |row| row.value)))
        }
        Lasts::Missed(target, _) => match store.target(&rung.source, target).await? {
            Some(row) if row.enabled => {
                let newest = store.polls(row.id, 1).await?;
                // What came in time since then may not be in the log; then its newest is not the last one.
                let last = newest.first().filter(|poll| poll.poll_no == row.poll_no);
                Found::Missed(Some(last.map_or(0, |poll| poll.missed)))
            }
            _ => Found::Missed(None),
        },
    })
}

/// Whether somebody has read any of these notifications.
async fn is_read(shared: &Shared, seqs: &[u64]) -> Result<bool, StoreError> {
    let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { return Ok(false) };
    let mut before = last + 1;
    while before > *first {
        let page = shared.store.notifications(before, &NotificationFilter::default(), PAGE).await?;
        let Some(oldest) = page.last() else { break };
        before = oldest.event.seq;
        if page.iter().any(|told| told.read.is_some() && seqs.binary_search(&told.event.seq).is_ok()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells it, unless another node was faster; answers what came about, `None` when it has to be tried again.
async fn tell(
    shared: &Shared,
    rung: &Event,
    ring: Ring,
    now: Time,
) -> Result<Option<Vec<Event>>, StoreError> {
    let Some(lane) = shared.lanes.get(&rung.source) else { return Ok(Some(Vec::new())) };
    // The words may be others on another node: then so is the id, and the key alone decides.
    let words = format!("{}|{}|{}", rung.id, ring.data["title"], ring.data["text"]);
    let id = EventId::of_trigger(&rung.source, &rung.rule, &rung.subject_key, &words);
    let focused = match lane.source().derives() {
        Some(_) => shared.store.whole(&rung.source, &[], &[]).await?.focused,
        // Focus is given by what is derived, and here nothing is.
        None => Vec::new(),
    };
    let commit = DeriveCommit {
        source: rung.source.clone(),
        now,
        focused_before: focused.iter().map(|row| row.id).collect(),
        create: None,
        refocus: Vec::new(),
        kv: Vec::new(),
        records: Vec::new(),
        events: shared.outlets.route(vec![alerts::write(ring, id, None, now)]),
        sinks: Vec::new(),
    };
    match shared.store.derive(commit).await? {
        DeriveOutcome::Done(done) => {
            shared.told(&done.events);
            Ok(Some(done.events))
        }
        DeriveOutcome::Conflict => Ok(None),
    }
}
