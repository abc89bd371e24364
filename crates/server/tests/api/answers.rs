//! What is answered, and how.

use std::io::Read;

use serde_json::{Value as Json, json};
use stakeout_core::Fingerprint;

use crate::support::{Scene, within};

#[tokio::test]
async fn everything_the_engine_holds_can_be_read() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(2).await;
    let (status, sources) = scene.get("/v1/sources").await;
    assert_eq!((status, &sources[0]["name"], &sources[0]["family"]), (200, &json!("s"), &json!("json")));
    assert_eq!(sources[0]["kinds"][0]["name"], "json_s");
    let (_, targets) = scene.get("/v1/targets?source=s&sort=due&enabled=true").await;
    let target = &targets["items"][0];
    assert_eq!(
        (&target["key"], &target["interval_ms"], &target["records"]),
        (&json!("main"), &json!(20), &json!(2))
    );
    assert!(target["reason"].is_string() && target["last_error"].is_null());
    let (_, one) = scene.get("/v1/targets/s/main").await;
    assert_eq!(one["id"], target["id"]);
    let (_, polls) = scene.get("/v1/targets/s/main/polls?limit=5").await;
    assert!(polls.as_array().is_some_and(|polls| !polls.is_empty()));
    let (_, runs) = scene.get("/v1/targets/s/main/runs").await;
    assert_eq!(runs[0]["phase"], target["phase"]);
    let polls = runs.as_array().expect("runs").iter().filter_map(|run| run["polls"].as_u64());
    assert!(polls.sum::<u64>() > 1, "{runs}");
    let (_, none) = scene.get("/v1/targets/s/main/runs?to=2020-01-01T00:00:00Z").await;
    assert_eq!(none, json!([]));
    assert_eq!(scene.get("/v1/targets/s/x/runs").await.0, 404);
    let (_, all_polls) = scene.get("/v1/polls?limit=1").await;
    assert_eq!(
        (&all_polls["items"][0]["source"], &all_polls["items"][0]["target"]),
        (&json!("s"), &json!("main"))
    );
    let (_, records) = scene.get("/v1/records/s?kind=json_s").await;
    assert_eq!(records["items"].as_array().map(Vec::len), Some(2));
    let print = records["items"][0]["fingerprint"].as_str().expect("a fingerprint");
    let (_, record) = scene.get(&format!("/v1/records/s/{print}")).await;
    assert_eq!(record["body"]["value"], 3);
    let (_, health) = scene.get("/v1/health").await;
    assert_eq!((&health["ready"], &health["store"]["records"]), (&json!(true), &json!(2)));
    assert_eq!(health["speed"], 1.0);
    let (_, adherence) = scene.get("/v1/adherence/s").await;
    let says = adherence["says"].as_str().expect("a sentence");
    assert!(says.starts_with("nothing that s served can have gone unseen for longer than "), "{says}");
    assert_eq!(adherence["worst"][0]["key"], "main");
    let (_, adherence) = scene.get("/v1/adherence/s/main").await;
    assert!(adherence["unseen_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    assert!(adherence["phases"][0]["polls"].as_u64().is_some_and(|polls| polls > 2));
    let (_, past) = scene.get("/v1/adherence/s/main?to=2020-01-01T00:00:00Z").await;
    assert_eq!((&past["unseen_ms"], &past["polls"]), (&Json::Null, &json!(0)), "of then nothing is known");
    assert!(past["says"].as_str().is_some_and(|says| says.contains("was not polled")), "{past}");
    assert!(target["lateness_ms"].is_number(), "of its last poll: {target}");
    let (phase, role) = (target["phase"].as_str().expect("text"), target["role"].as_str().expect("text"));
    let phase = phase.replace(' ', "%20");
    for (query, found) in [
        (format!("role={role}"), 1),
        ("role=none".to_owned(), 0),
        (format!("phase={phase}"), 1),
        ("phase=none".to_owned(), 0),
        ("failing=false".to_owned(), 1),
        ("failing=true".to_owned(), 0),
        ("key=ai".to_owned(), 1),
        ("key=none".to_owned(), 0),
    ] {
        let (status, page) = scene.get(&format!("/v1/targets?{query}")).await;
        assert_eq!((status, page["items"].as_array().map(Vec::len)), (200, Some(found)), "{query}: {page}");
    }
    assert_eq!(scene.get("/openapi.json").await, scene.get("/v1/openapi.json").await);
    for missing in ["/v1/targets/s/x", "/v1/sources/x", "/v1/kv/race/next", "/v1/adherence/x", "/v1/events/1"]
    {
        let (status, problem) = scene.get(missing).await;
        assert_eq!((status, &problem["type"]), (404, &json!("urn:stakeout:problem:not-found")), "{missing}");
    }
    // What a source left behind stays readable without it: there, a name is a condition like any other.
    for nothing in ["/v1/records/nowhere", "/v1/targets?source=nowhere", "/v1/events?source=nowhere"] {
        let (status, page) = scene.get(nothing).await;
        assert_eq!((status, &page["items"]), (200, &json!([])), "{nothing}");
    }
    scene.stop().await;
}

#[tokio::test]
async fn history_is_read_by_window_moment_and_point() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(6).await;
    let path = format!("/v1/records/s/{}/history", Fingerprint::of("json_s", &["a"]));
    let values = |page: &Json| -> Vec<i64> {
        let rows = page["items"].as_array().expect("rows");
        rows.iter().map(|row| row["values"]["value"].as_i64().expect("a value")).collect()
    };
    let (_, all) = scene.get(&path).await;
    assert_eq!(values(&all), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(values(&scene.get(&format!("{path}?limit=2")).await.1), [6, 7]);
    let at = all["items"][2]["at"].as_str().expect("a time");
    assert_eq!(values(&scene.get(&format!("{path}?at={at}")).await.1), [3]);
    assert!(values(&scene.get(&format!("{path}?at=2001-01-01T00:00:00Z")).await.1).is_empty());
    let first = all["items"][0]["at"].as_str().expect("a time");
    // Page after page, by the links.
    let (mut found, mut next) = (Vec::new(), Some(format!("{path}?from={first}&limit=2")));
    while let Some(page) = next {
        let (status, page) = scene.get(&page).await;
        assert_eq!(status, 200);
        found.extend(values(&page));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(found, values(&all));
    let (_, points) = scene.get(&format!("{path}?from={first}&points=1")).await;
    assert_eq!(values(&points), [7], "of one part there is one row");
    for bad in ["?at=yesterday", "?points=5", "?from=2026-01-01T00:00:00Z&points=0", "?limit=0"] {
        assert_eq!(scene.get(&format!("{path}{bad}")).await.0, 400, "{bad}");
    }
    assert_eq!(scene.get("/v1/records/s/0000/history").await.0, 400);
    scene.stop().await;
}

#[tokio::test]
async fn pages_lead_to_the_next_both_ways() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(5).await;
    let mut ways = Vec::new();
    for begin in ["/v1/events?after=0&limit=3", "/v1/events?limit=3"] {
        let (mut seqs, mut next) = (Vec::new(), Some(begin.to_owned()));
        while let Some(path) = next {
            let response = within(scene.http.get(scene.url(&path)).send()).await.expect("an answer");
            let link = response.headers().get("link").map(|link| link.to_str().expect("text").to_owned());
            let page: Json = serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON");
            next = page["next"].as_str().map(str::to_owned);
            assert_eq!(link, next.as_ref().map(|next| format!("<{next}>; rel=\"next\"")));
            let items = page["items"].as_array().expect("items");
            seqs.extend(items.iter().map(|event| event["seq"].as_u64().expect("a number")));
        }
        ways.push(seqs);
    }
    assert_eq!(ways[0].len(), 10);
    assert!(ways[0].is_sorted());
    ways[1].reverse();
    assert_eq!(ways[0], ways[1]);
    let (status, one) = scene.get(&format!("/v1/events/{}", ways[0][4])).await;
    assert_eq!((status, one["seq"].as_u64()), (200, Some(ways[0][4])));
    scene.stop().await;
}

#[tokio::test]
async fn several_sources_are_one_list_in_any_order() {
    let scene = Scene::several(&["a", "b", "c"]).await;
    scene.polled(6).await;
    for sort in ["created", "due", "key"] {
        let mut next = Some(format!("/v1/targets?sort={sort}&limit=1"));
        let mut found = Vec::new();
        while let Some(path) = next {
            let (status, page) = scene.get(&path).await;
            assert_eq!(status, 200, "{path}: {page}");
            let items = page["items"].as_array().expect("items").clone();
            found.extend(items.iter().map(|target| target["source"].as_str().unwrap_or_default().to_owned()));
            next = page["next"].as_str().map(str::to_owned);
        }
        // Due times move on while one turns the pages: a target may come by once more, but none is left out.
        found.sort();
        found.dedup();
        assert_eq!(found, ["a", "b", "c"], "{sort}");
    }
    for path in ["/v1/targets?sort=due&after=1,2", "/v1/targets?sort=key&after=x", "/v1/targets?after=1,2"] {
        assert_eq!(scene.get(path).await.0, 400, "{path}");
    }
    // Whoever is polled first tells of a change first: until it is its turn.
    while scene.get("/v1/events?source=b").await.1["items"] == json!([]) {
        scene.change(1).await;
    }
    let mut next = Some("/v1/polls?source=b&limit=2".to_owned());
    let mut polls = 0;
    while let Some(path) = next {
        let page = scene.get(&path).await.1;
        let items = page["items"].as_array().expect("items").clone();
        assert!(items.iter().all(|poll| poll["source"] == "b"), "{page}");
        polls += items.len();
        next = page["next"].as_str().filter(|_| polls < 4).map(str::to_owned);
    }
    assert!(polls >= 2, "its baseline, and a change");
    assert_eq!(scene.get("/v1/polls?source=none").await.0, 404);
    scene.stop().await;
}

#[tokio::test]
async fn what_is_known_already_is_not_sent_again() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    scene.change(1).await;
    let path = scene.url("/v1/events?after=0&limit=2");
    let first = within(scene.http.get(&path).send()).await.expect("an answer");
    let tag = first.headers()["etag"].clone();
    let again =
        within(scene.http.get(&path).header("if-none-match", tag.clone()).send()).await.expect("an answer");
    assert_eq!(again.status(), 304);
    assert_eq!(again.headers()["etag"], tag);
    assert!(again.bytes().await.expect("a body").is_empty());
    let other = scene.http.get(scene.url("/v1/events?limit=1")).header("if-none-match", tag);
    assert_eq!(within(other.send()).await.expect("an answer").status(), 200);
    scene.stop().await;
}

#[tokio::test]
async fn answers_are_compressed_when_asked_for() {
    let scene = Scene::start().await;
    let plain =
        reqwest::Client::builder().no_proxy().no_gzip().no_brotli().no_zstd().build().expect("client");
    let request = plain.get(scene.url("/v1/openapi.json")).header("accept-encoding", "gzip");
    let response = within(request.send()).await.expect("an answer");
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let bytes = response.bytes().await.expect("a body");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
    assert!(text.len() > 3 * bytes.len() && text.starts_with('{'));
    scene.stop().await;
}

#[tokio::test]
async fn what_is_wrong_is_said_in_a_problem() {
    let scene = Scene::start().await;
    let json = |request: reqwest::RequestBuilder, body: &str| {
        request.header("content-type", "application/json").body(body.to_owned())
    };
    let put = |key: &str| scene.http.put(scene.url(&format!("/v1/settings/{key}")));
    let setting = "source.s.timeout_ms";
    let too_long = format!("{{\"value\": \"{}\"}}", "x".repeat(70_000));
    for (request, status, word) in [
        (scene.http.get(scene.url("/v1/targets?limit=5000")), 400, "expected 1 to 1000"),
        (scene.http.get(scene.url("/v1/targets?colour=red")), 400, "unknown field `colour`"),
        (scene.http.get(scene.url("/v1/nothing")), 404, "/v1/openapi.json"),
        (scene.http.delete(scene.url("/v1/targets")), 405, "DELETE cannot be done"),
        (json(put(setting), "{\"value\": "), 400, "the body is not understood"),
        (json(put(setting), "{\"valu\": 5}"), 400, "unknown field `valu`"),
        (json(put(setting), "{\"value\": -5}"), 422, "timeout_ms cannot be -5"),
        (json(put("source.s.colour"), "{\"value\": 5}"), 422, "colour"),
        (json(put("other"), "{\"value\": 5}"), 404, "there is no setting"),
        (put(setting).body("{\"value\": 5}"), 415, "application/json"),
        (json(put(setting), &too_long), 413, "longer than"),
        (scene.http.post(scene.url("/v1/poll?limit_ms=0")), 400, "limit_ms"),
    ] {
        let response = within(request.send()).await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{word}");
        assert_eq!(response.status().as_u16(), status, "{word}");
        let problem: Json = serde_json::from_slice(&response.bytes().await.expect("body")).expect("JSON");
        assert!(problem["type"].as_str().is_some_and(|name| name.starts_with("urn:stakeout:problem:")));
        assert!(problem["detail"].as_str().is_some_and(|said| said.contains(word)), "{word}: {problem}");
        assert_eq!(problem["status"], status);
    }
    scene.stop().await;
}

#[tokio::test]
async fn a_pass_answers_what_came_of_it() {
    let scene = Scene::with(json!({ "every": "1h" }), |_| {}).await;
    scene.polled(1).await;
    assert_eq!(scene.post("/v1/targets/s/main/poll").await.0, 204);
    let (status, report) = scene.post("/v1/poll").await;
    assert_eq!(status, 200);
    scene.polled(2).await;
    assert!(report["next_due"].is_string(), "{report}");
    for number in ["polled", "changed", "failed", "changes", "history_rows", "took_ms"] {
        assert!(report[number].is_u64(), "{number}: {report}");
    }
    assert!(report["phases"].is_object() && report["failures"].is_array());
    scene.stop().await;
}

#[tokio::test]
async fn targets_and_settings_are_changed() {
    let scene = Scene::start().await;
    scene.polled(1).await;
    let state = async || scene.get("/v1/targets/s/main").await.1;
    assert_eq!(scene.post("/v1/targets/s/main/disable").await.0, 204);
    assert_eq!((&state().await["enabled"], &state().await["due"]), (&json!(false), &Json::Null));
    assert_eq!(scene.get("/v1/targets?enabled=false").await.1["items"][0]["key"], "main");
    let (status, refused) = scene.post("/v1/targets/s/main/poll").await;
    assert_eq!(
        (status, &refused["type"]),
        (422, &json!("urn:stakeout:problem:refused")),
        "it is there, but off"
    );
    assert!(refused["detail"].as_str().is_some_and(|said| said.contains("enable it first")), "{refused}");
    assert_eq!(scene.post("/v1/targets/s/main/enable").await.0, 204);
    assert_eq!(state().await["enabled"], true);
    for verb in ["replan", "rebaseline"] {
        assert_eq!(scene.post(&format!("/v1/targets/s/main/{verb}")).await.0, 204, "{verb}");
    }
    let put = |body: Json| {
        let request = scene.http.put(scene.url("/v1/settings/source.s.every_ms"));
        scene.ask(request.header("content-type", "application/json").body(body.to_string()))
    };
    assert_eq!(put(json!({ "value": 3_600_000, "check": true })).await.1["changed"], false);
    assert_eq!(scene.get("/v1/settings").await.1, json!({}));
    assert_eq!(put(json!({ "value": 3_600_000 })).await.1["changed"], true);
    assert_eq!(scene.get("/v1/settings/source.s.every_ms").await.1["value"], 3_600_000);
    let known = scene.get("/v1/settings/known").await.1;
    let find =
        |key: &str| known.as_array().expect("a list").iter().find(|known| known["key"] == key).cloned();
    let every = find("source.s.every_ms").expect("it is known");
    assert_eq!((&every["value"], &every["set"]), (&json!(3_600_000), &json!(true)));
    let timeout = find("source.s.timeout_ms").expect("it is known");
    assert_eq!(
        (&timeout["value"], &timeout["unit"], &timeout["set"]),
        (&json!(5_000), &json!("ms"), &json!(false))
    );
    let gone = scene.ask(scene.http.delete(scene.url("/v1/settings/source.s.every_ms"))).await;
    assert_eq!((gone.0, scene.get("/v1/settings").await.1), (204, json!({})));
    scene.stop().await;
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let scene = Scene::start().await;
    scene.polled(3).await;
    let response = within(scene.http.get(scene.url("/metrics")).send()).await.expect("an answer");
    assert!(
        response.headers()["content-type"].to_str().expect("text").starts_with("text/plain; version=0.0.4")
    );
    let text = response.text().await.expect("text");
    let mut declared = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            assert!(declared.insert(name), "{name} is declared once");
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a series and a value");
            value.parse::<f64>().expect("a number");
            let name = series.split('{').next().expect("a name");
            let base =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(declared.contains(name) || declared.contains(base), "{line}");
        }
    }
    // The dashboard that is shipped asks only for what there is.
    let board = include_str!("../../../../docs/grafana-dashboard.json");
    for word in board.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let base = word.strip_suffix("_bucket").unwrap_or(word);
        assert!(!word.starts_with("stakeout_") || declared.contains(base), "{word}");
    }
    for name in [
        "stakeout_polls_total{source=\"s\",outcome=\"unchanged\"}",
        "stakeout_poll_lateness_seconds_count{source=\"s\"}",
    ] {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        assert!(line.rsplit(' ').next().and_then(|n| n.parse::<f64>().ok()).is_some_and(|n| n > 0.0));
    }
    scene.stop().await;
}
