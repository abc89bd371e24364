//! One connection to a broker: the introductions, then questions and their answers.
//!
//! A task reads for as long as the connection lasts: it answers the broker's pings and hands each answer to whoever waits
//! for it. Whatever a broker does, what it can make us keep is limited: what is read and not understood ([`wire`]), an
//! answer ([`Question::answer_bytes_max`]), how many answers are waited for ([`WAITING_MAX`]), and how often it may say
//! something that nobody asked for ([`UNASKED_MAX`]). Beyond a limit, or when it says that something is wrong, the
//! connection ends, and everybody who waits is told why.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::Access;
use super::login::about_us;
use super::wire::{self, Inbound, Info, Message, Outbound, Said};

/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long a broker may take to accept what is written to it.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Answers that are waited for, also those that nobody wants any more: a broker owes them still.
const WAITING_MAX: usize = 1_000;
/// What a broker may say within [`UNASKED_WINDOW`] without being asked: pings, news of itself, answers to nothing.
const UNASKED_MAX: u32 = 1_000;
const UNASKED_WINDOW: Duration = Duration::from_secs(60);
/// The largest message that a broker takes if it does not say: the protocol's own.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Something that bytes go through in both directions, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that knows its broker, who does not know us yet.
pub(super) struct Introduced<S> {
    stream: S,
    info: Info,
    inbound: Inbound,
}

/// Reads how a broker introduces itself.
pub(super) async fn introduced<S: AsyncRead + Unpin>(mut stream: S) -> Result<Introduced<S>, String> {
    let mut inbound = Inbound::default();
    match said(&mut stream, &mut inbound).await? {
        Said::Info(info) => Ok(Introduced { stream, info, inbound }),
        Said::Error(words) => Err(has_said(&words)),
        _ => Err("expected that it introduces itself (INFO)".to_owned()),
    }
}

impl<S: Stream> Introduced<S> {
    /// Whether it goes on only over TLS.
    pub(super) fn wants_tls(&self) -> bool {
        self.info.tls_required
    }

    /// Goes on over TLS, with whoever has a certificate for this name.
    pub(super) async fn secured(
        self,
        tls: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Introduced<TlsStream<S>>, String> {
        // What is said in the clear could be anybody's: it must not be taken for the first words of whoever is certified.
        if !self.inbound.is_empty() {
            return Err("it said more in the clear than who it is, expected TLS".to_owned());
        }
        let stream = TlsConnector::from(tls).connect(name, self.stream).await;
        let stream = stream.map_err(|error| format!("no TLS with it: {error}"))?;
        Ok(Introduced { stream, info: self.info, inbound: self.inbound })
    }
}

/// The next thing a broker says.
async fn said<S: AsyncRead + Unpin>(stream: &mut S, inbound: &mut Inbound) -> Result<Said, String> {
    loop {
        if let Some(said) = inbound.next().map_err(|error| error.to_string())? {
            return Ok(said);
        }
        let read = stream.read_buf(&mut inbound.room()).await;
        if read.map_err(|error| lost(&error))? == 0 {
            return Err("it hung up".to_owned());
        }
    }
}

/// A broker that lets us in.
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// Where answers go to: nobody else knows it.
    inbox: String,
    asked: AtomicU64,
    reader: JoinHandle<()>,
}

/// What asking and reading have in common.
struct Shared {
    /// Until the connection has ended.
    writer: tokio::sync::Mutex<Option<Writer>>,
    waiting: Mutex<Waiting>,
    /// Tells whoever reads to hang up.
    over: Notify,
    payload_bytes_max: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    for_answers: HashMap<u64, Waiter>,
    /// Why there will be no more answers.
    ended: Option<String>,
}

struct Waiter {
    answer: oneshot::Sender<Message>,
    bytes_max: usize,
}

/// What a broker is asked.
pub(super) struct Question<'a> {
    pub(super) message: Outbound<'a>,
    /// The largest answer.
    pub(super) answer_bytes_max: usize,
}

/// An answer that is on its way.
pub(super) struct Awaited(oneshot::Receiver<Message>);

/// Why something cannot be asked.
#[derive(Debug)]
pub(super) enum Unasked {
    /// It is larger than what the broker takes.
    TooLarge(String),
    /// There is no connection any more.
    Lost(String),
}

impl Connection {
    /// Logs in, and listens from then on.
    pub(super) async fn enter<S: Stream + 'static>(
        broker: Introduced<S>,
        access: &Access,
        is_secured: bool,
    ) -> Result<Connection, String> {
        let Introduced { mut stream, mut info, mut inbound } = broker;
        let hello = wire::connect(&about_us(access, &info, is_secured)?);
        write(&mut stream, &hello).await?;
        let mut unasked = Patience::default();
        loop {
            match said(&mut stream, &mut inbound).await? {
                Said::Pong => break,
                Said::Info(news) => info.max_payload = news.max_payload.or(info.max_payload),
                Said::Ping => write(&mut stream, wire::PONG).await?,
                Said::Fine => {}
                Said::Message(_) => return Err("it sent a message before anybody asked for one".to_owned()),
                Said::Error(words) => return Err(has_said(&words)),
            }
            unasked.lose_some()?;
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| format!("there is no randomness: {error}"))?;
        let inbox = format!("_INBOX.{:032x}.", u128::from_ne_bytes(random));
        write(&mut stream, &wire::subscribe(&format!("{inbox}*"))).await?;

        let (from_broker, to_broker) = tokio::io::split(Box::new(stream) as Box<dyn Stream>);
        let shared = Arc::new(Shared {
            writer: tokio::sync::Mutex::new(Some(Writer { stream: to_broker, is_whole: true })),
            waiting: Mutex::default(),
            over: Notify::new(),
            payload_bytes_max: AtomicUsize::new(PAYLOAD_BYTES_MAX),
        });
        shared.note(&info);
        let reader = Reader { stream: from_broker, inbound, unasked, inbox: inbox.clone() };
        let reader = tokio::spawn(reader.run(Arc::clone(&shared)));
        Ok(Connection { shared, inbox, asked: AtomicU64::new(0), reader })
    }

    /// Why the connection ended, if it did.
    pub(super) fn ended(&self) -> Option<String> {
        self.shared.waiting().ended.clone()
    }

    /// Asks something; the answer is waited for afterwards, so that much can be asked at once.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Awaited, Unasked> {
        let (found, most) = (question.message.bytes(), self.shared.payload_bytes_max.load(Ordering::Relaxed));
        if found > most {
            return Err(Unasked::TooLarge(format!(
                "{found} bytes with headers, and the broker takes messages of {most} at most (max_payload)"
            )));
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (answer, awaited) = oneshot::channel();
        let waiter = Waiter { answer, bytes_max: question.answer_bytes_max };
        self.shared.expect(number, waiter).map_err(|words| Unasked::Lost(self.end(words)))?;
        let written = question.message.written(&format!("{}{number}", self.inbox));
        match self.shared.write(&written).await {
            Ok(()) => Ok(Awaited(awaited)),
            // What the broker said before it hung up says more than that it hung up.
            Err(words) => Err(Unasked::Lost(self.end(words))),
        }
    }

    /// Waits for an answer. A broker that owes one for too long is not waited for any more by anybody: it may be gone
    /// without a word, and another one, or the same after a new look at its name, may do better.
    pub(super) async fn answer(&self, awaited: Awaited) -> Result<Message, String> {
        match timeout(ANSWER_LIMIT, awaited.0).await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(_)) => Err(self.end("it hung up".to_owned())),
            Err(_) => Err(self.end(format!("it did not answer within {} s", ANSWER_LIMIT.as_secs()))),
        }
    }

    /// Ends the connection for this reason, or for the one that ended it before; says which.
    fn end(&self, words: String) -> String {
        self.shared.over.notify_one();
        self.shared.end(words)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("never poisoned, because nothing panics while it is held")
    }

    async fn write(&self, bytes: &[u8]) -> Result<(), String> {
        match self.writer.lock().await.as_mut() {
            Some(writer) => writer.write(bytes).await,
            None => Err("it hung up".to_owned()),
        }
    }

    fn expect(&self, number: u64, waiter: Waiter) -> Result<(), String> {
        let mut waiting = self.waiting();
        if let Some(words) = &waiting.ended {
            return Err(words.clone());
        }
        if waiting.for_answers.len() >= WAITING_MAX {
            return Err(format!("it owes {WAITING_MAX} answers"));
        }
        waiting.for_answers.insert(number, waiter);
        Ok(())
    }

    /// Who waits for this answer, and will not any more; nobody where nobody asked.
    fn waiter(&self, number: Option<u64>, bytes: usize) -> Result<Option<Waiter>, String> {
        let mut waiting = self.waiting();
        let Some(number) = number else { return Ok(None) };
        match waiting.for_answers.get(&number) {
            Some(waiter) if bytes > waiter.bytes_max => {
                Err(format!("it answered with {bytes} bytes, expected at most {}", waiter.bytes_max))
            }
            _ => Ok(waiting.for_answers.remove(&number)),
        }
    }

    /// From here on nobody waits, and nobody begins to.
    fn end(&self, words: String) -> String {
        let mut waiting = self.waiting();
        waiting.for_answers = HashMap::new();
        waiting.ended.get_or_insert(words).clone()
    }

    fn note(&self, info: &Info) {
        if let Some(most) = info.max_payload {
            self.payload_bytes_max.store(most, Ordering::Relaxed);
        }
    }
}

/// The way to the broker.
struct Writer {
    stream: WriteHalf<Box<dyn Stream>>,
    /// Whoever is interrupted while he writes leaves half a message behind; what came after it would be taken for the rest.
    is_whole: bool,
}

impl Writer {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        if !self.is_whole {
            return Err("something was sent to it in part only".to_owned());
        }
        self.is_whole = false;
        write(&mut self.stream, bytes).await?;
        self.is_whole = true;
        Ok(())
    }
}

/// Writes all of it, within the time limit.
async fn write<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), String> {
    let writing = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    match timeout(WRITE_LIMIT, writing).await {
        Ok(written) => written.map_err(|error| lost(&error)),
        Err(_) => Err(format!("it did not take what was sent to it within {} s", WRITE_LIMIT.as_secs())),
    }
}

/// The way from the broker.
struct Reader {
    stream: ReadHalf<Box<dyn Stream>>,
    inbound: Inbound,
    unasked: Patience,
    inbox: String,
}

impl Reader {
    /// Until the connection ends; then both ways are closed, whoever still holds on to it.
    async fn run(mut self, shared: Arc<Shared>) {
        let words = tokio::select! {
            Err(words) = self.listen(&shared) => words,
            () = shared.over.notified() => "it was hung up on".to_owned(),
        };
        shared.end(words);
        drop(self);
        shared.writer.lock().await.take();
    }

    async fn listen(&mut self, shared: &Shared) -> Result<std::convert::Infallible, String> {
        loop {
            match said(&mut self.stream, &mut self.inbound).await? {
                Said::Message(message) => {
                    if let Some(waiter) = shared.waiter(self.number(&message), message.payload.len())? {
                        // Whoever asked may have left.
                        let _ = waiter.answer.send(message);
                        continue;
                    }
                }
                Said::Pong | Said::Fine => {}
                Said::Ping => shared.write(wire::PONG).await?,
                Said::Info(info) => shared.note(&info),
                Said::Error(words) => return Err(has_said(&words)),
            }
            self.unasked.lose_some()?;
        }
    }

    /// What it answers, if anything.
    fn number(&self, message: &Message) -> Option<u64> {
        message.subject.strip_prefix(&self.inbox)?.parse().ok()
    }
}

/// How much more is listened to that nobody asked for.
struct Patience {
    since: Instant,
    heard: u32,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { since: Instant::now(), heard: 0 }
    }
}

impl Patience {
    fn lose_some(&mut self) -> Result<(), String> {
        if self.since.elapsed() > UNASKED_WINDOW {
            *self = Patience::default();
        }
        self.heard += 1;
        match self.heard > UNASKED_MAX {
            true => Err(format!("it said more than {UNASKED_MAX} things in a minute that nobody asked for")),
            false => Ok(()),
        }
    }
}

fn lost(error: &dyn Display) -> String {
    format!("the connection was lost: {error}")
}

fn has_said(words: &str) -> String {
    format!("it says: {words}")
}
