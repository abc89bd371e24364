//! The benchmark upstream: what it costs per request must not be what the benchmark measures.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::loopback::own_runtime;
use crate::wire::find;

/// Records in every answer of a [`FastServer`].
pub const FAST_RECORDS: u64 = 20;
/// A request whose head does not fit is not a benchmark's.
const HEAD_MAX_BYTES: usize = 16 * 1024;
/// Values keep seven digits, so that an answer's length depends on its path alone.
const VALUE_BASE: u64 = 1_000_000;
const VALUE_SPAN: u64 = 9_000_000;
const VALUE_DIGITS: usize = 7;

/// An upstream on 127.0.0.1 with the least possible work per request; stopped when dropped.
///
/// - `GET /same/{n}`: always the same 4 KB of JSON, 20 records with ids `{n}-0` … `{n}-19`.
/// - `GET /changing/{n}`: the same shape; exactly one record, in turn, has another value than in the previous
///   answer to that path.
/// - `GET /count`: `{"requests":N}`, the requests so far without this kind.
///
/// It takes requests without a body, keep-alive, one after another on each connection.
pub struct FastServer {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    threads: Vec<thread::JoinHandle<()>>,
}

struct Shared {
    records: Vec<Record>,
    requests: AtomicU64,
    /// Answers given so far, by the number of the changing path.
    turns: Mutex<HashMap<u64, u64>>,
}

/// The constant parts of one record: `{"id":"` n `before` value `after`.
struct Record {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl FastServer {
    /// Starts it on a free port with that many threads, at least one.
    ///
    /// # Panics
    /// When the machine has no free port on loopback or no thread.
    pub fn start(threads: usize) -> FastServer {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")
            .expect("loopback must have a free port because the benchmark needs one");
        let addr = listener.local_addr().expect("a bound listener has an address");
        listener.set_nonblocking(true).expect("a fresh listener can be made non-blocking");
        let shared = Arc::new(Shared::new());
        let stop = watch::Sender::new(false);
        let threads = (0..threads.max(1)).map(|_| {
            let listener = listener.try_clone().expect("a listener can be shared between threads");
            let (shared, stopped) = (Arc::clone(&shared), stop.subscribe());
            thread::spawn(move || own_runtime().block_on(run(listener, shared, stopped)))
        });
        let threads = threads.collect();
        FastServer { addr, shared, stop, threads }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of `path` (which begins with `/`) at this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Requests to `/same` and `/changing` answered so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FastServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed why.
            let _ = thread.join();
        }
    }
}

async fn run(listener: std::net::TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let listener = TcpListener::from_std(listener).expect("the runtime takes a non-blocking listener");
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&shared)))),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

/// One connection until the client leaves; an error means just that.
async fn converse(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::with_capacity(HEAD_MAX_BYTES);
    let mut out = Vec::with_capacity(8 * 1024);
    loop {
        let Some(end) = find(&unread, b"\r\n\r\n") else {
            if unread.len() >= HEAD_MAX_BYTES || stream.read_buf(&mut unread).await? == 0 {
                return Ok(());
            }
            continue;
        };
        out.clear();
        shared.answer(&unread[..end], &mut out)?;
        stream.write_all(&out).await?;
        unread.drain(..end + 4);
    }
}

impl Shared {
    fn new() -> Shared {
        let records = (0..FAST_RECORDS).map(Record::new).collect();
        Shared { records, requests: AtomicU64::new(0), turns: Mutex::default() }
    }

    fn answer(&self, head: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(n) = number_after(head, b"GET /same/") {
            self.requests.fetch_add(1, Ordering::Relaxed);
            return self.compose(n, 0, out);
        }
        if let Some(n) = number_after(head, b"GET /changing/") {
            self.requests.fetch_add(1, Ordering::Relaxed);
            let turn = self.next_turn(n);
            return self.compose(n, turn, out);
        }
        if head.starts_with(b"GET /count ") {
            let body = format!("{{\"requests\":{}}}", self.requests.load(Ordering::Relaxed));
            let length = body.len();
            return write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        }
        out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        Ok(())
    }

    fn next_turn(&self, n: u64) -> u64 {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry(n).or_insert(0);
        *turn += 1;
        *turn - 1
    }

    /// Head and body of path `n` after `turn` changes. Joining prebuilt parts costs less than a system call, and
    /// a million paths need no memory.
    fn compose(&self, n: u64, turn: u64, out: &mut Vec<u8>) -> io::Result<()> {
        const OPEN: &[u8] = b"{\"items\":[";
        const ID: &[u8] = b"{\"id\":\"";
        const CLOSE: &[u8] = b"]}";
        let digits = n.to_string();
        let each = ID.len() + digits.len() + VALUE_DIGITS;
        let parts: usize =
            self.records.iter().map(|record| each + record.before.len() + record.after.len()).sum();
        let length = OPEN.len() + parts + CLOSE.len() + self.records.len() - 1;
        write!(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n")?;
        out.extend_from_slice(OPEN);
        // Turn 1 changes record 0, turn 2 record 1, and so on around.
        let (rounds, ahead) = (turn / FAST_RECORDS, turn % FAST_RECORDS);
        for (i, record) in (0..).zip(&self.records) {
            let value = VALUE_BASE + (rounds + u64::from(i < ahead)) % VALUE_SPAN;
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(ID);
            out.extend_from_slice(digits.as_bytes());
            out.extend_from_slice(&record.before);
            write!(out, "{value}")?;
            out.extend_from_slice(&record.after);
        }
        out.extend_from_slice(CLOSE);
        Ok(())
    }
}

impl Record {
    fn new(i: u64) -> Record {
        let note = "a quiet line that only fills the answer; ".repeat(3);
        Record {
            before: format!("-{i}\",\"value\":").into_bytes(),
            after: format!(",\"name\":\"Record number {i:02}\",\"note\":\"{}\"}}", note.trim_end())
                .into_bytes(),
        }
    }
}

/// The number that follows `prefix`; whatever follows the number does not matter.
fn number_after(head: &[u8], prefix: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(prefix)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}
