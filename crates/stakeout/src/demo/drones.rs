//! The drone racing event: the current race with its pilots, and what was told of it in words.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value as Json};
use stakeout_core::derive::Held;
use stakeout_core::{Event, Source, Span, Time};
use stakeout_sources::fpv::order::{numbers, race_order};
use stakeout_sources::fpv::overlay::overlay;
use stakeout_sources::fpv::picture::Picture;
use stakeout_sources::fpv::{FpvConfig, FpvSource, SchedulerConfig, Settings};
use stakeout_store::Store;

use super::DRONES;
use crate::output::Table;

/// The longest interval that can be set.
const LONGEST_MS: f64 = 86_400_000.0;

/// What a picture of the event is made of.
const KINDS: [&str; 6] = ["fpv_events", "fpv_rounds", "fpv_races", "fpv_pilots", "fpv_channels", "fpv_laps"];

/// The drone racing source, pointed at the simulated upstream. It is asked as often in the onlooker's time as a real one
/// would be: five times a second in a time that runs ten times as fast would be fifty, and a poll that is two thousandths
/// of a second behind would be late.
pub(super) fn source(url: &str, speed: f64) -> Result<Arc<dyn Source>> {
    let usual = Settings::default();
    let every = |interval: Span| Some((interval.as_ms() as f64 * speed.max(1.0)).min(LONGEST_MS) as i64);
    let scheduler = SchedulerConfig {
        race_active_ms: every(usual.race_active),
        race_idle_ms: every(usual.race_idle),
        results_ms: every(usual.results),
        full_interval_ms: every(usual.full_interval),
        active_check_ms: every(usual.active_check),
        ..SchedulerConfig::default()
    };
    Ok(Arc::new(FpvSource::new(DRONES, &FpvConfig { scheduler, ..FpvConfig::at(url) })?))
}

/// The event as it is held.
#[derive(Clone, Debug)]
pub(super) struct Drones {
    picture: Picture,
    overlay: Json,
}

impl Drones {
    /// The event that the source holds; `None` until it is known.
    pub(super) async fn look(
        store: &dyn Store,
        source: &str,
        now: Time,
    ) -> stakeout_store::Result<Option<Drones>> {
        let whole = store.whole(source, &KINDS.map(str::to_owned), &[]).await?;
        let held = |record: stakeout_store::StoredRecord| {
            let body = match record.body {
                Json::Object(body) => body,
                _ => Map::new(),
            };
            Held { kind: record.kind, key: record.key, body }
        };
        let records: Vec<Held> = whole.records.into_iter().map(held).collect();
        Ok(Picture::of(&records).map(|picture| Drones { overlay: overlay(&picture, now), picture }))
    }

    /// One line: the current race, and the next.
    pub(super) fn line(&self) -> String {
        let current = &self.overlay["current"];
        let Some(order) = current["order"].as_u64() else {
            return "Drones: no race is numbered yet".to_owned();
        };
        let state = current["state"].as_str().unwrap_or_default();
        let elapsed =
            current["elapsed_seconds"].as_f64().map(|s| format!(" for {s:.0} s")).unwrap_or_default();
        let laps: u64 = rows(current).filter_map(|pilot| pilot["laps"].as_u64()).sum();
        let next =
            self.overlay["next"]["order"].as_u64().map(|next| format!(", next {next}")).unwrap_or_default();
        format!("Drones: race {order} of {} {state}{elapsed}, {laps} laps{next}", self.overlay["races"])
    }

    /// The current race's pilots, the leader first.
    pub(super) fn board(&self) -> String {
        let mut table = Table::new(&["POSITION", "PILOT", "CHANNEL", "LAPS", "LAST LAP", "BEST LAP"]);
        for pilot in rows(&self.overlay["current"]) {
            let seconds =
                |field: &str| pilot[field].as_f64().map_or_else(|| "-".to_owned(), |s| format!("{s:.1} s"));
            table.row([
                pilot["position"].to_string(),
                pilot["name"].as_str().unwrap_or("?").to_owned(),
                pilot["channel"].as_str().unwrap_or("-").to_owned(),
                pilot["laps"].to_string(),
                seconds("last_lap_seconds"),
                seconds("best_lap_seconds"),
            ]);
        }
        table.render()
    }

    /// An event of this source in words: who and which race, not which ids.
    pub(super) fn told(&self, event: &Event) -> String {
        let record = &event.data["record"];
        let order = race_order(&self.picture);
        let numbers = numbers(&order);
        let race = |id: &Json| {
            let number = id.as_str().and_then(|id| numbers.get(id));
            number.map_or_else(|| "a race".to_owned(), |number| format!("race {number}"))
        };
        let pilot = || {
            let known = record["pilot"].as_str().and_then(|id| self.picture.pilots.get(id));
            known.and_then(|pilot| pilot.name.clone()).unwrap_or_else(|| "somebody".to_owned())
        };
        match event.event_type.as_str() {
            "fpv.lap.completed" => {
                let lap = match record["lap_number"].as_i64() {
                    Some(0) => "the holeshot".to_owned(),
                    Some(number) => format!("lap {number}"),
                    None => "a lap".to_owned(),
                };
                let seconds = record["length_seconds"].as_f64().unwrap_or_default();
                format!("{} {lap} in {seconds:.2} s, {}", pilot(), race(&record["race"]))
            }
            "fpv.result.changed" => {
                format!("{} position {}, {}", pilot(), record["position"], race(&record["race"]))
            }
            "fpv.event.switched" => self.picture.name.clone().unwrap_or_default(),
            name if name.starts_with("fpv.race.") => race(&Json::from(event.subject_key.as_str())),
            _ => String::new(),
        }
    }
}

fn rows(race: &Json) -> impl Iterator<Item = &Json> {
    race["pilots"].as_array().into_iter().flatten()
}
