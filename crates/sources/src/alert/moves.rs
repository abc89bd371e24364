//! How far a value has moved within a time.

use serde_json::Value as Json;
use stakeout_core::Time;
use stakeout_core::alert::Moment;

use super::Direction;

/// The values of a field since a moment: the one that held then, and all that followed. What is not there is what was
/// before it.
pub(super) fn since(rows: &[Moment], field: &str, since: Time) -> Vec<f64> {
    let value = |(at, values): &Moment| values.get(field).and_then(Json::as_f64).map(|value| (*at, value));
    let known: Vec<(Time, f64)> = rows.iter().filter_map(value).collect();
    let first = known.iter().rposition(|(at, _)| *at <= since).unwrap_or(0);
    known[first..].iter().map(|(_, value)| *value).collect()
}

/// By how many percent of what it was a price has moved in a direction; the largest step from any of them to now.
pub(super) fn percent(earlier: &[f64], now: f64, direction: Direction) -> Option<(f64, f64)> {
    let earlier = earlier.iter().copied().filter(|price| *price > 0.0);
    let from = match direction {
        Direction::Shortened => earlier.max_by(f64::total_cmp),
        Direction::Lengthened => earlier.min_by(f64::total_cmp),
    }?;
    let moved = match direction {
        Direction::Shortened => from - now,
        Direction::Lengthened => now - from,
    };
    Some((from, moved * 100.0 / from))
}

/// By how many points a share has grown from its lowest.
pub(super) fn points(earlier: &[f64], now: f64) -> Option<(f64, f64)> {
    let from = earlier.iter().copied().min_by(f64::total_cmp)?;
    Some((from, now - from))
}

/// Whether a move is as large as wanted: 12.00 → 9.60 is 20 %, whatever binary fractions make of it.
pub(super) fn reaches(by: f64, wanted: f64) -> bool {
    by + 1e-9 >= wanted
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stakeout_core::Span;

    use super::*;

    #[test]
    fn a_window_begins_with_what_held_at_its_beginning() {
        let row = |secs: i64, price: Json| (Time(0) + Span::secs(secs), json!({ "win_odds": price }));
        let rows = [row(0, json!(12.0)), row(60, json!(10.0)), row(120, json!(null)), row(180, json!(7.0))];
        let from = |secs: i64| since(&rows, "win_odds", Time(0) + Span::secs(secs));
        assert_eq!(from(90), [10.0, 7.0]);
        assert_eq!(from(-5), [12.0, 10.0, 7.0], "nothing was known before");
        assert_eq!(from(500), [7.0]);
        assert!(since(&[], "win_odds", Time(0)).is_empty());
    }

    #[test]
    fn twelve_to_seven_is_a_shortening_by_41_7_percent() {
        let (from, by) = percent(&[11.0, 12.0, 9.0], 7.0, Direction::Shortened).expect("moved");
        assert!(from == 12.0 && (by - 41.666).abs() < 0.01, "{by}");
        let (_, by) = percent(&[7.0, 8.0], 10.5, Direction::Lengthened).expect("moved");
        assert!((by - 50.0).abs() < 1e-9);
        assert_eq!(percent(&[0.0], 7.0, Direction::Shortened), None, "no price was known");
        assert_eq!(points(&[14.3, 20.0], 29.4).map(|(from, _)| from), Some(14.3));
    }
}
