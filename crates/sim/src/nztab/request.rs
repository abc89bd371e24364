//! What a request asks for.

use jiff::ToSpan;
use jiff::civil::Date;
use stakeout_core::Time;

use super::nz::nz_date;

/// The event endpoint's switches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) money_tracker: bool,
    pub(crate) tote_trends: bool,
    pub(crate) will_pays: bool,
    pub(crate) big_bets: bool,
}

/// The listing's filters.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) from: Date,
    pub(crate) to: Date,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) category: Option<String>,
    pub(crate) country: Option<String>,
    pub(crate) ids: Option<Vec<String>>,
}

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 200;

impl Flags {
    pub(crate) fn read(query: &str) -> Flags {
        let on = |name| value(query, name) == Some("true");
        Flags {
            money_tracker: on("with_money_tracker"),
            tote_trends: on("with_tote_trends_data"),
            will_pays: on("with_will_pays"),
            big_bets: on("with_big_bets"),
        }
    }
}

impl Filter {
    /// The filter of a query at `now`, or what is wrong with it.
    pub(crate) fn read(query: &str, now: Time) -> Result<Filter, String> {
        let number = |name, default| match value(query, name) {
            None => Ok(default),
            Some(text) => {
                text.parse::<usize>().map_err(|_| format!("{name}: expected a number, found {text:?}"))
            }
        };
        let owned = |name| value(query, name).filter(|v| !v.is_empty()).map(str::to_owned);
        Ok(Filter {
            from: date(value(query, "date_from"), now, Date::MIN)?,
            to: date(value(query, "date_to"), now, Date::MAX)?,
            limit: number("limit", LIMIT_DEFAULT)?.min(LIMIT_MAX),
            offset: number("offset", 0)?,
            category: owned("category"),
            country: owned("country"),
            ids: value(query, "ids").map(|ids| ids.split(',').map(str::to_owned).collect()),
        })
    }
}

/// A date, or one of the upstream's words; `far` is what `all` means on this side.
fn date(text: Option<&str>, now: Time, far: Date) -> Result<Date, String> {
    let today = nz_date(now);
    match text {
        None | Some("" | "today") => Ok(today),
        Some("all") => Ok(far),
        Some("week") => Ok(today.saturating_add(7.days())),
        Some("month") => Ok(today.saturating_add(1.month())),
        Some(text) => text.parse().map_err(|_| format!("expected a date as YYYY-MM-DD, found {text:?}")),
    }
}

pub(crate) fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}
