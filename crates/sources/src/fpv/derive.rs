//! What follows from all races and rounds together: their order, the current race and with it the focus.

use serde_json::{Value as Json, json};
use stakeout_core::derive::{Derived, Held, Holdings, Published};
use stakeout_core::judge::Draft;
use stakeout_core::{Fingerprint, Record, Span, Value};

use super::kinds::{FAMILY, Kinds, RACE_ORDER, event_fingerprint, race_fingerprint};
use super::order::{Current, CurrentRule, active, current_race, numbers, race_order};
use super::overlay::upcoming;
use super::picture::Picture;
use super::plan::{Asking, race_of_key};
use super::settings::Settings;
use super::told::Told;

/// How many idle intervals a new event has to show all of its races before those that are known decide alone. A race
/// without a file never shows, and must not hold up the others.
const ROUNDS_TO_SETTLE: i64 = 2;

/// Where the current race is published.
pub(super) const CURRENT_ORDER: (&str, &str) = ("race", "currentOrder");
/// Under which namespace the state of the link is published; the key is the source's name.
pub(super) const LINK: &str = "link";
/// Under which namespace it is published who flies soon; the key is the source's name.
pub(crate) const UPCOMING: &str = "upcoming";
/// The events that say who flies soon.
pub(crate) const UPCOMING_CHANGED: [&str; 2] = ["fpv.race.current_changed", "fpv.race.reseated"];
/// An upstream that answers nothing for so long, and to so many requests, is lost.
const LOST_AFTER: Span = Span::secs(5);
const LOST_REQUESTS: u32 = 3;

pub(super) fn derive(
    name: &str,
    kinds: &Kinds,
    asking: &Asking,
    settings: &Settings,
    holdings: &Holdings<'_>,
) -> Derived {
    let mut derived = of_races(name, kinds, asking, settings, holdings);
    if let Some((published, told)) = link(name, holdings) {
        derived.published.push(published);
        derived.drafts.extend(told);
    }
    derived
}

fn of_races(
    name: &str,
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
    let upcoming = upcoming(&picture);
    let seated = holdings.value(UPCOMING, name).map(|value| &value["upcoming"]);
    let told = current.as_ref().and_then(|current| {
        changed(current, &upcoming, holdings).or_else(|| reseated(current, &upcoming, seated?))
    });
    Derived {
        focus: focused.map(|current| target(&current.race_id)),
        published: vec![published(current.as_ref(), holdings), soon(name, upcoming, holdings)],
        records: reordered(kinds, &picture, holdings.records),
        drafts: told.into_iter().collect(),
    }
}

fn soon(name: &str, upcoming: Json, holdings: &Holdings<'_>) -> Published {
    Published {
        namespace: UPCOMING.to_owned(),
        key: name.to_owned(),
        value: json!({ "upcoming": upcoming, "computedAt": holdings.now }),
        stamp: Some("computedAt".to_owned()),
    }
}

/// Whether the event is new and not all of its races, or none of its rounds or pilots, have been seen: their order, the
/// current race and who flies soon would change with every one that comes in.
fn is_settling(picture: &Picture, settings: &Settings, holdings: &Holdings<'_>) -> bool {
    let patience = settings.race_idle.times(ROUNDS_TO_SETTLE);
    let fresh = picture.seen_at.is_some_and(|seen| holdings.now < seen + patience);
    let mut listed = holdings.targets.iter().filter_map(|key| race_of_key(key));
    let nothing = picture.races.is_empty() || picture.rounds.is_empty() || picture.pilots.is_empty();
    fresh && (nothing || listed.any(|race| picture.race(race).is_none()))
}

fn published(current: Option<&Current>, holdings: &Holdings<'_>) -> Published {
    Published {
        namespace: CURRENT_ORDER.0.to_owned(),
        key: CURRENT_ORDER.1.to_owned(),
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
fn changed(current: &Current, upcoming: &Json, holdings: &Holdings<'_>) -> Option<Draft> {
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
    data["upcoming"] = upcoming.clone();
    let subject = (race_fingerprint(&current.race_id), current.race_id.as_str());
    Some(Told::CurrentChanged.draft(subject, data))
}

/// That somebody flies in another race, or sooner, than was known, although the current race is the same. Who flies later
/// or not at all is no news to anybody who waits for their call.
fn reseated(current: &Current, upcoming: &Json, before: &Json) -> Option<Draft> {
    let lines = |list: &Json| list.as_array().cloned().unwrap_or_default();
    let known = lines(before);
    let is_known = |line: &Json| {
        let same = |old: &&Json| old["pilot"] == line["pilot"] && old["race_id"] == line["race_id"];
        let away = |line: &Json| line["races_away"].as_u64();
        known.iter().find(same).is_some_and(|old| away(old) <= away(line))
    };
    let moved: Vec<Json> =
        lines(upcoming).iter().filter(|line| !is_known(line)).map(|line| line["pilot"].clone()).collect();
    if moved.is_empty() {
        return None;
    }
    let mut data = json!(current);
    data["reseated"] = moved.into();
    data["upcoming"] = upcoming.clone();
    let subject = (race_fingerprint(&current.race_id), current.race_id.as_str());
    Some(Told::Reseated.draft(subject, data))
}

/// Whether the upstream answers, where that is known and another than what is published; and what to tell of it. That
/// it answers from the beginning is no news.
fn link(name: &str, holdings: &Holdings<'_>) -> Option<(Published, Option<Draft>)> {
    let seen = holdings.link;
    let was_lost = holdings.value(LINK, name).is_some_and(|value| value["state"] == "lost");
    let silent_long = seen.silent_since.is_some_and(|since| holdings.now - since >= LOST_AFTER);
    let is_lost = match (seen.silent, seen.answered) {
        (0, None) => return None,
        (0, Some(_)) => false,
        (silent, _) => was_lost || (silent >= LOST_REQUESTS && silent_long),
    };
    let published = |state: &str, since| Published {
        namespace: LINK.to_owned(),
        key: name.to_owned(),
        value: json!({ "state": state, "since": since }),
        stamp: Some("since".to_owned()),
    };
    let subject = (Fingerprint::of(&format!("{FAMILY}_upstream"), &[name]), name);
    Some(match (was_lost, is_lost) {
        (false, true) => {
            let data = json!({ "since": seen.silent_since, "answered": seen.answered });
            (published("lost", seen.silent_since), Some(Told::Lost.draft(subject, data)))
        }
        (true, false) => {
            let since = holdings.value(LINK, name).map(|value| value["since"].clone());
            let data = json!({ "lost_since": since, "answered": seen.answered });
            (published("up", seen.answered), Some(Told::Back.draft(subject, data)))
        }
        (true, true) => return None,
        (false, false) => (published("up", seen.answered), None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stakeout_core::Time;
    use stakeout_core::derive::Link;

    const NOW: Time = Time::from_secs(1_768_000_000);

    /// What is published and told, given what is published and how the upstream answered.
    fn of(
        state: Option<&str>,
        silent: u32,
        silent_for: i64,
        answered: bool,
    ) -> Option<(String, Option<String>)> {
        let published = state.map(|state| Published {
            namespace: LINK.to_owned(),
            key: "event".to_owned(),
            value: json!({ "state": state, "since": NOW }),
            stamp: None,
        });
        let holdings = Holdings {
            now: NOW,
            records: &[],
            targets: &[],
            focused: None,
            published: published.as_slice(),
            link: Link {
                answered: answered.then_some(NOW - Span::secs(silent_for)),
                silent,
                silent_since: (silent > 0).then_some(NOW - Span::secs(silent_for)),
            },
        };
        let (published, told) = link("event", &holdings)?;
        Some((published.value["state"].as_str()?.to_owned(), told.map(|draft| draft.event_type)))
    }

    #[test]
    fn an_upstream_is_lost_after_long_silence_and_back_with_its_first_answer() {
        let says = |state: &str, told: Option<&str>| Some((state.to_owned(), told.map(str::to_owned)));
        assert_eq!(of(None, 0, 0, false), None, "nobody has asked yet");
        assert_eq!(of(None, 0, 0, true), says("up", None), "that it answers is no news");
        assert_eq!(of(Some("up"), 50, 4, true), says("up", None), "not long enough");
        assert_eq!(of(Some("up"), 2, 9, true), says("up", None), "not asked often enough");
        assert_eq!(of(Some("up"), 3, 5, true), says("lost", Some("fpv.upstream.lost")));
        assert_eq!(of(None, 3, 5, false), says("lost", Some("fpv.upstream.lost")), "off from the beginning");
        assert_eq!(of(Some("lost"), 90, 9_000, true), None, "told once");
        assert_eq!(of(Some("lost"), 1, 0, false), None, "a restart does not make it answer");
        assert_eq!(of(Some("lost"), 0, 0, true), says("up", Some("fpv.upstream.back")));
    }
}
