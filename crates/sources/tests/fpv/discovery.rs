//! What there is to watch, and what is no answer at all.

use serde_json::json;
use stakeout_core::compare::Verdict;
use stakeout_core::{Coverage, FailureClass, Source, Value};

use crate::support::*;

#[test]
fn the_page_names_the_event_and_the_event_its_races() {
    let mut world = World::new(3);
    world.round();
    let mut expected: Vec<String> = ["event", "pilots", "results", "rounds"]
        .iter()
        .map(|role| format!("{role}/{}", event(1)))
        .chain((1..=3).map(race_target))
        .chain(["channels", "current", "page"].map(str::to_owned))
        .collect();
    expected.sort();
    assert_eq!(world.keys(), expected);
    assert_eq!(world.body("fpv_events", &event(1))["is_current"], json!(true));
    assert_eq!(world.body("fpv_events", &event(1))["name"], json!("Event 1"));
    assert_eq!(world.spec(&race_target(1)).priority, 10);
    assert_eq!(world.spec("page").priority, 20);
    let channel_2 = world.body("fpv_channels", &channel(2));
    assert_eq!(
        ["name", "display_name", "colour", "frequency"].map(|field| channel_2[field].clone()),
        [json!("R2"), json!("Blue"), json!("#0000FF"), json!(5695)]
    );
    let joe = world.body("fpv_pilots", &format!("{}|{}", event(1), pilot(2)));
    assert_eq!(
        (&joe["name"], &joe["channel"], &joe["removed"]),
        (&json!("Joe"), &json!(channel(2)), &json!(false))
    );
    assert!(
        world.told.iter().all(|(told, _)| told == "fpv.race.current_changed"),
        "a first sight is no news"
    );
}

#[test]
fn a_second_look_finds_nothing_new() {
    let mut world = World::new(6);
    world.round();
    world.news();
    world.derived_writes = 0;
    for key in world.keys().into_iter().map(str::to_owned).collect::<Vec<_>>() {
        // There are no results yet: that file does not exist.
        let expected = if key.starts_with("results") { None } else { Some(Verdict::Unchanged) };
        assert_eq!(world.poll(&key).ok(), expected, "{key}");
    }
    world.derive();
    assert_eq!((world.derived_writes, world.news()), (0, vec![]));
}

/// Edge case 1.
#[test]
fn nothing_an_empty_list_a_page_and_half_a_file_are_failed_polls_and_the_last_good_data_stays() {
    let mut world = World::new(2);
    world.put(
        &format!("events/{}/Results.json", event(1)),
        &json!([{ "ID": guid("s", 1), "Race": race(101), "Pilot": pilot(1), "Position": 1 }]),
    );
    world.round();
    let held = world.held();
    let files = world.files.clone();
    for bad in ["", "  \n", "[]", "<html>new EventManager(</html>", "{}", "null", "7", "[{\"ID\":\"3a96"] {
        for (path, body) in &mut world.files {
            // The page is HTML by nature.
            *body = if path.is_empty() { "<html></html>".to_owned() } else { bad.to_owned() };
        }
        for key in world.keys().into_iter().map(str::to_owned).collect::<Vec<_>>() {
            if key == "current" {
                continue;
            }
            let failure = world.poll(&key).expect_err(&key);
            assert_eq!(failure.class, FailureClass::Malformed, "{key}: {bad:?}");
        }
        world.derive();
        assert_eq!(world.held(), held, "{bad:?}");
    }
    world.files = files;
    world.news();
    world.round();
    assert_eq!(world.held(), held);
    assert_eq!(world.news(), Vec::<String>::new());
}

/// Edge case 2.
#[test]
fn a_race_directory_without_its_file_holds_up_nobody() {
    let mut world = World::new(4);
    world.files.remove(&race_path(2));
    world.round();
    assert_eq!(world.published, None, "it may still come");
    world.settle();
    world.round();
    assert_eq!(world.current(), (Some(1), Some(1)));
    assert_eq!([1, 3, 4].map(|n| world.order(n)), [json!(1), json!(2), json!(3)]);
    assert!(world.keys().contains(&race_target(2).as_str()), "it is asked again");
}

/// Edge case 9.
#[test]
fn an_event_switch_retires_the_old_targets_and_flips_the_flag_once() {
    let mut world = World::new(3);
    world.round();
    world.news();
    world.open(2, 2);
    world.now += stakeout_core::Span::secs(10);
    assert_eq!(world.poll("page").expect("an answer"), Verdict::Changed);
    assert_eq!(world.news(), ["fpv.event.switched"]);
    assert!(
        !world.keys().iter().any(|key| key.contains(&event(1)) || key.starts_with("race/")),
        "{:?}",
        world.keys()
    );
    assert_eq!(world.body("fpv_events", &event(1))["is_current"], json!(false));
    assert_eq!(
        world.body("fpv_events", &event(1))["name"],
        json!("Event 1"),
        "what it was called is still known"
    );
    assert_eq!(world.body("fpv_events", &event(2))["is_current"], json!(true));
    assert_eq!(world.count("fpv_races"), 0);
    world.round();
    assert_eq!(world.published.as_ref().expect("a value")["raceId"], json!(race(201)));
    assert_eq!(world.news(), ["fpv.race.current_changed"]);
    world.round();
    assert_eq!(world.news(), Vec::<String>::new());
    let current =
        world.held().iter().filter(|held| held.body.get("is_current") == Some(&json!(true))).count();
    assert_eq!(current, 1);
}

#[test]
fn races_come_and_go_with_the_listing() {
    let mut world = World::new(3);
    world.round();
    world.edit_file("Event.json", |file| {
        file[0]["Races"].as_array_mut().expect("a list").remove(2);
    });
    world.round();
    assert!(!world.keys().contains(&race_target(3).as_str()));
    assert_eq!(world.count("fpv_races"), 2);
    world.edit_file("Event.json", |file| file[0]["Races"][0] = json!("not an id"));
    let seen = world.observe(&format!("event/{}", event(1))).expect("an answer");
    assert_ne!(seen.coverage, Coverage::Complete, "an id that cannot be read retires nothing");
    world.round();
    assert_eq!(world.count("fpv_races"), 2);
}

#[test]
fn pilots_who_were_taken_out_are_marked() {
    let mut world = World::new(1);
    world.round();
    world.edit_file("Event.json", |file| {
        file[0]["RemovedPilots"] = json!([pilot(2)]);
        file[0]["PilotChannels"] = json!([{ "Pilot": pilot(1), "Channel": channel(1) }]);
    });
    world.round();
    let key = format!("{}|{}", event(1), pilot(2));
    assert_eq!(world.body("fpv_pilots", &key)["removed"], json!(true));
    assert_eq!(world.body("fpv_pilots", &key)["name"], json!("Joe"));
}

#[test]
fn the_upstreams_own_word_is_a_hint_where_there_is_one() {
    let mut world = World::new(2);
    world.round();
    let spec = world.spec("current").clone();
    assert_eq!(
        world.facts("current").notes["supported"],
        Value::Bool(false),
        "an old version answers with the page"
    );
    let every = |world: &World| format!("{:?}", world.source.plan(&spec, world.facts("current")));
    assert!(every(&world).contains("1 min"), "{}", every(&world));

    let before = world.facts("current").clone();
    world.put("current", &json!({ "CurrentRace": race(102).to_uppercase() }));
    world.poll("current").expect("an answer");
    assert!(every(&world).contains("1 s"), "{}", every(&world));
    assert_eq!(world.source.due_now(&spec, &before, world.facts("current")), Some(race_target(2)));
    assert_eq!(world.source.due_now(&spec, world.facts("current"), world.facts("current")), None);
    world.derive();
    assert_eq!(world.current(), (Some(1), Some(1)), "the rules decide");

    world.put("current", &json!({ "CurrentRace": null }));
    world.poll("current").expect("an answer");
    assert_eq!(world.source.due_now(&spec, &before, world.facts("current")), None);
    for torn in ["", "{\"CurrentRace\":", "{\"CurrentRace\":null}}"] {
        world.files.insert("current".into(), torn.into());
        assert!(world.poll("current").is_err(), "{torn:?}");
    }
}

#[test]
fn the_page_is_read_however_it_is_quoted() {
    let mut world = World::new(1);
    for page in [
        "new EventManager('events/ID')",
        "new EventManager( \"events/ID/\" , null)",
        "class EventManager(x) new EventManager(path) new EventManager(\"events/ID\")",
    ] {
        let page = page.replace("ID", &event(7).to_uppercase());
        world.files.insert(String::new(), page.clone());
        let seen = world.observe("page").unwrap_or_else(|error| panic!("{page}: {error}"));
        assert_eq!(seen.facts.notes["event"], Value::text(event(7)), "{page}");
    }
    for page in [
        "",
        "<html></html>",
        "new EventManager(\"events/../../x\")",
        "new EventManager(\"events/00000000-0000-0000-0000-000000000000\")",
    ] {
        world.files.insert(String::new(), page.into());
        assert!(world.observe("page").is_err(), "{page}");
    }
}
