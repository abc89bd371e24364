//! The description says what is, and nothing is that it does not say.

use serde_json::Value as Json;

use crate::support::{Scene, within};

#[tokio::test]
async fn every_route_is_described_and_every_description_answered() {
    let scene = Scene::start().await;
    scene.polled(2).await;
    let (_, served) = scene.get("/v1/openapi.json").await;
    assert_eq!(served, stakeout_server::openapi());
    assert_eq!(served["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (path, operations) in served["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            assert!(ids.insert(operation["operationId"].to_string()), "{path}: ids differ");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            let in_path = path.matches('{').count();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let described = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
            assert_eq!(in_path, described, "{path}");
            // Anything but the stream ends; what is asked for does not exist, or it does, but it is described.
            if path.ends_with("/stream") {
                continue;
            }
            let real = path.replace("{source}", "s").replace("{key}", "main").replace("{seq}", "1");
            let real = real.replace("{record}", &"0".repeat(32)).replace(['{', '}'], "");
            let method = method.to_uppercase().parse().expect("a method");
            let response =
                within(scene.http.request(method, scene.url(&real)).send()).await.expect("an answer");
            let status = response.status().as_str().to_owned();
            let described = operation["responses"].get(&status);
            let described =
                described.unwrap_or_else(|| panic!("{real} answers {status}, which is not described"));
            let tagged = !operation["responses"]["304"].is_null();
            // What is changed has a tag, too, but there nobody asks for it.
            for name in ["Retry-After", "ETag"].into_iter().take(1 + usize::from(tagged)) {
                let said = !described["headers"][name].is_null();
                assert!(said || !response.headers().contains_key(name), "{real}: {name}");
            }
            assert_eq!(tagged, !header_parameter(operation, "If-None-Match").is_null(), "{path}");
        }
    }
    references_lead_somewhere(&served, &served);
    scene.stop().await;
}

/// What is said about a header that is sent with a request.
fn header_parameter<'a>(operation: &'a Json, name: &str) -> &'a Json {
    let mut parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.find(|found| found["in"] == "header" && found["name"] == name).unwrap_or(&Json::Null)
}

#[tokio::test]
async fn every_list_that_comes_in_parts_says_where_the_way_on_is() {
    let scene = Scene::several(&["s", "t"]).await;
    scene.polled(4).await;
    scene.change(1).await;
    let (_, served) = scene.get("/v1/openapi.json").await;
    let mut linked = 0;
    for (path, operations) in served["paths"].as_object().expect("paths") {
        let operation = &operations["get"];
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let parts = parameters.any(|found| found["name"] == "limit") && !path.contains("/dead");
        let described = &operation["responses"]["200"]["headers"]["Link"];
        assert_eq!(parts, !described.is_null(), "{path}");
        let real = path.replace("{source}", "s").replace("{key}", "main");
        if !parts || real.contains('{') {
            continue;
        }
        let request = scene.http.get(scene.url(&format!("{real}?limit=1"))).send();
        let response = within(request).await.expect("an answer");
        linked += u32::from(response.headers().contains_key("link"));
    }
    assert!(linked >= 4, "targets, polls, records and events have more than one: {linked}");
    let stream = &served["paths"]["/v1/events/stream"]["get"];
    assert_eq!(header_parameter(stream, "Last-Event-ID")["schema"]["type"], "integer");
    assert!(stream["responses"]["503"]["headers"]["Retry-After"].is_object());
    scene.stop().await;
}

fn references_lead_somewhere(root: &Json, node: &Json) {
    if let Some(reference) = node.get("$ref").and_then(Json::as_str) {
        assert!(root.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    match node {
        Json::Object(fields) => fields.values().for_each(|inner| references_lead_somewhere(root, inner)),
        Json::Array(items) => items.iter().for_each(|inner| references_lead_somewhere(root, inner)),
        _ => {}
    }
}
