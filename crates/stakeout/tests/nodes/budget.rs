//! One budget for all nodes, and one price: a node computes it, the others read it, and when that node dies another
//! computes it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use stakeout_sim::{Act, Loopback};

use crate::support::{Eye, Node, Site, now_ms, until, until_within};

/// Five requests a second in all, a quarter of what the buckets could use.
const PER_SECOND: f64 = 5.0;

/// Buckets that are polled within a budget. A node shows its name as its key.
struct Market {
    site: Site,
    eye: Eye,
    server: Loopback,
    nodes: BTreeMap<&'static str, Node>,
}

impl Market {
    /// Two nodes that have looked at all of the buckets and shared them: whoever was there first gives of what it has.
    fn with_two_nodes() -> Option<Market> {
        let site = Site::new()?;
        let venue = json!({
            "id": { "resy": 1 }, "name": "Venue", "neighborhood": "Tribeca", "availability": { "slots": [] },
        });
        let page = json!({ "meta": { "total": 1, "total_pages": 1 }, "search": { "hits": [venue] } });
        let server = Loopback::start(move |_| Act::json(&page));
        let eye = site.eye();
        let mut market = Market { site, eye, server, nodes: BTreeMap::new() };
        market.start("one");
        market.start("two");
        until("there is a price", || market.prices() == 1);
        let shared = "SELECT count(*)::text FROM (SELECT owner FROM targets WHERE role = 'bucket' AND owner IS NOT NULL
            GROUP BY owner HAVING count(*) >= 6) AS holders";
        until("both hold more than a quarter of the buckets", || market.eye.number(shared) == 2);
        until("the first look at everything is over", || {
            market.eye.number("SELECT min(poll_no)::text FROM targets WHERE role = 'bucket'") > 0
        });
        Some(market)
    }

    fn start(&mut self, name: &'static str) {
        let source = format!(
            r#"
[source.nyc]
kind = "tables"
base_url = "{url}"
days = 10
party_sizes = [2]
budget = "{budget}/min"
min_interval = "1s"
max_interval = "1min"
limits = {{ requests_per_second = 200, burst = 20, concurrency = 20, jitter = "0ms" }}
"#,
            url = self.server.url(""),
            budget = PER_SECOND * 60.0,
        );
        let variables = [("RESY_API_KEY", name), ("RESY_AUTH_TOKEN", "t")];
        self.nodes.insert(name, self.site.odd_node(name, &self.site.database, &source, &variables));
    }

    fn prices(&self) -> i64 {
        self.eye.number("SELECT count(*)::text FROM prices")
    }

    /// Who computes the price.
    fn writer(&self) -> Option<String> {
        self.eye.texts("SELECT owner FROM leases WHERE name = 'price nyc'").pop()
    }

    /// Requests since then, by the name of the node.
    fn asked(&self, since: Instant) -> BTreeMap<&'static str, usize> {
        let seen = self.server.seen();
        let of = |name: &str| {
            let by = |key: &str| key.contains(name);
            let recent = seen.iter().filter(|seen| seen.at_instant >= since);
            recent.filter(|seen| seen.header("authorization").is_some_and(by)).count()
        };
        self.nodes.keys().map(|name| (*name, of(name))).collect()
    }

    /// Checks that the budget is kept, and not wasted, for a while; answers who asked how often.
    fn keeps_to_its_budget(&self) -> BTreeMap<&'static str, usize> {
        let began = Instant::now();
        let total = |asked: &BTreeMap<_, usize>| asked.values().sum::<usize>();
        until("it is asked for a while", || total(&self.asked(began)) >= 7 * PER_SECOND as usize);
        let asked = self.asked(began);
        let rate = total(&asked) as f64 / began.elapsed().as_secs_f64();
        println!("{rate:.1} requests per second: {asked:?}");
        assert!((PER_SECOND * 0.6..PER_SECOND * 1.25).contains(&rate), "{rate:.1} per second");
        asked
    }
}

#[test]
fn an_adaptive_budget_holds_for_all_nodes_together() {
    let Some(mut market) = Market::with_two_nodes() else { return };
    let writer = market.writer();
    let asked = market.keeps_to_its_budget();
    assert_eq!((market.writer(), market.prices()), (writer, 1), "one node computes the price all the while");
    market.nodes.values_mut().for_each(Node::stop);
    let (least, all) = (asked.values().min().expect("two"), asked.values().sum::<usize>());
    assert!(least * 6 > all, "both work: {asked:?}");
}

/// A look every second, and a machine that has other things to do.
const A_LOOK: Duration = Duration::from_secs(1 + 9);

/// Until the dead node's lease has run out the last price holds. Then another node computes it, and the budget is kept
/// all the while by those who are left.
#[test]
fn when_the_node_that_computes_the_price_dies_another_does() {
    let Some(mut market) = Market::with_two_nodes() else { return };
    let writer = market.writer().expect("there is a price");
    let mut dead = market.nodes.remove(writer.as_str()).expect("one of ours");
    dead.signal("-KILL");
    dead.wait();
    let (killed, killed_ms) = (Instant::now(), now_ms());
    let ends_ms = market.eye.number("SELECT (until_us / 1000)::text FROM leases WHERE name = 'price nyc'");
    let left = Duration::from_millis((ends_ms as u64).saturating_sub(killed_ms));
    let taken_over = || market.writer().is_some_and(|now| now != writer);
    let took = until_within(left + A_LOOK, "another node computes the price", taken_over);
    let computed = format!("SELECT count(*)::text FROM prices WHERE at_us > {killed_ms} * 1000::bigint");
    until_within(A_LOOK, "and has done so", || market.eye.number(&computed) == 1);
    let asked: usize = market.asked(killed).values().sum();
    let rate = asked as f64 / killed.elapsed().as_secs_f64();
    println!("taken over after {took:?} of {left:?}; {rate:.1} requests per second meanwhile");
    assert!(rate < PER_SECOND * 1.25, "{rate:.1} per second without the one that computed the price");
    assert!(took + Duration::from_secs(1) > left, "nobody takes what another still has");
    market.keeps_to_its_budget();
    market.nodes.values_mut().for_each(Node::stop);
}
