//! Resy's venue search.
//!
//! An id is a number or `{"resy": n}`; times are on the venue's clock without a zone; `availability` may be null. What
//! is not used is skipped in the bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess};
use serde_json::{Value as Json, json};
use stakeout_core::{Failure, Method, Request};

use super::clock;
use super::provider::{Ask, Asked, Hit, Offer, Page, Provider};
use crate::lenient::{Fields, Leaf, List, upstream_object};

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
        let body: Json = serde_json::from_slice(&request.body).ok()?;
        let number = |value: &Json| u32::try_from(value.as_u64()?).ok();
        Some(Asked { party_size: number(&body["slot_filter"]["party_size"])?, page: number(&body["page"])? })
    }

    fn pages(&self, body: &[u8]) -> Result<Option<u32>, Failure> {
        let head: Head<'_> = parse(body)?;
        Ok(head.meta.total_pages.int().or(head.search.pages.int()).and_then(|n| u32::try_from(n).ok()))
    }

    fn read(&self, body: &[u8]) -> Result<Page, Failure> {
        read(body)
    }
}

/// What a page says, whoever asked for it.
pub(super) fn read(body: &[u8]) -> Result<Page, Failure> {
    let answer: Answer<'_> = parse(body)?;
    let Some(hits) = &answer.search.hits.0 else {
        let words: String = String::from_utf8_lossy(body).chars().take(SHOWN_CHARS).collect();
        return Err(Failure::malformed(format!("expected search.hits to be a list, found {words:?}")));
    };
    let whole = |leaf: &Leaf<'_>| leaf.int().and_then(|n| u64::try_from(n).ok());
    let pages = whole(&answer.meta.total_pages).or(whole(&answer.search.pages));
    Ok(Page {
        total: whole(&answer.meta.total).or(whole(&answer.search.total)),
        pages: pages.and_then(|n| u32::try_from(n).ok()),
        hits: hits.iter().map(hit).collect(),
    })
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::malformed(format!("expected JSON, found {} bytes: {error}", body.len())))
}

fn hit(hit: &VenueHit<'_>) -> Hit {
    let text = |leaf: &Leaf<'_>| leaf.text().map(std::borrow::Cow::into_owned);
    let shown = hit.availability.slots.items();
    Hit {
        venue_id: venue_id(&hit.id),
        name: text(&hit.name),
        neighborhood: text(&hit.neighborhood),
        price_range: hit.price_range.int(),
        rating: hit.rating.average.number(),
        rating_count: hit.rating.count.int(),
        url_slug: text(&hit.url_slug),
        image: hit.images.items().first().and_then(text),
        shown: shown.len(),
        slots: shown.iter().filter_map(offer).collect(),
    }
}

fn offer(slot: &SlotHit<'_>) -> Option<Offer> {
    let time = |leaf: &Leaf<'_>| leaf.text().and_then(|text| clock::local(&text));
    Some(Offer {
        start: time(&slot.date.start)?,
        end: time(&slot.date.end),
        seating: slot.config.seating.text().map(std::borrow::Cow::into_owned),
        config_id: slot.config.id.int(),
    })
}

/// The same id, whether it is a number, text or `{"resy": n}`.
fn venue_id(id: &Json) -> Option<String> {
    let plain = |id: &str| {
        let fits = !id.is_empty() && id.len() <= ID_BYTES_MAX;
        fits && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    match id {
        Json::Object(by_provider) => by_provider.get(NAME).filter(|id| !id.is_object()).and_then(venue_id),
        Json::Number(n) => match (n.as_u64(), n.as_f64()) {
            (Some(0), _) => None,
            (Some(n), _) => Some(n.to_string()),
            (None, Some(n)) if n > 0.0 && n.fract() == 0.0 && n < 9e15 => Some(format!("{n:.0}")),
            _ => None,
        },
        Json::String(text) => match text.trim() {
            text if text.bytes().all(|b| b.is_ascii_digit()) => {
                Some(text.trim_start_matches('0').to_owned()).filter(|id| plain(id))
            }
            text => Some(text.to_owned()).filter(|id| plain(id)),
        },
        _ => None,
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
        "hits" => hits: List<VenueHit<'a>>,
    }
}

upstream_object! {
    /// A venue.
    VenueHit {
        "id" => id: Json,
        "name" => name: Leaf<'a>,
        "neighborhood" => neighborhood: Leaf<'a>,
        "price_range_id" => price_range: Leaf<'a>,
        "rating" => rating: Rating<'a>,
        "url_slug" => url_slug: Leaf<'a>,
        "images" => images: List<Leaf<'a>>,
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
        "slots" => slots: List<SlotHit<'a>>,
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
    fn an_odd_field_never_loses_the_page() {
        let body = json!({
            "meta": { "total": "2", "total_pages": null },
            "search": { "nbPages": 1, "hits": [
                { "id": 1, "name": ["x"], "rating": "good", "availability": null },
                { "id": 2, "availability": { "slots": [{ "date": "soon" }, { "date": { "start": "2026-02-28 20:30" } }] } },
                7,
            ] },
        });
        let page = read(body.to_string().as_bytes()).expect("a page");
        assert_eq!((page.total, page.pages, page.hits.len()), (Some(2), Some(1), 3));
        assert_eq!((page.hits[1].shown, page.hits[1].slots.len()), (2, 1));
        assert_eq!(page.hits[2].venue_id, None);
        for bad in ["", "{", "[]", "{\"search\":{}}", "<html>"] {
            assert!(read(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
