//! Where and when: numbers mean nothing without it.

use std::fs;
use std::process::Command;

use stakeout_core::Time;
use stakeout_engine::Clock;

/// The machine and the moment of a run.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    cores: usize,
    cpu: String,
    kernel: String,
    rustc: String,
    /// Where the databases are, and on what.
    disk: String,
    at: Time,
}

impl Machine {
    pub(crate) fn here() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let rustc = Command::new("rustc").arg("--version").output().ok();
        let directory = std::env::temp_dir();
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu_model(&cpuinfo).unwrap_or_else(unknown),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| unknown(), trimmed),
            rustc: rustc
                .map_or_else(unknown, |out| trimmed(String::from_utf8_lossy(&out.stdout).into_owned())),
            disk: file_system(&mounts, &directory.to_string_lossy()).unwrap_or_else(unknown),
            at: Time(Clock::system().now().us() / 1_000_000 * 1_000_000),
        }
    }

    pub(crate) fn to_markdown(&self) -> String {
        let Machine { cores, cpu, kernel, rustc, disk, at } = self;
        format!(
            "- machine: {cores} cores, {cpu}, Linux {kernel}\n- databases on: {disk}\n- {rustc}, release profile\n- {at}\n"
        )
    }
}

/// Processor seconds that a process has used so far, all its threads; `None` when it is gone.
pub(crate) fn cpu_seconds(process: u32) -> Option<f64> {
    fs::read_to_string(format!("/proc/{process}/stat")).ok().as_deref().and_then(cpu_of)
}

/// The fields after the name count from 3; user and system time are fields 14 and 15, in ticks of 10 ms.
fn cpu_of(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

fn trimmed(text: String) -> String {
    text.trim().to_owned()
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim().to_owned())
}

/// The type of the file system that a path is on: on `tmpfs` a durable commit costs nothing and proves nothing.
fn file_system(mounts: &str, path: &str) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        let below = path == point || path.starts_with(&format!("{}/", point.trim_end_matches('/')));
        below.then_some((point.len(), kind))
    });
    mounted.max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_decides_the_file_system() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\n";
        assert_eq!(file_system(mounts, "/tmp/x").as_deref(), Some("tmpfs"));
        assert_eq!(file_system(mounts, "/tmpfiles").as_deref(), Some("ext4"));
        assert_eq!(file_system("", "/tmp"), None);
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 7 7 20 0 4 0 1000 1000000 100";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(cpu_of("42 (x) S 1"), None);
    }

    #[test]
    fn the_first_model_name_is_the_cpu() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("Some CPU @ 2 GHz"));
    }
}
