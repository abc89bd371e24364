//! The kinds of records, the history kept of them, and the rules that make events of their changes.
//!
//! Event types, stable for whoever listens:
//!
//! | type | told when |
//! |---|---|
//! | `fpv.race.started` | a race got a start and has no end |
//! | `fpv.race.ended` | a race got an end |
//! | `fpv.race.resumed` | an ended race has no end any more, and still its start |
//! | `fpv.race.reset` | a race lost its start |
//! | `fpv.race.invalidated` | a race is not valid any more |
//! | `fpv.lap.completed` | a valid lap appeared, or a lap became valid |
//! | `fpv.result.changed` | a result appeared, or its place, points, laps, time or validity changed |
//! | `fpv.event.switched` | the upstream shows another event |
//! | `fpv.race.current_changed` | another race is the current one |
//! | `fpv.race.reseated` | somebody flies another race, or sooner, and the current race is the same |
//! | `fpv.upstream.lost` | the upstream has not answered anything for five seconds |
//! | `fpv.upstream.back` | a lost upstream answers again |

use std::sync::Arc;

use stakeout_core::judge::{Condition, Test, Trigger};
use stakeout_core::{Field, FieldType, Fingerprint, Kind, Rule, Stream, Value};

/// The kinds' family, and the first part of the events' type names.
pub const FAMILY: &str = "fpv";
/// The stream of a race's own life: start, end, validity.
pub const RACE_HISTORY: &str = "race_history";
/// The field of a race that follows from all races and rounds together.
pub const RACE_ORDER: &str = "race_order";

/// The kinds of this source, by name.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    pub(super) events: Arc<Kind>,
    pub(super) rounds: Arc<Kind>,
    pub(super) pilots: Arc<Kind>,
    pub(super) channels: Arc<Kind>,
    pub(super) races: Arc<Kind>,
    pub(super) laps: Arc<Kind>,
    pub(super) detections: Arc<Kind>,
    pub(super) results: Arc<Kind>,
}

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds {
            events: Arc::new(events()),
            rounds: Arc::new(rounds()),
            pilots: Arc::new(pilots()),
            channels: Arc::new(channels()),
            races: Arc::new(races()),
            laps: Arc::new(laps()),
            detections: Arc::new(detections()),
            results: Arc::new(results()),
        }
    }

    pub(super) fn list(&self) -> Vec<Arc<Kind>> {
        let all = [
            &self.events,
            &self.rounds,
            &self.pilots,
            &self.channels,
            &self.races,
            &self.laps,
            &self.detections,
            &self.results,
        ];
        all.into_iter().map(Arc::clone).collect()
    }
}

/// Who an event is.
pub(super) fn event_fingerprint(event: &str) -> Fingerprint {
    Fingerprint::of(&format!("{FAMILY}_events"), &[event])
}

/// Who a race is: also the group of its laps and detections.
pub(super) fn race_fingerprint(race: &str) -> Fingerprint {
    Fingerprint::of(&format!("{FAMILY}_races"), &[race])
}

/// The values of a record of which only these fields are known.
pub(super) fn part(kind: &Kind, known: &[(&str, Value)]) -> Vec<Value> {
    let value =
        |field: &Field| known.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value.clone());
    kind.fields.iter().map(|field| value(field).unwrap_or_default()).collect()
}

fn field(name: &str, ty: FieldType) -> Field {
    let field = Field::new(name, ty);
    if name == RACE_ORDER { field.derived() } else { field }
}

fn kind(collection: &str, fields: &[(&str, FieldType)]) -> Kind {
    Kind {
        family: FAMILY.to_owned(),
        collection: collection.to_owned(),
        version: 1,
        fields: fields.iter().map(|(name, ty)| field(name, *ty)).collect(),
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

fn events() -> Kind {
    use FieldType::{Bool, Float, Int, Text, Time};
    let fields = [
        ("event_id", Text),
        ("is_current", Bool),
        ("seen_at", Time),
        ("name", Text),
        ("event_type", Text),
        ("start", Time),
        ("end", Time),
        ("laps", Int),
        ("pb_laps", Int),
        ("race_length_seconds", Float),
        ("zone", Text),
    ];
    // The page knows which event is current, the event's own file the rest.
    Kind { merges: true, ..kind("events", &fields) }
}

fn rounds() -> Kind {
    use FieldType::{Bool, Int, Text};
    let fields = [
        ("round_id", Text),
        ("event", Text),
        ("round_number", Int),
        ("round_order", Int),
        ("valid", Bool),
        ("name", Text),
        ("event_type", Text),
        ("round_type", Text),
    ];
    kind("rounds", &fields)
}

fn pilots() -> Kind {
    use FieldType::{Bool, Text};
    let fields = [
        ("pilot_id", Text),
        ("event", Text),
        ("name", Text),
        ("phonetic", Text),
        ("first_name", Text),
        ("last_name", Text),
        ("practice_pilot", Bool),
        ("channel", Text),
        ("removed", Bool),
    ];
    // Who they are is in one file, whether and on which channel they take part in another.
    Kind { merges: true, ..kind("pilots", &fields) }
}

fn channels() -> Kind {
    use FieldType::{Int, Text};
    let fields = [
        ("channel_id", Text),
        ("name", Text),
        ("band", Text),
        ("number", Int),
        ("frequency", Int),
        ("display_name", Text),
        ("colour", Text),
    ];
    // The frequency is the upstream's, the colour the event's.
    Kind { merges: true, ..kind("channels", &fields) }
}

fn races() -> Kind {
    use FieldType::{Bool, Float, Int, Json, Text, Time};
    let fields = [
        ("race_id", Text),
        ("event", Text),
        ("round", Text),
        ("race_number", Int),
        (RACE_ORDER, Int),
        ("start", Time),
        ("end", Time),
        ("paused_seconds", Float),
        ("target_laps", Int),
        ("valid", Bool),
        ("bracket", Text),
        ("pilots", Json),
    ];
    let history = ["start", "end", "valid"].map(str::to_owned).to_vec();
    let streams = vec![Stream { name: RACE_HISTORY.to_owned(), fields: history }];
    // Not merging: that a start or an end is gone again is news.
    Kind { streams, ..kind("races", &fields) }
}

fn laps() -> Kind {
    use FieldType::{Bool, Float, Int, Text, Time};
    let fields = [
        ("lap_id", Text),
        ("race", Text),
        ("pilot", Text),
        ("channel", Text),
        ("detection", Text),
        ("lap_number", Int),
        ("length_seconds", Float),
        ("start", Time),
        ("end", Time),
        ("valid", Bool),
    ];
    kind("laps", &fields)
}

fn detections() -> Kind {
    use FieldType::{Bool, Int, Text, Time};
    let fields = [
        ("detection_id", Text),
        ("race", Text),
        ("pilot", Text),
        ("channel", Text),
        ("time", Time),
        ("lap_number", Int),
        ("valid", Bool),
        ("validity_type", Text),
        ("is_lap_end", Bool),
        ("is_holeshot", Bool),
    ];
    kind("detections", &fields)
}

fn results() -> Kind {
    use FieldType::{Bool, Float, Int, Text};
    let fields = [
        ("result_id", Text),
        ("event", Text),
        ("race", Text),
        ("round", Text),
        ("pilot", Text),
        ("result_type", Text),
        ("position", Int),
        ("points", Float),
        ("dnf", Bool),
        ("valid", Bool),
        ("laps_finished", Int),
        ("time_seconds", Float),
    ];
    kind("results", &fields)
}

/// What the rules can tell by themselves; the life of a race is told by `events`.
pub(super) fn rules() -> Vec<Rule> {
    let condition = |field: &str, test: Test| Condition { field: field.to_owned(), test };
    let rule = |name: &str, event: &str, collection: &str, on: Trigger, when: Vec<Condition>| Rule {
        when,
        ..Rule::new(name, &format!("{FAMILY}.{event}"), &format!("{FAMILY}_{collection}"), on)
    };
    let changed =
        |fields: &[&str]| Trigger::Changed { fields: fields.iter().map(|&f| f.to_owned()).collect() };
    let judged = ["race", "pilot", "position", "points", "dnf", "valid", "laps_finished", "time_seconds"];
    let valid = || condition("valid", Test::Is(Value::Bool(true)));
    let revalidated = condition("valid", Test::Became(Value::Bool(true)));
    vec![
        rule("lap_completed", "lap.completed", "laps", Trigger::Added, vec![valid()]),
        rule("lap_validated", "lap.completed", "laps", changed(&["valid"]), vec![revalidated]),
        rule("result_added", "result.changed", "results", Trigger::Added, vec![valid()]),
        // A result that was saved again with another id alone has not changed.
        rule("result_changed", "result.changed", "results", changed(&judged), vec![]),
    ]
}
