//! Who may ask what.

use serde_json::json;
use stakeout_server::{NewToken, Scope, Server, ServerConfig, ServerError, TokenPolicy};
use stakeout_store::Store;
use stakeout_store::sqlite::SqliteStore;

use crate::listener::Listener;
use crate::support::{Scene, within};

async fn guarded() -> Scene {
    Scene::with(json!({}), |server| {
        server.token = TokenPolicy::Always;
        server.heartbeat = std::time::Duration::from_millis(20);
    })
    .await
}

#[tokio::test]
async fn where_others_can_reach_it_it_refuses_to_start_without_a_token() {
    let store = std::sync::Arc::new(SqliteStore::in_memory().expect("store"));
    let config = || ServerConfig::new(([0, 0, 0, 0], 0).into());
    let refused = Server::bind(config(), store.clone()).await.err().expect("refused");
    assert!(matches!(refused, ServerError::NoToken(_)), "{refused}");
    assert!(refused.to_string().contains("stakeout token create"), "{refused}");

    let token = NewToken::draw("first", Scope::Read, stakeout_core::Time(0));
    store.add_token(&token.row).await.expect("kept");
    drop(Server::bind(config(), store.clone()).await.expect("now it may"));
    store.revoke_token(&token.row.id, stakeout_core::Time(1)).await.expect("revoked");
    assert!(Server::bind(config(), store).await.is_err(), "a revoked token is none");
}

#[tokio::test]
async fn a_taken_port_is_a_clear_error() {
    let scene = Scene::start().await;
    let taken =
        Server::bind(ServerConfig::new(scene.address), scene.store.clone()).await.err().expect("taken");
    assert!(taken.to_string().contains("is taken by another program"), "{taken}");
    scene.stop().await;
}

#[tokio::test]
async fn each_scope_allows_what_the_ones_before_it_do() {
    let scene = guarded().await;
    scene.polled(1).await;
    let body = json!({ "value": 60_000 });
    for (scope, allowed) in [
        (None, [401, 401, 401, 401]),
        (Some(Scope::Read), [200, 403, 403, 403]),
        // Whoever may operate may follow a venue; this source has none.
        (Some(Scope::Operate), [200, 200, 404, 403]),
        (Some(Scope::Admin), [200, 200, 404, 200]),
    ] {
        let token = match scope {
            Some(scope) => scene.token(scope).await,
            None => String::new(),
        };
        let with_token = |request: reqwest::RequestBuilder| match scope {
            Some(_) => request.bearer_auth(&token),
            None => request,
        };
        let read = scene.ask(with_token(scene.http.get(scene.url("/v1/targets")))).await.0;
        let operate = scene.ask(with_token(scene.http.post(scene.url("/v1/poll")))).await.0;
        let follow = scene.http.put(scene.url("/v1/tables/s/venues/1/follow"));
        let follow = scene.ask(with_token(follow)).await.0;
        let setting = scene.http.put(scene.url("/v1/settings/source.s.timeout_ms"));
        let setting = setting.header("content-type", "application/json").body(body.to_string());
        let admin = scene.ask(with_token(setting)).await.0;
        assert_eq!([read, operate, follow, admin], allowed, "{scope:?}");
    }
    for open in ["/livez", "/readyz", "/v1/session", "/"] {
        assert_eq!(scene.get(open).await.0, 200, "{open} is for everybody");
    }
    assert_eq!(scene.get("/metrics").await.0, 401);
    scene.stop().await;
}

#[tokio::test]
async fn a_revoked_token_opens_nothing_and_its_streams_end() {
    let scene = guarded().await;
    let token = scene.token(Scope::Read).await;
    let id = token.split('_').nth(1).expect("an id").to_owned();
    let asked = |token: String| scene.ask(scene.http.get(scene.url("/v1/kv")).bearer_auth(token));
    assert_eq!(asked(token.clone()).await.0, 200);
    let stream = scene.http.get(scene.url("/v1/events/stream")).bearer_auth(&token);
    let mut stream = within(stream.send()).await.expect("a stream");
    assert!(scene.store.revoke_token(&id, scene.control.clock().now()).await.expect("revoked"));
    assert_eq!(asked(token).await.0, 401);
    while within(stream.chunk()).await.expect("a chunk, or the end").is_some() {}
    scene.stop().await;
}

#[tokio::test]
async fn a_browser_signs_in_with_a_strict_cookie_and_out_again() {
    let scene = guarded().await;
    let token = scene.token(Scope::Operate).await;
    let sign_in = |token: &str| {
        let body = json!({ "token": token }).to_string();
        scene.http.post(scene.url("/v1/session")).header("content-type", "application/json").body(body)
    };
    let response = within(sign_in(&token).send()).await.expect("an answer");
    assert_eq!(response.status(), 200);
    let cookie = response.headers()["set-cookie"].to_str().expect("text").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let session = cookie.split(';').next().expect("a pair").to_owned();
    let with_cookie = |request: reqwest::RequestBuilder| scene.ask(request.header("cookie", &session));
    assert_eq!(with_cookie(scene.http.get(scene.url("/v1/targets"))).await.0, 200);
    assert_eq!(with_cookie(scene.http.get(scene.url("/v1/session"))).await.1["scope"], "operate");
    assert_eq!(with_cookie(scene.http.post(scene.url("/v1/poll"))).await.0, 200);
    // Another site's page has the browser, but must not have its way.
    for (name, value) in [("origin", "http://attacker.example"), ("sec-fetch-site", "cross-site")] {
        let forged = scene.http.post(scene.url("/v1/poll")).header(name, value);
        assert_eq!(with_cookie(forged).await.0, 403, "{name}");
    }
    let stream = scene.http.get(scene.url("/v1/events/stream")).header("cookie", &session);
    let mut stream = within(stream.send()).await.expect("a stream");
    assert!(within(stream.chunk()).await.expect("a chunk").is_some(), "it hears");
    assert_eq!(with_cookie(scene.http.delete(scene.url("/v1/session"))).await.0, 204);
    assert_eq!(with_cookie(scene.http.get(scene.url("/v1/targets"))).await.0, 401);
    // Whoever signed out hears no more, although the token is as good as before.
    while within(stream.chunk()).await.expect("a chunk, or the end").is_some() {}
    let bearer = scene.http.get(scene.url("/v1/targets")).bearer_auth(&token);
    assert_eq!(scene.ask(bearer).await.0, 200);

    for _ in 0..5 {
        assert_eq!(scene.ask(sign_in("stk_0_wrong")).await.0, 401);
    }
    let response = within(sign_in(&token).send()).await.expect("an answer");
    assert_eq!(response.status(), 429, "whoever signs in has to wait now");
    assert!(response.headers().contains_key("retry-after"));
    scene.stop().await;
}

#[tokio::test]
async fn nobody_reaches_it_under_another_name() {
    let scene = Scene::start().await;
    let asked = |host: &str| scene.ask(scene.http.get(scene.url("/v1/targets")).header("host", host));
    assert_eq!(asked("rebound.attacker.example").await.0, 421);
    assert_eq!(asked(&format!("localhost:{}", scene.address.port())).await.0, 200);
    scene.stop().await;
}

#[tokio::test]
async fn every_answer_keeps_browsers_safe() {
    let scene = Scene::start().await;
    for path in ["/", "/v1/targets", "/v1/nothing", "/nothing.js"] {
        let response = within(scene.http.get(scene.url(path)).send()).await.expect("an answer");
        let policy = response.headers()["content-security-policy"].to_str().expect("text").to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
    let page = scene.http.get(scene.url("/")).send().await.expect("an answer").text().await.expect("text");
    assert!(!page.contains("<script>") && !page.contains("http://") && !page.contains("https://"));
    drop(Listener::open(&scene, "", None).await);
    scene.stop().await;
}
