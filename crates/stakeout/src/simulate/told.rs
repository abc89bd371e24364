//! What was told of tables against what was true.

use std::collections::{BTreeMap, BTreeSet};

use stakeout_core::{Event, Span, Time};
use stakeout_sim::resy::{Bucket, Drop, Listed, Look, Report, Slot, Truth, Verdict, Watch};
use stakeout_sources::tables::DROP;

use super::resy::Poll;

/// So many whole looks back is where a venue may have been empty: one, and another where a venue came while one left
/// between two pages, which leaves the look before it as the last word.
const LOOKS_BACK: usize = 2;
/// How old an answer may be that is out of date, and how finely that is looked at.
const OLD: (Span, Span) = (Span::secs(240), Span::secs(5));

/// A drop that was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    bucket: Bucket,
    slot: Slot,
    /// When its page was read.
    at: Time,
}

/// What came of the drops.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) told: usize,
    /// Told, but there was no such drop.
    pub(super) wrong: Vec<(Told, Verdict)>,
    /// Told by an answer that was out of date without saying so: such a drop there had been, minutes before.
    pub(super) outdated: usize,
    /// From the opening to the page that showed it.
    pub(super) delays: Vec<Span>,
    /// Never told, and no whole look began and ended while they were open.
    pub(super) too_short: usize,
    /// Never told, because a look at another bucket had told of that venue and date meanwhile, or of the slot itself
    /// within its quiet time.
    pub(super) beside: usize,
    /// Never told, because by the looks there were nobody could know that the venue had had nothing.
    pub(super) unproven: usize,
    /// Never told, though whoever looks at the same moments knows them for drops.
    pub(super) untold: Vec<Drop>,
}

impl Told {
    /// The drop of an event; none for other events.
    pub(super) fn of(event: &Event) -> Option<Told> {
        if event.event_type != DROP {
            return None;
        }
        let text = |field: &str| event.data.get(field).and_then(|value| value.as_str());
        let slot = Slot { venue: text("venue_id")?.parse().ok()?, start: text("start")?.parse().ok()? };
        let at = text("opened_at").and_then(Time::parse).unwrap_or(event.at);
        Some(Told { bucket: Bucket::parse(&event.target)?, slot, at })
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {} for {}", self.slot, self.at, self.bucket)
    }
}

/// Whether it would have been true when an answer that is out of date was made.
fn was_true(truth: Truth<'_>, watch: &Watch, report: &Report) -> bool {
    (1..=OLD.0.as_us() / OLD.1.as_us()).any(|n| {
        let earlier = Report { since: report.since - OLD.0, at: report.at - OLD.1.times(n), ..*report };
        matches!(truth.verdict(watch, &earlier), Verdict::True { .. })
    })
}

/// Whether another slot of the same venue and date, which opened with this one, was told before the look that shows it:
/// then the venue has tables, and this is no drop. Nor is the slot itself within its quiet time.
fn is_beside(watch: &Watch, told: &[Told], drop: &Drop, look: &Poll) -> bool {
    let same =
        |told: &Told| told.slot.venue == drop.slot.venue && told.slot.start.date() == drop.slot.start.date();
    told.iter().any(|told| {
        let from = if told.slot == drop.slot { drop.opened - watch.quiet } else { drop.opened };
        same(told) && (from..=look.ended).contains(&told.at)
    })
}

/// Whether a look that was not whole had shown the venue with a table since the last whole one before the drop opened:
/// whoever saw that does not know that it went before the drop came.
fn is_shown_in_part(
    truth: Truth<'_>,
    watch: &Watch,
    polls: &BTreeMap<Bucket, Vec<Poll>>,
    drop: &Drop,
) -> bool {
    polls.iter().filter(|(bucket, _)| bucket.day == drop.bucket.day).any(|(bucket, polls)| {
        let before = &polls[..polls.partition_point(|poll| poll.began <= drop.opened)];
        let parts = before.iter().rev().take_while(|poll| !poll.whole).filter(|poll| !poll.lost);
        let shows = |at: Time| {
            let listed = truth.listed(drop.slot.venue, *bucket, &watch.parties, at);
            matches!(listed, Listed::Bookable(_))
        };
        parts.flat_map(moments).any(shows)
    })
}

/// The moments that a look may show: more of them when one of its answers was out of date.
fn moments(poll: &Poll) -> Vec<Time> {
    let back = if poll.old { OLD.0.as_us() / OLD.1.as_us() } else { 0 };
    (0..=back).map(|n| poll.began - OLD.1.times(n)).chain([poll.ended]).collect()
}

/// What a watcher tells that looks at these moments.
struct Expected(BTreeMap<Slot, Vec<Time>>);

impl Expected {
    fn of(
        truth: Truth<'_>,
        watch: &Watch,
        polls: &BTreeMap<Bucket, Vec<Poll>>,
        moment: fn(&Poll) -> Time,
    ) -> Expected {
        let looks = polls.iter().flat_map(|(bucket, polls)| {
            let whole = polls.iter().filter(|poll| poll.whole);
            whole.map(move |poll| Look { at: moment(poll), bucket: *bucket })
        });
        let looks: Vec<Look> = looks.collect();
        let mut seen: BTreeMap<Slot, Vec<Time>> = BTreeMap::new();
        for drop in truth.expected(watch, &looks) {
            seen.entry(drop.slot).or_default().push(drop.seen);
        }
        Expected(seen)
    }

    fn has(&self, drop: &Drop) -> bool {
        let seen = self.0.get(&drop.slot).map(Vec::as_slice).unwrap_or_default();
        seen.iter().any(|at| (drop.opened..drop.closed).contains(at))
    }
}

/// Judges what was told by the truth, and what was true by what was told.
pub(super) fn tally(
    truth: Truth<'_>,
    watch: &Watch,
    drops: &[Drop],
    polls: &BTreeMap<Bucket, Vec<Poll>>,
    told: &[Told],
) -> Tally {
    let mut tally = Tally { told: told.len(), ..Tally::default() };
    let looks = |bucket: &Bucket| polls.get(bucket).map(Vec::as_slice).unwrap_or_default();
    for told in told {
        let own = looks(&told.bucket);
        let this = own.partition_point(|poll| poll.began <= told.at);
        let mut before = own[..this.saturating_sub(1)].iter().rev().filter(|poll| poll.whole);
        let since = before.nth(LOOKS_BACK - 1).or(own.first()).map_or(told.at, |poll| poll.began);
        let report = Report { bucket: told.bucket, slot: told.slot, since, at: told.at };
        match truth.verdict(watch, &report) {
            Verdict::True { .. } => {}
            _ if own.get(this.saturating_sub(1)).is_some_and(|poll| poll.old)
                && was_true(truth, watch, &report) =>
            {
                tally.outdated += 1;
            }
            wrong => tally.wrong.push((told.clone(), wrong)),
        }
    }
    let mut missed = Vec::new();
    let mut by_slot: BTreeMap<Slot, BTreeSet<Time>> = BTreeMap::new();
    told.iter().for_each(|told| {
        by_slot.entry(told.slot).or_default().insert(told.at);
    });
    for drop in drops {
        // One that flaps may first be seen when it is back: it is told once, and so it is one.
        let until = drop.closed.max(drop.opened + watch.quiet);
        let times = by_slot.get_mut(&drop.slot);
        let first = times.and_then(|times| {
            let first = times.range(drop.opened..until).next().copied()?;
            times.remove(&first).then_some(first)
        });
        match first {
            Some(at) => tally.delays.push(at - drop.opened),
            None => missed.push(drop),
        }
    }
    if missed.is_empty() {
        return tally;
    }
    // A look takes a while, and each venue is seen at its own moment of it: what counts is what both ends agree on.
    let expected = [|poll: &Poll| poll.began, |poll: &Poll| poll.ended]
        .map(|moment| Expected::of(truth, watch, polls, moment));
    for drop in missed {
        let within = |poll: &&Poll| poll.whole && poll.began >= drop.opened && poll.ended < drop.closed;
        match looks(&drop.bucket).iter().find(within) {
            None => tally.too_short += 1,
            Some(look) if is_beside(watch, told, drop, look) => tally.beside += 1,
            Some(_)
                if expected.iter().all(|expected| expected.has(drop))
                    && !is_shown_in_part(truth, watch, polls, drop) =>
            {
                tally.untold.push(drop.clone());
            }
            Some(_) => tally.unproven += 1,
        }
    }
    tally
}
