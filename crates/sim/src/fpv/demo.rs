//! The event that the demonstration shows.

use stakeout_core::{Span, Time};

use super::config::EventConfig;
use super::event::Event;
use super::incident::Incident;
use super::upstream::Upstream;

const SEED: u64 = 20_250_816;
/// Events opened one after another, each of about four hours.
const EVENTS: u64 = 4;
/// How far the first event has come: its second race is about to start.
const HEAD_START: Span = Span::secs(190);

/// What makes an upstream's answers fail. Whoever looks at the first event has yet to learn what a usual day looks like.
const FAILURES: [Incident; 5] = [
    Incident::Unreadable,
    Incident::NoRaceFile,
    Incident::BeforeItsRound,
    Incident::SeveralActive,
    Incident::UpstreamOff,
];

/// An upstream that at ten times the speed shows, within the first minute, several races with their laps, and then
/// goes on for hours: events of 60 races, one after another, the first without failures and the others with every incident.
pub fn demo(now: Time) -> Upstream {
    let start = now - HEAD_START;
    let config = EventConfig { off: Span::mins(10), zone: morning_zone(start), ..EventConfig::new(SEED) };
    let event = |n, start| {
        let config = EventConfig { seed: SEED + n, ..config.clone() }.starting(start);
        let here = |incident: &Incident| {
            *incident != Incident::EventSwitch && (n > 0 || !FAILURES.contains(incident))
        };
        Event::with_incidents(&config, Incident::ALL.into_iter().filter(here))
    };
    let first = event(0, start);
    let all = (1..EVENTS).fold(first, |before, n| {
        let at = before.ended() + Span::mins(5);
        before.then(event(n, at + Span::mins(3)), at)
    });
    Upstream::new(all)
}

/// A zone in which it is past eight in the morning then, so that hours of one digit and of two follow each other.
fn morning_zone(at: Time) -> String {
    let hour = at.us().div_euclid(3_600_000_000).rem_euclid(24);
    // The names count westwards.
    match (8 - hour + 12).rem_euclid(24) - 12 {
        0 => "Etc/GMT".to_owned(),
        east @ 1.. => format!("Etc/GMT-{east}"),
        west => format!("Etc/GMT+{}", -west),
    }
}
