//! A small JSON document for stream overlays: the last, the current and the next race, who leads, and who flies when.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use stakeout_core::Time;

use super::leaderboard::{
    Standing, consecutive_laps, event_leaderboard, next_races, race_leaderboard, races_to_fly,
};
use super::order::{Current, CurrentRule, current_race, numbers, race_order};
use super::picture::{Picture, Race};

/// Pilots are told of their race at most so many races ahead.
pub(crate) const SOON: u64 = 10;
/// Lines of the event's leaderboard that are shown.
const LEADERS: usize = 8;

/// What an overlay shows of the event at that moment. The same picture and moment give the same document.
pub fn overlay(picture: &Picture, now: Time) -> Json {
    let current = current_race(picture);
    let last = last_race(picture, current.as_ref());
    let next = next_race(picture, current.as_ref());
    let shown = |race: Option<&Race>| race.map(|race| race_json(picture, race, current.as_ref(), now));
    let board = event_leaderboard(picture, consecutive_laps(picture));
    json!({
        "at": now,
        "event": { "id": picture.event, "name": picture.name },
        "races": race_order(picture).len(),
        "last": shown(last),
        "current": shown(current.as_ref().and_then(|current| picture.race(&current.race_id))),
        "next": shown(next),
        "leaderboard": board.iter().take(LEADERS).map(leader).collect::<Vec<_>>(),
        "pilots": pilots(picture),
    })
}

/// The race that ended last; not the current one, should that be over, too.
fn last_race<'a>(picture: &'a Picture, current: Option<&Current>) -> Option<&'a Race> {
    let order = race_order(picture);
    let numbers = numbers(&order);
    let over = order.iter().copied().filter(|race| race.is_completed());
    let other = over.filter(|race| current.is_none_or(|current| current.race_id != race.id));
    other.max_by_key(|race| (race.end, numbers.get(race.id.as_str()).copied()))
}

/// The first race after the current one that somebody is to fly.
fn next_race<'a>(picture: &'a Picture, current: Option<&Current>) -> Option<&'a Race> {
    let current = current?;
    let mut later =
        races_to_fly(picture).into_iter().map(|(race, _)| race).filter(|race| race.id != current.race_id);
    later.find(|race| !race.seats.is_empty())
}

fn race_json(picture: &Picture, race: &Race, current: Option<&Current>, now: Time) -> Json {
    let order = race_order(picture);
    let is_current = current
        .is_some_and(|current| current.race_id == race.id && current.rule != CurrentRule::LastCompleted);
    let state = match (race.is_running(), race.is_completed(), is_current) {
        (true, _, _) => "racing",
        (_, true, _) => "finished",
        (_, _, true) => "staging",
        _ => "waiting",
    };
    let round = race.round.as_ref().and_then(|id| picture.rounds.get(id));
    json!({
        "race_id": race.id,
        "order": numbers(&order).get(race.id.as_str()),
        "round": round.and_then(|round| round.number),
        "number": race.number,
        "state": state,
        "elapsed_seconds": elapsed(picture, race, now),
        "pilots": flying(picture, race),
    })
}

/// How long the race has been flown; unknown while the venue's clock cannot be compared with ours.
fn elapsed(picture: &Picture, race: &Race, now: Time) -> Option<f64> {
    picture.zone.as_ref()?;
    let flown = (now.us() - race.start?.0) as f64 / 1e6 - race.paused_seconds;
    (race.is_running() && flown >= 0.0).then(|| to_ms(flown))
}

/// Who flies, the leader first.
fn flying(picture: &Picture, race: &Race) -> Vec<Json> {
    let standings = race_leaderboard(picture, &race.id, consecutive_laps(picture));
    let line = |standing: &Standing| {
        let mut own = picture.laps.iter().filter(|lap| lap.race == race.id && lap.pilot == standing.pilot);
        let latest = own.rfind(|lap| lap.number > 0).map(|lap| lap.seconds);
        let seat = race.seats.iter().find(|seat| seat.pilot == standing.pilot);
        let channel = seat.and_then(|seat| seat.channel.as_ref()).and_then(|id| picture.channels.get(id));
        json!({
            "pilot": standing.pilot,
            "name": standing.name,
            "channel": channel.and_then(|channel| channel.name.as_ref()),
            "colour": channel.and_then(|channel| channel.colour.as_ref()),
            "position": standing.position,
            "position_change": standing.position_change,
            "laps": standing.laps,
            "last_lap_seconds": latest.map(to_ms),
            "best_lap_seconds": standing.best_lap_seconds.map(to_ms),
        })
    };
    standings.iter().map(line).collect()
}

fn leader(standing: &Standing) -> Json {
    json!({
        "position": standing.position,
        "position_change": standing.position_change,
        "pilot": standing.pilot,
        "name": standing.name,
        "laps": standing.laps,
        "best_lap_seconds": standing.best_lap_seconds.map(to_ms),
        "best_consecutive_seconds": standing.best_consecutive_seconds.map(to_ms),
    })
}

/// "You race in N", for everyone who still flies, the soonest first.
fn pilots(picture: &Picture) -> Vec<Json> {
    let mut soonest: Vec<(usize, &String, Json)> = Vec::new();
    for (id, pilot) in picture.pilots.iter().filter(|(_, pilot)| !pilot.removed) {
        let Some(race) = next_races(picture, id, 1).pop() else { continue };
        let line = json!({
            "pilot": id,
            "name": pilot.name,
            "race_id": race.race_id,
            "order": race.order,
            "races_away": race.races_away,
            "readiness": race.readiness,
            "channel": race.channel_name,
            "colour": race.colour,
        });
        soonest.push((race.races_away, id, line));
    }
    soonest.sort_by_key(|(away, id, _)| (*away, *id));
    soonest.into_iter().map(|(_, _, line)| line).collect()
}

/// Who flies within the next [`SOON`] races, and when, the soonest first. This is worked out with every look at everything
/// that is held, so the races are gone through once, not once for each pilot.
pub(super) fn upcoming(picture: &Picture) -> Json {
    let mut first: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (away, (race, _)) in (0..=SOON).zip(races_to_fly(picture)) {
        for seat in &race.seats {
            first.entry(&seat.pilot).or_insert((away, &race.id));
        }
    }
    let known = |(id, (away, race)): (&str, (u64, &str))| {
        let pilot = picture.pilots.get(id).filter(|pilot| !pilot.removed)?;
        let line = json!({ "pilot": id, "name": pilot.name, "race_id": race, "races_away": away });
        Some((away, line))
    };
    let mut lines: Vec<(u64, Json)> = first.into_iter().filter_map(known).collect();
    lines.sort_by_key(|(away, _)| *away);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// What an overlay can show; more would only make the document larger.
fn to_ms(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
