//! The schema and its version. Nodes of two versions run side by side during an upgrade: a node works with the schema
//! it knows and with the next one, because every step leaves in place whatever the version before uses; what nobody needs
//! any more goes a step later.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

use super::fault::{Fault, Work};
use crate::StoreError;

/// Append-only: the schema version is the length of this list, so a step that was ever released never changes.
pub(super) const STEPS: &[&[&str]] = &[
    &[
        include_str!("../../migrations/postgres/0001_tables.sql"),
        include_str!("../../migrations/postgres/0001_locks.sql"),
        include_str!("../../migrations/postgres/0001_records.sql"),
        include_str!("../../migrations/postgres/0001_events.sql"),
        include_str!("../../migrations/postgres/0001_targets.sql"),
        include_str!("../../migrations/postgres/0001_commit.sql"),
        include_str!("../../migrations/postgres/0001_derive.sql"),
        include_str!("../../migrations/postgres/0001_history.sql"),
        include_str!("../../migrations/postgres/0001_upkeep.sql"),
    ],
    &[include_str!("../../migrations/postgres/0002_nodes.sql")],
    &[
        include_str!("../../migrations/postgres/0003_upkeep.sql"),
        include_str!("../../migrations/postgres/0003_alerts.sql"),
    ],
    &[
        include_str!("../../migrations/postgres/0004_dedupe.sql"),
        include_str!("../../migrations/postgres/0004_plans.sql"),
    ],
    &[
        include_str!("../../migrations/postgres/0005_roots.sql"),
        include_str!("../../migrations/postgres/0005_claims.sql"),
        include_str!("../../migrations/postgres/0005_sharing.sql"),
    ],
    &[include_str!("../../migrations/postgres/0006_notes.sql")],
    &[
        include_str!("../../migrations/postgres/0007_leases.sql"),
        include_str!("../../migrations/postgres/0007_events.sql"),
        include_str!("../../migrations/postgres/0007_replaced.sql"),
    ],
];

/// What is raised when somebody else was faster.
const OVERTAKEN: &str = "SP002";

/// The schema version of the database; 0 when there is none.
pub(super) async fn version(client: &impl GenericClient) -> Work<u32> {
    let there: bool =
        client.query_one("SELECT to_regclass('schema_steps') IS NOT NULL", &[]).await?.try_get(0)?;
    if !there {
        return Ok(0);
    }
    let newest = client.query_one("SELECT coalesce(max(step), 0) FROM schema_steps", &[]).await?;
    Ok(newest.try_get::<_, i32>(0)? as u32)
}

/// Refuses a schema that is more than one step ahead.
pub(super) fn check(found: u32, known: u32) -> Result<(), StoreError> {
    if found > known + 1 { Err(StoreError::TooNew { found, known }) } else { Ok(()) }
}

/// How long a step waits for a table that somebody uses. Whoever comes after it waits behind it: those who commit.
const LOCK_WAIT: &str = "500ms";
/// What they are left between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Brings the schema up to date; whoever comes second finds nothing to do. All steps go in one message, which is one
/// transaction: nodes that start together wait for the lock, but never for a client. A table that somebody uses for long
/// (a backup reads all of them) is tried for again and again, and given up after `patience`.
pub(super) async fn migrate(client: &Client, steps: &[&[&str]], patience: Duration) -> Work<()> {
    let began = Instant::now();
    loop {
        let found = version(client).await?;
        check(found, steps.len() as u32)?;
        if found as usize >= steps.len() {
            return Ok(());
        }
        let Err(error) = client.batch_execute(&script(found, steps)).await else { return Ok(()) };
        match error.code() {
            Some(code) if code.code() == OVERTAKEN => {}
            Some(&SqlState::LOCK_NOT_AVAILABLE) if began.elapsed() < patience => {
                tracing::warn!(
                    found,
                    wanted = steps.len(),
                    "somebody uses a table that the new schema changes: trying again"
                );
                tokio::time::sleep(PAUSE).await;
            }
            Some(&SqlState::LOCK_NOT_AVAILABLE) => return Err(Fault::Store(in_use(patience))),
            _ => return Err(error.into()),
        }
    }
}

fn in_use(patience: Duration) -> StoreError {
    let message = format!(
        "a table was in use for {patience:?}, perhaps by a backup or a long transaction (pg_stat_activity has them): \
         start again when that is done; nothing was changed"
    );
    StoreError::Database { doing: "bring the schema up to date", message }
}

/// Everything that is missing after version `found`, unless another version is found under the lock.
pub(super) fn script(found: u32, steps: &[&[&str]]) -> String {
    let (is_another, begin) = match found {
        0 => (
            "to_regclass('schema_steps') IS NOT NULL".to_owned(),
            "CREATE TABLE schema_steps (step integer PRIMARY KEY);",
        ),
        found => (format!("(SELECT max(step) FROM schema_steps) <> {found}"), ""),
    };
    let mut script = format!(
        "SELECT pg_advisory_xact_lock(7300, 0);
         SELECT set_config('lock_timeout', '{LOCK_WAIT}', true);
         DO $$ BEGIN IF {is_another} THEN RAISE EXCEPTION USING ERRCODE = '{OVERTAKEN}'; END IF; END $$;
         {begin}"
    );
    for (n, step) in steps.iter().enumerate().skip(found as usize) {
        step.iter().for_each(|part| script.push_str(part));
        script.push_str(&format!("\nINSERT INTO schema_steps (step) VALUES ({});\n", n + 1));
    }
    script
}
