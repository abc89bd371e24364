//! Which race was published as the current one, against which one was.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;
use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{Current, Event, Guid, What};

use super::trackside::Look;

/// From the end of a look to the published value: news within 50 ms wait for each other, and two of them may have to.
const GRACE: Span = Span::ms(120);

/// A race with its place in the order.
pub(super) type Place = (Guid, u32);

/// What held from when on.
pub(super) type Steps = Vec<(Time, Option<Place>)>;

/// The published values as steps.
pub(super) fn published(values: &[(Time, Json)]) -> Steps {
    let place = |value: &Json| {
        let race = Guid::parse(value["raceId"].as_str()?)?;
        Some((race, u32::try_from(value["order"].as_u64()?).ok()?))
    };
    values.iter().map(|(at, value)| (*at, place(value))).collect()
}

/// What really was, as far as it could be read.
pub(super) fn readable(event: &Event) -> Steps {
    let truth = event.truth();
    let changes = truth.changes().iter().filter(|change| !matches!(change.what, What::Lap(_)));
    let mut moments: Vec<Time> = changes.flat_map(|change| [change.at, change.visible_at]).collect();
    moments.push(event.began() - Span::hours(1));
    moments.sort_unstable();
    moments.dedup();
    let mut steps = Steps::new();
    for at in moments {
        push(&mut steps, at, truth.current_readable(at));
    }
    steps
}

fn push(steps: &mut Steps, at: Time, current: Option<Current>) {
    let place = current.map(|current| (current.race, current.order));
    if steps.last().is_none_or(|(_, before)| *before != place) {
        steps.push((at, place));
    }
}

/// What a perfect watcher that looked at the same moments would hold, and when it had just begun with an event: then
/// it waits until all races are there.
pub(super) struct Watched {
    pub(super) steps: Steps,
    /// By rule 3: nothing is left to fly.
    pub(super) over: Vec<(Time, bool)>,
    pub(super) settling: Vec<(Time, Time)>,
}

pub(super) fn watched(event: &Event, looks: &[Look], settles: Span) -> Watched {
    let truth = event.truth();
    let mut looks: Vec<&Look> = looks.iter().filter(|look| look.whole && look.differs).collect();
    looks.sort_by_key(|look| look.ended);
    let mut held: HashMap<Arc<str>, Time> = HashMap::new();
    let mut open: Option<Guid> = None;
    let mut watched = Watched { steps: Steps::new(), over: Vec::new(), settling: Vec::new() };
    for look in looks {
        if &*look.path == "/" {
            let now = event.id(look.read);
            if open.replace(now) != Some(now) {
                watched.settling.push((look.ended, look.ended + settles));
            }
        } else {
            held.insert(Arc::clone(&look.path), look.read);
        }
        let Some(open) = open else { continue };
        let current = truth.current_seen(open, |path| held.get(path).copied());
        push(&mut watched.steps, look.ended, current);
        let over = current.is_some_and(|current| current.rule == 3);
        if watched.over.last().is_none_or(|(_, before)| *before != over) {
            watched.over.push((look.ended, over));
        }
    }
    watched
}

/// How long `published` said something else than `watched`, once the watcher had told itself and was not just beginning;
/// and where.
pub(super) fn wrong(watched: &Watched, published: &Steps, until: Time) -> (Span, Vec<String>) {
    let mut total = Span::ZERO;
    let mut remarks = Vec::new();
    let ends = watched.steps.iter().skip(1).map(|(at, _)| *at).chain([until]);
    for ((from, expected), end) in watched.steps.iter().zip(ends) {
        let settled = watched.settling.iter().filter(|(begin, over)| begin <= from && from < over);
        let from = settled.map(|(_, over)| *over).max().unwrap_or(*from) + GRACE;
        let off = differs(published, *expected, from, end);
        if off > Span::ZERO {
            total = total + off;
            remarks.push(format!("wrong for {off} from {from}: {:?}, not {expected:?}", at(published, from)));
        }
    }
    (total, remarks)
}

/// How long within the window the steps said something else.
fn differs(steps: &Steps, expected: Option<Place>, from: Time, until: Time) -> Span {
    let mut off = Span::ZERO;
    let mut now = from;
    while now < until {
        let next = steps.iter().map(|(at, _)| *at).find(|at| *at > now).unwrap_or(until).min(until);
        if at(steps, now) != expected {
            off = off + (next - now);
        }
        now = next;
    }
    off
}

pub(super) fn at(steps: &Steps, now: Time) -> Option<Place> {
    let index = steps.partition_point(|(at, _)| *at <= now);
    index.checked_sub(1).and_then(|index| steps[index].1)
}

/// From each change that lasted long enough to be seen to its publication.
pub(super) fn delays(truth: &Steps, published: &Steps) -> Vec<Span> {
    let ends = truth.iter().skip(1).map(|(at, _)| *at).chain([Time(i64::MAX)]);
    let delay = |((from, place), end): (&(Time, Option<Place>), Time)| {
        if at(published, *from) == *place {
            return Some(Span::ZERO);
        }
        let told = published.iter().find(|(at, told)| at >= from && *at < end && told == place)?;
        Some(told.0 - *from)
    };
    truth.iter().zip(ends).skip(1).filter_map(delay).collect()
}

/// The gaps between two looks at the race that was published as the current one, while it was to be watched closely.
pub(super) fn gaps(event: &Event, watched: &Watched, published: &Steps, looks: &[Look]) -> Vec<Span> {
    let truth = event.truth();
    let over = |now: Time| {
        let index = watched.over.partition_point(|(at, _)| *at <= now);
        index.checked_sub(1).is_some_and(|index| watched.over[index].1)
    };
    let mut last: HashMap<&str, Time> = HashMap::new();
    let mut gaps = Vec::new();
    for look in looks {
        let current = at(published, look.read);
        let is_current = current.is_some_and(|(race, _)| look.path.ends_with(&format!("/{race}/Race.json")));
        if !is_current || over(look.read) {
            last.remove(&*look.path);
            continue;
        }
        let before = last.insert(&look.path, look.read);
        // Not across another race's turn, nor across a time when nobody answered.
        let before = before.filter(|before| {
            let turned = published.iter().any(|(at, _)| *at > *before && *at <= look.read);
            let off = truth.is_off(*before + (look.read - *before).over(2));
            !turned && !off
        });
        gaps.extend(before.map(|before| look.read - before));
    }
    gaps
}
