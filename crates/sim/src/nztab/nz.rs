//! New Zealand time, which the upstream counts its days in.

use std::sync::OnceLock;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use stakeout_core::Time;

fn zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let bundled =
        || TimeZone::get("Pacific/Auckland").expect("the zone is there because the database is bundled");
    ZONE.get_or_init(bundled).clone()
}

pub(crate) fn local(at: Time) -> Zoned {
    let utc = jiff::Timestamp::from_microsecond(at.us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    utc.to_zoned(zone())
}

/// The New Zealand date at that moment.
pub fn nz_date(at: Time) -> Date {
    local(at).date()
}

/// The moment a clock in New Zealand shows that time on that date.
///
/// # Panics
/// When the date is outside the years that time can be counted in.
pub fn nz_time(date: Date, hour: i8, minute: i8) -> Time {
    let zoned = date.at(hour, minute, 0, 0).to_zoned(zone()).expect("a racing day is a day of this era");
    Time(zoned.timestamp().as_microsecond())
}

/// The hour of the meeting's own day: after midnight it goes on counting, 24:35:00.
pub(crate) fn tote_clock(day: Date, at: Time) -> String {
    let local = local(at);
    let hours = if local.date() > day { 24 } else { 0 } + i32::from(local.hour());
    format!("{hours:02}:{:02}:{:02}", local.minute(), local.second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_morning_in_new_zealand_is_the_evening_before_in_utc() {
        let day = Date::constant(2026, 1, 10);
        let start = nz_time(day, 11, 45);
        assert_eq!(start.to_string(), "2026-01-09T22:45:00.000Z", "summer time, 13 hours ahead");
        assert_eq!(nz_date(start), day);
        assert_eq!(local(start).strftime("%H:%M:%S %Z").to_string(), "11:45:00 NZDT");
        let night = nz_time(Date::constant(2026, 1, 11), 0, 35);
        assert_eq!(tote_clock(day, night), "24:35:00");
    }
}
