//! JetStream over a connection: whether a stream is there, making it, and publishing with an acknowledgement.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::connection::{Awaited, Connection, Question, Unasked};
use super::wire::{MESSAGE_BYTES_MAX, Message, Outbound};
use crate::cloud_event::CONTENT_TYPE;

/// How long a stream that we make remembers ids.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(60 * 60);
/// The largest acknowledgement: it names the stream and a number, or says in a few words what is wrong.
const ACK_BYTES_MAX: usize = 4 << 10;

/// Why an event is not in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The stream, or the broker, has something against this one and would take another.
    Refused(String),
    /// No stream takes what is sent there.
    NoStream(String),
    /// Nobody takes anything.
    Down(String),
}

/// Whether there is a stream, and what the broker says if not.
pub(super) enum Found {
    There,
    Missing(String),
}

/// Asks for a stream by name.
pub(super) async fn find(broker: &Connection, stream: &str) -> Result<Found, Fault> {
    match asked(broker, &format!("$JS.API.STREAM.INFO.{stream}"), b"").await? {
        Answer { config: Some(_), error: None, .. } => Ok(Found::There),
        Answer { error: Some(error), .. } => Ok(Found::Missing(error.words())),
        _ => Err(Fault::Down("expected to be told of the stream, found something else".to_owned())),
    }
}

/// Makes a stream that keeps everything sent below a subject.
pub(super) async fn create(broker: &Connection, stream: &str, subject: &str) -> Result<(), Fault> {
    let wanted = json!({
        "name": stream, "subjects": [format!("{subject}.>")],
        "duplicate_window": u64::try_from(DUPLICATE_WINDOW.as_nanos()).unwrap_or(u64::MAX),
        "storage": "file", "retention": "limits", "discard": "old", "num_replicas": 1,
        "max_consumers": -1, "max_msgs": -1, "max_msgs_per_subject": -1, "max_bytes": -1, "max_age": 0,
    });
    match asked(broker, &format!("$JS.API.STREAM.CREATE.{stream}"), wanted.to_string().as_bytes()).await? {
        Answer { config: Some(_), error: None, .. } => Ok(()),
        Answer { error: Some(error), .. } => Err(Fault::Down(error.words())),
        _ => Err(Fault::Down("expected to be told of the new stream, found something else".to_owned())),
    }
}

async fn asked(broker: &Connection, subject: &str, payload: &[u8]) -> Result<Answer, Fault> {
    let message = Outbound { subject, headers: &[], payload };
    let question = Question { message, answer_bytes_max: MESSAGE_BYTES_MAX };
    let awaited = broker.ask(&question).await.map_err(|error| match error {
        // No event is to blame for a broker that does not even take a question.
        Unasked::TooLarge(words) | Unasked::Lost(words) => Fault::Down(words),
    })?;
    let answer = broker.answer(awaited).await.map_err(Fault::Down)?;
    read(&answer, "JetStream is not there: is it switched on, and for this account?")
}

/// Sends an event on its way; that it is in the stream is known when it is acknowledged.
pub(super) async fn publish(
    broker: &Connection,
    subject: &str,
    id: &str,
    body: &str,
) -> Result<Awaited, Fault> {
    let headers = [("Nats-Msg-Id", id), ("Content-Type", CONTENT_TYPE)];
    let message = Outbound { subject, headers: &headers, payload: body.as_bytes() };
    broker.ask(&Question { message, answer_bytes_max: ACK_BYTES_MAX }).await.map_err(unasked)
}

/// Waits until the stream has it.
pub(super) async fn acknowledged(broker: &Connection, awaited: Awaited) -> Result<(), Fault> {
    judged(&broker.answer(awaited).await.map_err(Fault::Down)?)
}

fn judged(answer: &Message) -> Result<(), Fault> {
    match read(answer, "no stream takes what is sent to this subject")? {
        Answer { error: Some(error), .. } if error.is_about_this_one() => Err(Fault::Refused(error.words())),
        Answer { error: Some(error), .. } => Err(Fault::Down(error.words())),
        Answer { stream: Some(_), seq: Some(_), .. } => Ok(()),
        _ => Err(Fault::Down("expected an acknowledgement, found something else".to_owned())),
    }
}

fn unasked(error: Unasked) -> Fault {
    match error {
        Unasked::TooLarge(words) => Fault::Refused(words),
        Unasked::Lost(words) => Fault::Down(words),
    }
}

/// What JetStream answers, of which nobody looks at more.
#[derive(Deserialize)]
struct Answer {
    error: Option<ApiError>,
    /// Of a stream.
    config: Option<IgnoredAny>,
    /// Of an acknowledgement.
    stream: Option<IgnoredAny>,
    seq: Option<u64>,
}

#[derive(Deserialize)]
struct ApiError {
    code: u16,
    #[serde(default)]
    err_code: u32,
    #[serde(default)]
    description: String,
}

impl ApiError {
    /// Whether the stream has something against this event (it is too large for it, say) and would take another. What it
    /// cannot do for anybody (no space, no leader) is not the event's fault, and everything waits.
    fn is_about_this_one(&self) -> bool {
        /// A bad request, as in HTTP.
        const BAD_REQUEST: u16 = 400;
        /// Said in the same way, but the account is full.
        const ACCOUNT_RESOURCES_EXCEEDED: u32 = 10_002;
        self.code == BAD_REQUEST && self.err_code != ACCOUNT_RESOURCES_EXCEEDED
    }

    fn words(&self) -> String {
        format!("{} (code {}, error {})", self.description, self.code, self.err_code)
    }
}

fn read(message: &Message, if_nobody_answers: &str) -> Result<Answer, Fault> {
    /// Nobody listens at the subject.
    const NO_RESPONDERS: u16 = 503;
    if message.status == Some(NO_RESPONDERS) {
        return Err(Fault::NoStream(if_nobody_answers.to_owned()));
    }
    serde_json::from_slice(&message.payload)
        .map_err(|_| Fault::Down("expected an answer of JetStream in JSON, found something else".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_is_judged_by_who_is_to_blame() {
        let judged = |status: Option<u16>, payload: &str| {
            let answer = Message { subject: "r".to_owned(), status, payload: payload.into() };
            match judged(&answer) {
                Ok(()) => "taken",
                Err(Fault::Refused(_)) => "refused",
                Err(Fault::NoStream(_)) => "no stream",
                Err(Fault::Down(_)) => "down",
            }
        };
        assert_eq!(judged(None, r#"{"stream":"S","seq":7}"#), "taken");
        assert_eq!(judged(None, r#"{"stream":"S","seq":7,"duplicate":true,"domain":"d"}"#), "taken");
        let error = |code: u16, err_code: u32| {
            judged(
                None,
                &format!(
                    r#"{{"error":{{"code":{code},"err_code":{err_code},"description":"no"}},"stream":"S","seq":0}}"#
                ),
            )
        };
        assert_eq!(error(400, 10_054), "refused");
        assert_eq!(error(400, 10_002), "down");
        assert_eq!(error(503, 10_077), "down");
        assert_eq!(error(500, 0), "down");
        assert_eq!(judged(Some(503), ""), "no stream");
        for nonsense in ["", "[]", "{}", "+ACK", r#"{"stream":"S"}"#, r#"{"error":{}}"#] {
            assert_eq!(judged(None, nonsense), "down", "{nonsense}");
        }
    }
}
