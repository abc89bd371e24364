//! Placings and what the pools paid.

use super::book::Book;
use super::ids::uuid;
use super::money::POOLS;
use super::race::{Race, Status};
use crate::json::{Object, list};
use crate::rng::mix;

/// What a pool pays on which runners.
struct Payout {
    /// The index in [`POOLS`].
    pool: usize,
    runners: Vec<u32>,
    cents: u64,
}

pub(crate) fn results(out: &mut String, race: &Race, book: &Book, status: Status) {
    list(out, book.placings(status).iter().enumerate(), |out, (n, who)| {
        let entrant = &book.entrants[*who];
        let mut o = Object::begin(out);
        o.bare("position", n + 1).text("name", &entrant.name).raw("barrier", &entrant.barrier);
        o.bare("runner_number", entrant.number).hundredths("margin_length", n as u64 * 130);
        if n == 0 {
            o.hundredths("winning_time", u64::from(race.card.distance) * 6 + 40);
        } else {
            o.text("positional_margin", if n % 2 == 0 { "1-1/4L" } else { "NSE" });
        }
        o.text("entrant_id", &entrant.id);
        o.end();
    });
}

/// At Final the Interim rows are still there, mixed among the others.
pub(crate) fn dividends(out: &mut String, race: &Race, book: &Book, status: Status) {
    let mut rows: Vec<(Status, Payout)> = Vec::new();
    if race.fate.interim_after.is_some() {
        rows.extend(payouts(book, Status::Interim).into_iter().map(|row| (Status::Interim, row)));
    }
    if status == Status::Final {
        rows.extend(payouts(book, Status::Final).into_iter().map(|row| (Status::Final, row)));
    }
    let key = |status: Status, row: &Payout| {
        row.runners.iter().fold((status as u64) << 8 | row.pool as u64, |key, n| mix(key) ^ u64::from(*n))
    };
    rows.sort_by_cached_key(|(status, row)| mix(race.seed ^ key(*status, row)));
    let sizes = book.tracker.last().pools;
    list(out, rows, |out, (told, row)| {
        let mut o = Object::begin(out);
        o.text("id", &uuid(race.seed, key(told, &row)))
            .text("tote", "NZ")
            .text("product_name", POOLS[row.pool].1);
        o.text("status", told.as_str())
            .hundredths("dividend", row.cents)
            .hundredths("pool_size", sizes[row.pool]);
        o.bare("jackpot_size", 0);
        list(o.key("positions"), row.runners.iter().enumerate(), |out, (n, runner)| {
            let mut p = Object::begin(out);
            p.bare("runner_number", runner).bare("position", n + 1);
            p.end();
        });
        let names: Vec<String> = row.runners.iter().map(u32::to_string).collect();
        o.text("description", &names.join(":"));
        o.end();
    });
}

fn payouts(book: &Book, status: Status) -> Vec<Payout> {
    let placings = book.placings(status);
    let prices = |n: usize| {
        let odds = book.entrants[placings[n]].odds.last();
        let win = odds.map_or(100, |o| o.pool_win.unwrap_or(o.fixed_win));
        let place = odds.map_or(100, |o| o.pool_place.unwrap_or(o.fixed_place));
        (u64::from(win), u64::from(place))
    };
    let numbers = |count: usize| -> Vec<u32> {
        placings.iter().take(count).map(|n| book.entrants[*n].number).collect()
    };
    let product = |count: usize| (0..count).fold(100, |all, n| all * prices(n).0 / 100).max(100);
    let (trifecta, place, first_four, quinella, win) = (0, 1, 2, 3, 4);
    let mut rows = vec![
        Payout { pool: win, runners: numbers(1), cents: prices(0).0 },
        Payout { pool: quinella, runners: numbers(2), cents: product(2) / 2 },
        Payout { pool: trifecta, runners: numbers(3), cents: product(3) / 3 },
        Payout { pool: first_four, runners: numbers(4), cents: product(4) / 6 },
    ];
    rows.extend((0..3.min(placings.len())).map(|n| Payout {
        pool: place,
        runners: vec![book.entrants[placings[n]].number],
        cents: prices(n).1,
    }));
    rows
}
