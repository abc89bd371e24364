//! A thousand listeners at once.

use std::sync::Arc;

use serde_json::json;
use stakeout_store::{EventFilter, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::support::{Scene, within};

const CLIENTS: usize = 1_000;

/// Reads a stream until it has heard `events` events; answers their numbers.
async fn listen(address: std::net::SocketAddr, events: usize, ready: Arc<Barrier>) -> Vec<u64> {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let request = format!("GET /v1/events/stream?type=json. HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("writes");
    let (mut text, mut heard, mut waiting) = (Vec::new(), Vec::new(), Some(ready));
    let mut buffer = vec![0; 16 << 10];
    while heard.len() < events {
        let read = stream.read(&mut buffer).await.expect("reads");
        assert!(read > 0, "the stream goes on");
        text.extend_from_slice(&buffer[..read]);
        while let Some(end) = text.windows(2).position(|pair| pair == b"\n\n") {
            let message = String::from_utf8_lossy(&text[..end]).into_owned();
            text.drain(..end + 2);
            if message.contains("event: heartbeat") {
                // The first one says that the stream has begun.
                if let Some(ready) = waiting.take() {
                    ready.wait().await;
                }
            } else if message.contains("event: event") {
                let id = message.lines().find_map(|line| line.strip_prefix("id: ")).expect("a number");
                heard.push(id.parse().expect("a number"));
            }
        }
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_listeners_hear_everything_once_while_polling_goes_on() {
    let scene = Scene::with(json!({ "every": "50ms" }), |_| {}).await;
    scene.polled(2).await;
    let ready = Arc::new(Barrier::new(CLIENTS + 1));
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(listen(scene.address, 20, Arc::clone(&ready)))).collect();
    within(ready.wait()).await;
    scene.change(10).await;
    let log = scene.store.events(0, &EventFilter::default(), 100).await.expect("events");
    let told: Vec<u64> = log.iter().map(|event| event.seq).collect();
    assert_eq!(told.len(), 20);
    for client in clients {
        assert_eq!(within(client).await.expect("a listener"), told);
    }
    assert_eq!(scene.get("/v1/sources/s").await.1["vitals"]["failed"], 0);
    scene.stop().await;
}
