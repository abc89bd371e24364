//! Carrying an act out on a connection.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::act::Act;
use crate::traffic::Seen;
use crate::wire::{Conn, head, header};

/// What becomes of the connection after an act.
pub(crate) enum After {
    Keep,
    Close,
    Reset,
}

type Headers = [(String, String)];

const JSON: &str = "application/json";
/// How much of a large body is in memory at once.
const BLOCK_BYTES: usize = 64 * 1024;

/// Carries `act` out. An error means that the client left first.
pub(crate) async fn perform(conn: &mut Conn, seen: &Seen, act: Act) -> io::Result<After> {
    let (act, over) = unwrap(conn, act).await?;
    match act {
        Act::Answer { status, headers, body } => {
            let headers = joined(over, headers);
            whole(conn, seen, status, &[], &headers, &body).await
        }
        Act::Gzip(body) => {
            let own = [("Content-Type", JSON.to_owned()), ("Content-Encoding", "gzip".to_owned())];
            whole(conn, seen, 200, &own, &over, &gzip(&mut &body[..])).await
        }
        Act::GzipBomb { inflated_bytes } => {
            let own = [("Content-Type", JSON.to_owned()), ("Content-Encoding", "gzip".to_owned())];
            let body = tokio::task::spawn_blocking(move || bomb(inflated_bytes)).await?;
            whole(conn, seen, 200, &own, &over, &body).await
        }
        Act::Reset => Ok(After::Reset),
        Act::ResetMidBody => {
            announced(conn, 1_000, &over, br#"{"items":[{"id":"a","value":"#).await?;
            Ok(After::Reset)
        }
        Act::Truncated { body, sent } => {
            announced(conn, body.len() as u64, &over, &body[..sent.min(body.len())]).await?;
            Ok(After::Close)
        }
        Act::Hang => {
            conn.peer_gone().await;
            Err(left())
        }
        Act::Drip { body, chunk, every } => drip(conn, &over, &body, chunk.max(1), every).await,
        Act::Huge { bytes } => huge(conn, &over, bytes).await,
        Act::HugeUnannounced { bytes } => huge_chunked(conn, &over, bytes).await,
        Act::WrongContentType(body) => {
            let lie = if body.starts_with(b"<") { JSON } else { "text/html; charset=utf-8" };
            whole(conn, seen, 200, &[("Content-Type", lie.to_owned())], &over, &body).await
        }
        Act::InvalidUtf8 => {
            let body = b"{\"items\":[{\"id\":\"a\",\"value\":1,\"name\":\"\xff\xfe\xc3\"}]}";
            whole(conn, seen, 200, &[("Content-Type", JSON.to_owned())], &over, body).await
        }
        Act::Redirect(location) => whole(conn, seen, 302, &[("Location", location)], &over, b"").await,
        Act::Raw(bytes) => {
            conn.send(&bytes).await?;
            Ok(After::Close)
        }
        Act::Conditional { etag, body } => {
            let known = seen.header("if-none-match").is_some_and(|tags| names_tag(tags, &etag));
            conditional(conn, seen, ("ETag", etag), known, &over, &body).await
        }
        Act::ConditionalSince { last_modified, body } => {
            let known = seen.header("if-modified-since") == Some(last_modified.as_str());
            conditional(conn, seen, ("Last-Modified", last_modified), known, &over, &body).await
        }
        Act::Delay { .. } | Act::Headed { .. } => unreachable!("unwrapped above"),
    }
}

/// Waits out the delays around an act and collects the headers put on it; the outermost header wins.
async fn unwrap(conn: &mut Conn, mut act: Act) -> io::Result<(Act, Vec<(String, String)>)> {
    let mut over = Vec::new();
    loop {
        act = match act {
            Act::Delay { ms, then } => {
                pause(conn, Duration::from_millis(ms)).await?;
                *then
            }
            Act::Headed { headers, act } => {
                over = joined(over, headers);
                *act
            }
            act => return Ok((act, over)),
        };
    }
}

/// The outer headers and those inner ones whose name they do not take.
fn joined(mut outer: Vec<(String, String)>, mut inner: Vec<(String, String)>) -> Vec<(String, String)> {
    inner.retain(|(name, _)| header(&outer, name).is_none());
    outer.append(&mut inner);
    outer
}

async fn pause(conn: &mut Conn, span: Duration) -> io::Result<()> {
    tokio::select! {
        () = tokio::time::sleep(span) => Ok(()),
        () = conn.peer_gone() => Err(left()),
    }
}

/// A well-formed answer in as few writes as it takes.
async fn whole(
    conn: &mut Conn,
    seen: &Seen,
    status: u16,
    own: &[(&str, String)],
    over: &Headers,
    body: &[u8],
) -> io::Result<After> {
    let bodiless = status < 200 || status == 204 || status == 304;
    let mut own = own.to_vec();
    if !bodiless {
        own.push(("Content-Length", body.len().to_string()));
    }
    let head = head(status, &own, over);
    if bodiless || seen.method == "HEAD" {
        conn.send(&head).await?;
    } else if body.len() <= BLOCK_BYTES {
        conn.send(&[&head, body].concat()).await?;
    } else {
        conn.send(&head).await?;
        conn.send(body).await?;
    }
    Ok(After::Keep)
}

/// A head that promises `length` bytes of JSON, then `sent`.
async fn announced(conn: &mut Conn, length: u64, over: &Headers, sent: &[u8]) -> io::Result<()> {
    let own = [("Content-Type", JSON.to_owned()), ("Content-Length", length.to_string())];
    conn.send(&[&head(200, &own, over), sent].concat()).await
}

async fn conditional(
    conn: &mut Conn,
    seen: &Seen,
    validator: (&str, String),
    known: bool,
    over: &Headers,
    body: &[u8],
) -> io::Result<After> {
    if known {
        return whole(conn, seen, 304, &[validator], over, b"").await;
    }
    whole(conn, seen, 200, &[("Content-Type", JSON.to_owned()), validator], over, body).await
}

async fn drip(
    conn: &mut Conn,
    over: &Headers,
    body: &[u8],
    chunk: usize,
    every: Duration,
) -> io::Result<After> {
    announced(conn, body.len() as u64, over, b"").await?;
    for (i, piece) in body.chunks(chunk).enumerate() {
        if i > 0 {
            pause(conn, every).await?;
        }
        conn.send(piece).await?;
    }
    Ok(After::Keep)
}

async fn huge(conn: &mut Conn, over: &Headers, bytes: u64) -> io::Result<After> {
    announced(conn, bytes, over, b"").await?;
    let block = vec![b'x'; BLOCK_BYTES];
    let mut rest = bytes;
    while rest > 0 {
        let n = rest.min(BLOCK_BYTES as u64);
        conn.send(&block[..n as usize]).await?;
        rest -= n;
    }
    Ok(After::Keep)
}

async fn huge_chunked(conn: &mut Conn, over: &Headers, bytes: u64) -> io::Result<After> {
    let own = [("Content-Type", JSON.to_owned()), ("Transfer-Encoding", "chunked".to_owned())];
    conn.send(&head(200, &own, over)).await?;
    let mut rest = bytes;
    while rest > 0 {
        let n = rest.min(BLOCK_BYTES as u64) as usize;
        let mut block = format!("{n:x}\r\n").into_bytes();
        block.resize(block.len() + n, b'x');
        block.extend_from_slice(b"\r\n");
        conn.send(&block).await?;
        rest -= n as u64;
    }
    conn.send(b"0\r\n\r\n").await?;
    Ok(After::Keep)
}

/// `If-None-Match` compares weakly: `W/` does not count.
fn names_tag(tags: &str, etag: &str) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    tags.trim() == "*" || tags.split(',').any(|tag| strong(tag) == strong(etag))
}

fn gzip(plain: &mut dyn Read) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    io::copy(plain, &mut encoder).expect("copying cannot fail because both ends are memory");
    encoder.flush().expect("flushing cannot fail because it writes to memory");
    encoder.finish().expect("finishing cannot fail because it writes to memory").into()
}

/// Made once per size: a fault that is served a thousand times should cost the client, not the simulator.
fn bomb(inflated_bytes: u64) -> Bytes {
    static MADE: Mutex<BTreeMap<u64, Bytes>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(inflated_bytes).or_insert_with(|| gzip(&mut io::repeat(0).take(inflated_bytes))).clone()
}

fn left() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the client left before the answer")
}
