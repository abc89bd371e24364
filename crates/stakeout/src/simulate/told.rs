//! What was told of tables against what was true.

use std::collections::BTreeMap;

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
    pub(super) wrong: Vec<(Told, Wrong)>,
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

/// Why something should not have been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It was no drop.
    Untrue(Verdict),
    /// It had been told at that time, within its quiet time or without having closed since.
    Repeated {
        /// When it was told before.
        before: Time,
    },
    /// It opened, but neither did whoever looks all the time tell it, nor would whoever looks at the same moments.
    Unexplained,
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

/// Whether a look that was not whole had shown the venue with a table since it was last proven to have none before the
/// drop opened, shown so or missing from two whole looks: whoever saw that does not know that it went before the drop came.
fn is_shown_in_part(
    truth: Truth<'_>,
    watch: &Watch,
    polls: &BTreeMap<Bucket, Vec<Poll>>,
    drop: &Drop,
) -> bool {
    polls.iter().filter(|(bucket, _)| bucket.day == drop.bucket.day).any(|(bucket, polls)| {
        let before = &polls[..polls.partition_point(|poll| poll.began <= drop.opened)];
        let listed = |at: Time| truth.listed(drop.slot.venue, *bucket, &watch.parties, at);
        let mut proof = 0;
        let since = before.iter().rev().take_while(|poll| {
            if poll.whole {
                proof += if listed(poll.began) == Listed::Absent { 1 } else { LOOKS_BACK };
            }
            proof < LOOKS_BACK
        });
        let parts = since.filter(|poll| !poll.whole && !poll.lost);
        parts.flat_map(moments).any(|at| matches!(listed(at), Listed::Bookable(_)))
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

/// Whether it is told by a watcher that looks at the same moments. The look that told it is taken at the moment when the
/// page was read that showed the slot, and whether or not it was whole: what a part of an answer shows is there, too.
fn is_expected(truth: Truth<'_>, watch: &Watch, polls: &BTreeMap<Bucket, Vec<Poll>>, told: &Told) -> bool {
    [|poll: &Poll| poll.began, |poll: &Poll| poll.ended].into_iter().any(|moment| {
        let of_date = polls.iter().filter(|(bucket, _)| bucket.day == told.bucket.day);
        let others = of_date.flat_map(|(bucket, polls)| {
            let this = |poll: &Poll| *bucket == told.bucket && (poll.began..=poll.ended).contains(&told.at);
            let others = polls.iter().filter(move |poll| poll.whole && !this(poll));
            others.map(move |poll| Look { at: moment(poll), bucket: *bucket })
        });
        let looks: Vec<Look> = others.chain([Look { at: told.at, bucket: told.bucket }]).collect();
        let drops = truth.expected(watch, &looks);
        drops.iter().any(|drop| (drop.slot, drop.seen) == (told.slot, told.at))
    })
}

/// The looks at a bucket, in order.
fn looks<'a>(polls: &'a BTreeMap<Bucket, Vec<Poll>>, bucket: &Bucket) -> &'a [Poll] {
    polls.get(bucket).map(Vec::as_slice).unwrap_or_default()
}

/// Judges what was told by the truth of its own bucket; what is right comes back.
fn judged<'a>(
    truth: Truth<'_>,
    watch: &Watch,
    polls: &BTreeMap<Bucket, Vec<Poll>>,
    told: &'a [Told],
    tally: &mut Tally,
) -> Vec<&'a Told> {
    let mut known: BTreeMap<Slot, Vec<Time>> = BTreeMap::new();
    let mut right: Vec<&Told> = Vec::new();
    for told in told {
        let own = looks(polls, &told.bucket);
        let this = own.partition_point(|poll| poll.began <= told.at);
        let mut before = own[..this.saturating_sub(1)].iter().rev().filter(|poll| poll.whole);
        let since = before.nth(LOOKS_BACK - 1).or(own.first()).map_or(told.at, |poll| poll.began);
        let report = Report { bucket: told.bucket, slot: told.slot, since, at: told.at };
        match truth.verdict(watch, &report) {
            Verdict::True { opened } => {
                let known = known.entry(told.slot).or_default();
                // Told once more though it was open all along, or before it may be told again.
                match known.iter().find(|at| **at >= opened || told.at - **at < watch.quiet) {
                    Some(before) => {
                        tally.wrong.push((told.clone(), Wrong::Repeated { before: *before }));
                    }
                    None => right.push(told),
                }
                known.push(told.at);
            }
            _ if own.get(this.saturating_sub(1)).is_some_and(|poll| poll.old)
                && was_true(truth, watch, &report) =>
            {
                tally.outdated += 1;
            }
            wrong => tally.wrong.push((told.clone(), Wrong::Untrue(wrong))),
        }
    }
    right
}

/// Judges what was told by the truth, and what was true by what was told: every telling needs a drop of its own. Only
/// some of the drops are `counted`; the others explain what was told besides.
pub(super) fn tally(
    truth: Truth<'_>,
    watch: &Watch,
    drops: &[Drop],
    counted: impl Fn(&Drop) -> bool,
    polls: &BTreeMap<Bucket, Vec<Poll>>,
    told: &[Told],
) -> Tally {
    let mut tally = Tally { told: told.len(), ..Tally::default() };
    let right = judged(truth, watch, polls, told, &mut tally);
    let mut missed = Vec::new();
    let mut by_slot: BTreeMap<Slot, BTreeMap<Time, &Told>> = BTreeMap::new();
    for told in right {
        by_slot.entry(told.slot).or_default().insert(told.at, told);
    }
    for drop in drops {
        // One that flaps may first be seen when it is back: it is told once, and so it is one.
        let until = drop.closed.max(drop.opened + watch.quiet);
        let times = by_slot.get_mut(&drop.slot);
        let first = times.and_then(|times| {
            let first = times.range(drop.opened..until).next().map(|(at, _)| *at)?;
            times.remove(&first)
        });
        match first {
            _ if !counted(drop) => {}
            Some(told) => tally.delays.push(told.at - drop.opened),
            None => missed.push(drop),
        }
    }
    let left: Vec<&Told> = by_slot.into_values().flat_map(BTreeMap::into_values).collect();
    if missed.is_empty() && left.is_empty() {
        return tally;
    }
    // A look takes a while, and each venue is seen at its own moment of it: what counts is what both ends agree on.
    let expected = [|poll: &Poll| poll.began, |poll: &Poll| poll.ended]
        .map(|moment| Expected::of(truth, watch, polls, moment));
    for told in left {
        if !is_expected(truth, watch, polls, told) {
            tally.wrong.push((told.clone(), Wrong::Unexplained));
        }
    }
    for drop in missed {
        let within = |poll: &&Poll| poll.whole && poll.began >= drop.opened && poll.ended < drop.closed;
        match looks(polls, &drop.bucket).iter().find(within) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use stakeout_sim::resy::{Market, MarketConfig, Table};

    /// A look every minute at every bucket of a market, and what it shows of the drops, each told `times` times.
    fn tallied(times: i64) -> (usize, Tally) {
        let config = MarketConfig { venues: 12, ..MarketConfig::new(3) };
        let (start, span) = (config.start, Span::hours(24));
        let market = Market::new(config.during(start, span));
        let (truth, watch) = (market.truth(), Watch::default());
        let drops = truth.drops(&watch, start, start + span);
        let minutes = (0..24 * 60).map(|n| Poll::at(start + Span::mins(n)));
        let minutes: Vec<Poll> = minutes.collect();
        let polls: BTreeMap<Bucket, Vec<Poll>> =
            drops.iter().map(|drop| (drop.bucket, minutes.clone())).collect();
        let mut told: Vec<Told> = Vec::new();
        for drop in &drops {
            let seen = minutes.iter().find(|poll| poll.began >= drop.opened && poll.began < drop.closed);
            for n in 0..seen.map_or(0, |_| times) {
                let at = seen.map_or(drop.opened, |poll| poll.began) + Span::ms(n);
                told.push(Told { bucket: drop.bucket, slot: drop.slot, at });
            }
        }
        told.sort_by_key(|told| told.at);
        (told.len(), tally(truth, &watch, &drops, |_| true, &polls, &told))
    }

    #[test]
    fn what_is_told_once_is_right_and_what_is_told_twice_is_wrong() {
        let (told, once) = tallied(1);
        assert!(told > 10, "{told} drops");
        assert!(once.wrong.is_empty() && once.untold.is_empty(), "{:?} {:?}", once.wrong, once.untold);
        assert_eq!(once.delays.len(), told);
        let (_, twice) = tallied(2);
        assert_eq!((twice.delays.len(), twice.wrong.len()), (told, told));
        assert!(twice.wrong.iter().all(|(_, wrong)| matches!(wrong, Wrong::Repeated { .. })));
    }

    /// A market with one venue whose tables at 20:30 and 21:00 are open between these seconds, the bucket that shows them,
    /// and what of it are drops.
    fn evening(config: MarketConfig, half_past: (i64, i64), nine: (i64, i64)) -> (Market, Bucket, Vec<Drop>) {
        let market = Market::new(config);
        let (start, venue) = (market.config().start, market.venues()[0].id);
        let day = market.dates().nth(2).expect("two weeks");
        let at = |seconds: i64| start + Span::secs(seconds);
        let table = |hour: i8, minute: i8, open: (i64, i64)| Table {
            venue,
            start: day.at(hour, minute, 0, 0),
            parties: (1, 8),
            open: vec![(at(open.0), at(open.1))],
        };
        let market = market.with_table(&table(20, 30, half_past)).with_table(&table(21, 0, nine));
        let watch = Watch::default();
        let drops = market.truth().drops(&watch, start, start + Span::hours(1));
        (market, Bucket::new(day, watch.times[1]), drops)
    }

    /// A venue's table at 20:30 is open from the 60th second to the 90th, its table at 21:00 from the 80th on. Looks at
    /// these seconds, the last of them not whole, tell of the one at 21:00.
    fn tallied_later_table(seconds: &[i64]) -> Tally {
        let (market, bucket, drops) = evening(MarketConfig::still(1, 3), (60, 90), (80, 4_000));
        assert_eq!(drops.len(), 1, "the later table opens where there is one: {drops:?}");
        let at = |seconds: i64| market.config().start + Span::secs(seconds);
        let mut looks: Vec<Poll> = seconds.iter().map(|seconds| Poll::at(at(*seconds))).collect();
        let last = looks.last_mut().expect("looks");
        last.whole = false;
        let slot = Slot { venue: market.venues()[0].id, start: bucket.day.at(21, 0, 0, 0) };
        let told = [Told { bucket, slot, at: last.began }];
        tally(market.truth(), &Watch::default(), &drops, |_| true, &[(bucket, looks)].into(), &told)
    }

    #[test]
    fn what_a_part_of_an_answer_shows_where_there_was_nothing_is_right() {
        let seen = tallied_later_table(&[0, 20, 40, 100]);
        assert!(seen.wrong.is_empty(), "{:?}", seen.wrong);
        assert_eq!(seen.too_short, 1, "the first table was gone before anybody looked");
    }

    /// A venue that is not listed while it has nothing has a table at 20:30 from the 20th second to the 70th, which only
    /// a part of an answer shows, and one at 21:00 from the 100th to the 140th. Whole looks at these seconds and at the
    /// 120th tell nothing of the second.
    fn tallied_after_a_part(whole: &[i64]) -> Tally {
        let config = MarketConfig { absent_one_in: 1, ..MarketConfig::still(1, 3) };
        let (market, bucket, drops) = evening(config, (20, 70), (100, 140));
        assert_eq!(drops.len(), 2, "{drops:?}");
        let at = |seconds: i64| market.config().start + Span::secs(seconds);
        let seconds: std::collections::BTreeSet<i64> = whole.iter().copied().chain([30, 120]).collect();
        let look = |second: i64| {
            let mut look = Poll::at(at(second));
            look.whole = second != 30;
            look
        };
        let looks: Vec<Poll> = seconds.into_iter().map(look).collect();
        let slot = Slot { venue: market.venues()[0].id, start: bucket.day.at(20, 30, 0, 0) };
        let told = [Told { bucket, slot, at: at(30) }];
        tally(market.truth(), &Watch::default(), &drops, |_| true, &[(bucket, looks)].into(), &told)
    }

    #[test]
    fn a_venue_missing_once_since_a_part_of_an_answer_showed_it_is_not_known_to_have_had_nothing() {
        let once = tallied_after_a_part(&[0, 10, 90]);
        assert_eq!((once.unproven, once.untold.len()), (1, 0), "{once:?}");
        let twice = tallied_after_a_part(&[0, 10, 80, 90]);
        assert_eq!((twice.unproven, twice.untold.len()), (0, 1), "{twice:?}");
    }

    #[test]
    fn what_opens_beside_a_table_that_a_look_has_shown_is_wrong() {
        let seen = tallied_later_table(&[0, 20, 70, 100]);
        assert!(matches!(seen.wrong[..], [(_, Wrong::Unexplained)]), "{:?}", seen.wrong);
    }
}
