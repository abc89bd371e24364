//! Whatever the upstream does to an answer, nothing panics and the same bytes mean the same.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use stakeout_core::{Exchange, Facts, PollContext, Request, Response, Source, Span, TargetSpec};
use stakeout_sources::fpv::describe_dir;

use crate::support::*;

/// A place in a JSON document and what is put there.
fn damage() -> impl Strategy<Value = (Vec<prop::sample::Index>, Json)> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!("0001/01/01 0:00:00")),
        Just(json!("9999/12/31 23:59:59.999")),
        Just(json!("-10675199.02:48:05.4775808")),
        Just(json!(guid("d", 1_001))),
    ];
    (prop::collection::vec(any::<prop::sample::Index>(), 1..6), leaf)
}

/// Walks as deep as the path goes and replaces what is there.
fn apply(json: &mut Json, path: &[prop::sample::Index], leaf: &Json) {
    let Some((step, rest)) = path.split_first() else {
        *json = leaf.clone();
        return;
    };
    match json {
        Json::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(step.index(map.len())).expect("a key").clone();
            apply(map.get_mut(&key).expect("a value"), rest, leaf);
        }
        Json::Array(items) if !items.is_empty() => {
            let index = step.index(items.len());
            apply(&mut items[index], rest, leaf);
        }
        _ => *json = leaf.clone(),
    }
}

fn flown() -> World {
    let mut world = World::new(2);
    world.set(1, Some(0), Some(60));
    world.edit(1, |file| {
        for lap in 0..4 {
            fly(file, 1, lap, 0, 5 + lap as u32 * 10, 10.0);
            fly(file, 2, lap, 0, 6 + lap as u32 * 9, 9.0);
        }
    });
    let result = json!([{ "ID": guid("s", 1), "Race": race(101), "Pilot": pilot(1), "Position": 1, "Time": "00:00:34" }]);
    world.put(&format!("events/{}/Results.json", event(1)), &result);
    world
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let source = source_with(json!({}));
        let facts = Facts::default();
        for role in ["page", "current", "event", "pilots", "channels", "rounds", "results", "race"] {
            let response = Response { status: 200, body: body.clone().into(), content_type: None, age: Span::ZERO };
            let exchange = Exchange { request: Request::get("x"), result: Ok(response), sent: START, ended: START };
            let target = TargetSpec::new(role, role);
            let _ = source.normalize(&target, &[exchange], &PollContext { now: START, facts: &facts });
        }
    }

    #[test]
    fn no_damage_to_the_files_makes_it_panic(places in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..8)) {
        let mut world = flown();
        world.round();
        for (which, (path, leaf)) in &places {
            let names: Vec<String> = world.files.keys().filter(|name| name.ends_with(".json")).cloned().collect();
            let name = &names[which.index(names.len())];
            let mut file: Json = serde_json::from_str(&world.files[name]).expect("json");
            apply(&mut file, path, leaf);
            world.put(name, &file);
        }
        world.round();
        world.settle();
        world.round();
        let (focused, published) = (world.focused.clone(), world.published.clone());
        world.news();
        world.derived_writes = 0;
        world.derive();
        prop_assert_eq!((&world.focused, &world.published, world.derived_writes), (&focused, &published, 0));
        prop_assert_eq!(world.news(), Vec::<String>::new(), "looking twice tells nothing twice");
        let read = |path: &str| world.files.get(path).map(|body| body.clone().into_bytes());
        let _ = describe_dir(&[event(1)], None, read);
    }
}
