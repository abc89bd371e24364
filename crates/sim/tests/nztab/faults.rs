//! Faults: repeatable, switchable, and each as announced.

use stakeout_core::Span;
use stakeout_sim::nztab::{Fault, Faults, Reply};

use super::*;

fn replies(faults: Faults, count: u64) -> Vec<Reply> {
    let upstream = upstream(&config(1));
    upstream.set_faults(faults);
    let race = upstream.days()[0].truth()[0].clone();
    let path = event_path(&race.id);
    (0..count)
        .map(|n| upstream.answer(&path, &identified(), race.starts[0].1 + Span::secs(n as i64)))
        .collect()
}

fn only(fault: Fault, count: u64) -> Vec<Reply> {
    replies(Faults::none(3).with(fault, 1.0), count)
}

fn answers(fault: Fault) -> Vec<Answer> {
    let whole = |reply| match reply {
        Reply::Answer(answer) => answer,
        other => panic!("{fault:?} gave {other:?}"),
    };
    only(fault, 60).into_iter().map(whole).collect()
}

#[test]
fn a_run_with_faults_can_be_repeated() {
    let faults = Faults::each(11, 0.05);
    assert_eq!(replies(faults.clone(), 200), replies(faults, 200));
    assert_ne!(replies(Faults::each(11, 0.05), 200), replies(Faults::each(12, 0.05), 200));
}

#[test]
fn transport_faults_carry_no_whole_answer() {
    assert!(only(Fault::Reset, 3).iter().all(|reply| *reply == Reply::Reset));
    assert!(only(Fault::Timeout, 3).iter().all(|reply| *reply == Reply::Timeout));
    for reply in only(Fault::Truncated, 20) {
        let Reply::Truncated { answer, sent } = reply else { panic!("expected a torn body, got {reply:?}") };
        assert!(sent > 0 && sent < answer.body.len());
        assert!(serde_json::from_slice::<Value>(&answer.body[..sent]).is_err());
    }
}

#[test]
fn refusals_have_their_status_and_sometimes_say_when_to_return() {
    assert!(answers(Fault::ServerError).iter().all(|answer| answer.status == 500));
    assert!(answers(Fault::Unavailable).iter().all(|answer| answer.status == 503));
    let too_many = answers(Fault::TooMany);
    assert!(too_many.iter().all(|answer| answer.status == 429));
    let hints: Vec<Option<&str>> = too_many
        .iter()
        .map(|a| a.headers.iter().find(|(name, _)| name == "Retry-After").map(|(_, value)| value.as_str()))
        .collect();
    assert!(hints.contains(&None));
    assert!(hints.iter().flatten().any(|hint| hint.parse::<u32>().is_ok()));
    assert!(hints.iter().flatten().any(|hint| hint.ends_with(" GMT")));
}

#[test]
fn wrong_contents_are_valid_json_and_wrong() {
    let known = ["Open", "Closed", "Interim", "Final", "Abandoned"];
    for answer in answers(Fault::UnknownStatus) {
        let status = json(&answer)["data"]["race"]["status"].as_str().expect("a text").to_owned();
        assert!(!known.contains(&status.as_str()) && !status.is_empty());
    }
    let lacking = answers(Fault::MissingFields);
    let without = |pointer: &str| lacking.iter().filter(|a| json(a).pointer(pointer).is_none()).count();
    for pointer in [
        "/data/race/status",
        "/data/race/advertised_start",
        "/data/runners/0/odds",
        "/data/runners/0/flucs_with_timestamp",
        "/data/money_tracker",
        "/data/tote_pools",
    ] {
        assert!((1..60).contains(&without(pointer)), "{pointer} is missing {} times in 60", without(pointer));
    }
    assert!(answers(Fault::Empty).iter().all(|answer| json(answer).pointer("/data/race").is_none()));
}

#[test]
fn an_older_answer_comes_after_a_newer_one_and_says_so() {
    let stamp = |answer: &Answer| {
        json(answer)["header"]["generated_time"].as_str().and_then(Time::parse).expect("a time")
    };
    let stamps: Vec<Time> = answers(Fault::Older).iter().map(stamp).collect();
    assert!(stamps.windows(2).any(|pair| pair[1] < pair[0]));
}

#[test]
fn faults_are_switched_while_running_and_counted() {
    let upstream = upstream(&config(1));
    let (path, now) = (event_path("x"), DATE_NOON);
    upstream.set_faults(Faults::none(1).with(Fault::Reset, 1.0));
    assert_eq!(upstream.answer(&path, &identified(), now), Reply::Reset);
    upstream.set_faults(Faults::none(1));
    assert!(
        matches!(upstream.answer(&path, &identified(), now), Reply::Answer(answer) if answer.status == 404)
    );
    assert_eq!(upstream.requests(), 2);
    assert_eq!(upstream.faulted().into_iter().collect::<Vec<_>>(), [(Fault::Reset, 1)]);
}

const DATE_NOON: Time = Time::from_secs(1_784_160_000);
