//! The meetings listing as the upstream shows it.

use std::sync::PoisonError;

use jiff::civil::Date;
use stakeout_core::Time;

use super::day::Meeting;
use super::faults::{Missing, Twist};
use super::nz;
use super::race::{Race, Status};
use super::render_event::protest_reason;
use crate::json::{Object, list, put, second_time};

/// A twisted listing is wrong about one race in so many, not about all.
const TWISTED_ONE_IN: u32 = 5;

/// Writes one meeting of `day` at `now`; every race shows its state at its own last renewal.
pub(crate) fn meeting(out: &mut String, meeting: &Meeting, day: Date, now: Time, twist: &Twist) {
    let mut o = Object::begin(out);
    o.text("meeting", &meeting.id).text("name", &meeting.name);
    o.bare("date", format_args!("\"{day}T00:00:00Z\"")).text("track_condition", meeting.track_condition);
    o.text("category", meeting.category.letter()).text("category_name", meeting.category.title());
    o.text("country", meeting.country).text("state", meeting.state);
    list(o.key("races"), &meeting.races, |out, each| {
        let honest = Twist::default();
        let twist = if each.card.number % TWISTED_ONE_IN == 0 { twist } else { &honest };
        listed(out, each, meeting.tote_number.is_some().then_some(day), now, twist);
    });
    // Meetings that the tote does not cover lack all of these.
    if let Some(number) = meeting.tote_number {
        let count = meeting.races.len() as u32;
        o.raw("video_channels", "[\"Trackside1\"]");
        legs(o.key("quaddie"), count.saturating_sub(3).max(1)..=count);
        legs(o.key("early_quaddie"), 1..=count.min(4));
        if meeting.country == "NZ" {
            list(o.key("tote_running_double"), 1..=count / 2, |out, n| legs(out, 2 * n - 1..=2 * n));
            list(o.key("tote_treble"), 1..=count / 3, |out, n| legs(out, 3 * n - 2..=3 * n));
        }
        o.bare("tote_meeting_number", number).bare("tote_raceday_date", format_args!("\"{day}\""));
        let over = meeting.races.iter().all(|race| race.status_at(race.served_at(now)).is_terminal());
        o.text("tote_status", if over { "Closed" } else { "Open" });
    }
    o.end();
}

/// Writes a race's row, as it was written before where it shows the same.
fn listed(out: &mut String, each: &Race, tote_day: Option<Date>, now: Time, twist: &Twist) {
    let at = each.served_at(now);
    let (start, status) = (each.start_at(at), each.status_at(at));
    if *twist != Twist::default() {
        return race(out, each, tote_day, (start, status), twist);
    }
    let mut shown = each.listed.lock().unwrap_or_else(PoisonError::into_inner);
    match &*shown {
        Some((then, state, row)) if (*then, *state) == (start, status) => out.push_str(row),
        _ => {
            let from = out.len();
            race(out, each, tote_day, (start, status), twist);
            *shown = Some((start, status, out[from..].to_owned()));
        }
    }
}

fn race(
    out: &mut String,
    race: &Race,
    tote_day: Option<Date>,
    (start, status): (Time, Status),
    twist: &Twist,
) {
    let card = &race.card;
    let mut o = Object::begin(out);
    o.text("id", &card.id).bare("race_number", card.number).text("name", &card.name);
    if !twist.lacks(Missing::AdvertisedStart) {
        o.text("start_time", &second_time(start));
    }
    if let Some(day) = tote_day {
        o.text("tote_start_time", &nz::tote_clock(day, start));
    }
    o.text("track_condition", card.track_condition)
        .bare("distance", card.distance)
        .text("weather", card.weather);
    o.text("country", card.country).text("state", card.state);
    if !twist.lacks(Missing::Status) {
        o.text("status", twist.status.unwrap_or(status.as_str()));
    }
    if let Some(protest) = race.fate.protest.filter(|_| status == Status::Final) {
        o.bare("protest", true).text("protest_reason", protest_reason(protest));
    }
    o.end();
}

fn legs(out: &mut String, numbers: impl Iterator<Item = u32>) {
    list(out, numbers, |out, n| put(out, format_args!("{n}")));
}
