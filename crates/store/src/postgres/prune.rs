//! Forgetting, in small steps: what is to go is decided and removed in the database, how far a pass got is kept here.

use deadpool_postgres::Client;
use stakeout_core::{Span, Time};

use super::fault::Work;
use super::one;
use crate::{Pruned, Retention};

/// Where a pass left off. Lost with the process, which only means that the next pass starts from the front.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    stage: usize,
    after: Option<After>,
}

/// The last row looked at in a stage.
#[derive(Clone, Debug)]
struct After {
    number: i64,
    source_id: i32,
    print: Vec<u8>,
    stream: String,
}

/// History goes before the records it belongs to, events before the notices about them.
const STAGES: [&str; 6] = ["events", "polls", "runs", "notices", "history", "records"];

/// Where history is kept longer than this, it goes by whole weeks; otherwise row by row.
const WEEKLY: Span = Span::hours(2 * 7 * 24);

/// Removes at most `batch` rows, or a week of history; answers how many, and whether the pass goes on.
pub(super) async fn prune(
    client: &Client,
    cursor: &mut Cursor,
    keep: &Retention,
    now: Time,
    batch: u32,
) -> Work<Pruned> {
    let mut pruned = Pruned::default();
    let mut budget = batch.max(1);
    let weekly = keep.history >= WEEKLY;
    while let Some(stage) = STAGES.get(cursor.stage) {
        if *stage == "history" && cursor.after.is_none() {
            client.execute("SELECT stakeout_make_weeks($1)", &[&now.us()]).await?;
            // Also where rows go one by one: the weeks that they were in would otherwise stay for ever. The one before this
            // one is always there, so it is not dropped only to be made again.
            let cutoff = (now - keep.history.max(WEEKLY)).us();
            // One week per call, so that readers wait for no more than one; its rows are not looked at.
            while one(client, "SELECT stakeout_drop_weeks($1)", &[&cutoff]).await?.try_get::<_, i32>(0)? > 0 {
                // A week that rows have left one by one was counted with them.
                pruned.rows += u64::from(weekly);
            }
        }
        let looked =
            step(client, cursor, stage, cutoff(stage, keep, now), weekly, budget, &mut pruned).await?;
        if looked >= budget {
            pruned.more = true;
            return Ok(pruned);
        }
        budget -= looked;
        *cursor = Cursor { stage: cursor.stage + 1, after: None };
    }
    *cursor = Cursor::default();
    Ok(pruned)
}

fn cutoff(stage: &str, keep: &Retention, now: Time) -> Time {
    match stage {
        "polls" | "runs" => now - keep.polls,
        "history" => now - keep.history,
        "records" => now - keep.gone_records,
        _ => now - keep.events,
    }
}

async fn step(
    client: &Client,
    cursor: &mut Cursor,
    stage: &str,
    cutoff: Time,
    weekly: bool,
    budget: u32,
    pruned: &mut Pruned,
) -> Work<u32> {
    // The records' place is (gone, row): the row's number travels as text.
    let first = || After { number: i64::MIN, source_id: 0, print: Vec::new(), stream: "0".into() };
    let after = cursor.after.clone().unwrap_or_else(first);
    let sql =
        "SELECT o_looked, o_removed, (o_after).number, (o_after).source_id, (o_after).print, (o_after).stream
               FROM stakeout_prune($1, $2, $3, $4, $5, $6, $7, $8)";
    let row = one(
        client,
        sql,
        &[
            &stage,
            &cutoff.us(),
            &(budget as i32),
            &after.number,
            &after.source_id,
            &after.print,
            &after.stream,
            &weekly,
        ],
    )
    .await?;
    cursor.after = Some(After {
        number: row.try_get("number")?,
        source_id: row.try_get("source_id")?,
        print: row.try_get("print")?,
        stream: row.try_get("stream")?,
    });
    pruned.rows += row.try_get::<_, i64>("o_removed")? as u64;
    Ok(row.try_get::<_, i32>("o_looked")? as u32)
}
