//! One race event as the upstream shows it: what the envelope's `data` holds.

use stakeout_core::Time;

use super::book::{Book, Entrant};
use super::faults::{Missing, Twist};
use super::money::{POOLS, Step};
use super::names::Category;
use super::nz;
use super::race::{BeforeJump, Protest, Race, Status};
use super::render_result::{dividends, results};
use super::render_runner::{Field, runner};
use super::request::Flags;
use crate::json::{Object, list, put, second_time, text};

const TRACK: &str = r#""track_direction":"Left","track_surface":"Turf","track_circumference":1555,"form_guide":"","silk_base_url":"silks.example.invalid","positions_paid":3,"rail_position":"True","group":"","class":"Rating 60 HCP","prize_monies":{"1st":9520,"2nd":3060,"3rd":1530,"4th":850,"total_value":17000},"video_channels":["Trackside1"],"gait":"","gender_conditions":"unrestricted","allowance_conditions":true,"special_conditions":"","mile_rate_400":"","mile_rate_800":"""#;
const COMMENT: &str = "A competitive field in which several are resuming. The topweight drops in grade and maps to get a soft \
    run behind the speed; each of the next three in the market has a case, and the long shots need luck.";
const POOL_FLAGS: &str = r#""guarantee":0,"brought_forward":0,"terminating":false,"jackpot":0,"leg":0,"is_commingled":true,"commingled_info":true,"is_concession":false,"win_investment":"1267","will_pay_live_units":0,"will_pay_current_leg":0"#;

/// Writes the event's `data` as of `at`, the upstream's last renewal.
pub(crate) fn event(out: &mut String, race: &Race, at: Time, flags: &Flags, twist: &Twist) {
    let book = race.book();
    let status = race.status_at(at);
    let field = Field::new(race, book, at, twist);
    let mut o = Object::begin(out);
    facts(o.key("race"), race, book, at, twist);
    let ended = matches!(status, Status::Interim | Status::Final);
    if ended {
        results(o.key("results"), race, book, status);
        dividends(o.key("dividends"), race, book, status);
    } else {
        o.raw("results", "[]").raw("dividends", "[]");
    }
    o.raw("substitutions", "null");
    highlighted(o.key("favourite"), &field, field.favourite);
    list(o.key("runners"), &book.entrants, |out, entrant| runner(out, &field, entrant));
    o.raw("derivatives", "null");
    highlighted(o.key("mover"), &field, field.mover);
    o.raw("big_bets", "null").raw("live_bets", "null").raw("biggest_bet", "null");
    if !twist.lacks(Missing::Money) {
        if flags.money_tracker {
            book.tracker.render(o.key("money_tracker"), at);
        } else {
            o.raw("money_tracker", "null");
        }
    }
    if !twist.lacks(Missing::Pools) {
        pools(o.key("tote_pools"), race, book, at, flags);
    }
    o.text("error", "");
    o.end();
}

/// The favourite and the mover are whole runners once more; a lean body does without.
fn highlighted(out: &mut String, field: &Field<'_>, entrant: Option<&Entrant>) {
    match entrant.filter(|_| field.race.showing.full) {
        Some(entrant) => runner(out, field, entrant),
        None => out.push_str("null"),
    }
}

fn facts(out: &mut String, race: &Race, book: &Book, at: Time, twist: &Twist) {
    let card = &race.card;
    let (status, start) = (race.status_at(at), race.start_at(at));
    let mut o = Object::begin(out);
    o.text("event_id", &card.id).text("meeting_name", &card.meeting_name);
    o.text("display_meeting_name", &card.meeting_name).text("meeting_id", &card.meeting_id);
    if !twist.lacks(Missing::Status) {
        o.text("status", twist.status.unwrap_or(status.as_str()));
    }
    o.text("description", &card.name);
    if !twist.lacks(Missing::AdvertisedStart) {
        o.bare("advertised_start", seconds(start)).text("advertised_start_string", &spelled(start));
    }
    if let Some(actual) = actual_start(race, at, start).filter(|_| !twist.lacks(Missing::ActualStart)) {
        o.bare("actual_start", seconds(actual)).text("actual_start_string", &spelled(actual));
    }
    let local = nz::local(start);
    o.bare("race_date_nz", format_args!("\"{}\"", local.date()));
    o.bare("start_time_nz", format_args!("\"{}\"", local.strftime("%H:%M:%S %Z")));
    o.bare("race_number", card.number).text("type", card.category.letter());
    o.text("start_type", if card.category == Category::Harness { "Mobile" } else { "" });
    o.text("country", card.country).text("state", card.state).bare("distance", card.distance);
    o.text("weather", card.weather).text("track_condition", card.track_condition);
    let scratched = book.entrants.iter().filter(|e| e.scratched.is_some_and(|s| s.at <= at)).count();
    o.bare("entrant_count", book.entrants.len()).bare("field_size", book.entrants.len() - scratched);
    if let Some(protest) = race.fate.protest.filter(|_| status == Status::Final) {
        o.bare("protest", true).text("protest_reason", protest_reason(protest));
    }
    if race.showing.full {
        list(o.key("tips"), book.entrants.iter().take(4), |out, e| text(out, &e.id));
        o.text("comment", COMMENT).fields(TRACK);
    }
    o.end();
}

pub(crate) fn protest_reason(protest: Protest) -> &'static str {
    match protest {
        Protest::Upheld => "Protest UPHELD 2nd vs 1st",
        Protest::Dismissed => "Protest DISMISSED - 2nd v 1st",
    }
}

fn actual_start(race: &Race, at: Time, advertised: Time) -> Option<Time> {
    let jumped = race.jump.filter(|_| race.jump_told.is_some_and(|told| told <= at));
    jumped.or(match race.fate.before_jump {
        BeforeJump::Absent => None,
        BeforeJump::Zero => Some(Time(0)),
        BeforeJump::Advertised => Some(advertised),
    })
}

fn pools(out: &mut String, race: &Race, book: &Book, at: Time, flags: &Flags) {
    let step = book.tracker.at(at);
    let open = at < race.betting_ended();
    let is_final = race.status_at(at) == Status::Final;
    out.push('[');
    for ((product, _), total) in POOLS.iter().zip(step.pools) {
        let mut o = Object::begin(out);
        o.text("product_type", product)
            .hundredths("total", total)
            .text("status", if open { "OPEN" } else { "CLOSED" });
        if is_final {
            o.bare("is_final", true);
        }
        if race.showing.full {
            o.fields(POOL_FLAGS);
        }
        if flags.tote_trends && race.showing.full && matches!(*product, "Trifecta" | "FirstFour") {
            trends(&mut o, book, total);
        }
        o.end();
        out.push(',');
    }
    multi_leg(out, race, book, step, open, flags);
    out.push(']');
}

/// A pool over several races: its total is not this race's money.
fn multi_leg(out: &mut String, race: &Race, book: &Book, step: &Step, open: bool, flags: &Flags) {
    let (number, of) = (race.card.number, race.card.of);
    let (product, legs, key) = match number {
        n if n % 2 == 0 => ("RunningDouble", n - 1..=n, "tote_running_double"),
        n if n <= of / 2 => ("EarlyQuadrella", 1..=of.min(4), "early_quaddie"),
        _ => ("Quadrella", of.saturating_sub(3).max(1)..=of, "quaddie"),
    };
    let mut o = Object::begin(out);
    o.text("product_type", product)
        .hundredths("total", step.multi)
        .text("status", if open { "OPEN" } else { "CLOSED" });
    o.bare("guarantee", 0).bare("jackpot", 6826.35).bare("leg", 1).bare("is_commingled", false);
    list(o.key(key), legs, |out, n| put(out, format_args!("{n}")));
    if flags.will_pays {
        list(o.key("will_pays"), &book.entrants, |out, e| {
            let mut pays = Object::begin(out);
            pays.number("sel", u64::from(e.number)).number("odds", u64::from(e.number * 7 + 3));
            pays.text("change", "-");
            pays.end();
        });
    }
    o.end();
}

/// The upstream passes the tote's own XML through, as text.
fn trends(o: &mut Object<'_>, book: &Book, total: u64) {
    let mut xml = String::from("<meetings>\r\n  <race race_number=\"1\">\r\n    <runners>\r\n");
    for e in &book.entrants {
        put(
            &mut xml,
            format_args!(
                "      <runner runner_number=\"{}\">\r\n        <runner_scratched>{}</runner_scratched>\r\n        \
                 <runner_name>{}</runner_name>\r\n        <runner_investment1>{}</runner_investment1>\r\n        \
                 <runner_investment2>{}</runner_investment2>\r\n      </runner>\r\n",
                e.number,
                if e.scratched.is_some() { "True" } else { "False" },
                e.name,
                total * u64::from(e.number) / 1_700,
                total * u64::from(e.number) / 2_900,
            ),
        );
    }
    xml.push_str("    </runners>\r\n  </race>\r\n</meetings>");
    let mut t = Object::begin(o.key("tote_trends"));
    t.hundredths("pool_total", total).text("tote_trends_data", &xml);
    t.end();
}

fn seconds(at: Time) -> i64 {
    at.us().div_euclid(1_000_000)
}

/// `2025-07-17 00:50:00 +0000 UTC`.
fn spelled(at: Time) -> String {
    second_time(at).replace('T', " ").replace('Z', " +0000 UTC")
}
