//! The dashboard in a real browser: Chromium, driven over the WebDriver protocol, against the real binary's demo.
//!
//! Nothing here waits by sleeping: the page itself answers when what is waited for has come about. Where Chromium or its
//! driver is missing the tests say so and pass, unless `CI=true`.

mod alerts;
mod axe;
mod demo;
mod driver;
#[path = "../support/faketime.rs"]
mod faketime;
mod lines;
mod live;
mod measure;
mod pages;
mod palette;
mod people;
mod proxy;
mod scenes;
mod screenshots;
mod wall;

use demo::Demo;
use driver::Browser;
use tokio::sync::{Mutex, MutexGuard};

/// One browser at a time: two of them starve each other on a small machine.
static STAGE: Mutex<()> = Mutex::const_new(());

/// A browser and a demo to look at.
struct Stage {
    browser: Browser,
    demo: Demo,
    /// Where the browser finds the demo.
    url: String,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// Everything that is needed, or `None` when there is no browser.
    async fn new(speed: u32) -> Option<Stage> {
        Stage::of(|| Some(Demo::start(speed))).await
    }

    /// The same with something else to look at.
    async fn of(demo: impl FnOnce() -> Option<Demo>) -> Option<Stage> {
        let alone = STAGE.lock().await;
        let Some(found) = driver::find() else {
            skipped("chromium and chromedriver are needed (Debian: chromium chromium-driver)");
            return None;
        };
        // The browser first: while it starts, nothing else on a small machine is on time.
        let browser = Browser::start(&found).await;
        let demo = demo()?;
        Some(Stage { browser, url: demo.url(), demo, _alone: alone })
    }

    /// Opens a page and waits until it shows something.
    async fn open(&self, path: &str) {
        self.browser.open(&format!("{}{path}", self.url)).await;
        self.browser
            .until("the page is live", "document.querySelector('#link')?.dataset.state === 'live'")
            .await;
        self.browser
            .until("nothing is loading any more", "!document.querySelector('main .state.loading')")
            .await;
    }

    /// Nothing went wrong that a user would not see, and nobody else was asked.
    async fn close(self) {
        let errors = self.browser.console_errors().await;
        assert!(errors.is_empty(), "the console has errors: {errors:#?}");
        let strangers: Vec<String> =
            self.browser.requests().await.into_iter().filter(|url| !url.starts_with(&self.url)).collect();
        assert!(strangers.is_empty(), "others were asked: {strangers:#?}");
        self.browser.close().await;
    }
}

/// Says what is left out for want of something; with `CI=true` that is a failure.
fn skipped(words: &str) {
    let words = format!("skipped: {words}");
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{words}; with CI=true nothing may be skipped");
    std::io::Write::write_all(&mut std::io::stdout(), format!("{words}\n").as_bytes()).expect("written");
}
