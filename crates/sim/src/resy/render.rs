//! A page of venues as the upstream writes it.

use jiff::civil::Date;

use super::config::Body;
use super::names;
use super::request::Search;
use super::seating::Seating;
use super::venue::{IdForm, Venue};
use crate::json::{Object, list, put};
use crate::rng::mix;

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// `2026-02-28 20:30:00`
    #[default]
    Usual,
    /// `2026-02-28T20:30:00`
    T,
    /// `2026-02-28 20:30`
    Short,
    /// `2026-02-28T20:30`
    ShortT,
}

/// How a rendered page departs from the truth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Twist {
    pub(crate) times: TimeForm,
    pub(crate) other_ids: bool,
    /// The hit, and whether it has another's id instead of none.
    pub(crate) bad_id: Option<(usize, bool)>,
    pub(crate) no_slots: bool,
    /// Venues left out of the page.
    pub(crate) left_out: usize,
    /// How many venues later the page begins.
    pub(crate) shift: i64,
    /// How many more the total counts.
    pub(crate) more: i64,
}

/// A venue on a page: it, what never changes of it, its tables, and which of them are shown.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'a> {
    pub(crate) venue: &'a Venue,
    pub(crate) head: &'a Head,
    pub(crate) tables: &'a [Seating],
    pub(crate) shown: &'a [u16],
}

/// What a page says about the whole.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) search: &'a Search,
    pub(crate) total: u64,
    pub(crate) body: Body,
}

/// The whole body of an answer.
pub(crate) fn page(frame: Frame<'_>, hits: &[Hit<'_>], twist: &Twist) -> String {
    let (search, dates) = (frame.search, Dates::new(frame.search.view.day));
    let per_hit = if frame.body == Body::Full { 2_500 } else { 800 };
    let mut out = String::with_capacity(512 + hits.len() * per_hit);
    let pages = frame.total.div_ceil(u64::from(search.per_page));
    let mut body = Object::begin(&mut out);
    let mut meta = Object::begin(body.key("meta"));
    meta.text("engine", "ELASTIC").bare("total", frame.total).bare("page", search.page);
    meta.bare("per_page", search.per_page).bare("total_pages", pages);
    meta.end();
    let mut found = Object::begin(body.key("search"));
    found.bare("nbPages", pages).raw("cuisines", r#"["American","Italian","Japanese","French"]"#);
    found.bare("hitsPerPage", search.per_page);
    list(found.key("hits"), hits.iter().enumerate(), |out, (n, hit)| {
        let id = match twist.bad_id {
            Some((bad, _)) if bad % hits.len() != n => Some(hit.venue.id),
            Some((_, false)) => None,
            Some((_, true)) => Some(hits[(n + 1) % hits.len()].venue.id),
            None => Some(hit.venue.id),
        };
        write_hit(out, frame, &dates, hit, id, twist);
    });
    found.bare("page", search.page).bare("nbHits", frame.total);
    found.end();
    body.raw("suggestions", "[]");
    body.end();
    out
}

/// What never changes of a venue, written once.
#[derive(Debug)]
pub(crate) struct Head {
    /// Fields of the hit, without braces.
    fields: String,
    /// The first part of every token.
    token: String,
    /// Every slot's template.
    template: String,
}

impl Head {
    pub(crate) fn new(venue: &Venue, body: Body) -> Head {
        let mut out = String::new();
        let mut o = Object::resume(&mut out);
        o.text("name", &venue.name).text("neighborhood", venue.neighborhood);
        o.bare("price_range_id", venue.price).text("url_slug", &slug(&venue.name)).raw("images", "[]");
        let mut rating = Object::begin(o.key("rating"));
        rating.hundredths("average", venue.rating).bare("count", venue.ratings);
        rating.end();
        if body == Body::Full {
            more_of_head(&mut o, venue);
        }
        Head {
            // A resumed object begins with a comma.
            fields: out.split_off(1),
            token: format!("rgs://resy/{}/{}/2/", venue.id, template(venue)),
            template: format!("{{\"id\":{}}}", if venue.foreign { 0 } else { template(venue) }),
        }
    }
}

/// What the real one adds and nobody here reads.
fn more_of_head(o: &mut Object<'_>, venue: &Venue) {
    o.fields(concat!(
        r#""inventory_type_id":2,"region":"NY","max_party_size":8,"reopen":{"date":null},"country":"United States","#,
        r#""contact":{"phone_number":"+10000000000"},"locality":"New York","global_dining_access":0,"#,
        r#""currency_code":"USD","requires_reservation_transfers":0,"is_gdc":0,"is_rga":0,"#,
        r#""waitlist":{"available":0,"label":"Join Wait List","current":null},"#,
        r#""source":{"privacy_policy":null,"name":null,"logo":null,"terms_of_service":null},"#,
        r#""travel_time":{"distance":0.1},"content":[],"is_global_dining_access":false,"favorite":false,"#,
        r#""collections":[],"currency_symbol":"$","feature_recaptcha":false,"gda_concierge_booking":false,"is_gns":0,"#,
        r#""location":{"code":"ny","id":1,"name":"New York","url_slug":"new-york-ny"}"#
    ));
    o.bare("is_tock_inventory", venue.foreign);
    list(o.key("cuisine"), [venue.cuisine], crate::json::text);
    let (latitude, longitude) = venue.place;
    put(o.key("_geoloc"), format_args!("{{\"lat\":{latitude},\"lng\":{longitude}}}"));
}

fn write_hit(
    out: &mut String,
    frame: Frame<'_>,
    dates: &Dates,
    hit: &Hit<'_>,
    id: Option<u64>,
    twist: &Twist,
) {
    let venue = hit.venue;
    let mut o = Object::begin(out);
    if let Some(id) = id {
        let form = if twist.other_ids { venue.id_form.other() } else { venue.id_form };
        match form {
            IdForm::Number => o.bare("id", id),
            IdForm::Object => o.bare("id", format_args!("{{\"resy\":{id}}}")),
        };
    }
    o.fields(&hit.head.fields);
    let shown = if twist.no_slots { &[] } else { hit.shown };
    // Of the venues without a table some say so with an empty list, others with nothing at all.
    if !frame.search.availability || shown.is_empty() && mix(venue.seed).is_multiple_of(4) {
        o.raw("availability", "null");
    } else {
        availability(o.key("availability"), frame, dates, &Hit { shown, ..*hit }, twist.times);
    }
    o.end();
}

fn availability(out: &mut String, frame: Frame<'_>, dates: &Dates, hit: &Hit<'_>, times: TimeForm) {
    let (day, full) = (&dates.day, frame.body == Body::Full);
    let mut o = Object::begin(out);
    if full {
        o.raw("status", "null").raw("notifies", "[]").raw("events", "[]");
        templates(o.key("templates"), hit.venue);
        put(
            o.key("notify_options"),
            format_args!(
                "[{{\"min_request_datetime\":\"{day} 16:00:00\",\"max_request_datetime\":\"{day} 22:00:00\",\
                 \"step_minutes\":30,\"service_type_id\":2}}]"
            ),
        );
    } else {
        o.raw("templates", "{}");
    }
    list(o.key("slots"), hit.shown, |out, n| {
        slot(out, frame, dates, hit, &hit.tables[usize::from(*n)], times);
    });
    if full {
        o.raw("service_types", "{}").raw("gating_errors", "{}");
    }
    o.end();
}

fn templates(out: &mut String, venue: &Venue) {
    let id = template(venue);
    put(
        out,
        format_args!(
            "{{\"{id}\":{{\"cancellation_fee\":null,\"payment_structure\":null,\"id\":{id},\"is_default\":0,\
             \"large_party_cancellation_fee\":null,\"large_party_size_cancel\":null,\"deposit_fee\":null,\
             \"is_paid\":false,\"secs_cancel_cut_off\":null,\"reservation_config\":{{\"time_off_market\":null,\
             \"type\":\"\",\"badge\":null,\"secs_off_market\":1800}},\"venue_id\":{},\"name\":\"{id}\"}}}}",
            venue.id
        ),
    );
}

/// A date and the one after it, written once per page.
struct Dates {
    day: String,
    next: String,
}

impl Dates {
    fn new(day: Date) -> Dates {
        Dates { day: day.to_string(), next: day.tomorrow().unwrap_or(day).to_string() }
    }

    /// A time that may be past midnight.
    fn write(&self, out: &mut String, minute: u16, form: TimeForm) {
        let day = if minute < 24 * 60 { &self.day } else { &self.next };
        let (gap, seconds) = match form {
            TimeForm::Usual => (' ', ":00"),
            TimeForm::T => ('T', ":00"),
            TimeForm::Short => (' ', ""),
            TimeForm::ShortT => ('T', ""),
        };
        out.push('"');
        out.push_str(day);
        out.push(gap);
        clock(out, minute);
        out.push_str(seconds);
        out.push('"');
    }
}

fn slot(out: &mut String, frame: Frame<'_>, dates: &Dates, hit: &Hit<'_>, table: &Seating, form: TimeForm) {
    let mut o = Object::begin(out);
    if frame.body == Body::Full {
        o.fields(concat!(
            r#""is_global_dining_access":false,"reservation_config":{"badge":null},"has_add_ons":false,"#,
            r#""display_config":{"color":{"font":null,"background":null}},"exclusive":{"is_eligible":true,"id":0}"#
        ));
        let shift = o.key("shift");
        shift.push_str(r#"{"id":2340290,"service":{"type":{"id":2}},"day":""#);
        shift.push_str(&dates.day);
        shift.push_str("\"}");
    }
    let config = o.key("config");
    if hit.venue.foreign {
        config.push_str(r#"{"id":null,"type":null,"token":null}"#);
    } else {
        let room = names::room(table.room);
        put(config, format_args!("{{\"id\":{}", config_id(hit.venue, table)));
        for part in
            [",\"type\":\"", room, "\",\"token\":\"", &hit.head.token, &dates.day, "/", &dates.day, "/"]
        {
            config.push_str(part);
        }
        clock(config, table.minute);
        put(config, format_args!(":00/{}/{room}\"}}", frame.search.view.party));
    }
    o.raw("template", &hit.head.template);
    let out = o.key("date");
    out.push_str("{\"start\":");
    dates.write(out, table.minute, form);
    out.push_str(",\"end\":");
    dates.write(out, table.minute + table.minutes, form);
    out.push('}');
    o.end();
}

/// `20:30`
fn clock(out: &mut String, minute: u16) {
    let digit = |n: u16| char::from(b'0' + (n % 10) as u8);
    let (hour, minute) = (minute / 60 % 24, minute % 60);
    out.extend([digit(hour / 10), digit(hour), ':', digit(minute / 10), digit(minute)]);
}

fn template(venue: &Venue) -> u64 {
    1_000_000 + venue.id * 7
}

fn config_id(venue: &Venue, table: &Seating) -> u64 {
    mix(venue.seed ^ u64::from(table.minute) << 8 ^ u64::from(table.room)) % 9_000_000 + 1_000_000
}

fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}
