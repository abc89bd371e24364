//! The market that the demonstration shows: a few venues, and a table that opens every minute or so.

use jiff::ToSpan;
use stakeout_core::{Span, Time};

use super::config::MarketConfig;
use super::market::{Market, Table};
use super::upstream::Upstream;
use super::venue::Habit;

const SEED: u64 = 20_260_228;
/// The first table opens so long after the start, and then one after another.
const FIRST: Span = Span::secs(20);
const EVERY: Span = Span::secs(45);
/// So many open by script, over an hour; seeded ones go on for days.
const SCRIPTED: i64 = 80;

/// An upstream of 20 venues in which, from the first minute at any speed on, tables open at venues that had none, on
/// each of the three days after today in turn.
pub fn demo(now: Time) -> Upstream {
    let config = MarketConfig {
        venues: 20,
        roomy: 0.4,
        sought: 0.2,
        cancellations: 300.0,
        absent_one_in: 6,
        ..MarketConfig::new(SEED).during(now, Span::hours(72))
    };
    let market = Market::new(config);
    let today = market.date_at(now);
    // Those that nothing else happens to: a drop there is a drop for sure.
    let full = market.venues().iter().filter(|v| v.habit == Habit::Full && !v.absent_when_full);
    let full: Vec<u64> = full.map(|venue| venue.id).collect();
    let opened = (0..SCRIPTED).map(|n| {
        let date = today.saturating_add((1 + n % 3).days());
        // Later and later, so that no slot comes back within the half-hour in which it stays untold.
        let minute = 18 * 60 + 30 + 15 * (n / 9 % 8);
        let start = date.at((minute / 60) as i8, (minute % 60) as i8, 0, 0);
        let from = now + FIRST + EVERY.times(n);
        // Gone before the same venue has its next on that date, so that each is a drop.
        let open = vec![(from, from + EVERY.times(5))];
        Table { venue: full[(n / 3) as usize % full.len()], start, parties: (2, 4), open }
    });
    let tables: Vec<Table> = opened.collect();
    Upstream::new(tables.iter().fold(market, Market::with_table))
}
