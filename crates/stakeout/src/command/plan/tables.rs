//! `stakeout plan tables`: what a request budget buys, for a source of the configuration or for one that is described.

use std::process::ExitCode;

use anyhow::Result;
use stakeout_core::Span;
use stakeout_sources::tables::TablesConfig;
use stakeout_sources::tables::forecast::{Forecast, Load, forecast};

use crate::UsageError;
use crate::cli::{GlobalArgs, PlanTablesArgs};
use crate::config::{Secrets, SourceConfig};
use crate::open::Place;
use crate::output::{self, Table};

pub(super) fn plan(args: &PlanTablesArgs, global: &GlobalArgs) -> Result<ExitCode> {
    let config = match &args.source {
        Some(name) => configured(name, global)?,
        None => TablesConfig::default(),
    };
    let seen = forecast(&load(args, &config)?);
    if args.json {
        output::json(&seen)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&sums(&seen).render())?;
    if seen.markets.len() > 1 {
        output::line(&by_market(&seen).render())?;
    }
    if let Some(warning) = &seen.warning {
        output::line(&format!("warning: {warning}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A source as its configuration has it. Nobody is asked, so no secret is needed.
fn configured(name: &str, global: &GlobalArgs) -> Result<TablesConfig> {
    let loaded = Place::find(global)?.loaded;
    let named = loaded.config.source.get(name);
    let Some(SourceConfig::Tables(config)) = named else {
        let of_tables = |(name, config): (&String, &SourceConfig)| {
            matches!(config, SourceConfig::Tables(_)).then(|| name.clone())
        };
        let known: Vec<String> = loaded.config.source.iter().filter_map(of_tables).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message =
            format!("--source: {} has no source {name:?} of kind tables; there is {known}", loaded.file());
        return Err(UsageError(message).into());
    };
    Ok(loaded.tables_config(name, config, &Secrets::Environment)?)
}

/// What is typed stands over what is configured.
fn load(args: &PlanTablesArgs, config: &TablesConfig) -> Result<Load> {
    let named = |name: &str| args.venues.iter().find(|(market, _)| market.as_deref() == Some(name));
    let any = || args.venues.iter().find(|(market, _)| market.is_none());
    let venues = |name: Option<&str>| name.and_then(named).or_else(any).map(|(_, venues)| *venues);
    let known = std::iter::once(&config.market).chain(&config.more_markets);
    let known: Vec<&str> = known.filter_map(|market| market.name.as_deref()).collect();
    let unknown = args.venues.iter().filter_map(|(market, _)| market.as_deref());
    if let Some(unknown) = unknown.into_iter().find(|market| !known.contains(market)) {
        return Err(UsageError(format!("--venues: there is no market {unknown:?}")).into());
    }
    let mut load = config.load(venues).map_err(|market| {
        let market = market.unwrap_or_else(|| "the first market".to_owned());
        UsageError(format!("--venues: how many are there in {market}? Say N for all, or MARKET=N"))
    })?;
    let buckets =
        args.days.unwrap_or(config.days) * args.time_slots.unwrap_or(config.time_slots.len() as u32);
    load.markets.iter_mut().for_each(|market| market.buckets = buckets);
    load.party_sizes = args.party_sizes.unwrap_or(load.party_sizes);
    load.per_page = args.per_page.unwrap_or(load.per_page);
    load.budget = args.budget.unwrap_or(load.budget);
    Ok(load)
}

fn sums(seen: &Forecast) -> Table {
    let buckets: u32 = seen.markets.iter().map(|market| market.buckets).sum();
    let mut table = Table::new(&["TABLES", ""]);
    table.row(["requests per poll".to_owned(), seen.requests_per_poll.to_string()]);
    table.row(["buckets".to_owned(), buckets.to_string()]);
    table.row(["requests per sweep".to_owned(), seen.requests_per_sweep.to_string()]);
    table.row(["a sweep takes".to_owned(), Span::ms(seen.sweep_ms).to_string()]);
    table.row(["a drop waits, on average".to_owned(), Span::ms(seen.expected_delay_ms).to_string()]);
    table
}

fn by_market(seen: &Forecast) -> Table {
    let mut table =
        Table::new(&["MARKET", "VENUES", "BUCKETS", "REQUESTS PER POLL", "PER SWEEP", "A DROP WAITS"]);
    for market in &seen.markets {
        table.row([
            market.name.clone().unwrap_or_else(|| "-".to_owned()),
            market.venues.to_string(),
            market.buckets.to_string(),
            market.requests_per_poll.to_string(),
            market.requests_per_sweep.to_string(),
            Span::ms(market.expected_delay_ms).to_string(),
        ]);
    }
    table
}
