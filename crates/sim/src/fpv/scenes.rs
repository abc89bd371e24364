//! The incidents that happen at a turn of the program.

use stakeout_core::{Span, Time};

use super::blind::{Blind, Instead};
use super::director::Director;
use super::flight::Crossing;
use super::guid::Guid;
use super::incident::{Incident, Played};
use super::state::{Detection, File};

impl Director<'_> {
    /// Plays the incident at that turn, and moves on to the last turn it took; answers when its last race ended.
    pub(crate) fn scene(&mut self, incident: Incident, turn: &mut usize) -> Time {
        let (first, race) = (*turn, self.plan.program[*turn]);
        let from = self.now;
        let (until, races, ended) = match incident {
            Incident::BeforeItsRound => self.round_arrives(race),
            Incident::NoRaceFile => self.race_file_arrives(race),
            Incident::DeletedRace => self.delete(race),
            Incident::InsertedRound => self.insert_round(race),
            Incident::Unreadable => self.unreadable(race),
            Incident::OutOfOrder => self.out_of_order(turn),
            Incident::SeveralActive => self.crash(turn),
            Incident::Reset => self.resets(turn),
            Incident::Resume => self.resume(race),
            Incident::ResultSet => self.result_set(race),
            Incident::SameMillisecond => self.tie(race),
            Incident::ZeroGuids => self.zero_guids(race),
            Incident::ResavedResults => self.resave(race),
            Incident::UpstreamOff => self.switch_off(race),
            Incident::SameOrder
            | Incident::EventSwitch
            | Incident::LastFinished
            | Incident::UnpaddedHours => {
                let ended = self.fly(race);
                (ended, vec![race], ended)
            }
        };
        debug_assert!(*turn >= first);
        self.played.push(Played { incident, from, until, races });
        ended
    }

    /// The round and the channels come while a race is in flight.
    fn round_arrives(&mut self, race: Guid) -> Scene {
        let at = self.now + Span::secs(30);
        let round = self.plan.unknown_round.take().expect("planned with this incident");
        let races =
            self.plan.tree.races.values().filter(|race| race.round == round.id).map(|race| race.id).collect();
        self.draft.save(at, File::Rounds, move |tree| tree.rounds.push(round));
        self.channels.push(at + Span::secs(5), true);
        let ended = self.fly(race);
        (at, races, ended)
    }

    fn race_file_arrives(&mut self, race: Guid) -> Scene {
        let at = self.now + Span::secs(40);
        let late = self.plan.late_race.take().expect("planned with this incident");
        let races = self.plan.ghost.into_iter().chain([late.id]).collect();
        self.draft.save(at, File::Race(late.id), move |tree| {
            tree.races.insert(late.id, late);
        });
        let ended = self.fly(race);
        (at, races, ended)
    }

    fn delete(&mut self, race: Guid) -> Scene {
        let deleted = self.plan.deleted.expect("planned with this incident");
        self.draft.race(self.now + Span::secs(25), deleted, |race| race.valid = false);
        let ended = self.fly(race);
        (Time(i64::MAX), vec![deleted], ended)
    }

    /// The new round has no order and no races for two seconds; the rounds after it count on.
    fn insert_round(&mut self, race: Guid) -> Scene {
        let at = self.now + Span::secs(35);
        let (round, new_races) = self.plan.inserted.take().expect("planned with this incident");
        let mut concerned: Vec<Guid> = new_races.iter().map(|race| race.id).collect();
        let (id, order, ids) = (round.id, round.order, concerned.clone());
        self.draft.save(at, File::Event, move |tree| tree.event.rounds.push(id));
        self.draft.save(at + Span::ms(4), File::Rounds, move |tree| {
            tree.rounds.push(super::state::Round { order: -1, ..round });
        });
        let then = at + Span::secs(2);
        self.draft.save(then, File::Rounds, move |tree| {
            for other in &mut tree.rounds {
                match other.id == id {
                    true => other.order = order,
                    false => other.number += u32::from(other.order > order),
                }
            }
        });
        for (n, new_race) in (1..).zip(new_races) {
            self.draft.save(then + Span::ms(5 * n), File::Race(new_race.id), move |tree| {
                tree.races.insert(new_race.id, new_race);
            });
        }
        self.draft.save(then + Span::ms(20), File::Event, move |tree| tree.event.races.extend(ids));
        if let Some((a, b)) = self.plan.renumbered {
            let (number_a, number_b) = (self.plan.tree.races[&a].number, self.plan.tree.races[&b].number);
            self.draft.race(at + Span::secs(6), a, move |race| race.number = number_b);
            self.draft.race(at + Span::secs(6) + Span::ms(7), b, move |race| race.number = number_a);
            concerned.extend([a, b]);
        }
        let ended = self.fly(race);
        (at + Span::secs(7), concerned, ended)
    }

    /// Each way not to answer a file, while its race is in flight.
    fn unreadable(&mut self, race: Guid) -> Scene {
        let (start, event) = (self.now, self.event);
        let instead = [Instead::Nothing, Instead::EmptyList, Instead::Page, Instead::Half];
        for (n, instead) in (1..).zip(instead) {
            let from = start + Span::secs(15 * n);
            let blind =
                Blind { file: Some((event, File::Race(race))), from, until: from + Span::ms(700), instead };
            self.blinds.push(blind);
            let whole = [File::Event, File::Rounds, File::Pilots, File::Results][n as usize - 1];
            let until = from + Span::secs(11);
            self.blinds.push(Blind { file: Some((event, whole)), from, until, instead });
        }
        let ended = self.fly(race);
        (start + Span::secs(71), vec![race], ended)
    }

    fn out_of_order(&mut self, turn: &mut usize) -> Scene {
        let (first, second) = (self.plan.program[*turn], self.plan.program[*turn + 1]);
        let ended = self.fly(second);
        self.now = ended + self.gap();
        let ended = self.fly(first);
        *turn += 1;
        (ended, vec![second, first], ended)
    }

    /// The program dies in mid-race and comes back without having ended it. The director notices only after the
    /// next race, and then writes an end.
    fn crash(&mut self, turn: &mut usize) -> Scene {
        let (lost, next) = (self.plan.program[*turn], self.plan.program[*turn + 1]);
        let (dies, back) = (self.now + Span::secs(50), self.now + Span::secs(170));
        let flight = self.take_off(lost, false);
        self.record(lost, &flight, Some(dies));
        self.blinds.push(Blind::off(dies, back));
        self.draft.save(back - Span::secs(2), File::Event, move |tree| tree.event.last_opened = back);
        self.now = back + self.gap();
        let ended = self.fly(next);
        let noticed = ended + Span::secs(30);
        self.draft.race(noticed, lost, move |race| race.end = Some(noticed));
        self.save_results(lost, noticed + Span::ms(90));
        *turn += 1;
        (noticed, vec![lost, next], noticed)
    }

    /// One is reset in flight, the next after its end; both are flown again.
    fn resets(&mut self, turn: &mut usize) -> Scene {
        let (first, second) = (self.plan.program[*turn], self.plan.program[*turn + 1]);
        let cut = self.now + Span::secs(45);
        let flight = self.take_off(first, false);
        self.record(first, &flight, Some(cut));
        self.draft.race(cut, first, super::state::Race::reset);
        self.now = cut + self.gap();
        let ended = self.fly(first);
        self.now = ended + self.gap();
        let reset = self.fly(second) + Span::secs(15);
        self.draft.race(reset, second, super::state::Race::reset);
        self.draft.save(reset + Span::ms(30), File::Result(second), move |tree| {
            tree.results.remove(&second);
        });
        self.now = reset + self.gap();
        let ended = self.fly(second);
        *turn += 1;
        (reset, vec![first, second], ended)
    }

    /// Ended too early: it goes on, everyone flies one lap more, and it ends again.
    fn resume(&mut self, race: Guid) -> Scene {
        let flight = self.take_off(race, false);
        self.record(race, &flight, None);
        let early = self.land(race, flight.last_at() + Span::secs(2));
        let resumed = early + Span::secs(12);
        self.draft.race(resumed, race, |race| {
            (race.end, race.paused) = (None, race.paused + Span::secs(12));
        });
        let mut last = resumed;
        for (slot, pilot) in flight.slots.iter().enumerate() {
            let mut own = flight.crossings.iter().filter(|crossing| crossing.slot == slot && crossing.valid);
            let Some(before) = own.next_back() else { continue };
            last += Span::ms(900);
            let at = last.max(before.at + Span::secs(24));
            let crossing = Crossing { at, slot, lap: before.lap + 1, valid: true };
            self.cross(race, *pilot, before.at, crossing);
            last = at;
        }
        let ended = self.land(race, last + Span::secs(3));
        (ended, vec![race], ended)
    }

    fn result_set(&mut self, race: Guid) -> Scene {
        let at = self.now;
        self.draft.race(at, race, move |race| (race.start, race.end) = (Some(at), Some(at)));
        self.save_results(race, at + Span::ms(60));
        (at, vec![race], at)
    }

    fn tie(&mut self, race: Guid) -> Scene {
        let flight = self.take_off(race, true);
        self.record(race, &flight, None);
        let ended = self.land(race, flight.last_at() + Span::secs(4));
        (ended, vec![race], ended)
    }

    /// Two slots lose half of themselves before the race, and the timing system sees somebody it does not know.
    fn zero_guids(&mut self, race: Guid) -> Scene {
        let (before, stray) = (self.now - Span::secs(30), self.now + Span::secs(9));
        let slots = self.plan.line_ups.get_mut(&race).expect("every race has a line-up");
        if let Some(slot) = slots.last_mut() {
            slot.pilot = Guid::NONE;
        }
        if let Some(slot) = slots.first_mut() {
            slot.channel = Guid::NONE;
        }
        let slots = slots.clone();
        self.draft.race(before, race, move |race| race.slots = slots);
        let id = self.id();
        let nobody = Detection {
            id,
            pilot: Guid::NONE,
            channel: super::channels::channel(7),
            at: stray,
            lap: 0,
            valid: false,
            lap_end: false,
        };
        self.draft.race(stray + Span::ms(6), race, move |race| race.detections.push(nobody));
        let ended = self.fly(race);
        (Time(i64::MAX), vec![race], ended)
    }

    fn resave(&mut self, race: Guid) -> Scene {
        let ended = self.fly(race);
        for n in 1..=2 {
            self.save_results(race, ended + Span::secs(6 * n));
        }
        (ended + Span::secs(12), vec![race], ended)
    }

    /// Lunch: the program is closed.
    fn switch_off(&mut self, race: Guid) -> Scene {
        let ended = self.fly(race);
        let (off, back) = (ended + Span::secs(20), ended + Span::secs(20) + self.config.off);
        self.blinds.push(Blind::off(off, back));
        self.draft.save(back - Span::secs(2), File::Event, move |tree| tree.event.last_opened = back);
        (back, vec![race], back)
    }
}

/// Until when the incident shows, the races it befell, and when the last race flown in it ended.
type Scene = (Time, Vec<Guid>, Time);
