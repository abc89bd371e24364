//! What is said to one node reaches the others: plans, settings, events, published values.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_core::Time;
use stakeout_sim::fpv::{demo, serve};
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::postgres::{PgOptions, PgStore};
use stakeout_store::{DeriveCommit, DeriveOutcome, Refocus, Schedule, Store};
use tokio::runtime::Runtime;

use crate::proxy::Proxy;
use crate::support::{Node, Site, now_ms, until, until_within};
use crate::truth::Truth;

/// A node that answers, and where.
struct Answering {
    node: Node,
    address: SocketAddr,
}

impl Answering {
    fn start(site: &Site, name: &str, database: &str, sources: &str) -> Answering {
        let config = site.configure(name, database, "127.0.0.1:0", sources);
        let log = config.with_extension("log");
        let append = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
        command.args(["run", "-c"]).arg(&config).stdout(Stdio::piped()).stderr(append);
        let mut child = command.spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let node = Node { child, log, before: 0 };
        let address = lines
            .by_ref()
            .find_map(|line| line.split_once("API at http://")?.1.trim_end_matches('/').parse().ok());
        std::thread::spawn(move || lines.for_each(drop));
        Answering { node, address: address.expect("it says where it listens") }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        BufReader::new(stream)
    }

    /// Asks and answers the status line.
    fn asks(&self, method: &str, path: &str, body: &str) -> String {
        let mut line = String::new();
        self.request(method, path, body).read_line(&mut line).expect("an answer");
        line.trim().to_owned()
    }
}

/// How soon a word takes effect: at once where it is heard, a look later where it is not. Twice that, and what a busy
/// machine may need; the next poll would be due in a quarter of a minute.
const HEARD: Duration = Duration::from_secs(3);
const FOUND: Duration = Duration::from_secs(6);
/// What is promised, and what most of several tries must keep, so that one hiccup of the machine is not taken for a fault.
const PROMISED: Duration = Duration::from_secs(1);

/// A person talks to the node that does not hold the target. A poll, a setting and a switch take effect at once.
#[test]
fn what_is_said_to_any_node_reaches_the_one_that_holds_the_target() {
    let Some(site) = Site::new() else { return };
    reaches_the_holder(&site, &site.database, HEARD);
}

/// The same behind a pooler that lets nobody hear anything: nodes notice that they do not hear themselves, and look.
#[test]
fn what_is_said_where_nobody_can_listen_is_found_by_looking() {
    let Some(site) = Site::new() else { return };
    let proxy = Proxy::that_notifies_nobody(PostgresServer::shared().expect("it was there").socket());
    reaches_the_holder(&site, &proxy.url(&site.database), FOUND);
}

fn reaches_the_holder(site: &Site, database: &str, soon: Duration) {
    let truth = Truth::new(60_000);
    // Polled so rarely that only being told can explain a poll.
    let source = truth.source("15s");
    let mut nodes = ["one", "two"].map(|name| Answering::start(site, name, database, &source));
    let eye = site.eye();
    until("it is polled and held", || eye.polls() > 0 && eye.holder().is_some());
    let key = eye.texts("SELECT key FROM targets").remove(0);
    let other = |holder: &str| usize::from(holder == "one");

    let mut took = Vec::new();
    for _ in 0..3 {
        let holder = until_held(&eye);
        let polls = eye.polls();
        let status = nodes[other(&holder)].asks("POST", &format!("/v1/targets/script/{key}/poll"), "");
        assert!(status.contains(" 20"), "{status}");
        took.push(until_within(soon, "it is polled at once", || eye.polls() > polls));
    }
    // A third node, which holds nothing, moves the focus here and away again.
    for focused in [true, false] {
        until_held(&eye);
        let polls = eye.polls();
        refocus(database, &key, focused);
        took.push(until_within(soon, "it is looked at at once", || eye.polls() > polls));
    }
    took.sort();
    assert!(soon != HEARD || took[2] < PROMISED, "told within a second: {took:?}");
    let mut settled = Vec::new();
    for every_ms in [200, 15_000, 201, 15_001, 202] {
        let holder = until_held(&eye);
        // The row says how often it is polled as soon as whoever holds it has planned it anew.
        let body = format!(r#"{{"value": {every_ms}}}"#);
        let status = nodes[other(&holder)].asks("PUT", "/v1/settings/source.script.every_ms", &body);
        assert!(status.contains(" 20"), "{status}");
        let polled = "SELECT sum(poll_no)::text FROM targets";
        let before = eye.number(polled);
        let obeyed = || every_ms > 1_000 || eye.number(polled) > before;
        settled.push(until_within(soon, "it is polled as often as was said", || {
            eye.number("SELECT interval_us::text FROM targets") == every_ms * 1_000 && obeyed()
        }));
    }
    settled.sort();
    assert!(soon != HEARD || settled[2] < PROMISED, "settings take effect within a second: {settled:?}");
    let mut switched = Vec::new();
    for word in ["disable", "enable", "disable", "enable", "disable"] {
        let asked = if word == "disable" { other(&until_held(&eye)) } else { 0 };
        let status = nodes[asked].asks("POST", &format!("/v1/targets/script/{key}/{word}"), "");
        assert!(status.contains(" 20"), "{status}");
        let took = until_within(soon, "it is let go of, or taken up", || {
            eye.holder().is_none() == (word == "disable")
        });
        switched.push(took);
    }
    switched.sort();
    assert!(soon != HEARD || switched[2] < PROMISED, "a switch takes effect within a second: {switched:?}");
    took.extend(settled.into_iter().chain(switched));
    let polls = eye.polls();
    let asked = Instant::now();
    until("five of its intervals pass", || {
        eye.polls() > polls + 1 || asked.elapsed() > Duration::from_secs(1)
    });
    assert!(eye.polls() <= polls + 1, "switched off is switched off");
    println!("told within {took:?}");
    nodes.iter_mut().for_each(|answering| answering.node.stop());
}

/// Moves the focus to the target, or away from it, as a node does that has found out who matters now.
fn refocus(database: &str, key: &str, focused: bool) {
    let runtime = Runtime::new().expect("a runtime");
    let derived = runtime.block_on(async {
        let store = PgStore::open(database, PgOptions::default()).await.expect("opens");
        let row = store.target("script", key).await.expect("asked").expect("there");
        let now = Time(now_ms() as i64 * 1_000);
        let schedule = Schedule { due: Some(now), ..row.schedule };
        let derived = DeriveCommit {
            source: "script".to_owned(),
            now,
            focused_before: if focused { vec![] } else { vec![row.id] },
            create: None,
            refocus: vec![Refocus { key: key.to_owned(), schedule, focused }],
            kv: vec![],
            records: vec![],
            events: vec![],
            sinks: vec![],
        };
        store.derive(derived).await.expect("written")
    });
    assert!(matches!(derived, DeriveOutcome::Done(_)), "{derived:?}");
}

fn until_held(eye: &crate::support::Eye) -> String {
    let mut holder = None;
    until("it is held", || {
        holder = eye.holder();
        holder.is_some()
    });
    holder.expect("just seen")
}

/// Ten times as fast as life: something happens all the time.
fn fast() -> impl Fn() -> Time + Copy + Send + Sync + 'static {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let (began_us, began) = (since.as_micros() as i64, Instant::now());
    move || Time(began_us + began.elapsed().as_micros() as i64 * 10)
}

/// The stream of the node that asks nobody shows what the other one brings.
#[test]
fn events_and_published_values_reach_the_streams_of_all_nodes() {
    let Some(site) = Site::new() else { return };
    let now = fast();
    let server = serve(Arc::new(demo(now())), now);
    let source = format!("[source.track]\nkind = \"fpv\"\nurl = \"{}\"\n", server.url(""));
    let mut one = Answering::start(&site, "one", &site.database, &source);
    let eye = site.eye();
    until("one asks the source", || eye.polls() > 0);
    let mut two = Answering::start(&site, "two", &site.database, &source);
    let stream = two.request("GET", "/v1/events/stream", "");
    let (mut values, mut events) = (0, 0);
    for line in stream.lines().map_while(Result::ok) {
        match line.strip_prefix("event: ") {
            Some("kv") => values += 1,
            Some("heartbeat") | None => {}
            Some(_) => events += 1,
        }
        if values > 3 && events > 0 {
            break;
        }
    }
    assert!(values > 3 && events > 0, "{values} values, {events} events");
    assert_eq!(eye.texts("SELECT DISTINCT owner FROM targets WHERE owner IS NOT NULL"), ["one"]);
    one.node.stop();
    two.node.stop();
}
