//! `/metrics`: the engine in numbers, in Prometheus' text format.
//!
//! Written here instead of taking a crate for it: all numbers are read at once from the engine's own counters, so there
//! is nothing to register. Labels are the names of sources, outcomes and failure classes, of which there are few.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use stakeout_core::adherence::LatenessHistogram;
use stakeout_engine::{SinkState, SourceVitals, Vitals};
use stakeout_store::Outbox;

use crate::app::App;

/// The page.
pub(crate) async fn serve(State(app): State<App>) -> Response {
    let vitals = app.control.vitals();
    let mut page = Page::default();
    polls(&mut page, &vitals);
    lanes(&mut page, &app, &vitals);
    process(&mut page, &app, &vitals).await;
    sinks(&mut page, &app).await;
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0).into_response()
}

fn polls(page: &mut Page, vitals: &Vitals) {
    page.head("stakeout_polls_total", "counter", "Committed polls by how they ended.");
    for source in &vitals.sources {
        for (outcome, polls) in &source.totals.polls {
            page.line(
                "stakeout_polls_total",
                &[("source", &source.name), ("outcome", outcome)],
                *polls as f64,
            );
        }
    }
    page.head("stakeout_poll_failures_total", "counter", "Failed polls by the failure's class.");
    for source in &vitals.sources {
        for (class, polls) in &source.totals.failures {
            let labels = [("source", source.name.as_str()), ("class", class)];
            page.line("stakeout_poll_failures_total", &labels, *polls as f64);
        }
    }
    type Read = fn(&SourceVitals) -> u64;
    let counters: [(&str, &str, Read); 8] = [
        ("stakeout_polls_dropped_total", "Polls that left no trace.", |s| s.totals.dropped),
        ("stakeout_polls_late_total", "Polls sent later than tolerated.", |s| s.totals.late),
        ("stakeout_polls_missed_total", "Due polls that were missed.", |s| s.totals.missed),
        ("stakeout_requests_total", "Requests made.", |s| s.totals.requests),
        ("stakeout_response_bytes_total", "Body bytes read.", |s| s.totals.bytes),
        ("stakeout_changes_total", "Records added, changed or removed.", |s| s.totals.changes),
        ("stakeout_events_total", "Events told.", |s| s.totals.events),
        ("stakeout_history_rows_total", "History rows written.", |s| s.totals.history_rows),
    ];
    for (name, help, read) in counters {
        page.head(name, "counter", help);
        for source in &vitals.sources {
            page.line(name, &[("source", &source.name)], read(source) as f64);
        }
    }
    let name = "stakeout_backoffs_total";
    page.head(
        name,
        "counter",
        "Times a whole source was slowed down (429, 503), or one target after a failed poll.",
    );
    for source in &vitals.sources {
        let failed = source.totals.polls.get("failed").copied().unwrap_or_default();
        for (of, times) in [("source", source.lane.complaints), ("target", failed)] {
            page.line(name, &[("source", &source.name), ("of", of)], times as f64);
        }
    }
    let name = "stakeout_poll_lateness_seconds";
    page.head(name, "histogram", "From a poll's due time to its first request.");
    for source in &vitals.sources {
        let sum = source.totals.lateness_us as f64 / 1e6;
        page.histogram(name, &[("source", &source.name)], &source.totals.lateness, sum);
    }
}

fn lanes(page: &mut Page, app: &App, vitals: &Vitals) {
    type Read = fn(&SourceVitals) -> f64;
    let gauges: [(&str, &str, Read); 3] = [
        ("stakeout_ready_polls", "Polls that are due and wait for their turn.", |s| s.lane.ready as f64),
        ("stakeout_in_flight_polls", "Polls that are being answered.", |s| f64::from(s.lane.in_flight)),
        ("stakeout_slowdown_ratio", "How many times slower than configured it is asked.", |s| {
            s.lane.slowdown
        }),
    ];
    for (name, help, read) in gauges {
        page.head(name, "gauge", help);
        for source in &vitals.sources {
            page.line(name, &[("source", &source.name)], read(source));
        }
    }
    let sources = app.control.sources();
    page.head("stakeout_request_limit_per_second", "gauge", "Requests per second that are allowed.");
    for source in &sources {
        let limit = source.limits().requests_per_second;
        page.line("stakeout_request_limit_per_second", &[("source", source.name())], limit);
    }
    page.head("stakeout_budget_per_second", "gauge", "Requests per second that adaptive targets share.");
    for source in &sources {
        if let Some(budget) = source.budget() {
            page.line("stakeout_budget_per_second", &[("source", source.name())], budget);
        }
    }
}

async fn process(page: &mut Page, app: &App, vitals: &Vitals) {
    page.head("stakeout_commit_seconds", "histogram", "How long a transaction of polls took.");
    page.histogram("stakeout_commit_seconds", &[], &vitals.commits, vitals.commit_time.as_secs_f64());
    let mut one = |name: &str, kind: &str, help: &str, value: f64| {
        page.head(name, kind, help);
        page.line(name, &[], value);
    };
    one("stakeout_held_targets", "gauge", "Targets held until they are due.", vitals.held as f64);
    one("stakeout_committing_polls", "gauge", "Polls that wait to be committed.", vitals.committing as f64);
    one("stakeout_streams", "gauge", "Event streams that are open.", app.feed.streams() as f64);
    let dropped = app.feed.dropped().load(Ordering::Relaxed) as f64;
    one(
        "stakeout_slow_clients_dropped_total",
        "counter",
        "Clients dropped because they did not read.",
        dropped,
    );
    // A store that does not answer is missing here, and everything else is not.
    if let Ok(ends) = app.store.log_ends().await {
        one("stakeout_event_seq", "gauge", "The newest sequence number.", ends.newest as f64);
    }
    if let Ok(unread) = app.store.unread_notifications(None).await {
        one("stakeout_notifications_unread", "gauge", "Notifications that nobody has read.", unread as f64);
    }
    let started = app.control.started().us() as f64 / 1e6;
    one("stakeout_start_time_seconds", "gauge", "When the engine started, in engine time.", started);
    page.head("stakeout_build_info", "gauge", "The version of this program.");
    page.line("stakeout_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

/// Where events go, and what did not get there. A store that does not answer is missing here.
async fn sinks(page: &mut Page, app: &App) {
    let states = app.control.sinks();
    page.head("stakeout_sink_on", "gauge", "Whether a sink is switched on.");
    for sink in &states {
        let labels = [("sink", sink.name.as_str()), ("kind", sink.kind)];
        page.line("stakeout_sink_on", &labels, f64::from(u8::from(sink.on)));
    }
    let Ok(outboxes) = app.store.outboxes().await else { return };
    type Read = fn(&Outbox) -> u64;
    let gauges: [(&str, &str, Read); 2] = [
        ("stakeout_outbox_waiting", "Deliveries that are still to be made.", |outbox| outbox.waiting),
        ("stakeout_outbox_dead", "Deliveries that were given up.", |outbox| outbox.dead),
    ];
    // An empty outbox is a number, too: whoever is alerted by it must see it end.
    let empty = |sink: &SinkState| Outbox { sink: sink.name.clone(), ..Outbox::default() };
    let known = |sink: &&SinkState| !outboxes.iter().any(|outbox| outbox.sink == sink.name);
    let all: Vec<Outbox> = outboxes.iter().cloned().chain(states.iter().filter(known).map(empty)).collect();
    for (name, help, read) in gauges {
        page.head(name, "gauge", help);
        for outbox in &all {
            page.line(name, &[("sink", &outbox.sink)], read(outbox) as f64);
        }
    }
}

/// The page in the making.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (n, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if n == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], counts: &LatenessHistogram, sum: f64) {
        let mut so_far = 0;
        for (bound, count) in counts.buckets() {
            so_far += count;
            let le = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", le.as_str())]).collect();
            self.line(&format!("{name}_bucket"), &labels, so_far as f64);
        }
        self.line(&format!("{name}_sum"), labels, sum);
        self.line(&format!("{name}_count"), labels, so_far as f64);
    }
}

#[cfg(test)]
mod tests {
    use stakeout_core::Span;

    use super::*;

    #[test]
    fn histograms_are_cumulative_and_labels_escaped() {
        let mut page = Page::default();
        let mut counts = LatenessHistogram::default();
        for ms in [1, 3, 100_000] {
            counts.record(Span::ms(ms));
        }
        page.histogram("x_seconds", &[("source", "a\"b")], &counts, 1.5);
        let lines: Vec<&str> = page.0.lines().collect();
        assert_eq!(lines[0], "x_seconds_bucket{source=\"a\\\"b\",le=\"0.001\"} 1");
        assert_eq!(lines[2], "x_seconds_bucket{source=\"a\\\"b\",le=\"0.005\"} 2");
        assert_eq!(lines[14], "x_seconds_bucket{source=\"a\\\"b\",le=\"+Inf\"} 3");
        assert_eq!(
            lines[15..],
            ["x_seconds_sum{source=\"a\\\"b\"} 1.5", "x_seconds_count{source=\"a\\\"b\"} 3"]
        );
    }
}
