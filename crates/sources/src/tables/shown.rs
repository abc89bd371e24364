//! Pages that show not one table though they had many a moment ago, while others still do: an upstream that is half out
//! of order answers like that, every venue in its place. Such an answer is a part until the next one says the same.

use stakeout_core::{Facts, Named, Value};

use super::normalize::Answered;

/// The note that remembers how many tables each page showed; below zero when the last answer had none of so many.
const SHOWN: &str = "shown";
/// A page with fewer tables may well lose them all.
const LEAST: i64 = 5;

/// What the pages of a poll show, next to what they showed before.
pub(super) struct Shown {
    now: Named,
    /// Pages that lost everything, by party size and number.
    pub(super) emptied: Vec<String>,
}

impl Shown {
    pub(super) fn of(pages: &[Answered<'_>], before: &Facts) -> Shown {
        let before = match before.notes.get(SHOWN) {
            Some(Value::Map(before)) => Some(before),
            _ => None,
        };
        // A page that did not answer this time shows what it showed.
        let mut shown = Shown { now: before.cloned().unwrap_or_default(), emptied: Vec::new() };
        let tables = |answered: &Answered<'_>| answered.page.hits.iter().map(|hit| hit.shown as i64).sum();
        let counts: Vec<(String, i64)> = pages
            .iter()
            .map(|answered| {
                (format!("{}/{}", answered.asked.party_size, answered.asked.page), tables(answered))
            })
            .collect();
        // Where nothing is shown at all, whoever compares has their own doubts.
        if counts.iter().all(|(_, count)| *count == 0) {
            return shown;
        }
        for (page, count) in counts {
            let known = before.and_then(|before| before.get(&page)?.as_f64()).map_or(0, |n| n as i64);
            let count = if count == 0 && known >= LEAST {
                shown.emptied.push(page.clone());
                -known
            } else {
                count
            };
            shown.now.insert(page, Value::Int(count));
        }
        shown
    }

    /// Remembers it for the next poll.
    pub(super) fn note(self, facts: &mut Facts) {
        facts.notes.insert(SHOWN.to_owned(), Value::Map(self.now));
    }
}
