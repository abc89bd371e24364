//! What people do and see, scene by scene.

use crate::Stage;
use crate::proxy::Proxy;

/// As fast as a racing day can go while a browser looks on.
const SPEED: u32 = 60;

/// Whether the feed shows what the log has, each event once.
const COMPLETE: &str = "(async () => {
    const shown = [...document.querySelectorAll('.feed li')].map((line) => Number(line.dataset.seq));
    const log = await (await fetch(`/v1/events?limit=50&before=${shown[0] + 1}`)).json();
    const wanted = log.items.map((event) => event.seq).slice(0, Math.min(50, shown.length));
    return JSON.stringify(shown.slice(0, wanted.length)) === JSON.stringify(wanted);
})()";

/// The expression for the first element of a selector.
fn one(selector: &str) -> String {
    format!("document.querySelector({selector:?})")
}

#[tokio::test]
async fn a_race_goes_from_open_to_final_without_a_reload() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    let state = "document.querySelector('.race-head .chip')?.dataset.status";
    // A race may be abandoned, as in life; then another one is looked at.
    for _ in 0..5 {
        stage.open("/racing").await;
        browser
            .until("races are on the board", "document.querySelectorAll('.next-races a').length > 2")
            .await;
        // Not the very next one: at this speed it may be under way before anybody has looked.
        browser.click(".next-races li:nth-child(3) a").await;
        browser
            .until("its runners are there", "document.querySelectorAll('.grid tbody tr').length > 4")
            .await;
        browser.value("(window.kept = document.querySelector('.grid tbody tr'), true)").await;
        browser.until("it is open at first", &format!("{state} === 'open'")).await;
        browser.until("it ends", &format!("['final', 'abandoned'].includes({state})")).await;
        if browser.text(state).await == "final" {
            break;
        }
    }
    assert_eq!(browser.text(state).await, "final", "one of five is run to its end");
    let kept = browser.value("window.kept === document.querySelector('.grid tbody tr')").await;
    assert_eq!(kept, true, "its rows are the same elements as at the beginning");
    let placings = "document.querySelectorAll('[aria-label=Placings] tbody tr').length > 0";
    browser.until("placings are shown", placings).await;
    stage.close().await;
}

#[tokio::test]
async fn what_is_told_appears_as_it_happens() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    browser.until("something was told", ".feed li".pipe(one).as_str()).await;
    browser.value("(window.newest = Number(document.querySelector('.feed li').dataset.seq), true)").await;
    let newer = "Number(document.querySelector('.feed li').dataset.seq) > window.newest";
    browser.until("something newer was told", newer).await;
    let order = "[...document.querySelectorAll('.feed li')].map((line) => Number(line.dataset.seq))
        .every((seq, n, all) => n === 0 || seq < all[n - 1])";
    assert_eq!(browser.value(order).await, true, "the newest is first, and each is there once");
    browser.until("countdowns run", "document.querySelectorAll('so-ring:not(.over)').length > 3").await;
    stage.close().await;
}

#[tokio::test]
async fn older_events_join_on_to_what_is_shown() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    let lines = "document.querySelectorAll('.feed li')";
    let oldest = format!("Number([...{lines}].at(-1).dataset.seq)");
    browser.until("the list is full", &format!("{lines}.length === 40")).await;
    browser.value(&format!("(window.oldest = {oldest}, true)")).await;
    browser.until("what is oldest is let go", &format!("{oldest} > window.oldest + 40")).await;
    // Not with the mouse: at this speed the lines push it away under its hands.
    browser.value("(document.querySelector('.told button').click(), true)").await;
    // All that was let go is shown again, however little that was, or a page of it.
    let joined = format!("{oldest} <= window.oldest || {lines}.length > 60");
    browser.until("what was let go is shown again", &joined).await;
    // From the newest to the oldest one shown nothing of the log is missing.
    let whole = "(async () => {
        const shown = [...document.querySelectorAll('.feed li')].map((line) => Number(line.dataset.seq));
        const log = await (await fetch(`/v1/events?limit=${shown.length}&before=${shown[0] + 1}`)).json();
        return JSON.stringify(shown) === JSON.stringify(log.items.map((event) => event.seq));
    })()";
    assert_eq!(browser.value(whole).await, true, "there is no hole");
    stage.close().await;
}

/// From now on the log is asked for in vain until `window.mended`.
const BREAK_THE_LOG: &str = "(() => {
    const ask = window.fetch;
    window.fetch = (url, ...rest) => String(url).startsWith('/v1/events?') && !window.mended ? Promise.resolve(new Response('{}', { status: 503 })) : ask(url, ...rest);
    return true;
})()";

#[tokio::test]
async fn a_log_that_cannot_be_read_is_said_and_read_again() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    let seqs = "[...document.querySelectorAll('.feed li')].map((line) => Number(line.dataset.seq))";
    browser.until("the list is full", &format!("{seqs}.length === 40")).await;
    browser.value(&format!("(window.before = {seqs}[0], true)")).await;

    browser.value(BREAK_THE_LOG).await;
    browser.value("(document.querySelector('.told button').click(), true)").await;
    let older = "document.querySelector('.told button').textContent";
    browser.until("why nothing older comes is said", &format!("{older}.includes('503, try again')")).await;
    browser.keys("body", "gs").await;
    browser.until("another page is shown", "location.pathname === '/settings'").await;
    browser.keys("body", "gn").await;
    let says = "document.querySelector('.told .state.failed')";
    browser.until("why nothing is shown is said", &format!("{says}.textContent.includes('503')")).await;
    assert_eq!(browser.value(&format!("{seqs}.every((seq) => seq > window.before)")).await, true);

    browser.value("(window.mended = true)").await;
    browser.until("it is asked again", &format!("{seqs}.length >= 40 && !{says}")).await;
    assert_eq!(browser.value(COMPLETE).await, true, "the feed is the log");
    browser.until("the log has more", &format!("{seqs}.at(-1) > 40")).await;
    browser.value("(document.querySelector('.told button').click(), true)").await;
    browser.until("there is more", &format!("{seqs}.length > 60 && {older} === 'Older'")).await;
    stage.close().await;
}

#[tokio::test]
async fn a_lost_server_is_shown_and_what_was_missed_comes_after() {
    let Some(mut stage) = Stage::new(SPEED).await else { return };
    stage.open("/events").await;
    stage.browser.until("something was told", ".feed li".pipe(one).as_str()).await;
    stage.browser.value("(window.page = 'the same', true)").await;
    assert!(stage.browser.console_errors().await.is_empty(), "all is well before");
    stage.demo.kill();
    let state = "document.querySelector('#link').dataset.state";
    stage.browser.until("the loss is shown", &format!("{state} === 'reconnecting'")).await;
    let words = stage.browser.text("document.querySelector('#link').textContent").await;
    assert!(words.contains("reconnecting"), "{words}");
    stage.demo.go_on();
    stage.browser.until("it is back by itself", &format!("{state} === 'live'")).await;
    stage
        .browser
        .value("(window.newest = Number(document.querySelector('.feed li').dataset.seq), true)")
        .await;
    let newer = "Number(document.querySelector('.feed li').dataset.seq) > window.newest";
    stage.browser.until("events go on", newer).await;
    assert_eq!(stage.browser.text("window.page").await, "the same", "nothing was reloaded");
    // Whatever the log has from then on is shown: nothing was lost in between, nothing is there twice.
    assert_eq!(stage.browser.value(COMPLETE).await, true, "the feed is the log");
    // While nobody answered, the browser noted that nobody answered; nothing else went wrong.
    let errors = stage.browser.console_errors().await;
    let others: Vec<&String> = errors.iter().filter(|error| !error.contains("net::ERR_")).collect();
    assert!(others.is_empty(), "{others:#?}");
    stage.close().await;
}

#[tokio::test]
async fn what_happens_while_the_line_is_cut_is_shown_once_it_holds_again() {
    let Some(mut stage) = Stage::new(SPEED).await else { return };
    let proxy = Proxy::to(stage.demo.port()).await;
    stage.url = proxy.url();
    stage.open("/events").await;
    stage.browser.until("something was told", ".feed li".pipe(one).as_str()).await;
    assert!(stage.browser.console_errors().await.is_empty(), "all is well before");
    let newest = "Number(document.querySelector('.feed li').dataset.seq)";
    proxy.cut();
    let state = "document.querySelector('#link').dataset.state";
    stage.browser.until("the loss is shown", &format!("{state} === 'reconnecting'")).await;
    // What the page was told by then, drawn already or not.
    let told = "import('/live.js').then(({ live }) => live.cursor)";
    let before = stage.browser.value(told).await.as_u64().expect("a number");
    // The demo goes on: it is asked directly until more has happened.
    let missed = before + 5;
    stage.browser.told_until(&format!("{}/v1/events/stream?after={before}", stage.demo.url()), missed).await;
    assert_eq!(stage.browser.value(told).await, before, "the page cannot know of it");
    let drawn = stage.browser.value(newest).await.as_u64().expect("a number");
    assert!(drawn <= before, "it shows {drawn} and was told up to {before}");
    proxy.mend();
    stage.browser.until("it is back by itself", &format!("{state} === 'live'")).await;
    stage.browser.until("what was missed is shown", &format!("{newest} >= {missed}")).await;
    assert_eq!(stage.browser.value(COMPLETE).await, true, "the feed is the log");
    let errors = stage.browser.console_errors().await;
    let others: Vec<&String> = errors.iter().filter(|error| !error.contains("net::ERR_")).collect();
    assert!(others.is_empty(), "{others:#?}");
    stage.close().await;
}

#[tokio::test]
async fn a_page_that_nobody_sees_gives_its_stream_back_and_misses_nothing() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    stage.open("/events").await;
    browser.until("something was told", ".feed li".pipe(one).as_str()).await;
    let hide = |hidden: bool| {
        format!(
            "import('/live.js').then(({{ live }}) => {{
                live.hidden_ms = 0;
                Object.defineProperty(document, 'hidden', {{ configurable: true, get: () => {hidden} }});
                document.dispatchEvent(new Event('visibilitychange'));
                return true;
            }})"
        )
    };
    browser.value(&hide(true)).await;
    let state = "document.querySelector('#link').dataset.state";
    browser.until("the stream is given back", &format!("{state} === 'paused'")).await;
    let newest = "Number(document.querySelector('.feed li').dataset.seq)";
    let before = browser.value(newest).await.as_u64().expect("a number");
    browser.told_until(&format!("{}/v1/events/stream?after={before}", stage.url), before + 5).await;
    browser.value(&hide(false)).await;
    browser.until("it goes on when it is seen", &format!("{state} === 'live'")).await;
    browser.until("what was missed is shown", &format!("{newest} >= {}", before + 5)).await;
    assert_eq!(browser.value(COMPLETE).await, true, "the feed is the log");
    stage.close().await;
}

#[tokio::test]
async fn the_current_drone_race_changes_without_a_reload() {
    let Some(stage) = Stage::new(SPEED).await else { return };
    let browser = &stage.browser;
    stage.open("/fpv").await;
    let current = "document.querySelector('.race-card.large .bar span').textContent";
    browser.until("a race is up", &format!("{current}.startsWith('Race ')")).await;
    browser.value(&format!("(window.before = {current}, true)")).await;
    browser
        .until("another one is", &format!("{current}.startsWith('Race ') && {current} !== window.before"))
        .await;
    let laps = "document.querySelector('.race-card.large td.laps li')";
    browser.until("laps are shown as they are flown", laps).await;
    let pilot = "document.querySelector('.you-panel option:nth-child(2)').value";
    let pilot = browser.text(pilot).await;
    // What is told of it has names: no line has an upstream's id, or a target that nobody polls.
    let line = |part: &str| format!("document.querySelector('.feed li {part}')?.textContent");
    let named = |part: &str| format!("/^Race \\d+$/.test({})", line(part));
    stage.open("/events?type=fpv.race.current_changed").await;
    browser.until("the change names the race", &named("b")).await;
    browser.until("and the one before", &format!("/^after Race \\d+$/.test({})", line(".what"))).await;
    stage.open("/events?type=fpv.result.changed").await;
    browser.until("a result names its race", &named(".where")).await;
    browser.until("and the place", &format!("/position/.test({})", line(".what"))).await;
    stage.open(&format!("/fpv?pilot={pilot}&wall=1")).await;
    browser.until("the wall has no rail", "!document.querySelector('#rail').checkVisibility()").await;
    browser.until("but says that it is live", "document.querySelector('#link').checkVisibility()").await;
    stage.close().await;
}

#[tokio::test]
async fn a_setting_is_refused_with_words_and_accepted_at_once() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    let line =
        "[...document.querySelectorAll('.setting')].find((row) => row.textContent.startsWith('concurrency'))";
    browser.until("its settings are listed", line).await;
    browser.value(&format!("(({line}).querySelector('input').dataset.test = 'it', true)")).await;
    let (input, says) = ("[data-test=it]", format!("({line}).querySelector('.says').textContent"));
    let current = format!("({line}).querySelector('.current').textContent");

    let before = browser.text(&current).await;

    browser.keys(input, "0").await;
    browser.until("it is refused with words", &format!("{says}.includes('whole number')")).await;
    assert_eq!(browser.value(&format!("({line}).querySelector('button').disabled")).await, true);
    // The refusal itself is an answer with a status that browsers note.
    let errors = browser.console_errors().await;
    assert!(errors.iter().all(|error| error.contains("422")), "{errors:#?}");

    browser.keys(input, "\u{e003}7").await;
    browser.until("it would be accepted", &format!("{says}.includes('would be accepted')")).await;
    browser.keys(input, "\u{e007}").await;
    browser.until("it is in effect", &format!("{current}.startsWith('7')")).await;
    let limit =
        "fetch('/v1/sources').then((answer) => answer.json()).then(([source]) => source.limits.concurrency)";
    assert_eq!(browser.value(limit).await, 7, "the engine goes by it");
    browser.click(".setting.set button.quiet").await;
    browser.until("it is taken back", &format!("{current} === {before:?}")).await;
    stage.close().await;
}

/// Reads from left to right.
trait Pipe {
    fn pipe(&self, with: fn(&str) -> String) -> String;
}

impl Pipe for str {
    fn pipe(&self, with: fn(&str) -> String) -> String {
        with(self)
    }
}
