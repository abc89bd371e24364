//! The same over loopback HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use stakeout_sim::Loopback;
use stakeout_sim::resy::{Fault, Incident, serve};

use super::*;

/// The status and body of a request, by hand: `lines` are its headers.
fn send(server: &Loopback, method: &str, lines: &[(String, String)], body: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server.addr()).expect("it listens");
    let mut head = format!(
        "{method} {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    lines.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    stream
        .write_all(format!("{head}\r\n").as_bytes())
        .and_then(|()| stream.write_all(body))
        .expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|at| at == b"\r\n\r\n").expect("a head");
    let status = std::str::from_utf8(&answer[9..12]).expect("text").parse().expect("a status");
    (status, answer.split_off(end + 4))
}

#[test]
fn over_http_it_says_what_it_says_in_process() {
    let upstream = Arc::new(upstream(MarketConfig::new(1)));
    let now = upstream.market().config().start + Span::hours(7);
    let server = serve(Arc::clone(&upstream), move || now);
    for (day, party, page) in [(1, 2, 1), (3, 4, 2), (9, 2, 1)] {
        let request = body(evening(date(day, upstream.market())), party, page);
        let (status, answer) = send(&server, "POST", &headers(), &request);
        assert_eq!((status, answer), (200, ask(&upstream, &request, now).body.to_vec()));
    }
    assert_eq!(upstream.requests(), 3);
}

#[test]
fn over_http_it_refuses_and_fails_as_in_process() {
    let upstream = Arc::new(upstream(MarketConfig::new(1)));
    let now = upstream.market().config().start;
    let server = serve(Arc::clone(&upstream), move || now);
    let request = body(evening(date(1, upstream.market())), 2, 1);
    assert_eq!(send(&server, "GET", &headers(), b"").0, 405);
    let nobody: Vec<_> = headers().into_iter().filter(|(name, _)| name != "User-Agent").collect();
    assert_eq!(send(&server, "POST", &nobody, &request).0, 500);
    upstream.set_incidents(vec![Incident::new(Fault::Redirect, now, now + Span::secs(1))]);
    assert_eq!(send(&server, "POST", &headers(), &request).0, 302);
}
