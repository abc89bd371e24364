//! The schema and its version. Nodes of two versions run side by side during an upgrade: a node works with the schema
//! it knows and with the next one, because every step only adds what the version before does not see; what nobody needs
//! any more goes a step later.

use tokio_postgres::{Client, GenericClient};

use super::fault::Work;
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
    ],
];

        include_str!("../../migrations/postgres/0005_sharing.sql"),
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

/// Brings the schema up to date; whoever comes second finds nothing to do. All steps go in one message, which is one
/// transaction: nodes that start together wait for the lock, but never for a client.
pub(super) async fn migrate(client: &Client, steps: &[&[&str]]) -> Work<()> {
    loop {
        let found = version(client).await?;
        check(found, steps.len() as u32)?;
        if found as usize >= steps.len() {
            return Ok(());
        }
        match client.batch_execute(&script(found, steps)).await {
            Err(error) if error.code().is_some_and(|code| code.code() == OVERTAKEN) => {}
            result => return Ok(result?),
        }
    }
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
         DO $$ BEGIN IF {is_another} THEN RAISE EXCEPTION USING ERRCODE = '{OVERTAKEN}'; END IF; END $$;
         {begin}"
    );
    for (n, step) in steps.iter().enumerate().skip(found as usize) {
        step.iter().for_each(|part| script.push_str(part));
        script.push_str(&format!("\nINSERT INTO schema_steps (step) VALUES ({});\n", n + 1));
    }
    script
}
