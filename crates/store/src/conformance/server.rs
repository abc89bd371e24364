//! A PostgreSQL of one's own for tests: in a temporary directory, on a socket there, gone with the test process.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::NoTls;

/// A running server. It ends and cleans up when the process that started it is gone, however it went.
pub struct PostgresServer {
    directory: PathBuf,
    databases: AtomicU32,
    /// Its standard input is what keeps the server alive.
    _keeper: Child,
}

/// Starts the server, says so, and waits for the end of its input.
const SCRIPT: &str = r#"
set -eu
dir=$1; bin=$2
mkdir -m 700 "$dir"
stop() { "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$dir"; }
trap stop EXIT
"$bin/initdb" -D "$dir/data" -U stakeout -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1
"$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -o "-k '$dir' -c listen_addresses='' -c fsync=off \
    -c full_page_writes=off -c max_connections=300 -c shared_buffers=64MB" start >/dev/null
echo ready
cat >/dev/null
"#;

static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();

impl PostgresServer {
    /// The server of this test process, started when it is first asked for. `None`, having said why, when PostgreSQL is
    /// not installed; with `CI=true` that is a failure.
    pub fn shared() -> Option<&'static PostgresServer> {
        SERVER
            .get_or_init(|| match PostgresServer::start() {
                Ok(server) => Some(server),
                Err(reason) => {
                    skip(&reason);
                    None
                }
            })
            .as_ref()
    }

    fn start() -> Result<PostgresServer, String> {
        let bin = programs().ok_or("PostgreSQL is not installed (Debian's package postgresql)")?;
        let directory = std::env::temp_dir().join(format!("stakeout-pg-{}", std::process::id()));
        // PostgreSQL refuses to run as root.
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "sh"]);
            command
        } else {
            Command::new("sh")
        };
        command.args(["-c", SCRIPT, "sh"]).arg(&directory).arg(&bin).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().map_err(|e| format!("PostgreSQL cannot be started: {e}"))?;
        let mut said = String::new();
        if let Some(out) = keeper.stdout.take() {
            BufReader::new(out).read_line(&mut said).map_err(|e| format!("PostgreSQL says nothing: {e}"))?;
        }
        if said.trim() != "ready" {
            return Err(format!("PostgreSQL in {} did not start", bin.display()));
        }
        Ok(PostgresServer { directory, databases: AtomicU32::new(0), _keeper: keeper })
    }

    /// The URL of a database on this server.
    pub fn url(&self, database: &str) -> String {
        let socket = self.directory.display().to_string().replace('/', "%2F");
        format!("postgres://stakeout@{socket}/{database}")
    }

    /// Makes an empty database and answers its URL.
    pub async fn create(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let (client, connection) =
            tokio_postgres::connect(&self.url("postgres"), NoTls).await.expect("the server is there");
        let talking = tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
        drop(client);
        talking.await.expect("no panic").expect("closed in order");
        self.url(&name)
    }
}

/// Where the server's programs are: Debian does not put them on the path.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("initdb").exists())
        .collect();
    found.sort_unstable();
    let on_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).find(|directory| directory.join("initdb").exists()));
    found.pop().map(|(_, bin)| bin).or(on_path)
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}

/// Says that something is left out; with `CI=true` nothing may be.
#[expect(clippy::print_stderr, reason = "a test that leaves something out says so where people look")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped: {reason}");
}
