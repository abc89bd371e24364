//! A node that stands still in the middle of something.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stakeout_sim::{Act, Loopback, SplitMix64};

use crate::support::{Site, until, until_within};
use crate::truth::SEED;

/// Targets that both nodes ask for, each of whose answers is another: every poll is a commit with records, history and
/// events, and takes the same locks as those of the other node.
fn busy(server: &Loopback, node: &str) -> String {
    let ids: Vec<String> = (0..12).map(|n| format!("\"t{n}\"")).collect();
    format!(
        r#"
[source.busy]
kind = "json"
url = "{url}"
ids = [{ids}]
every = "100ms"
records = "items"
key = "id"
fields = ["value"]
history = ["value"]
headers = {{ x-node = "{node}" }}
limits = {{ requests_per_second = 1000, burst = 100, concurrency = 50, timeout = "500ms" }}
"#,
        url = server.url("/state/{id}"),
        ids = ids.join(", "),
    )
}

/// How long somebody has been waiting for a lock.
const WAITING_MS: &str =
    "SELECT max(extract(epoch FROM clock_timestamp() - query_start) * 1000)::bigint::text
    FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Wherever in its commit a node stops, nobody waits for it: no lock outlives a call, also where both nodes write the
/// same source all the time.
#[test]
fn a_node_that_stands_still_in_a_commit_holds_up_nobody() {
    let Some(site) = Site::new() else { return };
    let asked = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let counts = Arc::clone(&asked);
    let server = Loopback::start(move |seen| {
        let node = usize::from(seen.header("x-node") == Some("two"));
        let n = counts[node].fetch_add(1, Ordering::Relaxed) * 2 + node as u64;
        let items: Vec<_> = (0..40).map(|id| serde_json::json!({"id": id, "value": n * 50 + id})).collect();
        Act::json(&serde_json::json!({ "items": items }))
    });
    let mut one = site.node("one", &busy(&server, "one"));
    let mut two = site.node("two", &busy(&server, "two"));
    let eye = site.eye();
    let polls = |node: &str| asked[usize::from(node == "two")].load(Ordering::Relaxed);
    until("both poll", || polls("one") > 20 && polls("two") > 20);
    let mut random = SplitMix64::new(SEED);
    let mut longest_ms = 0;
    for _ in 0..30 {
        let spin = Duration::from_micros(random.between(0, 60_000));
        let spinning = Instant::now();
        while spinning.elapsed() < spin {
            std::hint::spin_loop();
        }
        one.signal("-STOP");
        // A target is asked for again when its last poll is in: the other one commits.
        let before = polls("two");
        until_within(Duration::from_secs(10), "the other one goes on", || {
            longest_ms = longest_ms.max(eye.number(WAITING_MS));
            polls("two") > before + 24
        });
        one.signal("-CONT");
        let before = polls("one");
        until("it goes on itself", || polls("one") > before);
    }
    println!("nobody waited longer than {longest_ms} ms for a lock");
    assert!(longest_ms < 3_000, "{longest_ms} ms");
    one.stop();
    two.stop();
}
