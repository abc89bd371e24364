//! A way to the database that can be cut.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// What becomes of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Nothing arrives, nobody is told: a cable that was pulled.
    Cut,
    /// Connections are closed, new ones too: a database that is away.
    Closed,
}

/// Passes connections on to the database, until told otherwise.
pub(crate) struct Proxy {
    runtime: Option<Runtime>,
    address: SocketAddr,
    way: watch::Sender<Way>,
}

impl Proxy {
    pub(crate) fn to(socket: PathBuf) -> Proxy {
        let runtime = Runtime::new().expect("a runtime");
        let way = watch::Sender::new(Way::Open);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let watched = way.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (socket, way) = (socket.clone(), watched.subscribe());
                tokio::spawn(async move {
                    if *way.borrow() == Way::Closed {
                        return;
                    }
                    let Ok(server) = UnixStream::connect(socket).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::select! {
                        () = pass(from_client, to_server, way.clone()) => {}
                        () = pass(from_server, to_client, way) => {}
                    }
                });
            }
        });
        Proxy { runtime: Some(runtime), address, way }
    }

    /// The URL of a database, by this way.
    pub(crate) fn url(&self, database: &str) -> String {
        let name = database.rsplit('/').next().expect("a database");
        format!("postgres://stakeout@{}/{name}?sslmode=disable", self.address)
    }

    pub(crate) fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    pub(crate) fn close(&self) {
        self.way.send_replace(Way::Closed);
    }

    pub(crate) fn open(&self) {
        self.way.send_replace(Way::Open);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut way: watch::Receiver<Way>,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            closed = way.wait_for(|way| *way == Way::Closed) => {
                drop(closed);
                return;
            }
        };
        let Ok(read @ 1..) = read else { return };
        // What is under way when the cable is pulled arrives when it is back, if anybody still listens.
        let Ok(way) = way.wait_for(|way| *way != Way::Cut).await.map(|way| *way) else { return };
        if way == Way::Closed || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
