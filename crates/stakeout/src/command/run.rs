//! `stakeout run`: the service.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use serde_json::{Value as Json, json};
use stakeout_core::{Source, Span};
use stakeout_engine::http::HttpFetch;
use stakeout_engine::{Clock, Control, Engine, EngineConfig};
use stakeout_server::{Scope, Server, UnknownScope};
use stakeout_store::postgres::LeaseClock;
use stakeout_store::{Store, TokenRow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::deliveries::chosen;
use crate::cli::RunArgs;
use crate::config::{Secrets, Wired};
use crate::control::{ControlHandler, Request, Socket, serve, socket_path};
use crate::open::{Database, Opened, Place};
use crate::output;

/// Whatever happens, the process is gone this long after it was asked to stop.
const STOP_LIMIT: Duration = Duration::from_millis(4_800);

pub(super) async fn run(place: &Place, args: &RunArgs) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let Wired { sources, warnings } = place.loaded.some_sources(&Secrets::Environment)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    // A database server's clock decides leases, unless this process lives faster than the world.
    let (clock, leases) = match args.speed {
        1.0 => (Clock::system(), LeaseClock::Database),
        speed => (Clock::scaled(speed), LeaseClock::Caller),
    };
    let opened = place.create(leases).await?;
    let store = opened.store();
    let config = engine_config(place, Arc::clone(&store), sources.clone(), clock)?;
    // Before anything is polled: an address that cannot be had is no reason to abandon polls.
    let server = match place.loaded.config.server.config(args.listen) {
        Some(config) => Some(Server::bind(config, opened.for_onlookers()?).await?),
        None => None,
    };
    let engine = Engine::start(config).await.context("the engine cannot start")?;

    let socket = listen(place, &opened)?;
    greet(place, &sources, &*store, socket.as_ref(), server.as_ref()).await?;
    let stop = CancellationToken::new();
    let handler = Arc::new(Commands { control: engine.control(), store });
    let serving = socket.map(|socket| tokio::spawn(serve(socket, handler, stop.clone())));
    let answering = server.map(|server| tokio::spawn(server.run(engine.control(), stop.clone())));

    let died = tokio::select! {
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            None
        }
        error = engine.stopped() => Some(error),
    };
    stop.cancel();
    let stopping = async {
        // The socket goes first: a command that comes now finds nobody rather than half an engine.
        if let Some(serving) = serving {
            let _ = serving.await;
        }
        if let Some(answering) = answering {
            let _ = answering.await;
        }
        engine.shutdown().await
    };
    let stopped = tokio::select! {
        stopped = tokio::time::timeout(STOP_LIMIT, stopping) => stopped,
        name = signals.next() => {
            tracing::warn!(signal = name, "asked twice: stopping at once");
            std::process::exit(1);
        }
    };
    if let Some(error) = died {
        return Err(anyhow::Error::new(error).context("the engine has stopped by itself"));
    }
    match stopped {
        Ok(result) => result.context("the engine did not stop cleanly")?,
        Err(_) => tracing::warn!("polls under way were abandoned"),
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// The engine's configuration; also that of a single pass.
pub(super) fn engine_config(
    place: &Place,
    store: Arc<dyn Store>,
    sources: Vec<Arc<dyn Source>>,
    clock: Clock,
) -> Result<EngineConfig> {
    let config = &place.loaded.config;
    let fetch = HttpFetch::new().context("the HTTP client cannot start")?;
    let mut engine = EngineConfig::new(store, sources, Arc::new(fetch));
    engine.sinks = place.loaded.sinks(&Secrets::Environment)?;
    engine.alerts = place.loaded.alerts()?;
    engine.node = place.node();
    engine.clock = clock;
    engine.retention = (&config.retention).into();
    engine.lease = config.engine.lease.0;
    engine.ahead = config.engine.claim_ahead.0;
    engine.grace = config.engine.shutdown_grace.0.to_std();
    Ok(engine)
}

/// Whoever has a file to himself takes commands; where the store is shared, commands write it themselves.
fn listen(place: &Place, opened: &Opened) -> Result<Option<Socket>> {
    let (Database::File(database), Opened::File(store)) = (&place.database, opened) else { return Ok(None) };
    let path = socket_path(database)?;
    let socket =
        Socket::bind(&path).with_context(|| format!("cannot listen for commands at {}", path.display()))?;
    store.set_socket(socket.path())?;
    Ok(Some(socket))
}

async fn greet(
    place: &Place,
    sources: &[Arc<dyn Source>],
    store: &dyn Store,
    socket: Option<&Socket>,
    server: Option<&Server>,
) -> Result<()> {
    let targets = store.stats().await?.targets;
    let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let reached = match socket {
        Some(socket) => format!("control socket {}", socket.path().display()),
        None => format!("node {}", place.node()),
    };
    output::line(&format!(
        "watching {} of {} ({}); store {}, {reached}",
        count(targets, "target"),
        count(names.len() as u64, "source"),
        names.join(", "),
        place.database
    ))?;
    match server {
        Some(server) => output::line(&format!("dashboard and API at http://{}/", server.address())),
        None => Ok(()),
    }
}

/// What a person may tell the running engine.
struct Commands {
    control: Control,
    store: Arc<dyn Store>,
}

#[async_trait]
impl ControlHandler for Commands {
    async fn handle(&self, request: Request) -> Result<Json, String> {
        let control = &self.control;
        let done = match &request {
            Request::Ping {} => Ok(()),
            Request::Enable { target } => {
                let (source, key) = split(target)?;
                control.set_enabled(source, key, true).await
            }
            Request::Disable { target } => {
                let (source, key) = split(target)?;
                control.set_enabled(source, key, false).await
            }
            Request::PollNow { target } => {
                let (source, key) = split(target)?;
                control.poll_now(source, key).await
            }
            Request::Rebaseline { target } => {
                let (source, key) = split(target)?;
                control.rebaseline(source, key).await
            }
            Request::Set { key, value } => {
                control.set_setting(key, Some(value.clone()).filter(|value| !value.is_null())).await
            }
            Request::AddToken { id, name, scope, hash } => {
                return self.add_token(id, name, scope, &hash.0).await.map(|()| json!({}));
            }
            Request::RevokeToken { id } => {
                let revoked = self.store.revoke_token(id, control.clock().now()).await;
                return revoked
                    .map(|revoked| json!({ "revoked": revoked }))
                    .map_err(|error| error.to_string());
            }
            Request::RetryDeliveries { sink, event, waiting } => {
                let count = self.store.retry_deliveries(sink, chosen(*event, *waiting)).await;
                return count.map(|count| json!({ "count": count })).map_err(|error| error.to_string());
            }
            Request::DropDeliveries { sink, event, waiting } => {
                let count = self.store.drop_deliveries(sink, chosen(*event, *waiting)).await;
                return count.map(|count| json!({ "count": count })).map_err(|error| error.to_string());
            }
            Request::Pass { limit_ms } => {
                let report = control.pass(Span::ms(*limit_ms)).await.map_err(|error| error.to_string())?;
                return serde_json::to_value(report).map_err(|error| error.to_string());
            }
        };
        done.map(|()| json!({})).map_err(|error| error.to_string())
    }
}

impl Commands {
    async fn add_token(&self, id: &str, name: &str, scope: &str, hash: &str) -> Result<(), String> {
        let hash = parse_hash(hash).ok_or("expected a hash of 64 hex digits")?;
        let scope: Scope = scope.parse().map_err(|error: UnknownScope| error.to_string())?;
        let row = TokenRow {
            id: id.to_owned(),
            name: name.to_owned(),
            scope: scope.to_string(),
            hash,
            created: self.control.clock().now(),
            revoked: None,
        };
        self.store.add_token(&row).await.map_err(|error| error.to_string())
    }
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    (digits.len() == 64).then_some(hash)
}

fn split(target: &str) -> Result<(&str, &str), String> {
    target.split_once('/').ok_or_else(|| format!("expected a target as source/key, found {target:?}"))
}

/// SIGTERM and SIGINT, from before anything could be lost by them.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one's name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
