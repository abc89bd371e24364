//! Taking due targets under a lease, keeping them, giving them back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use deadpool_postgres::Client;
use stakeout_core::Time;
use tokio_postgres::Row;

use super::fault::{Fault, Work};
use super::{PgStore, all, one, rows};
use crate::{Claim, ClaimRequest, TargetId};

/// One statement takes the earliest of all sources; the function says how.
const TAKE: &str = "
    SELECT o_id, o_fence, o_lease_until, o_held, o_now FROM stakeout_take($1, $2, $3, $4, $5, $6, $7)";

/// Each snapshot is looked up by its key (`OFFSET` keeps it a query of its own). As a join it would be planned while
/// there are few of them, and all of them would be read for every claim until somebody analyses the table.
static READ: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT s.name AS source, t.fence, t.incarnation, t.poll_no, t.plan_version,
             coalesce(n.version, 0) AS version, n.body, {}, {}, {}
         FROM targets t JOIN sources s ON s.id = t.source_id
         LEFT JOIN LATERAL (SELECT version, body FROM snapshots WHERE target_id = t.id OFFSET 0) AS n ON true
         WHERE t.id = ANY ($1)",
        rows::SCHEDULE,
        rows::SPEC,
        rows::STATE,
    )
});

struct Taken {
    fence: u64,
    lease_until: Time,
    held: bool,
}

impl PgStore {
    pub(super) async fn take(&self, client: &Client, request: &ClaimRequest) -> Work<Vec<Claim>> {
        let horizon = (request.now + request.ahead).us();
        let limit = i64::from(request.limit);
        let database = self.offset.is_database();
        let taken = all(
            client,
            TAKE,
            &[
                &database,
                &request.now.us(),
                &horizon,
                &limit,
                &request.sources,
                &request.node,
                &request.lease.as_us(),
            ],
        )
        .await?;
        let Some(first) = taken.first() else { return Ok(Vec::new()) };
        self.offset.measure(request.now, first.try_get(4)?);
        let mut by_id: HashMap<i64, Taken> = HashMap::with_capacity(taken.len());
        for row in &taken {
            let lease_until = self.offset.to_engine(row.try_get(2)?);
            let taken = Taken { fence: row.try_get::<_, i64>(1)? as u64, lease_until, held: row.try_get(3)? };
            by_id.insert(row.try_get(0)?, taken);
        }
        let ids: Vec<i64> = by_id.keys().copied().collect();
        let mut claims = Vec::with_capacity(ids.len());
        for row in all(client, &READ, &[&ids]).await? {
            let id: i64 = row.try_get("id")?;
            let fence = rows::number(&row, "fence")?;
            // Whoever lost it again meanwhile has nothing to poll.
            let Some(taken) = by_id.get(&id).filter(|taken| taken.fence == fence) else { continue };
            match claim(&row, TargetId(id), taken) {
                Ok(claim) => claims.push(claim),
                // It stays taken until its lease ends, and nobody polls it; the others must not wait for it.
                Err(Fault::Damaged(reason)) => {
                    tracing::error!(
                        target_id = id,
                        reason,
                        "a target cannot be read and is not polled: restore it from a backup"
                    );
                }
                Err(fault) => return Err(fault),
            }
        }
        claims.sort_by_key(|claim| {
            let rank = (claim.state.facts.focused, claim.spec.priority);
            (claim.schedule.due, Reverse(rank), claim.target)
        });
        Ok(claims)
    }

    pub(super) async fn renew_all(
        &self,
        client: &Client,
        claims: &[(TargetId, u64)],
        until: Time,
    ) -> Work<Vec<TargetId>> {
        let (ids, fences) = split(claims);
        let until = self.offset.to_database(until);
        let row = one(client, "SELECT stakeout_renew($1, $2, $3)", &[&ids, &fences, &until]).await?;
        let kept: Vec<i64> = row.try_get(0)?;
        Ok(claims.iter().map(|(target, _)| *target).filter(|target| !kept.contains(&target.0)).collect())
    }
}

fn claim(row: &Row, target: TargetId, taken: &Taken) -> Work<Claim> {
    Ok(Claim {
        target,
        source: row.try_get("source")?,
        spec: rows::spec(row)?,
        incarnation: rows::number(row, "incarnation")?,
        fence: taken.fence,
        lease_until: taken.lease_until,
        after_expired_lease: taken.held,
        poll_no: rows::number(row, "poll_no")?,
        plan_version: rows::number(row, "plan_version")?,
        schedule: rows::schedule(row)?,
        state: rows::state(row, rows::number(row, "version")?)?,
        snapshot: rows::snapshot(row, "body")?,
        known: BTreeMap::new(),
    })
}

fn split(claims: &[(TargetId, u64)]) -> (Vec<i64>, Vec<i64>) {
    claims.iter().map(|(target, fence)| (target.0, *fence as i64)).unzip()
}

pub(super) async fn next_wake(client: &Client, sources: &[String]) -> Work<Option<Time>> {
    let sql = "
        SELECT min(w.wake_us) FROM sources s, LATERAL (
            SELECT t.wake_us FROM targets t WHERE t.source_id = s.id AND t.wake_us IS NOT NULL
            ORDER BY t.wake_us LIMIT 1
        ) AS w WHERE s.name = ANY ($1)";
    Ok(one(client, sql, &[&sources]).await?.try_get::<_, Option<i64>>(0)?.map(Time))
}

pub(super) async fn release(client: &Client, claims: &[(TargetId, u64)]) -> Work<()> {
    let (ids, fences) = split(claims);
    one(client, "SELECT stakeout_give_back($1, $2)", &[&ids, &fences]).await?;
    Ok(())
}

/// Frees what an earlier process of this node's name held; answers how many.
pub(super) async fn free_own(client: &Client, node: &str) -> Work<i32> {
    Ok(one(client, "SELECT stakeout_free($1)", &[&node]).await?.try_get(0)?)
}
