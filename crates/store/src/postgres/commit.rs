//! Polls become durable: a whole batch in one call.
//!
//! Polls that brought nothing go as columns and are written by one `UPDATE`, with one `INSERT` for what the log says of
//! them; the others go as JSON, one after the other.
//! The first try is unguarded; when a poll is to blame, the batch is written again with a savepoint for each. What no
//! savepoint can save the others from is found by halving.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use deadpool_postgres::Client;
use serde::Deserialize;
use stakeout_core::{Event, Span, Time};
use tokio_postgres::Row;

use super::fault::{Fault, Work};
use super::{Parameter, PgStore, all, wire};
use crate::{CommitOutcome, Done, EventWrite, PollCommit, Schedule, TargetId};

const COMMIT: &str = "
    SELECT quiet, place, outcome, detail, told, seq, target, touched, history_rows, plan_version, enabled, held,
        schedule::text AS schedule, published
    FROM stakeout_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23)";

/// The same where the log has something to say of polls that brought nothing.
static COMMIT_NOTING: LazyLock<String> = LazyLock::new(|| {
    COMMIT.replace("stakeout_commit(", "stakeout_commit_noting(").replace("$23)", "$23, $24)")
});

/// How often a batch is tried that met another one on its way.
const MAX_TRIES: u32 = 3;

/// Polls that brought nothing, column by column, in order of their targets.
#[derive(Default)]
struct Quiet<'a> {
    target: Vec<i64>,
    fence: Vec<i64>,
    poll_no: Vec<i64>,
    plan: Vec<i64>,
    now: Vec<i64>,
    due: Vec<Option<i64>>,
    interval: Vec<i64>,
    phase: Vec<&'a str>,
    reason: Vec<&'a str>,
    slack: Vec<i64>,
    hold: Vec<Option<i64>>,
    outcome: Vec<&'a str>,
    error: Vec<Option<&'a str>>,
    state: Vec<String>,
}

impl<'a> Quiet<'a> {
    fn add(&mut self, poll: &'a PollCommit, hold: Option<i64>) -> Work<()> {
        self.target.push(poll.target.0);
        self.fence.push(poll.fence as i64);
        self.poll_no.push(poll.poll_no as i64);
        self.plan.push(poll.plan_version as i64);
        self.now.push(poll.now.us());
        self.due.push(poll.schedule.due.map(Time::us));
        self.interval.push(poll.schedule.interval.as_us());
        self.phase.push(&poll.schedule.phase);
        self.reason.push(&poll.schedule.reason);
        self.slack.push(poll.schedule.slack.as_us());
        self.hold.push(hold);
        self.outcome.push(poll.outcome.name());
        self.error.push(poll.error.as_deref());
        self.state.push(serde_json::to_string(&poll.state)?);
        Ok(())
    }
}

/// A batch as it is sent, and where its polls came from.
#[derive(Default)]
struct Batch<'a> {
    quiet: Quiet<'a>,
    quiet_from: Vec<usize>,
    /// What the log says of them, if anything.
    notes: Option<String>,
    polled: Vec<i64>,
    polls: Vec<String>,
    snapshots: Vec<Option<Vec<u8>>>,
    samples: Vec<Option<&'a [u8]>>,
    polls_from: Vec<usize>,
    /// Those that are not sent at all, and why.
    refused: Vec<(usize, String)>,
}

impl<'a> Batch<'a> {
    fn of(polls: &'a [Arc<PollCommit>], hold: impl Fn(&PollCommit) -> Option<i64>) -> Work<Batch<'a>> {
        let mut batch = Batch::default();
        let mut seen = HashSet::with_capacity(polls.len());
        // Two polls of one target are written in their order, which the columns do not keep.
        let each_once = polls.iter().all(|poll| seen.insert(poll.target));
        let (mut quiet, mut others) = (Vec::new(), Vec::new());
        for (n, poll) in polls.iter().enumerate() {
            match poll.nul() {
                Some(reason) => batch.refused.push((n, reason)),
                None if each_once && poll.is_quiet() => quiet.push(n),
                None => others.push(n),
            }
        }
        quiet.sort_by_key(|n| polls[*n].target);
        for n in &quiet {
            batch.quiet.add(&polls[*n], hold(&polls[*n]))?;
        }
        batch.notes = wire::notes(quiet.iter().map(|n| &*polls[*n]))?;
        for n in &others {
            let poll = &polls[*n];
            batch.polled.push(poll.target.0);
            batch.polls.push(wire::poll(poll, hold(poll))?);
            batch.snapshots.push(poll.snapshot.as_ref().map(|snapshot| snapshot.to_bytes()));
            batch.samples.push(poll.sample.as_ref().map(|sample| sample.body.as_slice()));
        }
        batch.quiet_from = quiet;
        batch.polls_from = others;
        Ok(batch)
    }
}

/// A batch that was answered in time may be followed by one that is twice as large, up to where it does not matter.
const LARGE: usize = 1 << 16;

impl PgStore {
    /// Commits polls, all in one call if that works. A call that is refused although the server is well is made again in
    /// halves, until the one to blame is alone: that one is poisoned and the others are in. One that is not answered in time
    /// fails, and there is less in the next.
    pub(super) async fn commit_in_parts(&self, polls: &[Arc<PollCommit>]) -> Work<Vec<CommitOutcome>> {
        let mut outcomes = Vec::with_capacity(polls.len());
        // The first part is the last here, so that the order is kept.
        let most = self.most_at_once.load(Ordering::Relaxed);
        let mut parts: Vec<&[Arc<PollCommit>]> = polls.chunks(most).rev().collect();
        while let Some(part) = parts.pop() {
            match self.attempt(async |client| self.commit_all(client, part).await).await {
                Ok(done) => {
                    outcomes.extend(done);
                    if most < LARGE {
                        self.most_at_once.store(most * 2, Ordering::Relaxed);
                    }
                }
                Err(fault) if fault.blames_work() => match part {
                    [_] => outcomes.push(CommitOutcome::Poisoned(fault.reason())),
                    _ => {
                        let (first, second) = part.split_at(part.len() / 2);
                        parts.extend([second, first]);
                    }
                },
                Err(fault) => {
                    if matches!(fault, Fault::Silent(_)) {
                        self.most_at_once.store((part.len() / 2).max(1), Ordering::Relaxed);
                    }
                    return Err(fault);
                }
            }
        }
        Ok(outcomes)
    }

    async fn commit_all(&self, client: &Client, polls: &[Arc<PollCommit>]) -> Work<Vec<CommitOutcome>> {
        if polls.is_empty() {
            return Ok(Vec::new());
        }
        let mut names: Vec<&str> = polls.iter().map(|poll| poll.source.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let sources = self.source_ids(client, &names).await?;
        let hold = |poll: &PollCommit| poll.hold_until.map(|until| self.offset.to_database(until));
        let batch = Batch::of(polls, hold)?;
        let mut guarded = false;
        let mut tries = 1;
        let answers = loop {
            match call(client, &sources, polls, &batch, guarded).await {
                Err(fault) if fault.blames_values() && !guarded => guarded = true,
                Err(fault) if fault.was_in_the_way() && tries < MAX_TRIES => tries += 1,
                result => break result?,
            }
        };
        outcomes(polls, &batch, &answers)
    }
}

async fn call(
    client: &Client,
    sources: &[i32],
    polls: &[Arc<PollCommit>],
    batch: &Batch<'_>,
    guarded: bool,
) -> Work<Vec<Row>> {
    let alone = polls.iter().any(|poll| poll.reconcile.is_some());
    let synced = polls.iter().any(|poll| poll.brings_news());
    let publishes = polls.iter().any(|poll| !poll.kv.is_empty());
    let q = &batch.quiet;
    let mut parameters: Vec<Parameter<'_>> = vec![
        &sources,
        &alone,
        &guarded,
        &q.target,
        &q.fence,
        &q.poll_no,
        &q.plan,
        &q.now,
        &q.due,
        &q.interval,
        &q.phase,
        &q.reason,
        &q.slack,
        &q.hold,
        &q.outcome,
        &q.error,
        &q.state,
        &batch.polled,
        &batch.polls,
        &batch.snapshots,
        &batch.samples,
        &synced,
        &publishes,
    ];
    match &batch.notes {
        None => all(client, COMMIT, &parameters).await,
        Some(notes) => {
            parameters.push(notes);
            all(client, &COMMIT_NOTING, &parameters).await
        }
    }
}

/// One outcome per poll; a quiet one that is not spoken of got in as it was offered.
fn outcomes(polls: &[Arc<PollCommit>], batch: &Batch<'_>, answers: &[Row]) -> Work<Vec<CommitOutcome>> {
    let mut outcomes: Vec<CommitOutcome> = polls.iter().map(|poll| as_offered(poll)).collect();
    for (n, reason) in &batch.refused {
        outcomes[*n] = CommitOutcome::Poisoned(reason.clone());
    }
    for row in answers {
        let from = if row.try_get("quiet")? { &batch.quiet_from } else { &batch.polls_from };
        let place = row.try_get::<_, i32>("place")? as usize;
        let n = *from
            .get(place.wrapping_sub(1))
            .ok_or_else(|| Fault::Damaged(format!("an answer about poll {place} of {}", from.len())))?;
        outcomes[n] = outcome(&polls[n], row)?;
    }
    Ok(outcomes)
}

fn as_offered(poll: &PollCommit) -> CommitOutcome {
    CommitOutcome::Done(Done {
        schedule: poll.schedule.clone(),
        plan_version: poll.plan_version,
        enabled: true,
        held: poll.hold_until.is_some(),
        ..Done::default()
    })
}

fn outcome(poll: &PollCommit, row: &Row) -> Work<CommitOutcome> {
    let detail: Option<String> = row.try_get("detail")?;
    Ok(match row.try_get("outcome")? {
        "done" => CommitOutcome::Done(done(poll, row)?),
        "already" => CommitOutcome::AlreadyDone,
        "stale" => CommitOutcome::Stale,
        "older" => CommitOutcome::Older,
        "conflict" => CommitOutcome::Conflict,
        "poisoned" => CommitOutcome::Poisoned(detail.unwrap_or_default()),
        other => return Err(Fault::Damaged(format!("no such outcome of a commit: {other}"))),
    })
}

fn done(poll: &PollCommit, row: &Row) -> Work<Done> {
    let schedule = match row.try_get::<_, Option<&str>>("schedule")? {
        None => poll.schedule.clone(),
        Some(text) => serde_json::from_str::<ScheduleRow>(text)?.into(),
    };
    let target: Option<&str> = row.try_get("target")?;
    let touched: Option<Vec<i64>> = row.try_get("touched")?;
    Ok(Done {
        events: told(&poll.source, target.unwrap_or_default(), &poll.events, row)?,
        schedule,
        plan_version: row.try_get::<_, i64>("plan_version")? as u64,
        enabled: row.try_get("enabled")?,
        held: row.try_get("held")?,
        touched: touched.unwrap_or_default().into_iter().map(TargetId).collect(),
        history_rows: row.try_get::<_, Option<i32>>("history_rows")?.unwrap_or_default() as u32,
        kv_changed: published(poll, row)?,
    })
}

/// The values that are others now.
fn published(poll: &PollCommit, row: &Row) -> Work<Vec<(String, String)>> {
    let places: Option<Vec<i32>> = row.try_get("published")?;
    let named = |place: i32| {
        let kv = usize::try_from(place).ok().and_then(|place| poll.kv.get(place));
        let kv = kv.ok_or_else(|| Fault::Damaged(format!("an answer about value {place}")))?;
        Ok((kv.namespace.clone(), kv.key.clone()))
    };
    places.unwrap_or_default().into_iter().map(named).collect()
}

/// The events that came about. Only their places and the last number come back from the database: what they say is
/// known here.
pub(super) fn told(source: &str, target: &str, proposed: &[EventWrite], row: &Row) -> Work<Vec<Event>> {
    let places: Vec<i32> = row.try_get::<_, Option<Vec<i32>>>("told")?.unwrap_or_default();
    let last = row.try_get::<_, Option<i64>>("seq")?.unwrap_or_default() as u64;
    let count = places.len() as u64;
    let mut events = Vec::with_capacity(places.len());
    for (n, place) in places.into_iter().enumerate() {
        let event = usize::try_from(place).ok().and_then(|place| proposed.get(place));
        let event = event.ok_or_else(|| Fault::Damaged(format!("an answer about event {place}")))?;
        events.push(Event {
            seq: last + 1 + n as u64 - count,
            id: event.id,
            event_type: event.event_type.clone(),
            source: source.to_owned(),
            target: target.to_owned(),
            rule: event.rule.clone(),
            subject: event.subject,
            subject_key: event.subject_key.clone(),
            at: event.at,
            dedupe_key: event.dedupe_key.clone(),
            data: event.data.clone(),
        });
    }
    Ok(events)
}

/// A row's own schedule, as the database says it.
#[derive(Deserialize)]
struct ScheduleRow {
    due: Option<i64>,
    interval: i64,
    phase: String,
    reason: String,
    slack: i64,
}

impl From<ScheduleRow> for Schedule {
    fn from(row: ScheduleRow) -> Schedule {
        Schedule {
            due: row.due.map(Time),
            interval: Span(row.interval),
            phase: row.phase,
            reason: row.reason,
            slack: Span(row.slack),
        }
    }
}
