//! A simulated day of restaurant tables through the real engine and parser, compared with the simulator's truth.

use stakeout::simulate::tables::TablesDays;
use stakeout_sources::tables::Rate;

#[test]
fn a_day_with_outages_that_answer_empty_for_minutes_brings_no_false_alert() {
    let street = TablesDays {
        days: 1,
        venues: 16,
        budget: Rate::per_minute(3.0),
        outages_per_day: 12.0,
        ..TablesDays::new(2)
    };
    let report = street.run().expect("the day runs");
    for way in [&report.adaptive, &report.uniform] {
        assert_eq!(way.false_drops, 0, "{:#?}", report.remarks);
        assert!(way.seen > 0 && way.seen + way.missed == report.drops, "{way:?}");
        assert!(way.requests <= 3 * 60 * 24, "within the budget: {}", way.requests);
    }
    assert!(report.oracle.seen >= report.adaptive.seen, "nobody beats the oracle");
}
