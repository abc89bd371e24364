//! What goes over the wire of a stream.

use bytes::Bytes;
use serde_json::json;
use stakeout_core::Event;
use stakeout_store::KvRow;

/// How long a client waits before it comes back.
const RETRY_MS: u32 = 2_000;

/// The first line: how soon to come back when the stream breaks.
pub(crate) fn hello() -> Bytes {
    format!("retry: {RETRY_MS}\n\n").into()
}

/// An event; its id is the sequence number.
pub(crate) fn event(event: &Event) -> Bytes {
    named("event", Some(event.seq), &crate::events::Event::from(event))
}

/// A published value; no id, because it is no part of the log.
pub(crate) fn kv(row: &KvRow) -> Bytes {
    untold("kv", row)
}

/// Something that is no part of the log and has no id.
pub(crate) fn untold<T: serde::Serialize>(name: &str, data: &T) -> Bytes {
    named(name, None, data)
}

/// Everything up to this number has gone by, whether the client wanted it or not.
pub(crate) fn heartbeat(seq: u64) -> Bytes {
    named("heartbeat", Some(seq), &json!({ "seq": seq }))
}

/// What came after `after` up to `from` is gone: look at everything anew, then go on from here.
pub(crate) fn resync(after: u64, from: u64) -> Bytes {
    named("resync", Some(from), &json!({ "after": after, "from": from }))
}

fn named<T: serde::Serialize>(name: &str, id: Option<u64>, data: &T) -> Bytes {
    // JSON has no line ends outside of strings, and none in them: one `data:` line is enough.
    let data = serde_json::to_string(data).expect("what is sent here is always JSON");
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n").into()
}
