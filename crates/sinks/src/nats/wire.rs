//! What goes over the wire: a broker's words out of bytes, and ours into bytes. Nothing here reads or writes by itself.
//!
//! Nothing that a broker says is kept beyond a limit: a line that does not end and a message that is too large are errors
//! as soon as that is known, which for a message is before its first byte.

use bytes::buf::Limit;
use bytes::{Buf, BufMut, BytesMut};
use serde::Deserialize;
use serde_json::Value as Json;

/// The longest line: a large cluster introduces itself with a list of all its servers.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest line that is no introduction, as NATS servers themselves have it.
const SHORT_LINE_BYTES_MAX: usize = 4 << 10;
/// The largest message, with its headers; what is told of a stream names all its subjects.
pub(super) const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// What is read at once.
const READ_BYTES: usize = 16 << 10;

/// What a broker can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Who it is, and what it takes.
    Info(Info),
    /// An answer to something that was asked, or what somebody else published.
    Message(Message),
    /// Whether we are there.
    Ping,
    /// That it is there.
    Pong,
    /// That it has understood.
    Fine,
    /// What it has against us.
    Error(String),
}

/// How a broker introduces itself; what else it tells, such as where its friends are, is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    /// The largest message that it takes, with its headers.
    pub(super) max_payload: Option<usize>,
    /// Whether it goes on only over TLS.
    pub(super) tls_required: bool,
    /// What it wants to see signed by whoever has a key.
    pub(super) nonce: String,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Where it was sent to.
    pub(super) subject: String,
    /// What the broker itself has to say about it, as in HTTP.
    pub(super) status: Option<u16>,
    /// Its content.
    pub(super) payload: Vec<u8>,
}

/// Words that cannot be a broker's, or more of them than anybody keeps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WireError {
    #[error("it sent a line of more than {0} bytes: is this a NATS server?")]
    LineTooLong(usize),
    #[error("it announced a message of {0} bytes, expected at most {MESSAGE_BYTES_MAX}")]
    MessageTooLarge(usize),
    #[error("it introduced itself with something that is no JSON: is this a NATS server?")]
    Introduction,
    // Whole, so that a secret in it is found; whoever shows it makes it shorter.
    #[error("it sent {0:?}, expected a word of the NATS protocol: is this a NATS server?")]
    Unknown(String),
}

/// What was read and is not understood yet: never more than a line or a message, and what one read brought beyond it.
#[derive(Default)]
pub(super) struct Inbound {
    bytes: BytesMut,
    /// So much of it is known to have no end of a line.
    searched: usize,
    /// The message whose content comes next.
    announced: Option<Announced>,
}

/// A message of which the line was read.
struct Announced {
    subject: String,
    header_bytes: usize,
    total_bytes: usize,
}

impl Inbound {
    /// Where what is read next belongs, and how much of it.
    pub(super) fn room(&mut self) -> Limit<&mut BytesMut> {
        self.bytes.reserve(READ_BYTES);
        (&mut self.bytes).limit(READ_BYTES)
    }

    /// Whether everything that was read is understood.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.announced.is_none()
    }

    /// The next thing that was said; `None` until more is read. After an error there is nothing to go on with.
    pub(super) fn next(&mut self) -> Result<Option<Said>, WireError> {
        if self.announced.is_none() {
            let Some(line) = self.line()? else { return Ok(None) };
            match operation(&line)? {
                Heard::All(said) => return Ok(Some(said)),
                Heard::Announced(message) => self.announced = Some(message),
            }
        }
        self.message()
    }

    fn line(&mut self) -> Result<Option<BytesMut>, WireError> {
        let looked_at = self.bytes.len().min(LINE_BYTES_MAX + 1);
        let found = self.bytes[self.searched..looked_at].iter().position(|byte| *byte == b'\n');
        let Some(more) = found else {
            self.searched = looked_at;
            let is_too_long = looked_at > LINE_BYTES_MAX;
            return if is_too_long { Err(WireError::LineTooLong(LINE_BYTES_MAX)) } else { Ok(None) };
        };
        let mut line = self.bytes.split_to(self.searched + more);
        self.bytes.advance(1);
        self.searched = 0;
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Ok(Some(line))
    }

    /// The message that was announced, once it is all there with the end of line after it.
    fn message(&mut self) -> Result<Option<Said>, WireError> {
        let Some(message) = self.announced.take_if(|message| self.bytes.len() >= message.total_bytes + 2)
        else {
            return Ok(None);
        };
        let content = self.bytes.split_to(message.total_bytes);
        let end = self.bytes.split_to(2);
        if &end[..] != b"\r\n" {
            return Err(unknown(&end));
        }
        let (headers, payload) = content.split_at(message.header_bytes);
        Ok(Some(Said::Message(Message {
            subject: message.subject,
            status: status(headers),
            // A copy: otherwise a small message would keep everything that was read together with it.
            payload: payload.to_vec(),
        })))
    }
}

/// What a line says: all of it, or what comes after it.
enum Heard {
    All(Said),
    Announced(Announced),
}

fn operation(line: &[u8]) -> Result<Heard, WireError> {
    let (word, rest) =
        line.split_at(line.iter().position(|byte| b" \t".contains(byte)).unwrap_or(line.len()));
    if word.eq_ignore_ascii_case(b"INFO") {
        let info = serde_json::from_slice(rest).map_err(|_| WireError::Introduction)?;
        return Ok(Heard::All(Said::Info(info)));
    }
    if line.len() > SHORT_LINE_BYTES_MAX {
        return Err(WireError::LineTooLong(SHORT_LINE_BYTES_MAX));
    }
    let rest = std::str::from_utf8(rest).map_err(|_| unknown(line))?.trim();
    let said = match word.to_ascii_uppercase().as_slice() {
        b"PING" => Said::Ping,
        b"PONG" => Said::Pong,
        b"+OK" => Said::Fine,
        b"-ERR" => Said::Error(rest.trim_matches('\'').to_owned()),
        b"MSG" => return announced(rest, false).ok_or_else(|| unknown(line))?.map(Heard::Announced),
        b"HMSG" => return announced(rest, true).ok_or_else(|| unknown(line))?.map(Heard::Announced),
        _ => return Err(unknown(line)),
    };
    Ok(Heard::All(said))
}

/// `SUBJECT SID [REPLY] [HEADER_BYTES] TOTAL_BYTES`; `None` if it is not that.
fn announced(rest: &str, has_headers: bool) -> Option<Result<Announced, WireError>> {
    let mut words = rest.split_ascii_whitespace();
    let (subject, _subscription) = (words.next()?, words.next()?);
    let total: usize = words.next_back()?.parse().ok()?;
    let headers: usize = if has_headers { words.next_back()?.parse().ok()? } else { 0 };
    let _reply = words.next();
    if words.next().is_some() || headers > total {
        return None;
    }
    if total > MESSAGE_BYTES_MAX {
        return Some(Err(WireError::MessageTooLarge(total)));
    }
    Some(Ok(Announced { subject: subject.to_owned(), header_bytes: headers, total_bytes: total }))
}

/// The number in `NATS/1.0 503 …`.
fn status(headers: &[u8]) -> Option<u16> {
    let text = headers.strip_prefix(b"NATS/1.0")?;
    let first = text.split(|byte| *byte == b'\r').next()?;
    std::str::from_utf8(first).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

fn unknown(line: &[u8]) -> WireError {
    WireError::Unknown(String::from_utf8_lossy(line).into_owned())
}

/// Who we are, and whether it is there: its answer to the second comes after it has made up its mind about the first.
pub(super) fn connect(about_us: &Json) -> Vec<u8> {
    format!("CONNECT {about_us}\r\nPING\r\n").into_bytes()
}

/// That we are there.
pub(super) const PONG: &[u8] = b"PONG\r\n";

/// That we want to hear what is sent to a subject.
pub(super) fn subscribe(subject: &str) -> Vec<u8> {
    format!("SUB {subject} 1\r\n").into_bytes()
}

/// A message as it is written, with where its answer goes to.
pub(super) struct Outbound<'a> {
    pub(super) subject: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) payload: &'a [u8],
}

impl Outbound<'_> {
    fn header_text(&self) -> String {
        if self.headers.is_empty() {
            return String::new();
        }
        let lines: String = self.headers.iter().map(|(key, value)| format!("{key}: {value}\r\n")).collect();
        format!("NATS/1.0\r\n{lines}\r\n")
    }

    /// What counts towards the largest message that a broker takes.
    pub(super) fn bytes(&self) -> usize {
        self.header_text().len() + self.payload.len()
    }

    /// The bytes of it.
    pub(super) fn written(&self, reply: &str) -> Vec<u8> {
        let headers = self.header_text();
        let (subject, total) = (self.subject, headers.len() + self.payload.len());
        let line = match headers.len() {
            0 => format!("PUB {subject} {reply} {total}\r\n"),
            some => format!("HPUB {subject} {reply} {some} {total}\r\n"),
        };
        [line.as_bytes(), headers.as_bytes(), self.payload, b"\r\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is heard of bytes that come in pieces, up to what cannot be; and the most that was ever kept.
    fn heard(pieces: &[&[u8]]) -> (Vec<Result<Said, WireError>>, usize) {
        let (mut inbound, mut heard, mut most) = (Inbound::default(), Vec::new(), 0);
        for piece in pieces {
            inbound.bytes.extend_from_slice(piece);
            loop {
                match inbound.next() {
                    Ok(Some(said)) => heard.push(Ok(said)),
                    Ok(None) => break,
                    Err(error) => {
                        heard.push(Err(error));
                        return (heard, most);
                    }
                }
            }
            most = most.max(inbound.bytes.len());
        }
        (heard, most)
    }

    fn check(bytes: &[u8], expected: &[Result<Said, WireError>]) {
        assert_eq!(heard(&[bytes]).0, expected, "{:?}", String::from_utf8_lossy(bytes));
    }

    fn message(subject: &str, status: Option<u16>, payload: &str) -> Result<Said, WireError> {
        Ok(Said::Message(Message { subject: subject.to_owned(), status, payload: payload.into() }))
    }

    #[test]
    fn every_word_of_a_broker_is_understood() {
        let info = Info { max_payload: Some(1024), tls_required: true, nonce: "n".to_owned() };
        check(
            b"INFO {\"max_payload\":1024,\"tls_required\":true,\"nonce\":\"n\",\"connect_urls\":[\"x\"]} \r\n",
            &[Ok(Said::Info(info))],
        );
        check(
            b"PING\r\nPONG\r\n+OK\r\nping\r\n",
            &[Ok(Said::Ping), Ok(Said::Pong), Ok(Said::Fine), Ok(Said::Ping)],
        );
        check(
            b"-ERR 'Authorization Violation'\r\n",
            &[Ok(Said::Error("Authorization Violation".to_owned()))],
        );
        check(
            b"MSG a.b 1 5\r\nhello\r\nMSG a 1 b.c 0\r\n\r\n",
            &[message("a.b", None, "hello"), message("a", None, "")],
        );
        check(b"HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", &[message("a", Some(503), "")]);
        check(b"HMSG a 1 r 22 24\r\nNATS/1.0\r\nk: value\r\n\r\nhi\r\n", &[message("a", None, "hi")]);
    }

    #[test]
    fn what_cannot_be_a_brokers_word_is_an_error() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"\r\n",
            b"MSG a 1\r\n",
            b"MSG a 1 -1\r\n",
            b"MSG a 1 b c 1\r\n",
            b"HMSG a 1 5\r\n",
            b"HMSG a 1 9 5\r\n",
            b"MSG a 1 99999999999999999999999\r\n",
            b"MSG a 1 1\r\nabc",
            b"\xff\xfe\r\n",
        ] {
            let (heard, _) = heard(&[bytes]);
            assert!(matches!(heard[..], [Err(WireError::Unknown(_))]), "{bytes:?}: {heard:?}");
        }
        check(b"INFO {\r\n", &[Err(WireError::Introduction)]);
    }

    #[test]
    fn what_is_too_long_is_known_before_it_is_kept() {
        let line = |word: &str, length: usize| {
            [word, &" ".repeat(length - word.len()), "\r\n"].concat().into_bytes()
        };
        check(&line("+OK", SHORT_LINE_BYTES_MAX), &[Ok(Said::Fine)]);
        check(&line("+OK", SHORT_LINE_BYTES_MAX + 1), &[Err(WireError::LineTooLong(SHORT_LINE_BYTES_MAX))]);
        // With the end of the line.
        check(&line("INFO {}", LINE_BYTES_MAX - 1), &[Ok(Said::Info(Info::default()))]);
        check(&line("INFO {}", LINE_BYTES_MAX), &[Err(WireError::LineTooLong(LINE_BYTES_MAX))]);
        let endless = b"x".repeat(10_000);
        let (all, most) = heard(&[&endless[..]; 100]);
        assert_eq!(all, [Err(WireError::LineTooLong(LINE_BYTES_MAX))]);
        assert!(most <= LINE_BYTES_MAX, "{most}");
        let largest = format!("MSG a 1 {MESSAGE_BYTES_MAX}\r\n{}\r\n", "x".repeat(MESSAGE_BYTES_MAX));
        assert!(heard(&[largest.as_bytes()]).0[0].is_ok());
        check(
            format!("MSG a 1 {}\r\n", MESSAGE_BYTES_MAX + 1).as_bytes(),
            &[Err(WireError::MessageTooLarge(MESSAGE_BYTES_MAX + 1))],
        );
        check(b"HMSG a 1 0 9000000000\r\n", &[Err(WireError::MessageTooLarge(9_000_000_000))]);
    }

    #[test]
    fn a_message_is_written_with_where_its_answer_goes() {
        let plain = Outbound { subject: "$JS.API.X", headers: &[], payload: b"{}" };
        assert_eq!(plain.written("r.1"), b"PUB $JS.API.X r.1 2\r\n{}\r\n");
        let headed = Outbound { subject: "a.b", headers: &[("Nats-Msg-Id", "7")], payload: b"hi" };
        assert_eq!(headed.written("r.2"), b"HPUB a.b r.2 28 30\r\nNATS/1.0\r\nNats-Msg-Id: 7\r\n\r\nhi\r\n");
        assert_eq!(headed.bytes(), 30);
    }

    /// Something a broker might say, or nearly.
    fn words() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"PING\r\n".to_vec()),
            Just(b"PONG\r\n".to_vec()),
            Just(b"+OK\r\n".to_vec()),
            Just(b"-ERR 'no'\r\n".to_vec()),
            Just(b"INFO {\"max_payload\":9}\r\n".to_vec()),
            "[a-z\r\n ]{0,40}"
                .prop_map(|text| format!("MSG a.b 1 {}\r\n{text}\r\n", text.len()).into_bytes()),
            "[a-z ]{0,40}".prop_map(|text| {
                let total = text.len() + 16;
                format!("HMSG a.b 1 r 16 {total}\r\nNATS/1.0 503\r\n\r\n{text}\r\n").into_bytes()
            }),
            "[A-Z+-]{0,5} [a-z0-9 ]{0,20}\r\n".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..20),
        ]
    }

    proptest! {
        #[test]
        fn any_split_of_the_bytes_says_the_same(
            said in proptest::collection::vec(words(), 0..12),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes = said.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
            prop_assert_eq!(heard(&pieces).0, heard(&[&bytes]).0);
        }

        #[test]
        fn nothing_that_is_sent_is_kept_beyond_the_limits(
            said in proptest::collection::vec(words(), 0..4),
            sizes in proptest::collection::vec(0usize..400_000, 0..4),
            byte in any::<u8>(),
            read in 1usize..20_000,
        ) {
            let mut bytes = said.concat();
            for size in sizes {
                bytes.extend_from_slice(format!("MSG a 1 {size}\r\n").as_bytes());
                bytes.extend(std::iter::repeat_n(byte, size));
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend(std::iter::repeat_n(byte, 100_000));
            let pieces: Vec<&[u8]> = bytes.chunks(read).collect();
            let (_, most) = heard(&pieces);
            prop_assert!(most <= MESSAGE_BYTES_MAX + 2 + read, "{} bytes were kept", most);
        }
    }
}
