//! Pictures of every page, for the documentation: `scripts/screenshots` asks for them.

use std::path::PathBuf;

use crate::Stage;

/// What is looked at: a name, an address, what must be there before the picture is taken.
const SHOTS: [(&str, &str, &str); 13] = [
    ("now", "/", "document.querySelectorAll('.feed li').length > 10"),
    ("racing", "/racing", "document.querySelectorAll('a.race').length > 20"),
    (
        "race",
        "/race?source=nz&id=RACE&runner=2",
        "document.querySelectorAll('.grid tbody td.time').length > 20",
    ),
    ("target", "/target?source=nz&key=race%2FRACE", "document.querySelectorAll('main tbody tr').length > 1"),
    ("fpv", "/fpv", "document.querySelectorAll('.race-card tbody tr').length > 3"),
    ("wall", "/fpv?wall=1", "document.querySelectorAll('.race-card tbody tr').length > 3"),
    ("tables", "/tables", "document.querySelectorAll('.slots li').length > 3"),
    ("venue", "/venue?source=nyc&id=VENUE", "document.querySelectorAll('main tbody tr').length > 3"),
    ("events", "/events", "document.querySelectorAll('.feed li').length > 20"),
    ("health", "/health", "document.querySelectorAll('main tbody tr').length > 5"),
    ("settings", "/settings", "document.querySelectorAll('.setting').length > 4"),
    ("alerts", "/alerts", "document.querySelectorAll('.rung li').length > 2"),
    ("sign-in", "/sign-in", "document.querySelector('#token')"),
];
/// Somebody wants to be told of this: a name, and when.
const RULES: [&str; 2] = [
    "'/v1/alerts/steam', { when: { on: 'odds', direction: 'shortened', percent: 15, within: '30m' }, quiet: '5m', severity: 'warning' }",
    "'/v1/alerts/results', { when: { on: 'event', type: 'racing.race.final' } }",
];
/// A while into the day there is something to see.
const MUCH: u64 = 450;
/// The venue that opened most often so far.
const VENUE: &str =
    "fetch('/v1/events?type=tables.drop&limit=500').then((answer) => answer.json()).then(({ items }) => {
    const venues = Map.groupBy(items, ({ data }) => data.venue_id);
    return [...venues].sort((a, b) => b[1].length - a[1].length)[0][0];
})";
const NEXT: &str = "fetch('/v1/racing/nz/next').then((answer) => answer.json()).then(({ race }) => race.key)";

#[tokio::test]
#[ignore = "writes pictures; scripts/screenshots runs it"]
async fn screenshots() {
    let into = std::env::var_os("STAKEOUT_SCREENSHOTS").map(PathBuf::from).expect("STAKEOUT_SCREENSHOTS");
    std::fs::create_dir_all(&into).expect("a directory");
    let Some(stage) = Stage::new(5).await else { panic!("no browser, no pictures") };
    let browser = &stage.browser;
    stage.open("/").await;
    for rule in RULES {
        browser.value(&format!("import('/kit.js').then(({{ change }}) => change('PUT', {rule}))")).await;
    }
    // A demo that nobody looks at is on time.
    browser.open("about:blank").await;
    browser.told_until(&format!("{}/v1/events/stream?after=0", stage.url), MUCH).await;
    stage.open("/").await;
    for theme in ["light", "dark"] {
        browser.look(1440, 900, theme).await;
        let (race, venue) = (browser.text(NEXT).await, browser.text(VENUE).await);
        for (name, path, there) in SHOTS {
            stage.open(&path.replace("RACE", &race).replace("VENUE", &venue)).await;
            browser.until(name, there).await;
            let file = into.join(format!("{name}-{theme}.png"));
            std::fs::write(&file, browser.screenshot().await).expect("write the picture");
        }
    }
    browser.look(390, 844, "dark").await;
    stage.open("/").await;
    std::fs::write(into.join("phone-dark.png"), browser.screenshot().await).expect("write the picture");
    stage.close().await;
}
