//! Faults: repeatable, switchable, each as announced, and none with an error status.

use stakeout_core::Span;
use stakeout_sim::fpv::{Fault, Faults};

use super::*;

fn replies(faults: Faults, count: i64) -> Vec<Reply> {
    let upstream = Upstream::new(Event::new(&small(1)));
    upstream.set_faults(faults);
    let start = upstream.event().began();
    let path = format!("/events/{}/Event.json", upstream.event().id(start));
    (0..count).map(|n| upstream.answer(&path, start + Span::secs(n))).collect()
}

fn bodies(fault: Fault) -> Vec<Bytes> {
    replies(Faults::none(3).with(fault, 1.0), 30).into_iter().map(body).collect()
}

#[test]
fn a_run_with_faults_can_be_repeated() {
    assert_eq!(replies(Faults::each(11, 0.05), 200), replies(Faults::each(11, 0.05), 200));
    assert_ne!(replies(Faults::each(11, 0.05), 200), replies(Faults::each(12, 0.05), 200));
}

#[test]
fn no_fault_looks_like_data() {
    assert!(bodies(Fault::Empty).iter().all(Bytes::is_empty));
    assert!(bodies(Fault::EmptyList).iter().all(|body| body == "[]"));
    assert!(bodies(Fault::Html).iter().all(|body| body.starts_with(b"<html>")));
    for torn in bodies(Fault::Torn) {
        assert!(torn.len() > 100 && serde_json::from_slice::<Value>(&torn).is_err());
    }
    assert!(replies(Faults::none(3).with(Fault::Reset, 1.0), 3).iter().all(|reply| *reply == Reply::Reset));
    assert!(
        replies(Faults::none(3).with(Fault::Timeout, 1.0), 3).iter().all(|reply| *reply == Reply::Timeout)
    );
}

#[test]
fn faults_are_switched_while_running_and_counted() {
    let upstream = Upstream::new(Event::new(&small(1)));
    let now = upstream.event().began();
    upstream.set_faults(Faults::none(1).with(Fault::Reset, 1.0));
    assert_eq!(upstream.answer("/", now), Reply::Reset);
    upstream.set_faults(Faults::none(1));
    assert!(!body(upstream.answer("/", now)).is_empty());
    assert_eq!(upstream.requests(), 2);
    assert_eq!(upstream.faulted().into_iter().collect::<Vec<_>>(), [(Fault::Reset, 1)]);
}
