//! What a captured directory says, without storing anything: the event, the order, the current race, the leaderboard.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use stakeout_core::derive::Held;
use stakeout_core::{Facts, Failure, Fingerprint, Observation, PollContext, TargetSpec, Time};

use super::kinds::{FAMILY, Kinds};
use super::leaderboard::{consecutive_laps, event_leaderboard};
use super::normalize::Reader;
use super::order::{current_race, race_order};
use super::overlay::overlay;
use super::picture::Picture;
use super::plan::{Asking, RESULTS};
use super::wire::event_of_page;

/// Reads a directory laid out like the upstream's paths. `events` are the names of the directories under `events/`,
/// `read` gives a file by its path (`events/<id>/Event.json`); the page, if captured, is `index.html`.
pub fn describe_dir(
    events: &[String],
    zone: Option<&str>,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Json, Failure> {
    captured(events, zone, &read).map(Captured::describe)
}

/// What an overlay would show of the same directory at that moment.
pub fn overlay_dir(
    events: &[String],
    zone: Option<&str>,
    now: Time,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Json, Failure> {
    let captured = captured(events, zone, &read)?;
    Ok(overlay(&Picture::of(&captured.records).unwrap_or_default(), now))
}

fn captured(
    events: &[String],
    zone: Option<&str>,
    read: &impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Captured, Failure> {
    let event = match (read("index.html"), events) {
        (Some(page), _) => event_of_page(&page)?,
        (None, [only]) => only.to_ascii_lowercase(),
        (None, several) => {
            let message = format!(
                "expected one event under events/ or an index.html that names it, found {} and no page",
                several.len()
            );
            return Err(Failure::malformed(message));
        }
    };
    let kinds = Kinds::new();
    let asking = Asking { url: String::new(), zone: zone.map(str::to_owned) };
    let mut capture = Capture {
        reader: Reader { kinds: &kinds, asking: &asking },
        read,
        held: BTreeMap::new(),
        warnings: Vec::new(),
    };
    capture.page(&event).map_err(|_| {
        Failure::malformed(format!("expected an event's id, a GUID, under events/, found {event:?}"))
    })?;
    for target in asking.of_event(&event) {
        for race in capture.take(&target).into_iter().flatten() {
            capture.take(&race);
        }
    }
    Ok(Captured { records: capture.held.into_values().collect(), warnings: capture.warnings })
}

/// Everything that a directory says.
struct Captured {
    records: Vec<Held>,
    warnings: Vec<Json>,
}

struct Capture<'a, F> {
    reader: Reader<'a>,
    read: &'a F,
    held: BTreeMap<Fingerprint, Held>,
    warnings: Vec<Json>,
}

impl<F: Fn(&str) -> Option<Vec<u8>>> Capture<'_, F> {
    /// That this event is the current one, as the page would say it.
    fn page(&mut self, event: &str) -> Result<(), Failure> {
        let facts = Facts::default();
        let page = format!("new EventManager(\"events/{event}\")");
        let root = TargetSpec::new("page", "page");
        let seen = self.reader.read(&root, page.as_bytes(), &PollContext { now: Time(0), facts: &facts })?;
        self.keep(&seen);
        Ok(())
    }

    /// Reads one target's file; the targets that it lists.
    fn take(&mut self, target: &TargetSpec) -> Option<Vec<TargetSpec>> {
        let path = self.reader.asking.request(target).url;
        let path = path.trim_start_matches('/');
        let Some(body) = (self.read)(path) else {
            // Before the first result there is no such file.
            if target.role != RESULTS {
                self.warnings.push(json!({ "code": "no_file", "detail": path }));
            }
            return None;
        };
        let facts = Facts::default();
        match self.reader.read(target, &body, &PollContext { now: Time(0), facts: &facts }) {
            Ok(seen) => {
                self.keep(&seen);
                seen.targets
            }
            Err(failure) => {
                let detail = format!("{path}: {}", failure.message);
                self.warnings.push(json!({ "code": "bad_file", "detail": detail }));
                None
            }
        }
    }

    fn keep(&mut self, seen: &Observation) {
        for record in &seen.records {
            let known = self.held.get(&record.fingerprint).map(|held| &held.body);
            let body = record.merged_with(known).body();
            let held = Held { kind: record.kind.full_name(), key: record.key.clone(), body };
            self.held.insert(record.fingerprint, held);
        }
        let warning = |w: &stakeout_core::Warning| json!({ "code": w.code, "detail": w.detail });
        self.warnings.extend(seen.warnings.iter().map(warning));
    }
}

impl Captured {
    fn describe(self) -> Json {
        let records = self.records;
        let picture = Picture::of(&records).unwrap_or_default();
        let kind = format!("{FAMILY}_events");
        let event = records.iter().find(|held| held.kind == kind && held.key == picture.event);
        let mut event: Map<String, Json> = event.map(|held| held.body.clone()).unwrap_or_default();
        // When a capture was seen says nothing.
        event.remove("seen_at");
        let order = race_order(&picture);
        let order = order
            .iter()
            .zip(1..)
            .map(|(race, order): (_, i64)| json!({ "race_id": race.id, "order": order }));
        let consecutive = consecutive_laps(&picture);
        json!({
            "event": event,
            "order": order.collect::<Vec<_>>(),
            "current": current_race(&picture),
            "consecutive_laps": consecutive,
            "leaderboard": event_leaderboard(&picture, consecutive),
            "warnings": self.warnings,
        })
    }
}
