use std::path::PathBuf;
use std::sync::Arc;

use stakeout_store::Store;

use super::find::find;
use super::*;
use crate::config::Loaded;
use crate::open::Database;
use crate::simulate::racing::RacingDay;

fn place(text: &str) -> Place {
    let loaded = Loaded::from_text("stakeout.toml", text).expect("valid");
    Place { loaded, database: Database::File(PathBuf::from("unused.db")) }
}

/// What the words find, or why they do not.
async fn found(store: &dyn Store, place: &Place, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match find(place, store, &words).await {
        Ok(found) => format!("{} {} {}", found.source, found.record.kind, found.record.key),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_record_is_found_by_what_people_type() {
    let day = RacingDay { races: 3, ..RacingDay::new(1) }.run().expect("the day runs");
    let told = day.events.iter().find(|e| e.event_type == "racing.odds.moved").expect("a price moved");
    let (key, name) = (told.subject_key.as_str(), told.data["record"]["name"].as_str().expect("a name"));
    let store: Arc<dyn Store> = day.store;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let entrant = format!("nz racing_entrants {key}");
        // With its source configured, and from the store alone.
        for place in [place("[source.nz]\nkind = \"racing\""), place("")] {
            let is = async |words: &[&str], expected: &str| {
                assert_eq!(found(&*store, &place, words).await, expected, "{words:?}");
            };
            is(&[key], &entrant).await;
            is(&[&told.subject.to_string()], &entrant).await;
            is(&[name], &entrant).await;
            is(&[&name.to_uppercase()], &entrant).await;
            is(&["nz", "racing_entrants", key], &entrant).await;
            is(&["nz", "entrants", key], &entrant).await;
            let race = told.target.trim_start_matches("race/");
            is(&[race], &format!("nz racing_races {race}")).await;
            is(&["nz", "entrants"], "expected one RECORD, or SOURCE KIND KEY").await;
            let unknown = found(&*store, &place, &["No Such Horse"]).await;
            assert!(unknown.starts_with("no source has a record \"No Such Horse\""), "{unknown}");
            let some = found(&*store, &place, &[&name[..1]]).await;
            assert!(some == entrant || some.contains("may be any of nz racing_entrants"), "{some}");
        }
    });
}
