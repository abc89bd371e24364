//! Racing: the NZTAB affiliates API, polled ever closer to each race's start.
//!
//! `plan` says what is asked and how often, `wire` is the upstream's shape (read by `lenient`, which never loses a race
//! to one odd field), `normalize` with `entrants` and `tote` is what an answer about a race says, `listing` what the
//! catalogue says, `kinds` what is kept of it, `events` what is told. [`timeline`] is what the grid shows of a race's
//! history, [`describe_file`] what a payload says without storing it.

mod config;
mod describe;
mod entrants;
mod events;
mod kinds;
mod listing;
mod money;
mod normalize;
mod nz_time;
mod plan;
mod status;
pub mod timeline;
mod tote;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::judge::{Draft, Judgement};
use stakeout_core::{
    Exchange, Facts, Failure, FailureClass, Kind, KnownSetting, Limits, Observation, Plan, PollContext,
    Request, Rule, SettingRefused, Source, TargetSpec, Time,
};

pub use config::{CadenceConfig, CadenceTable, Identity, PhaseConfig, RacingConfig, RacingEventsConfig};
pub use describe::{describe, describe_file};
pub use kinds::{FAMILY, MONEY_FLOW_HISTORY, ODDS_HISTORY, STATUS_HISTORY};
pub use money::Cents;
pub use status::Status;

use kinds::{Kinds, Thresholds};
use listing::Filter;
use normalize::Expected;
use plan::{Asking, CATALOGUE, Rhythm, event_id};

use crate::ConfigRefused;

/// The NZTAB affiliates racing API.
#[derive(Clone)]
pub struct RacingSource {
    name: String,
    asking: Asking,
    filter: Filter,
    rhythm: Rhythm,
    thresholds: Thresholds,
    kinds: Kinds,
    kind_list: Vec<Arc<Kind>>,
    rules: Vec<Rule>,
    limits: Limits,
}

impl RacingSource {
    /// A source by its configuration; `identity` is what the configuration names as `from`, `partner` and
    /// `partner_id`, with its secrets in place.
    pub fn new(name: &str, config: &RacingConfig, identity: Identity) -> Result<RacingSource, ConfigRefused> {
        identity.check()?;
        let kinds = Kinds::new();
        let thresholds = config.thresholds()?;
        Ok(RacingSource {
            name: name.to_owned(),
            asking: Asking { base_url: config.checked_base_url()?, identity },
            filter: config.filter()?,
            rhythm: config.rhythm()?,
            kind_list: kinds.list(),
            kinds,
            rules: kinds::rules(&thresholds),
            thresholds,
            limits: config.checked_limits()?,
        })
    }
}

impl Source for RacingSource {
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
        vec![events::favourite_changed_type()]
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn roots(&self, _now: Time) -> Vec<TargetSpec> {
        vec![self.asking.catalogue_target(&self.filter)]
    }

    fn looked_at_first(&self, root: &TargetSpec) -> bool {
        root.role == CATALOGUE
    }

    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], context: &PollContext<'_>) -> Vec<Request> {
        match target.role.as_str() {
            CATALOGUE => self.asking.pages(&self.filter, so_far, context.now),
            _ if so_far.is_empty() => vec![self.asking.event(target)],
            _ => Vec::new(),
        }
    }

    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        context: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        if target.role == CATALOGUE {
            let meaning = self.asking.race_meaning();
            let refresh = self.limits.refresh;
            return listing::listing(&self.kinds, &self.filter, meaning, exchanges, context, refresh);
        }
        let [exchange] = exchanges else {
            let message = format!("expected one exchange, found {}", exchanges.len());
            return Err(Failure::new(FailureClass::Internal, message));
        };
        let response = exchange.result.as_ref().map_err(Failure::clone)?;
        let expected = Expected {
            event_id: Some(event_id(target)),
            meeting_id: target.params.get("meeting_id").and_then(Json::as_str),
            start: target.start,
            facts: context.facts,
            now: context.now,
        };
        normalize::event(&self.kinds, &expected, &response.body)
    }

    fn plan(&self, target: &TargetSpec, facts: &Facts) -> Plan {
        self.rhythm.plan(target, facts)
    }

    fn known_settings(&self) -> Vec<KnownSetting> {
        let mut known = config::known_settings(&self.rhythm, &self.thresholds);
        known.extend(self.limits.settings());
        known
    }

    fn configured(&self, settings: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        let mut source = self.clone();
        for (name, value) in settings {
            let known = config::apply(&mut source.rhythm, &mut source.thresholds, name, value)?
                || source.limits.apply(name, value)?;
            if !known {
                return Err(SettingRefused::new(name, value, config::NO_SUCH_SETTING));
            }
        }
        source.rules = kinds::rules(&source.thresholds);
        Ok(Arc::new(source))
    }

    fn judge(&self, judgement: &Judgement<'_>) -> Vec<Draft> {
        events::judge(&self.rules, judgement)
    }
}
