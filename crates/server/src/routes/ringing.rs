//! The routes of alerts, notifications and sinks.

use stakeout_sources::alert::AlertConfig;

use super::DONE;
use crate::access::Scope;
use crate::problem::Sort;
use crate::route::Route;
use crate::{alerts, notifications, sinks};

/// Who wants to be told what, and what they were told.
pub(super) fn of_alerts() -> Vec<Route> {
    let name = |route: Route| route.part("name", "The alert's name.").or(&[Sort::NotFound, Sort::Refused]);
    vec![
        Route::get("/v1/alerts", alerts::list)
            .about(
                "alerts",
                "Lists the rules in force: those of the file, and live ones, which go before them",
            )
            .answers::<Vec<alerts::Rule>>("By name"),
        name(Route::put("/v1/alerts/{name}", alerts::set))
            .scope(Scope::Operate)
            .about("alerts", "Makes a rule, or changes one; it acts at once")
            .body::<AlertConfig>()
            .answers::<alerts::Rule>("The rule as it is now")
            .or(&[Sort::Unavailable]),
        name(Route::delete("/v1/alerts/{name}", alerts::remove))
            .scope(Scope::Operate)
            .about("alerts", "Removes a live rule; one of the same name in the file holds again")
            .answers_nothing(DONE)
            .or(&[Sort::Unavailable]),
        name(Route::post("/v1/alerts/{name}/test", alerts::test))
            .about("alerts", "What a rule would have told; sends nothing")
            .query::<alerts::TestQuery>()
            .answers::<alerts::Replayed>("What it would have sent, and how often it would have kept quiet"),
        Route::post("/v1/alerts/test", alerts::test_draft)
            .about("alerts", "The same for a rule that is not in force")
            .query::<alerts::TestQuery>()
            .body::<AlertConfig>()
            .answers::<alerts::Replayed>("What it would have sent, and how often it would have kept quiet")
            .or(&[Sort::Refused]),
        Route::get("/v1/notifications", notifications::list)
            .about("alerts", "Lists what alerts told, the newest first")
            .query::<notifications::NotificationQuery>()
            .answers_parts::<notifications::Notifications>("A page, and how many nobody has read"),
        Route::post("/v1/notifications/{seq}/read", notifications::read_one)
            .scope(Scope::Operate)
            .about("alerts", "Marks a notification as read")
            .part("seq", "The sequence number.")
            .answers_nothing(DONE)
            .or(&[Sort::NotFound]),
        Route::post("/v1/notifications/read", notifications::read_all)
            .scope(Scope::Operate)
            .about("alerts", "Marks notifications as read, up to one of them")
            .query::<notifications::ReadQuery>()
            .answers::<notifications::Counted>("How many were not yet"),
    ]
}

/// Where events go, and what did not get there.
pub(super) fn of_sinks() -> Vec<Route> {
    let change = |route: Route, summary: &'static str| {
        route
            .scope(Scope::Operate)
            .about("sinks", summary)
            .body::<sinks::Choice>()
            .answers::<notifications::Counted>("How many")
            .or(&[Sort::NotFound])
    };
    vec![
        Route::get("/v1/sinks", sinks::list)
            .about("sinks", "Lists the sinks, whether they are switched on, and what waits for them")
            .answers::<Vec<sinks::Sink>>("By name"),
        Route::get("/v1/deliveries/dead", sinks::dead)
            .about("sinks", "Lists deliveries that were given up")
            .query::<sinks::DeadQuery>()
            .answers::<Vec<sinks::Dead>>("By sink and event"),
        change(
            Route::post("/v1/deliveries/retry", sinks::retry),
            "Has deliveries made again, as if they had never been tried",
        ),
        change(Route::post("/v1/deliveries/drop", sinks::drop), "Drops deliveries for good; the events stay"),
    ]
}
