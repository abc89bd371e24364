//! Live settings: which hold for which source, and how they come into force.
//!
//! The settings table is the truth. Whoever goes through [`crate::Control`] is refused at once when a value cannot be;
//! whoever writes the table by other means is heard within a second, and a value that cannot be is passed over.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::{Source, Span};
use stakeout_store::StoreError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dispatch::Message;
use crate::replan;
use crate::shared::Shared;
use crate::sharing;

/// How often the table is looked at.
const WATCH_EVERY: Span = Span::ms(500);

/// Whom a key is meant for, and the setting's name there.
pub(crate) enum Scope<'a> {
    /// `source.NAME.setting`: one source.
    One(&'a str, &'a str),
    /// A plain name: every source that lets it be given so.
    Open(&'a str),
}

impl Scope<'_> {
    /// Reads a key; `None` when it is meant for nobody.
    pub(crate) fn of(key: &str) -> Option<Scope<'_>> {
        match key.strip_prefix("source.") {
            Some(rest) => rest.split_once('.').map(|(source, name)| Scope::One(source, name)),
            None => Some(Scope::Open(key)),
        }
    }
}

/// The live settings of one source, by their names there. Its own go before those that hold for all.
pub(crate) fn settings_of(source: &dyn Source, all: &[(String, Json)]) -> BTreeMap<String, Json> {
    let mut settings = BTreeMap::new();
    for own in [false, true] {
        for (key, value) in all {
            let name = match Scope::of(key) {
                Some(Scope::One(of, name)) if own && of == source.name() => name,
                Some(Scope::Open(name)) if !own && is_open(source, name) => name,
                _ => continue,
            };
            settings.insert(name.to_owned(), value.clone());
        }
    }
    settings
}

/// Whether a source lets this setting be given without its name.
pub(crate) fn is_open(source: &dyn Source, name: &str) -> bool {
    source.open_settings().is_some_and(|prefix| name.starts_with(prefix))
}

/// A source with those of these settings that can be. The others are passed over, loudly: the configuration file must
/// never be locked out by an old setting.
pub(crate) fn with_possible(filed: &Arc<dyn Source>, settings: &BTreeMap<String, Json>) -> Arc<dyn Source> {
    let mut possible = BTreeMap::new();
    let mut configured = Arc::clone(filed);
    for (name, value) in settings {
        possible.insert(name.clone(), value.clone());
        match filed.configured(&possible) {
            Ok(source) => configured = source,
            Err(refused) => {
                warn!(source = filed.name(), %refused, "a stored setting is ignored");
                possible.remove(name);
            }
        }
    }
    configured
}

/// A source with those of all stored settings that are meant for it and can be.
pub fn with_settings(filed: &Arc<dyn Source>, stored: &[(String, Json)]) -> Arc<dyn Source> {
    with_possible(filed, &settings_of(&**filed, stored))
}

/// Watches the table for what others write into it. In virtual time nobody else is there.
pub(crate) async fn watch(shared: Arc<Shared>, dispatcher: mpsc::Sender<Message>, stop: CancellationToken) {
    if shared.clock.is_virtual() {
        return;
    }
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = shared.clock.sleep_until(shared.clock.now() + WATCH_EVERY) => {}
        }
        if follow_once(&shared, &dispatcher).await.is_err() {
            return;
        }
    }
}

/// The engine is gone: nobody takes messages any more.
pub(crate) struct Gone;

/// Puts into force what the table says now, and has the targets that were planned anew let go of.
pub(crate) async fn follow_once(shared: &Shared, dispatcher: &mpsc::Sender<Message>) -> Result<(), Gone> {
    match follow(shared).await {
        Ok(moved) if moved.is_empty() => {}
        Ok(moved) => dispatcher.send(Message::Changed(moved)).await.map_err(|_| Gone)?,
        Err(error) => {
            warn!(%error, "the settings could not be read");
            shared.store_failed(&error);
        }
    }
    Ok(())
}

/// Puts into force what the table says now; answers the targets that were planned anew.
async fn follow(shared: &Shared) -> Result<Vec<stakeout_store::TargetId>, StoreError> {
    let _one_at_a_time = shared.settings.lock().await;
    let stored = shared.store.settings().await?;
    shared.outlets.follow(&stored);
    let mut moved = Vec::new();
    if shared.alerts.follow(&stored) {
        moved.extend(replan::everything(shared, None).await?);
    }
    for (name, lane) in &shared.lanes {
        let settings = settings_of(&*lane.source(), &stored);
        if settings == lane.settings() {
            continue;
        }
        info!(source = name, "settings changed");
        lane.reconfigure(with_possible(lane.filed(), &settings), settings);
        sharing::limits_changed(lane, shared.clock.now());
        moved.extend(replan::source(shared, name, None).await?);
    }
    Ok(moved)
}
