//! What follows from all of a source's records: read in one transaction, written in one call.

use deadpool_postgres::Client;
use tokio_postgres::IsolationLevel;

use super::fault::Work;
use super::{commit, one, read, targets, wire};
use crate::{DeriveCommit, DeriveDone, DeriveOutcome, TargetId, Whole};

/// Everything a source holds of these kinds, at one moment. Reading locks nothing that a writer waits for.
pub(super) async fn whole(
    client: &mut Client,
    source: &str,
    kinds: &[String],
    published: &[(String, String)],
) -> Work<Whole> {
    let moment = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let mut whole = Whole::default();
    for (namespace, key) in published {
        whole.kv.extend(read::kv(&moment, namespace, key).await?);
    }
    for kind in kinds {
        whole.records.extend(read::held(&moment, source, kind).await?);
    }
    let keys =
        "SELECT t.key FROM targets t JOIN sources s ON s.id = t.source_id WHERE s.name = $1 ORDER BY t.key";
    let statement = moment.prepare_cached(keys).await?;
    for row in moment.query(&statement, &[&source]).await? {
        whole.targets.push(row.try_get(0)?);
    }
    whole.focused = targets::focused(&moment, source).await?;
    moment.commit().await?;
    Ok(whole)
}

/// Writes a derivation, unless something is another than it was read.
pub(super) async fn write(client: &Client, derived: &DeriveCommit) -> Work<DeriveOutcome> {
    let text = wire::derive(derived)?;
    let sql = "SELECT o_done, o_told AS told, o_seq AS seq, o_touched AS touched FROM stakeout_derive($1)";
    let row = one(client, sql, &[&text]).await?;
    if !row.try_get::<_, bool>("o_done")? {
        return Ok(DeriveOutcome::Conflict);
    }
    let touched: Option<Vec<i64>> = row.try_get("touched")?;
    let mut touched: Vec<TargetId> = touched.unwrap_or_default().into_iter().map(TargetId).collect();
    touched.sort_unstable();
    touched.dedup();
    let events = commit::told(&derived.source, DeriveCommit::TARGET, &derived.events, &row)?;
    Ok(DeriveOutcome::Done(DeriveDone { events, touched }))
}
