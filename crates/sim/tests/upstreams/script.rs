//! A script over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stakeout_sim::{Script, body_hash, serve, serve_at};

use crate::client::Client;

#[test]
fn a_served_script_shows_the_state_of_its_clock_and_remembers_it() {
    let script = Script::new(11, 6, 500, 10_000);
    let clock = Arc::new(AtomicU64::new(10_000));
    let hand = Arc::clone(&clock);
    let server = serve_at(script.clone(), move || clock.load(Ordering::SeqCst));
    let mut client = Client::connect(server.addr());
    for step in 0..50 {
        let now = 10_000 + step * 130;
        hand.store(now, Ordering::SeqCst);
        let answer = client.get("/any");
        assert_eq!(answer.json(), script.state_at(now));
        let last = server.answers().pop().expect("an answer was logged");
        assert_eq!((last.at_ms, last.body_hash), (now, body_hash(&answer.body)));
    }
    assert_eq!((server.answers().len() as u64, server.stats().requests), (50, 50));
}

#[test]
fn real_time_lies_between_the_request_and_its_answer() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64;
    let script = Script::new(4, 5, 20, now());
    let server = serve(script.clone());
    let mut client = Client::connect(server.addr());
    let before = now();
    let answer = client.get("/");
    let at_ms = server.answers()[0].at_ms;
    assert!((before..=now()).contains(&at_ms));
    assert_eq!(answer.json(), script.state_at(at_ms));
}
