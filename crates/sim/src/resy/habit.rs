//! How tables come and go: the whole life of a venue's tables for one date, drawn at once.

use jiff::civil::{Date, Weekday};
use stakeout_core::{Span, Time};

use super::calendar::Calendar;
use super::config::MarketConfig;
use super::seating::{OFF_MARKET, Seating};
use super::venue::{Habit, Release, Venue, log_normal};
use crate::rng::{SplitMix64, mix};

/// How long a roomy venue's table stays on sale and off it, on average, at a churn of 1.
const ON_SALE: Span = Span::hours(40);
const TAKEN: Span = Span::hours(14);
/// The hours of the day by how many cancellations they bring, relative to the busiest.
const QUIET_NIGHT: f64 = 0.1;
/// The average of [`by_hour`] over a day.
const MEAN_BY_HOUR: f64 = (7.0 * QUIET_NIGHT + 17.0) / 24.0;

/// The parties that tables take; the first is the commonest.
const PARTIES: [(u8, u8); 6] = [(1, 2), (2, 4), (1, 4), (3, 4), (2, 6), (5, 8)];

/// What the habits of all venues have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood {
    start: Time,
    until: Time,
    /// The seed, and the σ of the factor that each date draws.
    skew: Option<(u64, f64)>,
    /// Cancellations per second at a venue of weight 1, on an average date, in the busiest hour.
    cancellations: f64,
}

impl Mood {
    /// Spreads the market's cancellations over its venues and its first 14 dates.
    pub(crate) fn new(config: &MarketConfig, venues: &[Venue], dates: &[Calendar]) -> Mood {
        let weight: f64 = venues
            .iter()
            .map(|venue| match venue.habit {
                Habit::Sought { weight, .. } => weight,
                Habit::Roomy { .. } | Habit::Full => 0.0,
            })
            .sum();
        let skew = config.skew.map(|sigma| (config.seed, sigma));
        let mut mood =
            Mood { start: config.start, until: config.start + config.span, skew, cancellations: 0.0 };
        let near = dates.iter().take(14);
        let dated: f64 = near.map(|day| mood.by_date(day) * by_distance(day, config.start)).sum();
        let share = weight * dated * MEAN_BY_HOUR * 86_400.0;
        mood.cancellations = if share > 0.0 { config.cancellations / share } else { 0.0 };
        mood
    }

    /// How many cancellations a date brings, against the others.
    fn by_date(&self, day: &Calendar) -> f64 {
        match self.skew {
            None => by_weekday(day.date),
            Some((seed, sigma)) => {
                log_normal(&mut SplitMix64::new(mix(seed ^ mix(day.midnight().us() as u64))), sigma)
            }
        }
    }
}

/// Everything that happens to a venue's tables for one date.
pub(crate) fn tables(mood: &Mood, venue: &Venue, day: &Calendar) -> Vec<Seating> {
    let mut rng = SplitMix64::new(venue.seed ^ mix(day.midnight().us() as u64));
    let mut seatings = match venue.habit {
        Habit::Full => return Vec::new(),
        Habit::Roomy { .. } | Habit::Sought { .. } => laid(&mut rng, venue),
    };
    match venue.habit {
        Habit::Roomy { churn } => {
            seatings.iter_mut().for_each(|seating| change_hands(&mut rng, mood, churn, seating, day));
        }
        Habit::Sought { weight, release } => {
            cancel(&mut rng, mood, weight, &mut seatings, day);
            if let Some(release) = release {
                put_on_sale(&mut rng, mood, release, &mut seatings, day);
            }
        }
        Habit::Full => {}
    }
    for seating in &mut seatings {
        seating.settle(day.at(seating.minute) - OFF_MARKET);
    }
    seatings
}

/// The tables of an evening, none of them open.
fn laid(rng: &mut SplitMix64, venue: &Venue) -> Vec<Seating> {
    let service = venue.service;
    let mut seatings = Vec::new();
    for minute in (service.first..=service.last).step_by(usize::from(service.step)) {
        // One start may have several rooms.
        let rooms = if rng.one_in(6) { 2 } else { 1 };
        for room in 0..rooms {
            let parties = PARTIES[(rng.between(0, 5) * rng.between(0, 5) / 5) as usize];
            let minutes = 15 * rng.between(5, 8) as u16;
            seatings.push(Seating { minute, minutes, room, parties, open: Vec::new() });
        }
    }
    seatings
}

/// A roomy venue's table: on sale, taken, given back, and so on.
fn change_hands(rng: &mut SplitMix64, mood: &Mood, churn: f64, seating: &mut Seating, day: &Calendar) {
    let until = mood.until.min(day.at(seating.minute));
    let share = ON_SALE.as_secs_f64() / (ON_SALE.as_secs_f64() + TAKEN.as_secs_f64());
    let mut on_sale = rng.unit() < share;
    let (mut from, mut at) = (Time(i64::MIN), mood.start);
    while at < until {
        let mean = if on_sale { ON_SALE } else { TAKEN };
        at += if churn > 0.0 { after(rng, mean.as_secs_f64() / churn) } else { until - at };
        if on_sale {
            seating.add(from, if at < until { at } else { Time(i64::MAX) });
        }
        (from, on_sale) = (at, !on_sale);
    }
}

/// Cancellations come at random: more of them for the coming days, weekends and evenings, few at night.
fn cancel(rng: &mut SplitMix64, mood: &Mood, weight: f64, seatings: &mut [Seating], day: &Calendar) {
    // The most it can be; each moment then keeps its share.
    let most = mood.cancellations * weight * mood.by_date(day) * NEAREST;
    if most <= 0.0 || seatings.is_empty() {
        return;
    }
    let until = mood.until.min(day.midnight() + Span::hours(24));
    let mut at = mood.start;
    loop {
        at += after(rng, 1.0 / most);
        if at >= until {
            return;
        }
        if rng.unit() < by_hour(day, at) * by_distance(day, at) / NEAREST {
            // A party that does not come may have held two tables.
            for _ in 0..if rng.one_in(5) { 2 } else { 1 } {
                let chosen = choose(rng, seatings);
                open_for_a_while(rng, &mut seatings[chosen], at);
            }
        }
    }
}

/// Much of an evening at once; it is gone within minutes.
fn put_on_sale(
    rng: &mut SplitMix64,
    mood: &Mood,
    release: Release,
    seatings: &mut [Seating],
    day: &Calendar,
) {
    let at = day.midnight() - Span::hours(24 * release.days_ahead) + Span::mins(i64::from(release.minute));
    if at < mood.start || at >= mood.until {
        return;
    }
    for seating in seatings {
        if rng.one_in(3) {
            seating.add(at, at + after(rng, 400.0) + Span::secs(20));
        }
    }
}

/// Prime times are cancelled most: there are most bookings.
fn choose(rng: &mut SplitMix64, seatings: &[Seating]) -> usize {
    let weight = |seating: &Seating| match seating.minute {
        1_110..=1_260 => 6,
        1_020.. => 2,
        _ => 1,
    };
    let all: u64 = seatings.iter().map(weight).sum();
    let mut left = rng.between(1, all.max(1));
    for (n, seating) in seatings.iter().enumerate() {
        match left.checked_sub(weight(seating)) {
            None | Some(0) => return n,
            Some(rest) => left = rest,
        }
    }
    0
}

/// A table that somebody gave back: taken again within minutes as a rule, and sometimes it flaps, because people put it
/// into their baskets and let it go.
fn open_for_a_while(rng: &mut SplitMix64, seating: &mut Seating, from: Time) {
    let mut at = from;
    if rng.one_in(6) {
        for _ in 0..rng.between(1, 4) {
            let shown = Span::secs(rng.between(5, 90) as i64);
            seating.add(at, at + shown);
            at = at + shown + Span::secs(rng.between(10, 150) as i64);
        }
    }
    let long = if rng.one_in(10) { 7_200.0 } else { 600.0 };
    seating.add(at, at + Span::secs(20) + after(rng, long));
}

const NEAREST: f64 = 2.0;

/// How many cancellations a date brings by its day of the week: weekends nearly all.
fn by_weekday(date: Date) -> f64 {
    match date.weekday() {
        Weekday::Saturday => 4.0,
        Weekday::Friday => 3.0,
        Weekday::Sunday => 0.8,
        Weekday::Thursday => 0.6,
        Weekday::Wednesday => 0.2,
        Weekday::Monday | Weekday::Tuesday => 0.05,
    }
}

/// The nearer the date, the more cancellations.
fn by_distance(day: &Calendar, at: Time) -> f64 {
    match (day.midnight() - at).as_secs_f64() / 86_400.0 {
        ..1.0 => NEAREST,
        1.0..4.0 => 1.0,
        _ => 0.5,
    }
}

/// From midnight till seven, by the date's own clock, few are awake.
fn by_hour(day: &Calendar, at: Time) -> f64 {
    let hour = (at - day.midnight()).as_us().div_euclid(3_600_000_000).rem_euclid(24);
    if hour < 7 { QUIET_NIGHT } else { 1.0 }
}

/// The time until something happens that happens every `mean_secs` on average.
fn after(rng: &mut SplitMix64, mean_secs: f64) -> Span {
    Span::from_secs_f64(-(1.0 - rng.unit()).ln() * mean_secs) + Span::ms(1)
}
