//! The real binary, at work on its demo or on a configuration, which can be stopped and started again at the same place.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::faketime::faketime;

/// A running demo; it ends with this.
pub(crate) struct Demo {
    child: Option<Child>,
    port: u16,
    arguments: Vec<String>,
    /// Its environment besides ours.
    variables: Vec<(&'static str, String)>,
    /// Its database outlives a stop.
    data: TempDir,
}

impl Demo {
    /// A demo on a free port, ready to answer.
    pub(crate) fn start(speed: u32) -> Demo {
        Demo::as_seen_by(speed, vec![])
    }

    /// The same at another time of day: a little `before` the next midnight in a zone. `None` where that cannot be had.
    pub(crate) fn start_before_midnight(speed: u32, before: jiff::Span, zone: &str) -> Option<Demo> {
        let now = jiff::Zoned::now().in_tz(zone).expect("a zone");
        let then = now.tomorrow().and_then(|day| day.start_of_day()).expect("a midnight") - before;
        let ahead = then.timestamp().as_second() - now.timestamp().as_second();
        Some(Demo::as_seen_by(speed, faketime(&format!("{ahead:+}s"))?.to_vec()))
    }

    fn as_seen_by(speed: u32, variables: Vec<(&'static str, String)>) -> Demo {
        let data = tempfile::tempdir().expect("a directory");
        let arguments = ["demo", "--speed", &speed.to_string(), "--data", &data.path().display().to_string()];
        Demo::with(arguments.map(str::to_owned).to_vec(), variables, data)
    }

    /// The service with a configuration of its own, on a free port.
    pub(crate) fn of(config: &str) -> Demo {
        let data = tempfile::tempdir().expect("a directory");
        let file = data.path().join("stakeout.toml");
        let url = format!("[store]\nurl = \"sqlite:{}\"\n", data.path().join("stakeout.db").display());
        std::fs::write(&file, url + config).expect("a configuration");
        let arguments = ["run", "--config", &file.display().to_string()];
        Demo::with(arguments.map(str::to_owned).to_vec(), vec![], data)
    }

    fn with(arguments: Vec<String>, variables: Vec<(&'static str, String)>, data: TempDir) -> Demo {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let mut demo = Demo { child: None, port, arguments, variables, data };
        demo.go_on();
        demo
    }

    /// The file that it was configured with.
    pub(crate) fn config(&self) -> std::path::PathBuf {
        self.data.path().join("stakeout.toml")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    /// Starts it again, at the same port and with the same database.
    pub(crate) fn go_on(&mut self) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stakeout"))
            .args(&self.arguments)
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .envs(self.variables.iter().cloned())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the demo starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let listening = lines.by_ref().map_while(Result::ok).any(|line| line.contains(&self.url()));
        assert!(listening, "the demo never said that it listens at {}", self.url());
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        self.child = Some(child);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.kill();
    }
}
