//! Everything on the page is alive: what opens appears, and numbers move without anything being asked for.

use serde_json::json;
use stakeout_sim::FastServer;

use crate::Stage;
use crate::demo::Demo;

/// Counts the questions that the page asks from now on, by the beginning of their address.
const COUNT_QUESTIONS: &str = "(() => {
    window.asked = [];
    const ask = window.fetch;
    window.fetch = (url, ...rest) => { window.asked.push(String(url)); return ask(url, ...rest); };
    return true;
})()";

#[tokio::test]
async fn a_drop_appears_without_a_reload() {
    let Some(stage) = Stage::new(30).await else { return };
    let browser = &stage.browser;
    stage.open("/tables").await;
    let lines = "[...document.querySelectorAll('[aria-label=\"Just opened\"] .slots li')]";
    browser.until("the buckets are scanned", "document.querySelectorAll('.heat button').length > 3").await;
    browser.value("(window.page = 'the same', true)").await;
    browser.value(&format!("(window.known = {lines}, true)")).await;
    browser.until("a drop appears", &format!("{lines}.some((line) => !window.known.includes(line))")).await;
    assert_eq!(browser.text("window.page").await, "the same", "nothing was reloaded");
    let new = format!("{lines}.find((line) => !window.known.includes(line))");
    let shown = browser.text(&format!("{new}.textContent")).await;
    assert!(shown.contains("ago") || shown.contains("now"), "it has an age: {shown}");
    // What is on the page is what was told.
    let venue = browser.text(&format!("{new}.querySelector('b').textContent")).await;
    let told = format!(
        "fetch('/v1/events?type=tables.drop&limit=200').then((answer) => answer.json())
            .then(({{ items }}) => items.some(({{ data }}) => data.venue_name === {}))",
        json!(venue)
    );
    assert_eq!(browser.value(&told).await, true, "{venue} was told");
    let counts =
        "[...document.querySelectorAll('.heat button')].some((cell) => Number(cell.textContent) > 0)";
    browser.until("the grid counts open tables", counts).await;
    stage.close().await;
}

#[tokio::test]
async fn a_venue_shows_its_past_and_is_followed() {
    let Some(stage) = Stage::new(60).await else { return };
    let browser = &stage.browser;
    stage.open("/tables").await;
    browser.until("something is open", "document.querySelector('.slots a.row')").await;
    browser.click(".slots a.row").await;
    browser.until("the venue opens", "location.pathname === '/venue'").await;
    let drops = "document.querySelectorAll('[aria-label=\"When something opened\"] tbody tr').length";
    browser.until("its drops are listed", &format!("{drops} > 0")).await;
    let slots = "document.querySelectorAll('[aria-label=\"Every table that was seen\"] tbody tr').length";
    browser.until("and its tables", &format!("{slots} > 0")).await;
    let star = "document.querySelector('.star').getAttribute('aria-pressed')";
    browser.until("it is not followed", &format!("{star} === 'false'")).await;
    browser.click(".star").await;
    browser.until("it is followed", &format!("{star} === 'true'")).await;
    let setting = "fetch('/v1/settings').then((answer) => answer.json()).then((all) => all['source.nyc.follow'].length)";
    assert_eq!(browser.value(setting).await, 1, "by everybody who looks, not by this browser alone");
    browser.click(".star").await;
    browser.until("and no longer", &format!("{star} === 'false'")).await;
    stage.close().await;
}

#[tokio::test]
async fn the_board_moves_without_a_question() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    browser.until("targets are listed", "document.querySelectorAll('.board tbody tr').length > 5").await;
    browser.until("drones fly", "document.querySelector('[aria-label=\"Source track\"]')").await;
    browser.value(COUNT_QUESTIONS).await;
    // Polls are counted by the pulse, countdowns begin again with each poll of a row: all of it from the stream.
    let polls = "Number(document.querySelector('[aria-label=\"Source track\"] .polls dd').textContent.replaceAll(',', ''))";
    browser.value(&format!("(window.before = {polls}, true)")).await;
    browser.until("polls are counted as they happen", &format!("{polls} > window.before + 20")).await;
    let dues = "[...document.querySelectorAll('.board so-ring')].map((ring) => ring.due)";
    browser.value(&format!("(window.dues = {dues}, true)")).await;
    let moved = format!("{dues}.filter((due, n) => due !== window.dues[n]).length > 3");
    browser.until("due times move on", &moved).await;
    let asked = browser.value("window.asked.filter((url) => /adherence|metrics|health/.test(url))").await;
    assert_eq!(asked, json!([]), "nobody asked how it is");
    let lists = browser.value("window.asked.filter((url) => url.startsWith('/v1/targets')).length").await;
    assert!(lists.as_u64() < Some(5), "the list is read again only when it changed: {lists} times");
    // In a time that runs ten times as fast, what is asked every two seconds is asked five times in one of ours.
    let every = "fetch('/v1/settings/known').then((answer) => answer.json())
        .then((known) => known.find(({ key }) => key === 'source.track.scheduler.raceActiveMs').value)";
    assert_eq!(browser.value(every).await, 2_000, "drones are asked at the pace of life");
    stage.close().await;
}

#[tokio::test]
async fn what_goes_wrong_with_a_source_is_said_in_words_and_what_is_well_too() {
    let upstream = FastServer::start(1);
    let source = |name: &str, url: &str| {
        format!(
            "[source.{name}]\nkind = \"json\"\nurl = \"{url}\"\nevery = \"10s\"\nrecords = \"items\"\nkey = \"id\"\nfields = [\"value\"]\n"
        )
    };
    // Nobody listens at the first port.
    let config = source("lost", "http://127.0.0.1:1/")
        + &source("well", &format!("http://{}/same/1", upstream.addr()));
    let Some(stage) = Stage::of(|| Some(Demo::of(&config))).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    let says =
        |name: &str| format!("document.querySelector('[aria-label=\"Source {name}\"] .why').textContent");
    browser.until("why it failed", &format!("/failed: nobody answered [1-9]/.test({})", says("lost"))).await;
    browser
        .until(
            "that all is well",
            &format!("/^(● every poll was on time, none was missed|late: .*)$/.test({})", says("well")),
        )
        .await;
    stage.close().await;
}

/// When what each row of the board watches starts, by its name and in the order of the rows.
const STARTS: &str = "[...document.querySelectorAll('.board tbody tr')]
    .map((row) => [row.querySelector('a.row').textContent, row.children[1].firstChild.value])
    .filter(([, start]) => start != null)";

#[tokio::test]
async fn a_race_that_starts_at_another_time_moves_on_the_board_without_a_reload() {
    let Some(stage) = Stage::new(60).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    browser.until("races are on the board", &format!("{STARTS}.length > 20")).await;
    // Nobody is asked for the list any more: what the board learns from now on, it was told.
    let silence = "(() => {
        const ask = window.fetch;
        window.fetch = (url, ...rest) => String(url).startsWith('/v1/targets') ? new Promise(() => {}) : ask(url, ...rest);
        return true;
    })()";
    browser.value(silence).await;
    browser.value(&format!("(window.starts = new Map({STARTS}), true)")).await;
    let moved = format!(
        "{STARTS}.find(([name, start]) => window.starts.has(name) && window.starts.get(name) !== start)"
    );
    browser.until("a race has another start", &moved).await;
    let moved = browser.value(&moved).await;
    let order = format!(
        "{STARTS}.map(([, start]) => start).every((start, n, all) => n === 0 || all[n - 1] <= start)"
    );
    assert_eq!(browser.value(&order).await, true, "{moved} stands where its start belongs");
    let known = format!(
        "fetch('/v1/racing/nz/races?limit=1000').then((answer) => answer.json())
            .then((races) => races.map(({{ body }}) => Date.parse(body.start_time)).includes({}))",
        moved[1]
    );
    assert_eq!(browser.value(&known).await, true, "{moved} is a start that a race has");
    stage.close().await;
}

/// From now on the grid of tables is made of these: two markets with a bucket at the same time, one of which is stale, and
/// one of them with another.
const TWO_MARKETS: &str = "(() => {
    const bucket = (bucket_id, open_slots, drops_24h, more) => ({ bucket_id, open_slots, drops_24h, venues_open: 1, drops_open: 1, stale: false, last_scan: '2026-01-10T02:00:00Z', ...more });
    const made = [bucket('east/2026-01-10_19:00', 30, 5), bucket('west/2026-01-10_19:00', 12, 2, { stale: true, last_scan: '2026-01-10T01:00:00Z' }), bucket('east/2026-01-11_19:00', 9, 1)];
    const ask = window.fetch;
    window.fetch = (url, ...rest) => String(url).includes('/buckets') ? Promise.resolve(new Response(JSON.stringify(made))) : ask(url, ...rest);
    return true;
})()";

#[tokio::test]
async fn markets_are_summed_where_they_meet_and_each_is_named() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    browser.value(TWO_MARKETS).await;
    browser.keys("body", "gt").await;
    let cells = "[...document.querySelectorAll('.heat button')].map((cell) => cell.textContent)";
    browser.until("the grid is there", &format!("{cells}.length === 2")).await;
    assert_eq!(browser.value(cells).await, json!(["◌ 42", "9"]), "tables of both; stale if one of them is");
    let title = browser.text("document.querySelector('.heat button').title").await;
    for words in [
        "42 open tables at 2 venues",
        "7 openings in 24 hours, 2 of all still open",
        "(east 30, west 12)",
        "stale",
    ] {
        assert!(title.contains(words), "{words}: {title}");
    }
    browser.click("[aria-label='What the numbers count'] button:last-child").await;
    browser.until("openings are counted", &format!("{cells}[0] === '◌ 7'")).await;
    let title = browser.text("document.querySelector('.heat button').title").await;
    assert!(title.contains("(east 5, west 2)"), "{title}");
    stage.close().await;
}

/// From now on the stream says what `window.tell` is told, and nothing else; what is asked for is noted.
const OWN_STREAM: &str = "(() => {
    window.asked = [];
    const ask = window.fetch;
    const begin = (line) => (window.tell = (name, data) => line.enqueue(new TextEncoder().encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)));
    window.fetch = (url, ...rest) => {
        window.asked.push(String(url));
        return String(url).startsWith('/v1/events/stream') ? Promise.resolve(new Response(new ReadableStream({ start: begin }))) : ask(url, ...rest);
    };
    return import('/live.js').then(({ live }) => (live.again(), true));
})()";

#[tokio::test]
async fn the_page_of_drones_asks_nothing_when_horses_run() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/fpv").await;
    browser.value(OWN_STREAM).await;
    let asked = "window.asked.some((url) => url.startsWith('/v1/fpv/track/'))";
    browser.until("all is asked for once more", &format!("window.tell && {asked}")).await;
    browser.until("and shown", "document.querySelector('.race-card.large .bar span').textContent").await;
    // What matters is asked for after a moment: by the time that a longer moment is over it would have been.
    let tell = |source: &str| {
        format!(
            "(window.asked = [], window.tell('poll', {{ source: '{source}', target: 'race/1', changes: 1 }}),
                new Promise((done) => setTimeout(() => done({asked}), 300)))"
        )
    };
    assert_eq!(browser.value(&tell("nz")).await, false, "a race of horses");
    browser.value(&tell("track")).await;
    browser.until("a race of drones is asked for", asked).await;
    stage.close().await;
}

/// From now on the tables that are open are for three and for five, as a search for them has found.
const THREE_AND_FIVE: &str = "(() => {
    const slot = (slot_id, party_sizes) => ({ slot_id, party_sizes, start: '2026-01-10T19:00:00', opened_at: '2026-01-10T02:00:00Z' });
    const days = (size) => [{ venues: [{ venue_id: '1', venue_name: 'Somewhere', slots: [slot('a', [5]), slot('b', [3, 5])].filter((one) => !size || one.party_sizes.includes(Number(size))) }] }];
    const ask = window.fetch;
    window.fetch = (url, ...rest) => {
        if (!/just-opened|still-open/.test(url)) return ask(url, ...rest);
        return Promise.resolve(new Response(JSON.stringify(days(new URL(url, location.href).searchParams.get('party_size')))));
    };
    return true;
})()";

#[tokio::test]
async fn tables_are_chosen_by_the_party_sizes_that_are_searched_for() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    browser.value(THREE_AND_FIVE).await;
    browser.keys("body", "gt").await;
    let sizes =
        "[...document.querySelectorAll('[aria-label=\"Party size\"] button')].map((one) => one.textContent)";
    let lines = "document.querySelectorAll('[aria-label=\"Still open\"] .slots li').length";
    browser.until("both tables are listed", &format!("{lines} === 2")).await;
    assert_eq!(browser.value(sizes).await, json!(["Any size", "3", "5"]));
    browser.click("[aria-label='Party size'] button:nth-child(2)").await;
    browser.until("one is for three", &format!("{lines} === 1 && location.search === '?party=3'")).await;
    assert_eq!(browser.value(sizes).await, json!(["Any size", "3", "5"]), "no choice goes with its tables");
    stage.close().await;
}

#[tokio::test]
async fn what_is_over_at_midnight_is_asked_for_no_more() {
    let demo = || Demo::start_before_midnight(30, jiff::Span::new().minutes(4), "America/New_York");
    let Some(stage) = Stage::of(demo).await else { return };
    let browser = &stage.browser;
    stage.open("/health").await;
    let look = "fetch('/v1/adherence/nyc').then((answer) => answer.json()).then(({ worst }) => (window.worst = worst))";
    browser.value(&format!("(setInterval(() => {look}, 300), true)")).await;
    browser.until("the market is watched", "window.worst.length > 5").await;
    browser.until("a date has passed", "window.worst.some((one) => one.retired)").await;
    // The page looks at the account at least twice more.
    browser.value(COUNT_QUESTIONS).await;
    let looks = "window.asked.filter((url) => url.startsWith('/v1/adherence/nyc?')).length";
    browser.until("the page asks again", &format!("{looks} > 1")).await;
    stage.close().await;
}
