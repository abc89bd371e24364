//! Resy's venue search.
//!
//! An id is a number or `{"resy": n}`; times are on the venue's clock without a zone; `availability` may be null. What
//! is not used is skipped in the bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use stakeout_core::{Failure, Method, Request};

use super::clock;
use super::provider::{Ask, Asked, Hit, Offer, Page, Provider};
use crate::lenient::{Fields, First, Leaf, List, upstream_object};

/// How much of a surprising answer is shown.
const SHOWN_CHARS: usize = 120;
/// The longest id that is believed to be one.
const ID_BYTES_MAX: usize = 64;

/// What the upstream wants to know about who asks. Never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The key of the application.
    pub api_key: String,
    /// The token of the user.
    pub auth_token: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Resy.
#[derive(Clone, Debug)]
pub(super) struct Resy {
    pub(super) base_url: String,
    pub(super) origin: String,
    pub(super) user_agent: String,
    pub(super) credentials: Credentials,
}

pub(super) const NAME: &str = "resy";

impl Provider for Resy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn request(&self, ask: &Ask<'_>) -> Request {
        let area = ask.area;
        let body = json!({
            "availability": true,
            "page": ask.page,
            "per_page": ask.per_page,
            "slot_filter": { "day": ask.day, "party_size": ask.party_size, "time_filter": ask.time },
            "types": ["venue"],
            "order_by": "availability",
            "geo": { "bounding_box": [area.south, area.west, area.north, area.east] },
            "query": "",
        });
        let headers = [
            ("Accept", "application/json".to_owned()),
            ("Authorization", format!("ResyAPI api_key=\"{}\"", self.credentials.api_key)),
            ("X-Resy-Auth-Token", self.credentials.auth_token.clone()),
            ("Origin", self.origin.clone()),
            ("Referer", format!("{}/", self.origin)),
            // Without one, the upstream answers 500.
            ("User-Agent", self.user_agent.clone()),
        ];
        Request {
            method: Method::PostJson,
            url: format!("{}/3/venuesearch/search", self.base_url),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            body: body.to_string().into(),
        }
    }

    fn asked(&self, request: &Request) -> Option<Asked> {
        let Question { page, slot_filter } = serde_json::from_slice(&request.body).ok()?;
        Some(Asked { party_size: slot_filter.party_size, page })
    }

    fn pages(&self, body: &[u8]) -> Result<Option<u32>, Failure> {
        // The count stands at the beginning of a body of hundreds of kilobytes, which is read in full only once.
        if let Some(pages) = beginning(body) {
            return Ok(Some(pages));
        }
        let head: Head<'_> = parse(body)?;
        Ok(head.meta.total_pages.int().or(head.search.pages.int()).and_then(|n| u32::try_from(n).ok()))
    }

    fn read<'a>(&self, body: &'a [u8]) -> Result<Page<'a>, Failure> {
        read(body)
    }
}

/// What a page says, whoever asked for it.
pub(super) fn read(body: &[u8]) -> Result<Page<'_>, Failure> {
    let answer: Answer<'_> = parse(body)?;
    let Some(hits) = answer.search.hits.0 else {
        let words: String = String::from_utf8_lossy(body).chars().take(SHOWN_CHARS).collect();
        return Err(Failure::malformed(format!("expected search.hits to be a list, found {words:?}")));
    };
    let whole = |leaf: &Leaf<'_>| leaf.int().and_then(|n| u64::try_from(n).ok());
    let pages = whole(&answer.meta.total_pages).or(whole(&answer.search.pages));
    Ok(Page {
        total: whole(&answer.meta.total).or(whole(&answer.search.total)),
        pages: pages.and_then(|n| u32::try_from(n).ok()),
        hits: hits.into_iter().map(|Venue(hit)| hit).collect(),
    })
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::malformed(format!("expected JSON, found {} bytes: {error}", body.len())))
}

/// The number of pages, if it is among the first things said and the body does not look cut off.
fn beginning(body: &[u8]) -> Option<u32> {
    const META: &[u8] = b"{\"meta\":";
    let rest = body.strip_prefix(META).filter(|_| body.trim_ascii_end().ends_with(b"}"))?;
    let meta: Meta<'_> = serde_json::Deserializer::from_slice(rest).into_iter().next()?.ok()?;
    u32::try_from(meta.total_pages.int()?).ok()
}

/// A venue in our words as soon as it is read: what the upstream says is several times as large, and a city has
/// thousands of venues.
#[derive(Clone, Debug)]
pub(crate) struct Venue<'a>(Hit<'a>);

impl<'de> Deserialize<'de> for Venue<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Venue<'de>, D::Error> {
        let hit = VenueHit::deserialize(deserializer)?;
        let offers = hit.availability.slots.0.unwrap_or_default();
        Ok(Venue(Hit {
            venue_id: hit.id.venue_id(),
            name: hit.name.into_text(),
            neighborhood: hit.neighborhood.into_text(),
            price_range: hit.price_range.int(),
            rating: hit.rating.average.number(),
            rating_count: hit.rating.count.int(),
            url_slug: hit.url_slug.into_text(),
            image: hit.images.0.and_then(Leaf::into_text),
            shown: offers.len(),
            slots: offers.into_iter().filter_map(|Seat(offer)| offer).collect(),
        }))
    }
}

/// The same of a slot; nothing when its time cannot be read.
#[derive(Clone, Debug)]
pub(crate) struct Seat<'a>(Option<Offer<'a>>);

impl<'de> Deserialize<'de> for Seat<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seat<'de>, D::Error> {
        let SlotHit { date, config } = SlotHit::deserialize(deserializer)?;
        let time = |leaf: &Leaf<'_>| match leaf {
            Leaf::Text(text) => clock::local(text),
            _ => None,
        };
        let offer = |start| Offer {
            start,
            end: time(&date.end),
            config_id: config.id.int(),
            seating: config.seating.into_text(),
        };
        Ok(Seat(time(&date.start).map(offer)))
    }
}

/// What is asked for, as far as it has to be known again.
#[derive(serde::Deserialize)]
struct Question {
    page: u32,
    slot_filter: SlotFilter,
}

#[derive(serde::Deserialize)]
struct SlotFilter {
    party_size: u32,
}

/// Who a venue is: a number, text or `{"resy": n}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Id<'a>(Leaf<'a>);

impl<'de> Deserialize<'de> for Id<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Id<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Id<'de>, E> {
                Ok(Id::default())
            }
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Id<'de>, E> {
                Ok(Id::default())
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Id<'de>, E> {
                Ok(Id(Leaf::Int(n)))
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Id<'de>, E> {
                Ok(Id(i64::try_from(n).map_or(Leaf::Null, Leaf::Int)))
            }
            fn visit_f64<E: de::Error>(self, n: f64) -> Result<Id<'de>, E> {
                Ok(Id(Leaf::Float(n)))
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Id<'de>, E> {
                Ok(Id(Leaf::Text(Cow::Borrowed(text))))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id<'de>, E> {
                Ok(Id(Leaf::Text(Cow::Owned(text.to_owned()))))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Id<'de>, A::Error> {
                while list.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(Id::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Id<'de>, A::Error> {
                let mut own = Leaf::Null;
                while let Some(provider) = map.next_key::<Cow<'_, str>>()? {
                    match &*provider == NAME {
                        true => own = map.next_value()?,
                        false => drop(map.next_value::<de::IgnoredAny>()?),
                    }
                }
                Ok(Id(own))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl Id<'_> {
    /// The same id, however it is written.
    fn venue_id(&self) -> Option<String> {
        let plain = |id: &&str| {
            let fits = !id.is_empty() && id.len() <= ID_BYTES_MAX;
            fits && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        match &self.0 {
            Leaf::Int(n) if *n > 0 => Some(n.to_string()),
            Leaf::Float(n) if *n > 0.0 && n.fract() == 0.0 && *n < 9e15 => Some(format!("{n:.0}")),
            Leaf::Text(text) => {
                let text = text.trim();
                let number = text.bytes().all(|b| b.is_ascii_digit());
                let text = if number { text.trim_start_matches('0') } else { text };
                Some(text).filter(plain).map(str::to_owned)
            }
            _ => None,
        }
    }
}

upstream_object! {
    /// Only what says how many pages there are.
    Head {
        "meta" => meta: Meta<'a>,
        "search" => search: SearchHead<'a>,
    }
}

upstream_object! {
    /// The answer.
    Answer {
        "meta" => meta: Meta<'a>,
        "search" => search: Search<'a>,
    }
}

upstream_object! {
    /// How much there is.
    Meta {
        "total" => total: Leaf<'a>,
        "total_pages" => total_pages: Leaf<'a>,
    }
}

upstream_object! {
    /// The same in the search engine's own words.
    SearchHead {
        "nbPages" => pages: Leaf<'a>,
    }
}

upstream_object! {
    /// The venues of this page.
    Search {
        "nbPages" => pages: Leaf<'a>,
        "nbHits" => total: Leaf<'a>,
        "hits" => hits: List<Venue<'a>>,
    }
}

upstream_object! {
    /// A venue.
    VenueHit {
        "id" => id: Id<'a>,
        "name" => name: Leaf<'a>,
        "neighborhood" => neighborhood: Leaf<'a>,
        "price_range_id" => price_range: Leaf<'a>,
        "rating" => rating: Rating<'a>,
        "url_slug" => url_slug: Leaf<'a>,
        "images" => images: First<Leaf<'a>>,
        "availability" => availability: Availability<'a>,
    }
}

upstream_object! {
    /// What its guests say.
    Rating {
        "average" => average: Leaf<'a>,
        "count" => count: Leaf<'a>,
    }
}

upstream_object! {
    /// When there are tables.
    Availability {
        "slots" => slots: List<Seat<'a>>,
    }
}

upstream_object! {
    /// One way to sit at one time.
    SlotHit {
        "date" => date: Dates<'a>,
        "config" => config: SeatingConfig<'a>,
    }
}

upstream_object! {
    /// From when to when.
    Dates {
        "start" => start: Leaf<'a>,
        "end" => end: Leaf<'a>,
    }
}

upstream_object! {
    /// Where.
    SeatingConfig {
        "id" => id: Leaf<'a>,
        "type" => seating: Leaf<'a>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn venue_id(id: &serde_json::Value) -> Option<String> {
        serde_json::from_str::<Id<'_>>(&id.to_string()).expect("any value").venue_id()
    }

    #[test]
    fn one_venue_however_its_id_is_written() {
        for id in [
            json!(87134),
            json!({ "resy": 87134 }),
            json!("87134"),
            json!({ "resy": "087134" }),
            json!(87134.0),
        ] {
            assert_eq!(venue_id(&id).as_deref(), Some("87134"), "{id}");
        }
        for bad in [
            json!(null),
            json!(0),
            json!(-3),
            json!(1.5),
            json!({}),
            json!({ "tock": 5 }),
            json!(""),
            json!("a b"),
            json!([1]),
            json!(true),
            json!({ "resy": { "resy": 1 } }),
        ] {
            assert_eq!(venue_id(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_number_of_pages_is_read_wherever_it_stands() {
        for (body, pages) in [
            (r#"{"meta":{"total_pages":7,"total":500},"search":{"hits":[]}}"#, Some(7)),
            (r#"{"search":{"hits":[]},"meta":{"total_pages":7}}"#, Some(7)),
            (r#"{ "meta": {"total_pages":"7"}, "search":{"nbPages":6} } "#, Some(7)),
            (r#"{"meta":{"total_pages":null},"search":{"nbPages":6}}"#, Some(6)),
            (r#"{"meta":5,"search":{"nbPages":6}}"#, Some(6)),
            (r#"{"meta":{}}"#, None),
        ] {
            assert_eq!(resy().pages(body.as_bytes()).expect("pages"), pages, "{body}");
        }
        for cut in [r#"{"meta":{"total_pages":7},"search":{"hits":[{"id":1"#, r#"{"meta":{"total_pages":7"#] {
            assert!(resy().pages(cut.as_bytes()).is_err(), "{cut}");
        }
    }

    fn resy() -> Resy {
        let credentials = Credentials { api_key: String::new(), auth_token: String::new() };
        Resy { base_url: String::new(), origin: String::new(), user_agent: String::new(), credentials }
    }

    #[test]
    fn an_odd_field_never_loses_the_page() {
        let body = json!({
            "meta": { "total": "2", "total_pages": null },
            "search": { "nbPages": 1, "hits": [
                { "id": 1, "name": ["x"], "rating": "good", "availability": null },
                { "id": 2, "availability": { "slots": [{ "date": "soon" }, { "date": { "start": "2026-02-28 20:30" } }] } },
                7,
            ] },
        });
        let body = body.to_string();
        let page = read(body.as_bytes()).expect("a page");
        assert_eq!((page.total, page.pages, page.hits.len()), (Some(2), Some(1), 3));
        assert_eq!((page.hits[1].shown, page.hits[1].slots.len()), (2, 1));
        assert_eq!(page.hits[2].venue_id, None);
        for bad in ["", "{", "[]", "{\"search\":{}}", "<html>"] {
            assert!(read(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
