//! All buckets of a city kept fresh by the whole engine: over loopback, packed as the real upstream packs its answers,
//! with a database on disk, in real time. The upstream renders and packs in a process of its own, and what that costs
//! is reported apart.
//!
//! It is always morning in that city, whenever it is measured: no bucket is over, none ends meanwhile, and the window
//! does not roll.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use stakeout_core::{Span, Time};
use stakeout_engine::Clock;
use stakeout_sim::resy::{Market, MarketConfig, serve};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};
use stakeout_store::{PollOutcome, Store as _, TargetFilter, TargetRow};

use super::{BUCKETS, EVERY_SECS};
use crate::machine::cpu_seconds;
use crate::scene::{Scene, runtime};
use crate::stamped::StampedFetch;
use crate::upstream::Upstream;

/// Enough for all buckets every minute, so that the budget does not stretch them.
const BUDGET: &str = "6000/min";
/// The role of a bucket among the source's targets.
const BUCKET: &str = "bucket";
/// Looks at each bucket before anything is measured: baselines write every record, and whatever is told once has been
/// told by the second.
const WARM_UP_LOOKS: u64 = 2;
/// The warm-up never takes longer, unless something hangs.
const WARM_UP_MAX: Duration = Duration::from_secs(600);
/// The hour of the day in the city, hours before the first table is taken off.
const MORNING: i64 = 8;

/// What came of it.
pub(super) struct Fresh {
    /// Looks at a bucket.
    pub(super) looks: u64,
    pub(super) events: u64,
    pub(super) took_secs: f64,
    /// Processor seconds of the engine's process, all threads.
    pub(super) engine_cpu_secs: f64,
    /// The same of the upstream's.
    pub(super) upstream_cpu_secs: f64,
}

impl Fresh {
    /// As a share of one core.
    pub(super) fn percent(&self, cpu_secs: f64) -> f64 {
        100.0 * cpu_secs / self.took_secs
    }

    pub(super) fn describe(&self) -> String {
        let due = BUCKETS * self.took_secs / EVERY_SECS;
        format!(
            "{:.1} %, {:.0} ms a look ({} of {due:.0} looks in {:.0} s, {} events; the upstream takes {:.1} % in its own process)",
            self.percent(self.engine_cpu_secs),
            1e3 * self.engine_cpu_secs / self.looks.max(1) as f64,
            self.looks,
            self.took_secs,
            self.events,
            self.percent(self.upstream_cpu_secs),
        )
    }
}

pub(super) fn keep(window: Duration) -> anyhow::Result<Fresh> {
    let zone = morning(Clock::system().now());
    let upstream = Upstream::start_as(&["city", &zone])?;
    runtime()?.block_on(watch(&upstream, &zone, window))
}

/// A zone in which it is morning at that moment.
fn morning(now: Time) -> String {
    let hour = now.us().div_euclid(Span::hours(1).as_us()).rem_euclid(24);
    let ahead = match (MORNING - hour).rem_euclid(24) {
        ahead @ 0..=12 => ahead,
        ahead => ahead - 24,
    };
    // These names count hours behind UTC.
    format!("Etc/GMT{:+}", -ahead)
}

async fn watch(upstream: &Upstream, zone: &str, window: Duration) -> anyhow::Result<Fresh> {
    let every = format!("{EVERY_SECS}s");
    let market = serde_json::json!({ "box": MarketConfig::city(1).area, "zone": zone });
    let config: TablesConfig = serde_json::from_value(serde_json::json!({
        "base_url": upstream.url(""), "budget": BUDGET, "min_interval": every, "max_interval": every,
        "market": market,
    }))?;
    let nobody = Credentials { api_key: "bench".to_owned(), auth_token: "bench".to_owned() };
    let source = Arc::new(TablesSource::new("tables", &config, nobody)?);
    let fetch = Arc::new(StampedFetch::new(0)?);
    let scene = Scene::with(vec![source], fetch.clone()).await?;
    tokio::time::timeout(WARM_UP_MAX, warmed_up(&scene))
        .await
        .with_context(|| format!("not every bucket was looked at within {WARM_UP_MAX:?}"))??;
    let newest = scene.control.newest();
    let cpu = || (cpu_seconds(std::process::id()).unwrap_or(0.0), upstream.cpu_seconds());
    let (looks, events, began, before) = (looks(&scene).await?, *newest.borrow(), Instant::now(), cpu());
    tokio::time::sleep(window).await;
    let (after, took_secs) = (cpu(), began.elapsed().as_secs_f64());
    let fresh = Fresh {
        looks: self::looks(&scene).await? - looks,
        events: *newest.borrow() - events,
        took_secs,
        engine_cpu_secs: after.0 - before.0,
        upstream_cpu_secs: after.1 - before.1,
    };
    scene.stop().await?;
    anyhow::ensure!(fetch.failed() == 0, "{} requests failed: the upstream is broken", fetch.failed());
    Ok(fresh)
}

/// Returns when every bucket has been looked at often enough.
async fn warmed_up(scene: &Scene) -> anyhow::Result<()> {
    let mut polled = scene.control.polled();
    loop {
        let buckets = buckets(scene).await?;
        if buckets.len() as f64 == BUCKETS && buckets.iter().all(|row| row.poll_no >= WARM_UP_LOOKS) {
            return Ok(());
        }
        polled.changed().await?;
    }
}

async fn buckets(scene: &Scene) -> anyhow::Result<Vec<TargetRow>> {
    let filter = TargetFilter { limit: 1_000, ..TargetFilter::default() };
    let mut buckets = scene.store.targets(&filter).await?;
    buckets.retain(|row| row.spec.role == BUCKET);
    Ok(buckets)
}

/// How often the buckets have been looked at. A look of which pages moved while it was made is one too: the city
/// moves in real time, and such a look is compared as far as it goes.
async fn looks(scene: &Scene) -> anyhow::Result<u64> {
    let buckets = buckets(scene).await?;
    anyhow::ensure!(buckets.len() as f64 == BUCKETS, "{} buckets", buckets.len());
    let seen = |row: &TargetRow| {
        use PollOutcome::{Baseline, Changed, Partial, Unchanged};
        matches!(row.last_outcome, Some(Baseline | Changed | Partial | Unchanged))
    };
    if let Some(odd) = buckets.iter().find(|row| !seen(row)) {
        let (key, outcome, error) = (&odd.spec.key, odd.last_outcome, &odd.last_error);
        anyhow::bail!("the bucket {key} was not seen: {outcome:?} {error:?}");
    }
    Ok(buckets.iter().map(|row| row.poll_no).sum())
}

/// The other side: a city whose tables move in real time; serves until the input closes.
pub(crate) fn serve_city(zone: &str) -> anyhow::Result<()> {
    let clock = Clock::system();
    let config = MarketConfig { zone: zone.to_owned(), ..MarketConfig::city(1) };
    let config = config.during(clock.now() - Span::hours(12), Span::hours(24));
    let upstream = stakeout_sim::resy::Upstream::new(Market::new(config));
    let server = serve(Arc::new(upstream), move || clock.now());
    let mut out = io::stdout();
    writeln!(out, "{}", server.addr()).context("cannot say where the city is")?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;

    #[test]
    fn it_is_always_morning_in_the_city() {
        for hour in 0..48 {
            let now = Time::from_secs(1_794_873_600) + Span::mins(60 * hour + 59);
            let zone = TimeZone::get(&morning(now)).expect("a zone");
            let there = Timestamp::from_microsecond(now.us()).expect("a moment").to_zoned(zone);
            assert_eq!(there.hour(), MORNING as i8, "{now} in {}", morning(now));
        }
    }
}
