//! The one table: what | Stakeout | floor or peer | ratio | target | met?

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// It is.
    Yes,
    /// It is not: RESULTS.md says why.
    No,
    /// There is no target: the row is for comparison.
    NoTarget,
}

impl Met {
    pub(crate) fn when(met: bool) -> Met {
        if met { Met::Yes } else { Met::No }
    }

    fn word(self) -> &'static str {
        match self {
            Met::Yes => "yes",
            Met::No => "**no**",
            Met::NoTarget => "–",
        }
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: String,
    /// The floor or peer, from the same run.
    pub(crate) floor: String,
    /// Ours ÷ floor, where that means something.
    pub(crate) ratio: Option<f64>,
    /// The target in words; empty when there is none.
    pub(crate) target: String,
    pub(crate) met: Met,
}

/// All measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
}

const HEAD: [&str; 6] = ["what", "Stakeout", "floor or peer (same run)", "ratio", "target", "met?"];

impl Table {
    /// As a Markdown table whose columns line up in plain text too.
    pub(crate) fn to_markdown(&self) -> String {
        let lines: Vec<[String; 6]> =
            std::iter::once(HEAD.map(str::to_owned)).chain(self.rows.iter().map(Row::cells)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 6] = std::array::from_fn(width);
        let rule = format!("|{}|", widths.map(|width| "-".repeat(width + 2)).join("|"));
        let drawn = lines.iter().map(|line| {
            let cells = line.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} "));
            format!("|{}|", cells.collect::<Vec<_>>().join("|"))
        });
        let mut drawn: Vec<String> = drawn.collect();
        drawn.insert(1, rule);
        drawn.join("\n") + "\n"
    }

    /// The rows that miss their target.
    pub(crate) fn missed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.met == Met::No)
    }
}

impl Row {
    fn cells(&self) -> [String; 6] {
        let or_dash = |text: &str| if text.is_empty() { "–".to_owned() } else { escaped(text) };
        [
            escaped(&self.what),
            or_dash(&self.ours),
            or_dash(&self.floor),
            self.ratio.map_or("–".to_owned(), ratio),
            or_dash(&self.target),
            self.met.word().to_owned(),
        ]
    }
}

/// `0.62 ×`: two digits below ten, none above.
fn ratio(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.2} ×") } else { format!("{ratio:.0} ×") }
}

/// A bar would end the cell, a line end the table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// `12,345`: numbers that people compare need their thousands.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if number < 0.0 { format!("-{grouped}") } else { grouped }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &str, ratio: Option<f64>, met: Met) -> Row {
        let target = if met == Met::NoTarget { String::new() } else { "≥ 50 %".to_owned() };
        Row { what: what.into(), ours: "5,000/s".into(), floor: "10,000/s".into(), ratio, target, met }
    }

    #[test]
    fn a_table_is_markdown_and_lines_up() {
        let table =
            Table { rows: vec![row("unchanged", Some(0.5), Met::Yes), row("x", None, Met::NoTarget)] };
        let expected = "\
| what      | Stakeout | floor or peer (same run) | ratio  | target | met? |
|-----------|----------|--------------------------|--------|--------|------|
| unchanged | 5,000/s  | 10,000/s                 | 0.50 × | ≥ 50 % | yes  |
| x         | 5,000/s  | 10,000/s                 | –      | –      | –    |
";
        assert_eq!(table.to_markdown(), expected);
    }

    #[test]
    fn a_cell_cannot_break_the_table() {
        let table = Table { rows: vec![row("a|b\nc", None, Met::No)] };
        assert!(table.to_markdown().contains("| a\\|b c |"), "{}", table.to_markdown());
        assert_eq!(table.missed().count(), 1);
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, expected) in
            [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (1_234_567.8, "1,234,568"), (-1_500.0, "-1,500")]
        {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn ratios_have_two_digits_below_ten() {
        assert_eq!([ratio(0.618), ratio(9.999), ratio(123.4)], ["0.62 ×", "10.00 ×", "123 ×"]);
    }
}
