//! Wall mode: what matters can be read from across a room, and all of it is on the screen.

use serde_json::Value as Json;

use crate::Stage;

/// The least size of what is flown right now, and of everything else, as a share of the screen's height. At 20 feet (6 m)
/// an eye wants capitals of 18 mm; on a screen of 55 inches, 685 mm high, letters of 4.5 % have capitals of 22 mm.
const MAIN: f64 = 0.045;
const OTHERS: f64 = 0.024;
/// Screens on walls: full HD, 4K, a beamer, a very wide one.
const WALLS: [(u32, u32); 4] = [(1920, 1080), (3840, 2160), (1280, 800), (2560, 1080)];

/// Every text that is seen, with its size as a share of the height, and whether it is of the current race.
const SIZES: &str = r"(() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        const words = walker.currentNode.data.trim();
        if (!words || !node.checkVisibility({ visibilityProperty: true }) || node.closest('.unseen, .skip, #title, noscript, caption')) continue;
        const main = Boolean(node.closest('.large tbody, .large .bar > span'));
        found.push({ words, main, share: parseFloat(getComputedStyle(node).fontSize) / innerHeight });
    }
    return found;
})()";
/// How far what is shown goes beyond the screen, in pixels.
const BEYOND: &str = "[...document.querySelectorAll('.race-card, .panel')].filter((node) => node.checkVisibility())
    .map((node) => node.getBoundingClientRect()).reduce((most, box) => Math.max(most, box.right - innerWidth, box.bottom - innerHeight), -Infinity)";
/// As many fly at once as there are channels for.
const FILL: &str = "(() => {
    const rows = document.querySelector('.large tbody');
    while (rows.children.length < PILOTS) rows.append(rows.firstElementChild.cloneNode(true));
    return true;
})()";

#[tokio::test]
async fn the_wall_can_be_read_from_across_a_room() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    for (width, height) in WALLS {
        browser.look(width, height, "dark").await;
        stage.open("/fpv?wall=1").await;
        let there = "document.querySelectorAll('.large tbody tr').length > 3 && document.querySelectorAll('[aria-label=\"Leaderboard of the event\"] tbody tr').length > 3";
        browser.until("a race and the leaders are shown", there).await;
        let sizes = browser.value(SIZES).await;
        let sizes = sizes.as_array().expect("texts");
        let of = |main: bool| sizes.iter().filter(move |one| one["main"] == Json::Bool(main));
        assert!(of(true).count() > 12 && of(false).count() > 20, "{sizes:#?}");
        for (main, least) in [(true, MAIN), (false, OTHERS)] {
            let small: Vec<&Json> =
                of(main).filter(|one| one["share"].as_f64().expect("a share") < least).collect();
            assert!(small.is_empty(), "smaller than {least} of {width}×{height}: {small:#?}");
        }
        for pilots in [4, 6, 8] {
            browser.value(&FILL.replace("PILOTS", &pilots.to_string())).await;
            let beyond = browser.value(BEYOND).await.as_f64().expect("pixels");
            assert!(
                beyond <= 0.0,
                "{width}×{height}, {pilots} pilots: {beyond} pixels are beyond the screen"
            );
        }
    }
    stage.close().await;
}
