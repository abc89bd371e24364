//! Standing: whether the upstream takes our credentials, told once and remembered beyond the process.

use serde_json::{Value as Json, json};
use stakeout_core::judge::Effect;
use stakeout_core::{EventId, Fingerprint, Span, credentials_type};
use stakeout_store::{EventWrite, KvSet};

use super::Job;
use super::fetch::{Fetched, Standing};
use crate::redact::redact;

/// Where it is remembered, under the source's name.
pub(crate) const NAMESPACE: &str = "credentials";
const RULE: &str = "credentials";
/// An upstream that cannot make up its mind is told about no more often than this.
const QUIET: Span = Span::hours(1);

/// Whether a remembered value says that the source is refused.
pub(crate) fn is_refused(remembered: &Json) -> bool {
    remembered["refused"] == true
}

/// The one alert, and what to remember.
pub(super) fn told(job: &Job<'_>, fetched: &Fetched) -> (Option<EventWrite>, Vec<KvSet>) {
    let source = job.source.name();
    let remember = |value| vec![KvSet { namespace: NAMESPACE.into(), key: source.into(), value }];
    match &fetched.standing {
        Standing::Same => (None, Vec::new()),
        Standing::Restored => (None, remember(json!({ "refused": false, "since": fetched.ended }))),
        Standing::Refused(failure) => {
            let message = redact(&failure.message, &fetched.exchanges);
            let data = json!({ "source": source, "class": failure.class.name(), "message": message });
            let alert = EventWrite {
                id: EventId::of_trigger(source, RULE, source, &fetched.ended.to_string()),
                event_type: credentials_type(job.source.family()),
                rule: RULE.into(),
                subject: Fingerprint::of("source", &[source]),
                subject_key: source.into(),
                at: fetched.ended,
                dedupe_key: None,
                data,
                requires: Effect::Any,
                quiet: Some(QUIET),
                unseen_for: None,
                follows: None,
                sinks: Vec::new(),
            };
            (Some(alert), remember(json!({ "refused": true, "since": fetched.ended })))
        }
    }
}
