//! Every page opens, can be used with the keyboard and with a screen reader, and fits on a phone.

use serde_json::Value as Json;

use crate::Stage;
use crate::axe::Axe;

const PAGES: [&str; 8] = ["/", "/racing", "/fpv", "/tables", "/events", "/alerts", "/health", "/settings"];

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
    if (!document.documentElement.lang) faults.push("no language");
    let level = 0;
    for (const node of document.querySelectorAll("h1, h2, h3, h4")) {
        if (!shown(node) || node.closest("dialog")) continue;
        const next = Number(node.tagName[1]);
        if (next > level + 1) faults.push(`from h${level} to h${next}: ${node.textContent}`);
        level = next;
    }
    for (const node of document.querySelectorAll("[aria-labelledby], [aria-controls], label[for]"))
        for (const name of ["aria-labelledby", "aria-controls", "for"])
            if (node.getAttribute(name) && !document.getElementById(node.getAttribute(name))) faults.push(`${name} leads nowhere`);
    for (const node of document.querySelectorAll("img:not([alt]), [tabindex]:not([tabindex='0']):not([tabindex='-1'])")) faults.push(node.outerHTML.slice(0, 120));
    return faults;
})()"#;

/// Text that can hardly be read: its contrast as the browser computes its colours, ground by ground.
const FAINT: &str = r#"(() => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    // A page has a dozen colours and thousands of texts: each colour is painted once, each ground looked for once.
    const once = (look) => {
        const known = new Map();
        return (what) => known.get(what) ?? (known.set(what, look(what)), known.get(what));
    };
    const rgba = once((colour) => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    });
    const over = ([r, g, b, a], under) => [r, g, b].map((c, n) => c * a + under[n] * (1 - a));
    const ground = once((node) => {
        if (!node) return [255, 255, 255];
        const colour = rgba(getComputedStyle(node).backgroundColor);
        return colour[3] === 1 ? colour.slice(0, 3) : over(colour, ground(node.parentElement));
    });
    const light = (colour) => {
        const [r, g, b] = colour.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const faint = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility({ visibilityProperty: true }) || node.closest(".unseen, option, noscript, button:disabled, .swatch")) continue;
        const under = ground(node);
        const ink = over(rgba(getComputedStyle(node).color), under);
        const [a, b] = [light(ink), light(under)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) faint.add(`${ratio.toFixed(2)}: ${node.tagName} ${node.className} ${walker.currentNode.data.trim().slice(0, 30)}`);
    }
    return [...faint];
})()"#;

/// From now on notes what gets the focus without showing it.
const WATCH_FOCUS: &str = r#"(() => {
    window.unmarked = [];
    window.focused = 0;
    document.addEventListener("focusin", ({ target }) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        // A heading that only the page itself can focus is read out, not used.
        if (target.tabIndex < 0) return;
        window.focused += 1;
        if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) window.unmarked.push(target.outerHTML.slice(0, 100));
    });
    return true;
})()"#;
/// The width of a usual screen.
const WIDE: u32 = 1440;
/// How many controls are walked over by keyboard on each page.
const TABS: usize = 14;

/// What a browser has loaded of the dashboard's own files, as served: the modules of all pages come with the first one.
const LOADED: &str = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter(({ name }) => !/\\/(v1|metrics)/.test(new URL(name).pathname)).reduce((sum, entry) => sum + entry.encodedBodySize, 0)";
const LOADED_MAX: f64 = 100_000.0;

async fn no_faults(stage: &Stage, axe: Option<&Axe>, page: &str) {
    for (what, look) in [("a fault", FAULTS), ("too faint", FAINT)] {
        let faults = stage.browser.value(look).await;
        assert_eq!(faults, Json::Array(vec![]), "{page}: {what}");
    }
    if let Some(axe) = axe {
        let violations = axe.violations(&stage.browser).await;
        assert_eq!(violations, Json::Array(vec![]), "{page}: axe-core found something: {violations:#}");
    }
}

async fn focus_shows(stage: &Stage, page: &str) {
    stage.browser.value(WATCH_FOCUS).await;
    stage.browser.press(&["\u{e004}"; TABS]).await;
    stage.browser.until("the focus moves", "window.focused > 0").await;
    let faults = stage.browser.value("window.unmarked").await;
    assert_eq!(faults, Json::Array(vec![]), "{page}: focus does not show");
}

#[tokio::test]
async fn each_page_opens_and_every_control_has_a_name() {
    // No faster than needed: what moves while it is looked at is looked at slowly.
    let Some(stage) = Stage::new(10).await else { return };
    let axe = Axe::find();
    let browser = &stage.browser;
    stage.open("/").await;
    browser.until("a race has been polled", "document.querySelectorAll('main tbody tr').length > 5").await;
    let loaded = browser.value(LOADED).await.as_f64().unwrap_or_default();
    assert!(loaded > 10_000.0 && loaded < LOADED_MAX, "{loaded} bytes were loaded");
    let race = "fetch('/v1/racing/nz/next').then((answer) => answer.json()).then(({ race }) => race.key)";
    let race = browser.text(race).await;
    let venue =
        "fetch('/v1/tables/nyc/venues').then((answer) => answer.json()).then(([{ body }]) => body.venue_id)";
    let venue = browser.text(venue).await;
    let deep = [
        format!("/race?source=nz&id={race}&runner=2"),
        format!("/target?source=nz&key=race%2F{race}"),
        format!("/venue?source=nyc&id={venue}"),
        "/fpv?wall=1".to_owned(),
        "/sign-in".to_owned(),
    ];
    for (width, theme) in [(WIDE, "light"), (WIDE, "dark"), (390, "dark")] {
        browser.look(width, 844, theme).await;
        for page in PAGES.into_iter().chain(deep.iter().map(String::as_str)) {
            stage.open(page).await;
            browser.until("something is shown", "document.querySelector('main').innerText.length > 40").await;
            // Each theme once: of the width its rules know nothing.
            no_faults(&stage, axe.as_ref().filter(|_| width == WIDE), page).await;
            if (width, theme) == (WIDE, "light") {
                focus_shows(&stage, page).await;
            }
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
