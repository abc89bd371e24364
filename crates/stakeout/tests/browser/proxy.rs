//! A line to the demo that can be cut while both ends live on.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes everything on until it is cut; it ends with this.
pub(crate) struct Proxy {
    port: u16,
    whole: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// A line to a port of this machine.
    pub(crate) async fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let (whole, state) = watch::channel(true);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(pass_on(near, port, state.clone()));
            }
        });
        Proxy { port: own, whole, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every connection breaks, and new ones do, too.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// It holds again.
    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection, until either end closes it or the line is cut.
async fn pass_on(mut near: TcpStream, port: u16, mut whole: watch::Receiver<bool>) {
    if !*whole.borrow_and_update() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = whole.wait_for(|whole| !whole) => {}
    }
}
