//! A stream that knows how much was read of it, and ends when that is too much.
//!
//! Whoever speaks SMTP reads a line to its end before he looks at its length, so a line that never ends is his until there
//! is no memory left. What he reads, he reads through this.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a mail server may say in a whole conversation. It answers everything with a line or a few; the handshake of TLS
/// counts, too.
pub(super) const SAID_BYTES_MAX: usize = 256 << 10;

/// A stream of which [`SAID_BYTES_MAX`] are read at most.
pub(super) struct Measured<S> {
    stream: S,
    peer: SocketAddr,
    left: usize,
}

impl<S> Measured<S> {
    pub(super) fn new(stream: S, peer: SocketAddr) -> Measured<S> {
        Measured { stream, peer, left: SAID_BYTES_MAX }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Measured<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == 0 {
            let most = SAID_BYTES_MAX >> 10;
            let words = format!("it said more than {most} KB, expected a few lines: is this a mail server?");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, words)));
        }
        let wanted = self.left.min(into.remaining());
        let mut part = ReadBuf::new(into.initialize_unfilled_to(wanted));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        into.advance(read);
        self.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Measured<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> fmt::Debug for Measured<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measured").field("peer", &self.peer).field("left", &self.left).finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> AsyncTokioStream for Measured<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn so_much_is_read_and_no_more() {
        let peer = "192.0.2.1:25".parse().expect("an address");
        let mut endless = Measured::new(tokio::io::join(tokio::io::repeat(b'x'), tokio::io::sink()), peer);
        let mut read = vec![0; SAID_BYTES_MAX];
        endless.read_exact(&mut read).await.expect("within the limit");
        let error = endless.read_u8().await.expect_err("beyond it");
        assert!(error.to_string().contains("more than 256 KB"), "{error}");
    }
}
