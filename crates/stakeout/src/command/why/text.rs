//! The explanation in lines.

use stakeout_core::{Span, Time};
use stakeout_server::why::Why;
use stakeout_store::PollLog;

use crate::output::Table;
use crate::when;

/// The explanation, for people.
pub(super) fn text(why: &Why, now: Time) -> String {
    let at = |time: Option<Time>| time.map_or_else(|| "never".to_owned(), |time| when::at(time, now));
    let mut lines = vec![why.target.clone()];
    let mut say = |name: &str, what: String| lines.push(format!("  {name:<10} {what}"));
    let due = if why.enabled { at(why.due) } else { "never: it is switched off".to_owned() };
    say("due", due);
    say("every", format!("{}, phase {}", Span::ms(why.interval_ms), why.phase));
    say("because", why.reason.clone());
    say("last poll", format!("{}, {}", why.last_outcome.unwrap_or("none"), at(why.last_polled)));
    if let Some(error) = &why.last_error {
        say("error", format!("{error} ({} in a row)", why.failures_in_a_row));
    }
    say("holds", format!("{} records, last changed {}", why.records, at(why.last_changed)));
    for (n, event) in why.events.iter().enumerate() {
        say(if n == 0 { "events" } else { "" }, event.clone());
    }
    if let Some(run) = &why.run {
        let since = when::at(run.from, now);
        say("run", format!("polls since {since}: {}, late {}, missed {}", run.polls, run.late, run.missed));
    }
    say(
        "unseen",
        match (why.unseen_ms, why.unseen_from) {
            (Some(ms), Some(from)) => format!("at most {} since {}", Span::ms(ms), when::at(from, now)),
            _ => "no complete answer in the last day: nothing can be promised".to_owned(),
        },
    );
    if !why.polls.is_empty() {
        lines.push("  notable polls, the newest first".to_owned());
        lines.extend(polls_table(&why.polls, now).lines().map(|line| format!("    {line}")));
    }
    lines.join("\n")
}

fn polls_table(polls: &[PollLog], now: Time) -> String {
    let mut table =
        Table::new(&["POLL", "SENT", "OUTCOME", "LATENESS", "TOOK", "CHANGES", "EVENTS", "DETAIL"]);
    for poll in polls {
        let late = poll.late.map(|cause| format!(" ({})", cause.name())).unwrap_or_default();
        let missed = match (poll.missed, poll.missed_cause) {
            (0, _) => None,
            (n, Some(cause)) => Some(format!("{n} missed before it ({})", cause.name())),
            (n, None) => Some(format!("{n} missed before it")),
        };
        let failed = poll.error_class.as_ref().map(|class| format!("{class}:"));
        let detail = [missed, failed, poll.detail.clone()];
        table.row([
            poll.poll_no.to_string(),
            when::relative(poll.sent, now),
            poll.outcome.name().to_owned(),
            format!("{}{late}", poll.sent - poll.due),
            (poll.ended - poll.sent).to_string(),
            poll.changes.to_string(),
            poll.events.to_string(),
            detail.into_iter().flatten().collect::<Vec<_>>().join(" "),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use stakeout_store::PollOutcome;

    use super::*;

    const NOW: Time = Time::from_secs(1_000_000);

    fn changed_poll(changes: u32, events: u32) -> PollLog {
        PollLog {
            poll_no: 6,
            due: NOW - Span::secs(48),
            sent: NOW - Span::ms(47_998),
            ended: NOW - Span::ms(47_900),
            phase: "fixed".into(),
            outcome: PollOutcome::Changed,
            late: None,
            missed: 2,
            missed_cause: Some(stakeout_core::adherence::Cause::Downtime),
            requests: 1,
            bytes: 10,
            changes,
            events,
            error_class: None,
            detail: None,
        }
    }

    #[test]
    fn the_explanation_reads_well() {
        let why = Why {
            target: "shop/main".into(),
            enabled: true,
            due: Some(NOW + Span::secs(12)),
            interval_ms: 30_000,
            phase: "fixed".into(),
            reason: "every 30 s".into(),
            last_outcome: Some("unchanged"),
            last_polled: Some(NOW - Span::secs(18)),
            last_changed: None,
            last_error: None,
            failures_in_a_row: 0,
            records: 120,
            events: vec!["the last poll saw what was known already".into()],
            run: None,
            unseen_ms: None,
            unseen_from: None,
            polls: vec![changed_poll(4, 3)],
        };
        let expected = "\
shop/main
  due        1970-01-12T13:46:52.000Z (in 12 s)
  every      30 s, phase fixed
  because    every 30 s
  last poll  unchanged, 1970-01-12T13:46:22.000Z (18 s ago)
  holds      120 records, last changed never
  events     the last poll saw what was known already
  unseen     no complete answer in the last day: nothing can be promised
  notable polls, the newest first
    POLL  SENT      OUTCOME  LATENESS  TOOK   CHANGES  EVENTS  DETAIL
    6     47 s ago  changed  2 ms      98 ms  4        3       2 missed before it (downtime)";
        assert_eq!(text(&why, NOW), expected);
    }
}
