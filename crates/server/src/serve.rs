//! The server's life: bind, answer, stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::middleware::{from_fn, from_fn_with_state};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use stakeout_engine::Control;
use stakeout_store::{Store, StoreError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use crate::access::{Access, Door, TokenPolicy, guard, safe_headers, watch_the_door};
use crate::app::{App, Counts, Parts};
use crate::feed::Feed;
use crate::patience::{Patience, Patient, Slow};
use crate::reply::not_modified;
use crate::{openapi, routes, web};

/// Connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 4_000;
/// How long the head of a request may take, and how long an idle connection is kept.
const HEAD_WAIT: Duration = Duration::from_secs(15);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// When a token is needed.
    pub token: TokenPolicy,
    /// Names that the `Host` header may have besides the usual ones of loopback.
    pub hosts: Vec<String>,
    /// How often streams are told that they are alive.
    pub heartbeat: Duration,
    /// Messages a stream may lag behind before it is dropped.
    pub ring: usize,
    /// Streams at once.
    pub streams_max: usize,
    /// How long a client may take nothing of what is sent to it.
    pub write_wait: Duration,
    /// How long a client may take to send the body of a request.
    pub body_wait: Duration,
}

impl ServerConfig {
    /// The usual numbers.
    pub fn new(listen: SocketAddr) -> ServerConfig {
        ServerConfig {
            listen,
            token: TokenPolicy::default(),
            hosts: Vec::new(),
            heartbeat: Duration::from_secs(15),
            ring: 1_024,
            streams_max: 2_000,
            write_wait: Duration::from_secs(30),
            body_wait: Duration::from_secs(10),
        }
    }
}

/// Why it cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Somebody else listens there.
    #[error(
        "{0} is taken by another program: stop it, or choose another address with --listen or server.listen (\"off\" for none)"
    )]
    Taken(SocketAddr),
    /// It cannot be listened there.
    #[error("cannot listen at {address}: {error}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// Anybody could reach it, and nobody has a token.
    #[error(
        "{0} can be reached from other machines, so a token is needed, and there is none yet: make one with `stakeout token create --scope admin`, or listen at 127.0.0.1"
    )]
    NoToken(SocketAddr),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
    store: Arc<dyn Store>,
}

impl Server {
    /// Listens, but does not answer yet. Where others can reach it, it refuses to unless there is a token.
    pub async fn bind(config: ServerConfig, store: Arc<dyn Store>) -> Result<Server, ServerError> {
        let listen = config.listen;
        if !listen.ip().is_loopback() && store.tokens().await?.iter().all(|token| token.revoked.is_some()) {
            return Err(ServerError::NoToken(listen));
        }
        let listener = TcpListener::bind(listen).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::Taken(listen),
            _ => ServerError::Bind { address: listen, error },
        })?;
        let address = listener.local_addr().map_err(|error| ServerError::Bind { address: listen, error })?;
        Ok(Server { listener, address, config, store })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers for this engine until told to stop; whatever is under way then is abandoned.
    pub async fn run(self, control: Control, stop: CancellationToken) {
        let Server { listener, address, config, store } = self;
        let routes = routes::all();
        let app = App::new(Parts {
            access: Access::new(Arc::clone(&store), address, config.token, &config.hosts),
            feed: Feed::new(config.ring, config.streams_max),
            description: Arc::new(openapi::describe(&routes)),
            store: Arc::clone(&store),
            control: control.clone(),
            counts: Counts::default(),
            body_wait: config.body_wait,
            wishes: Default::default(),
        });
        let router = router(&app, routes);
        let patience = Patience { limit: config.write_wait, let_go: Arc::clone(app.feed.dropped()) };
        let feed = app.feed.run(store, control, config.heartbeat, stop.clone());
        tokio::join!(feed, accept(&listener, &router, &patience, &stop));
    }
}

/// Everything that is answered. What is outermost here comes first: the door before the guards, the guards before the
/// handlers.
fn router(app: &App, routes: Vec<crate::route::Route>) -> Router {
    let mut router = Router::new();
    for route in routes {
        let handler = match route.scope {
            Some(scope) => {
                let door = Door { app: app.clone(), scope };
                route.handler.layer(from_fn_with_state(door, guard))
            }
            None => route.handler,
        };
        router = router.route(route.path, handler);
    }
    router
        .fallback(web::serve)
        .method_not_allowed_fallback(web::wrong_method)
        .layer(from_fn(not_modified))
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(app.clone(), watch_the_door))
        .layer(from_fn(safe_headers))
        .with_state(app.clone())
}

async fn accept(listener: &TcpListener, router: &Router, patience: &Patience, stop: &CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        // The place comes before the connection: whoever has to wait waits in the system's queue.
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.expect("never closed, because it is ours"),
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                let (router, patience) = (router.clone(), patience.clone());
                connections.spawn(async move {
                    connection(stream, peer, router, patience).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Usually too many open files: a moment later there may be one less.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, router: Router, patience: Patience) {
    // Events are small and must not wait for company.
    let _ = stream.set_nodelay(true);
    let slow = Slow::new(&patience);
    let router = router.layer(axum::Extension(ConnectInfo(peer))).layer(axum::Extension(slow.clone()));
    let service = TowerToHyperService::new(router);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Patient::new(stream, patience.limit, slow)), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection broke");
    }
}
