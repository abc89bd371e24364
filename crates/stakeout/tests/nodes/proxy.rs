//! A way to the database that can be cut.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
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
    /// What is said arrives, no answer comes back: a connection that dies at the worst moment.
    Deaf,
}

/// Passes connections on to the database, until told otherwise.
pub(crate) struct Proxy {
    runtime: Option<Runtime>,
    address: SocketAddr,
    way: watch::Sender<Way>,
    /// How often it was closed: a way that is open again at once has closed its connections all the same.
    closings: watch::Sender<u64>,
}

/// Where a way leads.
#[derive(Clone)]
pub(crate) enum End {
    /// The database's socket.
    Socket(PathBuf),
    /// A port, such as an upstream's.
    Port(SocketAddr),
}

impl Proxy {
    pub(crate) fn to(socket: PathBuf) -> Proxy {
        Proxy::start(Ipv4Addr::LOCALHOST, End::Socket(socket), false)
    }

    /// As some poolers are: `LISTEN` succeeds, and nothing is ever heard.
    pub(crate) fn that_notifies_nobody(socket: PathBuf) -> Proxy {
        Proxy::start(Ipv4Addr::LOCALHOST, End::Socket(socket), true)
    }

    /// One that can be reached at another address.
    pub(crate) fn at(address: Ipv4Addr, end: End) -> Proxy {
        Proxy::start(address, end, false)
    }

    fn start(address: Ipv4Addr, end: End, mute: bool) -> Proxy {
        let runtime = Runtime::new().expect("a runtime");
        let way = watch::Sender::new(Way::Open);
        let closings = watch::Sender::new(0);
        let listener = runtime.block_on(TcpListener::bind((address, 0))).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (watched, counted) = (way.clone(), closings.clone());
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (end, way, closings) = (end.clone(), watched.subscribe(), counted.subscribe());
                tokio::spawn(async move {
                    if *way.borrow() == Way::Closed {
                        return;
                    }
                    match end {
                        End::Socket(path) => {
                            let Ok(server) = UnixStream::connect(path).await else { return };
                            connect(client, server, way, closings, mute).await;
                        }
                        End::Port(address) => {
                            let Ok(server) = TcpStream::connect(address).await else { return };
                            connect(client, server, way, closings, mute).await;
                        }
                    }
                });
            }
        });
        Proxy { runtime: Some(runtime), address, way, closings }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
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
        self.closings.send_modify(|closings| *closings += 1);
    }

    pub(crate) fn deafen(&self) {
        self.way.send_replace(Way::Deaf);
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

/// Passes on what both sides say.
async fn connect(
    client: TcpStream,
    server: impl AsyncRead + AsyncWrite + Unpin,
    way: watch::Receiver<Way>,
    closings: watch::Receiver<u64>,
    mute: bool,
) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = tokio::io::split(server);
    let answers = Side::Answered(Words { mute, ..Words::default() });
    tokio::select! {
        () = pass(from_client, to_server, way.clone(), closings.clone(), Side::Said) => {}
        () = pass(from_server, to_client, way, closings, answers) => {}
    }
}

/// Which way something goes.
enum Side {
    Said,
    Answered(Words),
}

/// Takes notifications out of what a server says: a letter and a length begin each of its messages.
#[derive(Default)]
struct Words {
    mute: bool,
    begun: Vec<u8>,
}

const NOTIFICATION: u8 = b'A';

impl Words {
    fn heard(&mut self, some: &[u8]) -> Vec<u8> {
        if !self.mute {
            return some.to_vec();
        }
        self.begun.extend_from_slice(some);
        let mut passed = Vec::new();
        while let Some(length) = self.begun.get(1..5) {
            let whole = 1 + u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.begun.len() < whole {
                break;
            }
            let message: Vec<u8> = self.begun.drain(..whole).collect();
            if message[0] != NOTIFICATION {
                passed.extend(message);
            }
        }
        passed
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut way: watch::Receiver<Way>,
    mut closings: watch::Receiver<u64>,
    mut side: Side,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = closings.changed() => return,
        };
        let Ok(read @ 1..) = read else { return };
        // What is under way when the cable is pulled arrives when it is back, if anybody still listens.
        let Ok(way) = way.wait_for(|way| *way != Way::Cut).await.map(|way| *way) else { return };
        let some = match &mut side {
            Side::Answered(_) if way == Way::Deaf => continue,
            Side::Answered(words) => words.heard(&buffer[..read]),
            Side::Said => buffer[..read].to_vec(),
        };
        if way == Way::Closed || closings.has_changed().unwrap_or(true) || to.write_all(&some).await.is_err()
        {
            return;
        }
    }
}
