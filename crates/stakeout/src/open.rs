//! Finding and opening the store: for reading beside a running process, for writing only when there is none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use stakeout_store::sqlite::{OpenOptions, SqliteStore, lock_holder};
use stakeout_store::{Store, StoreError};

use crate::UsageError;
use crate::cli::GlobalArgs;
use crate::config::{ConfigError, Loaded};

/// The configuration file when none is named.
const CONFIG_FILE: &str = "stakeout.toml";

/// The configuration and the database that a command is about.
pub(crate) struct Place {
    pub(crate) loaded: Loaded,
    pub(crate) database: PathBuf,
}

impl Place {
    /// Loads the configuration. Without a file, but with a store on the command line, the defaults will do.
    pub(crate) fn find(args: &GlobalArgs) -> Result<Place, anyhow::Error> {
        let named = args.config.as_deref();
        let path = named.unwrap_or(Path::new(CONFIG_FILE));
        let loaded = match (named, &args.store) {
            (None, Some(_)) if !path.exists() => Loaded::defaults(),
            _ => Loaded::from_file(path)?,
        };
        let database = match &args.store {
            Some(url) => database(url).map_err(|message| UsageError(format!("--store: {message}")))?,
            None => database(&loaded.config.store.url).map_err(|message| ConfigError {
                file: loaded.file().to_owned(),
                line: None,
                message: format!("[store] url: {message}"),
            })?,
        };
        Ok(Place { loaded, database })
    }

    /// The store, for reading; a process may be writing it.
    pub(crate) fn read(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open_read_only(&self.database)?))
    }

    /// The store, for writing, or the process that has it. What does not exist is not created.
    pub(crate) fn door(&self) -> Result<Door, anyhow::Error> {
        if let Some(running) = self.running()? {
            return Ok(running);
        }
        if !self.database.exists() {
            return Err(StoreError::Missing { path: self.database.clone() }.into());
        }
        Ok(Door::Direct(Arc::new(self.create()?)))
    }

    /// The process that has the store, if there is one.
    pub(crate) fn running(&self) -> Result<Option<Door>, anyhow::Error> {
        match lock_holder(&self.database) {
            None => Ok(None),
            Some(holder) => match holder.socket {
                Some(socket) => Ok(Some(Door::Running { socket, pid: holder.pid })),
                None => anyhow::bail!(
                    "{} is in use by process {}, which takes no commands (it is just starting, or a `stakeout poll`): try again when it is done",
                    self.database.display(),
                    holder.pid
                ),
            },
        }
    }

    /// The store, for writing, created if it is not there.
    pub(crate) fn create(&self) -> Result<SqliteStore, anyhow::Error> {
        if let Some(directory) = self.database.parent().filter(|d| !d.as_os_str().is_empty())
            && !directory.is_dir()
        {
            anyhow::bail!(
                "the directory {} does not exist: create it, or correct store.url",
                directory.display()
            );
        }
        SqliteStore::open(&self.database, OpenOptions::default()).context("cannot open the store")
    }
}

/// The way in for whoever wants to write.
pub(crate) enum Door {
    /// Nobody has the store: it is ours.
    Direct(Arc<dyn Store>),
    /// Ask this process.
    Running {
        /// Where it listens.
        socket: PathBuf,
        /// Who it is.
        pid: String,
    },
}

/// The file that a store URL names.
fn database(url: &str) -> Result<PathBuf, String> {
    let expected = "expected sqlite:PATH, such as sqlite:stakeout.db or sqlite:/var/lib/stakeout/stakeout.db";
    match url.strip_prefix("sqlite:") {
        Some("" | ":memory:") => Err(format!("{expected}: a file is needed, found {url:?}")),
        Some(path) => Ok(PathBuf::from(path.strip_prefix("//").unwrap_or(path))),
        // Only the scheme is shown: a URL of a database server may hold a password.
        None => Err(format!(
            "{expected}, found {:?}",
            url.split_once(':').map_or("no scheme", |(scheme, _)| scheme)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_urls_name_files() {
        for (url, path) in [
            ("sqlite:stakeout.db", "stakeout.db"),
            ("sqlite:/var/lib/s.db", "/var/lib/s.db"),
            ("sqlite:///var/lib/s.db", "/var/lib/s.db"),
            ("sqlite:a b.db", "a b.db"),
        ] {
            assert_eq!(database(url).as_deref(), Ok(Path::new(path)));
        }
        for bad in ["", "sqlite:", "sqlite::memory:", "stakeout.db", "postgres://u:pw@h/db"] {
            let error = database(bad).expect_err("refused");
            assert!(error.starts_with("expected sqlite:PATH") && !error.contains("pw"), "{error}");
        }
    }
}
