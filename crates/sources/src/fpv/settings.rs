//! The settings that can be changed while it runs, by the names they have in `server_settings`.

use serde_json::Value as Json;
use stakeout_core::{KnownSetting, Limits, SettingRefused, Span};

/// The part of a name that all of them share.
pub(super) const PREFIX: &str = "scheduler.";
/// The longest interval, and the longest worker interval.
const LONGEST_MS: i64 = 86_400_000;
const BURST_MAX: i64 = 10_000;
const JITTER_MAX_MS: i64 = 60_000;

/// What is refused when a live setting has a name that none has.
pub(super) const NO_SUCH_SETTING: &str = "there is no such setting. Known are scheduler.raceActiveMs, scheduler.raceIdleMs, scheduler.resultsMs, scheduler.fullIntervalMs, scheduler.channelsMs, scheduler.activeCheckMs, scheduler.workerIntervalMs, scheduler.burst, scheduler.concurrency, scheduler.jitterMs, scheduler.enabled, requests_per_second, burst, concurrency, min_gap_ms, timeout_ms and jitter_ms";

/// How often what is looked at. An interval of 0 or less switches that sort of target off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest time between two looks for due targets.
    pub worker_interval: Span,
    /// The most targets taken per look; a full burst looks again at once.
    pub burst: u32,
    /// The current race.
    pub race_active: Span,
    /// The other races.
    pub race_idle: Span,
    /// The results.
    pub results: Span,
    /// Page, event, pilots and rounds.
    pub full_interval: Span,
    /// The channels; as often as the event unless given.
    pub channels: Option<Span>,
    /// How often the current race is determined without any news, and how often `/current` is asked.
    pub active_check: Span,
    /// Whether anything is polled at all.
    pub enabled: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            worker_interval: Span::ms(200),
            burst: 2,
            race_active: Span::ms(200),
            race_idle: Span::ms(5_000),
            results: Span::ms(2_000),
            full_interval: Span::ms(10_000),
            channels: None,
            active_check: Span::ms(1_000),
            enabled: true,
        }
    }
}

impl Settings {
    /// How often the channels are looked at.
    pub fn channels_interval(&self) -> Span {
        self.channels.unwrap_or(self.full_interval)
    }

    /// All of them, described.
    pub(super) fn known(&self, limits: &Limits) -> Vec<KnownSetting> {
        let ms = |name, span: Span, about| KnownSetting::new(name, span.as_ms(), "ms", about);
        let count = |name, n: u32, about| KnownSetting::new(name, n, "", about);
        vec![
            ms("scheduler.raceActiveMs", self.race_active, "How often the current race is looked at"),
            ms("scheduler.raceIdleMs", self.race_idle, "How often each other race is looked at"),
            ms("scheduler.resultsMs", self.results, "How often results are looked at"),
            ms(
                "scheduler.fullIntervalMs",
                self.full_interval,
                "How often event, pilots and rounds are looked at",
            ),
            ms("scheduler.channelsMs", self.channels_interval(), "How often channels are looked at"),
            ms(
                "scheduler.activeCheckMs",
                self.active_check,
                "How often the current race is determined without news",
            ),
            ms(
                "scheduler.workerIntervalMs",
                self.worker_interval,
                "Longest time between two looks for due targets",
            ),
            count("scheduler.burst", self.burst, "Most targets taken per look"),
            count("scheduler.concurrency", limits.concurrency, "Polls in flight at once"),
            ms("scheduler.jitterMs", limits.max_jitter, "Most that is added to a due time"),
            KnownSetting::new("scheduler.enabled", self.enabled, "", "Whether anything is polled"),
        ]
    }

    /// Applies one setting; `Ok(false)` when the name is none of ours. Two of them are limits.
    pub(super) fn apply(
        &mut self,
        limits: &mut Limits,
        name: &str,
        value: &Json,
    ) -> Result<bool, SettingRefused> {
        let Some(short) = name.strip_prefix(PREFIX) else { return Ok(false) };
        let whole = |least: i64, most: i64| {
            value.as_i64().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
                SettingRefused::new(name, value, format!("give a whole number from {least} to {most}"))
            })
        };
        let interval = || {
            let given = value.as_i64().filter(|ms| *ms <= LONGEST_MS);
            given.map(|ms| Span::ms(ms.max(0))).ok_or_else(|| {
                let expected =
                    format!("give whole milliseconds up to {LONGEST_MS}; 0 or less switches it off");
                SettingRefused::new(name, value, expected)
            })
        };
        match short {
            "workerIntervalMs" => self.worker_interval = Span::ms(whole(1, LONGEST_MS)?),
            "burst" => self.burst = whole(1, BURST_MAX)? as u32,
            "concurrency" => limits.concurrency = whole(1, BURST_MAX)? as u32,
            "jitterMs" => limits.max_jitter = Span::ms(whole(0, JITTER_MAX_MS)?),
            "raceActiveMs" => self.race_active = interval()?,
            "raceIdleMs" => self.race_idle = interval()?,
            "resultsMs" => self.results = interval()?,
            "fullIntervalMs" => self.full_interval = interval()?,
            "channelsMs" => self.channels = Some(interval()?),
            "activeCheckMs" => self.active_check = interval()?,
            "enabled" => {
                let given = value.as_bool();
                self.enabled = given.ok_or_else(|| SettingRefused::new(name, value, "give true or false"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
