//! Derive: what follows from all of a source's records together — who has the focus, what is published.
//!
//! A source is shown everything it holds when it starts, after a poll changed something that matters, and every so
//! often to heal itself. Only differences are written, in one transaction, and only if everything is still as it was
//! read: repeats cost nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use stakeout_core::alert::{Occasion, RULE_PREFIX, Ring, Went};
use stakeout_core::derive::{Derived, Derives, Held, Holdings, Published};
use stakeout_core::judge::Draft;
use stakeout_core::{EventId, Fingerprint, Record, Source, Span, TargetSpec, Time};
use stakeout_store::{
    DeriveCommit, DeriveOutcome, DerivedRecord, EventWrite, KvRow, KvWrite, Refocus, Schedule, StoreError,
    TargetState, Whole,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::alerts;
use crate::dispatch::Message;
use crate::due::{Due, schedule_of};
use crate::lane::Lane;
use crate::poll::first_look;
use crate::shared::Shared;

/// News within this time of the last look wait for the next one.
const COALESCE: Span = Span::ms(50);
/// How often a derivation is made anew because something changed under its hands; then the next look is soon enough.
const MOST_TRIES: u32 = 5;

/// Looks at everything that `name` holds until told to stop. Ends at once for sources of which nothing follows.
pub(crate) async fn run(
    shared: Arc<Shared>,
    name: String,
    dispatcher: mpsc::Sender<Message>,
    stop: CancellationToken,
) {
    let Some(lane) = shared.lanes.get(&name) else { return };
    while let Some(derives) = lane.source().derives() {
        let busy = shared.clock.busy();
        // Whoever asks the source knows whether it answers; the others would only contradict it.
        let looked = match lane.tenure().holds(shared.clock.now()) {
            true => look(&shared, lane, &derives).await,
            false => Ok(Vec::new()),
        };
        match looked {
            Ok(touched) if touched.is_empty() => {}
            Ok(touched) => {
                if dispatcher.send(Message::Changed(touched)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                warn!(source = name, %error, "what follows from the records could not be worked out");
                shared.store_failed(&error);
            }
        }
        drop(busy);
        let looked = shared.clock.now();
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = lane.news() => {}
            () = shared.clock.sleep_until(looked + derives.every) => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.clock.sleep_until(looked + COALESCE) => {}
        }
    }
}

/// One look; answers the targets whose holder has to let go.
async fn look(
    shared: &Shared,
    lane: &Lane,
    derives: &Derives,
) -> Result<Vec<stakeout_store::TargetId>, StoreError> {
    let source = lane.source();
    for _ in 0..MOST_TRIES {
        let whole = shared.store.whole(source.name(), &derives.kinds, &derives.published).await?;
        let now = shared.clock.now();
        let derived = derive(&*source, lane, &whole, now);
        let commit = differences(shared, lane, &whole, derived, now).await?;
        if commit.is_empty() {
            return Ok(Vec::new());
        }
        let published = commit.kv.clone();
        match shared.store.derive(commit).await? {
            DeriveOutcome::Done(done) => {
                shared.published(published.into_iter().map(|KvWrite { namespace, key, value, .. }| KvRow {
                    namespace,
                    key,
                    value,
                    updated: now,
                }));
                shared.told(&done.events);
                return Ok(done.touched);
            }
            DeriveOutcome::Conflict => debug!(source = source.name(), "the ground moved: deriving again"),
        }
    }
    Ok(Vec::new())
}

fn derive(source: &dyn Source, lane: &Lane, whole: &Whole, now: Time) -> Derived {
    let held = whole.records.iter().map(|record| Held {
        kind: record.kind.clone(),
        key: record.key.clone(),
        body: record.body.as_object().cloned().unwrap_or_default(),
    });
    let published = whole.kv.iter().map(|row| Published {
        namespace: row.namespace.clone(),
        key: row.key.clone(),
        value: row.value.clone(),
        stamp: None,
    });
    source.derive(&Holdings {
        now,
        records: &held.collect::<Vec<_>>(),
        targets: &whole.targets,
        focused: whole.focused.first().map(|row| row.spec.key.as_str()),
        published: &published.collect::<Vec<_>>(),
        link: lane.link(),
    })
}

/// What of it is not so already.
async fn differences(
    shared: &Shared,
    lane: &Lane,
    whole: &Whole,
    derived: Derived,
    now: Time,
) -> Result<DeriveCommit, StoreError> {
    let source = lane.source();
    let mut commit = DeriveCommit {
        source: source.name().to_owned(),
        now,
        focused_before: whole.focused.iter().map(|row| row.id).collect(),
        create: None,
        refocus: Vec::new(),
        kv: derived.published.into_iter().filter_map(|published| other_value(whole, published)).collect(),
        records: other_records(whole, &derived.records),
        events: Vec::new(),
        sinks: Vec::new(),
    };
    refocus(shared, lane, whole, derived.focus, now, &mut commit).await?;
    if !commit.is_empty() {
        commit.events = derived.drafts.into_iter().map(|draft| event(source.name(), draft, now)).collect();
        commit.events.extend(rings(shared, source.name(), now, &commit.events).await?);
        commit.events = shared.outlets.route(commit.events);
    }
    Ok(commit)
}

/// Whom of those who asked is this to be told?
async fn rings(
    shared: &Shared,
    source: &str,
    now: Time,
    events: &[EventWrite],
) -> Result<Vec<EventWrite>, StoreError> {
    let rules = shared.alerts.now();
    if rules.is_empty() || events.is_empty() {
        return Ok(Vec::new());
    }
    let occasion = Occasion {
        source,
        target: None,
        at: now,
        looked: None,
        facts: None,
        records: &[],
        changes: &[],
        told: &[],
        went: Went::default(),
    };
    let id = |ring: &Ring, ordinal: u32| {
        let rule = format!("{RULE_PREFIX}{}", ring.alert);
        EventId::of_trigger(source, &rule, &format!("{}#{ordinal}", ring.subject_key), &now.to_string())
    };
    alerts::rings(&*shared.store, &*rules, &occasion, events, id).await
}

fn other_value(whole: &Whole, published: Published) -> Option<KvWrite> {
    let Published { namespace, key, .. } = &published;
    let stored = whole.kv.iter().find(|row| row.namespace == *namespace && row.key == *key);
    let before = stored.map(|row| row.value.clone());
    published.differs_from(before.as_ref()).then_some(KvWrite {
        namespace: published.namespace,
        key: published.key,
        value: published.value,
        before,
    })
}

fn other_records(whole: &Whole, records: &[Record]) -> Vec<DerivedRecord> {
    let stored: BTreeMap<Fingerprint, _> = whole.records.iter().map(|r| (r.fingerprint, r.content)).collect();
    let other = records.iter().filter_map(|record| {
        let (base, content) = (*stored.get(&record.fingerprint)?, record.content());
        (base != content).then(|| DerivedRecord {
            fingerprint: record.fingerprint,
            base,
            content,
            body: serde_json::Value::Object(record.body()).to_string(),
        })
    });
    let mut other: Vec<DerivedRecord> = other.collect();
    // Rows are locked in fingerprint order, everywhere.
    other.sort_by_key(|record| record.fingerprint);
    other
}

/// Who loses the focus goes back to its own pace, who gains it is due now; everybody else is left alone.
async fn refocus(
    shared: &Shared,
    lane: &Lane,
    whole: &Whole,
    focus: Option<TargetSpec>,
    now: Time,
    commit: &mut DeriveCommit,
) -> Result<(), StoreError> {
    let wanted = focus.as_ref().map(|spec| spec.key.as_str());
    for row in whole.focused.iter().filter(|row| Some(row.spec.key.as_str()) != wanted) {
        let schedule = refocused(shared, lane, &row.spec, &row.state, false, now);
        commit.refocus.push(Refocus { key: row.spec.key.clone(), schedule, focused: false });
    }
    let Some(spec) = focus.filter(|spec| !whole.focused.iter().any(|row| row.spec.key == spec.key)) else {
        return Ok(());
    };
    let row = shared.store.target(&commit.source, &spec.key).await?;
    let state = row.as_ref().map(|row| row.state.clone()).unwrap_or_default();
    let schedule = refocused(shared, lane, &spec, &state, true, now);
    if row.is_none() {
        commit.create = Some(first_look(shared, lane, &spec, now));
    }
    commit.refocus.push(Refocus { key: spec.key, schedule, focused: true });
    Ok(())
}

fn refocused(
    shared: &Shared,
    lane: &Lane,
    spec: &TargetSpec,
    state: &TargetState,
    focused: bool,
    now: Time,
) -> Schedule {
    let mut state = state.clone();
    state.facts.focused = focused;
    let due = Due { shared, lane, spec, facts: &state.facts, state: Some(&state) };
    schedule_of(due.replan(&state.last, now))
}

/// An event that no single poll brought about. It is in with what it tells of, or not at all: so the moment is enough
/// to tell it from others of its sort.
fn event(source: &str, draft: Draft, now: Time) -> EventWrite {
    EventWrite {
        id: EventId::of_trigger(source, &draft.rule, &draft.subject_key, &now.to_string()),
        event_type: draft.event_type,
        rule: draft.rule,
        subject: draft.subject,
        subject_key: draft.subject_key,
        at: draft.at.unwrap_or(now),
        dedupe_key: draft.dedupe_key,
        data: draft.data,
        requires: draft.requires,
        quiet: draft.quiet,
        unseen_for: draft.unseen_for,
        follows: None,
        sinks: Vec::new(),
    }
}
