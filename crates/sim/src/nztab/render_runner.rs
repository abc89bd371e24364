//! One runner as the upstream shows it.

use stakeout_core::Time;

use super::book::{Book, Entrant};
use super::faults::{Missing, Twist};
use super::names;
use super::race::Race;
use crate::json::{Object, hundredths, list, second_time};
use crate::rng::SplitMix64;

/// The fields that never change, rendered once: an object begun but not ended.
pub(crate) fn constant(rng: &mut SplitMix64, race: &Race, entrant: &Entrant) -> String {
    let mut out = String::new();
    let mut o = Object::begin(&mut out);
    let emergency = entrant.number > 12;
    o.text("entrant_id", &entrant.id).text("name", &entrant.name).bare("is_emergency", emergency);
    if race.showing.full {
        o.text("market_name", "Final Field")
            .bare("primary_market", true)
            .bare("first_start_indicator", false);
        o.text("emergency_position", if emergency { "E1" } else { "" });
    }
    match rng.between(0, 2) {
        0 => o.raw("runner_change", "null"),
        1 => o.raw("runner_change", r#"{"01/08/2024":"Gelding"}"#),
        _ => o.raw("runner_change", r#"{"04/07/2025":"Stable Change","12/11/2020":"Gelding"}"#),
    };
    // A text, an object or nothing, as different upstream versions send it.
    match rng.between(0, 3) {
        0 => o.raw("gear", "null"),
        1 => o.raw("gear", r#"{"blinkers":"on","tongue_tie":"first time"}"#),
        _ => o.text("gear", "Blinkers OFF [Approved Plates, Nose Band]"),
    };
    o.raw("barrier", &entrant.barrier).bare("runner_number", entrant.number);
    o.text("jockey", &entrant.jockey).text("trainer_name", &entrant.trainer);
    if race.showing.full {
        o.text("prize_money", &(rng.between(0, 400) * 250).to_string()).bare("age", rng.between(2, 9));
        o.text("sex", names::pick(rng, &["g", "m", "f", "h"]));
        o.text("colour", names::pick(rng, &["b", "br", "ch", "gr"]));
        o.text("apprentice_indicator", "")
            .text("country", race.card.country)
            .text("trainer_location", "Riverside");
        o.text("last_twenty_starts", &rng.between(1_000, 99_999).to_string());
        o.raw("weight", r#"{"allocated":"56.5","total":"56.5"}"#).raw("form_indicators", "null");
    }
    out
}

/// A race's runners at one moment.
pub(crate) struct Field<'a> {
    pub(crate) race: &'a Race,
    book: &'a Book,
    at: Time,
    twist: &'a Twist,
    /// The runner at the shortest price.
    pub(crate) favourite: Option<&'a Entrant>,
    /// The runner that has shortened most since it opened; none when nobody has.
    pub(crate) mover: Option<&'a Entrant>,
}

impl<'a> Field<'a> {
    pub(crate) fn new(race: &'a Race, book: &'a Book, at: Time, twist: &'a Twist) -> Field<'a> {
        let running = || book.entrants.iter().filter(|e| e.scratched.is_none_or(|s| s.at > at));
        let price = |e: &Entrant| e.odds.at(at).map(|odds| odds.fixed_win);
        let shortened = |e: &Entrant| {
            let open = e.flucs.first().map_or(0, |fluc| fluc.cents);
            u64::from(open.saturating_sub(price(e).unwrap_or(open))) * 1_000 / u64::from(open.max(1))
        };
        let favourite = running().min_by_key(|e| price(e).unwrap_or(u32::MAX));
        let mover = running().max_by_key(|e| shortened(e)).filter(|e| shortened(e) > 0);
        Field { race, book, at, twist, favourite, mover }
    }
}

/// The whole runner.
pub(crate) fn runner(out: &mut String, field: &Field<'_>, entrant: &Entrant) {
    let Field { race, book, at, twist, .. } = *field;
    let is = |other: Option<&Entrant>| other.is_some_and(|other| other.number == entrant.number);
    out.push_str(&entrant.constant);
    let mut o = Object::resume(out);
    let scratched = entrant.scratched.filter(|s| s.at <= at);
    o.flag("is_scratched", scratched.is_some());
    match scratched {
        None if book.null_flags => o.raw("is_late_scratched", "null"),
        None => o.flag("is_late_scratched", false),
        Some(s) => o.flag("is_late_scratched", s.late),
    };
    o.number("scratch_time", scratched.map_or(0, |s| (s.at.us() / 1_000_000) as u64));
    match scratched {
        None => o.raw("scr_time", "null"),
        Some(s) => o.text("scr_time", &second_time(s.at)),
    };
    o.flag("favourite", is(field.favourite)).flag("mover", is(field.mover));
    if !twist.lacks(Missing::Odds) {
        odds(o.key("odds"), entrant, at);
    }
    if !twist.lacks(Missing::Flucs) {
        let told = if book.flucs_lag { at - race.showing.refresh } else { at };
        flucs(&mut o, race, entrant, told);
    }
    o.end();
}

/// A scratched runner has no prices.
fn odds(out: &mut String, entrant: &Entrant, at: Time) {
    let mut o = Object::begin(out);
    if let Some(odds) = entrant.odds.at(at).filter(|_| entrant.scratched.is_none_or(|s| s.at > at)) {
        o.hundredths("fixed_win", u64::from(odds.fixed_win));
        o.hundredths("fixed_place", u64::from(odds.fixed_place));
        if let Some(cents) = odds.pool_win {
            o.hundredths("pool_win", u64::from(cents));
        }
        if let Some(cents) = odds.pool_place {
            o.hundredths("pool_place", u64::from(cents));
        }
    }
    o.end();
}

fn flucs(o: &mut Object<'_>, race: &Race, entrant: &Entrant, at: Time) {
    let known = &entrant.flucs[..entrant.flucs.partition_point(|fluc| fluc.at <= at)];
    let Some(open) = known.first() else {
        o.raw("flucs", "null").raw("flucs_with_timestamp", "null");
        return;
    };
    let six = &known[known.len().saturating_sub(6)..];
    let mut all = Object::begin(o.key("flucs_with_timestamp"));
    list(all.key("last_six"), six, |out, fluc| out.push_str(&fluc.json));
    all.raw("open", &open.json);
    if race.showing.full {
        let extreme = |beats: fn(u32, u32) -> bool| {
            known.iter().fold(open, |best, fluc| if beats(fluc.cents, best.cents) { fluc } else { best })
        };
        let nine_am = known.iter().rev().find(|fluc| fluc.at <= race.showing.nine_am).unwrap_or(open);
        all.raw("high", &extreme(|a, b| a > b).json).raw("low", &extreme(|a, b| a < b).json);
        all.raw("nine_am", &nine_am.json);
    }
    all.end();
    if race.showing.full {
        list(o.key("flucs"), six, |out, fluc| hundredths(out, u64::from(fluc.cents)));
    }
}
