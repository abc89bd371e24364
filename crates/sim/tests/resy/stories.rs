//! Small stories with tables put in by hand: what is a drop and what is not.

use stakeout_sim::resy::{Drop, Look, Report, Table, Verdict, Watch};

use super::*;

struct Story {
    market: Market,
    start: Time,
    day: Date,
    venue: u64,
}

impl Story {
    fn new(absent_one_in: u64) -> Story {
        let market = Market::new(MarketConfig { absent_one_in, ..MarketConfig::still(1, 3) });
        let (start, day, venue) = (market.config().start, date(2, &market), market.venues()[0].id);
        Story { market, start, day, venue }
    }

    fn at(&self, secs: i64) -> Time {
        self.start + Span::secs(secs)
    }

    /// A table for that hour and minute, open during these seconds of the story.
    fn open(mut self, hour: i8, minute: i8, parties: (u8, u8), open: &[(i64, i64)]) -> Story {
        let open = open.iter().map(|(from, until)| (self.at(*from), self.at(*until))).collect();
        let start = self.day.at(hour, minute, 0, 0);
        self.market = self.market.with_table(&Table { venue: self.venue, start, parties, open });
        self
    }

    /// What is told by somebody who looks at the evening at these seconds.
    fn told(&self, evening_looks: &[i64]) -> Vec<(i64, String)> {
        self.told_of(&[(evening(self.day), evening_looks)])
    }

    fn told_of(&self, looks: &[(Bucket, &[i64])]) -> Vec<(i64, String)> {
        let all = looks
            .iter()
            .flat_map(|(bucket, at)| at.iter().map(|at| Look { at: self.at(*at), bucket: *bucket }));
        let drops = self.market.truth().expected(&Watch::default(), &all.collect::<Vec<_>>());
        drops.iter().map(|drop| self.short(drop)).collect()
    }

    fn short(&self, drop: &Drop) -> (i64, String) {
        ((drop.seen - self.start).as_us() / 1_000_000, drop.slot.start.strftime("%H:%M").to_string())
    }
}

fn drop(at: i64, time: &str) -> (i64, String) {
    (at, time.to_owned())
}

/// Something that is always open elsewhere, so that the bucket is never empty.
fn busy(absent_one_in: u64) -> Story {
    let mut story = Story::new(absent_one_in);
    let own = std::mem::replace(&mut story.venue, story.market.venues()[1].id);
    story = story.open(21, 0, (1, 8), &[(-1_000, 1_000_000)]);
    story.venue = own;
    story
}

#[test]
fn a_table_at_a_venue_that_had_none_is_a_drop_once() {
    let story = busy(0).open(19, 30, (2, 4), &[(100, 900)]);
    assert_eq!(story.told(&[0, 60, 120, 180]), [drop(120, "19:30")]);
    assert_eq!(story.told(&[120, 180]), [], "what the first look finds is the baseline");
    assert_eq!(story.told(&[0, 60, 950]), [], "gone before anybody looked");
}

#[test]
fn more_tables_at_a_venue_that_has_some_are_no_drops() {
    let story = busy(0).open(19, 30, (2, 4), &[(100, 900)]).open(20, 0, (2, 4), &[(300, 900)]);
    assert_eq!(story.told(&[0, 200, 400]), [drop(200, "19:30")]);
    assert_eq!(
        story.told(&[0, 400]),
        [drop(400, "19:30"), drop(400, "20:00")],
        "both came since the last look"
    );
}

#[test]
fn a_flap_is_told_once_in_half_an_hour() {
    let story = busy(0).open(19, 30, (2, 2), &[(100, 150), (200, 250), (2_000, 2_100)]);
    assert_eq!(story.told(&[0, 120, 170, 220, 300, 2_050]), [drop(120, "19:30"), drop(2_050, "19:30")]);
    assert_eq!(story.told(&[0, 220, 300, 2_010, 2_050]), [drop(220, "19:30")], "29:50 after it was told");
}

#[test]
fn a_venue_that_is_absent_has_none_only_when_two_looks_say_so() {
    let story = busy(1).open(19, 30, (2, 2), &[(100, 900)]);
    assert_eq!(story.told(&[60, 120]), []);
    assert_eq!(story.told(&[30, 60, 120]), [drop(120, "19:30")]);
}

#[test]
fn an_empty_first_answer_is_the_baseline_only_with_a_second() {
    let story = Story::new(0).open(19, 30, (2, 2), &[(100, 900)]);
    assert_eq!(story.told(&[0, 120, 180]), [], "the second look is the baseline, then");
    assert_eq!(story.told(&[0, 60, 120]), [drop(120, "19:30")]);
}

#[test]
fn a_slot_in_two_buckets_is_told_by_the_one_that_sees_it_first() {
    let story = busy(0).open(17, 45, (2, 2), &[(100, 900)]);
    let (afternoon, evening) = (afternoon(story.day), evening(story.day));
    // Something in the afternoon, too, so that its first answer is not empty.
    let story =
        Story { venue: story.market.venues()[2].id, ..story }.open(13, 0, (1, 8), &[(-1_000, 1_000_000)]);
    assert_eq!(story.told_of(&[(afternoon, &[0, 110]), (evening, &[0, 120])]), [drop(110, "17:45")]);
    assert_eq!(story.told_of(&[(afternoon, &[0, 130]), (evening, &[0, 120])]), [drop(120, "17:45")]);
}

#[test]
fn a_party_size_nobody_asks_for_is_not_seen() {
    let story = busy(0).open(19, 30, (5, 8), &[(100, 900)]);
    assert_eq!(story.told(&[0, 120]), []);
    let shown = story.market.truth().shown(evening(story.day), &[6], story.at(120));
    assert_eq!(shown.keys().filter(|slot| slot.venue == story.venue).count(), 1);
}

#[test]
fn a_false_report_is_found_out() {
    let story = busy(0).open(19, 30, (2, 4), &[(100, 900)]).open(20, 0, (2, 4), &[(300, 900)]);
    let verdict = |hour: i8, minute: i8, since, at| {
        let slot = Slot { venue: story.venue, start: story.day.at(hour, minute, 0, 0) };
        let report = Report { bucket: evening(story.day), slot, since: story.at(since), at: story.at(at) };
        story.market.truth().verdict(&Watch::default(), &report)
    };
    assert_eq!(verdict(19, 30, 60, 120), Verdict::True { opened: story.at(100) });
    assert_eq!(verdict(19, 30, 60, 90), Verdict::NotOpen);
    assert_eq!(verdict(19, 30, 120, 180), Verdict::AlreadyOpen);
    assert_eq!(verdict(20, 0, 200, 320), Verdict::VenueHadSlots);
    assert_eq!(verdict(21, 30, 60, 120), Verdict::NotOpen);
}
