//! What a request asks for.

use jiff::civil::{Date, Time as Clock};
use serde_json::Value;

use super::bucket::{Bucket, minute_of};
use super::venue::Venue;
use super::view::ViewKey;

/// Venues on a page at most, whatever is asked for.
const PER_PAGE_MAX: u64 = 75;
const PER_PAGE_DEFAULT: u64 = 20;
const METRES_PER_DEGREE: f64 = 111_320.0;

/// A POST request, as the upstream gets it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The path.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Search {
    pub(crate) view: ViewKey,
    pub(crate) area: Area,
    pub(crate) query: String,
    pub(crate) page: u32,
    pub(crate) per_page: u32,
    /// Whether tables are asked for at all.
    pub(crate) availability: bool,
}

/// Where to search, as the bits of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Area {
    Everywhere,
    /// South, west, north, east.
    Box([u64; 4]),
    /// Latitude, longitude, metres.
    Circle([u64; 3]),
}

impl Search {
    /// The search of a body, or what is wrong with it.
    pub(crate) fn read(body: &[u8]) -> Result<Search, String> {
        let body: Value = serde_json::from_slice(body).map_err(|_| "the body is not JSON".to_owned())?;
        let filter = &body["slot_filter"];
        let day = filter["day"].as_str().and_then(|day| day.parse::<Date>().ok());
        let day = day.ok_or("slot_filter.day: expected a date as YYYY-MM-DD")?;
        let minute = match &filter["time_filter"] {
            Value::Null => None,
            time => {
                let time = time.as_str().and_then(|time| time.parse::<Clock>().ok());
                Some(minute_of(time.ok_or("slot_filter.time_filter: expected a time as HH:MM")?))
            }
        };
        let party = filter["party_size"].as_u64().and_then(|n| u8::try_from(n).ok()).filter(|n| *n > 0);
        let party = party.ok_or("slot_filter.party_size: expected a number from 1")?;
        Ok(Search {
            view: ViewKey { day, minute, party },
            area: Area::read(&body["geo"])?,
            query: body["query"].as_str().unwrap_or_default().to_lowercase(),
            page: body["page"].as_u64().unwrap_or(1).clamp(1, 100_000) as u32,
            per_page: body["per_page"].as_u64().unwrap_or(PER_PAGE_DEFAULT).clamp(1, PER_PAGE_MAX) as u32,
            availability: body["availability"].as_bool().unwrap_or(false),
        })
    }

    /// The bucket it is about.
    pub(crate) fn bucket(&self) -> Option<Bucket> {
        let minute = self.view.minute?;
        let time = Clock::new((minute / 60) as i8, (minute % 60) as i8, 0, 0).ok()?;
        Some(Bucket::new(self.view.day, time))
    }

    pub(crate) fn wants(&self, venue: &Venue) -> bool {
        self.area.holds(venue.place)
            && (self.query.is_empty() || venue.name.to_lowercase().contains(&self.query))
    }
}

impl Area {
    fn read(geo: &Value) -> Result<Area, String> {
        let number = |value: &Value| value.as_f64().map(f64::to_bits);
        if geo.is_null() {
            return Ok(Area::Everywhere);
        }
        if let Some(sides) = geo["bounding_box"].as_array() {
            let sides: Option<Vec<u64>> = sides.iter().map(number).collect();
            let sides = sides.and_then(|sides| sides.try_into().ok());
            return sides
                .map(Area::Box)
                .ok_or_else(|| "geo.bounding_box: expected south, west, north, east".to_owned());
        }
        match (number(&geo["latitude"]), number(&geo["longitude"]), number(&geo["radius"])) {
            (Some(latitude), Some(longitude), Some(metres)) => {
                Ok(Area::Circle([latitude, longitude, metres]))
            }
            _ => Err("geo: expected a bounding_box, or latitude, longitude and radius".to_owned()),
        }
    }

    fn holds(&self, (latitude, longitude): (f64, f64)) -> bool {
        match self {
            Area::Everywhere => true,
            Area::Box(sides) => {
                let [south, west, north, east] = sides.map(f64::from_bits);
                (south..=north).contains(&latitude) && (west..=east).contains(&longitude)
            }
            Area::Circle(circle) => {
                let [centre, meridian, metres] = circle.map(f64::from_bits);
                let north = (latitude - centre) * METRES_PER_DEGREE;
                let east = (longitude - meridian) * METRES_PER_DEGREE * centre.to_radians().cos();
                north.hypot(east) <= metres
            }
        }
    }
}
