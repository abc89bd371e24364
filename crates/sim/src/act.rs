//! What a simulated upstream does with one request: the fault table.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// What the upstream does with one request. Every way to fail that a client must survive is one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// A well-formed answer.
    Answer {
        /// HTTP status code.
        status: u16,
        /// Headers; a `Content-Length` here replaces the true one.
        headers: Vec<(String, String)>,
        /// Body, sent whole.
        body: Bytes,
    },
    /// A JSON body, compressed, with the right `Content-Encoding`.
    Gzip(Bytes),
    /// The connection is reset (RST) before any byte of the answer.
    Reset,
    /// The connection is reset in the middle of a JSON body.
    ResetMidBody,
    /// The request is taken and never answered. Ends when the client leaves or the server stops.
    Hang,
    /// A JSON body that arrives in small pieces.
    Drip {
        /// The whole body, correctly announced.
        body: Bytes,
        /// Bytes per piece, at least 1.
        chunk: usize,
        /// The pause between two pieces.
        every: Duration,
    },
    /// `Content-Length` announces all of `body`, `sent` bytes of it follow, then the connection closes.
    Truncated {
        /// The body that is announced.
        body: Bytes,
        /// How much of it is sent.
        sent: usize,
    },
    /// A gzip body of zeros: about a thousandth on the wire of what it inflates to.
    GzipBomb {
        /// Size after inflating.
        inflated_bytes: u64,
    },
    /// A body of that size, announced by `Content-Length` and sent without ever being held in memory.
    Huge {
        /// Size of the body.
        bytes: u64,
    },
    /// The same, but chunked: the client cannot know the size from the head.
    HugeUnannounced {
        /// Size of the body.
        bytes: u64,
    },
    /// A body under a lying type: markup (first byte `<`) as `application/json`, all else as `text/html`.
    WrongContentType(Bytes),
    /// A JSON body with bytes that are no UTF-8.
    InvalidUtf8,
    /// A 302 to that location.
    Redirect(String),
    /// These bytes as they are, then the connection closes.
    Raw(Bytes),
    /// Waits, then acts. A client that leaves meanwhile is noticed.
    Delay {
        /// How long, in milliseconds of real time.
        ms: u64,
        /// What follows.
        then: Box<Act>,
    },
    /// A JSON body with an `ETag`; 304 when `If-None-Match` names it.
    Conditional {
        /// The entity tag, quotes included.
        etag: String,
        /// The body.
        body: Bytes,
    },
    /// A JSON body with `Last-Modified`; 304 when `If-Modified-Since` repeats it exactly.
    ConditionalSince {
        /// An HTTP date, compared as text because clients must echo it unchanged.
        last_modified: String,
        /// The body.
        body: Bytes,
    },
    /// Another act, with headers added to its head, replacing those of the same name.
    Headed {
        /// The headers.
        headers: Vec<(String, String)>,
        /// The act whose head they join. Acts without a head (`Reset`, `Hang`, `Raw`) ignore them.
        act: Box<Act>,
    },
}

impl Act {
    /// 200 with a JSON body.
    pub fn json(value: &Value) -> Act {
        Act::body("application/json", value.to_string())
    }

    /// 200 with a body of that content type.
    pub fn body(content_type: &str, body: impl Into<Bytes>) -> Act {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Act::Answer { status: 200, headers, body: body.into() }
    }

    /// A status without a body.
    pub fn status(status: u16) -> Act {
        Act::Answer { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// The same act with that header, instead of any of the same name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Act {
        let header = (name.to_owned(), value.to_owned());
        match self {
            Act::Answer { status, mut headers, body } => {
                headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                headers.push(header);
                Act::Answer { status, headers, body }
            }
            Act::Delay { ms, then } => Act::Delay { ms, then: Box::new(then.header(name, value)) },
            Act::Headed { mut headers, act } => {
                headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                headers.push(header);
                Act::Headed { headers, act }
            }
            act => Act::Headed { headers: vec![header], act: Box::new(act) },
        }
    }

    /// The same act, `ms` milliseconds later.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Act {
        Act::Delay { ms, then: Box::new(self) }
    }
}
