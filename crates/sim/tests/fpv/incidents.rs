//! Each incident shows, in what is served and in what is told to be true.

use std::collections::BTreeSet;

use stakeout_core::Span;
use stakeout_sim::fpv::{Incident, Played, Status, Truth, What};

use super::*;

/// The event with all incidents, and one of them.
fn with(incident: Incident) -> (Upstream, Played) {
    let event = Event::with_all_incidents(1);
    let played =
        event.incidents().iter().find(|played| played.incident == incident).expect("it happens").clone();
    (Upstream::new(event), played)
}

fn found<'a>(truth: &'a Truth<'_>, what: impl Fn(&What) -> bool + 'a) -> impl Iterator<Item = Time> + 'a {
    truth.changes().iter().filter(move |change| what(&change.what)).map(|change| change.at)
}

fn at(truth: Truth<'_>, what: What) -> Time {
    found(&truth, |other| *other == what).next().unwrap_or_else(|| panic!("{what:?} never happens"))
}

#[test]
fn all_of_them_happen_in_one_event_of_sixty_races() {
    for seed in 0..6 {
        let event = Event::with_all_incidents(seed);
        let happened: BTreeSet<Incident> = event.incidents().iter().map(|played| played.incident).collect();
        assert_eq!(happened, BTreeSet::from(Incident::ALL), "seed {seed}");
        let evening =
            event.incidents().iter().find(|p| p.incident == Incident::LastFinished).expect("it ends").from;
        let races = event.truth().races(evening + Span::secs(1));
        assert_eq!(races.len(), 60, "seed {seed}");
        let count = |status| races.iter().filter(|race| race.status == status).count();
        assert_eq!((count(Status::Ended), count(Status::Invalid)), (59, 1), "seed {seed}");
    }
    assert_eq!(Incident::ALL.map(Incident::number), std::array::from_fn(|n| n as u32 + 1));
}

#[test]
fn any_of_them_happens_alone_in_a_small_event() {
    let config = EventConfig { rounds: 5, brackets: 1, ..EventConfig::new(1).with_races(17) };
    for incident in Incident::ALL {
        let event = Event::with_incidents(&config, [incident]);
        let happened: BTreeSet<Incident> = event.incidents().iter().map(|played| played.incident).collect();
        assert_eq!(happened, BTreeSet::from([incident]));
        assert!(event.truth().changes().len() > 300);
    }
}

#[test]
fn incident_1_files_cannot_be_read_for_moments() {
    let (upstream, played) = with(Incident::Unreadable);
    let path = format!("/events/{}/{}/Race.json", upstream.event().id(played.from), played.races[0]);
    let answers: Vec<Bytes> = (1..=4)
        .map(|n| body(upstream.honest(&path, played.from + Span::secs(15 * n) + Span::ms(300))))
        .collect();
    assert!(answers[0].is_empty());
    assert_eq!(answers[1], "[]");
    assert!(answers[2].starts_with(b"<html>"));
    assert!(answers[3].len() > 200 && serde_json::from_slice::<Value>(&answers[3]).is_err());
    let hidden =
        upstream.event().truth().changes().iter().filter(|change| change.visible_at > change.at).count();
    assert!(hidden > 0, "nothing happened unseen");
}

#[test]
fn incident_2_races_are_listed_without_a_file() {
    let (upstream, played) = with(Incident::NoRaceFile);
    let truth = upstream.event().truth();
    let path = |race| format!("/events/{}/{race}/Race.json", upstream.event().id(played.from));
    let (ghost, late) = (played.races[0], played.races[1]);
    let listed = list(&upstream, "Event.json", played.from).expect("an event")[0]["Races"].to_string();
    assert!(listed.contains(&ghost.to_string()) && listed.contains(&late.to_string()));
    assert!(body(upstream.honest(&path(late), played.from)).is_empty());
    assert_eq!(race(&upstream, late, played.until)["ID"], late.to_string());
    assert_eq!(at(truth, What::Added(late)), played.until);
    assert!(body(upstream.honest(&path(ghost), upstream.event().ended())).is_empty());
}

#[test]
fn incident_3_a_deleted_race_is_listed_and_not_valid() {
    let (upstream, played) = with(Incident::DeletedRace);
    let (truth, deleted) = (upstream.event().truth(), played.races[0]);
    let gone = at(truth, What::Invalidated(deleted));
    assert_eq!(race(&upstream, deleted, Time(gone.us() - 1))["Valid"], true);
    assert_eq!(race(&upstream, deleted, gone)["Valid"], false);
    assert!(truth.order(Time(gone.us() - 1)).contains(&deleted) && !truth.order(gone).contains(&deleted));
    let listed = list(&upstream, "Event.json", gone).expect("an event")[0]["Races"].to_string();
    assert!(listed.contains(&deleted.to_string()));
}

#[test]
fn incident_4_rounds_of_the_same_order_interleave() {
    let (upstream, played) = with(Incident::SameOrder);
    let races = upstream.event().truth().races(played.from);
    let rounds: Vec<Guid> = played
        .races
        .iter()
        .map(|id| races.iter().find(|race| race.id == *id).expect("it is there").round)
        .collect();
    let turns = rounds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(turns > 3, "{turns} changes of round in {} races", rounds.len());
    let order = upstream.event().truth().order(played.from);
    let places: Vec<usize> =
        played.races.iter().map(|id| order.iter().position(|other| other == id).expect("in order")).collect();
    assert!(places.windows(2).all(|pair| pair[1] == pair[0] + 1), "{places:?}");
}

#[test]
fn incident_5_two_races_are_flown_in_the_wrong_order() {
    let (upstream, played) = with(Incident::OutOfOrder);
    let truth = upstream.event().truth();
    let (early, late) =
        (at(truth, What::Started(played.races[0])), at(truth, What::Started(played.races[1])));
    assert!(early < late);
    let place = |race| truth.order(late).iter().position(|other| *other == race).expect("in order");
    assert!(place(played.races[0]) == place(played.races[1]) + 1);
    let current = truth.current(late).expect("a current race");
    assert_eq!((current.race, current.rule), (played.races[1], 1));
}

#[test]
fn incident_6_a_crash_leaves_several_active() {
    let (upstream, played) = with(Incident::SeveralActive);
    let (truth, lost, next) = (upstream.event().truth(), played.races[0], played.races[1]);
    let started = at(truth, What::Started(next));
    let active: BTreeSet<Guid> = truth
        .races(started)
        .iter()
        .filter(|race| race.status == Status::Active)
        .map(|race| race.id)
        .collect();
    assert_eq!(active, BTreeSet::from([lost, next]));
    assert_eq!(truth.current(started).map(|current| current.race), Some(next), "the one that started last");
    let ended = at(truth, What::Ended(next));
    assert_eq!(truth.current(ended).map(|current| (current.race, current.rule)), Some((lost, 1)));
    assert_eq!(truth.current(played.until).map(|current| current.rule), Some(2));
    assert!(truth.is_off(played.from + Span::secs(60)));
}

#[test]
fn incident_7_resets_take_start_end_and_laps() {
    let (upstream, played) = with(Incident::Reset);
    let truth = upstream.event().truth();
    for (n, id) in played.races.iter().enumerate() {
        let reset = at(truth, What::Reset(*id));
        let (before, after) = (race(&upstream, *id, Time(reset.us() - 1)), race(&upstream, *id, reset));
        assert!(before["Laps"].as_array().is_some_and(|laps| laps.len() > 3));
        assert_eq!((after["Laps"].to_string(), after["Detections"].to_string()), ("[]".into(), "[]".into()));
        assert_eq!(
            (&after["Start"], &after["End"]),
            (&"0001/01/01 0:00:00".into(), &"0001/01/01 0:00:00".into())
        );
        assert_eq!(before["End"] == "0001/01/01 0:00:00", n == 0, "the first in flight, the second ended");
        assert_eq!(found(&truth, |what| *what == What::Started(*id)).count(), 2, "flown again");
        assert_eq!(truth.current(reset).map(|current| (current.race, current.rule)), Some((*id, 2)));
    }
    let path = format!("/events/{}/{}/Result.json", upstream.event().id(played.until), played.races[1]);
    assert!(body(upstream.honest(&path, played.until + Span::secs(1))).is_empty());
}

#[test]
fn incident_8_an_ended_race_goes_on() {
    let (upstream, played) = with(Incident::Resume);
    let (truth, id) = (upstream.event().truth(), played.races[0]);
    let ends: Vec<Time> = found(&truth, |what| *what == What::Ended(id)).collect();
    let resumed = at(truth, What::Resumed(id));
    assert!(ends.len() == 2 && ends[0] < resumed && resumed < ends[1]);
    assert_eq!(truth.current(resumed).map(|current| (current.race, current.rule)), Some((id, 1)));
    let laps = |now| race(&upstream, id, now)["Laps"].as_array().map_or(0, Vec::len);
    assert!(laps(ends[1]) > laps(ends[0]));
    assert_eq!(race(&upstream, id, resumed)["TotalPausedTime"], "00:00:12");
}

#[test]
fn incident_9_another_event_is_opened() {
    let (upstream, played) = with(Incident::EventSwitch);
    let (before, after) =
        (upstream.event().id(played.from - Span::mins(1)), upstream.event().id(played.from));
    assert_ne!(before, after);
    let page = body(upstream.honest("/", played.from));
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains(&format!("new EventManager(\"events/{after}\", ")), "{page}");
    assert_eq!(at(upstream.event().truth(), What::Switched), played.from);
    assert_eq!(upstream.event().truth().order(played.from), played.races);
    let old = body(upstream.honest(&format!("/events/{before}/Event.json"), played.from));
    assert!(!old.is_empty(), "the old event's files stay");
}

#[test]
fn incident_10_a_result_is_set_without_a_flight() {
    let (upstream, played) = with(Incident::ResultSet);
    let id = played.races[0];
    let decided = at(upstream.event().truth(), What::Decided(id));
    let served = race(&upstream, id, decided);
    assert_eq!(served["Start"], served["End"]);
    assert_eq!(served["Laps"].to_string(), "[]");
    assert!(list(&upstream, &format!("{id}/Result.json"), decided + Span::secs(1)).is_some());
}

#[test]
fn incident_11_after_the_last_race_nothing_is_left() {
    let (upstream, played) = with(Incident::LastFinished);
    let current = upstream.event().truth().current(played.from + Span::secs(1)).expect("a current race");
    assert_eq!((current.race, current.order, current.rule), (played.races[0], 59, 3));
}

#[test]
fn incident_12_two_cross_at_the_same_moment() {
    let (upstream, played) = with(Incident::SameMillisecond);
    let served = race(&upstream, played.races[0], played.until);
    let times: Vec<&str> = served["Detections"]
        .as_array()
        .expect("detections")
        .iter()
        .map(|detection| detection["Time"].as_str().expect("a date"))
        .collect();
    assert!(times.iter().collect::<BTreeSet<_>>().len() < times.len());
}

#[test]
fn incident_13_races_come_before_their_round_and_channels() {
    let (upstream, played) = with(Incident::BeforeItsRound);
    let truth = upstream.event().truth();
    let of_round = |now| truth.races(now).into_iter().filter(|race| played.races.contains(&race.id));
    assert!(of_round(played.from).all(|race| race.order.is_none() && race.status == Status::Unflown));
    assert!(of_round(played.until).all(|race| race.order.is_some()));
    assert!(played.races.len() > 2);
    assert!(body(upstream.honest("/httpfiles/Channels.json", played.from)).starts_with(b"<html>"));
    let channels = body(upstream.honest("/httpfiles/Channels.json", played.until + Span::secs(6)));
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&channels).map(|list| list.len()).ok(), Some(32));
}

#[test]
fn incident_14_a_round_is_inserted_and_numbers_move() {
    let (upstream, played) = with(Incident::InsertedRound);
    let rounds = |now| list(&upstream, "Rounds.json", now).expect("rounds");
    let (before, after) = (rounds(played.from), rounds(played.until));
    assert_eq!(after.len(), before.len() + 1);
    let orders = |rounds: &[Value]| rounds.iter().map(|round| round["Order"].as_i64()).collect::<Vec<_>>();
    assert!(orders(&after).iter().any(|order| order.is_some_and(|order| order % 100 == 50)));
    assert!(orders(&rounds(played.until - Span::secs(6))).contains(&Some(-1)), "not set at first");
    let number = |rounds: &[Value], id: &Value| {
        rounds.iter().find(|round| round["ID"] == *id).and_then(|round| round["RoundNumber"].as_u64())
    };
    assert!(before.iter().any(|round| number(&after, &round["ID"]) != number(&before, &round["ID"])));
    let (a, b) = (played.races[2], played.races[3]);
    let numbers = |now| [a, b].map(|id| race(&upstream, id, now)["RaceNumber"].as_u64());
    let [was_a, was_b] = numbers(played.from);
    assert_eq!(numbers(played.until), [was_b, was_a]);
    let truth = upstream.event().truth();
    assert_eq!(truth.order(played.until).len(), truth.order(played.from).len() + 2);
}

#[test]
fn incident_15_hours_are_not_padded() {
    let (upstream, played) = with(Incident::UnpaddedHours);
    let starts: Vec<String> = upstream
        .event()
        .truth()
        .races(played.until)
        .iter()
        .map(|r| race(&upstream, r.id, played.until)["Start"].as_str().expect("a date").to_owned())
        .filter(|start| !start.starts_with("0001"))
        .collect();
    let day = "2026/03/14 ";
    assert!(starts.iter().all(|start| start.starts_with(day)), "{starts:?}");
    assert!(starts.iter().any(|start| start.starts_with("2026/03/14 9:")));
    assert!(starts.iter().any(|start| start.starts_with("2026/03/14 10:")));
    assert!(starts.contains(&"2026/03/14 8:40:00".to_owned()), "on a whole second");
}

#[test]
fn incident_16_ids_of_nobody() {
    let (upstream, played) = with(Incident::ZeroGuids);
    let none = Guid::NONE.to_string();
    let served = race(&upstream, played.races[0], played.from + Span::mins(1));
    let has = |list: &str, key: &str| {
        served[list].as_array().expect("a list").iter().any(|item| item[key].as_str() == Some(none.as_str()))
    };
    assert!(has("PilotChannels", "Pilot") && has("PilotChannels", "Channel") && has("Detections", "Pilot"));
    let races = upstream.event().truth().races(played.from);
    assert_eq!(races.iter().find(|race| race.id == played.races[0]).map(|race| race.pilots.len()), Some(3));
    assert_eq!(
        races.iter().filter(|race| race.pilots.is_empty()).count(),
        10,
        "brackets, before they are filled"
    );
}

#[test]
fn incident_17_results_are_saved_again_with_new_ids() {
    let (upstream, played) = with(Incident::ResavedResults);
    let id = played.races[0];
    let saves: Vec<Time> = found(&upstream.event().truth(), |what| *what == What::Results(id)).collect();
    assert_eq!(saves.len(), 3);
    let results = |now| list(&upstream, &format!("{id}/Result.json"), now).expect("results");
    let strip = |mut rows: Vec<Value>| {
        rows.iter_mut().for_each(|row| row["ID"] = Value::Null);
        rows
    };
    let (first, last) = (results(saves[0]), results(saves[2]));
    assert_ne!(first[0]["ID"], last[0]["ID"]);
    assert_eq!(strip(first), strip(last.clone()));
    let all = list(&upstream, "Results.json", saves[2]).expect("results");
    let own: Vec<Value> = all.into_iter().filter(|row| row["Race"] == id.to_string()).collect();
    assert_eq!(own, last);
}

#[test]
fn incident_18_the_upstream_is_off_for_hours() {
    let (upstream, played) = with(Incident::UpstreamOff);
    let truth = upstream.event().truth();
    assert_eq!(upstream.answer("/", played.until - Span::secs(1)), Reply::Refused);
    assert_eq!(upstream.requests(), 0);
    assert!(body(upstream.answer("/", played.until)).starts_with(b"<html>"));
    let (lost, back) = (found(&truth, |what| *what == What::Lost), found(&truth, |what| *what == What::Back));
    assert!(lost.zip(back).any(|(lost, back)| back - lost == Span::hours(2)));
}
