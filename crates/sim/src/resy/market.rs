//! A market of venues whose tables open and close: every moment of it is decided before it begins.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use stakeout_core::Time;

use super::bucket::minute_of;
use super::calendar::{Calendar, date_at};
use super::config::MarketConfig;
use super::habit::{Mood, tables};
use super::seating::{OFF_MARKET, Seating};
use super::truth::Truth;
use super::venue::{Venue, venues};
use super::view::{View, ViewKey};

/// Views are made when first asked for; a watcher with more of them than this makes some of them again.
const VIEWS_MAX: usize = 256;

/// A market, as a pure function of time. Cheap to keep: a date's tables are made when it is first asked for.
#[derive(Debug)]
pub struct Market {
    config: MarketConfig,
    zone: TimeZone,
    venues: Vec<Venue>,
    by_id: HashMap<u64, u32>,
    mood: Mood,
    days: Vec<Day>,
    views: Mutex<HashMap<ViewKey, Arc<View>>>,
}

/// A date and its tables, by venue.
#[derive(Debug)]
struct Day {
    calendar: Calendar,
    added: Vec<(u32, Seating)>,
    tables: OnceLock<Vec<Vec<Seating>>>,
}

/// A table that a story adds to a market.
#[derive(Clone, Debug)]
pub struct Table {
    /// The venue's id.
    pub venue: u64,
    /// When one would sit down, in the market's zone.
    pub start: DateTime,
    /// The smallest and largest party it takes.
    pub parties: (u8, u8),
    /// When it can be booked: from, and the first moment after. It goes off the market half an hour before its time.
    pub open: Vec<(Time, Time)>,
}

impl Market {
    /// The market of that configuration.
    ///
    /// # Panics
    /// When there is no such time zone.
    pub fn new(config: MarketConfig) -> Market {
        let zone = TimeZone::get(&config.zone).expect("the zone is there because the database is bundled");
        let today = date_at(config.start, &zone);
        let dates = (0..i64::from(config.dates)).map(|n| today.saturating_add(n.days()));
        let calendars: Vec<Calendar> = dates.map(|date| Calendar::new(date, &zone)).collect();
        let venues = venues(&config);
        let mood = Mood::new(&config, &venues, &calendars);
        let by_id = venues.iter().zip(0..).map(|(venue, n)| (venue.id, n)).collect();
        let day = |calendar| Day { calendar, added: Vec::new(), tables: OnceLock::new() };
        let days = calendars.into_iter().map(day).collect();
        Market { config, zone, venues, by_id, mood, days, views: Mutex::default() }
    }

    /// The same with one more table.
    ///
    /// # Panics
    /// When the market has no such venue or date.
    #[must_use]
    pub fn with_table(mut self, table: &Table) -> Market {
        let venue = *self.by_id.get(&table.venue).expect("a table stands in a venue of the market");
        let day = self.day_number(table.start.date()).expect("a table is for one of the market's dates");
        let minute = minute_of(table.start.time());
        let mut seating = Seating { minute, minutes: 90, room: 1, parties: table.parties, open: Vec::new() };
        table.open.iter().for_each(|(from, until)| seating.add(*from, *until));
        let day = &mut self.days[day];
        seating.settle(day.calendar.at(minute) - OFF_MARKET);
        day.added.push((venue, seating));
        day.tables = OnceLock::new();
        self.views.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self
    }

    /// What it was made from.
    pub fn config(&self) -> &MarketConfig {
        &self.config
    }

    /// Its venues, from the centre outwards.
    pub fn venues(&self) -> &[Venue] {
        &self.venues
    }

    /// The dates that have tables.
    pub fn dates(&self) -> impl Iterator<Item = Date> + '_ {
        self.days.iter().map(|day| day.calendar.date)
    }

    /// The date in the market at that moment.
    pub fn date_at(&self, now: Time) -> Date {
        date_at(now, &self.zone)
    }

    /// How many days after today that date is; negative when it is past.
    pub fn days_ahead(&self, date: Date, now: Time) -> i64 {
        date.since(self.date_at(now)).map_or(i64::MAX, |days| i64::from(days.get_days()))
    }

    /// What is true in it.
    pub fn truth(&self) -> Truth<'_> {
        Truth::new(self)
    }

    pub(crate) fn venue_number(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn calendar(&self, date: Date) -> Option<&Calendar> {
        self.day_number(date).map(|n| &self.days[n].calendar)
    }

    /// A date's tables by venue; none for a date without any.
    pub(crate) fn tables(&self, date: Date) -> &[Vec<Seating>] {
        let Some(day) = self.day_number(date).map(|n| &self.days[n]) else { return &[] };
        day.tables.get_or_init(|| {
            let of = |venue| tables(&self.mood, venue, &day.calendar);
            let mut all: Vec<Vec<Seating>> = self.venues.iter().map(of).collect();
            for (venue, seating) in &day.added {
                let own = &mut all[*venue as usize];
                own.push(seating.clone());
                own.sort_by_key(|seating| (seating.minute, seating.room));
            }
            all
        })
    }

    pub(crate) fn view(&self, key: ViewKey) -> Arc<View> {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= VIEWS_MAX && !views.contains_key(&key) {
            views.clear();
        }
        let make = || Arc::new(View::new(self, key));
        Arc::clone(views.entry(key).or_insert_with(make))
    }

    fn day_number(&self, date: Date) -> Option<usize> {
        let first = self.days.first()?.calendar.date;
        let n = usize::try_from(date.since(first).ok()?.get_days()).ok()?;
        (n < self.days.len()).then_some(n)
    }
}
