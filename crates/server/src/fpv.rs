//! `/v1/fpv`: the event, its races, the leaderboard, a pilot, and the document that overlays show.
//!
//! Everything is worked out from what the store holds by the source's own pure functions.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use stakeout_core::derive::Held;
use stakeout_sources::fpv::FAMILY;
use stakeout_sources::fpv::leaderboard::{
    self, NextRace, Readiness, Standing, consecutive_laps, event_leaderboard, next_races,
};
use stakeout_sources::fpv::overlay::overlay;
use stakeout_sources::fpv::picture::Picture;

use crate::app::App;
use crate::ask::{Asked, Path};
use crate::problem::Problem;
use crate::reply::Reply;

/// What a picture is made of.
const COLLECTIONS: [&str; 6] = ["events", "rounds", "pilots", "channels", "races", "laps"];
/// Races shown of those that a pilot will fly.
const NEXT_MAX: usize = 10;

/// The event that is flown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FpvEvent {
    id: String,
    name: Option<String>,
    /// The venue's time zone.
    zone: Option<String>,
    rounds: usize,
    races: usize,
    /// Of them: flown.
    completed: usize,
    pilots: usize,
}

/// The races that matter now, as overlays show them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Races {
    /// The one that ended last.
    last: Json,
    /// The current one.
    current: Json,
    /// The first after it that somebody is to fly.
    next: Json,
}

/// One line of a leaderboard.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// From 1.
    position: usize,
    /// Places gained; below zero, lost.
    position_change: i64,
    /// The pilot's id.
    pilot: String,
    name: Option<String>,
    /// Whole laps, without the holeshot.
    laps: usize,
    holeshot_seconds: Option<f64>,
    best_lap_seconds: Option<f64>,
    /// The fastest so many laps in a row within one race.
    best_consecutive_seconds: Option<f64>,
    total_seconds: Option<f64>,
}

impl From<Standing> for Line {
    fn from(standing: Standing) -> Line {
        Line {
            position: standing.position,
            position_change: standing.position_change,
            pilot: standing.pilot,
            name: standing.name,
            laps: standing.laps,
            holeshot_seconds: standing.holeshot_seconds,
            best_lap_seconds: standing.best_lap_seconds,
            best_consecutive_seconds: standing.best_consecutive_seconds,
            total_seconds: standing.total_seconds,
        }
    }
}

/// A pilot: where they stand, and when they fly.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pilot {
    id: String,
    name: Option<String>,
    /// Whether they were taken out of the event.
    removed: bool,
    /// Their line of the event's leaderboard.
    standing: Option<Line>,
    /// Their next races, the first first.
    next: Vec<Flight>,
}

/// A race that a pilot will fly.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Flight {
    race_id: String,
    /// Its place in the order.
    order: i64,
    /// How many races there are until it; 0 for the current one.
    races_away: usize,
    /// `racing`, `staging` or `waiting`
    readiness: &'static str,
    channel: Option<String>,
    channel_name: Option<String>,
    colour: Option<String>,
}

impl From<NextRace> for Flight {
    fn from(race: NextRace) -> Flight {
        Flight {
            race_id: race.race_id,
            order: race.order,
            races_away: race.races_away,
            readiness: match race.readiness {
                Readiness::Racing => "racing",
                Readiness::Staging => "staging",
                Readiness::Waiting => "waiting",
            },
            channel: race.channel,
            channel_name: race.channel_name,
            colour: race.colour,
        }
    }
}

/// Which leaderboard.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BoardQuery {
    /// Of this race, by its id; of the event without it.
    race: Option<String>,
}

/// The current event as the store holds it.
async fn picture(app: &App, source: &str) -> Result<Picture, Problem> {
    crate::sources::of_family(app, source, FAMILY)?;
    let kinds = COLLECTIONS.map(|collection| format!("{FAMILY}_{collection}"));
    let whole = app.store.whole(source, &kinds, &[]).await?;
    let held = whole.records.into_iter().map(|record| Held {
        kind: record.kind,
        key: record.key,
        body: record.body.as_object().cloned().unwrap_or_default(),
    });
    let held: Vec<Held> = held.collect();
    Picture::of(&held).ok_or_else(|| Problem::not_found("no event is known to be the current one yet"))
}

/// The event that is flown.
pub(crate) async fn event(
    State(app): State<App>,
    Path(source): Path<String>,
) -> Result<Reply<FpvEvent>, Problem> {
    let picture = picture(&app, &source).await?;
    Ok(Reply(FpvEvent {
        rounds: picture.rounds.len(),
        races: picture.races.len(),
        completed: picture.races.iter().filter(|race| race.is_completed()).count(),
        pilots: picture.pilots.values().filter(|pilot| !pilot.removed).count(),
        zone: picture.zone,
        name: picture.name,
        id: picture.event,
    }))
}

/// The last, the current and the next race.
pub(crate) async fn races(
    State(app): State<App>,
    Path(source): Path<String>,
) -> Result<Reply<Races>, Problem> {
    let mut shown = overlay(&picture(&app, &source).await?, app.now());
    let mut take = |name: &str| shown.get_mut(name).map(Json::take).unwrap_or_default();
    Ok(Reply(Races { last: take("last"), current: take("current"), next: take("next") }))
}

/// Who leads, in the event or in a race.
pub(crate) async fn board(
    State(app): State<App>,
    Path(source): Path<String>,
    Asked(query): Asked<BoardQuery>,
) -> Result<Reply<Vec<Line>>, Problem> {
    let picture = picture(&app, &source).await?;
    let consecutive = consecutive_laps(&picture);
    let standings = match &query.race {
        None => event_leaderboard(&picture, consecutive),
        Some(race) if picture.race(race).is_none() => {
            return Err(Problem::not_found(format!("there is no race {race:?} in this event")));
        }
        Some(race) => leaderboard::race_leaderboard(&picture, race, consecutive),
    };
    Ok(Reply(standings.into_iter().map(Line::from).collect()))
}

/// One pilot: where they stand, and when they fly.
pub(crate) async fn pilot(
    State(app): State<App>,
    Path((source, id)): Path<(String, String)>,
) -> Result<Reply<Pilot>, Problem> {
    let picture = picture(&app, &source).await?;
    let known = picture.pilots.get(&id);
    let known = known.ok_or_else(|| Problem::not_found(format!("there is no pilot {id:?} in this event")))?;
    let standings = event_leaderboard(&picture, consecutive_laps(&picture));
    Ok(Reply(Pilot {
        name: known.name.clone(),
        removed: known.removed,
        standing: standings.into_iter().find(|standing| standing.pilot == id).map(Line::from),
        next: next_races(&picture, &id, NEXT_MAX).into_iter().map(Flight::from).collect(),
        id,
    }))
}

/// What overlays show.
pub(crate) async fn shown(
    State(app): State<App>,
    Path(source): Path<String>,
) -> Result<Reply<Json>, Problem> {
    Ok(Reply(overlay(&picture(&app, &source).await?, app.now())))
}
