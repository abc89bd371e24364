//! The upstream's files as it writes them. Field names, order and fixed values are the real ones.

use stakeout_core::Span;

use super::channels::COLORS;
use super::guid::Guid;
use super::json::{Doc, Fields};
use super::stamp::{Venue, duration};
use super::state::{Content, Detection, EventFile, Lap, Outcome, Pilot, Race, Round, Slot};

const TIMING: &str = "Holeshot";

/// How a file is written: where, and by which version of the program.
pub(crate) struct Writer<'a> {
    pub(crate) venue: &'a Venue,
    /// Newer versions tell the zone.
    pub(crate) tells_zone: bool,
}

impl Writer<'_> {
    /// The bytes of a file; none for one that is missing.
    pub(crate) fn body(&self, content: &Content) -> String {
        match content {
            Content::Missing => String::new(),
            Content::Event(event) => Doc::of([event], |doc, event| self.event(doc, event)),
            Content::Pilots(pilots) => Doc::of(pilots, pilot),
            Content::Rounds(rounds) => Doc::of(rounds, round),
            Content::Race(race) => Doc::of([race], |doc, race| self.race(doc, race)),
            Content::Results(results) => Doc::of(results, outcome),
        }
    }

    fn event(&self, doc: &mut Doc, event: &EventFile) {
        doc.object(|o| {
            o.text("EventType", "Race").text("Name", &event.name);
            o.text("Start", &self.venue.date(Some(event.start))).text("End", &self.venue.date(None));
            o.bare("Laps", event.laps).bare("PBLaps", 1);
            o.text("RaceLength", &duration(event.race_length));
            o.text("MinStartDelay", &duration(Span::ms(500))).text("MaxStartDelay", &duration(Span::secs(5)));
            o.text("PrimaryTimingSystemLocation", TIMING);
            o.text("RaceStartIgnoreDetections", &duration(Span::ms(500)));
            o.text("MinLapTime", &duration(Span::secs(5)));
            o.text("LastOpened", &self.venue.date(Some(event.last_opened)));
            o.key("PilotChannels").list(&event.slots, slot);
            guids(o, "RemovedPilots", &event.removed_pilots);
            guids(o, "Rounds", &event.rounds);
            o.guid("Club", Guid::made(0x0063_6c75, 0));
            guids(o, "Channels", &event.channels);
            o.key("ChannelColors").list(COLORS, |doc, color| doc.text(color));
            o.key("ChannelDisplayNames").list(&event.channels, |doc, _| doc.null());
            o.bare("Enabled", true).text("MultiGPRaceFormat", "AggregateLaps");
            guids(o, "Races", &event.races);
            for flag in ["SyncWithFPVTrackside", "SyncWithMultiGP", "GenerateHeatsMultiGP"] {
                o.bare(flag, false);
            }
            o.bare("VisibleOnline", true).bare("Locked", false).guid("Track", Guid::NONE);
            guids(o, "Sectors", &[]);
            o.bare("PilotsRegistered", event.slots.len());
            if self.tells_zone {
                o.text("TimeZone", self.venue.name());
            }
            o.ids(event.id);
        });
    }

    fn race(&self, doc: &mut Doc, race: &Race) {
        doc.object(|o| {
            o.key("Laps").list(&race.laps, |doc, lap| self.lap(doc, lap));
            o.key("Detections").list(&race.detections, |doc, detection| self.detection(doc, detection));
            o.text("Start", &self.venue.date(race.start)).text("End", &self.venue.date(race.end));
            o.text("TotalPausedTime", &duration(race.paused));
            o.key("PilotChannels").list(&race.slots, slot);
            o.bare("RaceNumber", race.number).guid("Round", race.round).bare("TargetLaps", race.target_laps);
            o.text("PrimaryTimingSystemLocation", TIMING).bare("Valid", race.valid);
            o.bare("AutoAssignNumbers", false).guid("Event", race.event).text("Bracket", race.bracket);
            o.ids(race.id);
        });
    }

    fn lap(&self, doc: &mut Doc, lap: &Lap) {
        doc.object(|o| {
            o.guid("Detection", lap.detection).bare("LengthSeconds", (lap.end - lap.start).as_secs_f64());
            o.bare("LapNumber", lap.number).text("StartTime", &self.venue.cut(lap.start));
            o.text("EndTime", &self.venue.date(Some(lap.end))).ids(lap.id);
        });
    }

    fn detection(&self, doc: &mut Doc, detection: &Detection) {
        doc.object(|o| {
            o.bare("TimingSystemIndex", 0).guid("Channel", detection.channel);
            o.text("Time", &self.venue.date(Some(detection.at))).bare("Peak", 800);
            o.text("TimingSystemType", "Dummy").guid("Pilot", detection.pilot);
            o.bare("LapNumber", detection.lap).bare("Valid", detection.valid).text("ValidityType", "Auto");
            o.bare("IsLapEnd", detection.lap_end).bare("RaceSector", detection.lap * 100);
            o.bare("IsHoleshot", detection.lap == 0 && detection.lap_end).ids(detection.id);
        });
    }
}

fn guids(o: &mut Fields<'_>, key: &str, ids: &[Guid]) {
    o.key(key).list(ids, |doc, id| doc.guid(*id));
}

fn slot(doc: &mut Doc, slot: &Slot) {
    doc.object(|o| o.guid("Pilot", slot.pilot).guid("Channel", slot.channel).ids(slot.id));
}

fn pilot(doc: &mut Doc, pilot: &Pilot) {
    doc.object(|o| {
        o.text("Name", &pilot.name).text("Phonetic", &pilot.name);
        let unset =
            ["FirstName", "LastName", "SillyName", "DiscordID", "Aircraft", "CatchPhrase", "BestResult"];
        for key in unset {
            o.null(key);
        }
        o.bare("TimingSensitivityPercent", 100).bare("PracticePilot", false).null("PhotoPath").ids(pilot.id);
    });
}

fn round(doc: &mut Doc, round: &Round) {
    doc.object(|o| {
        o.text("Name", round.name).bare("RoundNumber", round.number).text("EventType", "Race");
        o.text("RoundType", round.kind).bare("Valid", round.valid);
        o.null("PointSummary").null("TimeSummary").bare("LapCountAfterRound", false);
        o.bare("Order", round.order).null("SheetFormatFilename").ids(round.id);
    });
}

fn outcome(doc: &mut Doc, outcome: &Outcome) {
    doc.object(|o| {
        o.bare("Points", outcome.points).bare("Position", outcome.position).bare("Valid", true);
        o.guid("Event", outcome.event).guid("Pilot", outcome.pilot).guid("Race", outcome.race);
        o.guid("Round", outcome.round).bare("DNF", outcome.dnf).text("ResultType", "Race");
        o.text("Time", &duration(outcome.time)).bare("LapsFinished", outcome.laps).ids(outcome.id);
    });
}
