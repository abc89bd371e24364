//! Tables: restaurant availability, polled within a budget; told is what opens at a venue that had nothing.
//!
//! `market` says which buckets there are (a date and a time slot), `plan` what is asked and how often, `provider` is the
//! seam to whoever books tables and `resy` the one behind it, `normalize` puts pages together and says how much they
//! prove, `slots` writes their records, `kinds` is what is kept of it, `events` what is told. [`feed`] is what the API shows, [`forecast`] what a
//! budget buys, [`describe_files`] what a saved answer says without storing it.

mod clock;
mod config;
mod describe;
mod events;
pub mod feed;
pub mod forecast;
mod kinds;
mod known;
mod market;
mod normalize;
mod plan;
mod provider;
mod rate;
mod resy;
mod shown;
mod slots;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::compare::DoubtPolicy;
use stakeout_core::judge::{Draft, Judgement};
use stakeout_core::{
    Coverage, Exchange, Facts, Failure, Kind, KnownSetting, Limits, Observation, Plan, PollContext, Request,
    Rule, SettingRefused, Source, Span, TargetSpec, Time, Warning, credentials_type,
};

pub use config::{MarketConfig, ProviderName, TablesConfig};
pub use describe::{DescribeOptions, describe_files};
pub use kinds::{DROP, FAMILY};
pub use rate::Rate;
pub use resy::Credentials;

use forecast::{Load, MarketLoad};
use kinds::{Kinds, Silence};
use market::{BUCKET, Bucket, WINDOW, Window};
use normalize::Reading;
use plan::{Asking, Rhythm};
use provider::Provider;

use crate::ConfigRefused;
use crate::json::LimitsConfig;

/// The share of the rate that the budget divides; the rest is for retries and for buckets that are new.
const PLANNED_SHARE: f64 = 0.9;

/// Restaurant tables.
#[derive(Clone)]
pub struct TablesSource {
    name: String,
    provider: Arc<dyn Provider>,
    window: Window,
    asking: Asking,
    rhythm: Rhythm,
    silence: Silence,
    slot_cap: u32,
    follow: BTreeSet<String>,
    exclude: BTreeSet<String>,
    rate: Rate,
    kinds: Kinds,
    kind_list: Vec<Arc<Kind>>,
    rules: Vec<Rule>,
    limits: Limits,
    /// What the file says about them; the rest follows from the budget.
    given_limits: LimitsConfig,
}

impl TablesSource {
    /// A source by its configuration; `credentials` is what the configuration names as `api_key` and `auth_token`, with
    /// its secrets in place.
    pub fn new(
        name: &str,
        config: &TablesConfig,
        credentials: Credentials,
    ) -> Result<TablesSource, ConfigRefused> {
        config::check_credentials(&credentials)?;
        let kinds = Kinds::new();
        let silence = config.silence();
        let asking = config.asking()?;
        let provider = config.provider(credentials)?;
        let window = config.window(provider.name(), &asking)?;
        Ok(TablesSource {
            name: name.to_owned(),
            provider,
            window,
            rhythm: config.rhythm()?,
            slot_cap: config.slot_cap,
            follow: config::ids(&config.follow),
            exclude: config::ids(&config.exclude),
            rate: config.budget,
            kind_list: kinds.list(),
            kinds,
            rules: kinds::rules(&silence),
            silence,
            limits: config.checked_limits(&asking)?,
            given_limits: config.limits.clone(),
            asking,
        })
    }

    /// The bucket that a target stands for, if it still means the same. After a change of the configuration nothing is
    /// asked until the window has been looked at: answers about another box are not to be compared with the old ones.
    fn bucket<'a>(&self, target: &'a TargetSpec) -> Option<(Bucket<'a>, &market::Market)> {
        let bucket = Bucket::of(target).filter(|_| target.role == BUCKET)?;
        let market = self.window.market(&bucket)?;
        (self.window.meaning_of(market) == target.meaning).then_some((bucket, market))
    }
}

impl Source for TablesSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        FAMILY
    }

    fn kinds(&self) -> &[Arc<Kind>] {
        &self.kind_list
    }

    fn rules(&self) -> &[Rule] {
        &self.rules
    }

    fn tells(&self) -> Vec<String> {
        vec![credentials_type(self.family())]
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn budget(&self) -> Option<f64> {
        Some(self.rate.per_second() * PLANNED_SHARE)
    }

    fn doubt(&self) -> DoubtPolicy {
        DoubtPolicy {
            companions: true,
            confirm_empty_baseline: true,
            emptiness: true,
            ..DoubtPolicy::default()
        }
    }

    fn holds_for(&self) -> Option<Span> {
        Some(feed::STALE_AFTER)
    }

    fn is_refused(&self, failure: &Failure) -> bool {
        normalize::is_refused(failure)
    }

    fn outlook(&self, exchanges: &[Exchange]) -> Vec<String> {
        let bodies = exchanges.iter().filter_map(|exchange| exchange.result.as_ref().ok());
        let totals = bodies.filter_map(|response| self.provider.read(&response.body).ok()?.total);
        let Some(venues) = totals.max() else { return Vec::new() };
        // Only one bucket was looked at: as if all markets were as large.
        let buckets = self.window.time_slots.len() as u32 * self.window.days;
        let market = |market: &market::Market| MarketLoad { name: market.prefix.clone(), venues, buckets };
        let load = Load {
            markets: self.window.markets.iter().map(market).collect(),
            per_page: self.asking.per_page,
            party_sizes: self.asking.party_sizes.len() as u32,
            budget: self.rate,
            min_interval: self.rhythm.min,
            max_interval: self.rhythm.max,
        };
        forecast::words(&load)
    }

    fn says_of_a_part(&self) -> &[&'static str] {
        &normalize::OF_A_PART
    }

    fn roots(&self, _now: Time) -> Vec<TargetSpec> {
        vec![TargetSpec { priority: 90, ..TargetSpec::new(WINDOW, WINDOW) }]
    }

    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        match self.bucket(target) {
            Some((bucket, market)) => self.asking.pages(&*self.provider, market.area, &bucket, so_far),
            None => Vec::new(),
        }
    }

    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        context: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        if target.role == WINDOW {
            let targets = Some(self.window.buckets(context.now));
            return Ok(Observation { targets, ..Observation::complete(Vec::new()) });
        }
        let Some((bucket, market)) = self.bucket(target) else {
            let detail = format!("{} is not what is configured: waiting for the window", target.key);
            return Ok(Observation {
                coverage: Coverage::None,
                facts: context.facts.clone(),
                warnings: vec![Warning { code: "other_market", detail }],
                ..Observation::complete(Vec::new())
            });
        };
        let reading = Reading {
            kinds: &self.kinds,
            provider: &*self.provider,
            bucket_id: &target.key,
            date: bucket.date,
            zone: &market.zone,
            party_sizes: &self.asking.party_sizes,
            slot_cap: self.slot_cap,
            max_pages: self.asking.max_pages,
            follow: &self.follow,
            only_market: self.window.markets.len() == 1,
            facts: context.facts,
        };
        normalize::bucket(&reading, exchanges)
    }

    fn repeats_mean_nothing_new(&self, target: &TargetSpec) -> bool {
        // The window is a calendar; in a bucket only the stamps of the slots' pages differ, and those are not tracked.
        target.role == BUCKET
    }

    fn reads_by(&self) -> u64 {
        // Followed venues without a table are counted while reading.
        let followed: Vec<&str> = self.follow.iter().map(String::as_str).collect();
        stakeout_core::spread(&followed)
    }

    fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        self.rhythm.plan(target, facts)
    }

    fn known_settings(&self) -> Vec<KnownSetting> {
        self.described_settings()
    }

    fn configured(&self, settings: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        let mut source = self.clone();
        for (name, value) in settings {
            if !source.apply(name, value)? && !source.limits.apply(name, value)? {
                return Err(SettingRefused::new(name, value, config::NO_SUCH_SETTING));
            }
        }
        source.check_intervals(settings)?;
        source.rules = kinds::rules(&source.silence);
        Ok(Arc::new(source))
    }

    fn judge(&self, judgement: &Judgement<'_>) -> Vec<Draft> {
        events::judge(&self.rules, &self.follow, &self.exclude, judgement)
    }
}
