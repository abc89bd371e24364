//! The side that holds the database.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Answer, CONNECTIONS_MAX, LINE_BYTES_MAX, LINE_WAIT, Request};

/// Does what a request says.
#[async_trait]
pub trait ControlHandler: Send + Sync + 'static {
    /// The result, or why it cannot be done.
    async fn handle(&self, request: Request) -> Result<Json, String>;
}

/// A listening socket; its file goes away with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    owner: u32,
}

impl Socket {
    /// Listens at `path`, for this user only. The caller holds the database, so a socket left there is nobody's.
    pub fn bind(path: &Path) -> io::Result<Socket> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a file that is no socket",
                ));
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let owner = std::fs::symlink_metadata(path)?.uid();
        Ok(Socket { listener, path: path.to_owned(), owner })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers requests until `stop`; those under way are then abandoned.
pub async fn serve(socket: Socket, handler: Arc<dyn ControlHandler>, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        // The permit comes before the connection: whoever has to wait waits in the system's queue.
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            permit = Arc::clone(&permits).acquire_owned() => permit.expect("never closed, because it is ours"),
        };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = socket.listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let handler = Arc::clone(&handler);
                let owner = socket.owner;
                connections.spawn(async move {
                    if let Err(error) = connection(stream, &*handler, owner).await {
                        tracing::debug!(%error, "control connection broke");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a control connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: UnixStream, handler: &dyn ControlHandler, owner: u32) -> io::Result<()> {
    // Between bind and chmod anybody could have connected; only our user and root are heard.
    let peer = stream.peer_cred()?.uid();
    let (read, mut write) = stream.into_split();
    let answer = match () {
        () if peer != owner && peer != 0 => {
            Answer::Error { error: "only its owner may control this process".into() }
        }
        () => match request(read).await {
            Ok(request) => {
                tracing::info!(?request, "asked through the control socket");
                match handler.handle(request).await {
                    Ok(result) => Answer::Done { ok: true, result },
                    Err(error) => Answer::Error { error },
                }
            }
            Err(error) => Answer::Error { error },
        },
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    timeout(LINE_WAIT, write.write_all(&line)).await?
}

async fn request(read: impl tokio::io::AsyncRead + Unpin) -> Result<Request, String> {
    let mut line = Vec::new();
    let mut read = BufReader::new(read.take(LINE_BYTES_MAX as u64 + 1));
    match timeout(LINE_WAIT, read.read_until(b'\n', &mut line)).await {
        Err(_) => Err(format!("expected a request line within {} s", LINE_WAIT.as_secs())),
        Ok(Err(error)) => Err(format!("the request cannot be read: {error}")),
        Ok(Ok(_)) if line.len() > LINE_BYTES_MAX => {
            Err(format!("the request is longer than {LINE_BYTES_MAX} bytes"))
        }
        Ok(Ok(_)) => {
            serde_json::from_slice(&line).map_err(|error| format!("the request is not understood: {error}"))
        }
    }
}
