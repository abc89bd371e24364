//! The event as it is held: everything that order, current race and leaderboard are made of.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use stakeout_core::Time;
use stakeout_core::derive::Held;

use super::scalar::microseconds;

/// A moment at the venue in microseconds; of one event all are instants, or all are on the venue's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

/// The event that is current, with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Its id.
    pub event: String,
    /// What it is called.
    pub name: Option<String>,
    /// Since when it is known to be current.
    pub seen_at: Option<Time>,
    /// The zone of its clock.
    pub zone: Option<String>,
    /// How many laps in a row count as a personal best.
    pub pb_laps: Option<i64>,
    /// Its rounds by id.
    pub rounds: BTreeMap<String, Round>,
    /// Its races, by id.
    pub races: Vec<Race>,
    /// Its pilots by id.
    pub pilots: BTreeMap<String, Pilot>,
    /// The channels by id.
    pub channels: BTreeMap<String, Channel>,
    /// The laps of its races, in the order in which they ended.
    pub laps: Vec<Lap>,
}

/// A round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Its place among the rounds, in steps of 100.
    pub order: Option<i64>,
    /// Its number.
    pub number: Option<i64>,
    /// Whether it is to be flown.
    pub valid: bool,
}

impl Round {
    /// Its place; a round that has none yet stands where its number says.
    pub fn place(&self) -> i64 {
        self.order.or_else(|| self.number.map(|n| n.saturating_mul(100))).unwrap_or(i64::MAX)
    }
}

/// A race.
#[derive(Clone, Debug, PartialEq)]
pub struct Race {
    /// Its id.
    pub id: String,
    /// Its number within the round.
    pub number: Option<i64>,
    /// Its round's id; the round itself may not be known yet.
    pub round: Option<String>,
    /// When it started.
    pub start: Option<Moment>,
    /// When it ended.
    pub end: Option<Moment>,
    /// How long it stood still in between.
    pub paused_seconds: f64,
    /// Whether it counts.
    pub valid: bool,
    /// Who flies on which channel.
    pub seats: Vec<Seat>,
    /// The order that is stored with it.
    pub stored_order: Option<i64>,
}

impl Race {
    /// Started and not ended.
    pub fn is_running(&self) -> bool {
        self.start.is_some() && self.end.is_none()
    }

    /// Started and ended.
    pub fn is_completed(&self) -> bool {
        self.start.is_some() && self.end.is_some()
    }
}

/// A pilot's place in a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The pilot's id.
    pub pilot: String,
    /// The channel's id.
    pub channel: Option<String>,
}

/// A pilot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pilot {
    /// What they are called.
    pub name: Option<String>,
    /// Whether they were taken out of the event.
    pub removed: bool,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// What it is called in this event.
    pub name: Option<String>,
    /// In MHz.
    pub frequency: Option<i64>,
    /// `#FF0000`
    pub colour: Option<String>,
}

/// A lap that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Lap {
    /// Its key.
    pub id: String,
    /// Its race's id.
    pub race: String,
    /// Its pilot's id.
    pub pilot: String,
    /// 0 is the holeshot, from the start to the first passing of the gate.
    pub number: i64,
    /// How long it took.
    pub seconds: f64,
    /// When it ended.
    pub end: Option<Moment>,
}

impl Picture {
    /// The picture of the current event in these records; `None` when none is known to be current.
    pub fn of(records: &[Held]) -> Option<Picture> {
        let of = |kind: &'static str| records.iter().filter(move |held| held.kind == kind);
        let current = of("fpv_events").filter(|held| flag(&held.body, "is_current") == Some(true));
        // Should two claim it, the one that was opened last is it.
        let event = current.max_by_key(|held| (text(&held.body, "seen_at"), held.key.as_str()))?;
        let id = text(&event.body, "event_id")?.to_owned();
        let own = |held: &&Held| text(&held.body, "event") == Some(&id);
        let mut races: Vec<Race> = of("fpv_races").filter(own).filter_map(|held| race(&held.body)).collect();
        races.sort_by(|a, b| a.id.cmp(&b.id));
        let ours = |lap: &Lap| races.binary_search_by(|race| race.id.cmp(&lap.race)).is_ok();
        let mut laps: Vec<Lap> = of("fpv_laps").filter_map(lap).filter(ours).collect();
        laps.sort_by(|a, b| (a.end, &a.id).cmp(&(b.end, &b.id)));
        let named = |held: &Held, name: &str| Some(text(&held.body, name)?.to_owned());
        Some(Picture {
            name: named(event, "name"),
            seen_at: text(&event.body, "seen_at").and_then(Time::parse),
            zone: named(event, "zone"),
            pb_laps: int(&event.body, "pb_laps"),
            rounds: of("fpv_rounds")
                .filter(own)
                .filter_map(|held| Some((named(held, "round_id")?, round(&held.body))))
                .collect(),
            pilots: of("fpv_pilots")
                .filter(own)
                .filter_map(|held| Some((named(held, "pilot_id")?, pilot(&held.body))))
                .collect(),
            channels: of("fpv_channels")
                .filter_map(|held| Some((named(held, "channel_id")?, channel(&held.body))))
                .collect(),
            races,
            laps,
            event: id,
        })
    }

    /// A race by its id.
    pub fn race(&self, id: &str) -> Option<&Race> {
        self.races.iter().find(|race| race.id == id)
    }
}

fn round(body: &Map<String, Json>) -> Round {
    Round {
        order: int(body, "round_order"),
        number: int(body, "round_number"),
        valid: flag(body, "valid").unwrap_or(true),
    }
}

fn race(body: &Map<String, Json>) -> Option<Race> {
    let seat = |seat: &Json| {
        let word = |name: &str| seat.get(name).and_then(Json::as_str).map(str::to_owned);
        Some(Seat { pilot: word("pilot")?, channel: word("channel") })
    };
    let seats = body.get("pilots").and_then(Json::as_array).into_iter().flatten().filter_map(seat);
    Some(Race {
        id: text(body, "race_id")?.to_owned(),
        number: int(body, "race_number"),
        round: text(body, "round").map(str::to_owned),
        start: moment(body, "start"),
        end: moment(body, "end"),
        paused_seconds: number(body, "paused_seconds").unwrap_or(0.0),
        valid: flag(body, "valid").unwrap_or(true),
        seats: seats.collect(),
        stored_order: int(body, super::kinds::RACE_ORDER),
    })
}

fn pilot(body: &Map<String, Json>) -> Pilot {
    Pilot { name: text(body, "name").map(str::to_owned), removed: flag(body, "removed") == Some(true) }
}

fn channel(body: &Map<String, Json>) -> Channel {
    let name = text(body, "display_name").or_else(|| text(body, "name"));
    Channel {
        name: name.map(str::to_owned),
        frequency: int(body, "frequency"),
        colour: text(body, "colour").map(str::to_owned),
    }
}

/// A lap whose detection is valid and whose pilot is known.
fn lap(held: &Held) -> Option<Lap> {
    let body = &held.body;
    if flag(body, "valid") != Some(true) {
        return None;
    }
    Some(Lap {
        id: held.key.clone(),
        race: text(body, "race")?.to_owned(),
        pilot: text(body, "pilot")?.to_owned(),
        number: int(body, "lap_number")?,
        seconds: number(body, "length_seconds").filter(|seconds| *seconds >= 0.0)?,
        end: moment(body, "end"),
    })
}

fn text<'a>(body: &'a Map<String, Json>, name: &str) -> Option<&'a str> {
    body.get(name).and_then(Json::as_str)
}

fn int(body: &Map<String, Json>, name: &str) -> Option<i64> {
    body.get(name).and_then(Json::as_i64)
}

fn number(body: &Map<String, Json>, name: &str) -> Option<f64> {
    body.get(name).and_then(Json::as_f64)
}

fn flag(body: &Map<String, Json>, name: &str) -> Option<bool> {
    body.get(name).and_then(Json::as_bool)
}

fn moment(body: &Map<String, Json>, name: &str) -> Option<Moment> {
    text(body, name).and_then(microseconds).map(Moment)
}
