//! The kinds of records, the views about them, and the one rule.
//!
//! | event | told when |
//! |---|---|
//! | `tables.drop` | a slot appeared at a venue that had none: seen with none, or absent from two whole answers |
//! | `tables.credentials` | the provider refuses our credentials; nothing more is asked but a rare probe |

use std::sync::Arc;

use stakeout_core::judge::{Gate, Trigger};
use stakeout_core::{Field, FieldType, Kind, KindView, Rule, Shows, Span};

/// The kinds' family, and the first part of the events' type names.
pub const FAMILY: &str = "tables";
/// The type of the events about drops.
pub const DROP: &str = "tables.drop";
const RULE: &str = "drop";

/// The kinds of this source, by name.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    pub(super) venues: Arc<Kind>,
    pub(super) slots: Arc<Kind>,
}

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds { venues: Arc::new(venues()), slots: Arc::new(slots()) }
    }

    pub(super) fn list(&self) -> Vec<Arc<Kind>> {
        vec![Arc::clone(&self.venues), Arc::clone(&self.slots)]
    }
}

fn kind(collection: &str, fields: Vec<Field>) -> Kind {
    Kind {
        family: FAMILY.to_owned(),
        collection: collection.to_owned(),
        version: 1,
        fields,
        streams: vec![],
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

fn tracked(fields: &[(&str, FieldType)]) -> Vec<Field> {
    fields.iter().map(|(name, ty)| Field::new(name, *ty)).collect()
}

fn venues() -> Kind {
    use FieldType::{Float, Int, Text};
    let mut fields = tracked(&[
        ("venue_id", Text),
        ("provider", Text),
        ("name", Text),
        ("neighborhood", Text),
        ("price_range", Int),
        ("url_slug", Text),
    ]);
    // These move all the time and mean nothing for tables.
    let loose = [("rating", Float), ("rating_count", Int), ("image", Text)];
    fields.extend(loose.map(|(name, ty)| Field::new(name, ty).untracked()));
    // Not every page says everything about a venue.
    Kind { merges: true, ..kind("venues", fields) }
}

fn slots() -> Kind {
    use FieldType::{Json, Text, Time};
    let mut fields = tracked(&[
        ("slot_id", Text),
        ("provider", Text),
        ("venue_id", Text),
        ("venue_name", Text),
        ("neighborhood", Text),
        ("date", Text),
        ("start", Text),
        ("starts_at", Time),
    ]);
    // A page that failed says nothing about the party size that it was for.
    fields.extend(["seatings", "party_sizes"].map(|name| Field::new(name, Json).gathered()));
    // Which bucket had news of it last, and when its page was read: no change of the slot itself.
    fields.insert(0, Field::new("bucket_id", Text).untracked());
    fields.push(Field::new("seen_at", Time).untracked());
    Kind { views: views(), ..kind("slots", fields) }
}

fn views() -> Vec<KindView> {
    use FieldType::{Bool, Json, Text, Time};
    let told = tracked(&[
        ("opened_at", Time),
        ("venue_id", Text),
        ("venue_name", Text),
        ("neighborhood", Text),
        ("date", Text),
        ("start", Text),
        ("starts_at", Time),
        ("party_sizes", Json),
        ("evidence", Text),
        ("followed", Bool),
    ]);
    let view = |name: &str, shows: Shows| KindView { name: name.to_owned(), shows };
    vec![
        view("slot_availability", Shows::Life),
        view(
            "drop_events",
            Shows::Events {
                event_type: DROP.to_owned(),
                target: "bucket_id".to_owned(),
                subject: "slot_id".to_owned(),
                fields: told,
            },
        ),
        view(
            "discovery_buckets",
            Shows::Targets {
                role: super::market::BUCKET.to_owned(),
                target: "bucket_id".to_owned(),
                member: "slot".to_owned(),
            },
        ),
    ]
}

/// What decides when a drop is told again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Silence {
    /// Silence after a drop of the same slot.
    pub(super) quiet: Span,
    /// A slot that was open within this is not new.
    pub(super) seen_ttl: Option<Span>,
}

/// Only drops are told: everything that is told makes a bucket hot.
pub(super) fn rules(silence: &Silence) -> Vec<Rule> {
    let mut rule = Rule::new(RULE, DROP, &format!("{FAMILY}_slots"), Trigger::Added);
    rule.gate = Gate::GroupWasZero;
    rule.quiet = Some(silence.quiet);
    rule.unseen_for = silence.seen_ttl;
    vec![rule]
}
