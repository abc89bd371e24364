//! Outlets: the sinks of this engine, what each of them takes, and whether it is switched on.
//!
//! A sink is switched off by its receiver, who said that it is gone for good, or by a person, with the live setting
//! `sink.NAME.enabled`. While it is off, nothing is put into its outbox and nothing is sent; what waits there stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Json;
use stakeout_core::SettingRefused;
use stakeout_store::EventWrite;
use tracing::{info, warn};

use crate::deliver::Sink;

/// Settings of sinks begin so.
pub(crate) const SETTING_PREFIX: &str = "sink.";
const SETTING_SUFFIX: &str = ".enabled";

/// The setting that switches a sink on or off.
pub(crate) fn switch(name: &str) -> String {
    format!("{SETTING_PREFIX}{name}{SETTING_SUFFIX}")
}

/// A sink as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkState {
    /// Its name in the configuration.
    pub name: String,
    /// What sort of sink it is.
    pub kind: &'static str,
    /// Whether it is switched on.
    pub on: bool,
}

/// The sinks of an engine.
pub(crate) struct Outlets(Vec<Outlet>);

struct Outlet {
    sink: Arc<dyn Sink>,
    on: AtomicBool,
    /// Whether the receiver said that it is gone, and that is not stored yet.
    gone: AtomicBool,
}

impl Outlets {
    /// These sinks, switched as the settings say.
    pub(crate) fn new(sinks: &[Arc<dyn Sink>], settings: &[(String, Json)]) -> Outlets {
        let outlet = |sink: &Arc<dyn Sink>| Outlet {
            sink: Arc::clone(sink),
            on: AtomicBool::new(true),
            gone: AtomicBool::new(false),
        };
        let outlets = Outlets(sinks.iter().map(outlet).collect());
        outlets.follow(settings);
        outlets
    }

    /// Switches them as the settings say.
    pub(crate) fn follow(&self, settings: &[(String, Json)]) {
        for outlet in &self.0 {
            let key = switch(outlet.sink.name());
            let said =
                settings.iter().find(|(known, _)| *known == key).and_then(|(_, value)| value.as_bool());
            let on = said.unwrap_or(true) && !outlet.gone.load(Ordering::Relaxed);
            if outlet.on.swap(on, Ordering::Relaxed) == on {
                continue;
            }
            match on {
                true => info!(sink = outlet.sink.name(), "the sink is switched on"),
                false => warn!(sink = outlet.sink.name(), "the sink is switched off: {key} is false"),
            }
        }
    }

    /// Whether a setting of sinks can be.
    pub(crate) fn check(&self, key: &str, value: Option<&Json>) -> Result<(), SettingRefused> {
        let known: Vec<String> = self.0.iter().map(|outlet| switch(outlet.sink.name())).collect();
        match value {
            // Even that of a sink that is no longer configured must be removable.
            None => Ok(()),
            Some(value) if !known.iter().any(|known| known == key) => {
                let expected = format!("the setting of a sink that is there: {}", known.join(", "));
                Err(SettingRefused::new(key, value, expected))
            }
            Some(value) if !value.is_boolean() => Err(SettingRefused::new(key, value, "true or false")),
            Some(_) => Ok(()),
        }
    }

    /// The sinks that are switched on.
    pub(crate) fn names(&self) -> Vec<String> {
        let on = self.0.iter().filter(|outlet| outlet.on.load(Ordering::Relaxed));
        on.map(|outlet| outlet.sink.name().to_owned()).collect()
    }

    /// All sinks, switched on or not.
    pub(crate) fn all_names(&self) -> Vec<String> {
        self.0.iter().map(|outlet| outlet.sink.name().to_owned()).collect()
    }

    /// Whether a sink is there, switched on or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|outlet| outlet.sink.name() == name)
    }

    /// Whether a sink is switched on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.0.iter().any(|outlet| outlet.sink.name() == name && outlet.on.load(Ordering::Relaxed))
    }

    /// All of them: name, kind, and whether it is switched on.
    pub(crate) fn states(&self) -> Vec<SinkState> {
        let state = |outlet: &Outlet| SinkState {
            name: outlet.sink.name().to_owned(),
            kind: outlet.sink.kind(),
            on: outlet.on.load(Ordering::Relaxed),
        };
        self.0.iter().map(state).collect()
    }

    /// The receiver is gone for good: the sink is off, and no setting counts until that is stored.
    pub(crate) fn gone(&self, name: &str) {
        if let Some(outlet) = self.named(name) {
            outlet.gone.store(true, Ordering::Relaxed);
            outlet.on.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the receiver is gone for good and that is not stored yet.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        self.named(name).is_some_and(|outlet| outlet.gone.load(Ordering::Relaxed))
    }

    /// From now on the settings say that it is off, until they say otherwise.
    pub(crate) fn gone_is_stored(&self, name: &str) {
        if let Some(outlet) = self.named(name) {
            outlet.gone.store(false, Ordering::Relaxed);
        }
    }

    fn named(&self, name: &str) -> Option<&Outlet> {
        self.0.iter().find(|outlet| outlet.sink.name() == name)
    }

    /// Puts the sinks on events: those that an event names and those that take its type, as far as they are there and
    /// switched on. For any other it would wait for ever.
    pub(crate) fn route(&self, mut events: Vec<EventWrite>) -> Vec<EventWrite> {
        for event in &mut events {
            let named = std::mem::take(&mut event.sinks);
            let wants = |outlet: &&Outlet| {
                let name = outlet.sink.name();
                outlet.on.load(Ordering::Relaxed)
                    && (named.iter().any(|named| named == name) || outlet.sink.takes(&event.event_type))
            };
            event.sinks = self.0.iter().filter(wants).map(|outlet| outlet.sink.name().to_owned()).collect();
        }
        events
    }
}
