//! What is polled, what is asked, and how often.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use stakeout_core::cadence::{Countdown, Fixed, Phase};
use stakeout_core::{Exchange, Facts, Plan, Request, Span, TargetSpec, Time, spread};

use super::config::Identity;
use super::listing::{Filter, is_full};
use super::nz_time::Date;

/// The key and the role of the one target that exists by configuration.
pub(super) const CATALOGUE: &str = "catalogue";
/// The role of a race's target.
pub(super) const RACE: &str = "race";

/// A race comes before the catalogue; among races the countdown's own slack prefers the one closest to its start, so
/// all have one priority and a listing rewrites nothing as time goes by.
pub(super) const RACE_PRIORITY: u8 = 80;
const CATALOGUE_PRIORITY: u8 = 50;

/// The most pages asked for of one date.
pub(super) const PAGES_MAX: usize = 10;

/// The key of a race's target.
pub(super) fn race_key(id: &str) -> String {
    format!("{RACE}/{id}")
}

/// Where and how the upstream is asked.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) base_url: String,
    pub(super) identity: Identity,
}

impl Asking {
    pub(super) fn catalogue_target(&self, filter: &Filter) -> TargetSpec {
        TargetSpec {
            priority: CATALOGUE_PRIORITY,
            meaning: spread(&[CATALOGUE, &self.base_url, &format!("{filter:?}")]),
            ..TargetSpec::new(CATALOGUE, CATALOGUE)
        }
    }

    pub(super) fn race_meaning(&self) -> u64 {
        spread(&[RACE, &self.base_url])
    }

    /// The one request of a race's poll.
    pub(super) fn event(&self, target: &TargetSpec) -> Request {
        let id = event_id(target);
        self.get(&format!(
            "events/{id}?with_money_tracker=true&with_tote_trends_data=true&with_will_pays=true\
             &with_big_bets=false&with_live_bets=false&with_biggest_bet=false&present_overlay=false"
        ))
    }

    /// The next pages of the catalogue: both dates at first, then more of each while its pages are full.
    pub(super) fn pages(&self, filter: &Filter, so_far: &[Exchange], now: Time) -> Vec<Request> {
        if so_far.is_empty() {
            let today = Date::in_new_zealand(now);
            let dates = [today, today.yesterday()];
            return dates.map(|date| self.page(filter, &Page::first(date.to_string()))).to_vec();
        }
        let mut last: BTreeMap<String, (Page, &Exchange)> = BTreeMap::new();
        for exchange in so_far {
            if let Some(page) = Page::of(&exchange.request) {
                last.insert(page.date.clone(), (page, exchange));
            }
        }
        let more = last.into_values().filter(|(page, exchange)| {
            let full = exchange.result.as_ref().is_ok_and(|response| is_full(&response.body, Page::SIZE));
            full && page.number() + 1 < PAGES_MAX
        });
        more.map(|(page, _)| self.page(filter, &page.next())).collect()
    }

    fn page(&self, filter: &Filter, Page { date, offset }: &Page) -> Request {
        let mut path =
            format!("meetings?date_from={date}&date_to={date}&limit={}&offset={offset}", Page::SIZE);
        // The upstream filters by one value at most; several are picked from the whole list.
        for (name, wanted) in [("country", &filter.countries), ("category", &filter.categories)] {
            if let (Some(only), 1) = (wanted.first(), wanted.len()) {
                path.push_str(&format!("&{name}={only}"));
            }
        }
        self.get(&path)
    }

    fn get(&self, path: &str) -> Request {
        let url = format!("{}/affiliates/v1/racing/{path}", self.base_url);
        Request { headers: self.identity.headers(), ..Request::get(url) }
    }
}

/// The race that a target stands for.
pub(super) fn event_id(target: &TargetSpec) -> &str {
    let given = target.params.get("event_id").and_then(Json::as_str);
    given.unwrap_or_else(|| target.key.split_once('/').map_or(&target.key, |(_, id)| id))
}

/// One page of the meetings of a date. It is known by its request alone, so that a poll that goes on past midnight
/// still reads what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    date: String,
    offset: usize,
}

impl Page {
    /// The most meetings that the upstream gives at once.
    pub(super) const SIZE: usize = 200;

    fn first(date: String) -> Page {
        Page { date, offset: 0 }
    }

    fn next(&self) -> Page {
        Page { date: self.date.clone(), offset: self.offset + Page::SIZE }
    }

    /// The page that a request asked for.
    pub(super) fn of(request: &Request) -> Option<Page> {
        let (_, query) = request.url.split_once('?')?;
        let value = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))
                .map(|(_, v)| v)
        };
        Some(Page { date: value("date_from")?.to_owned(), offset: value("offset")?.parse().ok()? })
    }

    /// Its number, from 0.
    pub(super) fn number(&self) -> usize {
        self.offset / Page::SIZE
    }
}

/// How often to look.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rhythm {
    pub(super) countdown: Countdown,
    pub(super) catalogue_every: Span,
}

impl Rhythm {
    pub(super) fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        match target.role.as_str() {
            // On the hour and half past, so that the daily import at 06:00 in New Zealand is one of them: its offset
            // from UTC is whole hours.
            CATALOGUE => {
                Plan::Fixed(Fixed { every: self.catalogue_every, eager: true, place: Some(Span::ZERO) })
            }
            _ => match target.start.zip(facts.start) {
                Some((listed, own)) if own > listed => Plan::Countdown(self.put_off(own - listed)),
                _ => Plan::Countdown(self.countdown.clone()),
            },
        }
    }

    /// The countdown to a start that a race's own answer puts off and the catalogue does not, yet. A start that jumps ahead
    /// (a placeholder, the wrong day) and back again between two listings must not put the race to sleep: until its own
    /// countdown begins it is polled by the listed start, and after that with the first step, until both agree.
    fn put_off(&self, later: Span) -> Countdown {
        let Some(first) = self.countdown.before.first() else { return self.countdown.clone() };
        let phase = |name: &str, from, every| Phase { name: format!("{name} as listed").into(), from, every };
        let listed = self.countdown.before.iter();
        let listed = listed.map(|one| phase(&one.name, one.from + later, one.every));
        let mut before: Vec<Phase> = listed.chain([phase("T", later, first.every)]).collect();
        before.retain(|phase| phase.from > first.from);
        before.extend(self.countdown.before.iter().cloned());
        Countdown { before, ..self.countdown.clone() }
    }
}
