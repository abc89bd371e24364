//! Every page opens, can be used with the keyboard and with a screen reader, and fits on a phone.

use serde_json::Value as Json;

use crate::Stage;

const PAGES: [&str; 7] = ["/", "/racing", "/fpv", "/tables", "/events", "/health", "/settings"];

/// What is wrong with the page, in words; nothing when all is well.
const FAULTS: &str = r#"(() => {
    const faults = [];
    const shown = (node) => node.checkVisibility({ visibilityProperty: true });
    const name = (node) => (node.getAttribute("aria-label") || node.textContent || [...(node.labels ?? [])].map((label) => label.textContent).join(" ")).trim();
    for (const node of document.querySelectorAll("a[href], button, input, select, [tabindex='0']"))
        if (shown(node) && !name(node)) faults.push(`no name: ${node.outerHTML.slice(0, 120)}`);
    for (const node of document.querySelectorAll("canvas, svg"))
        if (shown(node) && !node.closest("[aria-hidden]") && !node.getAttribute("aria-label")) faults.push(`no words: ${node.outerHTML.slice(0, 120)}`);
    for (const node of document.querySelectorAll("table:not(.heat)"))
        if (!node.caption) faults.push("a table without a caption");
    for (const node of document.querySelectorAll("th"))
        if (!node.getAttribute("scope")) faults.push(`a header without scope: ${node.textContent}`);
    for (const landmark of ["main", "nav[aria-label]", "body > header", "h1", "[role=status]"])
        if (!document.querySelector(landmark)) faults.push(`no ${landmark}`);
    if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
    const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
    if (new Set(ids).size !== ids.length) faults.push("an id twice");
    if (document.querySelector("[style*=url], script:not([src])")) faults.push("inline script");
    if (document.documentElement.scrollWidth > innerWidth + 1) faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
    if (!document.title.includes("Stakeout")) faults.push("no title");
    return faults;
})()"#;

/// What a browser has loaded of the dashboard's own files, as served: the modules of all pages come with the first one.
const LOADED: &str = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter(({ name }) => !/\\/(v1|metrics)/.test(new URL(name).pathname)).reduce((sum, entry) => sum + entry.encodedBodySize, 0)";
const LOADED_MAX: f64 = 150_000.0;

async fn no_faults(stage: &Stage, page: &str) {
    let faults = stage.browser.value(FAULTS).await;
    assert_eq!(faults, Json::Array(vec![]), "{page}");
}

#[tokio::test]
async fn each_page_opens_and_every_control_has_a_name() {
    let Some(stage) = Stage::new(30).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    browser.until("a race has been polled", "document.querySelectorAll('main tbody tr').length > 5").await;
    let loaded = browser.value(LOADED).await.as_f64().unwrap_or_default();
    assert!(loaded > 10_000.0 && loaded < LOADED_MAX, "{loaded} bytes were loaded");
    let race = "fetch('/v1/racing/nz/next').then((answer) => answer.json()).then(({ race }) => race.key)";
    let race = browser.text(race).await;
    let deep =
        [format!("/race?source=nz&id={race}&runner=2"), format!("/target?source=nz&key=race%2F{race}")];
    for (width, theme) in [(1440, "light"), (390, "dark")] {
        browser.look(width, 844, theme).await;
        for page in PAGES.into_iter().chain(deep.iter().map(String::as_str)) {
            stage.open(page).await;
            browser.until("something is shown", "document.querySelector('main').innerText.length > 40").await;
            no_faults(&stage, page).await;
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn keys_move_between_pages_rows_and_races() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/").await;
    browser.keys("body", "gr").await;
    browser.until("g r goes to Racing", "location.pathname === '/racing'").await;
    browser.until("races are listed", "document.querySelectorAll('main a.row').length > 3").await;
    browser.keys("body", "j").await;
    browser.until("j goes to a row", "document.activeElement.matches('a.row')").await;
    browser.keys("a.row:focus", "\u{e007}").await;
    browser.until("Enter opens it", "location.pathname === '/race'").await;
    browser.until("it knows the next race", "!document.querySelector('a[rel=next]').hidden").await;
    browser.value("(window.before = location.search, true)").await;
    browser.keys("body", "\u{e014}").await;
    browser.until("an arrow goes to the next race", "location.search !== window.before").await;
    browser.keys("body", "?").await;
    browser.until("? explains the keys", "document.querySelector('#help').open").await;
    browser.keys("#help button", "\u{e00c}").await;
    browser.until("Escape leaves", "!document.querySelector('#help').open").await;
    browser.keys("body", "gn").await;
    browser.until("g n goes home", "location.pathname === '/'").await;
    browser.keys("body", "/").await;
    browser.until("/ goes to the filter", "document.activeElement.matches('[data-filter]')").await;
    browser.keys("[data-filter]", "R2").await;
    browser.until("what is filtered is in the address", "location.search.includes('q=R2')").await;
    stage.close().await;
}
