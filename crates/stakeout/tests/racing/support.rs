use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use stakeout_core::Time;
use stakeout_sim::nztab::{demo, serve};
use stakeout_sim::{Act, Loopback, Seen};
use tempfile::TempDir;

pub(crate) const WHO: [(&str, &str); 3] =
    [("NZTAB_FROM", "ops@example.org"), ("NZTAB_PARTNER", "Example"), ("NZTAB_PARTNER_ID", "example-1")];

/// A simulated day around now, and a configuration that watches it.
pub(crate) struct World {
    pub(crate) upstream: Loopback,
    directory: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        World::around(serve(Arc::new(demo(now())), now), "")
    }

    /// The same day, where each request may be answered with something else.
    pub(crate) fn with(twist: impl Fn(&Seen) -> Option<Act> + Send + Sync + 'static, limits: &str) -> World {
        let day = demo(now());
        let honest = move |seen: &Seen| Act::from(day.answer(&seen.path, &seen.headers, now()));
        World::around(Loopback::start(move |seen| twist(seen).unwrap_or_else(|| honest(seen))), limits)
    }

    fn around(upstream: Loopback, limits: &str) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let text = format!(
            "[source.nz]\nkind = \"racing\"\nbase_url = \"{}\"\n\n[source.nz.limits]\nrequests_per_second = 1000\nburst = 100\n{limits}\n",
            upstream.url("")
        );
        std::fs::write(directory.path().join("stakeout.toml"), text).expect("written");
        World { upstream, directory }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory.path().join("stakeout.db")
    }

    /// The day with its races polled: the first pass reads the catalogue, the next what that brought to light.
    pub(crate) fn polled() -> World {
        let world = World::new();
        for _ in 0..2 {
            stdout(&world.stakeout("poll", &WHO));
        }
        world
    }

    /// A file beside the configuration.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).expect("written");
    }

    /// Runs the binary to its end, with these variables and no others.
    pub(crate) fn stakeout(&self, words: &str, variables: &[(&str, &str)]) -> Output {
        stakeout(self.directory.path(), words, variables)
    }
}

fn stakeout(directory: &Path, words: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stakeout"))
        .args(words.split(' '))
        .current_dir(directory)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Time(i64::try_from(since.as_micros()).expect("before the year 294247"))
}
