use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary to its end, without any environment.
pub(crate) fn stakeout(directory: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stakeout"))
        .args(words)
        .current_dir(directory)
        .env_clear()
        .output()
        .expect("the binary runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}
