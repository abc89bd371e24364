//! The upstream as a server.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use stakeout_core::Span;
use stakeout_sim::fpv::{Incident, Server, serve};

use super::*;

/// A server whose time a test sets.
fn served(event: Event) -> (Server, Arc<AtomicI64>) {
    let clock = Arc::new(AtomicI64::new(event.began().us()));
    let now = Arc::clone(&clock);
    (serve(Arc::new(Upstream::new(event)), move || Time(now.load(Ordering::SeqCst))), clock)
}

fn ask(server: &Server, method: &str, path: &str) -> std::io::Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(server.addr())?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n")?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all)?;
    let at = all.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    Ok((String::from_utf8_lossy(&all[..at]).into_owned(), all.split_off(at)))
}

fn get(server: &Server, path: &str) -> (String, Vec<u8>) {
    ask(server, "GET", path).expect("an answer")
}

#[test]
fn every_answer_is_200_without_validators() {
    let event = Event::new(&small(1));
    let id = event.id(event.began());
    let (server, _) = served(event);
    let missing = format!("/events/{id}/{}/Race.json", Guid::NONE);
    let cases = [
        (format!("/events/{id}/Event.json"), "[\n"),
        (missing, ""),
        (format!("/events/{}/Event.json", Guid::NONE), ""),
        (format!("/events/{id}/Tracks.json"), ""),
        ("/".to_owned(), "<html>"),
        ("/no/such/thing".to_owned(), "<html>"),
        (format!("/events/{id}/"), "<html>"),
        ("/httpfiles/Channels.json".to_owned(), "[\n"),
        ("/current".to_owned(), "{\"CurrentRace\":"),
    ];
    for (path, beginning) in cases {
        let (head, body) = get(&server, &path);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{path}: {head}");
        assert!(!head.contains("ETag") && !head.contains("Last-Modified"), "{head}");
        assert!(body.starts_with(beginning.as_bytes()), "{path}");
        assert_eq!(body.is_empty(), beginning.is_empty(), "{path}");
    }
    let page = String::from_utf8(get(&server, "/").1).expect("text");
    assert!(page.contains(&format!("new EventManager(\"events/{id}\", ")));
    assert_eq!(server.stats().max_concurrent, 1);
}

#[test]
fn a_request_that_throws_resets_the_connection() {
    let (server, _) = served(Event::new(&small(1)));
    for (method, path) in [("GET", "/events/../secrets.json"), ("POST", "/current"), ("GET", "/a|b")] {
        let error = ask(&server, method, path).expect_err("no answer");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{method} {path}");
    }
}

#[test]
fn while_it_is_off_connections_are_refused() {
    let config = EventConfig { rounds: 5, brackets: 1, ..EventConfig::new(1).with_races(17) };
    let event = Event::with_incidents(&config, [Incident::UpstreamOff]);
    let back = event.incidents()[0].until;
    let (server, clock) = served(event);
    for (now, off) in [(back - Span::secs(1), true), (back, false), (back - Span::mins(30), true)] {
        clock.store(now.us(), Ordering::SeqCst);
        server.settle();
        match ask(&server, "GET", "/") {
            Ok(_) => assert!(!off, "answered at {now}"),
            Err(error) => assert!(off && error.kind() == ErrorKind::ConnectionRefused, "{error}"),
        }
    }
}

#[test]
fn requests_are_served_one_after_another_and_measured() {
    let event = Event::new(&small(1));
    let upstream = Arc::new(Upstream::new(event));
    upstream.set_latency(Span::ms(40));
    let start = upstream.event().began();
    let server = serve(upstream, move || start);
    let began = std::time::Instant::now();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| get(&server, "/current"));
        }
    });
    assert!(began.elapsed().as_millis() >= 120, "three times 40 ms, not at once: {:?}", began.elapsed());
    let stats = server.stats();
    assert_eq!(stats.requests, 3);
    assert!(stats.max_concurrent >= 2, "it tells who asks at once");
    assert_eq!(stats.gaps["/current"].count, 2);
}
