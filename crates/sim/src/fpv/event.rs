//! An event as a pure function of time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use bytes::Bytes;
use stakeout_core::{Span, Time};

use super::blind::Blind;
use super::changes::Change;
use super::config::{EventConfig, Version};
use super::director::{Director, Flown};
use super::guid::Guid;
use super::incident::{Incident, Played};
use super::line::{ALWAYS, Line};
use super::plan::plan;
use super::render::Writer;
use super::stamp::Venue;
use super::state::{Content, File};
use super::truth::Truth;

/// How long the program is closed while another event is opened.
const SWITCH_OFF: Span = Span::secs(15);
/// Turns between two incidents: each has room to end before the next begins.
const TURNS_PER_INCIDENT: usize = 3;

/// What one file holds from one save to the next.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    pub(crate) content: Content,
    /// The bytes of a recorded file; others are written from the content.
    pub(crate) recorded: Option<Bytes>,
}

/// A racing event, and the ones opened after it: everything the upstream ever serves, as a pure function of time.
#[derive(Debug)]
pub struct Event {
    pub(crate) files: BTreeMap<(Guid, File), Line<Saved>>,
    /// The event that is open.
    pub(crate) shown: Line<Guid>,
    /// The race that the director has chosen.
    pub(crate) hint: Line<Option<Guid>>,
    /// Whether the channels can be had, and their bytes if they are recorded.
    pub(crate) channels: Line<bool>,
    pub(crate) recorded_channels: Option<Bytes>,
    pub(crate) blinds: Vec<Blind>,
    pub(crate) venue: Venue,
    pub(crate) version: Version,
    pub(crate) played: Vec<Played>,
    pub(crate) began: Time,
    pub(crate) ended: Time,
    pub(crate) changes: OnceLock<Vec<Change>>,
}

impl Event {
    /// The event of that configuration, in which everything goes by plan.
    pub fn new(config: &EventConfig) -> Event {
        Event::with_incidents(config, [])
    }

    /// The event of that configuration, to which these incidents happen.
    ///
    /// # Panics
    /// When the event is too small for them: they need at least four rounds of three races before the brackets, and
    /// three races each.
    pub fn with_incidents(config: &EventConfig, incidents: impl IntoIterator<Item = Incident>) -> Event {
        let incidents: BTreeSet<Incident> = incidents.into_iter().collect();
        let mut config = config.clone();
        if incidents.contains(&Incident::UnpaddedHours) {
            config.start = Time(config.start.us().div_euclid(1_000_000) * 1_000_000);
        }
        let venue = Venue::new(&config.zone);
        let mut plan = plan(&config, &incidents);
        plan.tree.event.start = venue.midnight(config.start);
        let event = plan.tree.event.id;
        let same_order: Vec<Guid> = plan
            .program
            .iter()
            .copied()
            .filter(|race| {
                plan.tree.races.get(race).is_some_and(|race| plan.same_order.contains(&race.round))
            })
            .collect();
        let first = plan.program.first().copied();
        let scenes = scenes(&incidents, plan.program.len());
        let flown = Director::new(&config, plan).run(&scenes);
        let mut made = Event::of(&config, venue, event, flown);
        made.played.retain(|played| incidents.contains(&played.incident));
        let mut whole = |incident, races| {
            if incidents.contains(&incident) {
                made.played.push(Played { incident, from: config.start, until: made.ended, races });
            }
        };
        whole(Incident::SameOrder, same_order);
        whole(Incident::UnpaddedHours, first.into_iter().collect());
        if incidents.contains(&Incident::EventSwitch) {
            return made.switched(&config);
        }
        made
    }

    /// 60 races from twenty to nine until the afternoon, with every incident there is, and a small second event.
    pub fn with_all_incidents(seed: u64) -> Event {
        Event::with_incidents(&EventConfig::new(seed), Incident::ALL)
    }

    fn of(config: &EventConfig, venue: Venue, event: Guid, flown: Flown) -> Event {
        let mut shown = Line::default();
        shown.push(ALWAYS, event);
        let files = flown.files.into_iter().map(|(file, line)| {
            let mut saved = Line::default();
            for (at, content) in line.changes() {
                saved.push(at, Saved { content, recorded: None });
            }
            ((event, file), saved)
        });
        Event {
            files: files.collect(),
            shown,
            hint: flown.hint,
            channels: flown.channels,
            recorded_channels: None,
            blinds: flown.blinds,
            venue,
            version: config.version,
            played: flown.played,
            began: config.start,
            ended: flown.ended,
            changes: OnceLock::new(),
        }
    }

    /// Five minutes after the last race another, small event is opened.
    fn switched(self, config: &EventConfig) -> Event {
        let at = self.ended + Span::mins(5);
        let next =
            EventConfig { seed: mix_seed(config.seed), races: 6, rounds: 2, brackets: 0, ..config.clone() };
        let next = Event::new(&next.starting(at + Span::mins(3)));
        let races = next.truth().order(at).into_iter().collect();
        let mut both = self.then(next, at);
        both.played.push(Played { incident: Incident::EventSwitch, from: at, until: both.ended, races });
        both
    }

    /// The same, and at `at` the event `next` is opened instead. Its files have been there all the time.
    #[must_use]
    pub fn then(mut self, next: Event, at: Time) -> Event {
        for played in &mut self.played {
            played.until = played.until.min(at);
        }
        self.files.extend(next.files);
        for (from, id) in next.shown.changes() {
            self.shown.push(from.max(at), id);
        }
        self.hint.push(at, None);
        for (from, race) in next.hint.changes() {
            self.hint.push(from.max(at), race);
        }
        self.blinds.push(Blind::off(at - SWITCH_OFF, at));
        self.blinds.extend(next.blinds);
        self.played.extend(next.played);
        self.ended = next.ended;
        self.changes = OnceLock::new();
        self
    }

    /// What is true in it, at any time.
    pub fn truth(&self) -> Truth<'_> {
        Truth::new(self)
    }

    /// The incidents that happen in it.
    pub fn incidents(&self) -> &[Played] {
        &self.played
    }

    /// The id of the event that is open at `now`.
    pub fn id(&self, now: Time) -> Guid {
        self.shown.at(now).copied().unwrap_or_default()
    }

    /// When the first race starts.
    pub fn began(&self) -> Time {
        self.began
    }

    /// When the last race has ended.
    pub fn ended(&self) -> Time {
        self.ended
    }

    /// The paths of all files it ever has, with the channels.
    pub fn paths(&self) -> Vec<String> {
        let files = self.files.keys().map(|(event, file)| file.path(*event));
        files.chain([super::upstream::CHANNELS.to_owned()]).collect()
    }

    pub(crate) fn body(&self, saved: &Saved) -> Bytes {
        let writer = Writer { venue: &self.venue, tells_zone: self.version == Version::New };
        saved.recorded.clone().unwrap_or_else(|| writer.body(&saved.content).into())
    }
}

fn mix_seed(seed: u64) -> u64 {
    crate::rng::mix(seed ^ 0x6e65_7874) >> 40
}

/// At which turn which incident happens.
fn scenes(incidents: &BTreeSet<Incident>, turns: usize) -> BTreeMap<usize, Incident> {
    let mut ranked: Vec<(u32, Incident)> =
        incidents.iter().filter_map(|i| Some((i.turn_rank()?, *i))).collect();
    ranked.sort_unstable();
    assert!(
        ranked.len() * TURNS_PER_INCIDENT + 3 <= turns,
        "{turns} races are too few for {} incidents",
        ranked.len()
    );
    (0..).zip(ranked).map(|(n, (_, incident))| (2 + n * TURNS_PER_INCIDENT, incident)).collect()
}
