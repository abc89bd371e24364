//! What a rule would have told again, by what the past says about how long it lasted: a table until it was gone, a pilot's
//! call until it was another's turn, missed polls until one came in time, an event until somebody had read it. The rule
//! itself says how often and in which words, as it does to the engine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Alerts, Chain, Chains, EVENT_TYPE, Found, Lasts, RULE_PREFIX, Ring, began};
use stakeout_core::{Event, EventId, Fingerprint, Span, Time};

use super::looks::Known;
use super::replay::{Happening, Past, Remark, Replay};

/// No poll takes longer than this.
const LONGEST_POLL: Span = Span::mins(10);

type Key = (String, Fingerprint);

pub(super) struct Repeats<'a> {
    past: &'a Past,
    chains: Chains,
    /// How much rang: what would be the number of its event.
    seq: u64,
    /// Who was to fly soon, by source.
    upcoming: BTreeMap<String, Json>,
    /// When each thing was told of for the last time.
    told_last: BTreeMap<Key, Time>,
    pub(super) remarks: BTreeSet<Remark>,
}

impl<'a> Repeats<'a> {
    pub(super) fn new(past: &'a Past) -> Repeats<'a> {
        let told = past.happenings.iter().flat_map(|happening| &happening.told);
        let told_last = told.map(|event| ((event.source.clone(), event.subject), event.at)).collect();
        let (chains, upcoming) = (Chains::default(), BTreeMap::new());
        Repeats { past, chains, seq: 0, upcoming, told_last, remarks: BTreeSet::new() }
    }

    /// What rang may be told again.
    pub(super) fn take(&mut self, rule: &dyn Alerts, source: &str, at: Time, ring: Ring) {
        self.seq += 1;
        self.chains.take(rule, event(self.seq, source, at, ring), at);
    }

    /// Takes in who is to fly soon.
    pub(super) fn see(&mut self, happening: &Happening) {
        for event in &happening.told {
            let upcoming = self.upcoming.entry(event.source.clone()).or_default();
            match event.data.get("upcoming") {
                Some(list) => *upcoming = json!({ "upcoming": list }),
                // What is flown is to be flown no more.
                None => {
                    if let Some(lines) = upcoming["upcoming"].as_array_mut() {
                        lines.retain(|line| line["race_id"] != event.subject_key);
                    }
                }
            }
        }
    }

    /// Rings what was due again before this moment.
    pub(super) fn until(&mut self, moment: Time, replay: &mut Replay<'_>) {
        while let Some(now) = self.chains.next_due().filter(|due| *due < moment) {
            for key in self.chains.due(now) {
                let Some((chain, again)) = self.chains.ask(replay.rule, &key, now) else { continue };
                let (chain, after) = (chain.clone(), again.after);
                let found = self.found(&chain, &again.lasts, now);
                let Some(ring) = again.lasting(replay.rule, &chain.last, &found, now) else {
                    self.chains.end(&key);
                    continue;
                };
                self.chains.put_off(&key, now + after);
                if let Some(ring) = replay.ring(&key.1, now, ring) {
                    self.take(replay.rule, &key.1, now, ring);
                }
            }
        }
    }

    /// What the past says about something that was due again.
    fn found(&mut self, chain: &Chain, lasts: &Lasts, now: Time) -> Found {
        let rung = &chain.last;
        match lasts {
            // Of its fields nothing is known but that they were there.
            Lasts::Held => {
                let is_held = self.is_held(&(rung.source.clone(), rung.subject), now);
                Found::There(is_held.then_some(Json::Null))
            }
            Lasts::Published(_, source) => Found::There(self.upcoming.get(source).cloned()),
            Lasts::Unread(_) => Found::Read(self.is_read(rung, now)),
            Lasts::Missed(target, _) => Found::Missed(self.missed(rung, target, now)),
        }
    }

    /// Whether somebody had read it by then, if it was really sent.
    fn is_read(&mut self, rung: &Event, now: Time) -> bool {
        let began = began(rung);
        let chains = self.past.read.get(&(rung.source.clone(), rung.subject));
        // The event itself may be older than the poll that told it.
        let sent = chains.and_then(|chains| chains.range(began..=began + LONGEST_POLL).next());
        if sent.is_none() {
            self.remarks.insert(Remark::Unread);
        }
        sent.and_then(|(_, read)| *read).is_some_and(|read| read <= now)
    }

    /// How many polls had been missed before the target's last one.
    fn missed(&mut self, rung: &Event, target: &str, now: Time) -> Option<u64> {
        let place = (rung.source.clone(), target.to_owned());
        let looks = self.past.looks.get(&place)?;
        let by_then = &looks[..looks.partition_point(|look| look.ended <= now)];
        // Whoever is not polled any more has missed nothing, but nobody knows since when.
        if by_then.len() == looks.len() && self.past.off.contains(&place) {
            self.remarks.insert(Remark::WhenSwitchedOff);
            return None;
        }
        if by_then
            .iter()
            .rev()
            .take_while(|look| look.ended > rung.at)
            .any(|look| look.known == Known::Guessed)
        {
            self.remarks.insert(Remark::WhenLooked);
        }
        by_then.last().map(|look| look.missed)
    }

    /// Whether it was still there. What came again later had gone before, nobody knows when.
    fn is_held(&mut self, key: &Key, at: Time) -> bool {
        if self.told_last.get(key).is_some_and(|last| *last > at) {
            self.remarks.insert(Remark::WhenItWent);
            return false;
        }
        self.past.ends.get(key).is_some_and(|end| end.is_none_or(|end| end > at))
    }
}

/// What rang, as it would stand in the log.
fn event(seq: u64, source: &str, at: Time, ring: Ring) -> Event {
    let rule = format!("{RULE_PREFIX}{}", ring.alert);
    Event {
        seq,
        id: EventId::of_trigger(source, &rule, &ring.subject_key, &at.to_string()),
        event_type: EVENT_TYPE.to_owned(),
        source: source.to_owned(),
        target: String::new(),
        rule,
        subject: ring.subject,
        subject_key: ring.subject_key,
        at,
        dedupe_key: ring.dedupe_key,
        data: ring.data,
    }
}

#[cfg(test)]
mod tests {
    use stakeout_core::Facts;
    use stakeout_core::alert::Went;
    use stakeout_sources::alert::{AlertConfig, RuleBook};

    use super::super::replay::replay;
    use super::*;

    fn minute(n: i64) -> Time {
        Time::from_secs(1_800_000_000) + Span::mins(n)
    }

    fn told(event_type: &str, key: &str, at: i64, data: Json) -> Happening {
        let event = Event {
            seq: 1,
            id: EventId::of_trigger("s", "r", key, "t"),
            event_type: event_type.to_owned(),
            source: "s".to_owned(),
            target: "t".to_owned(),
            rule: "r".to_owned(),
            subject: Fingerprint::of("k", &[key]),
            subject_key: key.to_owned(),
            at: minute(at),
            dedupe_key: None,
            data,
        };
        Happening {
            source: "s".to_owned(),
            target: None,
            at: minute(at),
            looked: None,
            facts: Facts::default(),
            records: vec![],
            moved: vec![],
            told: vec![event],
            went: Went::default(),
        }
    }

    /// The minutes at which a rule would have rung, and whether some are left out.
    fn tried(rule: Json, happenings: Vec<Happening>, ends: &[(&str, Option<i64>)]) -> (Vec<i64>, bool) {
        let rule: AlertConfig = serde_json::from_value(rule).expect("a rule");
        let book = RuleBook::new(BTreeMap::from([("mine".to_owned(), rule)])).expect("a book");
        let end = |(key, end): &(&str, Option<i64>)| {
            (("s".to_owned(), Fingerprint::of("k", &[key])), end.map(minute))
        };
        let ends = ends.iter().map(end).collect();
        let past = Past { happenings, ends, until: minute(60), ..Past::default() };
        let done = replay(&book, &past);
        (
            done.rings.iter().map(|ring| (ring.at - minute(0)).as_ms() / 60_000).collect(),
            !done.remarks.is_empty(),
        )
    }

    #[test]
    fn a_table_would_have_rung_until_it_was_gone() {
        let rule = json!({ "when": { "on": "drop" }, "repeat": "10m" });
        let drop = |key: &str, at: i64| told("tables.drop", key, at, json!({ "venue_name": "Carbone" }));
        let gone = tried(rule.clone(), vec![drop("x", 5)], &[("x", Some(30))]);
        assert_eq!(gone, (vec![5, 15, 25], false));
        let open = tried(rule.clone(), vec![drop("x", 5), drop("y", 41)], &[("x", Some(16)), ("y", None)]);
        assert_eq!(open, (vec![5, 15, 41, 51], false), "up to now");
        let twice = tried(rule, vec![drop("x", 5), drop("x", 41)], &[("x", None)]);
        assert_eq!(twice, (vec![5, 41, 51], true), "when it went the first time nobody knows");
    }

    #[test]
    fn a_pilot_would_have_been_called_until_their_race_was_flown() {
        let rule = json!({ "when": { "on": "pilot", "pilot": "Alex", "within": 2 }, "repeat": "4m" });
        let soon = |at: i64, away: u64| {
            let line = json!({ "pilot": "p", "name": "Alex", "race_id": "r9", "races_away": away });
            told("fpv.race.current_changed", "r", at, json!({ "upcoming": [line] }))
        };
        let past = vec![soon(0, 3), soon(10, 2), soon(20, 1), told("fpv.race.ended", "r9", 25, json!({}))];
        assert_eq!(tried(rule, past, &[]), (vec![10, 14, 18, 22], false));
    }
}
