//! The book of rules: what it has to know, and what rings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use stakeout_core::alert::{Again, Alerts, Bell, Moment, Occasion, Places, Question, Ring, Told, Went};
use stakeout_core::compare::target_fingerprint;
use stakeout_core::judge::{Change, Effect};
use stakeout_core::{Event, Facts, Fingerprint, Record, SettingRefused, Span, Stage, Time, Value};

use super::test::{at_path, same_text};
use super::words::{self, Words};
use super::{AlertConfig, Direction, IndicatorOf, When, again, hours, moves};
use crate::ConfigRefused;
use crate::fpv::UPCOMING_CHANGED;
use crate::racing::timeline::{self, Band, RunnerHistory};
use crate::racing::{FAMILY as RACING, MONEY_FLOW_HISTORY, ODDS_HISTORY};
use crate::written::Duration;

const PRICE: &str = "win_odds";
const SHARE: &str = "hold_percentage";
/// The field of the money that the timeline shows.
const POOL: &str = "win_pool_amount";
/// Silence after an alert of a source's health, unless it says otherwise.
const HEALTH_QUIET: Span = Span::hours(1);
/// Silence after an alert of missed polls of one target, unless it says otherwise.
const MISSED_QUIET: Span = Span::mins(10);
/// Silence after an indicator's alert: the longest column of the timeline that changes while people bet.
const COLUMN_QUIET: Span = Span::mins(5);

/// A rule that repeats asks so often whether it is still so, where nothing moves.
const STILL_EVERY: Span = Span::mins(1);

/// How the type of the event ends that tells of refused credentials.
const CREDENTIALS: &str = ".credentials";

/// The rules in force, by name.
#[derive(Clone, Debug, Default)]
pub struct RuleBook {
    rules: BTreeMap<String, AlertConfig>,
}

impl RuleBook {
    /// A book of these rules, each of which can ring.
    pub fn new(rules: BTreeMap<String, AlertConfig>) -> Result<RuleBook, ConfigRefused> {
        for (name, rule) in &rules {
            rule.check(name)?;
        }
        Ok(RuleBook { rules })
    }

    /// The rules, by name.
    pub fn rules(&self) -> &BTreeMap<String, AlertConfig> {
        &self.rules
    }

    /// Those that may ring for a source now.
    fn awake(&self, source: &str, at: Time) -> impl Iterator<Item = (&String, &AlertConfig)> {
        self.rules.iter().filter(move |(_, rule)| rule.is_awake(source, at))
    }
}

impl Alerts for RuleBook {
    fn configured(&self, stored: &BTreeMap<String, Json>) -> Result<Arc<dyn Alerts>, SettingRefused> {
        let mut rules = self.rules.clone();
        for (name, rule) in stored {
            rules.insert(name.clone(), read(name, rule)?);
        }
        Ok(Arc::new(RuleBook { rules }))
    }

    fn written(&self) -> BTreeMap<String, Json> {
        let written = |(name, rule): (&String, &AlertConfig)| (name.clone(), json!(rule));
        self.rules.iter().map(written).collect()
    }

    fn places(&self, rule: &str) -> Places {
        let places = |rule: &AlertConfig| Places { source: rule.source.clone(), sinks: rule.sinks.clone() };
        self.rules.get(rule).map_or_else(Places::default, places)
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn wants_records(&self, occasion: &Occasion<'_>) -> bool {
        let wants = |rule: &AlertConfig| match &rule.when {
            // A race is called by its name.
            When::Start { before } => starts_in(occasion, before.0).is_some(),
            _ => asks_if_still(rule, occasion),
        };
        self.awake(occasion.source, occasion.at).any(|(_, rule)| wants(rule))
    }

    fn questions(&self, occasion: &Occasion<'_>) -> Vec<Question> {
        let mut wanted: BTreeMap<(Fingerprint, &str), Time> = BTreeMap::new();
        let mut ask = |record: &Record, stream: &'static str, since: Time| {
            let from = wanted.entry((record.fingerprint, stream)).or_insert(since);
            *from = (*from).min(since);
        };
        for (_, rule) in self.awake(occasion.source, occasion.at) {
            match &rule.when {
                When::Odds { within, .. } => looked_at(rule, occasion, PRICE)
                    .for_each(|(record, _)| ask(record, ODDS_HISTORY, occasion.at - within.0)),
                When::Money { within, .. } => looked_at(rule, occasion, SHARE)
                    .for_each(|(record, _)| ask(record, MONEY_FLOW_HISTORY, occasion.at - within.0)),
                When::Indicator { of, .. } => {
                    let Some(since) = grid_begin(occasion) else { continue };
                    match of {
                        IndicatorOf::Odds => {
                            looked_at(rule, occasion, PRICE)
                                .for_each(|(record, _)| ask(record, ODDS_HISTORY, since));
                        }
                        IndicatorOf::Money if looked_at(rule, occasion, POOL).next().is_some() => {
                            runners(occasion).for_each(|record| ask(record, MONEY_FLOW_HISTORY, since));
                        }
                        IndicatorOf::Money => {}
                    }
                }
                _ => {}
            }
        }
        let question = |((record, stream), since): ((Fingerprint, &str), Time)| Question {
            record,
            stream: stream.to_owned(),
            since,
        };
        wanted.into_iter().map(question).collect()
    }

    fn judge(&self, occasion: &Occasion<'_>, answers: &[(Question, Vec<Moment>)]) -> Vec<Ring> {
        let seen = Seen { occasion, answers };
        self.awake(occasion.source, occasion.at).flat_map(|(name, rule)| seen.rings(name, rule)).collect()
    }

    fn bell(&self, source: &str, facts: &Facts, now: Time) -> Option<Time> {
        let start = facts.start.filter(|_| facts.stage == Stage::Pending)?;
        let rings = |rule: &AlertConfig| rule.bells(start, now).find(|bell| rule.is_awake(source, *bell));
        self.rules.values().filter_map(rings).min()
    }

    fn bells(&self) -> BTreeSet<Bell> {
        let enabled = self.rules.values().filter(|rule| rule.enabled);
        enabled.filter_map(|rule| Some((rule.source.clone(), rule.when.before()?, rule.again()))).collect()
    }

    fn repeats(&self) -> bool {
        self.rules.values().any(again::is_by_clock)
    }

    fn again(&self, rung: &Event, now: Time) -> Option<Again> {
        let (name, rule) = again::rule_of(&self.rules, rung)?;
        again::again(name, rule, rung, now)
    }

    fn still(&self, rung: &Event, now: &Json) -> Option<Ring> {
        let (name, rule) = again::rule_of(&self.rules, rung)?;
        again::still(name, rule, rung, now)
    }
}

/// A rule as it is stored.
fn read(name: &str, rule: &Json) -> Result<AlertConfig, SettingRefused> {
    let refused = |expected: String| SettingRefused::new(&format!("alert.{name}"), rule, expected);
    let config: AlertConfig = serde_path_to_error::deserialize(rule)
        .map_err(|error| refused(format!("{}: {}", error.path(), error.inner())))?;
    config.check(name).map_err(|error| refused(error.to_string()))?;
    Ok(config)
}

/// What a field of a runner has done.
#[derive(Clone, Copy)]
enum Step {
    /// It moved, from what it was.
    Moved(Option<f64>),
    /// It is where it was.
    Still,
}

impl Step {
    /// What it was before it moved.
    fn from(self) -> Option<f64> {
        match self {
            Step::Moved(from) => from,
            Step::Still => None,
        }
    }
}

/// The runners that a rule looks at: those of which a field moved, and if it asks whether it is still so, the others.
fn looked_at<'a>(
    rule: &AlertConfig,
    occasion: &'a Occasion<'a>,
    field: &'static str,
) -> impl Iterator<Item = (&'a Record, Step)> {
    let moved = move || {
        occasion.changes.iter().filter_map(move |change| match change {
            Change::Changed { record, fields } if is_runner(record) => {
                let change = fields.iter().find(|change| change.field == field)?;
                Some((*record, Step::Moved(change.old.as_f64())))
            }
            _ => None,
        })
    };
    let asks = asks_if_still(rule, occasion);
    let has_moved = move |record: &Record| moved().any(|(one, _)| one.fingerprint == record.fingerprint);
    let still = runners(occasion).filter(move |record| asks && !has_moved(record));
    moved().chain(still.map(|record| (record, Step::Still)))
}

/// Whether a rule that repeats asks at this look whether what it tells of still lasts: at the first good one in each
/// [`STILL_EVERY`], until the race has started.
fn asks_if_still(rule: &AlertConfig, occasion: &Occasion<'_>) -> bool {
    let (Some(Duration(repeat)), Some((_, facts))) = (rule.repeat, occasion.facts) else { return false };
    let of_race = facts.start.is_some() && facts.stage == Stage::Pending && occasion.went.failures == 0;
    let every = repeat.min(STILL_EVERY).as_us();
    let first = occasion
        .looked
        .is_some_and(|before| before.us().div_euclid(every) != occasion.at.us().div_euclid(every));
    of_race && first
}

/// The start of a race that begins within so long and has not begun.
fn starts_in(occasion: &Occasion<'_>, before: Span) -> Option<Time> {
    let (_, facts) = occasion.facts?;
    let soon = |start: &Time| (*start - before..*start).contains(&occasion.at);
    facts.start.filter(soon).filter(|_| facts.stage == Stage::Pending)
}

fn is_runner(record: &Record) -> bool {
    record.kind.family == RACING
        && record.kind.collection == "entrants"
        && record.get("is_scratched") != Some(&Value::Bool(true))
}

fn runners<'a>(occasion: &'a Occasion<'a>) -> impl Iterator<Item = &'a Record> {
    occasion.records.iter().filter(|record| is_runner(record))
}

/// When the race's timeline begins.
fn grid_begin(occasion: &Occasion<'_>) -> Option<Time> {
    let start = occasion.facts?.1.start?;
    timeline::buckets(start, occasion.at).first().map(|bucket| bucket.begins(start))
}

/// An occasion with the history that was asked for.
struct Seen<'a> {
    occasion: &'a Occasion<'a>,
    answers: &'a [(Question, Vec<Moment>)],
}

impl Seen<'_> {
    fn rings(&self, name: &str, rule: &AlertConfig) -> Vec<Ring> {
        match &rule.when {
            When::Event { event_type, filters } => self.each_told(name, rule, |told| {
                let meant = is_type(told.event_type, event_type)
                    && filters.iter().all(|(path, test)| test.holds(at_path(told.data, path)));
                meant.then(|| (words::event(told), None))
            }),
            When::Drop { .. } => self.each_told(name, rule, |told| {
                let meant = told.event_type == "tables.drop" && is_wanted(&rule.when, told.data);
                meant.then(|| (words::table(told.data), None))
            }),
            When::Pilot { pilot, within } => {
                let rings = self.each_told(name, rule, |told| flies_soon(name, told, pilot, *within));
                // Each of their races is told of as another subject: quiet is kept about the pilot.
                let subject = target_fingerprint(&format!("pilot/{}", pilot.to_lowercase()));
                rings.into_iter().map(|ring| Ring { subject, subject_key: pilot.clone(), ..ring }).collect()
            }
            When::Odds { direction, percent, within } => {
                let of = looked_at(rule, self.occasion, PRICE);
                of.filter_map(|(record, step)| {
                    self.price(name, rule, record, step, (*direction, *percent, within.0))
                })
                .collect()
            }
            When::Money { points, within } => {
                let of = looked_at(rule, self.occasion, SHARE);
                of.filter_map(|(record, step)| self.share(name, rule, record, step, (*points, within.0)))
                    .collect()
            }
            When::Indicator { of, percent } => self.indicators(name, rule, *of, *percent),
            When::Start { before } => self.bell(name, rule, before.0).into_iter().collect(),
            When::Unhealthy { failures } => self.unhealthy(name, rule, *failures).into_iter().collect(),
            When::Missed { polls } => self.missed(name, rule, *polls).into_iter().collect(),
        }
    }

    /// Rings with each event that is meant, if that comes about.
    fn each_told(
        &self,
        name: &str,
        rule: &AlertConfig,
        meant: impl Fn(&Told<'_>) -> Option<(Words, Option<String>)>,
    ) -> Vec<Ring> {
        let mut rings = Vec::new();
        for (index, told) in self.occasion.told.iter().enumerate() {
            let Some((words, dedupe_key)) = meant(told) else { continue };
            let subject = (told.subject, told.subject_key);
            let ring =
                self.ring(name, rule, subject, words, json!({ "type": told.event_type, "data": told.data }));
            rings.push(Ring {
                follows: Some(index),
                dedupe_key,
                quiet: rule.quiet.map(|quiet| quiet.0),
                ..ring
            });
        }
        rings
    }

    fn price(
        &self,
        name: &str,
        rule: &AlertConfig,
        record: &Record,
        step: Step,
        (direction, percent, within): (Direction, f64, Span),
    ) -> Option<Ring> {
        let now = record.get(PRICE)?.as_f64()?;
        let mut earlier = moves::since(self.rows(record, ODDS_HISTORY), PRICE, self.occasion.at - within);
        let old = step.from();
        earlier.extend(old);
        let (from, by) =
            moves::percent(&earlier, now, direction).filter(|(_, by)| moves::reaches(*by, percent))?;
        let held = old
            .and_then(|old| moves::percent(&earlier, old, direction))
            .is_some_and(|(_, by)| moves::reaches(by, percent));
        let way = match direction {
            Direction::Shortened => "shortened",
            Direction::Lengthened => "lengthened",
        };
        let runner = words::runner(record);
        let words = Words::new(
            format!("{runner} {way} to {}", words::number(now)),
            format!(
                "{runner}: {} → {}, {} % within {within}",
                words::number(from),
                words::number(now),
                words::number(by)
            ),
        );
        let about = json!({ "from": from, "to": now, "percent": by });
        of_move(rule, within, step, held, self.ring(name, rule, subject(record), words, about))
    }

    fn share(
        &self,
        name: &str,
        rule: &AlertConfig,
        record: &Record,
        step: Step,
        (points, within): (f64, Span),
    ) -> Option<Ring> {
        let now = record.get(SHARE)?.as_f64()?;
        let mut earlier =
            moves::since(self.rows(record, MONEY_FLOW_HISTORY), SHARE, self.occasion.at - within);
        let old = step.from();
        earlier.extend(old);
        let (from, by) = moves::points(&earlier, now).filter(|(_, by)| moves::reaches(*by, points))?;
        let held = old
            .and_then(|old| moves::points(&earlier, old))
            .is_some_and(|(_, by)| moves::reaches(by, points));
        let runner = words::runner(record);
        let words = Words::new(
            format!("Money for {runner}"),
            format!(
                "{runner}: {} % → {} % of the pool, {} points within {within}",
                words::number(from),
                words::number(now),
                words::number(by)
            ),
        );
        let about = json!({ "from": from, "to": now, "points": by });
        of_move(rule, within, step, held, self.ring(name, rule, subject(record), words, about))
    }

    /// The runners whose cell of the present column has just reached a band.
    fn indicators(&self, name: &str, rule: &AlertConfig, of: IndicatorOf, percent: u8) -> Vec<Ring> {
        let Some(start) = self.occasion.facts.and_then(|(_, facts)| facts.start) else { return Vec::new() };
        let field = match of {
            IndicatorOf::Odds => PRICE,
            IndicatorOf::Money => POOL,
        };
        let before = self.grid(start, false);
        let now = self.grid(start, true);
        let reached = |grid: &timeline::Timeline, entrant: &str| {
            let cell = grid.lines.iter().find(|line| line.entrant == entrant)?.cells.last()?;
            let indicator = match of {
                IndicatorOf::Odds => cell.shortened,
                IndicatorOf::Money => cell.money,
            }?;
            (edge(indicator.band) >= percent).then_some(indicator)
        };
        let mut rings = Vec::new();
        for (record, step) in looked_at(rule, self.occasion, field) {
            let Some(indicator) = reached(&now, &record.key) else { continue };
            let runner = words::runner(record);
            let what = match of {
                IndicatorOf::Odds => "price shortened",
                IndicatorOf::Money => "share of the new money grew",
            };
            let by = words::number(indicator.percent);
            let words = Words::new(
                format!("{runner}: {what}"),
                format!("{runner}: its {what} by {by} since the column before"),
            );
            let about = json!({ "percent": indicator.percent, "band": indicator.band });
            let ring = self.ring(name, rule, subject(record), words, about);
            let held = reached(&before, &record.key).is_some();
            rings.extend(of_move(rule, COLUMN_QUIET, step, held, ring));
        }
        rings
    }

    /// The race's timeline, with or without what this poll brought.
    fn grid(&self, start: Time, with_now: bool) -> timeline::Timeline {
        let at = self.occasion.at;
        let history = |record: &Record| {
            let mut money: Vec<_> = self
                .rows(record, MONEY_FLOW_HISTORY)
                .iter()
                .filter_map(|(at, values)| timeline::money_row(*at, values, POOL))
                .collect();
            let mut odds: Vec<_> = self
                .rows(record, ODDS_HISTORY)
                .iter()
                .filter_map(|(at, values)| timeline::odds_row(*at, values))
                .collect();
            if with_now {
                let body = Json::Object(record.body());
                money.extend(timeline::money_row(at, &body, POOL));
                odds.extend(timeline::odds_row(at, &body));
            }
            RunnerHistory { entrant: record.key.clone(), is_scratched: false, money, odds }
        };
        let histories: Vec<RunnerHistory> = runners(self.occasion).map(history).collect();
        timeline::timeline(start, at, &histories)
    }

    fn bell(&self, name: &str, rule: &AlertConfig, before: Span) -> Option<Ring> {
        let target = self.occasion.target?;
        let (start, at) = (starts_in(self.occasion, before)?, self.occasion.at);
        let races =
            self.occasion.records.iter().find(|r| r.kind.family == RACING && r.kind.collection == "races");
        let called = races.and_then(|race| race.get("name")).and_then(Value::as_text).unwrap_or(&target.key);
        let words = Words::new(
            format!("{called} starts in {}", Span::secs(((start - at).as_secs_f64()).round() as i64)),
            format!("{called} is to start at {start}"),
        );
        let subject = (target_fingerprint(&target.key), target.key.as_str());
        let ring = self.ring(name, rule, subject, words, json!({ "start": start }));
        let key = format!("alert|{name}|{}|{}|{start}", self.occasion.source, target.key);
        let (number, quiet) = again::bell_number(rule, start - before, at);
        // The first one's key has no number, as it has none where nothing repeats.
        let dedupe_key = Some(if number == 0 { key } else { format!("{key}|{number}") });
        Some(Ring { dedupe_key, quiet, ..ring })
    }

    fn unhealthy(&self, name: &str, rule: &AlertConfig, failures: u32) -> Option<Ring> {
        let failed = self.occasion.went.failures;
        // Whoever is refused asks only once in a while: there will not be so many failures in a row soon.
        let refused = self.occasion.told.iter().find(|told| told.event_type.ends_with(CREDENTIALS));
        if refused.is_none() && (failed < failures || (failed > failures && rule.repeat.is_none())) {
            return None;
        }
        let (source, target) = (self.occasion.source, self.occasion.target?);
        let text = match refused {
            Some(told) => format!(
                "{source} does not take our credentials: {}",
                told.data["message"].as_str().unwrap_or("it does not say why")
            ),
            None => format!("{failed} polls of {source}/{} failed in a row", target.key),
        };
        let words = Words::new(format!("{source} does not answer as it should"), text);
        let subject = (target_fingerprint(source), source);
        let ring = self.ring(name, rule, subject, words, json!({ "target": target.key, "failures": failed }));
        let quiet = rule.quiet.map_or(HEALTH_QUIET, |quiet| quiet.0);
        let quiet = rule.again().filter(|_| failed > failures).unwrap_or(quiet);
        Some(Ring { quiet: Some(quiet), ..ring })
    }

    fn missed(&self, name: &str, rule: &AlertConfig, polls: u64) -> Option<Ring> {
        let Went { missed, missed_before, .. } = self.occasion.went;
        let target = self.occasion.target.filter(|_| missed >= polls)?;
        // While it goes on it is the clock that repeats it.
        if rule.repeat.is_some() && missed_before >= polls {
            return None;
        }
        let words = Words::new(
            format!("{} was not looked at in time", target.key),
            format!(
                "{missed} polls of {}/{} did not happen when they should have",
                self.occasion.source, target.key
            ),
        );
        let subject = (target_fingerprint(&target.key), target.key.as_str());
        let ring = self.ring(name, rule, subject, words, json!({ "target": target.key, "missed": missed }));
        Some(Ring { quiet: Some(rule.quiet.map_or(MISSED_QUIET, |quiet| quiet.0)), ..ring })
    }

    fn ring(
        &self,
        name: &str,
        rule: &AlertConfig,
        (subject, subject_key): (Fingerprint, &str),
        words: Words,
        about: Json,
    ) -> Ring {
        let mut data = json!({
            "alert": name,
            "user": rule.user,
            "severity": rule.severity,
            "title": words.title,
            "text": words.text,
            "about": about,
        });
        if again::is_by_clock(rule) {
            data["repeat"] = again::first(name, rule, self.occasion.at);
        }
        Ring {
            alert: name.to_owned(),
            follows: None,
            subject,
            subject_key: subject_key.to_owned(),
            requires: Effect::Any,
            quiet: None,
            dedupe_key: None,
            sinks: rule.sinks.clone(),
            data,
        }
    }

    /// The history of a record's stream that was asked for.
    fn rows(&self, record: &Record, stream: &str) -> &[Moment] {
        let found = self
            .answers
            .iter()
            .find(|(question, _)| question.record == record.fingerprint && question.stream == stream);
        found.map_or(&[], |(_, rows)| rows.as_slice())
    }
}

/// A move rings when it gets there; while it stays there, whether it moves or not, only if the rule repeats.
fn of_move(rule: &AlertConfig, within: Span, step: Step, held: bool, ring: Ring) -> Option<Ring> {
    let quiet = rule.quiet.map_or(within, |quiet| quiet.0);
    let again = rule.repeat.map(|repeat| repeat.0.max(quiet));
    let (requires, quiet) = match (step, held) {
        (Step::Moved(_), false) => (Effect::Changed, quiet),
        (Step::Moved(_), true) => (Effect::Changed, again?),
        (Step::Still, _) => (Effect::Any, again?),
    };
    Some(Ring { requires, quiet: Some(quiet), ..ring })
}

fn subject(record: &Record) -> (Fingerprint, &str) {
    (record.fingerprint, record.key.as_str())
}

/// Whether a type is this one, or begins as the pattern does.
fn is_type(event_type: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => event_type == pattern,
    }
}

/// The lower edge of a band.
fn edge(band: Band) -> u8 {
    match band {
        Band::From5 => 5,
        Band::From10 => 10,
        Band::From15 => 15,
        Band::From20 => 20,
        Band::From25 => 25,
        Band::From50 => 50,
    }
}

/// Whether somebody waits for this table.
pub(super) fn is_wanted(when: &When, data: &Json) -> bool {
    let When::Drop { venues, followed, from_date, to_date, from_time, to_time, party } = when else {
        return false;
    };
    let text = |field: &str| data[field].as_str().unwrap_or_default();
    let named = |venue: &String| venue == text("venue_id") || same_text(venue, text("venue_name"));
    let (date, time) = (text("date"), text("start").get(11..16).and_then(hours::minutes));
    let clock = |limit: &Option<String>| limit.as_deref().and_then(hours::minutes);
    let sizes = || data["party_sizes"].as_array().into_iter().flatten().filter_map(Json::as_u64);
    (venues.is_empty() || venues.iter().any(named))
        && (!followed || data["followed"] == true)
        && from_date.as_deref().is_none_or(|from| date >= from)
        && to_date.as_deref().is_none_or(|to| date <= to)
        && clock(from_time).is_none_or(|from| time.is_some_and(|time| time >= from))
        && clock(to_time).is_none_or(|to| time.is_some_and(|time| time <= to))
        && (party.is_empty() || sizes().any(|size| party.iter().any(|wanted| u64::from(*wanted) == size)))
}

/// Whether this pilot flies soon, with the words for it; each of their races rings once.
fn flies_soon(name: &str, told: &Told<'_>, pilot: &str, within: u32) -> Option<(Words, Option<String>)> {
    if !UPCOMING_CHANGED.contains(&told.event_type) {
        return None;
    }
    let (words, key) = flies(name, &told.data["upcoming"], pilot, within)?;
    Some((words, Some(key)))
}

/// Whether this pilot is among those who fly soon, with the words for it, and a key that is another for each race.
pub(super) fn flies(name: &str, upcoming: &Json, pilot: &str, within: u32) -> Option<(Words, String)> {
    let own = upcoming.as_array()?.iter().find(|line| {
        let is = |field: &str| line[field].as_str().is_some_and(|text| same_text(text, pilot));
        is("pilot") || is("name")
    })?;
    let away = own["races_away"].as_u64().filter(|away| *away <= u64::from(within))?;
    let called = own["name"].as_str().unwrap_or(pilot);
    let when = match away {
        0 => "now".to_owned(),
        1 => "next".to_owned(),
        n => format!("in {n} races"),
    };
    let words = Words::new(format!("{called} flies {when}"), format!("{called} flies {when}"));
    Some((words, format!("alert|{name}|{pilot}|{}", own["race_id"].as_str().unwrap_or_default())))
}
