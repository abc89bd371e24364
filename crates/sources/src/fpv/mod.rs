//! FPV drone racing: the event that an FPVTrackside has open, with the eye on its current race.
//!
//! `plan` says what is asked and how often, `wire` and `scalar` are the upstream's shapes and its way of writing values,
//! `discovery` what there is to watch, `race` and `normalize` what the answers say, `kinds` what is kept of it, `events`
//! what is told. [`picture`] is the event as it is held, [`order`] numbers its races and names the current one,
//! `derive` turns that into the focus, [`leaderboard`] says who is ahead. [`describe_dir`] shows all of it for a capture.
//!
//! **Invariant:** an answer that is not whole (nothing, a page, an empty list, half a file) is a failed poll; the last
//! good data stays.

mod config;
mod derive;
mod describe;
mod discovery;
mod events;
mod kinds;
pub mod leaderboard;
mod normalize;
pub mod order;
pub mod overlay;
pub mod picture;
mod plan;
mod race;
mod scalar;
mod settings;
mod told;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::derive::{Derived, Derives, Holdings};
use stakeout_core::judge::{Draft, Judgement};
use stakeout_core::{
    Exchange, Facts, Failure, FailureClass, Kind, KnownSetting, Limits, Looks, Observation, Plan,
    PollContext, Request, Rule, SettingRefused, Source, Span, TargetSpec, Time, Value,
};

pub use config::{FpvConfig, SchedulerConfig};
pub(crate) use derive::{UPCOMING, UPCOMING_CHANGED};
pub use describe::{describe_dir, overlay_dir};
pub use kinds::{FAMILY, RACE_HISTORY, RACE_ORDER};
pub(crate) use overlay::SOON;
pub use settings::Settings;

use kinds::Kinds;
use normalize::Reader;
use plan::{Asking, CURRENT, OFF, race_key};
use told::Told;

use crate::ConfigRefused;

/// An FPVTrackside's web server.
#[derive(Clone)]
pub struct FpvSource {
    name: String,
    asking: Asking,
    settings: Settings,
    kinds: Kinds,
    kind_list: Vec<Arc<Kind>>,
    rules: Vec<Rule>,
    limits: Limits,
}

impl FpvSource {
    /// A source by its configuration.
    pub fn new(name: &str, config: &FpvConfig) -> Result<FpvSource, ConfigRefused> {
        let kinds = Kinds::new();
        let (settings, limits) = config.checked_settings()?;
        Ok(FpvSource {
            name: name.to_owned(),
            asking: Asking { url: config.checked_url()?, zone: config.checked_zone()? },
            settings,
            kind_list: kinds.list(),
            kinds,
            rules: kinds::rules(),
            limits,
        })
    }

    /// The settings as they are now, live ones included.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Source for FpvSource {
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
        Told::ALL.map(Told::event_type).to_vec()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn roots(&self, _now: Time) -> Vec<TargetSpec> {
        self.asking.roots()
    }

    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        if so_far.is_empty() { vec![self.asking.request(target)] } else { Vec::new() }
    }

    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        context: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        let [exchange] = exchanges else {
            let message = format!("expected one exchange, found {}", exchanges.len());
            return Err(Failure::new(FailureClass::Internal, message));
        };
        let response = exchange.result.as_ref().map_err(Failure::clone)?;
        let reader = Reader { kinds: &self.kinds, asking: &self.asking };
        reader.read(target, &response.body, context)
    }

    /// The time is only looked at when an event is new, and then the page is.
    fn repeats_mean_nothing_new(&self, _: &TargetSpec) -> bool {
        true
    }

    fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        self.settings.plan(target, facts)
    }

    fn looks(&self) -> Looks {
        Looks { every: self.settings.worker_interval, most: self.settings.burst }
    }

    /// The race that `/current` names, when that is another than before. The rules decide which race is current; this
    /// only looks there sooner.
    fn due_now(&self, target: &TargetSpec, before: &Facts, now: &Facts) -> Option<String> {
        let named =
            |facts: &Facts| facts.notes.get(discovery::HINT).and_then(Value::as_text).map(str::to_owned);
        let hint = named(now).filter(|_| target.role == CURRENT)?;
        (named(before).as_ref() != Some(&hint)).then(|| race_key(&hint))
    }

    fn derives(&self) -> Option<Derives> {
        // Without the regular check it still follows from every change.
        let every = self.settings.active_check;
        let every = if every > Span::ZERO && self.settings.enabled { every } else { OFF };
        // The pilots, because who flies soon is told with their names.
        let kinds = [&self.kinds.events, &self.kinds.rounds, &self.kinds.races, &self.kinds.pilots];
        let kinds = kinds.map(|kind| kind.full_name());
        let published = [derive::CURRENT_ORDER, (derive::LINK, &self.name), (derive::UPCOMING, &self.name)];
        let published = published.map(|(namespace, key)| (namespace.to_owned(), key.to_owned()));
        Some(Derives { every, kinds: kinds.to_vec(), published: published.to_vec() })
    }

    fn derive(&self, holdings: &Holdings<'_>) -> Derived {
        derive::derive(&self.name, &self.kinds, &self.asking, &self.settings, holdings)
    }

    fn open_settings(&self) -> Option<&str> {
        Some(settings::PREFIX)
    }

    fn known_settings(&self) -> Vec<KnownSetting> {
        let mut known = self.settings.known(&self.limits);
        known.extend(self.limits.settings());
        known
    }

    fn configured(&self, settings: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        let mut source = self.clone();
        for (name, value) in settings {
            let known = source.settings.apply(&mut source.limits, name, value)?
                || source.limits.apply(name, value)?;
            if !known {
                return Err(SettingRefused::new(name, value, settings::NO_SUCH_SETTING));
            }
        }
        Ok(Arc::new(source))
    }

    fn judge(&self, judgement: &Judgement<'_>) -> Vec<Draft> {
        events::judge(&self.rules, judgement)
    }
}
