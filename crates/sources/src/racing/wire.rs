//! The upstream's own types: only what is used of them, everything optional.
//!
//! Both shapes are read: the real envelope `{header, params, data}`, and a bare `{race, entrants, money_flow}` whose
//! fields stand at the top.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess};
use stakeout_core::{Failure, FailureClass, Time};

use crate::lenient::{Fields, Leaf, List, upstream_object};

/// How much of the upstream's own words about an error is shown.
const SHOWN_CHARS: usize = 200;

upstream_object! {
    /// What precedes every real answer.
    Header {
        "generated_time" => generated_time: Leaf<'a>,
        "error" => error: Leaf<'a>,
        "error_code" => error_code: Leaf<'a>,
    }
}

upstream_object! {
    /// One race with everything around it.
    EventData {
        "race" => race: Race<'a>,
        "runners" => runners: List<Runner<'a>>,
        "entrants" => entrants: List<Runner<'a>>,
        "money_tracker" => money_tracker: MoneyTracker<'a>,
        "money_flow" => money_flow: MoneyFlow<'a>,
        "tote_pools" => tote_pools: List<Pool<'a>>,
        "results" => results: List<Placing<'a>>,
        "dividends" => dividends: List<Dividend<'a>>,
        "error" => error: Leaf<'a>,
    }
}

upstream_object! {
    /// The race itself.
    Race {
        "event_id" => event_id: Leaf<'a>,
        "meeting_id" => meeting_id: Leaf<'a>,
        "meeting_name" => meeting_name: Leaf<'a>,
        "status" => status: Leaf<'a>,
        "description" => description: Leaf<'a>,
        "advertised_start" => advertised_start: Leaf<'a>,
        "actual_start" => actual_start: Leaf<'a>,
        "race_date_nz" => race_date_nz: Leaf<'a>,
        "race_number" => race_number: Leaf<'a>,
        "type" => category: Leaf<'a>,
        "country" => country: Leaf<'a>,
        "state" => state: Leaf<'a>,
        "distance" => distance: Leaf<'a>,
        "weather" => weather: Leaf<'a>,
        "track_condition" => track_condition: Leaf<'a>,
        "protest" => protest: Leaf<'a>,
        "protest_reason" => protest_reason: Leaf<'a>,
    }
}

upstream_object! {
    /// One of its runners.
    Runner {
        "entrant_id" => entrant_id: Leaf<'a>,
        "name" => name: Leaf<'a>,
        "runner_number" => runner_number: Leaf<'a>,
        "barrier" => barrier: Leaf<'a>,
        "jockey" => jockey: Leaf<'a>,
        "trainer_name" => trainer_name: Leaf<'a>,
        "is_scratched" => is_scratched: Leaf<'a>,
        "is_late_scratched" => is_late_scratched: Leaf<'a>,
        "scratch_time" => scratch_time: Leaf<'a>,
        "scr_time" => scr_time: Leaf<'a>,
        "is_emergency" => is_emergency: Leaf<'a>,
        "favourite" => favourite: Leaf<'a>,
        "mover" => mover: Leaf<'a>,
        "odds" => odds: Odds<'a>,
        "flucs_with_timestamp" => flucs: Flucs<'a>,
    }
}

upstream_object! {
    /// A runner's prices.
    Odds {
        "fixed_win" => fixed_win: Leaf<'a>,
        "fixed_place" => fixed_place: Leaf<'a>,
        "pool_win" => pool_win: Leaf<'a>,
        "pool_place" => pool_place: Leaf<'a>,
    }
}

upstream_object! {
    /// The upstream's own record of the last fixed-win moves; the entries left out repeat these.
    Flucs {
        "open" => open: Fluc<'a>,
        "last_six" => last_six: List<Fluc<'a>>,
    }
}

upstream_object! {
    /// One move.
    Fluc {
        "timestamp" => timestamp: Leaf<'a>,
        "fluc" => fluc: Leaf<'a>,
    }
}

upstream_object! {
    /// Where the money is.
    MoneyTracker {
        "entrants" => entrants: List<MoneyRow<'a>>,
    }
}

upstream_object! {
    /// The same in the bare shape.
    MoneyFlow {
        "entrant_liabilities" => entrant_liabilities: List<MoneyRow<'a>>,
    }
}

upstream_object! {
    /// A slice of an entrant's money; there are many per entrant.
    MoneyRow {
        "entrant_id" => entrant_id: Leaf<'a>,
        "hold_percentage" => hold_percentage: Leaf<'a>,
        "bet_percentage" => bet_percentage: Leaf<'a>,
    }
}

upstream_object! {
    /// A tote pool.
    Pool {
        "product_type" => product_type: Leaf<'a>,
        "total" => total: Leaf<'a>,
        "status" => status: Leaf<'a>,
    }
}

upstream_object! {
    /// One line of the result.
    Placing {
        "position" => position: Leaf<'a>,
        "runner_number" => runner_number: Leaf<'a>,
        "entrant_id" => entrant_id: Leaf<'a>,
        "name" => name: Leaf<'a>,
        "margin_length" => margin_length: Leaf<'a>,
    }
}

upstream_object! {
    /// What a product paid.
    Dividend {
        "tote" => tote: Leaf<'a>,
        "product_name" => product_name: Leaf<'a>,
        "status" => status: Leaf<'a>,
        "dividend" => dividend: Leaf<'a>,
        "pool_size" => pool_size: Leaf<'a>,
        "positions" => positions: List<DividendPosition<'a>>,
    }
}

upstream_object! {
    /// A runner that a dividend is about.
    DividendPosition {
        "position" => position: Leaf<'a>,
        "runner_number" => runner_number: Leaf<'a>,
    }
}

upstream_object! {
    /// A page of meetings.
    MeetingsData {
        "meetings" => meetings: List<Meeting<'a>>,
        "error" => error: Leaf<'a>,
    }
}

upstream_object! {
    /// A page of meetings, only counted.
    MeetingsCount {
        "meetings" => meetings: List<IgnoredAny>,
        "error" => error: Leaf<'a>,
    }
}

upstream_object! {
    /// A meeting: one place, one day.
    Meeting {
        "meeting" => meeting: Leaf<'a>,
        "name" => name: Leaf<'a>,
        "date" => date: Leaf<'a>,
        "country" => country: Leaf<'a>,
        "state" => state: Leaf<'a>,
        "category" => category: Leaf<'a>,
        "category_name" => category_name: Leaf<'a>,
        "track_condition" => track_condition: Leaf<'a>,
        "tote_status" => tote_status: Leaf<'a>,
        "races" => races: List<ListedRace<'a>>,
    }
}

upstream_object! {
    /// A race as the list of meetings shows it.
    ListedRace {
        "id" => id: Leaf<'a>,
        "race_number" => race_number: Leaf<'a>,
        "name" => name: Leaf<'a>,
        "start_time" => start_time: Leaf<'a>,
        "distance" => distance: Leaf<'a>,
        "track_condition" => track_condition: Leaf<'a>,
        "weather" => weather: Leaf<'a>,
        "country" => country: Leaf<'a>,
        "state" => state: Leaf<'a>,
        "status" => status: Leaf<'a>,
        "protest" => protest: Leaf<'a>,
        "protest_reason" => protest_reason: Leaf<'a>,
    }
}

/// What an answer can be about.
pub(super) trait Data<'a>: Fields<'a> {
    /// What went wrong, in the upstream's words.
    fn error(&self) -> &Leaf<'a>;
}

impl<'a> Data<'a> for EventData<'a> {
    fn error(&self) -> &Leaf<'a> {
        &self.error
    }
}

impl<'a> Data<'a> for MeetingsData<'a> {
    fn error(&self) -> &Leaf<'a> {
        &self.error
    }
}

impl<'a> Data<'a> for MeetingsCount<'a> {
    fn error(&self) -> &Leaf<'a> {
        &self.error
    }
}

/// A whole answer in either shape.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer<'a, T> {
    header: Header<'a>,
    pub(super) data: T,
}

impl<'a, T: Data<'a> + Deserialize<'a>> Fields<'a> for Answer<'a, T> {
    fn read<A: MapAccess<'a>>(&mut self, key: &[u8], map: &mut A) -> Result<bool, A::Error> {
        match key {
            b"header" => self.header = map.next_value()?,
            b"data" => self.data = map.next_value()?,
            _ => return self.data.read(key, map),
        }
        Ok(true)
    }
}

struct Whole<T>(T);

impl<'de, T: Fields<'de>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Whole<T>, D::Error> {
        T::object(deserializer).map(Whole)
    }
}

impl<'a, T: Data<'a> + Deserialize<'a>> Answer<'a, T> {
    /// Reads a body; an error that the upstream reports with a good status is a failure all the same.
    pub(super) fn read_from(body: &'a [u8]) -> Result<Answer<'a, T>, Failure> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        // Proven to be text once, not string by string. What is not may still be so where it matters.
        let read = match std::str::from_utf8(body) {
            Ok(text) => serde_json::from_str(text),
            Err(_) => serde_json::from_slice(body),
        };
        let Whole(answer): Whole<Answer<'a, T>> = read.map_err(|error| {
            Failure::malformed(format!("expected JSON, found {} bytes: {error}", body.len()))
        })?;
        let reported = [&answer.header.error, &answer.header.error_code, answer.data.error()];
        if let Some(words) = reported.into_iter().find_map(Leaf::text) {
            let words: String = words.chars().take(SHOWN_CHARS).collect();
            let message = format!("the upstream answered with an error: {words}");
            return Err(Failure::new(FailureClass::ServerError, message));
        }
        Ok(answer)
    }

    /// The upstream's own stamp of this answer.
    pub(super) fn as_of(&self) -> Option<Time> {
        self.header.generated_time.time()
    }
}
