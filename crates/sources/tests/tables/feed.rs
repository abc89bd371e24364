use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use stakeout_core::{Event, EventId, Fingerprint, Span, Time};
use stakeout_sources::tables::feed::{
    self, BucketHealth, Filter, Holding, JUST_OPENED, Shown, SlotNow, just_opened, still_open,
};

use crate::support::*;

struct World {
    drops: Vec<Event>,
    bodies: BTreeMap<Fingerprint, (Map<String, Json>, Option<Time>)>,
    buckets: BTreeMap<String, BucketHealth>,
    /// When a bucket that holds all of it was last scanned.
    scanned: Option<Time>,
}

impl World {
    fn new() -> World {
        let scanned = now() - Span::secs(20);
        let health = BucketHealth::at(now(), BUCKET, Some(scanned), 9);
        let buckets = [(BUCKET.to_owned(), health)].into();
        World { drops: vec![], bodies: BTreeMap::new(), buckets, scanned: Some(scanned) }
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
        self.shown(|holding| just_opened(holding, now(), within, filter)).0
    }

    fn still_open(&self, filter: &Filter) -> Vec<String> {
        self.shown(|holding| still_open(holding, filter)).0
    }

    /// `venue@clock` of everything shown, in order, and where the next part begins.
    fn shown(&self, feed: impl Fn(&Holding<'_>) -> Shown) -> (Vec<String>, Option<u64>) {
        let slots = self.bodies.iter().map(|(print, (body, gone))| {
            let first_seen = now() - Span::hours(5);
            (*print, SlotNow { body, first_seen, scanned: self.scanned, gone: *gone })
        });
        let slots: BTreeMap<Fingerprint, SlotNow<'_>> = slots.collect();
        let Shown { days, next } =
            feed(&Holding { drops: &self.drops, slots: &slots, buckets: &self.buckets });
        assert!(days.iter().all(|day| day.date == DATE));
        let of_date = |health: &BucketHealth| health.bucket_id.contains(DATE);
        let buckets: Vec<BucketHealth> = self.buckets.values().filter(|h| of_date(h)).cloned().collect();
        assert!(days.iter().all(|day| day.buckets == buckets), "how its own buckets are, and no others");
        let venues = days.into_iter().flat_map(|day| day.venues);
        let slots = venues
            .flat_map(|v| v.slots.into_iter().map(move |s| format!("{}@{}", v.venue_id, &s.start[11..])));
        (slots.collect(), next)
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

#[test]
fn a_date_comes_with_the_health_of_its_own_buckets() {
    let mut world = World::new().opened("1", "18:00", Span::mins(5), false);
    for other in [format!("boston_{BUCKET}"), "2026-03-07_20:30".to_owned(), "window".to_owned()] {
        world.buckets.insert(other.clone(), BucketHealth::at(now(), &other, None, 3));
    }
    assert_eq!(world.still_open(&Filter::default()), ["1@18:00"], "checked by what is shown");
}

#[test]
fn whoever_has_seen_a_sequence_number_is_shown_what_came_after_it() {
    let world = World::new()
        .opened("3", "18:00", Span::mins(5), false)
        .opened("2", "20:30", Span::mins(4), false)
        .opened("9", "20:30", Span::mins(4), true)
        .opened("1", "19:00", Span::mins(3), false)
        // The same slot once more: it is shown by its newest drop.
        .opened("3", "18:00", Span::mins(1), false);
    let part = |after: Option<u64>, most: usize| {
        let filter = Filter { after, most: Some(most), ..Filter::default() };
        world.shown(|holding| just_opened(holding, now(), JUST_OPENED, &filter))
    };
    let words = |slots: &[&str]| slots.iter().map(|slot| (*slot).to_owned()).collect::<Vec<String>>();
    assert_eq!(part(None, 2), (words(&["1@19:00", "2@20:30"]), Some(4)));
    assert_eq!(part(Some(4), 2), (words(&["3@18:00"]), None));
    assert_eq!(part(Some(5), 2), (Vec::new(), None));
    assert_eq!(
        part(None, 3),
        (words(&["1@19:00", "2@20:30", "3@18:00"]), None),
        "a part that is full may be all"
    );
}

#[test]
fn a_slot_was_last_seen_by_whoever_still_has_it_and_never_before_it_opened() {
    let last_seen = |world: &World| {
        let slots = world.bodies.iter().map(|(print, (body, gone))| {
            (*print, SlotNow { body, first_seen: now(), scanned: world.scanned, gone: *gone })
        });
        let slots: BTreeMap<Fingerprint, SlotNow<'_>> = slots.collect();
        let holding = Holding { drops: &world.drops, slots: &slots, buckets: &world.buckets };
        still_open(&holding, &Filter::default()).days[0].venues[0].slots[0].last_seen
    };
    let ago = |seconds: i64| now() - Span::secs(seconds);
    let mut world = World::new().opened("1", "18:00", Span::mins(5), false);
    world.scanned = Some(ago(90));
    assert_eq!(last_seen(&world), ago(90), "by the bucket that has it, not by the one that told of it");
    // The scan that first showed it began before its page was read.
    world.scanned = Some(ago(330));
    assert_eq!(last_seen(&world), ago(300));
    world.scanned = None;
    assert_eq!(last_seen(&world), ago(300), "a part of an answer showed it");
    let (body, _) = world.bodies.values_mut().next().expect("a slot");
    body.insert("seen_at".to_owned(), json!(ago(200)));
    assert_eq!(last_seen(&world), ago(200));
}
