//! Everything that is answered, one line per route.

mod ringing;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::access::{self, Scope, SessionView};
use crate::problem::Sort;
use crate::reply::Page;
use crate::route::{EVENT_STREAM, Route};
use crate::tables::venues;
use crate::{
    adherence, events, fpv, health, history, kv, metrics, openapi, polls, racing, records, settings, sources,
    stream, tables, targets, why,
};

const SOURCE: &str = "The source's name.";
const KEY: &str = "The target's key; a slash in it is written %2F.";
const RECORD: &str = "The record's fingerprint: 32 hex digits.";
const RACE: &str = "The race's id.";
const DONE: &str = "Done";

/// All routes.
pub(crate) fn all() -> Vec<Route> {
    let mut routes = vec![
        Route::get("/livez", health::live)
            .open()
            .about("health", "Is it there?")
            .answers_text("text/plain", "It is"),
        Route::get("/readyz", health::ready)
            .open()
            .about("health", "Is the store open, and has every source looked for its targets?")
            .answers_text("text/plain", "It is ready")
            .or(&[Sort::Unavailable]),
        Route::get("/metrics", metrics::serve)
            .about("health", "The engine in numbers, in Prometheus' text format")
            .answers_text("text/plain", "Counters, gauges and histograms"),
        Route::get("/v1/openapi.json", openapi::serve)
            .about("health", "This description")
            .answers::<Json>("OpenAPI 3.1"),
        Route::get("/openapi.json", openapi::serve)
            .about("health", "The same, where tools look for it")
            .answers::<Json>("OpenAPI 3.1"),
        Route::get("/v1/health", health::health)
            .about("health", "How is it doing?")
            .answers::<health::Health>("In numbers"),
    ];
    routes.extend(sessions());
    routes.extend(watched());
    routes.extend(told());
    routes.extend(changed());
    routes.extend(ringing::of_alerts());
    routes.extend(ringing::of_sinks());
    routes.extend(of_racing());
    routes.extend(of_fpv());
    routes.extend(of_tables());
    routes
}

fn sessions() -> Vec<Route> {
    vec![
        Route::get("/v1/session", access::view)
            .open()
            .about("access", "Who am I?")
            .answers::<SessionView>("What the caller may do"),
        Route::post("/v1/session", access::open)
            .open()
            .about("access", "Exchanges a token for a session cookie")
            .body::<access::SignIn>()
            .answers::<SessionView>("Signed in")
            .or(&[Sort::NoToken, Sort::NotAllowed, Sort::TooManyTries]),
        Route::delete("/v1/session", access::forget)
            .open()
            .about("access", "Signs out")
            .answers_nothing("Signed out")
            .or(&[Sort::NotAllowed]),
    ]
}

/// What is watched, and what is known of it.
fn watched() -> Vec<Route> {
    vec![
        Route::get("/v1/sources", sources::list)
            .about("sources", "Lists the sources")
            .answers::<Vec<sources::Source>>("All of them"),
        Route::get("/v1/sources/{source}", sources::one)
            .about("sources", "One source")
            .part("source", SOURCE)
            .answers::<sources::Source>("The source")
            .or(&[Sort::NotFound]),
        Route::get("/v1/targets", targets::list)
            .about("targets", "Lists targets")
            .query::<targets::TargetQuery>()
            .answers_parts::<Page<targets::Target>>("A page of targets"),
        Route::get("/v1/targets/{source}/{key}", targets::one)
            .about("targets", "One target: when it is due, and why")
            .part("source", SOURCE)
            .part("key", KEY)
            .answers::<targets::Target>("The target")
            .or(&[Sort::NotFound]),
        Route::get("/v1/targets/{source}/{key}/why", why::serve)
            .about("targets", "Why it is due then, what its polls did, why there is no event")
            .part("source", SOURCE)
            .part("key", KEY)
            .answers::<why::Why>("The same as `stakeout why --json`")
            .or(&[Sort::NotFound]),
        Route::get("/v1/targets/{source}/{key}/polls", polls::of_target)
            .about("polls", "The notable polls of a target, the newest first")
            .part("source", SOURCE)
            .part("key", KEY)
            .query::<polls::TargetPolls>()
            .answers_parts::<Vec<polls::Poll>>("The polls; the `Link` header leads to those before them")
            .or(&[Sort::NotFound]),
        Route::get("/v1/targets/{source}/{key}/runs", adherence::runs)
            .about("polls", "The stretches of regular polling of a target, the oldest first")
            .part("source", SOURCE)
            .part("key", KEY)
            .query::<adherence::TargetRuns>()
            .answers_parts::<Vec<targets::Stretch>>(
                "Those that touch the window; the `Link` header leads to those before them",
            )
            .or(&[Sort::NotFound]),
        Route::get("/v1/runs/{source}", adherence::finished)
            .about("polls", "The finished stretches of regular polling of all targets of a source")
            .part("source", SOURCE)
            .query::<adherence::RunQuery>()
            .answers_parts::<Page<adherence::Finished>>(
                "A page of those that touch the window, as they ended",
            )
            .or(&[Sort::NotFound]),
        Route::get("/v1/records/{source}", records::list)
            .about("records", "Lists the records of a source, also of one that is no longer configured")
            .part("source", SOURCE)
            .query::<records::RecordQuery>()
            .answers_parts::<Page<records::Record>>("A page of records"),
        Route::get("/v1/records/{source}/{record}", records::one)
            .about("records", "One record")
            .part("source", SOURCE)
            .part("record", RECORD)
            .answers::<records::Record>("The record")
            .or(&[Sort::NotFound]),
        Route::get("/v1/records/{source}/{record}/history", history::read)
            .about("records", "What a record said: change by change, at a moment, or thinned out for a chart")
            .part("source", SOURCE)
            .part("record", RECORD)
            .query::<history::HistoryQuery>()
            .answers_parts::<Page<history::Row>>("Rows of history, the oldest first")
            .or(&[Sort::NotFound]),
        Route::get("/v1/adherence/{source}", adherence::of_source)
            .about(
                "adherence",
                "Was a source polled when it was due, and how long can anything have gone unseen?",
            )
            .part("source", SOURCE)
            .query::<adherence::WindowQuery>()
            .answers::<adherence::Adherence>("By phase, and the worst targets")
            .or(&[Sort::NotFound]),
        Route::get("/v1/adherence/{source}/{key}", adherence::of_target)
            .about("adherence", "The same for one target")
            .part("source", SOURCE)
            .part("key", KEY)
            .query::<adherence::WindowQuery>()
            .answers::<adherence::Adherence>("By phase")
            .or(&[Sort::NotFound]),
        Route::get("/v1/polls", polls::list)
            .about("polls", "Lists notable polls of all targets, the newest first")
            .query::<polls::PollQuery>()
            .answers_parts::<Page<polls::Poll>>("A page of polls")
            .or(&[Sort::NotFound]),
    ]
}

/// What was told.
fn told() -> Vec<Route> {
    vec![
        Route::get("/v1/events", events::list)
            .about("events", "Lists events; the cursor is the sequence number")
            .query::<events::EventQuery>()
            .answers_parts::<Page<events::Event>>("A page of events"),
        Route::get("/v1/events/stream", stream::stream)
            .about("events", "Events and published values as they happen (Server-Sent Events)")
            .query::<stream::StreamQuery>()
            .answers_text(
                EVENT_STREAM,
                "Messages `event`, `kv`, `heartbeat`, `resync`; with `polls` also `poll`, `targets`, `pulse`",
            )
            .or(&[Sort::Unavailable]),
        Route::get("/v1/events/{seq}", events::one)
            .about("events", "One event")
            .part("seq", "The sequence number.")
            .answers::<events::Event>("The event")
            .or(&[Sort::NotFound]),
        Route::get("/v1/kv", kv::list)
            .about("kv", "Lists published values")
            .query::<kv::KvQuery>()
            .answers_parts::<Vec<kv::Value>>(
                "By namespace and key; the `Link` header leads to those after them",
            ),
        Route::get("/v1/kv/{namespace}/{key}", kv::one)
            .about("kv", "One published value, as it is")
            .part("namespace", "The namespace.")
            .part("key", "The key.")
            .answers::<Json>("The value")
            .or(&[Sort::NotFound]),
    ]
}

/// What may be changed.
fn changed() -> Vec<Route> {
    let target = |route: Route, summary: &'static str| {
        route
            .scope(Scope::Operate)
            .about("targets", summary)
            .part("source", SOURCE)
            .part("key", KEY)
            .answers_nothing(DONE)
            .or(&[Sort::NotFound, Sort::Unavailable])
    };
    vec![
        target(Route::post("/v1/targets/{source}/{key}/enable", targets::enable), "Switches a target on"),
        target(Route::post("/v1/targets/{source}/{key}/disable", targets::disable), "Switches a target off"),
        target(
            Route::post("/v1/targets/{source}/{key}/poll", targets::poll_now),
            "Polls a target at once; one that is switched off is refused: enable it first",
        )
        .or(&[Sort::Refused]),
        target(
            Route::post("/v1/targets/{source}/{key}/replan", targets::replan),
            "Computes its due time anew",
        ),
        target(
            Route::post("/v1/targets/{source}/{key}/rebaseline", targets::rebaseline),
            "Takes its next complete answer as it is, without events",
        ),
        Route::post("/v1/poll", polls::pass)
            .scope(Scope::Operate)
            .about("polls", "Polls everything that is due, for external schedulers")
            .query::<polls::PassQuery>()
            .answers::<polls::Pass>("What came of it: the same as `stakeout poll --json`")
            .or(&[Sort::Unavailable]),
        Route::get("/v1/settings", settings::list)
            .about("settings", "Lists live settings")
            .answers::<BTreeMap<String, Json>>("By name"),
        Route::get("/v1/settings/known", settings::known)
            .about("settings", "Lists everything that can be set, with its present value")
            .answers::<Vec<settings::Known>>("By source"),
        Route::get("/v1/settings/{key}", settings::one)
            .about("settings", "One live setting")
            .part("key", "source.NAME.SETTING")
            .answers::<settings::Setting>("The setting")
            .or(&[Sort::NotFound]),
        Route::put("/v1/settings/{key}", settings::set)
            .scope(Scope::Admin)
            .about("settings", "Changes a live setting, or checks a value; it acts at once")
            .part("key", "source.NAME.SETTING")
            .body::<settings::NewValue>()
            .answers::<settings::Setting>("The setting as it is now")
            .or(&[Sort::NotFound, Sort::Refused, Sort::Unavailable]),
        Route::delete("/v1/settings/{key}", settings::unset)
            .scope(Scope::Admin)
            .about("settings", "Goes back to the configuration file")
            .part("key", "source.NAME.SETTING")
            .answers_nothing(DONE)
            .or(&[Sort::NotFound, Sort::Refused, Sort::Unavailable]),
    ]
}

fn of_racing() -> Vec<Route> {
    let race = |route: Route, summary: &'static str| {
        route.about("racing", summary).part("source", SOURCE).part("race", RACE).or(&[Sort::NotFound])
    };
    vec![
        Route::get("/v1/racing/{source}/meetings", racing::meetings)
            .about("racing", "Lists meetings")
            .part("source", SOURCE)
            .query::<racing::MeetingQuery>()
            .answers::<Vec<records::Record>>("Meetings, by name")
            .or(&[Sort::NotFound]),
        Route::get("/v1/racing/{source}/races", racing::races)
            .about("racing", "Lists races")
            .part("source", SOURCE)
            .query::<racing::RaceQuery>()
            .answers_parts::<Vec<records::Record>>("Races, by start")
            .or(&[Sort::NotFound]),
        Route::get("/v1/racing/{source}/next", racing::next)
            .about("racing", "The race that starts next")
            .part("source", SOURCE)
            .answers::<racing::Race>("The race, with its runners")
            .or(&[Sort::NotFound]),
        race(Route::get("/v1/racing/{source}/races/{race}", racing::race), "One race, with its runners")
            .answers::<racing::Race>("The race"),
        race(
            Route::get("/v1/racing/{source}/races/{race}/entrants", racing::entrants),
            "The runners of a race",
        )
        .answers::<Vec<records::Record>>("By number"),
        race(
            Route::get("/v1/racing/{source}/races/{race}/timeline", racing::timeline),
            "Money and prices by minutes to the start, with indicators",
        )
        .query::<racing::TimelineQuery>()
        .answers::<racing::TimelineView>("The grid"),
        race(Route::get("/v1/racing/{source}/races/{race}/results", racing::results), "How a race ended")
            .answers::<racing::Results>("Placings, dividends and pools"),
    ]
}

fn of_fpv() -> Vec<Route> {
    let about = |route: Route, summary: &'static str| {
        route.about("fpv", summary).part("source", SOURCE).or(&[Sort::NotFound])
    };
    vec![
        about(Route::get("/v1/fpv/{source}/event", fpv::event), "The event that is flown")
            .answers::<fpv::FpvEvent>("The event"),
        about(Route::get("/v1/fpv/{source}/races", fpv::races), "The last, the current and the next race")
            .answers::<fpv::Races>("As overlays show them"),
        about(Route::get("/v1/fpv/{source}/leaderboard", fpv::board), "Who leads, in the event or in a race")
            .query::<fpv::BoardQuery>()
            .answers::<Vec<fpv::Line>>("The leader first"),
        about(
            Route::get("/v1/fpv/{source}/pilots/{pilot}", fpv::pilot),
            "Where a pilot stands, and when they fly",
        )
        .part("pilot", "The pilot's id.")
        .answers::<fpv::Pilot>("The pilot"),
        about(Route::get("/v1/fpv/{source}/overlay", fpv::shown), "One small document for stream overlays")
            .answers::<Json>("Races, leaders, and who flies when"),
    ]
}

fn of_tables() -> Vec<Route> {
    let about = |route: Route, summary: &'static str| {
        route.about("tables", summary).part("source", SOURCE).or(&[Sort::NotFound])
    };
    let venue = |route: Route, summary: &'static str| about(route, summary).part("venue", "The venue's id.");
    let wish = |route: Route, summary: &'static str| {
        venue(route.scope(Scope::Operate), summary)
            .answers::<venues::Wishes>("Whom to follow and whom to leave out, as it is now")
            .or(&[Sort::Refused, Sort::Unavailable])
    };
    vec![
        about(Route::get("/v1/tables/{source}/just-opened", tables::just_opened), "Tables that just opened")
            .query::<tables::TableQuery>()
            .answers_parts::<Vec<tables::Day>>(
                "By date and venue; the `Link` header leads to those after them",
            ),
        about(Route::get("/v1/tables/{source}/still-open", tables::still_open), "Tables that are still open")
            .query::<tables::TableQuery>()
            .answers_parts::<Vec<tables::Day>>(
                "By date and venue; the `Link` header leads to those after them",
            ),
        about(
            Route::get("/v1/tables/{source}/buckets", tables::buckets),
            "The searches, and how they are doing",
        )
        .answers::<Vec<tables::Bucket>>("By id"),
        about(
            Route::post("/v1/tables/{source}/rebaseline", tables::rebaseline).scope(Scope::Operate),
            "Takes the next complete answer of every bucket as it is, without events",
        )
        .answers::<tables::Rebaselined>("How many buckets")
        .or(&[Sort::Unavailable]),
        about(Route::get("/v1/tables/{source}/venues", venues::list), "Lists venues")
            .query::<venues::VenueQuery>()
            .answers_parts::<Vec<records::Record>>("Venues; the `Link` header leads to those after them"),
        venue(
            Route::get("/v1/tables/{source}/venues/{venue}", venues::one),
            "What opened at a venue, and when",
        )
        .answers::<venues::VenueView>("The venue with its tables and drops"),
        wish(Route::put("/v1/tables/{source}/venues/{venue}/follow", venues::follow), "Follows a venue"),
        wish(
            Route::delete("/v1/tables/{source}/venues/{venue}/follow", venues::unfollow),
            "Follows it no longer",
        ),
        wish(
            Route::put("/v1/tables/{source}/venues/{venue}/exclude", venues::exclude),
            "Tells nothing of a venue any more",
        ),
        wish(
            Route::delete("/v1/tables/{source}/venues/{venue}/exclude", venues::include),
            "Tells of a venue again",
        ),
    ]
}
