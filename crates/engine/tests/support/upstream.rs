//! An upstream in virtual time: what it serves, and when it fails, by the minute.
#![allow(dead_code, unreachable_pub, reason = "test files of several crates use it")]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use stakeout_core::{Failure, FailureClass, Request, Response, Source, Span, Time};
use stakeout_engine::fetch::{Answer, FetchLimits};
use stakeout_engine::{Clock, EngineConfig, Fetch};
use stakeout_sources::alert::{AlertConfig, RuleBook};
use stakeout_store::Validators;
use stakeout_store::sqlite::SqliteStore;

/// When it begins: 08:00 in UTC.
pub const T: Time = Time::from_secs(1_800_000_000);

pub fn minute(n: i64) -> Time {
    T + Span::mins(n)
}

/// From one minute until another.
pub type Stretch = (i64, i64);

pub fn is_within((from, until): Stretch, now: Time) -> bool {
    (minute(from)..minute(until)).contains(&now)
}

/// Serves what is to be had at a moment, but for when it fails or wants to be left alone.
pub struct Upstream {
    pub serves: Box<dyn Fn(Time) -> String + Send + Sync>,
    /// It fails.
    pub fails: Vec<Stretch>,
    /// It asks to be left alone until the end of it.
    pub away: Vec<Stretch>,
}

impl Upstream {
    /// One that never fails.
    pub fn serving(serves: impl Fn(Time) -> String + Send + Sync + 'static) -> Upstream {
        Upstream { serves: Box::new(serves), fails: vec![], away: vec![] }
    }
}

#[async_trait]
impl Fetch for Upstream {
    async fn fetch(
        &self,
        _: &Request,
        _: &Validators,
        _: &FetchLimits,
        clock: &Clock,
    ) -> Result<Answer, Failure> {
        let now = clock.now();
        let failure = || Failure::new(FailureClass::ServerError, "not now");
        if let Some((_, until)) = self.away.iter().find(|away| is_within(**away, now)) {
            return Err(Failure { retry_after: Some(minute(*until) - now), ..failure() });
        }
        if self.fails.iter().any(|fails| is_within(*fails, now)) {
            return Err(failure());
        }
        let body = (self.serves)(now).into();
        let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
        Ok(Answer::Full(response, Validators::default()))
    }
}

/// Rules by their names.
pub fn book(rules: &Value) -> RuleBook {
    let rules: BTreeMap<String, AlertConfig> = serde_json::from_value(rules.clone()).expect("rules");
    RuleBook::new(rules).expect("a book")
}

/// An engine that looks at an upstream under some rules.
pub fn under(
    rules: RuleBook,
    store: &Arc<SqliteStore>,
    source: Arc<dyn Source>,
    upstream: &Arc<Upstream>,
    clock: &Clock,
) -> EngineConfig {
    let mut config = EngineConfig::new(store.clone(), vec![source], upstream.clone());
    config.clock = clock.clone();
    config.alerts = Arc::new(rules);
    config
}
