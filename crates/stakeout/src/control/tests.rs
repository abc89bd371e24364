use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use super::*;

const SOON: Duration = Duration::from_secs(10);

struct Echo;

#[async_trait]
impl ControlHandler for Echo {
    async fn handle(&self, request: Request) -> Result<Json, String> {
        match request {
            Request::Enable { target } if target == "no/such" => Err("there is no target no/such".to_owned()),
            request => Ok(json!(request)),
        }
    }
}

struct Running {
    dir: tempfile::TempDir,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start() -> Running {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = Socket::bind(&dir.path().join("s.sock")).expect("bound");
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(socket, Arc::new(Echo), stop.clone()));
        Running { dir, stop, task }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("s.sock")
    }

    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.path()).await.expect("connected");
        stream.write_all(bytes).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }
}

#[tokio::test]
async fn a_request_goes_there_and_its_result_comes_back() {
    let running = Running::start();
    let set = Request::Set { key: "source.a.every_ms".into(), value: json!(5) };
    let result = ask(&running.path(), &set, SOON).await.expect("done");
    assert_eq!(result, json!({ "do": "set", "key": "source.a.every_ms", "value": 5 }));
    let refused =
        ask(&running.path(), &Request::Enable { target: "no/such".into() }, SOON).await.expect_err("refused");
    assert_eq!(refused.to_string(), "there is no target no/such");
    // For its owner only.
    let mode = std::fs::metadata(running.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // When it stops, the socket is gone and nobody answers.
    running.stop.cancel();
    running.task.await.expect("stopped");
    assert!(!running.dir.path().join("s.sock").exists());
    let nobody = ask(&running.dir.path().join("s.sock"), &Request::Ping {}, SOON).await.expect_err("nobody");
    assert!(matches!(nobody, AskError::NoAnswer(_)), "{nobody}");
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_harms_nobody() {
    let running = Running::start();
    for (bytes, expected) in [
        (&b"{\"do\":\"explode\"}\n"[..], "unknown variant `explode`"),
        (b"{\"do\":\"ping\",\"x\":1}\n", "unknown field `x`"),
        (b"\xff\n", "the request is not understood"),
        (&[b'x'; LINE_BYTES_MAX + 1], "the request is longer than 65536 bytes"),
    ] {
        let answer = running.raw(bytes).await;
        assert!(answer.contains(expected), "{answer}");
    }
    ask(&running.path(), &Request::Ping {}, SOON).await.expect("still there");
    // One that is too long is not even sent.
    let long = Request::Enable { target: "x".repeat(LINE_BYTES_MAX) };
    let error = ask(&running.path(), &long, SOON).await.expect_err("too long").to_string();
    assert_eq!(error, "the request is longer than 65536 bytes");
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_but_a_file_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("s.sock");
    std::mem::forget(Socket::bind(&path).expect("bound"));
    Socket::bind(&path).expect("bound again");
    let file = dir.path().join("file");
    std::fs::write(&file, "precious").expect("written");
    Socket::bind(&file).expect_err("refused");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "precious");
}

#[test]
fn long_paths_move_to_the_temporary_directory() {
    let near = socket_path(Path::new("/data/stakeout.db")).expect("a path");
    assert_eq!(near, Path::new("/data/stakeout.db.sock"));
    let deep = format!("/{}/stakeout.db", "d".repeat(120));
    let far = socket_path(Path::new(&deep)).expect("a path");
    assert!(far.starts_with(std::env::temp_dir()) && far.as_os_str().len() <= PATH_BYTES_MAX, "{far:?}");
    assert_eq!(far, socket_path(Path::new(&deep)).expect("a path"));
}
