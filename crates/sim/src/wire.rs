//! HTTP/1.1 as bytes: reading a request, composing a head.

use std::io;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEAD_MAX_BYTES: usize = 64 * 1024;
const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// One connection and what the client has sent beyond the current request.
pub(crate) struct Conn {
    stream: TcpStream,
    unread: BytesMut,
}

/// A request as it came.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The client will not use the connection again.
    pub(crate) last: bool,
}

/// What came in on a connection.
pub(crate) enum Incoming {
    Request(Request),
    /// The client closed or broke the connection.
    Gone,
    /// Not a request this server can take; answered by the status.
    Refused(u16),
}

impl Conn {
    pub(crate) fn new(stream: TcpStream) -> Conn {
        Conn { stream, unread: BytesMut::with_capacity(4096) }
    }

    pub(crate) async fn receive(&mut self) -> Incoming {
        let head_len = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            if self.unread.len() > HEAD_MAX_BYTES {
                return Incoming::Refused(431);
            }
            if !self.read_more().await {
                return Incoming::Gone;
            }
        };
        let head = self.unread.split_to(head_len);
        let Some(mut request) = parse_head(&head) else { return Incoming::Refused(400) };
        if header(&request.headers, "transfer-encoding").is_some() {
            return Incoming::Refused(411);
        }
        let announced = header(&request.headers, "content-length").unwrap_or("0");
        let Ok(body_len) = announced.trim().parse::<usize>() else { return Incoming::Refused(400) };
        if body_len > BODY_MAX_BYTES {
            return Incoming::Refused(413);
        }
        while self.unread.len() < body_len {
            if !self.read_more().await {
                return Incoming::Gone;
            }
        }
        request.body = self.unread.split_to(body_len).freeze();
        Incoming::Request(request)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Resolves when the client has closed its side. What it sends instead is kept for the next request.
    pub(crate) async fn peer_gone(&mut self) {
        while self.unread.len() <= HEAD_MAX_BYTES {
            if !self.read_more().await {
                return;
            }
        }
        // Someone who floods an unanswered connection has not left; what they send stays in the socket.
        std::future::pending().await
    }

    /// Makes the coming close a reset (RST) instead of an orderly end (FIN).
    pub(crate) fn reset_on_close(&self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    async fn read_more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.unread).await, Ok(n) if n > 0)
    }
}

/// The head of an answer. A header in `over` replaces the one of the same name in `own`.
pub(crate) fn head(status: u16, own: &[(&str, String)], over: &[(String, String)]) -> Vec<u8> {
    let reason = StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or("Unknown");
    let mut text = format!("HTTP/1.1 {status} {reason}\r\n");
    let kept = own.iter().filter(|(name, _)| header(over, name).is_none());
    let all = kept
        .map(|(name, value)| (*name, value))
        .chain(over.iter().map(|(name, value)| (name.as_str(), value)));
    for (name, value) in all {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// The first header of that name, in any case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn parse_head(head: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let headers = lines
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
        .collect::<Option<Vec<_>>>()?;
    let connection = header(&headers, "connection").unwrap_or_default().to_ascii_lowercase();
    let last = match version {
        "HTTP/1.1" => connection.contains("close"),
        "HTTP/1.0" => !connection.contains("keep-alive"),
        _ => return None,
    };
    Some(Request { method: method.to_owned(), path: path.to_owned(), headers, body: Bytes::new(), last })
}
