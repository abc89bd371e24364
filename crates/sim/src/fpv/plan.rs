//! The event before it begins: its rounds, races and line-ups, and which incidents will concern them.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::Span;

use super::channels;
use super::config::EventConfig;
use super::draft::Tree;
use super::guid::Guid;
use super::incident::Incident;
use super::state::{EventFile, Pilot, Race, Round, Slot};
use crate::rng::{SplitMix64, mix};

const CALLSIGNS: [&str; 32] = [
    "Anvil", "Bramble", "Cinder", "Drift", "Ember", "Falter", "Gimbal", "Hexa", "Inverted", "Juicebox",
    "Kestrel", "Loopy", "Mayfly", "Nimbus", "Orbit", "Propwash", "Quill", "Rotor", "Snaproll", "Turtle",
    "Updraft", "Vortex", "Whoop", "Xray", "Yaw", "Zippy", "Blackbox", "Failsafe", "Goggles", "Lipo",
    "Splitess", "Tinywing",
];
const BRACKETS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// What will be, and what is there at first.
pub(crate) struct Plan {
    /// What is there at first.
    pub(crate) tree: Tree,
    /// Races in the order they are to be flown.
    pub(crate) program: Vec<Guid>,
    /// Who flies in which race; brackets have nobody at first.
    pub(crate) line_ups: BTreeMap<Guid, Vec<Slot>>,
    /// A round whose races are there, but not itself.
    pub(crate) unknown_round: Option<Round>,
    /// A race that is listed and whose file comes late.
    pub(crate) late_race: Option<Race>,
    /// An id that is listed and has no file, ever.
    pub(crate) ghost: Option<Guid>,
    /// A race that will be deleted.
    pub(crate) deleted: Option<Guid>,
    /// A round that will be inserted.
    pub(crate) inserted: Option<(Round, Vec<Race>)>,
    /// Two races that will change numbers.
    pub(crate) renumbered: Option<(Guid, Guid)>,
    /// The two rounds of the same order.
    pub(crate) same_order: Vec<Guid>,
}

/// The plan of an event to which these incidents will happen.
///
/// # Panics
/// When there is no room for them: races that are deleted or inserted need at least four rounds of three before the
/// brackets.
pub(crate) fn plan(config: &EventConfig, incidents: &BTreeSet<Incident>) -> Plan {
    let seed = mix(config.seed) ^ 0x0066_7076;
    let event = Guid::made(seed, 0);
    let will = |incident| incidents.contains(&incident);
    let inserted_races = if will(Incident::InsertedRound) { 2 } else { 0 };
    let (count, before_brackets) =
        (config.rounds.max(1), config.rounds.saturating_sub(config.brackets).max(1) as usize);
    let total = config.races.saturating_sub(inserted_races);
    if !incidents.is_empty() {
        assert!(
            before_brackets >= 4 && total / count >= 3,
            "incidents need four rounds of three races before brackets"
        );
    }
    let rounds: Vec<Round> = (0..count).map(|n| round(seed, n, before_brackets)).collect();
    let mut races: BTreeMap<Guid, Race> = BTreeMap::new();
    let mut line_ups = BTreeMap::new();
    let mut by_round: Vec<Vec<Guid>> = Vec::new();
    for (n, round) in rounds.iter().enumerate() {
        let size = total / count + u32::from((n as u32) < total % count);
        let ids: Vec<Guid> =
            (1..=size).map(|number| Guid::made(seed, (n as u64 + 1) << 16 | u64::from(number))).collect();
        for (number, id) in (1..).zip(&ids) {
            let slots = line_up(config, seed, n as u32, number, *id);
            let open = n >= before_brackets;
            let bracket = if open { BRACKETS[(number as usize - 1) % BRACKETS.len()] } else { "None" };
            let first = if open { unfilled(&slots, will(Incident::ZeroGuids)) } else { slots.clone() };
            races.insert(*id, race(config, event, round.id, *id, number, bracket, first));
            line_ups.insert(*id, slots);
        }
        by_round.push(ids);
    }
    let event = event_file(config, seed, event, &rounds, &races);
    let pilots =
        (0..config.pilots as usize).map(|n| Pilot { id: pilot(seed, n), name: callsign(n) }).collect();
    let tree = Tree { event, pilots, rounds, races, results: BTreeMap::new() };
    let mut plan = Plan {
        tree,
        program: Vec::new(),
        line_ups,
        unknown_round: None,
        late_race: None,
        ghost: None,
        deleted: None,
        inserted: None,
        renumbered: None,
        same_order: Vec::new(),
    };
    plan.prepare(config, seed, incidents, before_brackets, &by_round);
    plan
}

impl Plan {
    /// Takes away what will come later, and settles the order in which races are flown.
    fn prepare(
        &mut self,
        config: &EventConfig,
        seed: u64,
        incidents: &BTreeSet<Incident>,
        before_brackets: usize,
        by_round: &[Vec<Guid>],
    ) {
        let will = |incident| incidents.contains(&incident);
        let last = before_brackets - 1;
        if will(Incident::SameOrder) {
            self.tree.rounds[last - 2].order = self.tree.rounds[last - 3].order;
            self.same_order = [last - 3, last - 2].map(|n| self.tree.rounds[n].id).to_vec();
        }
        if will(Incident::DeletedRace) {
            self.deleted = by_round[last - 1].last().copied();
        }
        if will(Incident::InsertedRound) {
            self.insertion(config, seed, last - 2);
            self.renumbered = Some((by_round[last - 1][0], by_round[last - 1][1]));
        }
        self.program = self.sorted();
        if will(Incident::NoRaceFile) {
            let ghost = Guid::made(seed, 0x67_686f_7374);
            self.tree.event.races.push(ghost);
            self.ghost = Some(ghost);
            self.late_race = by_round[last][1..].first().and_then(|id| self.tree.races.remove(id));
        }
        if will(Incident::BeforeItsRound) {
            self.unknown_round = Some(self.tree.rounds.remove(last));
        }
        shuffle(&mut SplitMix64::new(seed), &mut self.tree.event.races);
    }

    fn insertion(&mut self, config: &EventConfig, seed: u64, after: usize) {
        let before = self.tree.rounds[after].clone();
        let id = Guid::made(seed, 0x696e_7365_7274);
        let round = Round { id, number: before.number + 1, order: before.order + 50, ..before };
        let races: Vec<Race> = (1..=2)
            .map(|number| {
                let id = Guid::made(seed, 0xffff << 16 | u64::from(number));
                let slots = line_up(config, seed, after as u32 + 7, number, id);
                self.line_ups.insert(id, slots.clone());
                race(config, self.tree.event.id, round.id, id, number, "None", slots)
            })
            .collect();
        self.inserted = Some((round, races));
    }

    /// The order of the races once everything announced has happened.
    fn sorted(&self) -> Vec<Guid> {
        let inserted = self.inserted.as_ref();
        let rounds = self.tree.rounds.iter().chain(inserted.map(|(round, _)| round));
        let orders: BTreeMap<Guid, i64> = rounds.map(|round| (round.id, round.order)).collect();
        let races = self.tree.races.values().chain(inserted.into_iter().flat_map(|(_, races)| races));
        let mut keyed: Vec<(i64, u32, Guid)> = races
            .filter(|race| Some(race.id) != self.deleted)
            .map(|race| {
                // Exchanged numbers: the first has the second's.
                let number = match self.renumbered {
                    Some((a, b)) if race.id == a => self.tree.races[&b].number,
                    Some((a, b)) if race.id == b => self.tree.races[&a].number,
                    _ => race.number,
                };
                (orders[&race.round], number, race.id)
            })
            .collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, _, id)| id).collect()
    }
}

fn round(seed: u64, n: u32, before_brackets: usize) -> Round {
    let final_round = n as usize >= before_brackets;
    Round {
        id: Guid::made(seed, 0x726f_756e_6400 + u64::from(n)),
        number: n + 1,
        order: i64::from(n + 1) * 100,
        valid: true,
        name: if final_round { "Finals" } else { "" },
        kind: if final_round { "Final" } else { "Round" },
    }
}

fn race(
    config: &EventConfig,
    event: Guid,
    round: Guid,
    id: Guid,
    number: u32,
    bracket: &'static str,
    slots: Vec<Slot>,
) -> Race {
    Race {
        id,
        event,
        round,
        number,
        bracket,
        start: None,
        end: None,
        paused: Span::ZERO,
        slots,
        target_laps: config.laps,
        valid: true,
        laps: Vec::new(),
        detections: Vec::new(),
    }
}

fn event_file(
    config: &EventConfig,
    seed: u64,
    id: Guid,
    rounds: &[Round],
    races: &BTreeMap<Guid, Race>,
) -> EventFile {
    let slot = |n: usize| Slot {
        id: Guid::made(seed, 0x736c_6f74_0000 + n as u64),
        pilot: pilot(seed, n),
        channel: channels::channel(n % config.per_race.max(1) as usize),
    };
    EventFile {
        id,
        name: format!("Club Day {}", config.seed),
        start: config.start,
        laps: config.laps,
        race_length: Span::mins(2),
        last_opened: config.start - Span::mins(50),
        slots: (0..config.pilots as usize).map(slot).collect(),
        // Somebody always signs up and does not come.
        removed_pilots: vec![pilot(seed, config.pilots as usize)],
        rounds: rounds.iter().map(|round| round.id).collect(),
        channels: (0..config.per_race as usize).map(channels::channel).collect(),
        races: races.keys().copied().collect(),
    }
}

fn pilot(seed: u64, n: usize) -> Guid {
    Guid::made(seed, 0x7069_6c6f_7400 + n as u64)
}

fn callsign(n: usize) -> String {
    match n / CALLSIGNS.len() {
        0 => CALLSIGNS[n].to_owned(),
        again => format!("{} {}", CALLSIGNS[n % CALLSIGNS.len()], again + 1),
    }
}

/// Every pilot flies once a round, against others each time.
fn line_up(config: &EventConfig, seed: u64, round: u32, number: u32, race: Guid) -> Vec<Slot> {
    let (pilots, per_race) = (config.pilots.max(1) as usize, config.per_race.clamp(1, 8) as usize);
    let (round, heat) = (round as usize, number as usize - 1);
    (0..per_race.min(pilots))
        .map(|place| Slot {
            id: Guid::made(seed ^ race.0 as u64, place as u64),
            pilot: pilot(seed, (heat * per_race + place * (1 + round * per_race) + round) % pilots),
            channel: channels::channel(place),
        })
        .fold(Vec::new(), |mut slots: Vec<Slot>, mut slot| {
            // The stride above can meet itself; nobody flies twice in one race.
            let mut n = 0;
            while slots.iter().any(|other| other.pilot == slot.pilot) {
                slot.pilot = pilot(seed, (heat * per_race + n) % pilots);
                n += 1;
            }
            slots.push(slot);
            slots
        })
}

/// A bracket before its pilots are known: no slots, or slots of nobody.
fn unfilled(slots: &[Slot], zeros: bool) -> Vec<Slot> {
    let nobody = |slot: &Slot| Slot { pilot: Guid::NONE, ..*slot };
    if zeros { slots.iter().map(nobody).collect() } else { Vec::new() }
}

fn shuffle(rng: &mut SplitMix64, ids: &mut [Guid]) {
    for n in (1..ids.len()).rev() {
        ids.swap(n, rng.between(0, n as u64) as usize);
    }
}
