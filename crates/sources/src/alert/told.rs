//! What events say: the types that are meant, the tables that somebody waits for, the pilots who fly soon.

use serde_json::Value as Json;
use stakeout_core::alert::Told;

use super::test::same_text;
use super::words::Words;
use super::{When, hours};
use crate::fpv::UPCOMING_CHANGED;

/// Whether somebody waits for this table.
pub(super) fn is_wanted(when: &When, data: &Json) -> bool {
    let When::Drop { venues, followed, from_date, to_date, from_time, to_time, party } = when else {
        return false;
    };
    let text = |field: &str| data[field].as_str().unwrap_or_default();
    let named = |venue: &String| venue == text("venue_id") || same_text(venue, text("venue_name"));
    let (date, time) = (text("date"), text("start").get(11..16).and_then(hours::minutes));
    let sizes = || data["party_sizes"].as_array().into_iter().flatten().filter_map(Json::as_u64);
    (venues.is_empty() || venues.iter().any(named))
        && (!followed || data["followed"] == true)
        && from_date.as_deref().is_none_or(|from| date >= from)
        && to_date.as_deref().is_none_or(|to| date <= to)
        && is_in_time(time, from_time.as_deref(), to_time.as_deref())
        && (party.is_empty() || sizes().any(|size| party.iter().any(|wanted| u64::from(*wanted) == size)))
}

/// Whether a time of day is between two others; the first after the second goes over midnight.
fn is_in_time(time: Option<i32>, from: Option<&str>, to: Option<&str>) -> bool {
    let (from, to) = (from.and_then(hours::minutes), to.and_then(hours::minutes));
    let after = |time: i32| from.is_none_or(|from| time >= from);
    let before = |time: i32| to.is_none_or(|to| time <= to);
    match (from, to, time) {
        (None, None, _) => true,
        (_, _, None) => false,
        (Some(from), Some(to), Some(time)) if from > to => after(time) || before(time),
        (_, _, Some(time)) => after(time) && before(time),
    }
}

/// Whether this pilot flies soon, with the words for it; each of their races rings once.
pub(super) fn flies_soon(
    name: &str,
    told: &Told<'_>,
    pilot: &str,
    within: u32,
) -> Option<(Words, Option<String>)> {
    if !UPCOMING_CHANGED.contains(&told.event_type) {
        return None;
    }
    let (words, key) = flies(name, &told.data["upcoming"], pilot, within)?;
    Some((words, Some(key)))
}

/// Whether this pilot is among those who fly soon, with the words for it, and a key that is another for each race.
pub(super) fn flies(name: &str, upcoming: &Json, pilot: &str, within: u32) -> Option<(Words, String)> {
    let own = upcoming.as_array()?.iter().find(|line| {
        let is = |field: &str| line[field].as_str().is_some_and(|text| same_text(text, pilot));
        is("pilot") || is("name")
    })?;
    let away = own["races_away"].as_u64().filter(|away| *away <= u64::from(within))?;
    let called = own["name"].as_str().unwrap_or(pilot);
    let when = match away {
        0 => "now".to_owned(),
        1 => "next".to_owned(),
        n => format!("in {n} races"),
    };
    let words = Words::new(format!("{called} flies {when}"), format!("{called} flies {when}"));
    Some((words, format!("alert|{name}|{pilot}|{}", own["race_id"].as_str().unwrap_or_default())))
}
