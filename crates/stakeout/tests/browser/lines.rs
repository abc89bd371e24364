//! A target's line tells the truth: what is not known is not drawn as if it had been on time. And what upstreams say is
//! text, whatever it is.

use serde_json::json;

use crate::Stage;

/// A line of a made-up target, an hour wide, drawn on this page: `words` is what it says, `colour` counts the columns
/// between two parts of it in which there is a colour.
const DRAW: &str = r"(async (runs, polls, more) => {
    const { track } = await import('/parts/track.js');
    const { colour } = await import('/parts/canvas.js');
    const hour = 3_600_000;
    const box = document.createElement('div');
    box.style.cssText = 'position: fixed; inset: 0 auto auto 0; width: 600px; z-index: 99';
    document.body.append(box);
    const line = track({ end: () => {} }, true);
    box.append(line.node);
    const node = box.querySelector('canvas');
    const stamp = (poll) => ({ missed: 0, lateness_ms: 0, ...poll, due: poll.sent });
    line.update({ from: 0, to: hour, now: hour, due: null, runs, polls: polls.map(stamp), ...more });
    while (!node.isSeen) await new Promise(requestAnimationFrame);
    node.drawing();
    const pen = node.getContext('2d', { willReadFrequently: true });
    // A bar between two pixels is a mixture of its colour and the ground: a pixel is what it is nearest to.
    const rgb = (name) => colour(name).match(/\d+/g).slice(0, 3).map(Number);
    const ground = rgb('band-a');
    const inks = ['good', 'warn', 'bad', 'soft', 'line', 'band-a'].flatMap((name) => [1, 0.75, 0.5].map((part) => [name, rgb(name).map((ink, n) => ink * part + ground[n] * (1 - part))]));
    const nearest = (pixel) => inks.map(([name, ink]) => [ink.reduce((sum, part, n) => sum + (part - pixel[n]) ** 2, 0), name]).sort((a, b) => a[0] - b[0])[0][1];
    const count = (name, from, to) => {
        const [left, right] = [Math.round(from * node.width), Math.round(to * node.width)];
        let columns = 0;
        for (let x = left; x < right; x += 1) {
            const { data } = pen.getImageData(x, 14, 1, node.height - 36);
            for (let at = 0; at < data.length; at += 4) {
                if (data[at + 3] > 200 && nearest(data.subarray(at, at + 3)) === name) { columns += 1; break; }
            }
        }
        return columns;
    };
    const drawn = { words: node.getAttribute('aria-label'), all: count('good', 0, 1), early: count('good', 0, 0.45), late: count('good', 0.95, 1), warn: count('warn', 0, 1), bad: count('bad', 0, 1) };
    box.remove();
    return drawn;
})";

/// The same for a run of an hour with these numbers.
fn drawn(numbers: &str, polls: &str, more: &str) -> String {
    format!("{DRAW}([{{ phase: 'T-1h', from: 0, to: 3_600_000, {numbers} }}], {polls}, {more})")
}

#[tokio::test]
async fn what_is_not_listed_is_never_drawn_as_on_time() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    let look =
        async |numbers: &str, polls: &str, more: &str| browser.value(&drawn(numbers, polls, more)).await;
    let columns = |drawn: &serde_json::Value, name: &str| drawn[name].as_u64().expect("a number");

    let quiet = look("polls: 60, late: 0, missed: 0", "[]", "{}").await;
    assert!(columns(&quiet, "all") >= 60 && columns(&quiet, "warn") == 0, "a bar each: {quiet}");

    // It counts more that went wrong than anybody has listed.
    let wrong = look("polls: 60, late: 3, missed: 2", "[]", "{}").await;
    // Edges of letters may look like anything.
    assert!(columns(&wrong, "all") < 6, "{wrong}");
    assert!(columns(&wrong, "warn") > 100, "{wrong}");
    let words = wrong["words"].as_str().expect("words");
    assert!(words.contains("about 60 polls counted, not listed: 3 late, 2 missed"), "{words}");

    // All of it is listed: a late one, and two that were missed before it.
    let polls = "[{ poll_no: 9, sent: 1_800_000, late: 'queue', missed: 2, outcome: 'unchanged' }, { poll_no: 40, sent: 2_400_000, outcome: 'failed' }]";
    let listed = look("polls: 60, late: 1, missed: 2", polls, "{}").await;
    assert!(
        columns(&listed, "all") >= 50 && columns(&listed, "warn") > 3 && columns(&listed, "bad") > 6,
        "{listed}"
    );
    assert!(!listed["words"].as_str().expect("words").contains("not listed"), "{listed}");

    // Only the newest half of the log is at hand.
    let half = look("polls: 60, late: 0, missed: 0", "[]", "{ known: 1_800_000 }").await;
    assert!(columns(&half, "early") < 6, "of the first half only the number is known: {half}");
    assert!(columns(&half, "all") >= 28, "{half}");
    assert!(
        half["words"].as_str().expect("words").contains("about 30 polls counted, not listed: 0 late"),
        "{half}"
    );

    // More polls than there is room for, up to the newest.
    let dense = look("polls: 9000, late: 0, missed: 0", "[]", "{}").await;
    assert!(columns(&dense, "all") > 590 && columns(&dense, "late") > 25, "{dense}");
    stage.close().await;
}

#[tokio::test]
async fn what_an_upstream_says_is_text_whatever_it_is() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    let sentence = "import('/parts/feed.js').then(({ sentence }) => sentence({ source: 's', target: 'main', type: 'json.changed',
        data: { record: { name: { title: 'A' }, length_seconds: 'long', lap_number: [1] }, changes: [{ field: 'a', old: { b: 1 }, new: null }] } }))";
    let said = browser.value(sentence).await;
    assert_eq!(said, json!({ "who": "{\"title\":\"A\"}", "what": "a {\"b\":1} → –" }));
    stage.close().await;
}

/// From now on counts the drawings that are kept an eye on.
const COUNT_DRAWINGS: &str = "(() => {
    window.watched = 0;
    for (const [name, by] of [['observe', 1], ['unobserve', -1]]) {
        const own = ResizeObserver.prototype[name];
        ResizeObserver.prototype[name] = function (node) { window.watched += by; return own.call(this, node); };
    }
    return true;
})()";

#[tokio::test]
async fn rows_that_are_filtered_away_leave_nothing_behind() {
    let Some(stage) = Stage::new(1).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    let rows = "document.querySelectorAll('.board tbody tr').length";
    browser.until("targets are listed", &format!("{rows} > 5")).await;
    browser.value(COUNT_DRAWINGS).await;
    browser.keys("[data-filter]", "no such target").await;
    browser.until("none is left", &format!("{rows} === 0")).await;
    let gone = browser.value("window.watched").await.as_i64().expect("a number");
    assert!(gone < -5, "their lines are let go: {gone}");
    browser.value("(document.querySelector('[data-filter]').value = '', document.querySelector('[data-filter]').dispatchEvent(new Event('input')), true)").await;
    browser.until("they are back", &format!("{rows} > 5")).await;
    let held = browser.value(&format!("window.watched + {} - {rows}", -gone)).await.as_i64();
    assert!(held.is_some_and(|held| held.abs() <= 60), "one for each row that is there: {held:?}");
    stage.close().await;
}

#[tokio::test]
async fn data_is_stale_until_all_of_it_is_fresh() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/health").await;
    browser.until("sources are accounted for", "document.querySelector('[aria-label=nz] table')").await;
    // One of two questions fails from now on; the other one is answered again and again.
    let break_one = "(() => {
        window.healthy = 0;
        const ask = window.fetch;
        window.fetch = (url, ...rest) => {
            if (String(url).startsWith('/v1/health')) return ask(url, ...rest).finally(() => (window.healthy += 1));
            return String(url).startsWith('/v1/adherence') && !window.mended ? Promise.resolve(new Response('{}', { status: 500 })) : ask(url, ...rest);
        };
        return true;
    })()";
    browser.value(break_one).await;
    let again = "import('/live.js').then(({ live }) => (live.again(), true))";
    browser.value(again).await;
    let stale = "document.querySelector('main').classList.contains('is-stale')";
    browser.until("it is greyed", stale).await;
    let watch = "(() => {
        const main = document.querySelector('main');
        new MutationObserver(() => (window.ungreyed ||= !main.classList.contains('is-stale') && !window.mended)).observe(main, { attributes: true });
        window.before = window.healthy;
        return true;
    })()";
    browser.value(watch).await;
    for round in 1..=3 {
        browser.value(again).await;
        browser.until("the other one is fresh", &format!("window.healthy >= window.before + {round}")).await;
    }
    assert_eq!(
        browser.value("Boolean(window.ungreyed)").await,
        false,
        "a fresh part does not make the other one fresh"
    );
    browser.value(&format!("(window.mended = true, {again})")).await;
    browser.until("then it is fresh", &format!("!{stale}")).await;
    stage.close().await;
}
