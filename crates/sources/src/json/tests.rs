use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;
use stakeout_core::{Coverage, Method, Response, Value};

use super::*;

fn config(json: Json) -> JsonConfig {
    let mut all = json!({ "url": "https://example.org/items" });
    for (name, value) in json.as_object().expect("an object") {
        all[name] = value.clone();
    }
    serde_json::from_value(all).expect("a configuration")
}

fn source(json: Json) -> JsonSource {
    JsonSource::new("shop", &config(json), vec![]).expect("a source")
}

fn refused(json: Json) -> String {
    match JsonSource::new("shop", &config(json), vec![]) {
        Ok(_) => "accepted".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

fn answer(body: impl Into<Bytes>) -> Exchange {
    let response = Response { status: 200, body: body.into(), content_type: None, age: Span::ZERO };
    Exchange { request: Request::get("x"), result: Ok(response), sent: Time(0), ended: Time(1) }
}

fn normalize(source: &JsonSource, body: impl Into<Bytes>) -> Result<Observation, Failure> {
    let target = source.roots(Time(0)).remove(0);
    let facts = Facts::default();
    source.normalize(&target, &[answer(body)], &PollContext { now: Time(0), facts: &facts })
}

/// The keys and bodies of the records, or the failure.
fn seen(configuration: Json, body: &str) -> String {
    match normalize(&source(configuration), body.to_owned()) {
        Ok(observation) => {
            let records = observation.records.iter();
            let lines: Vec<String> = records.map(|r| format!("{} {}", r.key, json!(r.body()))).collect();
            let warnings: Vec<String> =
                observation.warnings.iter().map(|w| format!(" !{}", w.code)).collect();
            format!("{} {}{}", observation.coverage.name(), lines.join("; "), warnings.concat())
        }
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn answers_are_read_as_configured() {
    let keyed = json!({ "key": "id", "fields": ["price"] });
    let nested = json!({ "records": "data.items", "key": ["shop.id", "no"], "fields": ["price"] });
    let named = json!({ "key": "id", "fields": { "last": { "path": "p.last", "type": "float" } } });
    for (configuration, body, expected) in [
        (
            keyed.clone(),
            r#"[{"id":1,"price":2.50},{"id":"b"}]"#,
            r#"complete 1 {"price":2.5}; b {"price":null}"#,
        ),
        (keyed.clone(), r#"{"id":1,"price":3}"#, r#"complete 1 {"price":3}"#),
        (keyed.clone(), "[]", "complete "),
        (keyed.clone(), "\u{feff}[]", "complete "),
        (
            keyed.clone(),
            r#"[{"id":18446744073709551615}]"#,
            r#"complete 18446744073709551615 {"price":null}"#,
        ),
        (keyed.clone(), r#"[{"id":1.0,"price":1}]"#, r#"complete 1 {"price":1}"#),
        // No usable key: left out, and absence proves nothing.
        (keyed.clone(), r#"[{"id":1},{"id":null},{"id":""},7]"#, r#"partial 1 {"price":null} !no_key"#),
        (keyed.clone(), "[{\"id\":\"a\\u0000b\"}]", "complete a\u{fffd}b {\"price\":null} !nul"),
        (
            nested.clone(),
            r#"{"data":{"items":[{"shop":{"id":7},"no":1,"price":5}]}}"#,
            r#"complete 7|1 {"price":5}"#,
        ),
        (
            nested.clone(),
            r#"{"data":{"error":"busy"}}"#,
            "malformed: expected records at `data.items`, found nothing there in an object with data",
        ),
        (
            nested,
            r#"{"data":{"items":3}}"#,
            "malformed: expected an array or an object at data.items, found the number 3",
        ),
        (named.clone(), r#"[{"id":1,"p":{"last":"12.50"}}]"#, r#"complete 1 {"last":12.5}"#),
        (named, r#"[{"id":1,"p":{"last":"soon"}}]"#, r#"complete 1 {"last":null} !bad_field"#),
        // Nothing named: the whole document is one record of the target.
        (json!({ "ignore": ["at"] }), r#"{"at":5,"on":true}"#, r#"complete main {"value":{"on":true}}"#),
        (json!({}), "42", r#"complete main {"value":42}"#),
        (
            json!({}),
            "[1]",
            "malformed: expected one record, because no `key` is configured; found an array: set `key` to what identifies a record",
        ),
        (
            json!({ "as_of": "t", "ignore": ["t"] }),
            r#"{"t":"soon"}"#,
            r#"complete main {"value":{}} !no_as_of"#,
        ),
    ] {
        assert_eq!(seen(configuration, body), expected, "{body}");
    }
}

#[test]
fn what_is_not_json_is_named() {
    let keyed = json!({ "key": "id" });
    for (body, expected) in [
        ("", "malformed: expected JSON, found an empty body: EOF while parsing a value at line 1 column 0"),
        (
            "<html>\n<body>Down for maintenance until tomorrow morning</body>",
            "malformed: expected JSON, found 63 bytes beginning \"<html> <body>Down for maintenance until \": expected value at line 1 column 1",
        ),
        (
            r#"[{"id":1},{"i"#,
            "malformed: expected JSON, found 13 bytes beginning \"[{\\\"id\\\":1},{\\\"i\": EOF while parsing a string at line 1 column 13",
        ),
        (
            r#"[{"id":"\ud800"}]"#,
            "malformed: expected JSON, found 17 bytes beginning \"[{\\\"id\\\":\\\"\\\\ud800\\\"}]\": unexpected end of hex escape at line 1 column 15",
        ),
    ] {
        assert_eq!(seen(keyed.clone(), body), expected);
    }
    let invalid = normalize(&source(keyed.clone()), &b"[\"\xff\xfe\"]"[..]).expect_err("not UTF-8");
    assert_eq!(invalid.class, FailureClass::Malformed);
    let deep = "[".repeat(100_000);
    assert_eq!(normalize(&source(keyed), deep).expect_err("too deep").class, FailureClass::Malformed);
}

#[test]
fn an_answer_says_how_old_it_is() {
    let stamped = |as_of: &str| {
        let body = format!("{{\"at\":{as_of}}}");
        normalize(&source(json!({ "as_of": "at" })), body).expect("an answer").as_of
    };
    let expected = Time::parse("2026-01-10T02:00:00Z");
    for as_of in ["\"2026-01-10T15:00:00+13:00\"", "1768010400", "1768010400000", "1768010400.0"] {
        assert_eq!(stamped(as_of), expected, "{as_of}");
    }
    assert_eq!(stamped("1e300"), None);
}

#[test]
fn a_failed_exchange_is_a_failed_poll() {
    let source = source(json!({}));
    let mut exchange = answer("{}");
    exchange.result = Err(Failure::new(FailureClass::Timeout, "10 s"));
    let facts = Facts::default();
    let context = PollContext { now: Time(0), facts: &facts };
    let failure = source.normalize(&source.roots(Time(0))[0], &[exchange], &context).expect_err("failed");
    assert_eq!(failure.class, FailureClass::Timeout);
}

#[test]
fn each_id_is_a_target_with_its_own_url() {
    let source = source(json!({
        "url": "https://example.org/shops/{id}/items?of={id}", "ids": ["a b", "c/d"], "key": ["{id}", "no"], "every": "5s",
    }));
    let targets = source.roots(Time(0));
    assert_eq!(targets.iter().map(|t| t.key.as_str()).collect::<Vec<_>>(), ["a b", "c/d"]);
    let facts = Facts::default();
    let context = PollContext { now: Time(0), facts: &facts };
    let requests = source.requests(&targets[1], &[], &context);
    assert_eq!(requests[0].url, "https://example.org/shops/c%2Fd/items?of=c%2Fd");
    assert_eq!(requests[0].method, Method::Get);
    assert_eq!(requests[0].headers, [("accept".to_owned(), "application/json".to_owned())]);
    assert!(source.requests(&targets[1], &[answer("[]")], &context).is_empty());
    // Records that are numbered per shop are told apart by the shop.
    let records =
        source.normalize(&targets[0], &[answer("[{\"no\":1}]")], &context).expect("an answer").records;
    assert_eq!(records[0].key, "a b|1");
    assert_eq!(
        source.plan(&targets[0], &facts),
        Plan::Fixed(Fixed { every: Span::secs(5), eager: false, place: None })
    );
}

#[test]
fn groups_and_streams_and_rules_follow_the_configuration() {
    let source = source(json!({
        "key": "id", "group": "shop", "fields": ["price", "lastSeen"], "history": ["price"],
        "events": { "removed": false, "quiet": "30m", "first_of_group": true, "fields": ["price"], "dedupe": "{key}" },
    }));
    let body = r#"[{"id":1,"shop":"x"},{"id":2,"shop":"x"},{"id":3}]"#;
    let records = normalize(&source, body).expect("an answer").records;
    assert_eq!(records[0].group, records[1].group);
    assert_ne!(records[0].group, records[2].group);
    let kind = &source.kinds()[0];
    assert_eq!(kind.full_name(), "json_shop");
    assert_eq!(kind.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["price", "last_seen"]);
    assert_eq!(
        (kind.streams[0].name.as_str(), &kind.streams[0].fields),
        ("shop_history", &vec!["price".to_owned()])
    );
    let types: Vec<&str> = source.rules().iter().map(|r| r.event_type.as_str()).collect();
    assert_eq!(types, ["json.added", "json.changed"]);
    assert_eq!(source.rules()[1].quiet, Some(Span::mins(30)));
    assert_eq!(source.rules()[1].dedupe.as_deref(), Some("changed:{key}"));
}

#[test]
fn another_way_of_reading_is_another_meaning() {
    let meaning = |configuration: Json| source(configuration).roots(Time(0))[0].meaning;
    let base = meaning(json!({ "key": "id" }));
    assert_eq!(base, meaning(json!({ "key": ["id"], "every": "1s", "headers": {} })));
    for other in [
        json!({ "key": "name" }),
        json!({ "key": "id", "fields": ["price"] }),
        json!({ "key": "id", "ignore": ["at"] }),
        json!({ "key": "id", "records": "items" }),
        json!({ "key": "id", "url": "https://example.org/other" }),
    ] {
        assert_ne!(base, meaning(other.clone()), "{other}");
    }
}

#[test]
fn live_settings_apply_or_are_refused() {
    let source = source(json!({}));
    let apply = |name: &str, value: Json| {
        let settings = BTreeMap::from([(name.to_owned(), value)]);
        source.configured(&settings).map(|s| {
            let target = s.roots(Time(0)).remove(0);
            format!("{:?} {}", s.plan(&target, &Facts::default()), s.limits().concurrency)
        })
    };
    assert_eq!(
        apply("every_ms", json!(250)),
        Ok(format!("{:?} 4", Plan::Fixed(Fixed { every: Span::ms(250), eager: true, place: None })))
    );
    assert!(apply("concurrency", json!(9)).is_ok_and(|s| s.ends_with(" 9")));
    let error = |name: &str, value: Json| apply(name, value).expect_err("refused").to_string();
    assert_eq!(
        error("every_ms", json!(1)),
        "every_ms cannot be 1: give whole milliseconds from 10 to 31536000000"
    );
    assert!(error("evry_ms", json!(1)).contains("Known are every_ms, requests_per_second"));
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    for (configuration, expected) in [
        (
            json!({ "url": "example.org/x" }),
            "url: expected an absolute URL such as \"https://example.org/items.json\" (invalid format)",
        ),
        (
            json!({ "url": "https://me:pw@example.org/" }),
            "url: a name or password in a URL would reach logs: send it as a header instead",
        ),
        (
            json!({ "url": "https://example.org/{id}" }),
            "ids: `url` has {id}: list what to put there, ids = [\"…\"]",
        ),
        (json!({ "ids": ["a"] }), "url: `ids` are given: say where they go with {id}"),
        (json!({ "url": "https://example.org/{id}", "ids": ["a", "a"] }), "ids: \"a\" is there twice"),
        (json!({ "every": "1ms" }), "every: expected 10 ms to 365 d, found 1 ms"),
        (
            json!({ "fields": ["a.id", "b.id"] }),
            "fields: two fields are named `id`: give them names with a table of name = \"path\"",
        ),
        (json!({ "history": ["price"] }), "history: `price` is not one of the fields: value"),
        (
            json!({ "collection": "My Things" }),
            "collection: expected a name in snake_case such as `prices`, found \"My Things\"",
        ),
        (
            json!({ "events": { "first_of_group": true } }),
            "events.first_of_group: needs `group`, the path of what groups the records",
        ),
        (json!({ "limits": { "concurrency": 0 } }), "limits.concurrency: expected 1 to 10000"),
        (json!({ "doubt": { "share": 2.0 } }), "doubt.share: expected a share from 0 to 1, found 2"),
    ] {
        assert_eq!(refused(configuration.clone()), expected, "{configuration}");
    }
    let header = vec![("x-key".to_owned(), "s3cret\n".to_owned())];
    let error = JsonSource::new("shop", &config(json!({})), header).err().expect("refused").to_string();
    assert!(error.starts_with("headers.x-key: ") && !error.contains("s3cret"), "{error}");
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".*".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop_oneof![Just("id".to_owned()), Just("p".to_owned()), ".{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|m| Json::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = normalize(&source(json!({ "key": "id", "as_of": "t" })), body);
    }

    #[test]
    fn any_json_is_read_or_refused_and_reads_the_same_again(json in any_json()) {
        let source = source(json!({
            "key": "id", "group": "g", "fields": { "p": { "path": "p", "type": "time" }, "whole": "" }, "ignore": ["id"],
        }));
        let body = json.to_string();
        if let (Ok(one), Ok(two)) = (normalize(&source, body.clone()), normalize(&source, body)) {
            let contents = |o: &Observation| o.records.iter().map(|r| (r.fingerprint, r.content())).collect::<Vec<_>>();
            prop_assert_eq!(contents(&one), contents(&two));
            prop_assert!(one.coverage != Coverage::None);
            prop_assert!(one.records.iter().all(|r| !r.values.contains(&Value::text("\0"))));
        }
    }
}
