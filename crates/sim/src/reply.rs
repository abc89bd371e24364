//! What a client of a simulated upstream gets.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use stakeout_core::{Span, Time};

use crate::act::Act;
use crate::rng::SplitMix64;
use crate::wire::header;

/// An answer that arrives whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Headers, without a length.
    pub headers: Vec<(String, String)>,
    /// Body; compressed when the headers say so.
    pub body: Bytes,
}

/// What a client gets: an answer, or less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A whole answer, right or wrong.
    Answer(Answer),
    /// The connection is reset.
    Reset,
    /// Nothing, ever.
    Timeout,
    /// The connection ends after `sent` bytes of the body.
    Truncated {
        /// The answer that was begun.
        answer: Answer,
        /// How much of its body came.
        sent: usize,
    },
}

impl Answer {
    /// A JSON answer, compressed when the request's headers allow it.
    pub(crate) fn json(status: u16, body: Bytes, asked_with: &[(String, String)]) -> Answer {
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        let gzip = header(asked_with, "Accept-Encoding").is_some_and(|accepted| accepted.contains("gzip"));
        if !gzip {
            return Answer { status, headers, body };
        }
        headers.push(("Content-Encoding".to_owned(), "gzip".to_owned()));
        let mut packed = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        packed.write_all(&body).expect("writing to memory cannot fail");
        let body = packed.finish().expect("writing to memory cannot fail");
        Answer { status, headers, body: body.into() }
    }

    /// A page where JSON was expected.
    pub(crate) fn html(status: u16, body: &'static str) -> Answer {
        let headers = vec![("Content-Type".to_owned(), "text/html".to_owned())];
        Answer { status, headers, body: Bytes::from_static(body.as_bytes()) }
    }

    /// The same answer, with `Retry-After` in seconds, as a date, or not at all.
    pub(crate) fn with_retry_hint(mut self, draws: &mut SplitMix64, now: Time) -> Answer {
        let wait = draws.between(1, 8) as i64;
        let hint = match draws.between(0, 2) {
            0 => return self,
            1 => wait.to_string(),
            _ => http_date(now + Span::secs(wait + 1)),
        };
        self.headers.push(("Retry-After".to_owned(), hint));
        self
    }

    /// The connection breaks somewhere within the body.
    pub(crate) fn truncated(self, draws: &mut SplitMix64) -> Reply {
        let sent = self.body.len() * draws.between(1, 9) as usize / 10;
        Reply::Truncated { answer: self, sent }
    }
}

fn http_date(at: Time) -> String {
    let utc = jiff::Timestamp::from_microsecond(at.us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    utc.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

impl From<Reply> for Act {
    fn from(reply: Reply) -> Act {
        match reply {
            Reply::Answer(answer) => {
                Act::Answer { status: answer.status, headers: answer.headers, body: answer.body }
            }
            Reply::Reset => Act::Reset,
            Reply::Timeout => Act::Hang,
            Reply::Truncated { answer, sent } => {
                let act = Act::Truncated { body: answer.body, sent };
                Act::Headed { headers: answer.headers, act: Box::new(act) }
            }
        }
    }
}
