//! The queries in the guide run, and find something.

use serde_json::json;
use stakeout_core::Span;

use crate::support::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tables.md");

#[test]
fn every_query_in_the_guide_runs_and_finds_something() {
    let mut world = World::new();
    world.watch(&every_minute(json!({ "days": 2 })), Span::mins(20), |m, question| {
        let opens = |n: i64| -> &[&str] { if m < n { &[] } else { &["20:30"] } };
        let second: &[&str] = if m < 8 { &["19:00", "21:00"] } else { &["19:00"] };
        let day = question.day.as_str();
        Ok(page(&[venue_on(day, 1, opens(5)), venue_on(day, 2, second), venue_on(day, 3, opens(9))]))
    });
    let text = std::fs::read_to_string(PAGE).expect("the guide");
    let queries: Vec<&str> =
        text.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(queries.len() >= 5, "only {} queries", queries.len());
    for query in queries {
        assert!(!world.column(query.trim().trim_end_matches(';')).is_empty(), "finds nothing: {query}");
    }
}
