//! Alerts: the rules in force, and what rings.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value as Json;
use stakeout_core::alert::{Alerts, EVENT_TYPE, Moment, Occasion, Question, RULE_PREFIX, Ring, Told};
use stakeout_core::{EventId, Field, Fingerprint, Kind, Record, Snapshot, Source, Time, Value};
use stakeout_store::{EventWrite, Store, StoreError, StoredRecord};
use tracing::warn;

/// Stored rules are settings under this prefix.
pub(crate) const SETTING_PREFIX: &str = "alert.";
/// The most stretches of history that are read for the sake of one poll's alerts.
const MOST_QUESTIONS: usize = 512;
/// The most rows of each; more moves than this within a rule's window count from here on.
const MOST_ROWS: u32 = 500;

/// The rules: those of the configuration, and those in force now.
pub(crate) struct Book {
    filed: Arc<dyn Alerts>,
    current: RwLock<(BTreeMap<String, Json>, Arc<dyn Alerts>)>,
}

impl Book {
    /// The rules of the configuration, with the stored ones.
    pub(crate) fn new(filed: Arc<dyn Alerts>, settings: &[(String, Json)]) -> Book {
        let current = RwLock::new((BTreeMap::new(), Arc::clone(&filed)));
        let book = Book { filed, current };
        book.follow(settings);
        book
    }

    /// The rules in force.
    pub(crate) fn now(&self) -> Arc<dyn Alerts> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).1)
    }

    /// The rules of the configuration.
    pub(crate) fn filed(&self) -> &Arc<dyn Alerts> {
        &self.filed
    }

    /// Puts the stored rules into force; those that cannot be are passed over, loudly. Answers whether somebody wants to
    /// be told at other moments than before, so that due times have to be computed anew.
    pub(crate) fn follow(&self, settings: &[(String, Json)]) -> bool {
        let stored = stored(settings);
        if self.current.read().unwrap_or_else(PoisonError::into_inner).0 == stored {
            return false;
        }
        let mut possible = BTreeMap::new();
        let mut rules = Arc::clone(&self.filed);
        for (name, rule) in &stored {
            possible.insert(name.clone(), rule.clone());
            match self.filed.configured(&possible) {
                Ok(configured) => rules = configured,
                Err(refused) => {
                    warn!(%refused, "a stored alert is ignored");
                    possible.remove(name);
                }
            }
        }
        let bells = rules.bells();
        let before = self.now().bells();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = (stored, rules);
        bells != before
    }
}

/// The stored rules by name.
pub(crate) fn stored(settings: &[(String, Json)]) -> BTreeMap<String, Json> {
    let named =
        |(key, rule): &(String, Json)| Some((key.strip_prefix(SETTING_PREFIX)?.to_owned(), rule.clone()));
    settings.iter().filter_map(named).collect()
}

/// What rings on this occasion, as events: `events` are those that are to be told of it, `id` tells rings of one rule
/// and subject apart.
pub(crate) async fn rings(
    store: &dyn Store,
    rules: &dyn Alerts,
    occasion: &Occasion<'_>,
    events: &[EventWrite],
    id: impl Fn(&Ring, u32) -> EventId,
) -> Result<Vec<EventWrite>, StoreError> {
    let told: Vec<Told<'_>> = events.iter().map(told).collect();
    let occasion = Occasion { told: &told, ..occasion.clone() };
    let mut answers: Vec<(Question, Vec<Moment>)> = Vec::new();
    let questions = rules.questions(&occasion);
    if questions.len() > MOST_QUESTIONS {
        warn!(
            source = occasion.source,
            asked = questions.len(),
            answered = MOST_QUESTIONS,
            "alerts look back on more than is read for one poll: some may not ring"
        );
    }
    for question in questions.into_iter().take(MOST_QUESTIONS) {
        let rows = history(store, occasion.source, &question).await?;
        answers.push((question, rows));
    }
    let mut ordinals: BTreeMap<(String, Fingerprint), u32> = BTreeMap::new();
    let event = |ring: Ring| {
        let ordinal = ordinals.entry((ring.alert.clone(), ring.subject)).or_default();
        let id = id(&ring, *ordinal);
        *ordinal += 1;
        let follows = ring.follows.and_then(|index| events.get(index)).map(|event| event.id);
        write(ring, id, follows, occasion.at)
    };
    Ok(rules.judge(&occasion, &answers).into_iter().map(event).collect())
}

/// What a target holds, as its last answer that said something showed it.
pub(crate) async fn held(
    store: &dyn Store,
    source: &dyn Source,
    snapshot: &Snapshot,
) -> Result<Vec<Record>, StoreError> {
    let fingerprints: Vec<Fingerprint> = snapshot.entries().iter().map(|entry| entry.fingerprint).collect();
    let stored = store.records(source.name(), &fingerprints).await?;
    Ok(stored.iter().filter_map(|stored| as_seen(source.kinds(), stored)).collect())
}

/// A stored record as an answer shows it; `None` for what the source knows no more.
fn as_seen(kinds: &[Arc<Kind>], stored: &StoredRecord) -> Option<Record> {
    let kind = kinds.iter().find(|kind| kind.full_name() == stored.kind)?;
    let value = |field: &Field| stored.body.get(&field.name).map_or(Value::Null, Value::from_json);
    let mut record = Record::new(kind, &[&stored.key], kind.fields.iter().map(value).collect());
    // The key is in one piece here; it was not when it was hashed.
    record.fingerprint = stored.fingerprint;
    (record.parent, record.group) = (stored.parent, stored.group);
    Some(record)
}

fn told(event: &EventWrite) -> Told<'_> {
    Told {
        event_type: &event.event_type,
        subject: event.subject,
        subject_key: &event.subject_key,
        data: &event.data,
    }
}

/// A ring as it is committed.
pub(crate) fn write(ring: Ring, id: EventId, follows: Option<EventId>, at: Time) -> EventWrite {
    EventWrite {
        id,
        event_type: EVENT_TYPE.to_owned(),
        rule: format!("{RULE_PREFIX}{}", ring.alert),
        subject: ring.subject,
        subject_key: ring.subject_key,
        at,
        dedupe_key: ring.dedupe_key,
        data: ring.data,
        requires: ring.requires,
        quiet: ring.quiet,
        unseen_for: None,
        follows,
        sinks: ring.sinks,
    }
}

/// The rows of a stream since a moment, and the one that held then.
async fn history(store: &dyn Store, source: &str, question: &Question) -> Result<Vec<Moment>, StoreError> {
    let rows = store.history(source, question.record, Some(&question.stream), MOST_ROWS).await?;
    let first = rows.iter().rposition(|row| row.at <= question.since).unwrap_or(0);
    Ok(rows.into_iter().skip(first).map(|row| (row.at, row.values)).collect())
}
