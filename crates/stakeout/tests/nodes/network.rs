//! A node on a machine of its own, as far as the network goes: its cable is pulled, so that it reaches neither the database
//! nor the upstream, and put back.

use std::net::Ipv4Addr;
use std::process::Command;

use stakeout_store::conformance::server::PostgresServer;

use crate::proxy::{End, Proxy};
use crate::support::{Node, Site, until, until_within};
use crate::truth::{Gap, INTERVAL_MS, SOON, Truth, some_polls};

/// A network of its own with one cable to ours; both are gone when it is dropped.
struct Network {
    name: String,
    cable: String,
    here: Ipv4Addr,
}

fn ip(arguments: &str) -> Result<(), String> {
    let ran = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    if ran.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ran.stderr).into_owned()) }
}

impl Network {
    /// `None`, having said why, where none can be made; with `CI=true` that is a failure.
    fn new() -> Option<Network> {
        let pid = std::process::id();
        // Addresses for measurements between networks, which nobody uses in earnest.
        let place = Ipv4Addr::new(198, 18, (pid >> 6) as u8, (pid as u8 & 63) << 2);
        let nth = |n: u32| Ipv4Addr::from(u32::from(place) + n);
        let network = Network { name: format!("stakeout-{pid}"), cable: format!("stk{pid}"), here: nth(1) };
        // What a killed run of the same number left behind.
        network.remove();
        let made = network.make(nth(2));
        if let Err(error) = made {
            println!("skipped: no network can be made (root, and Debian's package iproute2): {error}");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped");
            return None;
        }
        Some(network)
    }

    fn make(&self, there: Ipv4Addr) -> Result<(), String> {
        let Network { name, cable, here } = self;
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {cable} type veth peer name far netns {name}"))?;
        ip(&format!("addr add {here}/30 dev {cable}"))?;
        ip(&format!("link set {cable} up"))?;
        ip(&format!("-n {name} addr add {there}/30 dev far"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} link set far up"))
    }

    /// Whatever was made of it.
    fn remove(&self) {
        let _ = ip(&format!("link del {}", self.cable));
        let _ = ip(&format!("netns del {}", self.name));
    }

    fn cable(&self, state: &str) {
        ip(&format!("link set {} {state}", self.cable)).expect("a cable");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

#[test]
fn a_node_whose_cable_is_pulled_is_replaced_and_comes_back() {
    let Some(site) = Site::new() else { return };
    let Some(network) = Network::new() else { return };
    let mut truth = Truth::new(2_000);
    let source = truth.source(&format!("{INTERVAL_MS}ms"));
    let upstream = truth.server.url("");
    let upstream = upstream.trim_start_matches("http://").trim_end_matches('/');
    let socket = PostgresServer::shared().expect("it was there").socket();
    let database = Proxy::at(network.here, End::Socket(socket));
    let way = Proxy::at(network.here, End::Port(upstream.parse().expect("an address")));
    let far_source = source.replace(upstream, &way.address().to_string());
    let far_config = site.configure("far", &database.url(&site.database), "off", &far_source);
    let mut far = Node::start_in(&network.name, &far_config);
    let eye = site.eye();
    until("it is polled from afar", || eye.polls() > 5 && eye.holder().as_deref() == Some("far"));
    for round in 0..2 {
        let near_config = site.configure("near", &site.database, "off", &source);
        let mut near = Node::start(&near_config);
        // It asks by another way, and so the first answer after its first start is a baseline, of which nothing is told.
        let baselines = "SELECT count(*)::text FROM polls WHERE outcome = 'baseline'";
        until("what the near one's way shows is the baseline", || eye.number(baselines) == 2);
        some_polls(&eye, &mut truth);
        until("it is held from afar", || eye.holder().as_deref() == Some("far"));
        let gap = Gap::begins(&eye);
        network.cable("down");
        let polls = eye.polls();
        let took = until_within(SOON, "the near one takes over", || {
            eye.holder().as_deref() == Some("near") && eye.polls() > polls + 3
        });
        println!("round {round}: taken over after {took:?}; {}", gap.is_named(&eye));
        some_polls(&eye, &mut truth);
        network.cable("up");
        near.stop();
        let polls = eye.polls();
        let took = until("it is polled from afar again", || {
            eye.holder().as_deref() == Some("far") && eye.polls() > polls + 3
        });
        println!("round {round}: back after {took:?}");
        assert!(far.child.try_wait().expect("looked").is_none(), "it never went");
    }
    far.stop();
    assert!(truth.compare(&eye) > 1, "too few states to check");
}
