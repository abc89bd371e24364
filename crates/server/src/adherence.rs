//! `/v1/adherence`: was everything polled when it was due, and how long can anything have gone unseen.

mod account;

use std::collections::{BTreeMap, HashSet};

use axum::extract::{OriginalUri, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stakeout_core::adherence::Run;
use stakeout_core::{Span, Time};
use stakeout_store::{FinishedRun, TargetFilter, TargetId, TargetRow};

use crate::app::App;
use crate::ask::{Asked, PAGE_MAX, Path, When, page_size};
use crate::problem::Problem;
use crate::reply::{Listed, Page, Reply, percent};
use crate::schema::Instant;
use crate::targets::Stretch;

pub(crate) use account::{Adherence, Life, Watched, account};

/// The window unless one is given.
const WINDOW: Span = Span::hours(24);
/// Targets and runs that are looked at for one answer; with more it says that it is incomplete.
const TARGETS_MAX: usize = 10_000;
const RUNS_MAX: usize = 50_000;
const PAGE: u32 = 1_000;

/// Which window.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WindowQuery {
    /// Its beginning; a day before its end, unless given.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Its end; now, unless given.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
}

impl WindowQuery {
    fn window(&self, now: Time) -> Result<(Time, Time), Problem> {
        let to = self.to.map_or(now, |When(to)| to.min(now));
        let from = self.from.map_or(to - WINDOW, |When(from)| from);
        if from > to {
            return Err(Problem::bad_input(format!("from: expected a time before {to}, found {from}")));
        }
        Ok((from, to))
    }
}

/// The adherence of a source in a window, by phase, and its worst targets.
pub(crate) async fn of_source(
    State(app): State<App>,
    Path(name): Path<String>,
    Asked(query): Asked<WindowQuery>,
) -> Result<Reply<Adherence>, Problem> {
    let source = crate::sources::find(&app, &name)?;
    let window = query.window(app.now())?;
    let (targets, incomplete) = watched(&app, &name, window).await?;
    Ok(Reply(account(&name, targets, window, source.limits().refresh, incomplete)))
}

/// The adherence of a target in a window; one that is gone is known by the runs it left.
pub(crate) async fn of_target(
    State(app): State<App>,
    Path((name, key)): Path<(String, String)>,
    Asked(query): Asked<WindowQuery>,
) -> Result<Reply<Adherence>, Problem> {
    let source = crate::sources::find(&app, &name)?;
    let window = query.window(app.now())?;
    let (watched, incomplete) = match app.store.target(&name, &key).await? {
        Some(row) => {
            let before = !app.store.polled_before(&[row.id], window.0).await?.is_empty();
            let mut runs = app.store.runs(row.id, window.0, window.1).await?;
            let mut watched = Watched::of(row, before, window);
            watched.runs.append(&mut runs);
            (watched, false)
        }
        None => {
            let mut watched = Watched::default();
            let incomplete = each_finished(&app, &name, window, |finished| {
                watched.runs.extend((finished.key == key).then_some(finished.run));
            })
            .await?;
            if watched.runs.is_empty() {
                return Err(Problem::not_found(format!(
                    "there is no target {name}/{key}, and none was polled in this window: /v1/targets lists them"
                )));
            }
            (watched, incomplete)
        }
    };
    let targets = BTreeMap::from([(key, watched)]);
    Ok(Reply(account(&name, targets, window, source.limits().refresh, incomplete)))
}

impl Watched {
    /// A target that is listed, with the run that goes on; `before`: whether one ended before the window.
    fn of(row: TargetRow, before: bool, window: (Time, Time)) -> Watched {
        let run = row.state.run;
        let before = before || run.as_ref().is_some_and(|run| run.from < window.0);
        Watched {
            runs: run.into_iter().filter(|run| touches(run, window)).collect(),
            before,
            life: Life::of(row.enabled, row.schedule.due),
            due: row.schedule.due.filter(|_| row.enabled),
        }
    }
}

/// Whether a run has anything to do with a window: what came later proves nothing about it.
fn touches(run: &Run, (from, to): (Time, Time)) -> bool {
    run.to >= from && run.from <= to
}

/// Which stretches of a target.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TargetRuns {
    /// The window's beginning; a day before its end, unless given.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Its end; now, unless given.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
    /// Those that began before then, from the `Link` header of an earlier part.
    #[schemars(with = "Option<Instant>")]
    before: Option<When>,
    /// At most so many, the newest: a thousand unless given.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// The stretches of regular polling of a target in a window, the oldest first, the one that goes on included. Of more
/// than fit the newest come first, and the `Link` header leads to those before them.
pub(crate) async fn runs(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path((name, key)): Path<(String, String)>,
    Asked(query): Asked<TargetRuns>,
) -> Result<Listed<Stretch>, Problem> {
    let row = crate::targets::find(&app, &name, &key).await?;
    let limit = page_size(query.limit.or(Some(PAGE_MAX)))? as usize;
    let window = WindowQuery { from: query.from, to: query.to }.window(app.now())?;
    let mut runs = app.store.runs(row.id, window.0, window.1).await?;
    runs.extend(row.state.run.filter(|run| touches(run, window)));
    runs.retain(|run| query.before.is_none_or(|When(before)| run.from < before));
    let surplus = runs.len().saturating_sub(limit);
    let cursor = (surplus > 0).then(|| percent(&runs[surplus].from.to_string()));
    Ok(Listed::new(runs.iter().skip(surplus).map(Stretch::from).collect(), &uri, "before", cursor))
}

/// Which finished stretches.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunQuery {
    /// The window's beginning; a day before its end, unless given.
    #[schemars(with = "Option<Instant>")]
    from: Option<When>,
    /// Its end; now, unless given.
    #[schemars(with = "Option<Instant>")]
    to: Option<When>,
    /// Those after this place, from `next` of an earlier page.
    after: Option<u64>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// A finished stretch, and whose it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Finished {
    /// The target's key; it may be gone.
    key: String,
    /// The stretch.
    run: Stretch,
}

/// The finished stretches of all targets of a source in a window, those of targets that are gone included. The ones that
/// go on are with their targets.
pub(crate) async fn finished(
    State(app): State<App>,
    OriginalUri(uri): OriginalUri,
    Path(name): Path<String>,
    Asked(query): Asked<RunQuery>,
) -> Result<Page<Finished>, Problem> {
    crate::sources::find(&app, &name)?;
    let limit = page_size(query.limit)?;
    let (from, to) = WindowQuery { from: query.from, to: query.to }.window(app.now())?;
    let rows = app.store.source_runs(&name, from, to, query.after, limit).await?;
    let last = rows.last().filter(|_| rows.len() == limit as usize);
    let cursor = last.map(|row| row.row.to_string());
    let items = rows.into_iter().map(|row| Finished { run: Stretch::from(&row.run), key: row.key }).collect();
    Ok(Page::new(items, &uri, "after", cursor))
}

/// The runs of all targets of a source that touch the window, those that are gone included; and whether that is not
/// all.
async fn watched(
    app: &App,
    source: &str,
    (from, to): (Time, Time),
) -> Result<(BTreeMap<String, Watched>, bool), Problem> {
    let mut targets: BTreeMap<String, Watched> = BTreeMap::new();
    let mut after = None;
    let mut incomplete = false;
    loop {
        let filter =
            TargetFilter { source: Some(source.to_owned()), after, limit: PAGE, ..TargetFilter::default() };
        let page = app.store.targets(&filter).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < PAGE as usize;
        let ids: Vec<TargetId> = page.iter().map(|row| row.id).collect();
        let before: HashSet<TargetId> = app.store.polled_before(&ids, from).await?.into_iter().collect();
        for row in page {
            let key = row.spec.key.clone();
            let polled = before.contains(&row.id);
            targets.insert(key, Watched::of(row, polled, (from, to)));
        }
        incomplete |= !last && targets.len() >= TARGETS_MAX;
        if last || incomplete {
            break;
        }
    }
    incomplete |= each_finished(app, source, (from, to), |finished| {
        targets.entry(finished.key).or_default().runs.push(finished.run);
    })
    .await?;
    Ok((targets, incomplete))
}

/// Goes through the finished runs of a source that touch the window; answers whether that is not all.
async fn each_finished(
    app: &App,
    source: &str,
    (from, to): (Time, Time),
    mut take: impl FnMut(FinishedRun),
) -> Result<bool, Problem> {
    let (mut row, mut runs) = (None, 0);
    loop {
        let page = app.store.source_runs(source, from, to, row, PAGE).await?;
        row = page.last().map(|finished| finished.row);
        runs += page.len();
        let last = page.len() < PAGE as usize;
        page.into_iter().for_each(&mut take);
        if last || runs >= RUNS_MAX {
            return Ok(!last);
        }
    }
}
