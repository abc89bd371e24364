//! A thousand listeners: what they cost the polling, and how soon they hear.
//!
//! The listeners are in a process of their own, but on the same cores: reading a stream costs as much as writing it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use stakeout_core::{Source, Span, Time};
use stakeout_engine::Clock;
use stakeout_server::{Server, ServerConfig};
use stakeout_sources::json::JsonSource;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::args::Pace;
use crate::print;
use crate::quantile::Sorted;
use crate::scene::{Scene, Watch, runtime};
use crate::stamped::{Grid, StampedFetch, judge};
use crate::table::{Met, Row, grouped};
use crate::upstream::Upstream;

const TARGETS: u64 = 1_000;
const EVERY: Duration = Duration::from_millis(200);
/// Targets of another source, which change with every poll: one event each.
const TALKING: u64 = 5;
const TALK_EVERY: Duration = Duration::from_secs(1);
/// Their numbers begin beyond those whose lateness is judged.
const TALKING_FROM: u64 = 1_000_000;
const LATENESS_P99_MS_MAX: f64 = 5.0;
const HEARD_P99_MS_MAX: f64 = 10.0;
/// Between two windows, and after the listeners came.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let listeners: usize = pace.pick(1_000, 200);
    runtime()?.block_on(rows(listeners, pace.secs(15, 4)))
}

async fn rows(listeners: usize, window: Duration) -> anyhow::Result<Vec<Row>> {
    let upstream = Upstream::start()?;
    let (same, changing) = (upstream.url("/same/{id}"), upstream.url("/changing/{id}"));
    let watch = Watch { url: &same, targets: TARGETS, every: EVERY, concurrency: 256 };
    let fetch = Arc::new(StampedFetch::new(TARGETS)?);
    let scene = Scene::with(vec![watch.source()?, talker(&changing)?], fetch.clone()).await?;
    let server = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::bind(server, scene.store.clone()).await?;
    let (address, stop) = (server.address(), CancellationToken::new());
    let serving = tokio::spawn(server.run(scene.control.clone(), stop.clone()));
    scene.polled(TARGETS).await?;
    tokio::time::sleep(SETTLE).await;

    let alone = window_of(&fetch, window).await;
    print::progress(&format!("nobody listens: {}", alone.0.summary_ms()));
    let (_, single) = listened(&scene, &fetch, address, 1, window).await?;
    let (heard, crowd) = listened(&scene, &fetch, address, listeners, window).await?;

    stop.cancel();
    serving.await?;
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    let mut rows = vec![punctual(listeners, &alone, &heard)];
    rows.push(heard_row("one listener", &single, Some(HEARD_P99_MS_MAX))?);
    // They share two cores with everything else; the last of them hears a thousand writes later than the first.
    rows.push(heard_row(&format!("every one of {} listeners", grouped(listeners as f64)), &crowd, None)?);
    Ok(rows)
}

type Window = (Sorted, u64);

/// What listeners said they heard, and how many events there were while everybody listened.
struct Listened {
    report: Value,
    told: u64,
}

/// A window in which so many listen.
async fn listened(
    scene: &Scene,
    fetch: &StampedFetch,
    address: SocketAddr,
    listeners: usize,
    window: Duration,
) -> anyhow::Result<(Window, Listened)> {
    let crowd = Crowd::start(address, listeners)?;
    tokio::time::sleep(SETTLE).await;
    let before = *scene.control.newest().borrow();
    let heard = window_of(fetch, window).await;
    let told = *scene.control.newest().borrow() - before;
    Ok((heard, Listened { report: crowd.finish()?, told }))
}

fn punctual(listeners: usize, alone: &Window, heard: &Window) -> Row {
    let (p99, missed) = (heard.0.quantile(0.99), heard.1);
    let who = format!("{} listeners", grouped(listeners as f64));
    Row {
        what: format!("lateness, 1,000 targets every 200 ms, {who} who all hear {TALKING} events per second"),
        ours: format!("{} ({} polls, {missed} missed)", heard.0.summary_ms(), grouped(heard.0.len() as f64)),
        floor: format!("nobody listens: {} ({} missed)", alone.0.summary_ms(), alone.1),
        ratio: Some(p99 / alone.0.quantile(0.99)),
        target: format!("p99 ≤ {LATENESS_P99_MS_MAX:.0} ms, none missed"),
        met: Met::when(p99 <= LATENESS_P99_MS_MAX && missed == 0),
    }
}

fn heard_row(who: &str, heard: &Listened, most_ms: Option<f64>) -> anyhow::Result<Row> {
    let number = |name: &str| heard.report[name].as_f64().with_context(|| format!("{name} is missing"));
    let (least, most, p99) = (number("least")?, number("most")?, number("delay_ms_p99")?);
    // Those who came a moment later may have heard a few less; nobody less than the window had.
    let lost = least < heard.told as f64;
    Ok(Row {
        what: format!("upstream's changed answer → read by {who}"),
        ours: format!(
            "p50 {:.1} ms, p99 {p99:.1} ms (each heard {least:.0} to {most:.0} events; {} were told in the window)",
            number("delay_ms_p50")?,
            heard.told
        ),
        floor: "polling interval".to_owned(),
        ratio: None,
        target: match most_ms {
            Some(most) => format!("p99 ≤ {most:.0} ms, nothing lost"),
            None => "nothing lost".to_owned(),
        },
        met: Met::when(!lost && most_ms.is_none_or(|most| p99 <= most)),
    })
}

/// A source that has something to tell with every poll.
fn talker(url: &str) -> anyhow::Result<Arc<dyn Source>> {
    let ids: Vec<String> = (0..TALKING).map(|n| (TALKING_FROM + n).to_string()).collect();
    let config = json!({
        "url": url, "ids": ids, "every": format!("{}ms", TALK_EVERY.as_millis()),
        "records": "items", "key": "id", "fields": ["value"],
        "limits": { "requests_per_second": 1_000, "burst": 100, "concurrency": 16, "timeout": "10s", "jitter": "0ms" },
    });
    Ok(Arc::new(JsonSource::new("talk", &serde_json::from_value(config)?, Vec::new())?))
}

/// How late the polls of a window were, and how many were missed.
async fn window_of(fetch: &StampedFetch, window: Duration) -> Window {
    let clock = Clock::system();
    let from = clock.now();
    tokio::time::sleep(window).await;
    let to = clock.now();
    // What was due in the window but is not sent yet would look like missed.
    tokio::time::sleep(EVERY + Duration::from_millis(200)).await;
    let (mut lateness_ms, mut missed) = (Vec::new(), 0);
    for (number, notes) in (0..).zip(fetch.notes()) {
        let kept = judge(Grid::of(number, Span::from_std(EVERY)), &notes, from, to);
        lateness_ms.extend(kept.lateness_ms);
        missed += kept.missed;
    }
    (Sorted::new(lateness_ms), missed)
}

/// The listeners, in a process of their own.
struct Crowd {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Crowd {
    /// Returns when all of them have begun to listen.
    fn start(address: SocketAddr, listeners: usize) -> anyhow::Result<Crowd> {
        let mut child = std::process::Command::new(std::env::current_exe()?)
            .args(["listen", &address.to_string(), &listeners.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the listeners")?;
        let mut out = BufReader::new(child.stdout.take().context("the listeners' output is piped")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        anyhow::ensure!(line.trim() == "ready", "the listeners did not come: {line:?}");
        Ok(Crowd { child, out })
    }

    /// What they heard.
    fn finish(mut self) -> anyhow::Result<Value> {
        // They listen until their input closes.
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        self.child.wait()?;
        serde_json::from_str(&line).context("the listeners gave no report")
    }
}

/// What one listener heard.
#[derive(Default)]
struct Heard {
    events: u64,
    delays_ms: Vec<f64>,
}

/// The other side: listens until the input closes, then says what was heard.
pub(crate) fn listen(address: SocketAddr, listeners: usize) -> anyhow::Result<()> {
    let heard: Vec<Arc<Mutex<Heard>>> = (0..listeners).map(|_| Arc::default()).collect();
    let runtime = runtime()?;
    runtime.block_on(async {
        let (ready, mut began) = tokio::sync::mpsc::channel(listeners);
        for heard in &heard {
            tokio::spawn(one(address, Arc::clone(heard), ready.clone()));
        }
        for _ in 0..listeners {
            began.recv().await.context("a listener broke off")?;
        }
        anyhow::Ok(())
    })?;
    // From here on it counts.
    heard.iter().for_each(|heard| *locked(heard) = Heard::default());
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let events: Vec<u64> = heard.iter().map(|heard| locked(heard).events).collect();
    let delays = heard.iter().flat_map(|heard| locked(heard).delays_ms.clone()).collect();
    let delays = Sorted::new(delays);
    let report = json!({
        "least": events.iter().min(), "most": events.iter().max(),
        "delay_ms_p50": delays.quantile(0.5), "delay_ms_p99": delays.quantile(0.99),
    });
    writeln!(out, "{report}")?;
    Ok(())
}

fn locked(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One listener. An event is stamped when its answer was whole: what is left until it is read here is ours.
async fn one(
    address: SocketAddr,
    heard: Arc<Mutex<Heard>>,
    ready: tokio::sync::mpsc::Sender<()>,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /v1/events/stream HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut text, mut buffer, mut began) = (String::new(), vec![0; 16 << 10], false);
    loop {
        let read = stream.read(&mut buffer).await?;
        anyhow::ensure!(read > 0, "the stream ended");
        let now = Clock::system().now();
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
        while let Some(end) = text.find("\n\n") {
            let message: String = text.drain(..end + 2).collect();
            if message.contains("event: heartbeat") && !began {
                began = true;
                ready.send(()).await?;
            } else if message.contains("event: event") {
                let stamp = message.split("\"at\":\"").nth(1).and_then(|rest| rest.split('"').next());
                let at = stamp.and_then(Time::parse).context("an event without its time")?;
                let mut heard = locked(&heard);
                heard.events += 1;
                heard.delays_ms.push((now - at).as_secs_f64() * 1e3);
            }
        }
    }
}
