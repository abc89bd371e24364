//! What nodes agree on: leases, parts of a source's limits, prices.

use std::time::Duration;

use deadpool_postgres::Client;
use stakeout_core::Time;

use super::fault::Work;
use super::listen::{self, Listener};
use super::{PgStore, all, one};
use crate::{Allowance, Grant, GrantRequest, LaneLease, LaneRequest, Lease, LeaseRequest, TargetId};

/// Rates beyond it are as good as none; the database divides numbers, not infinities.
const MOST_PER_SECOND: f64 = 1e9;

const GRANT: &str = "
    SELECT o_until, o_rate, o_burst, o_places, o_first, o_slow, o_mean, o_now
    FROM stakeout_grant($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

impl PgStore {
    pub(super) async fn take_lease(&self, client: &Client, request: &LeaseRequest) -> Work<Option<Lease>> {
        let sql = "SELECT o_until, o_expired, o_now FROM stakeout_lease($1, $2, $3, $4, $5)";
        let database = self.offset.is_database();
        let holds = request.holds.as_us();
        let row =
            one(client, sql, &[&request.name, &request.node, &holds, &database, &request.now.us()]).await?;
        self.offset.measure(request.now, row.try_get("o_now")?);
        let until: Option<i64> = row.try_get("o_until")?;
        let taken_over = row.try_get("o_expired")?;
        Ok(until.map(|until| Lease { until: self.offset.to_engine(until), taken_over }))
    }

    pub(super) async fn take_lane(&self, client: &Client, request: &LaneRequest) -> Work<Option<LaneLease>> {
        let sql = "SELECT o_until, o_expired, o_slow, o_now FROM stakeout_lane($1, $2, $3, $4, $5, $6, $7)";
        let database = self.offset.is_database();
        let slow = request.slow_until.map(|until| self.offset.to_database(until));
        let (holds, now) = (request.holds.as_us(), request.now.us());
        let row = one(
            client,
            sql,
            &[&request.source, &request.node, &holds, &database, &now, &slow, &request.under_way],
        )
        .await?;
        let Some(until) = row.try_get::<_, Option<i64>>("o_until")? else { return Ok(None) };
        self.offset.measure(request.now, row.try_get("o_now")?);
        let slow_until: Option<i64> = row.try_get("o_slow")?;
        Ok(Some(LaneLease {
            lease: Lease { until: self.offset.to_engine(until), taken_over: row.try_get("o_expired")? },
            slow_until: slow_until.map(|until| self.offset.to_engine(until)),
        }))
    }

    pub(super) async fn take_grant(&self, client: &Client, request: &GrantRequest) -> Work<Option<Grant>> {
        let GrantRequest { limits, using, .. } = request;
        let row = one(
            client,
            GRANT,
            &[
                &request.source,
                &request.node,
                &request.holds.as_us(),
                &self.offset.is_database(),
                &request.now.us(),
                &limits.requests_per_second.min(MOST_PER_SECOND),
                &i64::from(limits.burst),
                &i64::from(limits.concurrency),
                &request.demand,
                &using.requests_per_second.min(MOST_PER_SECOND),
                &i64::from(using.burst),
                &i64::from(using.concurrency),
                &request.slow_until.map(|until| self.offset.to_database(until)),
            ],
        )
        .await?;
        let Some(until) = row.try_get::<_, Option<i64>>("o_until")? else { return Ok(None) };
        self.offset.measure(request.now, row.try_get("o_now")?);
        let slow_until: Option<i64> = row.try_get("o_slow")?;
        Ok(Some(Grant {
            until: self.offset.to_engine(until),
            allowance: Allowance {
                requests_per_second: row.try_get("o_rate")?,
                burst: row.try_get::<_, i64>("o_burst")? as u32,
                concurrency: row.try_get::<_, i64>("o_places")? as u32,
            },
            first: row.try_get("o_first")?,
            slow_until: slow_until.map(|until| self.offset.to_engine(until)),
            mean_demand: row.try_get("o_mean")?,
        }))
    }
}

pub(super) async fn clock(client: &Client) -> Work<Time> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    Ok(Time(one(client, sql, &[]).await?.try_get(0)?))
}

/// How often a node that hears nothing of itself says something, and for how long it is then believed to listen.
const SPEAKS_EVERY: Duration = Duration::from_secs(1);
const LISTENS_FOR: Duration = Duration::from_millis(2_500);

/// Whether what nodes say is heard here: by hearing what this one says.
pub(super) async fn hears(client: &Client, listener: &Listener) -> Work<bool> {
    if !listener.ear.heard_within(SPEAKS_EVERY) {
        let hello = format!("{} {}", listener.sender, listen::HELLO);
        one(client, "SELECT pg_notify('stakeout', $1)", &[&hello]).await?;
    }
    Ok(listener.ear.heard_within(LISTENS_FOR))
}

/// Those of these targets that were re-planned, switched or removed since their plans had these versions.
pub(super) async fn moved_on(client: &Client, plans: &[(TargetId, u64)]) -> Work<Vec<TargetId>> {
    let (ids, versions): (Vec<i64>, Vec<i64>) =
        plans.iter().map(|(target, version)| (target.0, *version as i64)).unzip();
    let sql = "SELECT h.id FROM unnest($1::bigint[], $2::bigint[]) AS h (id, plan_version)
               LEFT JOIN targets t ON t.id = h.id WHERE t.plan_version IS DISTINCT FROM h.plan_version";
    let rows = all(client, sql, &[&ids, &versions]).await?;
    rows.iter().map(|row| Ok(TargetId(row.try_get(0)?))).collect()
}

pub(super) async fn leave(client: &Client, node: &str) -> Work<()> {
    one(client, "SELECT stakeout_leave($1)", &[&node]).await?;
    Ok(())
}

pub(super) async fn price(client: &Client, source: &str) -> Work<Option<f64>> {
    let sql = "SELECT price FROM prices p JOIN sources s ON s.id = p.source_id WHERE s.name = $1";
    Ok(all(client, sql, &[&source]).await?.first().map(|row| row.try_get(0)).transpose()?)
}

pub(super) async fn set_price(client: &Client, source: &str, price: f64, now: Time) -> Work<()> {
    one(client, "SELECT stakeout_set_price($1, $2, $3)", &[&source, &price, &now.us()]).await?;
    Ok(())
}
