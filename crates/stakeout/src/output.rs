//! What a command was asked for goes to stdout, from here and nowhere else; complaints go to stderr.

use std::io::{self, Write};

use serde::Serialize;

/// Whoever read our output has gone away: no failure, and no reason to go on.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub(crate) struct ReaderGone;

/// Writes a line to stdout.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        written => Ok(written?),
    }
}

/// Writes a value as JSON on one line.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Writes a value as JSON on many lines.
pub(crate) fn pretty<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes an error to stderr.
pub(crate) fn complain(text: &str) {
    // If even stderr is gone there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "stakeout: {text}");
}

/// Text in aligned columns.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// A cell is cut here, so that one long message does not push everything else off the screen.
const CELL_CHARS_MAX: usize = 100;

impl Table {
    pub(crate) fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|&name| name.to_owned()).collect()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| one_line(&cell)).into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// The lines, each column as wide as its widest cell; the last is not padded.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |c: usize| self.rows.iter().filter_map(|row| row.get(c)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or_default()).collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The upstream's texts must not move the cursor or ring the bell.
fn one_line(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CELL_CHARS_MAX).collect();
    if text.chars().count() > CELL_CHARS_MAX { format!("{clean}…") } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_clean() {
        let mut table = Table::new(&["NAME", "WHAT"]);
        table.row(["é".into(), "one\x1b[2J\ntwo".into()]);
        table.row(["longer".into(), String::new()]);
        assert_eq!(table.render(), "NAME    WHAT\né       one [2J two\nlonger");
    }
}
