//! Paging: sizes, completeness, and pages that move while they are read.

use super::*;

#[test]
fn a_city_has_the_real_ones_size() {
    let upstream = upstream(MarketConfig::city(1));
    let (now, bucket) =
        (upstream.market().config().start + Span::hours(10), evening(date(5, upstream.market())));
    let first = parse(&ask(&upstream, &body(bucket, 2, 1), now));
    assert_eq!(first["search"]["hits"].as_array().map(Vec::len), Some(75));
    assert!((30..=37).contains(&first["meta"]["total_pages"].as_u64().expect("pages")), "{}", first["meta"]);
    assert_eq!(first["search"]["nbPages"], first["meta"]["total_pages"]);
    assert_eq!(first["search"]["nbHits"], first["meta"]["total"]);
    let found = poll(&upstream, bucket, 2, now, Span::ZERO);
    assert!((4_000..5_500).contains(&found.slots.len()), "{} slots", found.slots.len());
    assert_eq!(found.totals, [found.hits as u64].into());
}

#[test]
fn bookable_venues_come_first_and_pages_end() {
    let upstream = upstream(MarketConfig::new(2));
    let (now, bucket) = (upstream.market().config().start, evening(date(6, upstream.market())));
    let pages: Vec<Value> = (1..=3).map(|n| parse(&ask(&upstream, &body(bucket, 2, n), now))).collect();
    let hits: Vec<&Value> =
        pages.iter().flat_map(|page| page["search"]["hits"].as_array().expect("hits")).collect();
    let bookable: Vec<bool> = hits.iter().map(|hit| !starts(hit).is_empty()).collect();
    assert!(bookable.is_sorted_by(|a, b| a >= b), "first those with tables");
    assert!(bookable[0] && !bookable[bookable.len() - 1]);
    assert_eq!(pages[2]["search"]["hits"], json!([]), "no third page");
    let distinct: BTreeSet<Option<u64>> = hits.iter().map(|hit| id(hit)).collect();
    assert_eq!(distinct.len(), hits.len());
}

#[test]
fn pages_shift_while_they_are_read_and_it_can_be_noticed() {
    let upstream = upstream(MarketConfig { churn: 10.0, cancellations: 5_000.0, ..MarketConfig::new(3) });
    let (start, truth) = (upstream.market().config().start, upstream.market().truth());
    let mut torn = 0;
    for n in 0..200 {
        let (now, bucket) = (start + Span::mins(13 * n), evening(date(3, upstream.market())));
        let found = poll(&upstream, bucket, 2, now, Span::mins(2));
        let before = keys(truth.shown(bucket, &[2], now));
        let after = keys(truth.shown(bucket, &[2], now + Span::mins(2)));
        let unique =
            found.slots.iter().map(|slot| slot.venue).collect::<BTreeSet<_>>().len() + found.unbookable.len();
        let consistent = found.totals == [unique as u64].into() && found.hits == unique;
        torn += usize::from(!consistent);
        assert!(
            found.slots.iter().all(|slot| before.contains(slot) || after.contains(slot)),
            "nothing is invented"
        );
    }
    assert!((5..200).contains(&torn), "{torn} of 200 polls were torn");
}

#[test]
fn the_area_the_name_and_the_page_size_are_obeyed() {
    let upstream = upstream(MarketConfig::new(4));
    let (now, bucket) = (upstream.market().config().start, evening(date(1, upstream.market())));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut asked: Value = serde_json::from_slice(&body(bucket, 2, 1)).expect("JSON");
        change(&mut asked);
        parse(&ask(&upstream, asked.to_string().as_bytes(), now))
    };
    let total = |page: &Value| page["meta"]["total"].as_u64().expect("a total");
    let all = total(&with(&|_| {}));
    let west = total(&with(&|asked| asked["geo"] = json!({"bounding_box": [40.0, -75.0, 41.0, -74.0]})));
    let east = total(&with(&|asked| asked["geo"] = json!({"bounding_box": [40.0, -74.0, 41.0, -73.0]})));
    assert!(west > 20 && east > 20 && west + east == all, "{west} + {east} = {all}");
    let near = |metres| json!({"latitude": 40.73, "longitude": -74.0, "radius": metres});
    let circle = total(&with(&|asked| asked["geo"] = near(2_000)));
    assert!(circle > 10 && circle < all && total(&with(&|asked| asked["geo"] = near(16_100))) == all);
    let named = with(&|asked| asked["query"] = json!("kitchen"));
    let names = named["search"]["hits"].as_array().expect("hits").iter().map(|hit| hit["name"].to_string());
    assert!(total(&named) > 0 && names.into_iter().all(|name| name.contains("Kitchen")));
    assert_eq!(with(&|asked| asked["per_page"] = json!(200))["meta"]["per_page"], 75, "at most 75");
    assert_eq!(
        with(&|asked| asked["per_page"] = json!(20))["search"]["hits"].as_array().map(Vec::len),
        Some(20)
    );
}
