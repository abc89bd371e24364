//! RESULTS.md: the table of one run, and below it what people wrote about the targets it misses.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;

use crate::args::Pace;
use crate::machine::Machine;
use crate::print;
use crate::table::Table;

/// Everything from this line on is written by hand and kept.
const BY_HAND: &str = "## Why a target is missed (written by hand, kept by `--write`)";

/// Where the results are kept: beside the sources of the benchmark.
pub(crate) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md")
}

/// Replaces the measured part of the file.
pub(crate) fn refresh(path: &Path, machine: &Machine, table: &Table, pace: Pace) -> anyhow::Result<()> {
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let text = compose(&before, &machine.to_markdown(), table, pace);
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    print::progress(&format!("wrote {}", path.display()));
    Ok(())
}

fn compose(before: &str, machine: &str, table: &Table, pace: Pace) -> String {
    let by_hand = before.find(BY_HAND).map_or_else(|| format!("{BY_HAND}\n"), |at| before[at..].to_owned());
    let how = pace.pick("", " --quick");
    let mut text = format!(
        "# Results of one run\n\nMade by `cargo run --release -p stakeout-bench -- all{how} --write`; \
         [README.md](README.md) says what the rows mean.\n\n{machine}\n{}\n",
        table.to_markdown()
    );
    for row in table.missed() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- missed: {}: {}, target {}", row.what, row.ours, row.target);
    }
    if table.missed().next().is_some() {
        text.push('\n');
    }
    text + &by_hand
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Met, Row};

    fn table(ours: &str, met: Met) -> Table {
        let row = Row {
            what: "lateness".into(),
            ours: ours.into(),
            floor: "1 ms".into(),
            ratio: None,
            target: "≤ 5 ms".into(),
            met,
        };
        Table { rows: vec![row] }
    }

    #[test]
    fn a_new_run_replaces_numbers_and_keeps_words() {
        let first = compose("", "- machine\n", &table("9 ms", Met::No), Pace::Full);
        assert!(first.contains("- missed: lateness: 9 ms, target ≤ 5 ms"), "{first}");
        let explained = first.clone() + "\nmissed: lateness: the disk was busy.\n";
        let second = compose(&explained, "- machine\n", &table("4 ms", Met::Yes), Pace::Full);
        assert!(second.contains("| lateness | 4 ms "), "{second}");
        assert!(!second.contains("9 ms"), "{second}");
        assert!(second.ends_with("\nmissed: lateness: the disk was busy.\n"), "{second}");
        assert_eq!(second.matches(BY_HAND).count(), 1);
    }
}
