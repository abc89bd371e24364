use proptest::prelude::*;
use serde_json::json;
use stakeout_core::{Coverage, Fingerprint};

use crate::support::*;

#[test]
fn a_slot_is_a_venue_and_a_time_however_either_is_written() {
    let one = json!({ "id": { "resy": 123 }, "name": "One",
        "availability": { "slots": [slot("2026-02-28 20:30:00", "Bar", 1)] } });
    let other = json!({ "id": 123, "name": "One", "availability": { "slots": [slot("2026-02-28T20:30", "Bar", 1)] } });
    for hit in [one, other] {
        let seen = see(&source(), &page(&[hit]));
        let slots = of(&seen, "slots");
        assert_eq!(slots.len(), 1);
        // The golden value of core's own test.
        assert_eq!(
            slots[0].fingerprint,
            Fingerprint::of("tables_slots", &["resy", "123", "2026-02-28T20:30"])
        );
        assert_eq!(get(slots[0], "slot_id"), json!("338dacf713c8e81011c7aef53f95d186"));
        assert_eq!(get(slots[0], "start"), json!("2026-02-28T20:30"));
        assert_eq!(get(slots[0], "starts_at"), json!("2026-03-01T01:30:00.000Z"));
        assert_eq!(slots[0].ends, Some(time("2026-03-01T01:30:00Z")), "its own time is over when it starts");
        assert_eq!(seen.coverage, Coverage::Complete);
    }
}

#[test]
fn seatings_of_one_time_are_one_slot_and_all_are_kept() {
    let source = source_with(json!({ "party_sizes": [2, 4], "slot_cap": 9 }));
    let target = bucket(&source);
    let exchanges = fetch(&source, &target, |size, _| {
        let mut slots = vec![slot("2026-02-28 20:30:00", "Dining Room", 1)];
        if size == 2 {
            slots.push(slot("2026-02-28 20:30:00", "Patio ", 2));
            slots.push(slot("2026-02-28 22:45:00", "Bar", 3));
        }
        Ok(page(&[json!({ "id": 7, "name": "Seven", "availability": { "slots": slots } })]))
    });
    let seen = look(&source, &target, &exchanges).expect("seen");
    let slots = of(&seen, "slots");
    let shown: Vec<_> = slots.iter().map(|s| (get(s, "start"), get(s, "party_sizes"))).collect();
    assert_eq!(
        shown,
        [(json!("2026-02-28T20:30"), json!([2, 4])), (json!("2026-02-28T22:45"), json!([2]))],
        "the party sizes that saw the slot are kept"
    );
    let seatings = get(slots[0], "seatings");
    assert_eq!(
        seatings,
        json!([
            { "type": "Dining Room", "config_id": 1, "end": null, "party_sizes": [2, 4] },
            { "type": "Patio", "config_id": 2, "end": null, "party_sizes": [2] },
        ])
    );
}

#[test]
fn a_slot_is_stamped_with_the_time_of_its_own_page() {
    let source = source_with(json!({ "party_sizes": [2], "per_page": 1 }));
    let target = bucket(&source);
    let exchanges = fetch(&source, &target, |_, n| Ok(page_of(3, 3, &[venue(i64::from(n), &["20:30"])])));
    let seen = look(&source, &target, &exchanges).expect("seen");
    let stamps: Vec<_> = of(&seen, "slots").iter().map(|s| get(s, "seen_at")).collect();
    assert_eq!(
        stamps,
        [
            json!("2026-02-26T19:00:00.000Z"),
            json!("2026-02-26T19:00:01.000Z"),
            json!("2026-02-26T19:00:02.000Z")
        ]
    );
    let again = fetch(&source, &target, |_, n| Ok(page_of(3, 3, &[venue(i64::from(4 - n), &["20:30"])])));
    let again = look(&source, &target, &again).expect("seen");
    for (before, after) in of(&seen, "slots").iter().zip(of(&again, "slots")) {
        assert_eq!(before.content(), after.content(), "when it was seen is no change");
    }
}

#[test]
fn unbookable_absent_and_failed_are_three_things() {
    let source = source();
    let unbookable =
        see(&source, &page(&[venue(1, &[]), json!({ "id": 2, "name": "Two", "availability": null })]));
    assert_eq!((of(&unbookable, "venues").len(), of(&unbookable, "slots").len()), (2, 0));
    assert_eq!(unbookable.coverage, Coverage::Complete);
    let absent = see(&source, &page(&[venue(1, &[])]));
    assert_eq!(of(&absent, "venues").len(), 1);
    let target = bucket(&source);
    let failed = fetch(&source, &target, |_, _| Ok(json!({ "error": "no" })));
    assert!(look(&source, &target, &failed).is_err());
}

#[test]
fn a_list_as_long_as_the_cap_proves_nothing_about_its_venue() {
    let seen = see(&source(), &page(&[venue(1, &["18:00", "19:00", "20:00"]), venue(2, &["20:30"])]));
    let Coverage::CompleteBut(cut_off) = &seen.coverage else { panic!("{:?}", seen.coverage) };
    let group = |id: &str| Fingerprint::of("tables_venue_days", &["resy", id, DATE]);
    assert_eq!(cut_off.0, [group("1")].into());
    assert_eq!(seen.coverage.name(), "partial");
    assert!(seen.coverage.proves_absence(group("2")) && seen.coverage.proves_absence(group("3")));
    let all = source_with(json!({ "party_sizes": [2], "slot_cap": 0 }));
    let seen = see(&all, &page(&[venue(1, &["18:00", "19:00", "20:00"])]));
    assert_eq!(seen.coverage, Coverage::Complete, "a provider that shows all of them");
}

#[test]
fn ids_missing_or_colliding_are_no_whole_answer() {
    let nameless =
        json!({ "name": "Who?", "availability": { "slots": [slot("2026-02-28 20:30:00", "Bar", 1)] } });
    let seen = see(&source(), &page(&[venue(1, &["20:30"]), nameless]));
    assert_eq!(codes(&seen), ["venues_do_not_add_up", "bad_venue"]);
    assert_eq!((of(&seen, "slots").len(), seen.coverage.name()), (1, "partial"));
    let seen = see(&source(), &page(&[venue(1, &["20:30"]), venue(1, &["21:00"])]));
    assert_eq!((codes(&seen), of(&seen, "slots").len()), (vec!["venues_do_not_add_up"], 2));
    assert_eq!(of(&seen, "venues").len(), 1);
}

#[test]
fn whose_slots_these_are_cannot_be_told_when_two_venues_have_one_id() {
    let mut other = venue(1, &["21:00"]);
    other["name"] = json!("Somebody else");
    let seen = see(&source(), &page(&[venue(1, &[]), other.clone(), venue(2, &["20:30"])]));
    assert_eq!(codes(&seen), ["venues_do_not_add_up", "one_id_for_two"]);
    assert_eq!((of(&seen, "slots").len(), seen.coverage.name()), (1, "partial"), "no drop at either");
    // The total is no witness when another party size has the other of the two.
    let source = source_with(json!({ "party_sizes": [2, 4] }));
    let target = bucket(&source);
    let exchanges = fetch(&source, &target, |size, _| {
        Ok(page(&[if size == 2 { venue(1, &["20:30"]) } else { other.clone() }]))
    });
    let seen = look(&source, &target, &exchanges).expect("seen");
    assert_eq!((codes(&seen), of(&seen, "slots").len()), (vec!["one_id_for_two"], 0));
    assert!(matches!(seen.coverage, Coverage::CompleteBut(_)), "nothing of it is closed, all else counts");
}

#[test]
fn a_slot_without_a_time_is_left_out_and_its_venue_is_not_judged() {
    let odd = json!({ "id": 1, "availability": { "slots": [
        slot("2026-02-28 20:30:00", "Bar", 1), { "date": { "start": "tonight" }, "config": {} } ] } });
    let seen = see(&source(), &page(&[odd]));
    assert_eq!((codes(&seen), of(&seen, "slots").len()), (vec!["bad_slot"], 1));
    assert!(matches!(seen.coverage, Coverage::CompleteBut(_)));
}

#[test]
fn a_seating_may_end_on_the_next_day() {
    let late = json!({ "id": 1, "availability": { "slots": [
        { "date": { "start": "2026-02-28 22:45:00", "end": "2026-03-01 00:15:00" }, "config": { "id": 1, "type": "Bar" } } ] } });
    let seen = see(&source(), &page(&[late]));
    assert_eq!(get(of(&seen, "slots")[0], "seatings")[0]["end"], json!("2026-03-01T00:15"));
}

#[test]
fn secrets_never_show() {
    let source = source();
    let target = bucket(&source);
    let exchanges = fetch(&source, &target, |_, _| Ok(page(&[])));
    let headers = &exchanges[0].request.headers;
    let value = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    assert_eq!(value("Authorization"), Some("ResyAPI api_key=\"k3y-s3cret\""));
    assert_eq!(value("X-Resy-Auth-Token"), Some("t0ken-s3cret"));
    assert!(value("User-Agent").is_some() && value("Origin").is_some() && value("Referer").is_some());
    let shown = format!("{:?} {:?}", exchanges[0].request, credentials());
    assert!(!shown.contains("s3cret"), "{shown}");
}

/// Whether every page is the same as some other slicing of the same venues.
fn sliced(venues: &[serde_json::Value], per_page: usize, n: u32) -> serde_json::Value {
    let pages = venues.len().div_ceil(per_page).max(1) as u32;
    let from = (n as usize - 1) * per_page;
    page_of(venues.len(), pages, &venues[from.min(venues.len())..(from + per_page).min(venues.len())])
}

proptest! {
    #[test]
    fn how_the_pages_are_cut_and_in_which_order_party_sizes_are_asked_means_nothing(
        times in prop::collection::vec(prop::collection::btree_set(11_u32..23, 0..3), 1..30),
        per_page in 1_usize..20,
    ) {
        let venues: Vec<_> = times.iter().enumerate().map(|(n, hours)| {
            let clocks: Vec<String> = hours.iter().map(|h| format!("{h}:00")).collect();
            venue(n as i64 + 1, &clocks.iter().map(String::as_str).collect::<Vec<_>>())
        }).collect();
        let observe = |sizes: serde_json::Value, per_page: usize| {
            let source = source_with(json!({ "party_sizes": sizes }));
            let target = bucket(&source);
            let exchanges = fetch(&source, &target, |_, n| Ok(sliced(&venues, per_page, n)));
            look(&source, &target, &exchanges).expect("seen")
        };
        let (one, other) = (observe(json!([2, 4]), per_page), observe(json!([4, 2]), 75));
        prop_assert_eq!(&one.coverage, &Coverage::Complete);
        prop_assert_eq!(&other.coverage, &Coverage::Complete);
        let identity = |seen: &stakeout_core::Observation| -> Vec<_> {
            seen.records.iter().map(|r| (r.fingerprint, r.content(), r.group, r.parent)).collect()
        };
        prop_assert_eq!(identity(&one), identity(&other));
        let slots: usize = times.iter().map(std::collections::BTreeSet::len).sum();
        prop_assert_eq!(of(&one, "slots").len(), slots, "duplicates across party sizes and pages are one slot");
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let source = source();
        let target = bucket(&source);
        let text = String::from_utf8_lossy(&body).into_owned();
        let request = fetch(&source, &target, |_, _| Ok(page(&[]))).remove(0).request;
        let _ = look(&source, &target, &[answered(request, &text, now())]);
    }

    #[test]
    fn damage_anywhere_is_a_failure_or_a_page_and_never_a_panic(cut in 0_usize..600, with in any::<u8>()) {
        let source = source();
        let target = bucket(&source);
        let mut body = page(&[venue(1, &["20:30", "21:00"]), venue(2, &[])]).to_string().into_bytes();
        let at = cut % body.len();
        body[at] = with;
        let request = fetch(&source, &target, |_, _| Ok(page(&[]))).remove(0).request;
        let text = String::from_utf8_lossy(&body).into_owned();
        let _ = look(&source, &target, &[answered(request, &text, now())]);
    }
}
