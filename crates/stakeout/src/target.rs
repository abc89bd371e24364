//! Which target a person means.

use stakeout_store::{Store, TargetFilter, TargetRow};

use crate::suggest;

/// Targets that are looked through for near names; more would make a typing mistake expensive.
const LOOKED_THROUGH: u32 = 10_000;

/// Names listed in a message.
const LISTED: usize = 5;

/// Why no target could be told from what was typed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is none.
    #[error("there is no target {typed:?}{}", hint(near))]
    Unknown {
        /// What was typed.
        typed: String,
        /// What it may have been meant for.
        near: Vec<String>,
    },
    /// Several sources have that key.
    #[error("{typed:?} may be any of {}: say which", found.join(", "))]
    Ambiguous {
        /// What was typed.
        typed: String,
        /// The targets with that key.
        found: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] stakeout_store::StoreError),
}

fn hint(near: &[String]) -> String {
    match near {
        [] => ": `stakeout targets` lists them".to_owned(),
        [one] => format!(": did you mean {one}?"),
        several => format!(": did you mean one of {}?", several.join(", ")),
    }
}

/// `source/key` of a row, as people type it.
pub fn name(row: &TargetRow) -> String {
    format!("{}/{}", row.source, row.spec.key)
}

/// The target that `typed` means: `source/key` (the key may have slashes of its own), or a key that only one source
/// has.
pub async fn resolve(store: &dyn Store, typed: &str) -> Result<TargetRow, TargetError> {
    if let Some((source, key)) = typed.split_once('/')
        && let Some(row) = store.target(source, key).await?
    {
        return Ok(row);
    }
    let like = TargetFilter {
        key_contains: Some(typed.to_owned()),
        limit: LOOKED_THROUGH,
        ..TargetFilter::default()
    };
    let containing = store.targets(&like).await?;
    let mut exact: Vec<TargetRow> = containing.iter().filter(|row| row.spec.key == typed).cloned().collect();
    match (exact.len(), exact.pop()) {
        (1, Some(row)) => Ok(row),
        (0, _) => {
            let near = near(store, typed, &containing).await?;
            Err(TargetError::Unknown { typed: typed.to_owned(), near })
        }
        (_, last) => {
            let found = exact.iter().chain(&last).take(LISTED).map(name).collect();
            Err(TargetError::Ambiguous { typed: typed.to_owned(), found })
        }
    }
}

async fn near(store: &dyn Store, typed: &str, containing: &[TargetRow]) -> Result<Vec<String>, TargetError> {
    if !containing.is_empty() {
        return Ok(containing.iter().take(LISTED).map(name).collect());
    }
    let all = store.targets(&TargetFilter { limit: LOOKED_THROUGH, ..TargetFilter::default() }).await?;
    let names: Vec<(String, String)> = all.iter().map(|row| (name(row), row.spec.key.clone())).collect();
    let full = suggest::near(typed, names.iter().map(|(full, _)| full.as_str()), LISTED);
    if !full.is_empty() {
        return Ok(full.into_iter().map(str::to_owned).collect());
    }
    let keys = suggest::near(typed, names.iter().map(|(_, key)| key.as_str()), LISTED);
    Ok(names.iter().filter(|(_, key)| keys.contains(&key.as_str())).map(|(full, _)| full.clone()).collect())
}

#[cfg(test)]
mod tests {
    use stakeout_core::{TargetSpec, Time};
    use stakeout_store::sqlite::SqliteStore;
    use stakeout_store::{Schedule, Wanted};

    use super::*;

    async fn store() -> SqliteStore {
        let store = SqliteStore::in_memory().expect("a store");
        let wanted =
            |key: &str| Wanted { spec: TargetSpec::new(key, "document"), schedule: Schedule::default() };
        for (source, keys) in [("nz", &["race/1", "race/2", "main"][..]), ("shop", &["main", "north"])] {
            let keys: Vec<Wanted> = keys.iter().map(|key| wanted(key)).collect();
            store.reconcile_roots(source, &keys, Time(0)).await.expect("targets");
        }
        store
    }

    #[tokio::test]
    async fn a_target_is_found_by_what_people_type() {
        let store = store().await;
        for (typed, expected) in [
            ("shop/north", "shop/north"),
            ("north", "shop/north"),
            ("nz/race/1", "nz/race/1"),
            ("race/2", "nz/race/2"),
            ("main", "\"main\" may be any of nz/main, shop/main: say which"),
            ("race", "there is no target \"race\": did you mean one of nz/race/1, nz/race/2?"),
            ("shop/nroth", "there is no target \"shop/nroth\": did you mean shop/north?"),
            ("nortj", "there is no target \"nortj\": did you mean shop/north?"),
            ("xyz", "there is no target \"xyz\": `stakeout targets` lists them"),
        ] {
            let found = resolve(&store, typed).await.map_or_else(|error| error.to_string(), |row| name(&row));
            assert_eq!(found, expected, "{typed}");
        }
    }
}
