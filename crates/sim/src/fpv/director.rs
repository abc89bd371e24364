//! The director: flies the program race by race, and lets the incidents happen.

use std::collections::BTreeMap;

use stakeout_core::{Span, Time};

use super::blind::Blind;
use super::config::EventConfig;
use super::draft::{Draft, Tree};
use super::flight::{Crossing, crossings, span};
use super::guid::Guid;
use super::incident::{Incident, Played};
use super::line::{ALWAYS, Line};
use super::plan::Plan;
use super::state::{Detection, File, Lap, Outcome, Slot};
use crate::rng::{SplitMix64, mix};

const POINTS: [u32; 8] = [10, 8, 6, 5, 4, 3, 2, 1];

/// What the director leaves behind.
pub(crate) struct Flown {
    pub(crate) files: BTreeMap<File, Line<super::state::Content>>,
    pub(crate) hint: Line<Option<Guid>>,
    pub(crate) channels: Line<bool>,
    pub(crate) blinds: Vec<Blind>,
    pub(crate) played: Vec<Played>,
    /// When the last race ended.
    pub(crate) ended: Time,
}

/// Flies a plan. `now` is when the next race starts.
pub(crate) struct Director<'a> {
    pub(crate) config: &'a EventConfig,
    pub(crate) plan: Plan,
    pub(crate) draft: Draft,
    pub(crate) rng: SplitMix64,
    pub(crate) now: Time,
    pub(crate) event: Guid,
    pub(crate) blinds: Vec<Blind>,
    pub(crate) channels: Line<bool>,
    pub(crate) played: Vec<Played>,
    hint: Line<Option<Guid>>,
    ids: u64,
}

impl<'a> Director<'a> {
    pub(crate) fn new(config: &'a EventConfig, plan: Plan) -> Director<'a> {
        let (draft, event) = (Draft::new(plan.tree.clone()), plan.tree.event.id);
        let mut channels = Line::default();
        channels.push(ALWAYS, plan.unknown_round.is_none());
        Director {
            config,
            plan,
            draft,
            rng: SplitMix64::new(mix(config.seed) ^ 0x666c_7967),
            now: config.start,
            event,
            blinds: Vec::new(),
            channels,
            played: Vec::new(),
            hint: Line::default(),
            ids: 0,
        }
    }

    /// The whole event; `scenes` says at which turn of the program which incident happens.
    pub(crate) fn run(mut self, scenes: &BTreeMap<usize, Incident>) -> Flown {
        let (mut turn, mut ended) = (0, self.now);
        while turn < self.plan.program.len() {
            ended = match scenes.get(&turn) {
                Some(incident) => self.scene(*incident, &mut turn),
                None => self.fly(self.plan.program[turn]),
            };
            turn += 1;
            self.now = ended + self.gap();
        }
        if let Some(last) = self.plan.program.last() {
            let until = Time(i64::MAX);
            self.played.push(Played {
                incident: Incident::LastFinished,
                from: ended,
                until,
                races: vec![*last],
            });
        }
        let Director { draft, hint, channels, blinds, played, .. } = self;
        Flown { files: draft.finish(), hint, channels, blinds, played, ended }
    }

    /// A race without incidents, from now on; answers when it ended.
    pub(crate) fn fly(&mut self, race: Guid) -> Time {
        let flight = self.take_off(race, false);
        self.record(race, &flight, None);
        let end = flight.last_at() + span(&mut self.rng, 2_000_000, 5_000_000);
        self.land(race, end)
    }

    /// Lines the race up and draws its crossings.
    pub(crate) fn take_off(&mut self, race: Guid, tie: bool) -> Flight {
        let (start, slots) = (self.now, self.plan.line_ups[&race].clone());
        let called = start - Span::secs(20);
        self.fill_brackets(race, start - self.config.gap.0.over(2));
        self.hint.push(called, Some(race));
        let flown: Vec<Slot> = slots.into_iter().filter(|slot| slot.pilot.is_some()).collect();
        let crossings = crossings(&mut self.rng, self.config, flown.len(), start, tie);
        Flight { start, slots: flown, crossings }
    }

    /// Saves the start and every crossing before `cut`.
    pub(crate) fn record(&mut self, race: Guid, flight: &Flight, cut: Option<Time>) {
        let start = flight.start;
        let saved = start + span(&mut self.rng, 5_000, 30_000);
        self.draft.race(saved, race, move |race| (race.start, race.end) = (Some(start), None));
        let mut lap_began = vec![start; flight.slots.len()];
        for crossing in &flight.crossings {
            if cut.is_some_and(|cut| crossing.at >= cut - Span::ms(50)) {
                break;
            }
            let (slot, began) = (flight.slots[crossing.slot], lap_began[crossing.slot]);
            self.cross(race, slot, began, *crossing);
            if crossing.valid {
                lap_began[crossing.slot] = crossing.at;
            }
        }
    }

    /// A crossing is two saves within 30 ms: the detection, then the lap that it ends.
    pub(crate) fn cross(&mut self, race: Guid, slot: Slot, began: Time, crossing: Crossing) {
        let Crossing { at, lap, valid, .. } = crossing;
        let (id, lap_id) = (self.id(), self.id());
        let Slot { pilot, channel, .. } = slot;
        let detection = Detection { id, pilot, channel, at, lap, valid, lap_end: true };
        let seen = at + span(&mut self.rng, 200, 8_000);
        let counted = seen + span(&mut self.rng, 500, 20_000);
        self.draft.race(seen, race, move |race| race.detections.push(detection));
        let lap = Lap { id: lap_id, detection: id, number: lap, start: began, end: at };
        self.draft.race(counted, race, move |race| race.laps.push(lap));
    }

    /// Ends the race and saves its results; answers when it ended.
    pub(crate) fn land(&mut self, race: Guid, end: Time) -> Time {
        let saved = end + span(&mut self.rng, 2_000, 20_000);
        self.draft.race(saved, race, move |race| race.end = Some(end));
        let then = saved + span(&mut self.rng, 20_000, 200_000);
        self.save_results(race, then);
        end
    }

    /// Results follow from the laps as they are then. Every save gives them new ids.
    pub(crate) fn save_results(&mut self, race: Guid, at: Time) {
        let seed = self.id().0 as u64;
        self.draft.save(at, File::Result(race), move |tree| {
            let results = outcomes(tree, race, seed);
            tree.results.insert(race, results);
        });
    }

    /// The pilots of a bracket round are known when its first race is due.
    fn fill_brackets(&mut self, race: Guid, at: Time) {
        let Some(due) = self.plan.tree.races.get(&race).filter(|race| race.bracket != "None") else { return };
        let round = due.round;
        let races: Vec<Guid> =
            self.plan.tree.races.values().filter(|race| race.round == round).map(|race| race.id).collect();
        for (n, race) in (1..).zip(races) {
            let Some(open) = self.plan.tree.races.get_mut(&race) else { continue };
            let slots = self.plan.line_ups[&race].clone();
            if open.slots == slots {
                return;
            }
            open.slots.clone_from(&slots);
            self.draft.race(at + Span::ms(3 * n), race, move |race| race.slots = slots);
        }
    }

    pub(crate) fn gap(&mut self) -> Span {
        span(&mut self.rng, self.config.gap.0.as_us(), self.config.gap.1.as_us())
    }

    pub(crate) fn id(&mut self) -> Guid {
        self.ids += 1;
        Guid::made(mix(self.config.seed) ^ 0x6964, self.ids)
    }
}

/// A race about to be flown.
pub(crate) struct Flight {
    pub(crate) start: Time,
    pub(crate) slots: Vec<Slot>,
    pub(crate) crossings: Vec<Crossing>,
}

impl Flight {
    pub(crate) fn last_at(&self) -> Time {
        self.crossings.last().map_or(self.start, |crossing| crossing.at)
    }
}

/// By laps, then by time.
fn outcomes(tree: &Tree, race: Guid, seed: u64) -> Vec<Outcome> {
    let Some(race) = tree.races.get(&race) else { return Vec::new() };
    let start = race.start.unwrap_or_default();
    let mut rows: Vec<(u32, Time, Guid)> = race
        .pilots()
        .map(|pilot| {
            let own = race.laps.iter().filter(|lap| {
                race.detection(lap.detection)
                    .is_some_and(|detection| detection.valid && detection.pilot == pilot)
            });
            own.fold((0, start, pilot), |row, lap| (row.0.max(lap.number), row.1.max(lap.end), pilot))
        })
        .collect();
    rows.sort_by_key(|(laps, last, pilot)| (std::cmp::Reverse(*laps), *last, *pilot));
    (1..)
        .zip(rows)
        .map(|(position, (laps, last, pilot))| Outcome {
            id: Guid::made(seed, u64::from(position)),
            pilot,
            race: race.id,
            round: race.round,
            event: race.event,
            position,
            points: POINTS.get(position as usize - 1).copied().unwrap_or(0),
            dnf: laps < race.target_laps,
            laps,
            time: last - start - race.paused,
        })
        .collect()
}
