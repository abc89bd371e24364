//! The shapes of the real one.

use super::*;

#[test]
fn a_full_hit_has_the_real_ones_fields_and_size() {
    let upstream = upstream(MarketConfig::city(1));
    let bucket = evening(date(5, upstream.market()));
    let answer = ask(&upstream, &body(bucket, 2, 1), upstream.market().config().start);
    assert!((120_000..260_000).contains(&answer.body.len()), "{} bytes", answer.body.len());
    let page = parse(&answer);
    for field in ["engine", "total", "page", "per_page", "total_pages"] {
        assert!(!page["meta"][field].is_null(), "{field}");
    }
    let hit = &page["search"]["hits"][0];
    for field in [
        "id",
        "name",
        "neighborhood",
        "price_range_id",
        "rating",
        "url_slug",
        "images",
        "availability",
        "contact",
        "cuisine",
        "waitlist",
        "_geoloc",
        "location",
        "travel_time",
        "max_party_size",
        "is_tock_inventory",
    ] {
        assert!(hit.get(field).is_some(), "{field}");
    }
    for field in [
        "status",
        "notifies",
        "events",
        "templates",
        "notify_options",
        "slots",
        "service_types",
        "gating_errors",
    ] {
        assert!(hit["availability"].get(field).is_some(), "{field}");
    }
    for field in ["shift", "config", "template", "date", "exclusive", "display_config", "has_add_ons"] {
        assert!(hit["availability"]["slots"][0].get(field).is_some(), "{field}");
    }
}

#[test]
fn quirks_are_there() {
    let upstream = upstream(MarketConfig::city(2));
    let (now, bucket) = (upstream.market().config().start, evening(date(5, upstream.market())));
    let mut seen = BTreeMap::<&str, usize>::new();
    let mut note = |what: &'static str, is: bool| *seen.entry(what).or_default() += usize::from(is);
    let last =
        parse(&ask(&upstream, &body(bucket, 2, 1), now))["meta"]["total_pages"].as_u64().expect("pages");
    for page in [1, 2, 3, last as u32 - 1, last as u32] {
        for hit in
            parse(&ask(&upstream, &body(bucket, 2, page), now))["search"]["hits"].as_array().expect("hits")
        {
            note("number", hit["id"].is_u64());
            note("object", hit["id"]["resy"].is_u64());
            note("nowhere", hit["neighborhood"] == "");
            note("null availability", hit["availability"].is_null());
            note("no slots", hit["availability"]["slots"] == json!([]));
            let slots = hit["availability"]["slots"].as_array().cloned().unwrap_or_default();
            note("several rooms", starts(hit).windows(2).any(|pair| pair[0] == pair[1]));
            note("foreign", slots.iter().any(|slot| slot["config"]["token"].is_null()));
            let end = |slot: &Value| {
                slot["date"]["end"].as_str().expect("text").parse::<DateTime>().expect("a time")
            };
            note("ends tomorrow", slots.iter().any(|slot| end(slot).date() > bucket.day));
        }
    }
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn lean_bodies_are_small_and_say_the_same() {
    let (full, lean) = (
        upstream(MarketConfig { body: stakeout_sim::resy::Body::Full, ..MarketConfig::new(3) }),
        upstream(MarketConfig::new(3)),
    );
    let (now, bucket) = (full.market().config().start, evening(date(2, full.market())));
    let size = |upstream: &Upstream| ask(upstream, &body(bucket, 2, 1), now).body.len();
    assert!(size(&lean) * 2 < size(&full), "{} and {}", size(&lean), size(&full));
    assert_eq!(poll(&lean, bucket, 4, now, Span::ZERO), poll(&full, bucket, 4, now, Span::ZERO));
}
