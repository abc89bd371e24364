//! The floor of a bucket's reading: typed serde_json of the same bodies, without any meaning.

use serde::Deserialize;

/// What any typed parser has to read of a page. Texts are borrowed from the body, as they are by whoever is in a hurry.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
pub(super) struct Typed<'a> {
    meta: TypedMeta,
    #[serde(borrow)]
    search: TypedSearch<'a>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedMeta {
    total: u64,
    total_pages: u32,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedSearch<'a> {
    #[serde(borrow)]
    hits: Vec<TypedHit<'a>>,
}

/// A text; serde borrows within lists and options only where a type of its own says so.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct Text<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[derive(Deserialize)]
#[serde(untagged)]
#[expect(dead_code, reason = "only read to be measured")]
enum TypedId {
    Plain(u64),
    Of { resy: u64 },
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedHit<'a> {
    id: TypedId,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    neighborhood: Option<Text<'a>>,
    price_range_id: Option<i64>,
    #[serde(borrow)]
    url_slug: Text<'a>,
    rating: TypedRating,
    #[serde(borrow)]
    images: Vec<Text<'a>>,
    #[serde(borrow)]
    availability: Option<TypedAvailability<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedRating {
    average: Option<f64>,
    count: Option<i64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedAvailability<'a> {
    #[serde(borrow)]
    slots: Vec<TypedSlot<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedSlot<'a> {
    #[serde(borrow)]
    date: TypedDates<'a>,
    #[serde(borrow)]
    config: TypedConfig<'a>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedDates<'a> {
    #[serde(borrow)]
    start: Text<'a>,
    #[serde(borrow)]
    end: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct TypedConfig<'a> {
    id: Option<i64>,
    #[serde(rename = "type", borrow)]
    seating: Option<Text<'a>>,
}
