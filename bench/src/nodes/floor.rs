//! The same work in bare SQL on the same tables: as few statements as it takes, nothing checked but the token, nothing
//! understood.

use std::time::{Duration, Instant};

use stakeout_core::{EventId, Fingerprint};
use stakeout_engine::Clock;
use tokio_postgres::{Client, NoTls, Statement};

use super::{BATCH, TARGETS, Work, make_targets, open};
use crate::scene::SOURCE;

const CLAIM: &str = "
    UPDATE targets t SET fence = t.fence + 1, owner = 'bare', lease_until_us = $1 + 60000000, wake_us = $1 + 60000000
    FROM (SELECT id FROM targets WHERE source_id = 1 AND wake_us <= $1
        ORDER BY wake_us, focused DESC, priority DESC LIMIT $2 FOR UPDATE SKIP LOCKED) AS c
    WHERE t.id = c.id
    RETURNING t.id, t.fence, t.key, t.poll_no, t.plan_version, t.params, t.state, t.role, t.priority, t.phase, t.reason";

const RESCHEDULE: &str = "
    UPDATE targets t SET due_us = $1, wake_us = $1, owner = NULL, lease_until_us = NULL, poll_no = t.poll_no + 1,
        interval_us = 10000000, slack_us = 5000000, phase = 'fixed', reason = 'every 10 s', last_polled_us = $1,
        last_outcome = 'unchanged', state = o.state
    FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS o (id, fence, state)
    WHERE t.id = o.id AND t.fence = o.fence";

const COMMIT: &str = "
    WITH o AS MATERIALIZED (
        SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::bytea[])
            WITH ORDINALITY AS o (id, fence, state, key, print, event, n)
    ), t AS (
        UPDATE targets t SET due_us = $1, wake_us = $1, owner = NULL, lease_until_us = NULL, poll_no = t.poll_no + 1,
            interval_us = 10000000, slack_us = 5000000, phase = 'fixed', reason = 'every 10 s', last_polled_us = $1,
            last_changed_us = $1, last_outcome = 'changed', state = o.state
        FROM o WHERE t.id = o.id AND t.fence = o.fence
    ), r AS (
        INSERT INTO records AS r (source_id, fingerprint, kind, key, group_print, content, holders, first_seen_us,
            changed_us, seen_us, body)
        SELECT 1, print, 'json_bench', key, '\\x00'::bytea, event, 1, $1, $1, $1, '{\"value\":1}' FROM o ORDER BY print
        ON CONFLICT (source_id, fingerprint) DO UPDATE
            SET content = excluded.content, changed_us = excluded.changed_us, seen_us = excluded.seen_us, body = excluded.body
    ), h AS (
        INSERT INTO history (source_id, fingerprint, stream, at_us, upstream, values_json)
        SELECT 1, print, 'bench_history', $1, false, '{\"value\":1}' FROM o
    ), s AS (
        UPDATE meta SET value = value + cardinality($2::bigint[]) WHERE key = 'seq' RETURNING value
    )
    INSERT INTO events (seq, id, type, source_id, target, rule, subject, subject_key, at_us, data)
    SELECT s.value - cardinality($2::bigint[]) + n, event, 'json.bench.changed', 1, key, 'changed', print, key, $1,
        '{\"record\":{\"value\":1}}' FROM o, s";

/// Targets per second through so many connections.
pub(super) async fn per_second(url: &str, nodes: usize, work: Work, window: Duration) -> anyhow::Result<f64> {
    make_targets(&*open(url, 0).await?, TARGETS).await?;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..nodes {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("SET jit = off").await?;
        if work == Work::Reschedule {
            client.batch_execute("SET synchronous_commit = off").await?;
        }
        running.spawn(async move { turn(&client, work, window).await });
    }
    let mut done = 0.0;
    while let Some(finished) = running.join_next().await {
        done += finished??;
    }
    Ok(done)
}

async fn turn(client: &Client, work: Work, window: Duration) -> anyhow::Result<f64> {
    let claim = client.prepare(CLAIM).await?;
    let write = client.prepare(if work == Work::Reschedule { RESCHEDULE } else { COMMIT }).await?;
    once(client, &claim, &write, work).await?;
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < window {
        done += once(client, &claim, &write, work).await?;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

async fn once(client: &Client, claim: &Statement, write: &Statement, work: Work) -> anyhow::Result<usize> {
    let now = Clock::system().now().us();
    let rows = client.query(claim, &[&now, &i64::from(BATCH)]).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.get("id")).collect();
    let fences: Vec<i64> = rows.iter().map(|row| row.get("fence")).collect();
    let states: Vec<&str> = rows.iter().map(|row| row.get("state")).collect();
    match work {
        Work::Reschedule => {
            client.execute(write, &[&now, &ids, &fences, &states]).await?;
        }
        Work::Commit => {
            let keys: Vec<&str> = rows.iter().map(|row| row.get("key")).collect();
            let prints: Vec<Vec<u8>> =
                keys.iter().map(|key| Fingerprint::of("json_bench", &[key]).to_bytes().to_vec()).collect();
            let event = |row: &tokio_postgres::Row| {
                let trigger = row.get::<_, i64>("poll_no").to_string();
                EventId::of_trigger(SOURCE, "changed", row.get("key"), &trigger).0.to_be_bytes().to_vec()
            };
            let events: Vec<Vec<u8>> = rows.iter().map(event).collect();
            client.execute(write, &[&now, &ids, &fences, &states, &keys, &prints, &events]).await?;
        }
    }
    Ok(rows.len())
}
