//! Numbers about the dashboard in a real browser: `scripts/measure-dashboard` asks for them. They are printed, never
//! asserted: a test must not fail because the machine is busy.

use std::io::Write as _;

use stakeout_sim::FastServer;

use crate::Stage;
use crate::demo::Demo;

const LOADS: usize = 15;
const ROWS: usize = 500;
/// Each of them is polled so often; together they change the page with every flush of the stream, five times a second.
const EVERY: &str = "1s";

/// The first paint with content, in milliseconds after the navigation began.
const PAINT: &str = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null";

/// Frames for ten seconds while rows change: their intervals, the longest tasks, how many cells changed.
const FRAMES: &str = r#"new Promise((resolve) => {
    const frames = [];
    let [last, long, changes] = [0, 0, 0];
    const tasks = new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (long = Math.max(long, duration))));
    tasks.observe({ type: "longtask" });
    const cells = new MutationObserver((found) => (changes += found.length));
    cells.observe(document.querySelector(".board tbody"), { subtree: true, childList: true, characterData: true, attributes: true });
    const began = performance.now();
    requestAnimationFrame(function frame(at) {
        if (last) frames.push(at - last);
        last = at;
        if (at - began < 10_000) return requestAnimationFrame(frame);
        frames.sort((a, b) => a - b);
        const part = (q) => frames[Math.min(frames.length - 1, Math.floor(q * frames.length))];
        resolve({ frames: frames.length, p50: part(0.5), p99: part(0.99), longest: frames.at(-1), long_task: long, changes, rows: document.querySelectorAll(".board tbody tr").length });
    });
})"#;

fn say(words: &str) {
    std::io::stdout().write_all(format!("{words}\n").as_bytes()).expect("written");
}

#[tokio::test]
#[ignore = "prints numbers; scripts/measure-dashboard runs it"]
async fn measure() {
    let upstream = FastServer::start(1);
    let ids: Vec<String> = (0..ROWS).map(|n| format!("\"{n}\"")).collect();
    let config = format!(
        "[source.many]\nkind = \"json\"\nurl = \"http://{}/same/{{id}}\"\nids = [{}]\nevery = \"{EVERY}\"\n\
         records = \"items\"\nkey = \"id\"\nfields = [\"value\"]\n\
         limits = {{ requests_per_second = 5000, burst = 1000, concurrency = 64 }}\n",
        upstream.addr(),
        ids.join(", ")
    );
    let Some(stage) = Stage::of(|| Some(Demo::of(&config))).await else { panic!("no browser, no numbers") };
    let browser = &stage.browser;
    let mut paints = Vec::new();
    for _ in 0..LOADS {
        stage.open("/").await;
        paints.extend(browser.value(PAINT).await.as_f64());
    }
    paints.sort_by(f64::total_cmp);
    let (median, most) = (paints[paints.len() / 2], paints[paints.len() - 1]);
    say(&format!("first paint of {} loads: median {median:.0} ms, longest {most:.0} ms", paints.len()));
    browser.look(1440, 900, "light").await;
    stage.open("/").await;
    browser
        .until(
            "all rows are there",
            &format!("document.querySelectorAll('.board tbody tr').length === {ROWS}"),
        )
        .await;
    let found = browser.value(FRAMES).await;
    let number = |name: &str| found[name].as_f64().unwrap_or(f64::NAN);
    say(&format!(
        "{} rows, {:.0} changes in ten seconds: {:.0} frames per second; between two frames p50 {:.1} ms, p99 {:.1} ms, \
         longest {:.1} ms; longest task {:.0} ms",
        number("rows"),
        number("changes"),
        number("frames") / 10.0,
        number("p50"),
        number("p99"),
        number("longest"),
        number("long_task")
    ));
    assert_eq!(found["rows"], ROWS, "{found}");
    stage.close().await;
}
