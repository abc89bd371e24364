use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use stakeout_core::{Event, EventId, Fingerprint, Span, Time};
use stakeout_sources::tables::feed::{
    self, BucketHealth, Filter, Holding, JUST_OPENED, SlotNow, just_opened, still_open,
};

use crate::support::*;

struct World {
    drops: Vec<Event>,
    bodies: BTreeMap<Fingerprint, (Map<String, Json>, Option<Time>)>,
    buckets: BTreeMap<String, BucketHealth>,
}

impl World {
    fn new() -> World {
        let scanned = now() - Span::secs(20);
        let health = BucketHealth::at(now(), BUCKET, Some(scanned), 9);
        World { drops: vec![], bodies: BTreeMap::new(), buckets: [(BUCKET.to_owned(), health)].into() }
    }

    fn opened(mut self, venue: &str, clock: &str, ago: Span, gone: bool) -> World {
        let subject = Fingerprint::of("tables_slots", &["resy", venue, clock]);
        let seq = self.drops.len() as u64 + 1;
        let opened_at = now() - ago;
        self.drops.push(Event {
            seq,
            id: EventId(u128::from(seq)),
            event_type: "tables.drop".into(),
            source: "nyc".into(),
            target: BUCKET.into(),
            rule: "drop".into(),
            subject,
            subject_key: String::new(),
            at: opened_at + Span::secs(40),
            dedupe_key: None,
            data: json!({ "opened_at": opened_at, "evidence": "nonempty_prev" }),
        });
        let body = json!({ "venue_id": venue, "venue_name": format!("Venue {venue}"), "neighborhood": "Tribeca",
            "date": DATE, "start": format!("{DATE}T{clock}"), "party_sizes": [2, 4] });
        let body = body.as_object().expect("an object").clone();
        self.bodies.insert(subject, (body, gone.then(now)));
        self
    }

    fn just_opened(&self, within: Span, filter: &Filter) -> Vec<String> {
        self.shown(|holding| just_opened(holding, now(), within, filter))
    }

    fn still_open(&self, filter: &Filter) -> Vec<String> {
        self.shown(|holding| still_open(holding, filter))
    }

    /// `venue@clock` of everything shown, in order.
    fn shown(&self, feed: impl Fn(&Holding<'_>) -> Vec<stakeout_sources::tables::feed::Day>) -> Vec<String> {
        let slots = self.bodies.iter().map(|(print, (body, gone))| {
            (*print, SlotNow { body, first_seen: now() - Span::hours(5), gone: *gone })
        });
        let slots: BTreeMap<Fingerprint, SlotNow<'_>> = slots.collect();
        let days = feed(&Holding { drops: &self.drops, slots: &slots, buckets: &self.buckets });
        assert!(days.iter().all(|day| day.date == DATE));
        let venues = days.into_iter().flat_map(|day| day.venues);
        venues
            .flat_map(|v| v.slots.into_iter().map(move |s| format!("{}@{}", v.venue_id, &s.start[11..])))
            .collect()
    }
}

#[test]
fn just_opened_is_recent_and_still_open() {
    let world = World::new()
        .opened("1", "20:30", Span::mins(5), false)
        .opened("1", "19:00", Span::mins(5), false)
        .opened("2", "20:30", Span::mins(45), false)
        .opened("3", "20:30", Span::mins(5), true);
    assert_eq!(world.just_opened(JUST_OPENED, &Filter::default()), ["1@19:00", "1@20:30"]);
    assert_eq!(world.just_opened(Span::hours(1), &Filter::default()), ["1@19:00", "1@20:30", "2@20:30"]);
    assert_eq!(world.still_open(&Filter::default()), ["1@19:00", "1@20:30", "2@20:30"]);
}

#[test]
fn a_bucket_that_was_not_scanned_for_four_hours_is_left_out_of_just_opened() {
    let mut world = World::new().opened("1", "20:30", Span::mins(5), false);
    let fresh = BucketHealth::at(now(), BUCKET, Some(now() - Span::mins(239)), 9);
    assert!(!fresh.stale);
    world.buckets.insert(BUCKET.into(), BucketHealth::at(now(), BUCKET, Some(now() - Span::hours(4)), 9));
    assert!(world.buckets[BUCKET].stale && BucketHealth::at(now(), BUCKET, None, 0).stale);
    assert_eq!(world.just_opened(JUST_OPENED, &Filter::default()), [""; 0]);
    assert_eq!(world.still_open(&Filter::default()), ["1@20:30"]);
}

#[test]
fn filters_choose() {
    let world =
        World::new().opened("1", "18:00", Span::mins(5), false).opened("2", "20:30", Span::mins(5), false);
    let shown = |filter: Filter| world.just_opened(JUST_OPENED, &filter);
    let ids = |id: &str| BTreeSet::from([id.to_owned()]);
    assert_eq!(shown(Filter { date: feed::date("2026-03-01"), ..Filter::default() }), [""; 0]);
    assert_eq!(shown(Filter { from: feed::time_of_day("19:00"), ..Filter::default() }), ["2@20:30"]);
    assert_eq!(shown(Filter { to: feed::time_of_day("19:00"), ..Filter::default() }), ["1@18:00"]);
    assert_eq!(shown(Filter { party_size: Some(4), ..Filter::default() }).len(), 2);
    assert_eq!(shown(Filter { party_size: Some(6), ..Filter::default() }), [""; 0]);
    assert_eq!(shown(Filter { neighborhood: Some("tribeca ".into()), ..Filter::default() }).len(), 2);
    assert_eq!(shown(Filter { follow: ids("2"), ..Filter::default() }), ["2@20:30"]);
    assert_eq!(shown(Filter { exclude: ids("2"), ..Filter::default() }), ["1@18:00"]);
}
