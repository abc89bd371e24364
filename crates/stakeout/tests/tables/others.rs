//! What one bucket knows counts for the others, as long as it is fresh; and what one page knows, when others fail.

use serde_json::json;
use stakeout_core::{FailureClass, Span, Time};

use crate::support::*;

const LATE: &str = "2026-02-26_20:30";

#[test]
fn what_only_a_stale_bucket_holds_is_a_drop() {
    // Two buckets every ten minutes; the early one sees all three venues, and fails from minute 30 on.
    let config = every_minute(json!({
        "time_slots": ["18:00", "20:30"], "min_interval": "10min", "max_interval": "10min",
    }));
    let scene = |m: i64, question: &Question| match question.time.as_str() {
        "18:00" if m >= 30 => Err(failure(FailureClass::ServerError)),
        "18:00" => Ok(page(&[
            venue(1, &["17:30"]),
            venue(2, &["19:15"]),
            venue(3, &["17:30"]),
            venue(4, &["17:30"]),
        ])),
        _ => {
            let opens = |from: i64, clock: &'static str| if m >= from { vec![clock] } else { vec![] };
            let late = [opens(300, "21:00"), opens(300, "19:15"), opens(200, "21:00"), vec!["21:30"]];
            Ok(page(&[1, 2, 3, 4].map(|id| venue(id, &late[id as usize - 1]))))
        }
    };
    // From six in the morning, so that nothing is over by itself.
    let mut world = World::at("2026-02-26T11:00:00Z");
    let watched = world.watch(&config, Span::mins(330), scene);
    let told: Vec<String> = watched
        .drops()
        .iter()
        .map(|drop| drop[drop.find(' ').expect("two words")..].trim().to_owned())
        .collect();
    let mut sorted = told.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        ["1@21:00", "2@19:15"],
        "and not the one that opened while the other bucket was fresh"
    );
    assert!(watched.events.iter().all(|event| event.target == LATE));
}

#[test]
fn what_another_bucket_suppresses_does_not_heat_this_one() {
    const CLOCKS: [&str; 8] = ["19:30", "19:45", "20:00", "20:15", "20:45", "21:00", "21:15", "21:30"];
    // The venue is open through the early bucket all the time, and comes and goes in the late one.
    let rate = |early_holds: bool| {
        let config = every_minute(json!({ "time_slots": ["18:00", "20:30"] }));
        let watched = World::new().watch(&config, Span::mins(34), move |m, question| {
            let clock = &CLOCKS[(m as usize / 4) % 8];
            let times: &[&str] = match question.time.as_str() {
                "18:00" if early_holds => &["17:30"],
                "20:30" if m % 4 >= 2 => std::slice::from_ref(clock),
                _ => &[],
            };
            Ok(page(&[venue(1, times), venue(2, &["19:00"])]))
        });
        let told = watched.drops().len();
        let state = &watched.targets[LATE].state;
        (told, state.rate.expect("an adaptive target").rate() * 3_600.0)
    };
    let (told, cold) = rate(true);
    let (all, hot) = rate(false);
    assert_eq!((told, all), (0, 8));
    assert!(cold < 1.0 && hot > 5.0, "drops an hour: {cold} and {hot}");
}

#[test]
fn a_poll_of_which_a_page_failed_backs_off_and_keeps_what_it_saw() {
    let mut world = World::new();
    let config = every_minute(json!({ "party_sizes": [2, 4] }));
    let watched = world.watch(&config, Span::mins(40), |m, question| match question.size {
        4 if m >= 3 => Err(failure(FailureClass::ServerError)),
        _ => Ok(page(&[venue(1, if m < 20 { &[] } else { &["20:30"] }), venue(2, &["19:00"])])),
    });
    assert_eq!(watched.drops().len(), 1, "what the good page shows is told");
    let polls = watched.log.iter().filter(|(_, question)| question.size == 2).count();
    assert!((10..=24).contains(&polls), "six at the usual pace, then every two to four minutes: {polls}");
}

#[test]
fn the_quiet_time_begins_when_the_slots_own_page_was_read() {
    let mut world = World::new();
    // Six requests a minute: the second page comes ten seconds after the first.
    let config = every_minute(json!({ "party_sizes": [2, 4], "budget": "6/min" }));
    let watched = world.watch(&config, Span::mins(8), |m, _| {
        Ok(page(&[venue(1, if m < 4 { &[] } else { &["20:30"] }), venue(2, &["19:00"])]))
    });
    let [event] = watched.events.as_slice() else { panic!("{:?}", watched.events) };
    let opened = event.data["opened_at"].as_str().and_then(Time::parse).expect("a time");
    assert_eq!(event.at, opened);
    let notices = world.column("SELECT at_us FROM notices");
    assert_eq!(notices, [opened.us().to_string()]);
    let ended = world.column("SELECT max(ended_us) FROM polls WHERE events > 0");
    assert!(ended[0] > notices[0], "the poll took longer: {ended:?}");
}

#[test]
fn a_page_that_lost_every_table_at_once_closes_nothing_until_the_next_answer_agrees() {
    // Every venue in its place, but for four people not one table, in one answer or for good.
    let watch = |from: i64, to: i64| {
        let mut world = World::new();
        let config = every_minute(json!({ "party_sizes": [2, 4] }));
        let watched = world.watch(&config, Span::mins(12), move |m, question| {
            let lost = question.size == 4 && (from..to).contains(&m);
            let four =
                (11..=16).map(|id| venue(id, if question.size == 4 && !lost { &["19:00"] } else { &[] }));
            let both = (1..=10).map(|id| venue(id, if lost { &[] } else { &["20:30"] }));
            Ok(page(&both.chain(four).collect::<Vec<_>>()))
        });
        let open = world.column("SELECT count(*) FROM slot_availability WHERE state = 'open'");
        (watched.drops().len(), open[0].clone())
    };
    assert_eq!(watch(3, 4), (0, "16".to_owned()), "what was there all the time is not told");
    assert_eq!(watch(3, 99), (0, "10".to_owned()), "a second answer is believed");
}
