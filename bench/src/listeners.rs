//! Listeners of the event stream, in a process of their own, but on the same cores: reading a stream costs as much as
//! writing it. And the server that they listen to.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use stakeout_core::Time;
use stakeout_engine::Clock;
use stakeout_server::{Server, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::quantile::Sorted;
use crate::scene::{Scene, runtime};

/// The server of a scene.
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    pub(crate) async fn start(scene: &Scene) -> anyhow::Result<Serving> {
        let config = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = Server::bind(config, scene.store.clone()).await?;
        let (address, stop) = (server.address(), CancellationToken::new());
        let task = tokio::spawn(server.run(scene.control.clone(), stop.clone()));
        Ok(Serving { address, stop, task })
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}

/// What listeners heard: the least and the most of them, and how long after the upstream's answer was whole.
#[derive(Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) delay_ms_p50: f64,
    pub(crate) delay_ms_p99: f64,
}

/// The listeners, in a process of their own.
pub(crate) struct Crowd {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Crowd {
    /// Returns when all of them have begun to listen.
    pub(crate) fn start(address: SocketAddr, listeners: usize) -> anyhow::Result<Crowd> {
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

    /// What they heard since they began to listen.
    pub(crate) fn finish(mut self) -> anyhow::Result<Report> {
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
    let report = Report {
        least: events.iter().copied().min().unwrap_or_default(),
        most: events.iter().copied().max().unwrap_or_default(),
        delay_ms_p50: delays.quantile(0.5),
        delay_ms_p99: delays.quantile(0.99),
    };
    writeln!(out, "{}", serde_json::to_string(&report)?)?;
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
