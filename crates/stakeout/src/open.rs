//! Finding and opening the store: a file, which one process writes and others read beside it, or a database server,
//! which any number of processes share.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use stakeout_store::sqlite::{OpenOptions, SqliteStore, lock_holder};
use stakeout_store::{Store, StoreError};

use crate::UsageError;
use crate::cli::GlobalArgs;
use crate::config::{ConfigError, EngineSettings, Loaded};

/// The configuration file when none is named.
const CONFIG_FILE: &str = "stakeout.toml";

/// Where everything is kept.
#[derive(Clone)]
pub(crate) enum Database {
    /// SQLite, in this file.
    File(PathBuf),
    /// PostgreSQL.
    Server {
        /// With everything in it, also the password.
        url: String,
        /// For people: without user and password.
        shown: String,
    },
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Database::File(path) => path.display().fmt(f),
            Database::Server { shown, .. } => f.write_str(shown),
        }
    }
}

/// The configuration and the database that a command is about.
pub(crate) struct Place {
    pub(crate) loaded: Loaded,
    pub(crate) database: Database,
}

/// A store that is open for writing.
pub(crate) enum Opened {
    /// A file, and this process is the only one that writes it.
    File(Arc<SqliteStore>),
    /// A database server.
    Server(Arc<PgStore>),
}

impl Opened {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Opened::File(store) => Arc::clone(store) as Arc<dyn Store>,
            Opened::Server(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// The same store for whoever looks on, who gets in nobody's way.
    pub(crate) fn for_onlookers(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Opened::File(store) => Arc::new(store.for_onlookers()?),
            Opened::Server(store) => Arc::new(store.for_onlookers()?),
        })
    }
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

    /// The store, for reading; other processes may be writing it.
    pub(crate) async fn read(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match &self.database {
            Database::File(path) => Arc::new(SqliteStore::open_read_only(path)?),
            Database::Server { url, .. } => Arc::new(PgStore::open_existing(url).await?),
        })
    }

    /// The store, for writing, or the process that has it. What does not exist is not created.
    pub(crate) async fn door(&self) -> Result<Door, anyhow::Error> {
        if let Some(running) = self.running()? {
            return Ok(running);
        }
        let path = match &self.database {
            Database::File(path) => path,
            // Whoever runs hears of it by a hint, or by looking.
            Database::Server { url, .. } => {
                return Ok(Door::Direct(Arc::new(PgStore::open_existing(url).await?)));
            }
        };
        if !path.exists() {
            return Err(StoreError::Missing { path: path.clone() }.into());
        }
        Ok(Door::Direct(Arc::new(create(path)?)))
    }

    /// The process that has the store to itself, if there is one.
    pub(crate) fn running(&self) -> Result<Option<Door>, anyhow::Error> {
        let Database::File(path) = &self.database else { return Ok(None) };
        match lock_holder(path) {
            None => Ok(None),
            Some(holder) => match holder.socket {
                Some(socket) => Ok(Some(Door::Running { socket, pid: holder.pid })),
                None => anyhow::bail!(
                    "{} is in use by process {}, which takes no commands (it is just starting, or a `stakeout poll`): try again when it is done",
                    path.display(),
                    holder.pid
                ),
            },
        }
    }

    /// The store, for writing, created if it is not there, as the node of the configuration: what an earlier process of
    /// its name held is free again. `clock` says whose time decides leases on a server.
    pub(crate) async fn create(&self, clock: LeaseClock) -> Result<Opened, anyhow::Error> {
        // Only a name that somebody gave is this process's alone, whoever had it before.
        let named = Some(self.node()).filter(|node| *node == self.loaded.config.engine.node);
        self.create_as(named, clock).await
    }

    /// The same for whoever comes beside the node of the configuration, which may be running: nothing of that is touched.
    pub(crate) async fn create_beside(&self) -> Result<Opened, anyhow::Error> {
        self.create_as(None, LeaseClock::Database).await
    }

    async fn create_as(&self, node: Option<String>, clock: LeaseClock) -> Result<Opened, anyhow::Error> {
        match &self.database {
            Database::File(path) => Ok(Opened::File(Arc::new(create(path)?))),
            Database::Server { url, .. } => {
                let options = PgOptions { clock, node, ..PgOptions::default() };
                let store = PgStore::open(url, options).await.context("cannot open the store")?;
                Ok(Opened::Server(Arc::new(store)))
            }
        }
    }

    /// What this process is called. Where several share a store, nobody is called by the default name.
    pub(crate) fn node(&self) -> String {
        let configured = &self.loaded.config.engine.node;
        match &self.database {
            Database::Server { .. } if *configured == EngineSettings::default().node => own_name(),
            _ => configured.clone(),
        }
    }

    /// What a process is called that comes beside the node of the configuration: by that one's name it would take over
    /// what that one holds, and give it up when it goes.
    pub(crate) fn visitor(&self) -> String {
        match &self.database {
            Database::Server { .. } => format!("{}-pass", own_name()),
            // Whoever has a file to himself is the node.
            Database::File(_) => self.node(),
        }
    }
}

/// A name that no other process has.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}-{}", host.trim(), std::process::id())
}

fn create(path: &Path) -> Result<SqliteStore, anyhow::Error> {
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty())
        && !directory.is_dir()
    {
        anyhow::bail!(
            "the directory {} does not exist: create it, or correct store.url",
            directory.display()
        );
    }
    SqliteStore::open(path, OpenOptions::default()).context("cannot open the store")
}

/// The way in for whoever wants to write.
pub(crate) enum Door {
    /// Nobody has the store to himself: it can be written here.
    Direct(Arc<dyn Store>),
    /// Ask this process.
    Running {
        /// Where it listens.
        socket: PathBuf,
        /// Who it is.
        pid: String,
    },
}

/// What a store URL names.
pub(crate) fn database(url: &str) -> Result<Database, String> {
    let expected = "expected sqlite:PATH, such as sqlite:stakeout.db or sqlite:/var/lib/stakeout/stakeout.db, or postgres://USER:PASSWORD@HOST/DATABASE";
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        // Its own message says what is wrong, and repeats nothing of it.
        let shown = PgStore::shown_url(url).map_err(|error| error.to_string())?;
        return Ok(Database::Server { url: url.to_owned(), shown });
    }
    match url.strip_prefix("sqlite:") {
        Some("" | ":memory:") => Err(format!("{expected}: a file is needed, found {url:?}")),
        Some(path) => Ok(Database::File(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))),
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
            assert_eq!(database(url).map(|found| found.to_string()).as_deref(), Ok(path));
        }
        for bad in ["", "sqlite:", "sqlite::memory:", "stakeout.db", "mysql://u:pw@h/db"] {
            let error = database(bad).err().expect("refused");
            assert!(error.starts_with("expected sqlite:PATH") && !error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn store_urls_name_servers_and_keep_their_passwords() {
        for url in ["postgres://u:pw@h:5433/db", "postgresql://u:pw@h:5433/db?sslmode=require"] {
            let found =
                database(url).map_err(|error| assert!(!error.contains("pw"), "{error}")).expect("a server");
            assert_eq!(found.to_string(), "postgres://h:5433/db");
        }
        let error = database("postgres://u:pw@h:nonsense/db").err().expect("refused");
        assert!(error.contains("expected postgres://") && !error.contains("pw"), "{error}");
    }
}
