//! Taking due targets under a lease, keeping them, giving them back.
//!
//! `targets.wake_us` says when a row can next be claimed, and the index on it makes the cost of a claim independent
//! of the number of targets that are not due.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, named_params, params};
use stakeout_core::Time;

use super::fault::Work;
use super::rows;
use super::writer::Tx;
use crate::{Claim, ClaimRequest, TargetId};

/// Rows that can be claimed, the earliest first. A held row whose lease ends between now and `now + ahead` is found
/// by its wake time, but must not be taken early.
pub(super) const CANDIDATES: &str = "
    SELECT id, due_us, focused, priority, owner IS NOT NULL AS held FROM targets
    WHERE source_id = :source AND wake_us <= :horizon AND (owner IS NULL OR lease_until_us <= :now)
    ORDER BY wake_us, focused DESC, priority DESC LIMIT :limit";

const NEXT_WAKE: &str =
    "SELECT wake_us FROM targets WHERE source_id = ?1 AND wake_us IS NOT NULL ORDER BY wake_us LIMIT 1";

const FREE_ALL: &str = "
    UPDATE targets SET owner = NULL, lease_until_us = NULL, wake_us = CASE WHEN enabled THEN due_us END
    WHERE owner IS NOT NULL";

/// What a claim has to know of a row. It is read and then written: `RETURNING` makes a table of its answer each time, which
/// costs more than both.
static TAKEN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT incarnation, fence, poll_no, plan_version, {}, {}, {} FROM targets WHERE id = ?1",
        rows::SCHEDULE,
        rows::SPEC,
        rows::STATE,
    )
});

const TAKE: &str = "
    UPDATE targets SET fence = :fence, owner = :node, lease_until_us = :until, wake_us = :until WHERE id = :id";

struct Candidate {
    id: i64,
    due: i64,
    rank: (bool, u8),
    held: bool,
    source: usize,
}

pub(super) fn claim(tx: &mut Tx<'_>, request: &ClaimRequest) -> Work<Vec<Claim>> {
    let mut found = Vec::new();
    for (n, source) in request.sources.iter().enumerate() {
        let Some(source_id) = source_id(tx.conn, source)? else { continue };
        let mut statement = tx.conn.prepare_cached(CANDIDATES)?;
        let arguments = named_params! {
            ":source": source_id, ":horizon": (request.now + request.ahead).us(), ":now": request.now.us(),
            ":limit": request.limit,
        };
        let rows = statement.query_map(arguments, |row| {
            Ok(Candidate {
                id: row.get(0)?,
                due: row.get(1)?,
                rank: (row.get(2)?, row.get(3)?),
                held: row.get(4)?,
                source: n,
            })
        })?;
        for candidate in rows {
            found.push(candidate?);
        }
    }
    if request.sources.len() > 1 {
        found.sort_by_key(|c| (c.due, std::cmp::Reverse(c.rank)));
    }
    found.truncate(request.limit as usize);
    found.iter().map(|candidate| take(tx.conn, request, candidate)).collect()
}

fn take(conn: &Connection, request: &ClaimRequest, candidate: &Candidate) -> Work<Claim> {
    let until = request.now.max(Time(candidate.due)) + request.lease;
    let (snapshot, version) = rows::snapshot(conn, candidate.id)?;
    let mut statement = conn.prepare_cached(&TAKEN)?;
    let mut found = statement.query([candidate.id])?;
    let row = found.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let (schedule, spec) = (4, 4 + rows::SCHEDULE_COLUMNS);
    let claim = Claim {
        target: TargetId(candidate.id),
        source: request.sources[candidate.source].clone(),
        spec: rows::spec(row, spec)?,
        incarnation: rows::number(row, 0)?,
        fence: rows::number(row, 1)? + 1,
        lease_until: until,
        after_expired_lease: candidate.held,
        poll_no: rows::number(row, 2)?,
        plan_version: rows::number(row, 3)?,
        schedule: rows::schedule(row, schedule)?,
        state: rows::state(row, spec + rows::SPEC_COLUMNS, version)?,
        snapshot,
        known: BTreeMap::new(),
    };
    conn.prepare_cached(TAKE)?.execute(named_params! {
        ":fence": claim.fence as i64, ":node": request.node, ":until": until.us(), ":id": candidate.id,
    })?;
    Ok(claim)
}

/// The row of a source's name.
pub(super) fn source_id(conn: &Connection, name: &str) -> Work<Option<i64>> {
    let mut statement = conn.prepare_cached("SELECT id FROM sources WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

pub(super) fn next_wake(conn: &Connection, sources: &[String]) -> Work<Option<Time>> {
    let mut earliest: Option<i64> = None;
    for source in sources {
        let Some(source_id) = source_id(conn, source)? else { continue };
        let wake: Option<i64> =
            conn.prepare_cached(NEXT_WAKE)?.query_row([source_id], |row| row.get(0)).optional()?;
        earliest = [earliest, wake].into_iter().flatten().min();
    }
    Ok(earliest.map(Time))
}

pub(super) fn release(tx: &mut Tx<'_>, claims: &[(TargetId, u64)]) -> Work<()> {
    let mut statement = tx.conn.prepare_cached(
        "UPDATE targets SET owner = NULL, lease_until_us = NULL,
             wake_us = CASE WHEN enabled THEN due_us END
         WHERE id = ?1 AND fence = ?2 AND owner IS NOT NULL",
    )?;
    for (target, fence) in claims {
        statement.execute(params![target.0, *fence as i64])?;
    }
    Ok(())
}

/// Answers the claims that were lost.
pub(super) fn renew(tx: &mut Tx<'_>, claims: &[(TargetId, u64)], until: Time) -> Work<Vec<TargetId>> {
    let mut statement = tx.conn.prepare_cached(
        "UPDATE targets SET lease_until_us = max(lease_until_us, ?3),
             wake_us = CASE WHEN enabled THEN max(lease_until_us, ?3, due_us) END
         WHERE id = ?1 AND fence = ?2 AND owner IS NOT NULL",
    )?;
    let mut lost = Vec::new();
    for (target, fence) in claims {
        if statement.execute(params![target.0, *fence as i64, until.us()])? == 0 {
            lost.push(*target);
        }
    }
    Ok(lost)
}

/// Frees everything that an earlier process held: the lock on the file proves that it is gone. Due times and
/// fencing tokens stay.
pub(super) fn free_all(tx: &mut Tx<'_>) -> Work<usize> {
    Ok(tx.conn.execute(FREE_ALL, [])?)
}

#[cfg(test)]
mod tests {
    use super::super::connect::plan;
    use super::*;

    #[test]
    fn claiming_walks_the_index_in_order_and_sorts_nothing() {
        let plan = plan(CANDIDATES);
        assert_eq!(plan, "SEARCH targets USING INDEX targets_wake (source_id=? AND wake_us<?)\n");
    }

    #[test]
    fn the_next_wake_is_the_first_entry_of_the_index() {
        let plan = plan(NEXT_WAKE);
        assert_eq!(plan, "SEARCH targets USING COVERING INDEX targets_wake (source_id=? AND wake_us>?)\n");
    }

    #[test]
    fn freeing_everything_looks_only_at_what_is_held() {
        assert!(plan(FREE_ALL).contains("INDEX targets_held"), "{}", plan(FREE_ALL));
    }
}
