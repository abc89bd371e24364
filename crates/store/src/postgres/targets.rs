//! Lists of targets: filtered, in three orders, page by page.

use std::sync::LazyLock;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::fault::Work;
use super::read::all;
use super::{Parameter, rows};
use crate::{PollOutcome, TargetFilter, TargetId, TargetOrder, TargetRow};

static TARGETS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT s.name AS source, t.incarnation, t.listed_by, t.enabled, t.owner, t.lease_until_us, t.poll_no,
             t.plan_version, t.last_outcome, t.last_polled_us, t.last_changed_us, t.last_error,
             coalesce(n.records, 0) AS records, coalesce(n.version, 0) AS version, {}, {}, {}
         FROM targets t JOIN sources s ON s.id = t.source_id LEFT JOIN snapshots n ON n.target_id = t.id",
        rows::SCHEDULE,
        rows::SPEC,
        rows::STATE,
    )
});

fn target_row(row: &Row) -> Work<TargetRow> {
    let outcome: Option<&str> = row.try_get("last_outcome")?;
    Ok(TargetRow {
        id: TargetId(row.try_get("id")?),
        source: row.try_get("source")?,
        spec: rows::spec(row)?,
        incarnation: rows::number(row, "incarnation")?,
        listed_by: row.try_get::<_, Option<i64>>("listed_by")?.map(TargetId),
        enabled: row.try_get("enabled")?,
        schedule: rows::schedule(row)?,
        owner: row.try_get("owner")?,
        lease_until: rows::opt_time(row, "lease_until_us")?,
        poll_no: rows::number(row, "poll_no")?,
        plan_version: rows::number(row, "plan_version")?,
        last_outcome: outcome.and_then(PollOutcome::parse),
        last_polled: rows::opt_time(row, "last_polled_us")?,
        last_changed: rows::opt_time(row, "last_changed_us")?,
        last_error: row.try_get("last_error")?,
        records: rows::number(row, "records")?,
        state: rows::state(row, rows::number(row, "version")?)?,
    })
}

/// Conditions of a query and their parameters; every `?` of a condition stands for its parameter.
#[derive(Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    parameters: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Conditions {
    pub(super) fn add(&mut self, sql: &str, parameter: impl ToSql + Sync + Send + 'static) {
        self.parameters.push(Box::new(parameter));
        self.sql.push(sql.replace('?', &format!("${}", self.parameters.len())));
    }

    pub(super) fn always(&mut self, sql: &str) {
        self.sql.push(sql.to_owned());
    }

    pub(super) fn sql(&self) -> String {
        if self.sql.is_empty() { String::new() } else { format!(" WHERE {}", self.sql.join(" AND ")) }
    }

    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        self.parameters.iter().map(|parameter| &**parameter as Parameter<'_>).collect()
    }
}

pub(super) async fn list(client: &impl GenericClient, filter: &TargetFilter) -> Work<Vec<TargetRow>> {
    match filter.order {
        TargetOrder::Created => {
            let after = filter.after.map(|after| ("t.id > ?", after.0));
            list_by(client, filter, None, "t.id", after, filter.limit).await
        }
        TargetOrder::Key => {
            let after = filter.after.map(|after| ("t.key > (SELECT key FROM targets WHERE id = ?)", after.0));
            list_by(client, filter, None, "t.key, t.id", after, filter.limit).await
        }
        TargetOrder::Due => list_by_due(client, filter).await,
    }
}

/// The place after a row in the order of wake times; said twice, because only the first half is found by index.
const WAKES_LATER: &str = "t.wake_us >= (SELECT wake_us FROM targets WHERE id = ?)
    AND (t.wake_us, t.id) > (SELECT wake_us, id FROM targets WHERE id = ?)";

/// Those that will be claimed, by index, then those that never are.
async fn list_by_due(client: &impl GenericClient, filter: &TargetFilter) -> Work<Vec<TargetRow>> {
    let wakes = match filter.after {
        None => true,
        Some(after) => {
            let sql = "SELECT 1 FROM targets WHERE id = $1 AND wake_us IS NOT NULL";
            !all(client, sql, &[&after.0], |_| Ok(())).await?.is_empty()
        }
    };
    let mut found = Vec::new();
    if wakes {
        let after = filter.after.map(|after| (WAKES_LATER, after.0));
        let some = Some("t.wake_us IS NOT NULL");
        found = list_by(client, filter, some, "t.wake_us, t.id", after, filter.limit).await?;
    }
    let left = filter.limit.saturating_sub(found.len() as u32);
    if left > 0 {
        let after = filter.after.filter(|_| !wakes).map(|after| ("t.id > ?", after.0));
        found.extend(list_by(client, filter, Some("t.wake_us IS NULL"), "t.id", after, left).await?);
    }
    Ok(found)
}

/// Targets in an order, after a place in it.
async fn list_by(
    client: &impl GenericClient,
    filter: &TargetFilter,
    only: Option<&str>,
    order: &str,
    after: Option<(&str, i64)>,
    limit: u32,
) -> Work<Vec<TargetRow>> {
    let mut conditions = Conditions::default();
    if let Some(source) = &filter.source {
        conditions.add("t.source_id = (SELECT id FROM sources WHERE name = ?)", source.clone());
    }
    if let Some(lister) = filter.listed_by {
        conditions.add("t.listed_by = ?", lister.0);
    }
    if let Some(part) = &filter.key_contains {
        conditions.add("strpos(t.key, ?) > 0", part.clone());
    }
    if let Some(enabled) = filter.enabled {
        conditions.add("t.enabled = ?", enabled);
    }
    if let Some(failing) = filter.failing {
        conditions.add("(t.last_error IS NOT NULL) = ?", failing);
    }
    if let Some(role) = &filter.role {
        conditions.add("t.role = ?", role.clone());
    }
    if let Some(phase) = &filter.phase {
        conditions.add("t.phase = ?", phase.clone());
    }
    if let Some((place, id)) = after {
        conditions.add(place, id);
    }
    if let Some(only) = only {
        conditions.always(only);
    }
    let sql = format!("{}{} ORDER BY {order} LIMIT {limit}", *TARGETS, conditions.sql());
    all(client, &sql, &conditions.parameters(), target_row).await
}

pub(super) async fn find(client: &impl GenericClient, source: &str, key: &str) -> Work<Option<TargetRow>> {
    let sql = format!("{} WHERE s.name = $1 AND t.key = $2", *TARGETS);
    Ok(all(client, &sql, &[&source, &key], target_row).await?.pop())
}

/// The targets of a source that have the focus.
pub(super) async fn focused(client: &impl GenericClient, source: &str) -> Work<Vec<TargetRow>> {
    let sql = format!("{} WHERE s.name = $1 AND t.focused ORDER BY t.id", *TARGETS);
    all(client, &sql, &[&source], target_row).await
}
