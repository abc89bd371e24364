//! The focus of drone races, where several nodes ask the same FPVTrackside: whoever sees that a race is over decides, and
//! the next race, which another node holds, is looked at closely at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use stakeout_core::{Span, Time};
use stakeout_sim::fpv::{Event, EventConfig, Guid, Server, Upstream, serve};

use crate::support::{Eye, Node, Site, until, until_within};

const SEED: u64 = 20_261_117;
/// As often as the current race is looked at.
const ACTIVE_MS: u64 = 200;
/// The others are looked at so rarely that only being told can explain a look.
const IDLE_MS: u64 = 15_000;
/// Changes of focus from one node's race to another's.
const CHANGES: usize = 3;
/// What is promised, and what most of several tries must keep, so that one hiccup of the machine is not taken for a fault.
const PROMISED: Duration = Duration::from_secs(1);
const AT_LEAST: Duration = Duration::from_secs(3);

/// Several requests at once, so that no node has the source to itself. Nothing is determined regularly: the focus follows
/// from what a poll has seen, on the node that made it.
fn track(server: &Server) -> String {
    format!(
        r#"
[source.track]
kind = "fpv"
url = "{url}"
scheduler = {{ raceActiveMs = {ACTIVE_MS}, raceIdleMs = {IDLE_MS}, activeCheckMs = 0, jitterMs = 0 }}
limits = {{ concurrency = 4, burst = 10, min_gap = "0ms" }}
"#,
        url = server.url(""),
    )
}

/// The moments at which another race becomes the current one, and which. Its file is not saved then: the race before
/// has ended.
fn changes_of_focus(event: &Event) -> Vec<(Time, Guid)> {
    let truth = event.truth();
    let mut found: Vec<(Time, Guid)> = Vec::new();
    for change in truth.changes() {
        // A file is saved twice within 30 ms.
        let at = change.at + Span::ms(100);
        if let Some(current) = truth.current(at)
            && found.last().is_none_or(|(_, race)| *race != current.race)
        {
            found.push((at, current.race));
        }
    }
    found
}

fn owner(eye: &Eye, race: Guid) -> Option<String> {
    eye.texts(&format!("SELECT owner FROM targets WHERE key = 'race/{race}'")).pop()
}

/// When somebody decided that this race is the current one.
fn decided(eye: &Eye, race: Guid) -> Option<Duration> {
    let sql = format!(
        "SELECT updated_us::text FROM kv WHERE namespace = 'race' AND key = 'currentOrder'
         AND value::json ->> 'raceId' = '{race}'"
    );
    eye.texts(&sql).pop().map(|us| Duration::from_micros(us.parse().expect("a moment")))
}

/// When the upstream was asked for this race.
fn looks_at(server: &Server, race: Guid) -> Vec<Duration> {
    let file = format!("/{race}/Race.json");
    let seen = server.seen().into_iter().filter(|seen| seen.path.ends_with(&file));
    seen.map(|seen| seen.at.duration_since(UNIX_EPOCH).expect("after 1970")).collect()
}

#[test]
fn a_race_that_another_node_holds_is_looked_at_closely_as_soon_as_it_is_the_current_one() {
    let Some(site) = Site::new() else { return };
    let config = EventConfig { brackets: 0, ..EventConfig::new(SEED).with_races(24) };
    let event = Event::new(&config);
    let changes = changes_of_focus(&event);
    // The upstream's time stands still until it is moved on.
    let time = Arc::new(AtomicI64::new(changes[0].0.us()));
    let now = Arc::clone(&time);
    let server = serve(Arc::new(Upstream::new(event)), move || Time(now.load(Ordering::SeqCst)));
    let source = track(&server);
    let mut nodes = ["one", "two"].map(|name| site.node(name, &source));
    let eye = site.eye();
    until("every race is known", || eye.number("SELECT count(*)::text FROM fpv_races") == 24);
    until("the first one is the current one", || decided(&eye, changes[0].1).is_some());

    let mut took = Vec::new();
    for pair in changes.windows(2) {
        let [(_, before), (at, race)] = [pair[0], pair[1]];
        let mut owners = (None, None);
        until("both races are held", || {
            owners = (owner(&eye, before), owner(&eye, race));
            owners.0.is_some() && owners.1.is_some()
        });
        time.store(at.us(), Ordering::SeqCst);
        until("the focus moves on", || decided(&eye, race).is_some());
        let decided = decided(&eye, race).expect("just seen");
        let looks = || looks_at(&server, race).into_iter().filter(|at| *at >= decided).collect::<Vec<_>>();
        // A handful, so that one at its own time does not count as more.
        until_within(Duration::from_secs(30), "it is looked at closely", || looks().len() > 5);
        let looks = looks();
        let mut gaps: Vec<Duration> = looks.windows(2).map(|two| two[1] - two[0]).collect();
        gaps.sort();
        println!("{owners:?}: looked at after {:?}, then every {gaps:?}", looks[0] - decided);
        assert!(gaps[gaps.len() / 2] < Duration::from_millis(2 * ACTIVE_MS), "at the interval of the focus");
        if owners.0 != owners.1 {
            took.push(looks[0] - decided);
        }
        if took.len() == CHANGES {
            break;
        }
    }
    nodes.iter_mut().for_each(Node::stop);
    took.sort();
    assert_eq!(took.len(), CHANGES, "there were too few races that changed nodes with the focus");
    assert!(took[CHANGES / 2] < PROMISED && took[CHANGES - 1] < AT_LEAST, "told within a second: {took:?}");
}
