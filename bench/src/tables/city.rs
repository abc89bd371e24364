//! A market as large as a city, and a bucket of it: how it is asked for and read.

use anyhow::Context as _;
use stakeout_core::compare::{Basis, Comparison, Memory, compare};
use stakeout_core::{Exchange, Facts, PollContext, Response, Snapshot, Source, Span, TargetSpec, Time};
use stakeout_sim::resy::{Asked, Market, MarketConfig, Upstream};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

/// A bucket of the city, and how it is asked for and read.
pub(super) struct City {
    source: TablesSource,
    upstream: Upstream,
    target: TargetSpec,
    facts: Facts,
}

impl City {
    pub(super) fn new() -> anyhow::Result<City> {
        let nobody = Credentials { api_key: "bench".to_owned(), auth_token: "bench".to_owned() };
        let source = TablesSource::new("tables", &TablesConfig::default(), nobody)?;
        let upstream = Upstream::new(Market::new(MarketConfig::city(1)));
        let facts = Facts::default();
        let now = upstream.market().config().start;
        let window = source.roots(now).into_iter().next().context("a window")?;
        let seen = source.normalize(&window, &[], &PollContext { now, facts: &facts })?;
        // Three days ahead in the evening.
        let target = seen.targets.and_then(|mut all| (all.len() > 7).then(|| all.swap_remove(7)));
        Ok(City { source, upstream, target: target.context("a bucket")?, facts })
    }

    /// Twelve hours into the market's time.
    pub(super) fn noon(&self) -> Time {
        self.upstream.market().config().start + Span::hours(12)
    }

    /// Everything that a poll asks for, answered at that moment.
    pub(super) fn fetch(&self, now: Time) -> Vec<Exchange> {
        let context = PollContext { now, facts: &self.facts };
        let mut exchanges: Vec<Exchange> = Vec::new();
        loop {
            let requests = self.source.requests(&self.target, &exchanges, &context);
            if requests.is_empty() {
                return exchanges;
            }
            for request in requests {
                let path = request.url.split_once(".com").map_or("", |(_, path)| path);
                let asked = Asked { path, headers: &request.headers, body: &request.body };
                let body = self.upstream.honest(asked, now).body;
                let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
                exchanges.push(Exchange { request, result: Ok(response), sent: now, ended: now });
            }
        }
    }

    pub(super) fn look(
        &self,
        exchanges: &[Exchange],
        snapshot: &Snapshot,
        memory: &Memory,
    ) -> anyhow::Result<Comparison> {
        let now = exchanges.first().map_or(Time(0), |exchange| exchange.sent);
        let context = PollContext { now, facts: &self.facts };
        let observation = self.source.normalize(&self.target, exchanges, &context)?;
        let policy = self.source.doubt();
        let basis =
            Basis { snapshot, memory, meaning: 1, policy, refresh: Span::ZERO, sent: now, ended: now };
        Ok(compare(&basis, &observation))
    }
}
