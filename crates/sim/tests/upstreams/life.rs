//! The life of a loopback server: what it remembers, waiting for it, going down and coming back.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use stakeout_sim::{Act, Loopback};

use crate::client::{Client, End};

fn ok() -> Loopback {
    Loopback::start(|seen| Act::json(&json!({"n": seen.n})))
}

#[test]
fn a_request_is_seen_as_it_was_sent() {
    let server = ok();
    let mut client = Client::connect(server.addr());
    client.send_raw(b"POST /hook?a=1 HTTP/1.1\r\nHost: sim\r\nX-Key: k\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().json(), json!({"n": 1}));
    assert_eq!(client.get("/next").json(), json!({"n": 2}), "on the same connection");

    let seen = server.seen();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].path.as_str(), &seen[0].body[..]),
        ("POST", "/hook?a=1", &b"hello"[..])
    );
    assert_eq!((seen[0].header("x-key"), seen[0].header("absent")), (Some("k"), None));
    assert_eq!((seen[1].n, seen[1].in_flight), (2, 1));
    assert!(seen[0].at_us() > 1_600_000_000_000_000 && seen[0].at_instant <= seen[1].at_instant);
    let stats = server.stats();
    assert_eq!((stats.requests, stats.connections, stats.max_concurrent), (2, 1, 1));
}

#[test]
fn requests_that_arrive_together_are_answered_in_turn() {
    let server = ok();
    let mut client = Client::connect(server.addr());
    client.send_raw(&b"GET /a HTTP/1.1\r\n\r\n".repeat(3));
    let answers: Vec<_> = (0..3).map(|_| client.answer().json()["n"].as_u64()).collect();
    assert_eq!(answers, [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_client_that_wants_to_close_is_let_go() {
    let server = ok();
    for request in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"] {
        let mut client = Client::connect(server.addr());
        client.send_raw(request.as_bytes());
        assert_eq!(client.answer().status, 200);
        assert_eq!(client.rest(), (Vec::new(), End::Closed));
    }
}

#[test]
fn head_has_no_body_and_nonsense_is_refused() {
    let server = ok();
    let mut client = Client::connect(server.addr());
    client.send_raw(b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
    let (bytes, _) = client.rest();
    assert!(bytes.ends_with(b"\r\n\r\n"));
    for (nonsense, status) in [
        ("what\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    ] {
        let mut client = Client::connect(server.addr());
        client.send_raw(nonsense.as_bytes());
        assert_eq!(client.answer().status, status, "{nonsense:?}");
    }
}

#[test]
fn concurrency_counts_until_the_answer_or_the_client_is_gone() {
    let server = Loopback::start(|seen| if seen.path == "/hang" { Act::Hang } else { Act::status(200) });
    let mut hanging: Vec<Client> = (0..3).map(|_| Client::connect(server.addr())).collect();
    hanging.iter_mut().for_each(|client| client.send("/hang", ""));
    server.wait_for_requests(3);
    assert_eq!((server.stats().max_concurrent, server.stats().answered), (3, 0));

    drop(hanging);
    let mut client = Client::connect(server.addr());
    // The server notices the three departures in its own time: ask until it has.
    while client.get("/").status == 200 && server.seen().last().is_none_or(|seen| seen.in_flight > 1) {}
    let total = server.stats().requests;
    server.wait_for_answers(total - 3);
    assert_eq!(server.stats().answered, total - 3, "the abandoned ones were never answered");
}

#[test]
fn one_request_at_a_time_never_looks_like_two() {
    let server = ok();
    let addr = server.addr();
    for _ in 0..200 {
        assert_eq!(Client::connect(addr).get("/").status, 200);
    }
    assert_eq!(server.stats().max_concurrent, 1);
}

#[test]
fn gaps_are_measured_per_path() {
    let server = Loopback::start(|_| Act::status(200).after_ms(10));
    let mut client = Client::connect(server.addr());
    for path in ["/a", "/b", "/a", "/a?x=1", "/a"] {
        client.get(path);
    }
    let gaps = server.stats().gaps;
    assert_eq!((gaps["/a"].count, gaps["/b"].count, gaps["/a?x=1"].count), (2, 0, 0));
    assert!(gaps["/a"].min >= Duration::from_millis(20) && gaps["/a"].min <= gaps["/a"].mean());
    assert!(gaps["/a"].mean() <= gaps["/a"].max && gaps["/b"].mean() == Duration::ZERO);
}

#[test]
fn a_paused_server_refuses_and_returns_on_the_same_port() {
    let server = ok();
    let mut before = Client::connect(server.addr());
    before.get("/");
    for _ in 0..20 {
        server.pause();
        server.pause();
        let refused = TcpStream::connect(server.addr()).expect_err("nobody listens");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        server.resume();
        server.resume();
        assert_eq!(Client::connect(server.addr()).get("/").status, 200);
    }
    assert_eq!(before.rest(), (Vec::new(), End::Closed), "a pause closes open connections");
    assert_eq!(server.stats().requests, 21, "what was seen stays");
}

#[test]
fn a_panicking_handler_costs_one_connection() {
    let server = Loopback::start(|seen| {
        assert!(seen.path != "/bad", "this panic is part of the test");
        Act::status(200)
    });
    let mut client = Client::connect(server.addr());
    client.send("/bad", "");
    assert_eq!(client.rest(), (Vec::new(), End::Closed));
    assert_eq!(Client::connect(server.addr()).get("/good").status, 200);
    assert_eq!(server.stats().max_concurrent, 1, "the failed one does not stay in flight");
}

#[tokio::test]
async fn an_async_test_can_wait_without_blocking_its_thread() {
    let server = Loopback::start(|_| Act::Raw(Bytes::from_static(b"x")).after_ms(5));
    let addr = server.addr();
    let client = std::thread::spawn(move || {
        let mut client = Client::connect(addr);
        client.send("/", "");
        client.rest()
    });
    server.requests_reached(1).await;
    server.answers_reached(1).await;
    assert_eq!(client.join().expect("the client reads"), (b"x".to_vec(), End::Closed));
}
