//! Numbers over time, drawn with block characters: a step line, because a value holds until the next row.

use std::collections::BTreeMap;

use stakeout_core::Time;
use stakeout_store::HistoryRow;

/// Rows of text per chart; each has eight levels.
const HEIGHT: usize = 4;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Without a word from the terminal.
const WIDTH: usize = 80;
/// Below this there is nothing to see; above it, a line is no longer a line.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=400;

/// The width by what `COLUMNS` says.
pub(super) fn width(columns: Option<&str>) -> usize {
    let told = columns.and_then(|text| text.trim().parse::<usize>().ok());
    told.map_or(WIDTH, |width| width.clamp(*WIDTHS.start(), *WIDTHS.end()))
}

/// One chart per numeric field of each stream, in the order of their names. Rows are in order of time.
pub(super) fn charts(rows: &[HistoryRow], width: usize) -> Vec<String> {
    let mut series: BTreeMap<(&str, &str), Vec<(Time, f64)>> = BTreeMap::new();
    for row in rows {
        for (field, value) in row.values.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64().filter(|n| n.is_finite()) {
                series.entry((&row.stream, field)).or_default().push((row.at, number));
            }
        }
    }
    let chart = |((stream, field), points): ((&str, &str), Vec<(Time, f64)>)| {
        chart(&format!("{stream} {field}"), &points, width)
    };
    series.into_iter().map(chart).collect()
}

fn chart(title: &str, points: &[(Time, f64)], width: usize) -> String {
    let values = || points.iter().map(|(_, value)| *value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (Some((first, _)), Some((last, newest))) = (points.first(), points.last()) else {
        return title.to_owned();
    };
    let (low_label, high_label) = (number(low), number(high));
    let margin = low_label.len().max(high_label.len());
    let columns = width.saturating_sub(margin + 2).max(1);
    let levels: Vec<usize> = (0..columns)
        .map(|column| level(value_at(points, moment(*first, *last, column, columns)), low, high))
        .collect();
    let mut lines = vec![format!("{title}: min {low_label}, max {high_label}, last {}", number(*newest))];
    for row in (0..HEIGHT).rev() {
        let label = match row {
            0 => &low_label,
            row if row == HEIGHT - 1 => &high_label,
            _ => "",
        };
        let blocks = levels.iter().map(|level| EIGHTHS[level.saturating_sub(row * 8).min(8)]);
        let line = format!("{label:>margin$} ┤{}", blocks.collect::<String>());
        lines.push(line.trim_end().to_owned());
    }
    let (from, to) = (first.to_string(), last.to_string());
    let between = columns.saturating_sub(from.len() + to.len()).max(1);
    lines.push(format!("{:margin$}  {from}{:between$}{to}", "", ""));
    lines.join("\n")
}

/// The moment at the end of a column: the last column shows the newest value.
fn moment(first: Time, last: Time, column: usize, columns: usize) -> Time {
    let whole = i128::from(last.us()) - i128::from(first.us());
    let part = whole * column as i128 / (columns as i128 - 1).max(1);
    Time(first.us() + i64::try_from(part).unwrap_or_default())
}

/// The value that held then.
fn value_at(points: &[(Time, f64)], at: Time) -> f64 {
    let known = points.partition_point(|(time, _)| *time <= at);
    points[known.saturating_sub(1)].1
}

/// From 1, the lowest, to the top of the chart: even the least value can be seen. A flat line runs in the middle.
fn level(value: f64, low: f64, high: f64) -> usize {
    let top = HEIGHT * 8;
    if high <= low {
        return top / 2;
    }
    1 + ((value - low) / (high - low) * (top - 1) as f64).round() as usize
}

/// At most four decimals, none that say nothing.
fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn row(minute: i64, stream: &str, values: Json) -> HistoryRow {
        let at = Time::parse("2026-01-10T02:00:00Z").expect("a time") + stakeout_core::Span::mins(minute);
        HistoryRow { at, stream: stream.to_owned(), values, upstream: false, gap: false }
    }

    #[test]
    fn a_price_is_a_step_line() {
        let rows = [
            row(0, "odds", json!({ "win": 5, "name": "x" })),
            row(10, "odds", json!({ "win": 3.5, "name": "x" })),
            row(30, "odds", json!({ "win": 2, "place": null })),
            row(40, "odds", json!({ "win": 4.25 })),
        ];
        let expected = "\
odds win: min 2, max 5, last 4.25
5 ┤██████████████████
  ┤██████████████████▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁                  █
  ┤██████████████████████████████████████████████████████                  █
2 ┤██████████████████████████████████████████████████████▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█
   2026-01-10T02:00:00.000Z                         2026-01-10T02:40:00.000Z";
        let charts = charts(&rows, 76);
        assert_eq!(charts.len(), 1, "text and nothing are not drawn");
        assert_eq!(charts[0], expected);
    }

    #[test]
    fn each_number_has_its_chart_and_a_flat_one_runs_in_the_middle() {
        let rows = [
            row(0, "money", json!({ "hold": 12.5, "bet": -1 })),
            row(5, "money", json!({ "hold": 12.5, "bet": 1 })),
        ];
        let charts = charts(&rows, 60);
        let bet = "\
money bet: min -1, max 1, last 1
 1 ┤                                                       █
   ┤                                                       █
   ┤                                                       █
-1 ┤▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█
    2026-01-10T02:00:00.000Z        2026-01-10T02:05:00.000Z";
        let hold = "\
money hold: min 12.5, max 12.5, last 12.5
12.5 ┤
     ┤
     ┤██████████████████████████████████████████████████████
12.5 ┤██████████████████████████████████████████████████████
      2026-01-10T02:00:00.000Z      2026-01-10T02:05:00.000Z";
        assert_eq!(charts, [bet, hold]);
    }

    #[test]
    fn the_terminal_says_how_wide() {
        for (columns, expected) in [(None, 80), (Some("120"), 120), (Some("7"), 40), (Some("wide"), 80)] {
            assert_eq!(width(columns), expected);
        }
    }
}
