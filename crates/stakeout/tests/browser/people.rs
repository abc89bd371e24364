//! What people look at closely: one race, one pilot, one target; and how they come in and go.

use std::process::Command;

use crate::Stage;
use crate::demo::Demo;
use crate::driver::Browser;

/// The arrow to the left, as the browser is told of it.
const LEFT: &str = "\u{e012}";
/// What was read out last.
const READ_OUT: &str = "document.querySelector('#say').textContent";

/// Goes to a drawing whose values can be read.
async fn focus_values(browser: &Browser, within: &str) {
    let focus = format!(
        "(document.querySelector({within:?}).querySelector('.tip-box').focus(), document.activeElement.matches('.tip-box'))"
    );
    assert_eq!(browser.value(&focus).await, true, "the drawing can be gone to");
}

#[tokio::test]
async fn a_race_is_looked_at_closely() {
    let Some(stage) = Stage::new(30).await else { return };
    let browser = &stage.browser;
    stage.open("/racing").await;
    browser.until("races are on the board", "document.querySelectorAll('.next-races a').length > 5").await;
    // Not one of the next: their starts may have passed before everything else was looked at, and one is abandoned.
    browser.click(".next-races li:nth-child(6) a").await;
    let columns = "document.querySelectorAll('.grid thead th.time')";
    browser.until("there are columns of time", &format!("{columns}.length > 0")).await;
    browser.until("with money", &format!("{columns}[0].textContent.endsWith(' $')")).await;
    browser.keys("body", "vv").await;
    browser.until("v goes on to the odds", "location.search.includes('view=odds')").await;
    browser.until("which have no unit", &format!("!{columns}[0].textContent.includes('$')")).await;
    browser.keys("body", "v").await;
    browser.until("and back to win", "!location.search.includes('view')").await;
    browser.keys("body", "j").await;
    browser.until("j goes to a runner", "document.activeElement.matches('button.runner')").await;
    browser.until("it has a sparkline", "document.querySelector('td.spark path')?.getAttribute('d')").await;
    browser.keys("button.runner:focus", "\u{e007}").await;
    let chart = "document.querySelector('[aria-label=Prices]')";
    browser
        .until(
            "Enter opens its chart",
            &format!("!{chart}.hidden && {chart}.textContent.includes('since the first look')"),
        )
        .await;
    browser.until("which is in the address", "location.search.includes('runner=')").await;
    // Its prices are read out one by one, and no other race is turned to.
    browser.value("(window.before = location.search, true)").await;
    focus_values(browser, "[aria-label=Prices]").await;
    browser.press(&[LEFT]).await;
    browser.until("a price is read out", &format!("/\\d\\s+win \\d/.test({READ_OUT})")).await;
    let tip = format!("{chart}.querySelector('.tip').checkVisibility()");
    assert_eq!(browser.value(&tip).await, true, "it is shown where it was");
    assert_eq!(browser.value("location.search === window.before").await, true, "it is the same race");
    browser.press(&["\u{e004}"]).await;
    assert_eq!(browser.value(&tip).await, false, "what is left says nothing more");
    browser
        .until(
            "the start passes",
            "document.querySelector('.race-head so-time.late')?.textContent.startsWith('Delayed +')",
        )
        .await;
    let bands = "[...document.querySelectorAll('.bands .band')].map((band) => band.textContent[0]).join('')";
    assert_eq!(browser.text(bands).await, "¹²³⁴⁵⁶", "a band has a number besides its colour");
    stage.close().await;
}

#[tokio::test]
async fn a_scratched_runner_is_struck_out() {
    let Some(stage) = Stage::new(60).await else { return };
    let browser = &stage.browser;
    stage.open("/racing").await;
    let look = "fetch('/v1/records/nz?kind=racing_entrants&limit=1000').then((answer) => answer.json())
        .then(({ items }) => (window.scratched = items.find(({ body }) => body.is_scratched)))";
    browser.value(&format!("(setInterval(() => {look}, 500), true)")).await;
    browser.until("somebody is scratched", "window.scratched").await;
    let race = browser.text("window.scratched.body.race").await;
    let name = browser.text("window.scratched.body.name").await;
    stage.open(&format!("/race?source=nz&id={race}")).await;
    let row = format!(
        "[...document.querySelectorAll('.grid tr.scratched')].find((row) => row.textContent.includes({name:?}))"
    );
    browser.until("it is struck out", &row).await;
    let words = browser.text(&format!("{row}.querySelector('small').textContent")).await;
    assert!(words.starts_with("✕ ") && words.contains("scratch"), "and says so: {words}");
    stage.close().await;
}

#[tokio::test]
async fn a_pilot_knows_when_they_race() {
    let Some(stage) = Stage::new(30).await else { return };
    let browser = &stage.browser;
    stage.open("/fpv").await;
    let leaders = "document.querySelectorAll('[aria-label=\"Leaderboard of the event\"] tbody tr')";
    browser
        .until(
            "somebody leads",
            &format!("{leaders}.length > 2 && /\\d\\.\\d/.test({leaders}[0].textContent)"),
        )
        .await;
    browser
        .until(
            "nobody is chosen",
            "document.querySelector('.you-panel').textContent.includes('Choose a pilot to see')",
        )
        .await;
    // Somebody who is up later, by what the interface says.
    let away = "fetch('/v1/fpv/track/overlay').then((answer) => answer.json())
        .then(({ pilots }) => (window.away = pilots.find((one) => one.races_away > 0)))";
    browser.value(&format!("(setInterval(() => {away}, 500), true)")).await;
    browser.until("somebody races later", "window.away").await;
    browser
        .value("(() => { const pick = document.querySelector('.you-panel select'); pick.value = window.away.pilot; pick.dispatchEvent(new Event('change')); return true; })()")
        .await;
    browser.until("it is said in how many", "/^You (race in \\d+|are up now|are racing)$/.test(document.querySelector('.you-in').textContent)").await;
    browser
        .until(
            "they are marked on the leaderboard",
            &format!("[...{leaders}].some((row) => row.className === 'you')"),
        )
        .await;
    assert_eq!(browser.value("location.search.includes('pilot=')").await, true, "and kept in the address");
    // A drone race's target has no page among the gallops.
    let key = "fetch('/v1/targets?source=track&key=race%2F&limit=1').then((answer) => answer.json()).then(({ items: [one] }) => one.key)";
    let key = browser.text(key).await.replace('/', "%2F");
    stage.open(&format!("/target?source=track&key={key}")).await;
    browser.until("its line says what it shows", "/\\d+ polls?, \\d+ late, \\d+ missed, \\d+ failed/.test(document.querySelector('canvas.tall').getAttribute('aria-label'))").await;
    let link = "[...document.querySelectorAll('main a.button')].some((link) => link.checkVisibility() && link.pathname === '/race')";
    assert_eq!(browser.value(link).await, false, "no link leads nowhere");
    stage.close().await;
}

#[tokio::test]
async fn a_target_shows_how_it_was_polled() {
    let Some(stage) = Stage::new(30).await else { return };
    let browser = &stage.browser;
    stage.open("/racing").await;
    let race = "fetch('/v1/racing/nz/next').then((answer) => answer.json()).then(({ race }) => race.key)";
    let race = browser.text(race).await;
    stage.open(&format!("/target?source=nz&key=race%2F{race}")).await;
    let polls = "document.querySelectorAll('[aria-label=\"Notable polls\"] tbody tr')";
    browser.until("changes are listed", &format!("{polls}.length > 2")).await;
    // The arrow keys go from mark to mark, from the newest on.
    focus_values(browser, "main").await;
    let mut read_out = String::new();
    for _ in 0..10 {
        browser.press(&[LEFT]).await;
        read_out = browser.text(READ_OUT).await;
        if read_out.starts_with("poll ") {
            break;
        }
    }
    assert!(read_out.starts_with("poll ") && read_out.contains("after it was due"), "{read_out}");
    // Beside a mark it says which poll that was.
    let tip = "(() => {
        const line = document.querySelector('canvas.tall');
        for (let x = 0; x < line.clientWidth; x += 4) {
            line.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: line.getBoundingClientRect().left + x }));
            const tip = line.parentElement.querySelector('.tip');
            if (!tip.hidden && /poll \\d+, /.test(tip.textContent)) return tip.textContent;
        }
    })()";
    browser.until("a mark has words", tip).await;
    let link = "[...document.querySelectorAll('main a.button')].find((link) => link.checkVisibility() && link.pathname === '/race')";
    browser.until("its race is a step away", link).await;
    stage.close().await;
}

#[tokio::test]
async fn rules_of_alerts_are_not_among_the_settings() {
    let Some(stage) = Stage::new(10).await else { return };
    let browser = &stage.browser;
    stage.open("/settings").await;
    let rule = "fetch('/v1/alerts/changes', { method: 'PUT', headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ when: { on: 'event', type: 'racing.*' }, quiet: '10min' }) }).then((answer) => answer.ok)";
    assert_eq!(browser.value(rule).await, true);
    stage.open("/settings").await;
    browser.until("settings are listed", "document.querySelectorAll('.setting').length > 5").await;
    assert_eq!(
        browser.value("document.querySelector('main').textContent.includes('alert.changes')").await,
        false
    );
    stage.close().await;
}

/// Two markets' worth of tables; nobody answers them.
fn two_of_tables() -> String {
    let one = |name: &str| {
        format!(
            "[source.{name}]\nkind = \"tables\"\nbase_url = \"http://127.0.0.1:9\"\napi_key = {{ env = \"PATH\" }}\nauth_token = {{ env = \"PATH\" }}\nmarket = {{ box = [40.69, -74.03, 40.77, -73.97], zone = \"America/New_York\" }}\n"
        )
    };
    one("one") + &one("two")
}

#[tokio::test]
async fn of_several_sources_one_is_chosen_in_the_address() {
    let Some(stage) = Stage::of(|| Some(Demo::of(&two_of_tables()))).await else { return };
    let browser = &stage.browser;
    stage.open("/tables").await;
    let chosen = "document.querySelector('[aria-label=Source] [aria-pressed=true]')?.textContent";
    browser.until("the first one is shown", &format!("{chosen} === 'one'")).await;
    browser.click("[aria-label=Source] [aria-pressed=false]").await;
    browser
        .until("the other one is", &format!("{chosen} === 'two' && location.search === '?source=two'"))
        .await;
    let asked =
        "performance.getEntriesByType('resource').some(({ name }) => name.includes('/v1/tables/two/'))";
    browser.until("it is asked for", asked).await;
    stage.close().await;
}

#[tokio::test]
async fn people_sign_in_and_out_and_are_asked_again_when_their_session_ends() {
    let config = "[server]\ntoken = \"always\"\n[source.one]\nkind = \"fpv\"\nurl = \"http://127.0.0.1:9\"\n";
    let Some(stage) = Stage::of(|| Some(Demo::of(config))).await else { return };
    let browser = &stage.browser;
    let made = Command::new(env!("CARGO_BIN_EXE_stakeout"))
        .args(["token", "create", "--scope", "admin", "--name", "browser", "--config"])
        .arg(stage.demo.config())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let token = said.split_whitespace().find(|word| word.starts_with("stk_")).expect("a token").to_owned();

    browser.open(&format!("{}/health?window=1h", stage.url)).await;
    let form = "document.querySelector('#token')";
    browser.until("a token is asked for", form).await;
    browser.keys("#token", "stk_wrong\u{e007}").await;
    browser
        .until("a wrong one is refused with words", "document.querySelector('.says').textContent.length > 5")
        .await;
    browser.keys("#token", &format!("\u{e009}a\u{e000}{token}\u{e007}")).await;
    browser
        .until(
            "it goes on where they wanted to",
            "location.pathname + location.search === '/health?window=1h'",
        )
        .await;
    let state = "document.querySelector('#link').dataset.state";
    browser.until("and is live", &format!("{state} === 'live'")).await;
    browser.until("they can sign out", "!document.querySelector('#sign-out').hidden").await;

    // The session ends without this page: the next question finds out.
    browser.value("fetch('/v1/session', { method: 'DELETE' }).then((answer) => answer.ok)").await;
    browser.value("import('/live.js').then(({ live }) => (live.again(), true))").await;
    browser.until("they are asked again", &format!("location.pathname === '/sign-in' && {form}")).await;
    browser.keys("#token", &format!("{token}\u{e007}")).await;
    browser.until("and are back", "location.pathname + location.search === '/health?window=1h'").await;
    browser.until("live again", &format!("{state} === 'live'")).await;

    browser.until("they can sign out", "!document.querySelector('#sign-out').hidden").await;
    browser.click("#sign-out").await;
    browser.until("they are out", &format!("location.pathname === '/sign-in' && {form}")).await;
    let status = "fetch('/v1/targets').then((answer) => answer.status)";
    assert_eq!(browser.value(status).await, 401, "for good");
    // What was refused is noted by the browser, and nothing else is.
    let errors = browser.console_errors().await;
    assert!(errors.iter().all(|error| error.contains("401") || error.contains("404")), "{errors:#?}");
    stage.close().await;
}
