//! Simulated days of restaurant tables through the real engine and parser, compared with the simulator's truth.

use stakeout::simulate::tables::{TablesDays, TablesReport};
use stakeout_sources::tables::Rate;

/// A street of restaurants, for a day.
fn street(seed: u64) -> TablesDays {
    TablesDays { days: 1, venues: 16, budget: Rate::per_minute(3.0), ..TablesDays::new(seed) }
}

fn nothing_false_and_nothing_missed(report: &TablesReport) {
    let allowed = (report.budget.per_second() * 86_400.0) as u64;
    for way in [&report.adaptive, &report.uniform] {
        assert_eq!(way.false_drops, 0, "{:#?}", report.remarks);
        assert_eq!(way.missed_though_seen, 0, "{:#?}", report.remarks);
        assert!(way.seen > 0 && way.seen + way.missed == report.drops, "{way:?}");
        assert!(way.requests <= allowed, "within the budget: {}", way.requests);
    }
    assert!(report.oracle.seen >= report.adaptive.seen, "nobody beats the oracle");
}

#[test]
fn a_day_with_outages_that_answer_empty_for_minutes_brings_no_false_alert_and_misses_nothing() {
    let report = TablesDays { outages_per_day: 12.0, ..street(2) }.run().expect("the day runs");
    nothing_false_and_nothing_missed(&report);
    let [adaptive, uniform] = [&report.adaptive, &report.uniform].map(|way| way.mean_delay_ms);
    assert!(adaptive < uniform, "drops are found sooner where most of them are: {adaptive:?}, {uniform:?}");
}

#[test]
fn a_day_with_every_sort_of_fault_brings_no_false_alert_and_misses_nothing() {
    let day = TablesDays { faults: 0.002, outages_per_day: 6.0, ..street(1) };
    nothing_false_and_nothing_missed(&day.run().expect("the day runs"));
}

#[test]
fn a_day_of_pages_that_shift_while_they_are_read_brings_no_false_alert_and_misses_nothing() {
    // Three pages per party size, five seconds apart: venues move from page to page in between.
    let day = TablesDays {
        venues: 12,
        per_page: 4,
        budget: Rate::per_minute(12.0),
        faults: 0.002,
        outages_per_day: 4.0,
        ..street(3)
    };
    nothing_false_and_nothing_missed(&day.run().expect("the day runs"));
}
