//! The only place that writes to the terminal: the table on standard output, progress on standard error.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is this programme's output")]

/// A part of the result.
pub(crate) fn block(markdown: &str) {
    println!("{markdown}");
}

/// What goes on meanwhile.
pub(crate) fn progress(doing: &str) {
    eprintln!("… {doing}");
}
