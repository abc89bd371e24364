//! A scene: a simulated upstream, a store, a running engine and a server that answers for it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value as Json, json};
use stakeout_core::Source;
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Control, Engine, EngineConfig, EngineHandle};
use stakeout_server::{NewToken, Scope, Server, ServerConfig};
use stakeout_sim::{Act, Loopback};
use stakeout_sources::alert::RuleBook;
use stakeout_sources::json::JsonSource;
use stakeout_store::Store;
use stakeout_store::sqlite::{OpenOptions, SqliteStore};
use tokio_util::sync::CancellationToken;

/// A `json` source named `s` with one target, `main`, and a value that tests change.
pub(crate) struct Scene {
    _upstream: Loopback,
    pub(crate) value: Arc<AtomicI64>,
    /// Whether the upstream answers.
    speaks: Arc<(Mutex<bool>, Condvar)>,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) engine: EngineHandle,
    pub(crate) control: Control,
    pub(crate) address: SocketAddr,
    pub(crate) http: reqwest::Client,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

fn source(name: &str, url: &str, more: &Json) -> Arc<dyn Source> {
    let mut config = json!({
        "url": url, "every": "20ms", "records": "items", "key": "id", "fields": ["value", "pad"], "history": ["value"],
        "limits": { "requests_per_second": 10000, "burst": 1000, "concurrency": 64, "timeout": "5s", "jitter": "0ms" },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    let config = serde_json::from_value(config).expect("a valid configuration");
    Arc::new(JsonSource::new(name, &config, vec![]).expect("a valid source"))
}

impl Scene {
    pub(crate) async fn start() -> Scene {
        Scene::with(json!({}), |_| {}).await
    }

    /// With another configuration of the source and of the server.
    pub(crate) async fn with(more: Json, adjust: impl FnOnce(&mut ServerConfig)) -> Scene {
        Scene::padded(more, 0, adjust).await
    }

    /// The same, each record with so many bytes that mean nothing.
    pub(crate) async fn padded(more: Json, pad: usize, adjust: impl FnOnce(&mut ServerConfig)) -> Scene {
        Scene::of(&["s"], more, pad, adjust).await
    }

    /// Several sources of one upstream.
    pub(crate) async fn several(names: &[&str]) -> Scene {
        Scene::of(names, json!({}), 0, |_| {}).await
    }

    async fn of(names: &[&str], more: Json, pad: usize, adjust: impl FnOnce(&mut ServerConfig)) -> Scene {
        Scene::made(names, more, pad, adjust, |_| {}).await
    }

    /// With another configuration of the engine and of the server.
    pub(crate) async fn engine(
        adjust: impl FnOnce(&mut ServerConfig),
        tune: impl FnOnce(&mut EngineConfig),
    ) -> Scene {
        Scene::made(&["s"], json!({}), 0, adjust, tune).await
    }

    /// With an upstream that answers nothing until [`Scene::speak`].
    pub(crate) async fn silent() -> Scene {
        let limits = json!({ "limits": { "timeout": "60s", "jitter": "0ms" } });
        Scene::begun(false, &["s"], limits, 0, |_| {}, |_| {}).await
    }

    /// From now on the upstream answers.
    pub(crate) fn speak(&self) {
        *self.speaks.0.lock().expect("nobody panics here") = true;
        self.speaks.1.notify_all();
    }

    async fn made(
        names: &[&str],
        more: Json,
        pad: usize,
        adjust: impl FnOnce(&mut ServerConfig),
        tune: impl FnOnce(&mut EngineConfig),
    ) -> Scene {
        Scene::begun(true, names, more, pad, adjust, tune).await
    }

    async fn begun(
        speaks: bool,
        names: &[&str],
        more: Json,
        pad: usize,
        adjust: impl FnOnce(&mut ServerConfig),
        tune: impl FnOnce(&mut EngineConfig),
    ) -> Scene {
        let value = Arc::new(AtomicI64::new(1));
        let speaks = Arc::new((Mutex::new(speaks), Condvar::new()));
        let (shown, spoken) = (Arc::clone(&value), Arc::clone(&speaks));
        let upstream = Loopback::start(move |_| {
            let silence = spoken.0.lock().expect("nobody panics here");
            drop(spoken.1.wait_while(silence, |speaks| !*speaks));
            let now = shown.load(SeqCst);
            let item = |id: &str| json!({ "id": id, "value": now, "pad": "x".repeat(pad) });
            Act::json(&json!({ "items": [item("a"), item("b")] }))
        });
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("scene.db");
        // On disk, as in earnest: then reads go beside the writer.
        let store = Arc::new(SqliteStore::open(path, OpenOptions::default()).expect("store"));
        let sources = names.iter().map(|name| source(name, &upstream.url("/x"), &more)).collect();
        let fetch = Arc::new(HttpFetch::new().expect("client"));
        let mut config = EngineConfig::new(store.clone(), sources, fetch);
        config.alerts = Arc::new(RuleBook::default());
        tune(&mut config);
        let mut server = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        adjust(&mut server);
        let server = Server::bind(server, store.clone()).await.expect("binds");
        let address = server.address();
        let engine = Engine::start(config).await.expect("starts");
        let (control, stop) = (engine.control(), CancellationToken::new());
        let server = tokio::spawn(server.run(control.clone(), stop.clone()));
        let http = reqwest::Client::builder().no_proxy().build().expect("client");
        let _directory = directory;
        Scene {
            _upstream: upstream,
            value,
            speaks,
            store,
            engine,
            control,
            address,
            http,
            stop,
            server,
            _directory,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns when `n` polls have been committed since the start.
    pub(crate) async fn polled(&self, n: u64) {
        let mut polled = self.control.polled();
        within(polled.wait_for(|polled| *polled >= n)).await.expect("the engine lives");
    }

    /// Changes the upstream `times` times, each time until that has been told: two events each.
    pub(crate) async fn change(&self, times: u64) {
        for _ in 0..times {
            let mut newest = self.control.newest();
            newest.mark_unchanged();
            self.value.fetch_add(1, SeqCst);
            within(newest.changed()).await.expect("an event");
        }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Json) {
        self.ask(self.http.get(self.url(path))).await
    }

    pub(crate) async fn post(&self, path: &str) -> (u16, Json) {
        self.ask(self.http.post(self.url(path))).await
    }

    pub(crate) async fn tell(&self, method: &str, path: &str, body: &Json) -> (u16, Json) {
        self.ask(self.telling(method, path, body)).await
    }

    /// A request with a JSON body.
    pub(crate) fn telling(&self, method: &str, path: &str, body: &Json) -> reqwest::RequestBuilder {
        let request = self.http.request(method.parse().expect("a method"), self.url(path));
        request.header("content-type", "application/json").body(body.to_string())
    }

    /// The status, and the body as JSON where it is.
    pub(crate) async fn ask(&self, request: reqwest::RequestBuilder) -> (u16, Json) {
        let response = within(request.send()).await.expect("an answer");
        let status = response.status().as_u16();
        let body = within(response.bytes()).await.expect("a body");
        (status, serde_json::from_slice(&body).unwrap_or(Json::Null))
    }

    pub(crate) async fn token(&self, scope: Scope) -> String {
        let token = NewToken::draw("test", scope, self.control.clock().now());
        self.store.add_token(&token.row).await.expect("kept");
        token.text
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.server).await.expect("the server stops");
        self.engine.shutdown().await.expect("clean shutdown");
    }
}

/// Nothing in a test may hang for ever.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it does not take a minute")
}
