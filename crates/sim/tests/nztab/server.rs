//! The upstream as a server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use stakeout_core::Span;
use stakeout_sim::nztab::{Fault, Faults, serve};

use super::*;

fn fetch(server: &stakeout_sim::Loopback, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.addr()).expect("the server accepts");
    let head =
        "From: tests@example.invalid\r\nX-Partner: Tests\r\nX-Partner-ID: tests\r\nAccept-Encoding: gzip\r\n";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n{head}\r\n").expect("sent");
    let mut all = Vec::new();
    // A torn answer may end in an error; what came before it is what counts.
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn a_client_gets_what_the_upstream_answers_at_the_servers_time() {
    let upstream = Arc::new(upstream(&config(1)));
    let race = upstream.days()[0].truth()[0].clone();
    let now = race.starts[0].1 - Span::mins(2);
    let server = serve(Arc::clone(&upstream), move || now);
    let raw = fetch(&server, &event_path(&race.id));
    let at = raw.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
    assert!(raw.starts_with(b"HTTP/1.1 200 OK"));
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&raw[at..]).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, get(&upstream, &event_path(&race.id), now).body);

    upstream.set_faults(Faults::none(1).with(Fault::Truncated, 1.0));
    let torn = fetch(&server, &event_path(&race.id));
    assert!(torn.len() < raw.len(), "{} of {} bytes", torn.len(), raw.len());
}
