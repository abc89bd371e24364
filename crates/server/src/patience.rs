//! A connection whose other end must keep reading: whoever takes nothing for too long is let go.
//!
//! Without it a client that stands still would hold its stream for ever: nothing is asked for while nothing can be
//! written, so nobody would notice.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// How long a client is waited for.
#[derive(Clone)]
pub(crate) struct Patience {
    pub(crate) limit: Duration,
    /// Where those who were let go are counted.
    pub(crate) let_go: Arc<AtomicU64>,
}

/// The client of one connection, who is counted once when they turn out to be too slow: by what they do not read, or by
/// the feed, which came round before they had read it. Mostly it is both, one after the other.
#[derive(Clone)]
pub(crate) struct Slow {
    counted: Arc<AtomicBool>,
    let_go: Arc<AtomicU64>,
}

impl Slow {
    pub(crate) fn new(patience: &Patience) -> Slow {
        Slow { counted: Arc::default(), let_go: Arc::clone(&patience.let_go) }
    }

    pub(crate) fn count(&self) {
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.let_go.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A stream with limited patience.
pub(crate) struct Patient {
    stream: TcpStream,
    limit: Duration,
    slow: Slow,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(stream: TcpStream, limit: Duration, slow: Slow) -> Patient {
        Patient { stream, limit, slow, waiting: None }
    }

    /// Passes a write's outcome on, unless it has been waited for too long.
    fn judge<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let limit = self.limit;
        let sleep =
            self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.waiting = None;
                self.slow.count();
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
