//! Each act, byte for byte where that matters.

use std::io::Read;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::read::GzDecoder;
use serde_json::json;
use stakeout_sim::{Act, Loopback};

use crate::client::{Answer, Client, End};

const BODY: &[u8] = br#"{"items":[{"id":"a","value":1}]}"#;

fn body() -> Bytes {
    Bytes::from_static(BODY)
}

/// A server that always does `act`, and a client that has not yet asked.
fn doing(act: Act) -> (Loopback, Client) {
    let server = Loopback::start(move |_| act.clone());
    let client = Client::connect(server.addr());
    (server, client)
}

fn answer_to(act: Act) -> Answer {
    doing(act).1.get("/")
}

/// What comes until the end of the connection.
fn rest_of(act: Act) -> (Vec<u8>, End) {
    let (_server, mut client) = doing(act);
    client.send("/", "");
    client.rest()
}

#[test]
fn an_answer_carries_status_headers_and_body() {
    let answer = answer_to(Act::json(&json!({"n": 1})));
    assert_eq!((answer.status, answer.json()), (200, json!({"n": 1})));
    assert_eq!(answer.header("content-type"), Some("application/json"));

    let answer = answer_to(Act::status(429).header("Retry-After", "2"));
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("2")));
    assert!(answer.head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));

    let answer = answer_to(Act::json(&json!(1)).header("content-type", "text/plain"));
    assert_eq!(answer.head.to_lowercase().matches("content-type").count(), 1, "replaced, not doubled");
}

#[test]
fn gzip_inflates_to_the_body() {
    let answer = answer_to(Act::Gzip(body()));
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).expect("gzip");
    assert_eq!(plain, BODY);
}

#[test]
fn a_bomb_is_small_on_the_wire_and_huge_inflated() {
    let size = 8 << 20;
    let answer = answer_to(Act::GzipBomb { inflated_bytes: size });
    assert!(answer.body.len() as u64 * 500 < size, "{} bytes on the wire", answer.body.len());
    let inflated = std::io::copy(&mut GzDecoder::new(&answer.body[..]), &mut std::io::sink());
    assert_eq!(inflated.expect("gzip"), size);
}

#[test]
fn a_reset_comes_before_any_byte() {
    assert_eq!(rest_of(Act::Reset), (Vec::new(), End::Reset));
}

#[test]
fn a_reset_mid_body_comes_after_some_of_it() {
    let (bytes, end) = rest_of(Act::ResetMidBody);
    assert_eq!(end, End::Reset);
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains("Content-Length: 1000\r\n") && text.ends_with(r#""value":"#), "{text}");
}

#[test]
fn a_truncated_body_ends_early_in_good_order() {
    let (bytes, end) = rest_of(Act::Truncated { body: body(), sent: 5 });
    assert_eq!(end, End::Closed);
    let text = String::from_utf8(bytes).expect("text");
    assert!(text.contains(&format!("Content-Length: {}\r\n", BODY.len())));
    assert!(text.ends_with("\r\n\r\n{\"ite"), "{text}");
}

#[test]
fn a_hang_answers_nothing_and_ends_when_the_server_stops() {
    let (server, mut client) = doing(Act::Hang);
    client.send("/", "");
    server.wait_for_requests(1);
    assert!(client.silent_for(Duration::from_millis(20)));
    drop(server);
    assert_eq!(client.rest().0, b"");
}

#[test]
fn a_drip_arrives_whole_but_slowly() {
    let act = Act::Drip { body: body(), chunk: 8, every: Duration::from_millis(5) };
    let (_server, mut client) = doing(act);
    let begun = Instant::now();
    assert_eq!(client.get("/").body, BODY);
    let pauses = BODY.len().div_ceil(8) as u32 - 1;
    assert!(begun.elapsed() >= Duration::from_millis(5) * pauses);
    assert_eq!(client.get("/again").body, BODY, "the connection stays usable");
}

#[test]
fn a_huge_body_has_its_announced_size() {
    let answer = answer_to(Act::Huge { bytes: 3_000_001 });
    assert_eq!((answer.body.len(), answer.header("content-length")), (3_000_001, Some("3000001")));
}

#[test]
fn a_huge_body_can_hide_its_size() {
    let (_server, mut client) = doing(Act::HugeUnannounced { bytes: 100_000 });
    client.send("/", "Connection: close\r\n");
    let head = client.head();
    assert!(head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"), "{head}");
    let (bytes, end) = client.rest();
    assert_eq!(end, End::Closed);
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'x').count(), 100_000);
    assert!(bytes.starts_with(b"10000\r\nx") && bytes.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn a_content_type_can_lie_both_ways() {
    let answer = answer_to(Act::WrongContentType(body()));
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.body, BODY);
    let answer = answer_to(Act::WrongContentType(Bytes::from_static(b"<html>")));
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[test]
fn invalid_utf8_is_complete_but_no_text() {
    let answer = answer_to(Act::InvalidUtf8);
    assert!(std::str::from_utf8(&answer.body).is_err());
    assert!(answer.body.ends_with(b"\"}]}"));
}

#[test]
fn a_redirect_names_its_location() {
    let answer = answer_to(Act::Redirect("/elsewhere".to_owned()));
    assert_eq!((answer.status, answer.header("location")), (302, Some("/elsewhere")));
}

#[test]
fn raw_bytes_are_sent_as_they_are() {
    assert_eq!(rest_of(Act::Raw(Bytes::from_static(b"HTTP/9 what"))), (b"HTTP/9 what".to_vec(), End::Closed));
}

#[test]
fn a_delay_comes_before_the_act_it_holds() {
    let (_server, mut client) = doing(Act::status(503).after_ms(30).header("X-Late", "yes"));
    let begun = Instant::now();
    let answer = client.get("/");
    assert_eq!((answer.status, answer.header("x-late")), (503, Some("yes")));
    assert!(begun.elapsed() >= Duration::from_millis(30));
}

#[test]
fn a_known_etag_is_not_modified() {
    let (_server, mut client) = doing(Act::Conditional { etag: "\"v1\"".to_owned(), body: body() });
    let first = client.get("/");
    assert_eq!((first.status, first.header("etag"), &first.body[..]), (200, Some("\"v1\""), BODY));
    for known in ["\"v1\"", "W/\"v1\"", "\"v0\", \"v1\"", "*"] {
        let again = client.get_with("/", &format!("If-None-Match: {known}\r\n"));
        assert_eq!((again.status, again.body.len()), (304, 0), "If-None-Match: {known}");
        assert_eq!(again.header("content-length"), None);
    }
    assert_eq!(client.get_with("/", "If-None-Match: \"v0\"\r\n").status, 200);
}

#[test]
fn a_known_date_is_not_modified() {
    let date = "Wed, 21 Oct 2015 07:28:00 GMT";
    let (_server, mut client) = doing(Act::ConditionalSince { last_modified: date.to_owned(), body: body() });
    assert_eq!(client.get("/").header("last-modified"), Some(date));
    assert_eq!(client.get_with("/", &format!("If-Modified-Since: {date}\r\n")).status, 304);
    assert_eq!(client.get_with("/", "If-Modified-Since: Wed, 21 Oct 2015 07:27:59 GMT\r\n").status, 200);
}

#[test]
fn headers_join_any_act_that_has_a_head() {
    let answer = answer_to(Act::Gzip(body()).header("Age", "7").header("Content-Encoding", "br"));
    assert_eq!((answer.header("age"), answer.header("content-encoding")), (Some("7"), Some("br")));
    assert_eq!(rest_of(Act::Reset.header("Age", "7")), (Vec::new(), End::Reset));

    let inner = Act::status(200).header("Age", "1");
    let outer = Act::Headed { headers: vec![("age".to_owned(), "2".to_owned())], act: Box::new(inner) };
    let answer = answer_to(outer);
    assert_eq!((answer.header("age"), answer.head.to_lowercase().matches("age:").count()), (Some("2"), 1));
}
