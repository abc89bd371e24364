//! What follows from all races and rounds together: their order, the current race and with it the focus.

use serde_json::{Value as Json, json};
use stakeout_core::derive::{Derived, Held, Holdings, Published};
use stakeout_core::judge::{Draft, Effect};
use stakeout_core::{Record, Value};

use super::kinds::{FAMILY, Kinds, RACE_ORDER, event_fingerprint, race_fingerprint};
use super::order::{Current, CurrentRule, active, current_race, numbers, race_order};
use super::picture::Picture;
use super::plan::{Asking, race_of_key};
use super::settings::Settings;

/// How many idle intervals a new event has to show all of its races before those that are known decide alone. A race
/// without a file never shows, and must not hold up the others.
const ROUNDS_TO_SETTLE: i64 = 2;

pub(super) fn derive(
    kinds: &Kinds,
    asking: &Asking,
    settings: &Settings,
    holdings: &Holdings<'_>,
) -> Derived {
    let Some(picture) = Picture::of(holdings.records) else { return Derived::default() };
    let target = |race: &str| asking.race(&picture.event, race, picture.zone.as_deref());
    if is_settling(&picture, settings, holdings) {
        // A race that is being flown is the current one whatever else there is; all else waits.
        let order = race_order(&picture);
        let focus = active(&picture, &numbers(&order)).map(|race| target(&race.id));
        return Derived { focus, ..Derived::default() };
    }
    let current = current_race(&picture);
    // When everything is flown the last race stays the current one, and nobody needs to look at it five times a second.
    let focused = current.as_ref().filter(|current| current.rule != CurrentRule::LastCompleted);
    Derived {
        focus: focused.map(|current| target(&current.race_id)),
        published: vec![published(current.as_ref(), holdings)],
        records: reordered(kinds, &picture, holdings.records),
        drafts: current.as_ref().and_then(|current| changed(current, holdings)).into_iter().collect(),
    }
}

/// Whether the event is new and not all of its races, or none of its rounds, have been seen: their order and the current race would change with
/// every one that comes in.
fn is_settling(picture: &Picture, settings: &Settings, holdings: &Holdings<'_>) -> bool {
    let patience = settings.race_idle.times(ROUNDS_TO_SETTLE);
    let fresh = picture.seen_at.is_some_and(|seen| holdings.now < seen + patience);
    let mut listed = holdings.targets.iter().filter_map(|key| race_of_key(key));
    let nothing = picture.races.is_empty() || picture.rounds.is_empty();
    fresh && (nothing || listed.any(|race| picture.race(race).is_none()))
}

fn published(current: Option<&Current>, holdings: &Holdings<'_>) -> Published {
    Published {
        namespace: "race".to_owned(),
        key: "currentOrder".to_owned(),
        value: json!({
            "order": current.and_then(|current| current.order),
            "raceId": current.map(|current| &current.race_id),
            "computedAt": holdings.now,
        }),
        stamp: Some("computedAt".to_owned()),
    }
}

/// The races whose order is another than the stored one, otherwise as they are held.
fn reordered(kinds: &Kinds, picture: &Picture, records: &[Held]) -> Vec<Record> {
    let order = race_order(picture);
    let numbers = numbers(&order);
    let other = picture.races.iter().filter_map(|race| {
        let number = numbers.get(race.id.as_str()).copied();
        (number != race.stored_order).then_some((race.id.as_str(), number))
    });
    let wanted: std::collections::BTreeMap<&str, Option<i64>> = other.collect();
    let kind = &kinds.races;
    let held = records.iter().filter(|held| held.kind == "fpv_races");
    held.filter_map(|held| {
        let number = wanted.get(held.key.as_str())?;
        let value = |field: &stakeout_core::Field| match field.name.as_str() {
            RACE_ORDER => Value::from(*number),
            name => held.body.get(name).map_or(Value::Null, Value::from_json),
        };
        let record = Record::new(kind, &[&held.key], kind.fields.iter().map(value).collect());
        Some(record.under(event_fingerprint(&picture.event)))
    })
    .collect()
}

/// That another race is the current one. Staying on the last race when all are flown is no change.
fn changed(current: &Current, holdings: &Holdings<'_>) -> Option<Draft> {
    let before = holdings.focused.and_then(race_of_key);
    let same = match before {
        Some(before) => before == current.race_id,
        None => current.rule == CurrentRule::LastCompleted,
    };
    if same {
        return None;
    }
    let mut data = json!(current);
    data["before"] = before.map_or(Json::Null, Json::from);
    Some(Draft {
        rule: "current_changed".to_owned(),
        event_type: format!("{FAMILY}.race.current_changed"),
        subject: race_fingerprint(&current.race_id),
        subject_key: current.race_id.clone(),
        data,
        dedupe_key: None,
        requires: Effect::Any,
        quiet: None,
        unseen_for: None,
    })
}
