//! A server on loopback whose handler decides what it does with each request.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc as commands;
use tokio::task::JoinSet;

use crate::act::Act;
use crate::perform::{After, perform};
use crate::traffic::{Seen, Stats, Traffic};
use crate::wire::{Conn, Incoming, head};

const BACKLOG: u32 = 1024;

type Handler = Arc<dyn Fn(&Seen) -> Act + Send + Sync>;

/// A simulated upstream on 127.0.0.1, on its own thread, stopped when dropped.
///
/// It runs on real time even where the test's runtime is paused. The handler runs on the server's thread: one that
/// blocks, blocks the upstream; one that panics closes that connection.
pub struct Loopback {
    addr: SocketAddr,
    traffic: Arc<Traffic>,
    /// Dropping it stops the server.
    control: Option<commands::UnboundedSender<Command>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Each carries the sender that says it is done.
enum Command {
    Pause(mpsc::Sender<()>),
    Resume(mpsc::Sender<()>),
}

/// The server's port: taking connections, or held so that nobody else gets it while connections are refused.
enum Port {
    Open(TcpListener),
    Held(TcpSocket),
}

impl Loopback {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// When the machine has no free port on loopback or no thread.
    pub fn start(handler: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> Loopback {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")
            .expect("loopback must have a free port because every test needs one");
        let addr = listener.local_addr().expect("a bound listener has an address");
        listener.set_nonblocking(true).expect("a fresh listener can be made non-blocking");
        let traffic = Traffic::new();
        let (control, inbox) = commands::unbounded_channel();
        let (handler, log) = (Arc::new(handler), Arc::clone(&traffic));
        let thread = thread::Builder::new()
            .name(format!("upstream-{}", addr.port()))
            .spawn(move || own_runtime().block_on(run(listener, addr, handler, log, inbox)))
            .expect("a thread must start because the server lives on it");
        Loopback { addr, traffic, control: Some(control), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of `path` (which begins with `/`) at this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The latest requests, oldest first: at most 10,000 are kept.
    pub fn seen(&self) -> Vec<Seen> {
        self.traffic.seen()
    }

    /// Totals since the start.
    pub fn stats(&self) -> Stats {
        self.traffic.stats()
    }

    /// Blocks until `n` requests in all have been read.
    ///
    /// # Panics
    /// After 10 seconds, saying how many came.
    #[track_caller]
    pub fn wait_for_requests(&self, n: u64) {
        self.traffic.wait_until(&format!("{n} requests"), |counts| counts.requests >= n);
    }

    /// Blocks until `n` acts in all have been carried out to their last byte.
    ///
    /// # Panics
    /// After 10 seconds, saying how many came.
    #[track_caller]
    pub fn wait_for_answers(&self, n: u64) {
        self.traffic.wait_until(&format!("{n} answers"), |counts| counts.answered >= n);
    }

    /// [`wait_for_requests`](Self::wait_for_requests) for async tests. It has no time limit of its own, because
    /// paused time would end one at once.
    pub async fn requests_reached(&self, n: u64) {
        self.traffic.until(|counts| counts.requests >= n).await;
    }

    /// [`wait_for_answers`](Self::wait_for_answers) for async tests, without a time limit.
    pub async fn answers_reached(&self, n: u64) {
        self.traffic.until(|counts| counts.answered >= n).await;
    }

    /// Goes down: open connections close, new ones are refused. Returns when that is so.
    pub fn pause(&self) {
        self.command(Command::Pause);
    }

    /// Comes back on the same port. Returns when connections are accepted again.
    pub fn resume(&self) {
        self.command(Command::Resume);
    }

    fn command(&self, command: impl FnOnce(mpsc::Sender<()>) -> Command) {
        let (done, wait) = mpsc::channel();
        let control = self.control.as_ref().expect("control is taken only by drop");
        // When the server is gone, `done` goes with the unsent command, and the wait below says so.
        let _ = control.send(command(done));
        wait.recv().expect("the server obeys: it fails only when the machine took its port away");
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        drop(self.control.take());
        if let Some(thread) = self.thread.take() {
            // A server that panicked has already printed why; a second panic here would abort the test run.
            let _ = thread.join();
        }
    }
}

pub(crate) fn own_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime must start because the server runs on it")
}

/// The whole life of a server: until its control is dropped.
async fn run(
    listener: std::net::TcpListener,
    addr: SocketAddr,
    handler: Handler,
    traffic: Arc<Traffic>,
    mut inbox: commands::UnboundedReceiver<Command>,
) {
    let listener = TcpListener::from_std(listener).expect("the runtime takes a non-blocking listener");
    let mut port = Port::Open(listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            command = inbox.recv() => match command {
                None => return,
                Some(Command::Pause(done)) => {
                    connections.shutdown().await;
                    port = port.hold(addr);
                    let _ = done.send(());
                }
                Some(Command::Resume(done)) => {
                    port = port.open();
                    let _ = done.send(());
                }
            },
            Some(_) = connections.join_next() => {}
            stream = port.accept() => {
                traffic.connected();
                connections.spawn(converse(stream, Arc::clone(&handler), Arc::clone(&traffic)));
            }
        }
    }
}

impl Port {
    /// A bound socket that does not listen refuses connections and still owns the port.
    fn hold(self, addr: SocketAddr) -> Port {
        let Port::Open(listener) = self else { return self };
        drop(listener);
        let socket = TcpSocket::new_v4().expect("a socket can be made");
        socket.set_reuseaddr(true).expect("a fresh socket can share its address with closed connections");
        socket.bind(addr).expect("the port is free because its listener just closed");
        Port::Held(socket)
    }

    fn open(self) -> Port {
        match self {
            Port::Open(_) => self,
            Port::Held(socket) => Port::Open(socket.listen(BACKLOG).expect("a bound socket can listen")),
        }
    }

    async fn accept(&self) -> TcpStream {
        let Port::Open(listener) = self else { return std::future::pending().await };
        loop {
            // An error here belongs to a connection that broke before it was taken.
            if let Ok((stream, _)) = listener.accept().await {
                return stream;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// One connection, request after request.
async fn converse(stream: TcpStream, handler: Handler, traffic: Arc<Traffic>) {
    // Without it the kernel may hold back a drip until the last piece was acknowledged.
    let _ = stream.set_nodelay(true);
    let mut conn = Conn::new(stream);
    loop {
        let request = match conn.receive().await {
            Incoming::Request(request) => request,
            Incoming::Gone => return,
            Incoming::Refused(status) => {
                let own = [("Content-Length", "0".to_owned()), ("Connection", "close".to_owned())];
                let _ = conn.send(&head(status, &own, &[])).await;
                return;
            }
        };
        let last = request.last;
        let (seen, in_flight) = traffic.begin(request);
        let act = handler(&seen);
        let Ok(after) = perform(&mut conn, &seen, act).await else { return };
        // Counted before the connection closes and with no await since the last byte, so that a client which
        // reacts to that byte can never look like a second request at once.
        in_flight.answered();
        match after {
            After::Keep if !last => {}
            After::Keep | After::Close => return,
            After::Reset => {
                let _ = conn.reset_on_close();
                return;
            }
        }
    }
}
