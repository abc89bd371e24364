//! Nobody can make the server wait, or keep others out.

use std::time::Duration;

use serde_json::json;
use stakeout_server::{Scope, TokenPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Scene, within};

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let scene = Scene::with(json!({}), |server| server.body_wait = Duration::from_millis(20)).await;
    let mut client = TcpStream::connect(scene.address).await.expect("connects");
    let head = format!(
        "PUT /v1/settings/source.s.timeout_ms HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{\"value\":",
        scene.address
    );
    client.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let mut bytes = [0_u8; 4096];
    while !answer.contains("too-slow") {
        let n = within(client.read(&mut bytes)).await.expect("an answer");
        assert!(n > 0, "it says why: {answer}");
        answer.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    scene.stop().await;
}

#[tokio::test]
async fn wrong_tokens_keep_nobody_out_who_has_a_right_one() {
    let scene = Scene::with(json!({}), |server| server.token = TokenPolicy::Always).await;
    let token = scene.token(Scope::Read).await;
    let asked = |token: &str| scene.ask(scene.http.get(scene.url("/v1/kv")).bearer_auth(token));
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(asked("stk_0_wrong").await.0);
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429], "whoever guesses has to wait");
    assert_eq!(asked(&token).await.0, 200, "others behind the same address do not");
    scene.stop().await;
}

#[tokio::test]
async fn many_who_sign_in_at_once_are_no_more_than_one_after_the_other() {
    let scene = Scene::with(json!({}), |server| server.token = TokenPolicy::Always).await;
    let sign_in = || {
        let body = json!({ "token": "stk_0_wrong" }).to_string();
        let request = scene.http.post(scene.url("/v1/session"));
        scene.ask(request.header("content-type", "application/json").body(body))
    };
    let all = (0..20).map(|_| sign_in());
    let statuses: Vec<u16> =
        futures_util::future::join_all(all).await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 5, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 15, "{statuses:?}");
    scene.stop().await;
}
