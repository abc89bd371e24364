//! The kinds of records, the streams kept of them, and the rules that make events of their changes.
//!
//! Event types, stable for whoever listens:
//!
//! | type | told when |
//! |---|---|
//! | `racing.race.retimed` | the advertised start moved |
//! | `racing.race.started` | the start is confirmed |
//! | `racing.race.closed`, `.interim`, `.final`, `.abandoned` | the race reached that status |
//! | `racing.race.reopened` | the race is open again after any other status |
//! | `racing.runner.scratched` | a runner was taken out; `late` says whether it was a late scratching |
//! | `racing.odds.moved` | a fixed win price moved by at least the configured share between two polls |
//! | `racing.money.moved` | a runner's hold percentage moved by at least so many points between two polls |
//! | `racing.favourite.changed` | another runner has the lowest fixed win price, before the start |
//!
//! Each but the last carries `record` and `changes`; nothing is told about the prices or the money of scratched
//! runners. A race is seen by its own target and by the catalogue: whichever sees a change first tells it.

use std::sync::Arc;

use stakeout_core::judge::{Condition, Step, Test, Trigger};
use stakeout_core::{Field, FieldType, Kind, KindView, Rule, Shows, Span, Stream, Value};

use super::status::Status;

/// The kinds' family, and the first part of the events' type names.
pub const FAMILY: &str = "racing";
/// The stream of prices; its rows are stamped by the upstream where it says when a price moved.
pub const ODDS_HISTORY: &str = "odds_history";
/// The stream of money.
pub const MONEY_FLOW_HISTORY: &str = "money_flow_history";
/// The stream of a race's own life.
pub const STATUS_HISTORY: &str = "status_history";

pub(super) const RETIMED: &str = "retimed";
pub(super) const REOPENED: &str = "reopened";
pub(super) const SCRATCHED: &str = "scratched";

/// The kinds of this source, by name.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    pub(super) meetings: Arc<Kind>,
    pub(super) races: Arc<Kind>,
    pub(super) entrants: Arc<Kind>,
    pub(super) pools: Arc<Kind>,
    pub(super) results: Arc<Kind>,
    pub(super) dividends: Arc<Kind>,
}

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds {
            // What others refer to is always there; of the rest, what counted in the end.
            meetings: Arc::new(with_past(meetings(), true)),
            races: Arc::new(with_past(races(), true)),
            entrants: Arc::new(with_past(entrants(), true)),
            pools: Arc::new(with_past(pools(), false)),
            results: Arc::new(with_past(results(), false)),
            dividends: Arc::new(with_past(dividends(), false)),
        }
    }

    pub(super) fn list(&self) -> Vec<Arc<Kind>> {
        let all = [&self.meetings, &self.races, &self.entrants, &self.pools, &self.results, &self.dividends];
        all.into_iter().map(Arc::clone).collect()
    }
}

fn kind(collection: &str, fields: &[(&str, FieldType)]) -> Kind {
    Kind {
        family: FAMILY.to_owned(),
        collection: collection.to_owned(),
        version: 1,
        fields: fields.iter().map(|(name, ty)| Field::new(name, *ty)).collect(),
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

/// A race whose day has left the catalogue is over, not gone: its view goes on showing it, with its runners and results.
fn with_past(kind: Kind, withdrawn: bool) -> Kind {
    let past = KindView { name: kind.collection.clone(), shows: Shows::Past { withdrawn } };
    Kind { views: vec![past], ..kind }
}

fn stream(name: &str, fields: &[&str]) -> Stream {
    Stream { name: name.to_owned(), fields: fields.iter().map(|&field| field.to_owned()).collect() }
}

fn meetings() -> Kind {
    use FieldType::Text;
    let fields = [
        ("meeting_id", Text),
        ("name", Text),
        ("date", Text),
        ("country", Text),
        ("state", Text),
        ("category", Text),
        ("category_name", Text),
        ("track_condition", Text),
        ("tote_status", Text),
    ];
    // The catalogue knows more of it than a race's own answer.
    Kind { merges: true, ..kind("meetings", &fields) }
}

fn races() -> Kind {
    use FieldType::{Bool, Int, Text, Time};
    let fields = [
        ("race_id", Text),
        ("status", Text),
        ("start_time", Time),
        ("actual_start", Time),
        ("start_confirmed", Bool),
        ("meeting", Text),
        ("race_number", Int),
        ("name", Text),
        ("distance", Int),
        ("track_condition", Text),
        ("weather", Text),
        ("type", Text),
        ("country", Text),
        ("state", Text),
        ("protest", Bool),
        ("protest_reason", Text),
    ];
    // The catalogue knows no actual start.
    let streams = vec![stream(STATUS_HISTORY, &["status", "start_time"])];
    Kind { merges: true, streams, ..kind("races", &fields) }
}

fn entrants() -> Kind {
    use FieldType::{Bool, Float, Int, Text, Time};
    let fields = [
        ("entrant_id", Text),
        ("race", Text),
        ("name", Text),
        ("runner_number", Int),
        ("barrier", Text),
        ("jockey", Text),
        ("trainer_name", Text),
        ("win_odds", Float),
        ("place_odds", Float),
        ("pool_win", Float),
        ("pool_place", Float),
        ("hold_percentage", Float),
        ("bet_percentage", Float),
        ("win_pool_amount", Float),
        ("place_pool_amount", Float),
        ("is_scratched", Bool),
        ("is_late_scratched", Bool),
        ("scratch_time", Time),
        ("is_emergency", Bool),
        ("favourite", Bool),
        ("mover", Bool),
    ];
    let streams = vec![
        stream(ODDS_HISTORY, &["win_odds", "place_odds", "pool_win", "pool_place"]),
        stream(
            MONEY_FLOW_HISTORY,
            &["hold_percentage", "bet_percentage", "win_pool_amount", "place_pool_amount"],
        ),
    ];
    // Any price may be missing from an answer: that says nothing, and its history carries the last one forward.
    Kind { merges: true, streams, ..kind("entrants", &fields) }
}

fn pools() -> Kind {
    use FieldType::{Float, Text};
    kind("race_pools", &[("product_type", Text), ("total", Float), ("status", Text), ("race", Text)])
}

fn results() -> Kind {
    use FieldType::{Float, Int, Text};
    let fields = [
        ("position", Int),
        ("runner_number", Int),
        ("entrant", Text),
        ("name", Text),
        ("margin", Float),
        ("race", Text),
    ];
    kind("race_results", &fields)
}

fn dividends() -> Kind {
    use FieldType::{Float, Json, Text};
    let fields = [
        ("product", Text),
        ("status", Text),
        ("dividend", Float),
        ("pool_size", Float),
        ("positions", Json),
        ("tote", Text),
        ("race", Text),
    ];
    kind("dividends", &fields)
}

/// When a move is worth telling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Thresholds {
    pub(super) odds_moved_percent: f64,
    pub(super) money_moved_points: f64,
    /// Silence after a move of the same runner in the same direction.
    pub(super) quiet: Option<Span>,
}

/// The rules, in the order in which the events of one poll are told.
pub(super) fn rules(thresholds: &Thresholds) -> Vec<Rule> {
    let mut rules = vec![rule(RETIMED, "race.retimed", "races", "start_time", vec![])];
    let started = vec![became("start_confirmed", Value::Bool(true))];
    rules.push(rule("started", "race.started", "races", "start_confirmed", started));
    for (name, status) in [
        ("closed", Status::Closed),
        ("interim", Status::Interim),
        ("final", Status::Final),
        ("abandoned", Status::Abandoned),
        (REOPENED, Status::Open),
    ] {
        let when = vec![became("status", status.name().into())];
        rules.push(rule(name, &format!("race.{name}"), "races", "status", when));
    }
    let scratched = vec![became("is_scratched", Value::Bool(true))];
    rules.push(rule(SCRATCHED, "runner.scratched", "entrants", "is_scratched", scratched));
    let percent = Step::Percent(thresholds.odds_moved_percent);
    let points = Step::Absolute(thresholds.money_moved_points);
    for (name, event, field, test) in [
        ("odds_shortened", "odds.moved", "win_odds", Test::FellBy(percent)),
        ("odds_drifted", "odds.moved", "win_odds", Test::RoseBy(percent)),
        ("money_in", "money.moved", "hold_percentage", Test::RoseBy(points)),
        ("money_out", "money.moved", "hold_percentage", Test::FellBy(points)),
    ] {
        let runs = Condition { field: "is_scratched".to_owned(), test: Test::IsNot(Value::Bool(true)) };
        let when = vec![runs, Condition { field: field.to_owned(), test }];
        rules.push(Rule { quiet: thresholds.quiet, ..rule(name, event, "entrants", field, when) });
    }
    rules
}

fn rule(name: &str, event: &str, collection: &str, field: &str, when: Vec<Condition>) -> Rule {
    let on = Trigger::Changed { fields: vec![field.to_owned()] };
    let mut rule = Rule::new(name, &format!("{FAMILY}.{event}"), &format!("{FAMILY}_{collection}"), on);
    rule.when = when;
    rule
}

fn became(field: &str, value: Value) -> Condition {
    Condition { field: field.to_owned(), test: Test::Became(value) }
}
