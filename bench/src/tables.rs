//! Restaurant tables: what a bucket of a whole city costs to understand, what keeping 28 of them fresh takes of a core,
//! and what the adaptive budget buys next to uniform polling.

use std::time::Instant;

use anyhow::Context as _;
use serde::Deserialize;
use stakeout_core::compare::{Basis, Comparison, Memory, Verdict, compare};
use stakeout_core::{
    ContentHash, Exchange, Facts, PollContext, Response, Snapshot, Source, Span, TargetSpec, Time,
};
use stakeout_sim::resy::{Asked, Market, MarketConfig, Upstream};
use stakeout_sources::tables::{Credentials, TablesConfig, TablesSource};

use crate::adaptive;
use crate::args::Pace;
use crate::table::{Met, Row, grouped};

/// Two weeks of two times a day.
const BUCKETS: f64 = 28.0;
/// How often each of them is looked at where their share of a core is reported.
const EVERY_SECS: f64 = 60.0;
const PARSE_MAX: f64 = 1.5;
const CHANGED_MAX: f64 = 2.0;
/// The share of slots that another answer is to differ by.
const CHANGED: f64 = 0.01;

pub(crate) fn measure(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let mut rows = understanding(pace)?;
    rows.extend(adaptive::rows(pace)?);
    Ok(rows)
}

/// What any typed parser has to read of a page. Texts are borrowed from the body, as they are by whoever is in a hurry.
#[derive(Deserialize)]
#[expect(dead_code, reason = "only read to be measured")]
struct Typed<'a> {
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

/// A bucket of the city, and how it is asked for and read.
struct City {
    source: TablesSource,
    upstream: Upstream,
    target: TargetSpec,
    facts: Facts,
}

impl City {
    fn new() -> anyhow::Result<City> {
        let nobody = Credentials { api_key: "bench".to_owned(), auth_token: "bench".to_owned() };
        let source = TablesSource::new("tables", &TablesConfig::default(), nobody)?;
        let upstream = Upstream::new(Market::new(MarketConfig::city(1)));
        let facts = Facts::default();
        let now = upstream.market().config().start;
        let window = source.roots(now).into_iter().next().context("a window")?;
        let seen = source.normalize(&window, &[], &PollContext { now, facts: &facts })?;
        // Three days ahead in the evening.
        let target = seen.targets.and_then(|mut all| (all.len() > 7).then(|| all.swap_remove(7)));
        Ok(City { source, upstream, target: target.context("a bucket")?, facts })
    }

    /// Everything that a poll asks for, answered at that moment.
    fn fetch(&self, now: Time) -> Vec<Exchange> {
        let context = PollContext { now, facts: &self.facts };
        let mut exchanges: Vec<Exchange> = Vec::new();
        loop {
            let requests = self.source.requests(&self.target, &exchanges, &context);
            if requests.is_empty() {
                return exchanges;
            }
            for request in requests {
                let path = request.url.split_once(".com").map_or("", |(_, path)| path);
                let asked = Asked { path, headers: &request.headers, body: &request.body };
                let body = self.upstream.honest(asked, now).body;
                let response = Response { status: 200, body, content_type: None, age: Span::ZERO };
                exchanges.push(Exchange { request, result: Ok(response), sent: now, ended: now });
            }
        }
    }

    fn look(
        &self,
        exchanges: &[Exchange],
        snapshot: &Snapshot,
        memory: &Memory,
    ) -> anyhow::Result<Comparison> {
        let now = exchanges.first().map_or(Time(0), |exchange| exchange.sent);
        let context = PollContext { now, facts: &self.facts };
        let observation = self.source.normalize(&self.target, exchanges, &context)?;
        let policy = self.source.doubt();
        let basis =
            Basis { snapshot, memory, meaning: 1, policy, refresh: Span::ZERO, sent: now, ended: now };
        Ok(compare(&basis, &observation))
    }
}

/// Reading and comparing a bucket, of which nothing or one slot in a hundred has changed, next to a typed parse of the
/// same bodies, and to telling that they are the same.
fn understanding(pace: Pace) -> anyhow::Result<Vec<Row>> {
    let city = City::new()?;
    let now = city.upstream.market().config().start + Span::hours(12);
    let exchanges = city.fetch(now);
    let first = city.look(&exchanges, &Snapshot::default(), &Memory::default())?;
    let (snapshot, memory) = (first.next.unwrap_or_default(), first.memory);
    let slots = snapshot.entries().iter().filter(|entry| entry.ends.is_some()).count();
    let (later, changed) = changed(&city, now, &snapshot, &memory, slots)?;
    let bodies: Vec<_> =
        exchanges.iter().filter_map(|e| e.result.as_ref().ok()).map(|r| r.body.clone()).collect();
    let bytes: usize = bodies.iter().map(bytes::Bytes::len).sum();

    let [mut same, mut moved, mut typed, mut repeat] = [f64::MAX; 4];
    let end = Instant::now() + pace.secs(10, 2);
    // Turn by turn, so that all see the same machine.
    while Instant::now() < end {
        same = same.min(millis(|| {
            let again = city.look(&exchanges, &snapshot, &memory);
            assert!(again.is_ok_and(|comparison| comparison.verdict == Verdict::Unchanged));
        }));
        moved = moved.min(millis(|| {
            let news = city.look(&later, &snapshot, &memory);
            assert!(news.is_ok_and(|comparison| comparison.verdict == Verdict::Changed));
        }));
        typed = typed.min(millis(|| {
            assert!(bodies.iter().all(|body| serde_json::from_slice::<Typed<'_>>(body).is_ok()));
        }));
        repeat = repeat.min(millis(|| {
            std::hint::black_box(bodies.iter().map(|body| ContentHash::of_bytes(body)).max());
        }));
    }
    let size =
        format!("{} slots, {} pages, {:.1} MB", grouped(slots as f64), exchanges.len(), bytes as f64 / 1e6);
    let floor = format!("typed serde_json of the same {typed:.1} ms");
    let row = |what: String, ours: f64, most: f64| Row {
        what,
        ours: format!("{ours:.1} ms"),
        floor: floor.clone(),
        ratio: Some(ours / typed),
        target: format!("≤ {most} ×"),
        met: Met::when(ours <= most * typed),
    };
    let share = |ms: f64| 100.0 * BUCKETS * ms / 1e3 / EVERY_SECS;
    Ok(vec![
        row(format!("a bucket ({size}), understood and compared, unchanged"), same, PARSE_MAX),
        row(
            format!("the same with {changed} slots changed", changed = grouped(changed as f64)),
            moved,
            CHANGED_MAX,
        ),
        Row {
            what: "28 such buckets looked at every minute, of one core".to_owned(),
            ours: format!("{:.1} % ({:.2} % when the answers repeat)", share(same), share(repeat)),
            floor: format!("typed serde_json of the same {:.1} %", share(typed)),
            ratio: Some(same / typed),
            target: String::new(),
            met: Met::NoTarget,
        },
    ])
}

/// A later answer in which about one slot in a hundred is another, and how many are.
fn changed(
    city: &City,
    now: Time,
    snapshot: &Snapshot,
    memory: &Memory,
    slots: usize,
) -> anyhow::Result<(Vec<Exchange>, usize)> {
    for minutes in (2..600).step_by(4) {
        let later = city.fetch(now + Span::mins(minutes));
        let news = city.look(&later, snapshot, memory)?;
        let changed = news.added.len() + news.changed.len() + news.removed.len();
        if changed as f64 >= CHANGED * slots as f64 {
            return Ok((later, changed));
        }
    }
    anyhow::bail!("the market stands still")
}

fn millis(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64() * 1e3
}
