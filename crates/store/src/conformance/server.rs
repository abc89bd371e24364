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
    bin: PathBuf,
    databases: AtomicU32,
    /// Its standard input is what keeps the server alive.
    _keeper: Child,
}

/// Starts the server, says so and where, and waits for the end of its input.
const SCRIPT: &str = r#"
set -eu
bin=$2
# Never one that is there: what was killed together with its keeper left its directory behind.
dir=$(mktemp -d "$1-XXXXXX")
stop() { "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$dir"; }
trap stop EXIT
if [ -n "${TLS_KEY:-}" ]; then
    umask 077
    printf '%s' "$TLS_KEY" >"$dir/server.key"
    printf '%s' "$TLS_CERTIFICATE" >"$dir/server.crt"
fi
"$bin/initdb" -D "$dir/data" -U stakeout -A trust -E UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1
"$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -o "-k '$dir' -c listen_addresses='' -c max_connections=300 $3" \
    start >/dev/null
echo "ready $dir"
cat >/dev/null
"#;

/// Tests lose nothing but time to a disk.
const FAST: &str = "-c fsync=off -c full_page_writes=off -c shared_buffers=64MB";
/// As in earnest: what was committed is on the disk.
const DURABLE: &str = "-c shared_buffers=256MB";

static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();

impl PostgresServer {
    /// The server of this test process, started when it is first asked for. `None`, having said why, when PostgreSQL is
    /// not installed; with `CI=true` that is a failure.
    pub fn shared() -> Option<&'static PostgresServer> {
        SERVER.get_or_init(PostgresServer::another).as_ref()
    }

    /// A server of its own, for whoever wants to stop it. It ends when it is dropped.
    pub fn another() -> Option<PostgresServer> {
        match PostgresServer::start(FAST) {
            Ok(server) => Some(server),
            Err(reason) => {
                skip(&reason);
                None
            }
        }
    }

    /// A server of its own that answers on a port of the loopback, encrypted with this certificate and key; both as PEM.
    /// Answers the port, too.
    pub fn encrypted(certificate: &str, key: &str) -> Option<(PostgresServer, u16)> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.expect("a free port").port();
        let options = format!(
            "{FAST} -c listen_addresses=127.0.0.1 -c port={port} -c ssl=on -c ssl_key_file=../server.key \
             -c ssl_cert_file=../server.crt"
        );
        let variables = [("TLS_KEY", key), ("TLS_CERTIFICATE", certificate)];
        match PostgresServer::start_with(&options, &variables) {
            Ok(server) => Some((server, port)),
            Err(reason) => {
                skip(&reason);
                None
            }
        }
    }

    /// A server that waits for the disk, for measurements.
    pub fn durable() -> Result<PostgresServer, String> {
        PostgresServer::start(DURABLE)
    }

    /// Crashes the server and starts it again, as after a loss of power.
    pub fn crash_and_restart(&self) {
        self.control(&["-m", "immediate", "stop"]);
        self.control(&["-l", "log", "-w", "start"]);
    }

    fn control(&self, arguments: &[&str]) {
        let data = self.directory.join("data");
        let mut command = unprivileged(&self.bin.join("pg_ctl"));
        command.arg("-D").arg(&data).args(arguments).current_dir(&self.directory).stdout(Stdio::null());
        // What it was started with is in this file, as the arguments of a command.
        if arguments.contains(&"start") {
            let started = std::fs::read_to_string(data.join("postmaster.opts")).unwrap_or_default();
            let options = started.split_once(' ').map_or("", |(_, options)| options).trim().to_owned();
            command.args(["-o", &options]);
        }
        let done = command.status().expect("pg_ctl runs");
        assert!(done.success(), "pg_ctl {arguments:?}: {done}");
    }

    fn start(options: &str) -> Result<PostgresServer, String> {
        PostgresServer::start_with(options, &[])
    }

    fn start_with(options: &str, variables: &[(&str, &str)]) -> Result<PostgresServer, String> {
        let bin = programs().ok_or("PostgreSQL is not installed (Debian's package postgresql)")?;
        let names = std::env::temp_dir().join("stakeout-pg");
        let mut command = unprivileged(Path::new("sh"));
        command.args(["-c", SCRIPT, "sh"]).arg(&names).arg(&bin).arg(options).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).envs(variables.iter().copied());
        let mut keeper = command.spawn().map_err(|e| format!("PostgreSQL cannot be started: {e}"))?;
        let mut said = String::new();
        if let Some(out) = keeper.stdout.take() {
            BufReader::new(out).read_line(&mut said).map_err(|e| format!("PostgreSQL says nothing: {e}"))?;
        }
        let Some(directory) = said.trim_end().strip_prefix("ready ") else {
            return Err(format!("PostgreSQL in {} did not start", bin.display()));
        };
        Ok(PostgresServer {
            directory: PathBuf::from(directory),
            bin,
            databases: AtomicU32::new(0),
            _keeper: keeper,
        })
    }

    /// The socket that the server listens on.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(".s.PGSQL.5432")
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

/// A command that does not run as root: PostgreSQL refuses to.
fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
    command
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
