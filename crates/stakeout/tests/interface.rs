//! The HTTP interface of the real binary: where it listens, and who gets in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let text = "[store]\nurl = \"sqlite:s.db\"\n[source.x]\nkind = \"json\"\nurl = \"http://127.0.0.1:9/\"\nevery = \"1h\"\n";
    std::fs::write(dir.join("stakeout.toml"), text).expect("write");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
    command.args(arguments).current_dir(dir);
    command
}

fn stakeout(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A running service; killed when dropped.
struct Service {
    child: Child,
    address: SocketAddr,
}

impl Service {
    fn start(dir: &Path, arguments: &[&str]) -> Service {
        let mut child = command(dir, arguments).stdout(Stdio::piped()).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let address = lines.by_ref().find_map(|line| {
            let (_, rest) =
                line.split_once("API at http://").or_else(|| line.split_once("API are at http://"))?;
            rest.trim_end_matches('/').parse().ok()
        });
        // A program whose output nobody takes any more ends.
        std::thread::spawn(move || lines.for_each(drop));
        Service { child, address: address.expect("it says where it listens") }
    }

    fn status(&self, path: &str, token: Option<&str>) -> u16 {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let host = self.address;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n{token}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("writes");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("reads");
        text(&answer).split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let dir = tempfile::tempdir().expect("dir");
    let made = stakeout(dir.path(), &["token", "create", "--scope", "read", "--name", "grafana"]);
    let token = text(&made.stdout);
    assert!(made.status.success() && token.starts_with("stk_"), "{made:?}");
    let (id, secret) = token["stk_".len()..].split_once('_').expect("two parts");
    let listed = text(&stakeout(dir.path(), &["token", "list"]).stdout);
    assert!(listed.contains(id) && listed.contains("grafana") && !listed.contains(secret), "{listed}");
    for name in ["s.db", "s.db-wal"] {
        let bytes = std::fs::read(dir.path().join(name)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{name}");
    }
    assert!(stakeout(dir.path(), &["token", "revoke", &token]).status.success());
    let again = stakeout(dir.path(), &["token", "revoke", id]);
    assert_eq!(again.status.code(), Some(2), "once is enough");
    let unknown = stakeout(dir.path(), &["token", "create", "--scope", "root"]);
    assert!(text(&unknown.stderr).contains("expected read, operate or admin"), "{unknown:?}");
}

#[test]
fn an_address_that_cannot_be_had_is_said_before_anything_is_polled() {
    let dir = tempfile::tempdir().expect("dir");
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
    let address = taken.local_addr().expect("an address").to_string();
    for (listen, words) in
        [(address.as_str(), "is taken by another program"), ("0.0.0.0:0", "stakeout token create")]
    {
        let refused = stakeout(dir.path(), &["run", "--listen", listen]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(text(&refused.stderr).contains(words), "{refused:?}");
    }
    let nonsense = stakeout(dir.path(), &["run", "--listen", "here"]);
    assert_eq!(nonsense.status.code(), Some(2));
}

#[test]
fn a_token_made_while_it_runs_opens_the_door_until_it_is_revoked() {
    let dir = tempfile::tempdir().expect("dir");
    let first = text(&stakeout(dir.path(), &["token", "create", "--scope", "admin"]).stdout);
    // Reachable from other machines, so that a token is needed; asked from this one.
    let service = Service::start(dir.path(), &["run", "--listen", "0.0.0.0:0"]);
    assert_eq!(service.status("/v1/targets", None), 401);
    assert_eq!(service.status("/v1/targets", Some(&first)), 200);
    let second = text(&stakeout(dir.path(), &["token", "create", "--scope", "read"]).stdout);
    assert_eq!(service.status("/v1/targets", Some(&second)), 200);
    assert!(stakeout(dir.path(), &["token", "revoke", &second]).status.success());
    assert_eq!(service.status("/v1/targets", Some(&second)), 401);
    assert_eq!(service.status("/livez", None), 200);
}

#[test]
fn the_demo_takes_another_port_when_the_usual_one_is_taken() {
    let dir = tempfile::tempdir().expect("dir");
    // If somebody else has it, so much the better.
    let _taken = TcpListener::bind("127.0.0.1:8484");
    let service = Service::start(dir.path(), &["demo", "--data", "data"]);
    assert_ne!(service.address.port(), 8484);
    assert_eq!(service.status("/livez", None), 200);
}
