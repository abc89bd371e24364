//! Nodes of the real binary, an upstream that knows the truth, and somebody who looks at the database by other means.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use stakeout_store::conformance::server::PostgresServer;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

pub(crate) const LEASE_MS: u64 = 3_000;

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// A database of its own and a directory for configurations and logs.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) database: String,
}

impl Site {
    /// `None`, having said why, where there is no PostgreSQL.
    pub(crate) fn new() -> Option<Site> {
        let postgres = PostgresServer::shared()?;
        let runtime = Runtime::new().expect("a runtime");
        let database = runtime.block_on(postgres.create());
        Some(Site { dir: tempfile::tempdir().expect("a directory"), database })
    }

    /// Writes a node's configuration.
    pub(crate) fn configure(&self, node: &str, database: &str, listen: &str, sources: &str) -> PathBuf {
        let path = self.dir.path().join(format!("{node}.toml"));
        let text = format!(
            r#"
[store]
url = "{database}"

[server]
listen = "{listen}"

[engine]
node = "{node}"
lease = "{LEASE_MS}ms"

{sources}
"#
        );
        std::fs::write(&path, text).expect("write the configuration");
        path
    }

    /// Starts a node that answers nobody.
    pub(crate) fn node(&self, node: &str, sources: &str) -> Node {
        Node::start(&self.configure(node, &self.database, "off", sources))
    }

    /// Starts a node that reaches the database by another way, or in another time.
    pub(crate) fn odd_node(
        &self,
        node: &str,
        database: &str,
        sources: &str,
        variables: &[(&str, &str)],
    ) -> Node {
        Node::start_with(&self.configure(node, database, "off", sources), variables)
    }

    pub(crate) fn eye(&self) -> Eye {
        Eye::open(&self.database)
    }
}

/// A running node; nothing of it is left when the test is over, however it ends.
pub(crate) struct Node {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
    /// What earlier processes of its name have logged.
    pub(crate) before: usize,
}

impl Node {
    pub(crate) fn start(config: &Path) -> Node {
        Node::start_with(config, &[])
    }

    pub(crate) fn start_with(config: &Path, variables: &[(&str, &str)]) -> Node {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
        command.envs(variables.iter().copied());
        Node::run(command, config)
    }

    /// Starts a node in a network of its own.
    pub(crate) fn start_in(network: &str, config: &Path) -> Node {
        let mut command = Command::new("ip");
        // It takes this process's place, so signals reach the node.
        command.args(["netns", "exec", network, env!("CARGO_BIN_EXE_stakeout")]);
        Node::run(command, config)
    }

    fn run(mut command: Command, config: &Path) -> Node {
        let log = config.with_extension("log");
        let append = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        command.args(["run", "-c"]).arg(config).stdout(Stdio::null()).stderr(append);
        let before = logged(&log).len();
        Node { child: command.spawn().expect("the binary starts"), log, before }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("reaped")
    }

    /// What this process has logged.
    pub(crate) fn logged(&self) -> String {
        logged(&self.log)[self.before..].to_owned()
    }

    /// Asks it to stop and waits until it has. One that has only just been started does not listen yet.
    pub(crate) fn stop(&mut self) {
        until("it has started", || self.logged().contains("source ready"));
        self.signal("-TERM");
        let status = self.wait();
        assert!(status.success(), "SIGTERM ends it cleanly: {status}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}:\n{}", self.log.display(), logged(&self.log));
        }
    }
}

fn logged(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// The database, looked at by other means.
pub(crate) struct Eye {
    runtime: Runtime,
    client: tokio::sync::Mutex<Client>,
    url: String,
}

async fn connect(url: &str) -> Option<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
    tokio::spawn(connection);
    Some(client)
}

impl Eye {
    pub(crate) fn open(url: &str) -> Eye {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let client = runtime.block_on(connect(url)).expect("connects");
        Eye { runtime, client: tokio::sync::Mutex::new(client), url: url.to_owned() }
    }

    pub(crate) fn texts(&self, sql: &str) -> Vec<String> {
        let asked = async {
            let mut client = self.client.lock().await;
            if client.is_closed() {
                // The database was away; perhaps it still is.
                match connect(&self.url).await {
                    Some(again) => *client = again,
                    None => return Vec::new(),
                }
            }
            client.query(sql, &[]).await.unwrap_or_default()
        };
        let rows = self.runtime.block_on(asked);
        rows.iter().filter_map(|row| row.get::<_, Option<String>>(0)).collect()
    }

    pub(crate) fn holder(&self) -> Option<String> {
        self.texts("SELECT owner FROM targets").pop()
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.texts(sql).pop().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// How many polls were committed.
    pub(crate) fn polls(&self) -> i64 {
        self.number("SELECT sum(poll_no)::text FROM targets")
    }
}

/// How often somebody who waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until something is so.
pub(crate) fn until(what: &str, is_so: impl FnMut() -> bool) -> Duration {
    until_within(Duration::from_secs(60), what, is_so)
}

/// The same, with a limit.
pub(crate) fn until_within(limit: Duration, what: &str, is_so: impl FnMut() -> bool) -> Duration {
    within(limit, is_so).unwrap_or_else(|| panic!("not within {limit:?}: {what}"))
}

/// How long it took until something was so; `None` when it was not in time.
pub(crate) fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > limit {
            return None;
        }
        // Whoever spins takes the processor from those it waits for.
        std::thread::park_timeout(LOOK_EVERY);
    }
    Some(began.elapsed())
}

pub(crate) fn stakeout(database: &str, dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout"));
    command.args(arguments).current_dir(dir).env("STAKEOUT_STORE", database);
    command.output().expect("the binary runs")
}

pub(crate) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
