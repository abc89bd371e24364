//! The hours in which an alert may ring.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::Time;

use crate::ConfigRefused;

/// Hours of the day in a zone; `from` after `to` goes over midnight.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hours {
    /// From this time of day on, as `08:00`.
    pub from: String,
    /// Until just before this one.
    pub to: String,
    /// The IANA name of the zone.
    pub zone: String,
}

impl Hours {
    pub(super) fn check(&self) -> Result<(), ConfigRefused> {
        for (key, text) in [("hours.from", &self.from), ("hours.to", &self.to)] {
            if minutes(text).is_none() {
                let message = format!("expected a time of day such as \"08:00\", found {text:?}");
                return Err(ConfigRefused::new(key, message));
            }
        }
        // The end of a day is the beginning of the next: from there to there is no time at all.
        if (minutes(&self.from), minutes(&self.to)) == (Some(DAY), Some(0)) || self.from == self.to {
            let message = format!(
                "expected another time than from, found {:?}: all day is \"00:00\" to \"24:00\"",
                self.to
            );
            return Err(ConfigRefused::new("hours.to", message));
        }
        if TimeZone::get(&self.zone).is_err() {
            let message =
                format!("expected an IANA time zone such as \"Pacific/Auckland\", found {:?}", self.zone);
            return Err(ConfigRefused::new("hours.zone", message));
        }
        Ok(())
    }

    /// Whether the alert may ring at this moment. Hours that cannot be understood never forbid anything.
    pub(super) fn hold(&self, at: Time) -> bool {
        let (Some(from), Some(to)) = (minutes(&self.from), minutes(&self.to)) else { return true };
        let (Ok(zone), Ok(moment)) = (TimeZone::get(&self.zone), Timestamp::from_microsecond(at.us())) else {
            return true;
        };
        let local = zone.to_datetime(moment);
        let now = i32::from(local.hour()) * 60 + i32::from(local.minute());
        if from <= to { (from..to).contains(&now) } else { now >= from || now < to }
    }
}

/// The minutes of a day.
const DAY: i32 = 24 * 60;

/// The minutes since midnight of `HH:MM`; 24:00 is the end of the day.
pub(super) fn minutes(text: &str) -> Option<i32> {
    let (hours, minutes) = text.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let day = hours * 60 + minutes;
    (hours >= 0 && (0..60).contains(&minutes) && (0..=DAY).contains(&day)).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(from: &str, to: &str) -> Hours {
        Hours { from: from.into(), to: to.into(), zone: "Pacific/Auckland".into() }
    }

    fn at(text: &str) -> Time {
        Time::parse(text).expect("a time")
    }

    #[test]
    fn hours_are_those_of_the_zone_summer_time_included() {
        let day = hours("08:00", "22:00");
        // In January Auckland is 13 hours ahead, in July 12.
        assert!(day.hold(at("2026-01-09T19:00:00Z")) && !day.hold(at("2026-01-09T18:59:59Z")));
        assert!(day.hold(at("2026-07-09T20:00:00Z")) && !day.hold(at("2026-07-09T19:59:59Z")));
        assert!(!day.hold(at("2026-01-10T09:00:00Z")), "the end is not part of it");
    }

    #[test]
    fn hours_may_go_over_midnight() {
        let night = hours("22:00", "06:00");
        assert!(night.hold(at("2026-01-10T09:00:00Z")) && night.hold(at("2026-01-10T16:59:00Z")));
        assert!(!night.hold(at("2026-01-10T17:00:00Z")));
        assert!(hours("00:00", "24:00").hold(at("2026-01-10T10:59:59Z")), "24:00 is the end of the day");
    }

    #[test]
    fn what_is_no_time_of_day_is_refused() {
        for wrong in ["8:00", "25:00", "24:01", "08:60", "eight", "-1:00", ""] {
            assert_eq!(minutes(wrong), None, "{wrong}");
        }
        assert_eq!(hours("8", "22:00").check().expect_err("refused").key, "hours.from");
        for (from, to) in [("08:00", "08:00"), ("00:00", "00:00"), ("24:00", "24:00"), ("24:00", "00:00")] {
            assert_eq!(hours(from, to).check().expect_err("no time at all").key, "hours.to");
        }
        assert!(hours("00:00", "24:00").check().is_ok() && hours("24:00", "06:00").check().is_ok());
        let nowhere = Hours { zone: "Nowhere".into(), ..hours("08:00", "22:00") };
        assert_eq!(nowhere.check().expect_err("refused").key, "hours.zone");
    }
}
