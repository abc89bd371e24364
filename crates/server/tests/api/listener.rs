//! A client of the stream that knows what it has heard.

use serde_json::Value as Json;

use crate::support::{Scene, within};

/// A message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Json,
}

/// A stream being read.
pub(crate) struct Listener {
    response: reqwest::Response,
    text: String,
}

impl Listener {
    /// Opens a stream; `query` with its question mark.
    pub(crate) async fn open(scene: &Scene, query: &str, last_event_id: Option<u64>) -> Listener {
        let mut request = scene.http.get(scene.url(&format!("/v1/events/stream{query}")));
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = within(request.send()).await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Listener { response, text: String::new() }
    }

    /// The next message; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let parsed = parse(message);
                self.text = rest.to_owned();
                match parsed {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let bytes = within(self.response.chunk()).await.ok()??;
            self.text.push_str(std::str::from_utf8(&bytes).expect("text"));
        }
    }

    /// The next message of that name; others are passed by.
    pub(crate) async fn next_named(&mut self, name: &str) -> Message {
        loop {
            let message = self.next().await.expect("the stream goes on");
            if message.name == name {
                return message;
            }
        }
    }

    /// The numbers of the next `n` events.
    pub(crate) async fn events(&mut self, n: usize) -> Vec<u64> {
        let mut seqs = Vec::with_capacity(n);
        while seqs.len() < n {
            seqs.push(self.next_named("event").await.id.expect("every event has a number"));
        }
        seqs
    }
}

fn parse(text: &str) -> Option<Message> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let name = field("event")?.to_owned();
    let id = field("id").map(|id| id.parse().expect("a number"));
    let data = serde_json::from_str(field("data").expect("data")).expect("JSON");
    Some(Message { name, id, data })
}
