//! How an event looks outside: CloudEvents 1.0, structured.

use serde_json::{Value as Json, json};
use stakeout_core::Event;

/// The content type of an event.
pub const CONTENT_TYPE: &str = "application/cloudevents+json";

/// An event as a CloudEvent. `id` is the same however often it is sent; `sequence` is its number in the log.
pub fn cloud_event(event: &Event) -> Json {
    let mut cloud = json!({
        "specversion": "1.0",
        "id": event.id.to_string(),
        "source": format!("/sources/{}", event.source),
        "type": event.event_type,
        "subject": event.subject_key,
        "time": event.at,
        "datacontenttype": "application/json",
        "sequence": event.seq.to_string(),
        "target": event.target,
        "rule": event.rule,
        "record": event.subject.to_string(),
        "data": event.data,
    });
    if let (Some(key), Some(cloud)) = (&event.dedupe_key, cloud.as_object_mut()) {
        cloud.insert("dedupekey".to_owned(), json!(key));
    }
    cloud
}

#[cfg(test)]
mod tests {
    use stakeout_core::{EventId, Fingerprint, Time};

    use super::*;

    #[test]
    fn an_event_is_a_cloud_event_with_its_own_id() {
        let event = Event {
            seq: 7,
            id: EventId(1),
            event_type: "json.item.added".to_owned(),
            source: "prices".to_owned(),
            target: "main".to_owned(),
            rule: "added".to_owned(),
            subject: Fingerprint(2),
            subject_key: "A-17".to_owned(),
            at: Time::from_secs(1_800_000_000),
            dedupe_key: None,
            data: json!({"record": {"value": 3}}),
        };
        let cloud = cloud_event(&event);
        assert_eq!(cloud["specversion"], "1.0");
        assert_eq!(cloud["id"], event.id.to_string());
        assert_eq!(cloud["source"], "/sources/prices");
        assert_eq!(cloud["sequence"], "7");
        assert_eq!(cloud["time"], "2027-01-15T08:00:00.000Z");
        assert_eq!(cloud["data"]["record"]["value"], 3);
        assert!(cloud.get("dedupekey").is_none());
    }
}
