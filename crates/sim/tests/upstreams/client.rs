//! A blocking client on a bare socket: it shows what a server really sent, also where that is broken HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How a connection ended after the bytes that came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

/// A well-formed answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let named = lines.filter_map(|line| line.split_once(": "));
        named.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).expect("the server accepts");
        // Only so that a broken server fails the test instead of hanging it.
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout can be set");
        stream.set_nodelay(true).expect("a fresh socket takes options");
        Client(stream)
    }

    pub(crate) fn send(&mut self, path: &str, headers: &str) {
        self.send_raw(format!("GET {path} HTTP/1.1\r\nHost: sim\r\n{headers}\r\n").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server takes the request");
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    pub(crate) fn get_with(&mut self, path: &str, headers: &str) -> Answer {
        self.send(path, headers);
        self.answer()
    }

    /// Reads one answer by its Content-Length and nothing beyond it.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status line");
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |n| n.parse().expect("a length"));
        answer.body.resize(length, 0);
        self.0.read_exact(&mut answer.body).expect("the body is as long as announced");
        answer
    }

    pub(crate) fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("the head is complete");
            head.push(byte[0]);
        }
        String::from_utf8(head).expect("the head is text")
    }

    /// Reads whatever comes until the connection ends.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, End) {
        let mut all = Vec::new();
        let mut block = [0; 64 * 1024];
        loop {
            match self.0.read(&mut block) {
                Ok(0) => return (all, End::Closed),
                Ok(n) => all.extend_from_slice(&block[..n]),
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return (all, End::Reset),
                Err(e) => panic!("neither data nor an end: {e}"),
            }
        }
    }

    /// True when nothing has come within `span`.
    pub(crate) fn silent_for(&mut self, span: Duration) -> bool {
        self.0.set_read_timeout(Some(span)).expect("a timeout can be set");
        let read = self.0.read(&mut [0]);
        matches!(read, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }
}
