//! A rule made on the page rings on the page, arrives signed at a webhook and as one mail, while another sink is dead
//! and somebody kills the process in between.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use serde_json::{Value as Json, json};
use stakeout_sim::{Act, Loopback, Seen};

use crate::Stage;
use crate::demo::Demo;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Python with a mail server in it; `None`, having said why, where there is none.
fn python() -> Option<std::path::PathBuf> {
    let own = Path::new(HERE).join("../../target/aiosmtpd/bin/python");
    let python = if own.exists() { own } else { "python3".into() };
    let there = Command::new(&python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
    if there.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let words = "skipped: aiosmtpd is missing (scripts/test installs it)\n";
    std::io::Write::write_all(&mut std::io::stdout(), words.as_bytes()).expect("written");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
    None
}

/// A mail server that says each mail as a line.
struct MailServer {
    child: Child,
    port: u16,
    lines: Lines<BufReader<ChildStdout>>,
}

impl MailServer {
    fn start(python: &Path) -> MailServer {
        let script = Path::new(HERE).join("../sinks/tests/smtpd.py");
        let mut command = Command::new(python);
        command.arg(script).arg("none").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines.next().expect("a port").expect("readable").parse().expect("a number");
        MailServer { child, port, lines }
    }

    /// Every mail that it has taken until it was told to go.
    fn mails(mut self) -> Vec<Json> {
        drop(self.child.stdin.take());
        let lines = self.lines.map(|line| serde_json::from_str(&line.expect("readable")).expect("JSON"));
        let mails = lines.collect();
        self.child.wait().expect("it ends");
        mails
    }
}

/// Whether a request is signed as the specification says, by another implementation of it than ours.
fn is_signed(python: &Path, request: &Seen) -> bool {
    const CHECK: &str = "import base64, hashlib, hmac, sys
secret, id, at, signature = sys.argv[1:]
key = base64.b64decode(secret.removeprefix('whsec_'))
signed = f'{id}.{at}.'.encode() + sys.stdin.buffer.read()
good = 'v1,' + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
sys.exit(0 if hmac.compare_digest(good, signature) else 1)";
    let header = |name: &str| request.header(name).expect("a header of the specification").to_owned();
    let [id, at, signature] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(header);
    let mut command = Command::new(python);
    command.args(["-c", CHECK, SECRET, &id, &at, &signature]).stdin(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), &request.body).expect("written");
    child.wait().expect("it ends").success()
}

/// Has the page look at the sinks again and again, also while nobody answers.
const LOOK_AT_SINKS: &str = "(setInterval(() => fetch('/v1/sinks').then((answer) => answer.json())
    .then((all) => (window.sinks = all)).catch(() => (window.sinks = [])), 200), true)";

fn config(upstream: &str, hook: &str, smtp: u16) -> String {
    format!(
        r#"
[source.shop]
kind = "json"
url = "{upstream}"
every = "200ms"
records = "items"
key = "id"
fields = ["price"]
limits = {{ requests_per_second = 100, burst = 10, timeout = "5s" }}
[sink.hook]
kind = "webhook"
url = "{hook}"
secret = "{SECRET}"
allow = ["127.0.0.1"]
[sink.mail]
kind = "mail"
host = "localhost"
port = {smtp}
tls = "none"
allow = ["localhost"]
from = "Stakeout <stakeout@example.org>"
to = ["anna@example.org"]
digest = "10s"
[sink.gone]
kind = "webhook"
url = "http://127.0.0.1:9/"
secret = "{SECRET}"
allow = ["127.0.0.1"]
"#
    )
}

#[tokio::test]
async fn a_rule_made_on_the_page_rings_everywhere_once() {
    let Some(python) = python() else { return };
    let mail = MailServer::start(&python);
    let price = Arc::new(AtomicI64::new(3));
    let shown = Arc::clone(&price);
    let upstream = Loopback::start(move |_| {
        Act::json(&json!({ "items": [{ "id": "a", "price": shown.load(SeqCst) }] }))
    });
    let receiver = Loopback::start(|_| Act::Answer { status: 204, headers: vec![], body: "".into() });
    let config = config(&upstream.url("/shop"), &receiver.url("/in"), mail.port);
    let Some(mut stage) = Stage::of(|| Some(Demo::of(&config))).await else { return };

    stage.open("/alerts").await;
    let browser = &stage.browser;
    browser
        .until(
            "the sinks can be chosen",
            "document.querySelectorAll('form.rule [type=checkbox][value]').length === 3",
        )
        .await;
    browser.keys("form.rule [name=name]", "cheap").await;
    browser.keys("form.rule [name=type]", "json.*").await;
    let repeats = "document.querySelector('form.rule [name=repeat]').parentElement.textContent";
    assert_eq!(browser.text(repeats).await, "Again every, until it is read");
    browser.keys("form.rule [name=repeat]", "1h").await;
    for sink in ["hook", "mail", "gone"] {
        browser.click(&format!("form.rule [value={sink}]")).await;
    }
    browser.click("form.rule [type=submit]").await;
    browser.until("the rule is in force", "document.querySelector('[aria-label=\"Remove cheap\"]')").await;
    // The first look is no news.
    while upstream.stats().requests < 3 {
        browser.value("true").await;
    }

    price.store(2, SeqCst);
    browser.until("a toast", "document.querySelector('#toasts .toast b')?.textContent").await;
    browser.until("it is listed as unread", "document.querySelector('.rung li.you')").await;
    browser
        .until("the rail counts it", "document.querySelector('.badge:not([hidden])')?.textContent === '1'")
        .await;
    browser.value(LOOK_AT_SINKS).await;
    let sink =
        |name: &str, check: &str| format!("window.sinks.find((sink) => sink.name === '{name}').{check}");
    // A sink that never saw anything has an empty outbox, too: first the request, then the mark.
    while receiver.stats().requests == 0 {
        browser.value("true").await;
    }
    browser.until("the webhook has it", &sink("hook", "waiting === 0")).await;
    let about = "document.querySelector('.rung li .what').textContent";
    let said = browser.text(about).await;

    stage.demo.kill();
    stage.demo.go_on();
    let browser = &stage.browser;
    let state = "document.querySelector('#link').dataset.state === 'live'";
    browser.until("it is back by itself", state).await;
    browser.until("the mail is sent", &sink("mail", "waiting === 0")).await;
    browser.until("the dead sink waits", &sink("gone", "waiting === 1")).await;
    assert_eq!(browser.text(about).await, said, "what was told is what it was");
    browser.click(".rung li.you button").await;
    browser
        .until(
            "it is read",
            "!document.querySelector('.rung li.you') && document.querySelector('.badge').hidden",
        )
        .await;
    let told = "fetch('/v1/notifications').then((answer) => answer.json())";
    let told = browser.value(told).await;
    assert_eq!((&told["unread"], told["items"].as_array().map(Vec::len)), (&json!(0), Some(1)), "{told}");
    let id = told["items"][0]["id"].as_str().expect("an id").to_owned();
    let title = told["items"][0]["title"].as_str().expect("a title").to_owned();
    assert!(title.starts_with(char::is_uppercase) && !title.contains("json."), "in plain words: {title}");
    stage.browser.close().await;
    drop(stage.demo);

    let seen = receiver.seen();
    let ids: BTreeSet<&str> = seen.iter().filter_map(|request| request.header("webhook-id")).collect();
    assert_eq!(ids, BTreeSet::from([id.as_str()]), "at worst a repeat with the same id");
    assert!(seen.iter().all(|request| is_signed(&python, request)), "signed");
    let mails = mail.mails();
    let about: BTreeSet<&str> = mails.iter().filter_map(|mail| mail["id"].as_str()).collect();
    assert_eq!((mails.len(), about.len()), (1, 1), "one mail: {mails:?}");
    assert!(
        mails[0]["id"].as_str().is_some_and(|found| found.contains(&id)),
        "{} names {id}",
        mails[0]["id"]
    );
}

#[tokio::test]
async fn a_tab_that_was_away_says_how_much_rang() {
    let price = Arc::new(AtomicI64::new(3));
    let shown = Arc::clone(&price);
    let upstream = Loopback::start(move |_| {
        Act::json(&json!({ "items": [{ "id": "a", "price": shown.load(SeqCst) }] }))
    });
    let config = format!(
        "[source.shop]\nkind = \"json\"\nurl = \"{}\"\nevery = \"200ms\"\nrecords = \"items\"\nkey = \"id\"\n\
         fields = [\"price\"]\nlimits = {{ requests_per_second = 100, burst = 10, timeout = \"5s\" }}\n\
         [alert.cheap]\nwhen = {{ on = \"event\", type = \"json.*\" }}\n",
        upstream.url("/shop")
    );
    let Some(stage) = Stage::of(|| Some(Demo::of(&config))).await else { return };
    stage.open("/alerts").await;
    let browser = &stage.browser;
    let state = "document.querySelector('#link').dataset.state";
    browser.until("it listens", &format!("{state} === 'live'")).await;
    while upstream.stats().requests < 3 {
        browser.value("true").await;
    }
    // What comes by again afterwards is older than a minute, by the page's clock.
    let hide = |hidden: bool| {
        format!(
            "import('/live.js').then(({{ live, clock }}) => {{
                live.hidden_ms = 0;
                clock.now = () => Date.now() + 120_000;
                Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {hidden} }});
                document.dispatchEvent(new Event('visibilitychange'));
                return true;
            }})"
        )
    };
    browser.value(&hide(true)).await;
    browser.until("the stream is given back", &format!("{state} === 'paused'")).await;
    for told in 1..=2 {
        price.fetch_sub(1, SeqCst);
        let unread = "fetch('/v1/notifications').then((answer) => answer.json())";
        while browser.value(unread).await["unread"] != json!(told) {}
    }
    browser.value(&hide(false)).await;
    let title = "document.querySelector('#toasts .toast b')?.textContent";
    browser.until("one toast for all", &format!("{title} === '2 alerts while you were away'")).await;
    let toasts = "document.querySelectorAll('#toasts .toast').length";
    assert_eq!(browser.value(toasts).await, json!(1));
    let link = "document.querySelector('#toasts .toast a').getAttribute('href')";
    assert_eq!(browser.text(link).await, "/alerts");
    stage.close().await;
}
