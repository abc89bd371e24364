//! The description says what is, and nothing is that it does not say.

use serde_json::Value as Json;

use crate::support::Scene;

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
            let request = scene.http.request(method, scene.url(&real));
            let status = scene.ask(request).await.0.to_string();
            assert!(
                operation["responses"].get(&status).is_some(),
                "{real} answers {status}, which is not described"
            );
        }
    }
    references_lead_somewhere(&served, &served);
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
