//! Days of restaurant tables in virtual time: an adaptive budget next to uniform polling and to an oracle.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use stakeout_core::{Event, Source, Span, Time};
use stakeout_engine::{Engine, EngineConfig, virtual_runtime};
use stakeout_sim::resy::{Bucket, Drop, Faults, Market, MarketConfig, Upstream, Watch, outages};
use stakeout_sources::tables::{Credentials, Rate, TablesConfig, TablesSource};
use stakeout_sources::written::Duration;
use stakeout_store::sqlite::SqliteStore;
use stakeout_store::{EventFilter, Store};

use super::resy::{InProcess, Poll};
use super::tally::{Quantiles, quantiles};
use super::told::{Tally, Told, tally};

/// The party sizes asked for, in this order.
pub(super) const PARTIES: [u8; 2] = [2, 4];
/// Dates watched ahead.
const WINDOW_DAYS: u32 = 14;
/// Everybody needs a first look at everything; what opens before that is nobody's to tell.
const WARM_UP: Span = Span::mins(15);
/// Remarks listed in the report.
const MOST_REMARKS: usize = 20;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct TablesDays {
    /// Decides everything that happens.
    pub seed: u64,
    /// How many days.
    pub days: u32,
    /// Venues in the market.
    pub venues: u32,
    /// Of them on a page.
    pub per_page: u32,
    /// How often the upstream may be asked.
    pub budget: Rate,
    /// The chance of each sort of fault per request.
    pub faults: f64,
    /// How often a day every answer is empty for some minutes.
    pub outages_per_day: f64,
    /// How unevenly the dates bring drops: the σ of a log-normal factor each, by the day of the week unless given.
    pub skew: Option<f64>,
}

/// How one way of polling fared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fared {
    /// Requests made.
    pub requests: u64,
    /// Looks at buckets.
    pub polls: u64,
    /// Drops told.
    pub reported: usize,
    /// Of them: there was none, it had been told before, or nothing explains it.
    pub false_drops: usize,
    /// Of those told, neither true nor counted as false: true when the answer was made, which came out of date and did
    /// not say so.
    pub outdated_drops: usize,
    /// Of the true drops: told.
    pub seen: usize,
    /// Of the true drops: not told.
    pub missed: usize,
    /// Of those missed: gone before the next whole look at their bucket was over.
    pub missed_too_short: usize,
    /// Of those missed: another slot of the same venue and date had been told before the look that would have shown it,
    /// or the slot itself within its quiet time.
    pub missed_beside: usize,
    /// Of those missed: by the looks there were nobody could know that the venue had had nothing before; absent from one
    /// answer proves nothing.
    pub missed_unproven: usize,
    /// Of those missed: whoever looked at the same moments would have told them. There should be none.
    pub missed_though_seen: usize,
    /// From the opening of a drop to the page that showed it, over those seen.
    pub delay_ms: Option<Quantiles>,
    /// The mean of the same.
    pub mean_delay_ms: Option<i64>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct TablesReport {
    /// The seed, to see it again.
    pub seed: u64,
    /// Days simulated.
    pub days: u32,
    /// Venues in the market.
    pub venues: u32,
    /// Requests per minute allowed.
    pub budget: Rate,
    /// Drops that somebody who looks all the time would tell.
    pub drops: usize,
    /// The engine as it is.
    pub adaptive: Fared,
    /// The engine when every bucket gets the same.
    pub uniform: Fared,
    /// Somebody who knows when something opens and looks then, within the budget.
    pub oracle: Fared,
    /// The mean delay of adaptive polling, as a share of that of uniform polling.
    pub adaptive_to_uniform: Option<f64>,
    /// The least that this share can be: somebody divides the budget who knows beforehand how many drops each bucket
    /// will have.
    pub known_rates_to_uniform: Option<f64>,
    /// How long the simulation took.
    pub took_ms: u64,
    /// The first few false and untold drops, in words.
    pub remarks: Vec<String>,
}

/// A simulated run that is over.
struct Ran {
    requests: u64,
    polls: BTreeMap<Bucket, Vec<Poll>>,
    events: Vec<Event>,
}

impl TablesDays {
    /// Three days of 150 venues at 60 requests a minute, without faults.
    pub fn new(seed: u64) -> TablesDays {
        TablesDays {
            seed,
            days: 3,
            venues: 150,
            per_page: 75,
            budget: Rate::per_minute(60.0),
            faults: 0.0,
            outages_per_day: 0.0,
            skew: None,
        }
    }

    /// Runs the days, once adaptively and once uniformly, each on a thread of its own.
    pub fn run(&self) -> Result<TablesReport> {
        let began = Instant::now();
        let every = Duration(self.uniform_interval()?);
        let adaptive = self.config();
        let uniform = TablesConfig { min_interval: every, max_interval: every, ..self.config() };
        let (adaptive, uniform) = std::thread::scope(|scope| {
            let adaptive = scope.spawn(|| self.engine(&adaptive));
            let uniform = self.engine(&uniform);
            let joined = adaptive.join().map_err(|_| anyhow!("the simulated run panicked"));
            anyhow::Ok((joined??, uniform?))
        })?;
        let market = Market::new(self.market());
        let watch = Watch { parties: PARTIES.to_vec(), ..Watch::default() };
        let start = market.config().start;
        let all = market.truth().drops(&watch, start, start + self.span());
        let counts = |drop: &Drop| self.counts(&market, drop);
        let drops: Vec<Drop> = all.iter().filter(|drop| counts(drop)).cloned().collect();
        let judged = |ran: &Ran| {
            let told: Vec<Told> = ran.events.iter().filter_map(Told::of).collect();
            tally(market.truth(), &watch, &all, counts, &ran.polls, &told)
        };
        let (ours, theirs) = (judged(&adaptive), judged(&uniform));
        let mut remarks: Vec<String> =
            remarks("adaptive", &ours).chain(remarks("uniform", &theirs)).collect();
        remarks.truncate(MOST_REMARKS);
        let (adaptive, uniform) = (fared(&adaptive, ours), fared(&uniform, theirs));
        Ok(TablesReport {
            seed: self.seed,
            days: self.days,
            venues: self.venues,
            budget: self.budget,
            drops: drops.len(),
            adaptive_to_uniform: share(adaptive.mean_delay_ms, uniform.mean_delay_ms),
            known_rates_to_uniform: self.known_rates(&drops),
            remarks,
            adaptive,
            uniform,
            oracle: self.oracle(&drops),
            took_ms: began.elapsed().as_millis() as u64,
        })
    }

    fn market(&self) -> MarketConfig {
        let config = MarketConfig { venues: self.venues, ..MarketConfig::new(self.seed) };
        // As many cancellations per venue, however many venues there are.
        let cancellations = config.cancellations * f64::from(self.venues) / 150.0;
        let (start, span) = (config.start, self.span());
        MarketConfig { cancellations, skew: self.skew, ..config }.during(start, span)
    }

    fn span(&self) -> Span {
        Span::hours(24 * i64::from(self.days))
    }

    fn config(&self) -> TablesConfig {
        TablesConfig {
            days: WINDOW_DAYS,
            party_sizes: PARTIES.map(u32::from).to_vec(),
            per_page: self.per_page,
            budget: self.budget,
            // Every drop counts the same here: what is compared is their mean delay.
            prime_weight: 1.0,
            ..TablesConfig::default()
        }
    }

    /// Requests that a look at one bucket costs.
    fn cost(&self) -> f64 {
        f64::from(self.venues.div_ceil(self.per_page)) * PARTIES.len() as f64
    }

    /// The interval at which all buckets together spend what the adaptive ones may.
    fn uniform_interval(&self) -> Result<Span> {
        let config = self.config();
        let budget = source(&config)?.budget().context("tables are polled within a budget")?;
        let buckets = f64::from(WINDOW_DAYS) * config.time_slots.len() as f64;
        Ok(Span::from_secs_f64((buckets * self.cost() / budget).ceil().max(1.0)))
    }

    fn engine(&self, config: &TablesConfig) -> Result<Ran> {
        let upstream = Arc::new(Upstream::new(Market::new(self.market())));
        let start = upstream.market().config().start;
        if self.faults > 0.0 {
            upstream.set_faults(Faults::each(self.seed, self.faults));
        }
        let end = start + self.span();
        upstream.set_incidents(outages(self.seed, start + WARM_UP, end, self.outages_per_day));
        let store = Arc::new(SqliteStore::in_memory()?);
        let fetch = Arc::new(InProcess::new(Arc::clone(&upstream)));
        let (runtime, clock) = virtual_runtime(start)?;
        let mut engine =
            EngineConfig::new(Arc::clone(&store) as Arc<dyn Store>, vec![source(config)?], fetch.clone());
        engine.clock = clock.clone();
        engine.node = "simulation".to_owned();
        let events = runtime.block_on(async {
            let engine = Engine::start(engine).await?;
            clock.sleep_until(end).await;
            engine.shutdown().await?;
            anyhow::Ok(store.events(0, &EventFilter::default(), 10_000_000).await?)
        })?;
        Ok(Ran { requests: upstream.requests(), polls: fetch.polls(), events })
    }

    /// Whether it was there to be told: its date was within the window then.
    fn counts(&self, market: &Market, drop: &Drop) -> bool {
        let ahead = market.days_ahead(drop.bucket.day, drop.opened);
        drop.opened >= market.config().start + WARM_UP && (0..i64::from(WINDOW_DAYS)).contains(&ahead)
    }

    /// By how much the best division of the budget beats the even one: with rates λ and equal costs the mean delays are
    /// as (Σ√λ)² to n·Σλ.
    fn known_rates(&self, drops: &[Drop]) -> Option<f64> {
        let mut counts: BTreeMap<Bucket, f64> = BTreeMap::new();
        drops.iter().for_each(|drop| *counts.entry(drop.bucket).or_default() += 1.0);
        let buckets = f64::from(WINDOW_DAYS + self.days - 1) * self.config().time_slots.len() as f64;
        let roots: f64 = counts.values().map(|count| count.sqrt()).sum();
        (!drops.is_empty()).then(|| roots * roots / (buckets * drops.len() as f64))
    }

    /// Looks at a bucket when something opens in it, or as soon as the budget allows.
    fn oracle(&self, drops: &[Drop]) -> Fared {
        let apart = Span::from_secs_f64(self.cost() / self.budget.per_second());
        let mut tally = Tally::default();
        let (mut polls, mut free) = (0_u64, Time(i64::MIN));
        let mut looked: BTreeMap<Bucket, Time> = BTreeMap::new();
        for drop in drops {
            // The look that an earlier drop waits for shows this one, too.
            let at = match looked.get(&drop.bucket) {
                Some(at) if *at >= drop.opened => *at,
                _ => {
                    let at = drop.opened.max(free);
                    (polls, free) = (polls + 1, at + apart);
                    looked.insert(drop.bucket, at);
                    at
                }
            };
            if at < drop.closed { tally.delays.push(at - drop.opened) } else { tally.too_short += 1 }
        }
        tally.told = tally.delays.len();
        Fared { requests: (polls as f64 * self.cost()) as u64, polls, ..figures(tally) }
    }
}

fn source(config: &TablesConfig) -> Result<Arc<dyn Source>> {
    let nobody = Credentials { api_key: "simulation".to_owned(), auth_token: "simulation".to_owned() };
    Ok(Arc::new(TablesSource::new("tables", config, nobody)?))
}

fn share(of: Option<i64>, whole: Option<i64>) -> Option<f64> {
    Some(of? as f64 / whole.filter(|whole| *whole > 0)? as f64)
}

fn fared(ran: &Ran, tally: Tally) -> Fared {
    let polls = ran.polls.values().map(|polls| polls.len() as u64).sum();
    Fared { requests: ran.requests, polls, ..figures(tally) }
}

fn figures(tally: Tally) -> Fared {
    let sum: i64 = tally.delays.iter().map(|delay| delay.as_ms()).sum();
    Fared {
        reported: tally.told,
        false_drops: tally.wrong.len(),
        outdated_drops: tally.outdated,
        seen: tally.delays.len(),
        missed: tally.too_short + tally.beside + tally.unproven + tally.untold.len(),
        missed_beside: tally.beside,
        missed_unproven: tally.unproven,
        missed_though_seen: tally.untold.len(),
        missed_too_short: tally.too_short,
        mean_delay_ms: sum.checked_div(tally.delays.len() as i64),
        delay_ms: quantiles(tally.delays),
        ..Fared::default()
    }
}

fn remarks(way: &str, tally: &Tally) -> impl Iterator<Item = String> {
    let wrong = tally.wrong.iter().map(move |(told, why)| format!("{way}, false: {told}: {why:?}"));
    let untold = tally.untold.iter().map(move |drop| {
        let Drop { slot, bucket, opened, closed, .. } = drop;
        format!("{way}, untold: {slot} for {bucket}, open from {opened} to {closed}")
    });
    wrong.chain(untold)
}
