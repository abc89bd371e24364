//! A source that a test makes up: each poll asks once, for what its target is called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::derive::{Derived, Derives, Holdings};
use stakeout_core::{
    Exchange, Facts, Failure, Field, FieldType, Kind, Limits, Observation, Plan, PollContext, Request, Rule,
    SettingRefused, Source, Span, Stream, TargetSpec, Time,
};

/// What an answer of a target shows, in records of these kinds.
type Shows = fn(&[Arc<Kind>], &TargetSpec, &[u8]) -> Result<Observation, Failure>;

/// A source without limits and jitter, whose targets are there by configuration.
#[derive(Clone)]
pub struct MadeUp {
    pub name: &'static str,
    pub kinds: Vec<Arc<Kind>>,
    pub rules: Vec<Rule>,
    pub limits: Limits,
    pub budget: Option<f64>,
    pub roots: Vec<TargetSpec>,
    pub shows: Shows,
    pub plan: Arc<dyn Fn(&TargetSpec) -> Plan + Send + Sync>,
    pub derives: Option<Derives>,
    pub derive: fn(&Holdings<'_>) -> Derived,
}

impl MadeUp {
    /// With one root.
    pub fn new(
        name: &'static str,
        kinds: Vec<Kind>,
        root: TargetSpec,
        shows: Shows,
        plan: impl Fn(&TargetSpec) -> Plan + Send + Sync + 'static,
    ) -> MadeUp {
        let limits = Limits {
            requests_per_second: 1e4,
            burst: 1_000,
            concurrency: 50,
            max_jitter: Span::ZERO,
            ..Limits::default()
        };
        MadeUp {
            name,
            kinds: kinds.into_iter().map(Arc::new).collect(),
            rules: vec![],
            limits,
            budget: None,
            roots: vec![root],
            shows,
            plan: Arc::new(plan),
            derives: None,
            derive: |_| Derived::default(),
        }
    }
}

/// A kind with these fields, of which the streams keep some.
pub fn kind(family: &str, collection: &str, fields: &[(&str, FieldType)], streams: Vec<Stream>) -> Kind {
    Kind {
        family: family.to_owned(),
        collection: collection.to_owned(),
        version: 1,
        fields: fields.iter().map(|(name, ty)| Field::new(name, *ty)).collect(),
        streams,
        merges: false,
        views: vec![],
        layout: Default::default(),
    }
}

impl Source for MadeUp {
    fn name(&self) -> &str {
        self.name
    }
    fn family(&self) -> &str {
        &self.kinds[0].family
    }
    fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }
    fn rules(&self) -> &[Rule] {
        &self.rules
    }
    fn limits(&self) -> &Limits {
        &self.limits
    }
    fn budget(&self) -> Option<f64> {
        self.budget
    }
    fn roots(&self, _: Time) -> Vec<TargetSpec> {
        self.roots.clone()
    }
    fn requests(&self, target: &TargetSpec, so_far: &[Exchange], _: &PollContext<'_>) -> Vec<Request> {
        if so_far.is_empty() { vec![Request::get(target.key.clone())] } else { vec![] }
    }
    fn normalize(
        &self,
        target: &TargetSpec,
        exchanges: &[Exchange],
        _: &PollContext<'_>,
    ) -> Result<Observation, Failure> {
        let response = exchanges[0].result.as_ref().map_err(Clone::clone)?;
        (self.shows)(&self.kinds, target, &response.body)
    }
    fn plan(&self, target: &TargetSpec, _: &Facts) -> Plan {
        (self.plan)(target)
    }
    fn derives(&self) -> Option<Derives> {
        self.derives.clone()
    }
    fn derive(&self, holdings: &Holdings<'_>) -> Derived {
        (self.derive)(holdings)
    }
    fn configured(&self, _: &BTreeMap<String, Json>) -> Result<Arc<dyn Source>, SettingRefused> {
        Ok(Arc::new(self.clone()))
    }
}
