//! As much of the WebDriver protocol as is needed here, spoken to chromedriver over plain HTTP.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use stakeout_engine::http::HttpFetch;
use tempfile::TempDir;

/// How long the page may take to come to what is waited for.
const PATIENCE_MS: u64 = 120_000;

/// Where the browser and its driver are.
pub(crate) struct Found {
    driver: PathBuf,
    browser: PathBuf,
}

/// Looks for both.
pub(crate) fn find() -> Option<Found> {
    let path = std::env::var_os("PATH")?;
    let on_path =
        |name: &str| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(on_path)?;
    Some(Found { driver: on_path("chromedriver")?, browser })
}

/// A browser with one page.
pub(crate) struct Browser {
    http: reqwest::Client,
    session: String,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts a driver and a browser of its own.
    pub(crate) async fn start(found: &Found) -> Browser {
        // Also what makes the process's cryptography known, which a client wants even for plain HTTP.
        HttpFetch::new().expect("an HTTP client");
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        // A group of its own, so that the browser ends with its driver whatever happens.
        let mut driver = Command::new(&found.driver)
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver starts");
        let mut lines = BufReader::new(driver.stdout.take().expect("its output")).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.expect("chromedriver says its port");
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().expect("a directory");
        let base = format!("http://127.0.0.1:{port}/session");
        let wanted = capabilities(found, &profile);
        let answer = ask(&http, reqwest::Method::POST, &base, Some(wanted)).await;
        let id = answer["sessionId"].as_str().expect("a session").to_owned();
        let browser = Browser { http, session: format!("{base}/{id}"), driver, _profile: profile };
        browser.tell("timeouts", json!({ "script": PATIENCE_MS + 10_000, "pageLoad": 60_000 })).await;
        browser
    }

    async fn tell(&self, path: &str, body: Json) -> Json {
        ask(&self.http, reqwest::Method::POST, &format!("{}/{path}", self.session), Some(body)).await
    }

    /// Goes to an address.
    pub(crate) async fn open(&self, url: &str) {
        self.tell("url", json!({ "url": url })).await;
    }

    /// The value of an expression in the page.
    pub(crate) async fn value(&self, expression: &str) -> Json {
        self.tell("execute/sync", json!({ "script": format!("return ({expression});"), "args": [] })).await
    }

    /// The value of an expression that is a text.
    pub(crate) async fn text(&self, expression: &str) -> String {
        self.value(expression).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true; the page looks whenever it is about to be drawn.
    pub(crate) async fn until(&self, what: &str, expression: &str) {
        let script = format!(
            "const [patience, done] = arguments; const started = performance.now();
             const look = () => {{
               let met = false;
               try {{ met = Boolean({expression}); }} catch (error) {{ met = false; }}
               if (met) done(true); else if (performance.now() - started > patience) done(false);
               else requestAnimationFrame(look);
             }}; look();"
        );
        let met = self.tell("execute/async", json!({ "script": script, "args": [PATIENCE_MS] })).await;
        if met != json!(true) {
            let shown = self.text("document.body.innerText").await;
            panic!("{what}: did not happen. The page shows:\n{shown}");
        }
    }

    /// Clicks the first element that a selector finds.
    pub(crate) async fn click(&self, selector: &str) {
        let id = self.element(selector).await;
        self.tell(&format!("element/{id}/click"), json!({})).await;
    }

    /// Types into it.
    pub(crate) async fn keys(&self, selector: &str, keys: &str) {
        let id = self.element(selector).await;
        self.tell(&format!("element/{id}/value"), json!({ "text": keys })).await;
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) async fn press(&self, keys: &[&str]) {
        let stroke = |key| ["keyDown", "keyUp"].map(|stroke| json!({ "type": stroke, "value": key }));
        let strokes: Vec<Json> = keys.iter().flat_map(stroke).collect();
        self.tell("actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] }))
            .await;
    }

    /// Runs a script in the page, as if it belonged to it.
    pub(crate) async fn inject(&self, script: &str) {
        self.tell("execute/sync", json!({ "script": script, "args": [] })).await;
    }

    async fn element(&self, selector: &str) -> String {
        let found = self.tell("element", json!({ "using": "css selector", "value": selector })).await;
        let id = found.as_object().and_then(|object| object.values().next()).and_then(Json::as_str);
        id.unwrap_or_else(|| panic!("nothing is {selector}")).to_owned()
    }

    /// Makes the window so large, in this theme.
    pub(crate) async fn look(&self, width: u32, height: u32, theme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await;
    }

    async fn devtools(&self, command: &str, parameters: Json) {
        self.tell("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await;
    }

    /// What the window shows, as a PNG.
    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        let url = format!("{}/screenshot", self.session);
        let answer = ask(&self.http, reqwest::Method::GET, &url, None).await;
        STANDARD.decode(answer.as_str().unwrap_or_default()).expect("base64")
    }

    /// What the console has complained about since this was last asked.
    pub(crate) async fn console_errors(&self) -> Vec<String> {
        let log = self.tell("se/log", json!({ "type": "browser" })).await;
        let entries = log.as_array().cloned().unwrap_or_default();
        let bad = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The addresses that were asked for since this was last asked.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let log = self.tell("se/log", json!({ "type": "performance" })).await;
        let entries = log.as_array().cloned().unwrap_or_default();
        let mut urls = Vec::new();
        for entry in entries {
            let message: Json =
                serde_json::from_str(entry["message"].as_str().unwrap_or("{}")).unwrap_or_default();
            if message["message"]["method"] != "Network.requestWillBeSent" {
                continue;
            }
            let url = message["message"]["params"]["request"]["url"].as_str().unwrap_or_default();
            if url.starts_with("http") {
                urls.push(url.to_owned());
            }
        }
        urls
    }

    /// Listens to a stream of events itself, not in the page, until an event with at least this number was told.
    pub(crate) async fn told_until(&self, url: &str, seq: u64) {
        let mut stream = self.http.get(url).send().await.expect("a stream");
        let mut text = String::new();
        let told = |text: &str| {
            let ids = text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse::<u64>().ok());
            ids.max() >= Some(seq)
        };
        while !told(&text) {
            let bytes = stream.chunk().await.expect("a chunk").expect("it goes on");
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Ends the browser.
    pub(crate) async fn close(self) {
        ask(&self.http, reqwest::Method::DELETE, &self.session, None).await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.driver.wait();
    }
}

fn capabilities(found: &Found, profile: &TempDir) -> Json {
    let profile = format!("--user-data-dir={}", profile.path().display());
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1440,900",
        profile.as_str(),
    ];
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        "goog:chromeOptions": {
            "binary": found.browser,
            "args": arguments,
            // Of everything that could be noted only requests are asked for.
            "perfLoggingPrefs": { "enableNetwork": true, "enablePage": false },
        },
    } } })
}

async fn ask(http: &reqwest::Client, method: reqwest::Method, url: &str, body: Option<Json>) -> Json {
    let mut request = http.request(method, url);
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.expect("chromedriver answers");
    let status = response.status();
    let text = response.text().await.expect("a whole answer");
    let mut answer: Json = serde_json::from_str(&text).expect("JSON");
    assert!(status.is_success(), "{url}: {}", answer["value"]["message"]);
    answer["value"].take()
}
