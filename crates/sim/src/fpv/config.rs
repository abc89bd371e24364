//! What an event is made from.

use stakeout_core::{Span, Time};

/// Which version of the program serves the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// No `/current` (it answers the page), no `TimeZone`.
    Old,
    /// With both.
    New,
}

/// What an event is made from.
#[derive(Clone, Debug)]
pub struct EventConfig {
    /// Decides everything that is not given here.
    pub seed: u64,
    /// When the first race starts.
    pub start: Time,
    /// Races in all.
    pub races: u32,
    /// Pilots entered.
    pub pilots: u32,
    /// Pilots in a race, at most 8.
    pub per_race: u32,
    /// Rounds they are spread over.
    pub rounds: u32,
    /// How many of the rounds, the last ones, are brackets: their pilots are known only when the round before is over.
    pub brackets: u32,
    /// Laps to fly, the holeshot not counted.
    pub laps: u32,
    /// The shortest and longest lap.
    pub lap: (Span, Span),
    /// The shortest and longest time between two races.
    pub gap: (Span, Span),
    /// The venue's time zone, by its IANA name.
    pub zone: String,
    /// The program's version.
    pub version: Version,
    /// How long the upstream is off, when it is.
    pub off: Span,
}

impl EventConfig {
    /// A Saturday: 60 races in ten rounds of which two are brackets, 24 pilots, from twenty to nine on.
    pub fn new(seed: u64) -> EventConfig {
        EventConfig {
            seed,
            // 8:40 in Sydney on 2026-03-14.
            start: Time::from_secs(1_773_438_000),
            races: 60,
            pilots: 24,
            per_race: 4,
            rounds: 10,
            brackets: 2,
            laps: 4,
            lap: (Span::secs(20), Span::secs(40)),
            gap: (Span::secs(45), Span::secs(90)),
            zone: "Australia/Sydney".to_owned(),
            version: Version::New,
            off: Span::hours(2),
        }
    }

    /// The same with so many races, six to a round.
    #[must_use]
    pub fn with_races(mut self, races: u32) -> EventConfig {
        self.races = races;
        self.rounds = races.div_ceil(6).max(1);
        self.brackets = self.brackets.min(self.rounds.saturating_sub(1));
        self
    }

    /// The same from that moment on.
    #[must_use]
    pub fn starting(mut self, start: Time) -> EventConfig {
        self.start = start;
        self
    }
}
