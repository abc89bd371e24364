//! A scene for engine tests: a simulated upstream, a store, a running engine.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of this")]

pub mod source;
pub mod telling;
pub mod upstream;

use std::sync::Arc;

use serde_json::{Value, json};
use stakeout_core::{Event, Source};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Control, Engine, EngineConfig, EngineHandle};
use stakeout_sim::{Act, Loopback, Seen};
use stakeout_sources::json::JsonSource;
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, PollLog, Store, TargetRow};

/// A `json` source from its configuration.
pub fn json_source(name: &str, config: Value) -> Arc<dyn Source> {
    let config = serde_json::from_value(config).expect("a valid configuration");
    Arc::new(JsonSource::new(name, &config, vec![]).expect("a valid source"))
}

/// Fast and unlimited: what a test usually wants.
pub fn watching(url: &str, more: Value) -> Value {
    let mut config = json!({
        "url": url, "every": "20ms", "records": "items", "key": "id", "fields": ["value"],
        "history": ["value"],
        "limits": { "requests_per_second": 10000, "burst": 1000, "concurrency": 64, "timeout": "400ms", "jitter": "0ms" },
    });
    merge(&mut config, more);
    config
}

fn merge(base: &mut Value, more: Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more,
    }
}

/// `{"items": [{"id": …, "value": …}]}`
pub fn items(values: &[(&str, i64)]) -> Value {
    let items: Vec<Value> = values.iter().map(|(id, value)| json!({"id": id, "value": value})).collect();
    json!({ "items": items })
}

/// A running engine on an upstream of its own.
pub struct Scene {
    pub server: Loopback,
    pub store: Arc<SqliteStore>,
    pub engine: EngineHandle,
    pub control: Control,
}

impl Scene {
    /// One `json` source named `s` with one target `main`.
    pub async fn start(handler: impl Fn(&Seen) -> Act + Send + Sync + 'static, more: Value) -> Scene {
        Scene::start_with(handler, |url| vec![json_source("s", watching(url, more))], |_| {}).await
    }

    pub async fn start_with(
        handler: impl Fn(&Seen) -> Act + Send + Sync + 'static,
        sources: impl FnOnce(&str) -> Vec<Arc<dyn Source>>,
        adjust: impl FnOnce(&mut EngineConfig),
    ) -> Scene {
        let server = Loopback::start(handler);
        let store = Arc::new(SqliteStore::in_memory().expect("store"));
        let fetch = Arc::new(HttpFetch::new().expect("client"));
        let mut config = EngineConfig::new(store.clone(), sources(&server.url("/x")), fetch);
        adjust(&mut config);
        let engine = Engine::start(config).await.expect("start");
        let control = engine.control();
        Scene { server, store, engine, control }
    }

    /// Returns when `n` polls have been committed since the start.
    pub async fn polled(&self, n: u64) {
        let mut polled = self.control.polled();
        within(polled.wait_for(|polled| *polled >= n)).await.expect("the engine lives");
    }

    /// Returns when `n` more polls have been committed.
    pub async fn polled_more(&self, n: u64) {
        let so_far = *self.control.polled().borrow();
        self.polled(so_far + n).await;
    }

    pub async fn events(&self) -> Vec<Event> {
        self.store.events(0, &EventFilter::default(), 10_000).await.expect("events")
    }

    pub async fn target(&self) -> TargetRow {
        self.store.target("s", "main").await.expect("read").expect("exists")
    }

    pub async fn log(&self) -> Vec<PollLog> {
        self.store.polls(self.target().await.id, 1_000).await.expect("polls")
    }

    pub async fn stop(self) {
        self.engine.shutdown().await.expect("clean shutdown");
    }
}

/// Nothing in a test may hang for ever.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(30), work)
        .await
        .expect("it does not take half a minute")
}
