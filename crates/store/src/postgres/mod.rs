//! The shared store: one PostgreSQL database, any number of nodes.
//!
//! ```text
//! commit ─► one call of a function in the database: locks, fences, writes, numbers, commit ─► outcomes
//! claim  ─► one statement that skips what others have locked ─► what was taken is read afterwards, without a lock
//! ```
//! **Invariants kept here:** no lock is ever held across a round trip: whatever takes one is a single statement, with
//! small arguments to read back, so a node that is stopped at any moment holds up nobody. Locks are taken in one order
//! (`migrations/postgres/0001_locks.sql`). Leases are decided by the database's clock ([`LeaseClock`]). Notifications
//! are hints ([`crate::Hint`]); looking is the truth.

mod browse;
mod claim;
mod clock;
mod commit;
mod connect;
mod control;
mod deliveries;
mod derived;
mod fault;
mod listen;
mod migrate;
mod notifications;
mod prune;
mod read;
mod rows;
mod sharing;
mod store;
mod targets;
mod tokens;
mod wire;

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::{Client, Object, Pool};
use tokio::sync::broadcast;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::clock::Offset;
use self::connect::Address;
use self::listen::Listener;
use self::prune::Cursor;
use crate::{Hint, Result, StoreError};

pub use self::clock::LeaseClock;
pub(crate) use self::fault::{Fault, Work};

/// How to open a database.
#[derive(Clone, Debug)]
pub struct PgOptions {
    /// How many connections at most, besides the one that listens.
    pub connections: usize,
    /// Whose clock decides leases.
    pub clock: LeaseClock,
    /// This node's name. What an earlier process of that name had claimed is free again: names are not shared.
    pub node: Option<String>,
    /// The longest an answer may take, and the longest a step of the schema waits for tables that somebody uses.
    pub patience: Duration,
}

/// How many connections those who look on share.
const ONLOOKERS: usize = 4;

/// Reading or pruning a large database takes long, a dead network for ever.
const PATIENCE: Duration = Duration::from_secs(30);

impl Default for PgOptions {
    fn default() -> PgOptions {
        PgOptions { connections: 8, clock: LeaseClock::Database, node: None, patience: PATIENCE }
    }
}

/// A PostgreSQL database.
#[derive(Debug)]
pub struct PgStore {
    pool: Pool,
    address: Address,
    /// The schema version of this program.
    known: u32,
    offset: Offset,
    patience: Duration,
    /// So many polls are written by one call: fewer after one that was not answered in time.
    most_at_once: AtomicUsize,
    /// Sources by name; their rows are never removed.
    sources: Mutex<HashMap<String, i32>>,
    cursor: tokio::sync::Mutex<Cursor>,
    hints: broadcast::Sender<Hint>,
    /// `None` when nobody asked for hints: whoever reads once need not listen.
    listener: Option<Listener>,
}

/// How many hints may wait for whoever is slow; a lost hint is found by looking.
const HINTS: usize = 64;

/// A parameter of a statement.
type Parameter<'a> = &'a (dyn ToSql + Sync);

impl PgStore {
    /// Opens a database as a node that writes: brings its schema up to date and listens for hints.
    pub async fn open(url: &str, options: PgOptions) -> Result<PgStore> {
        PgStore::open_with(url, options, migrate::STEPS).await
    }

    /// Opens a database that exists, without changing its schema: for commands that look and leave.
    pub async fn open_existing(url: &str) -> Result<PgStore> {
        let address = Address::parse(url)?;
        let options = PgOptions { connections: 2, ..PgOptions::default() };
        let store = PgStore::new(&address, &options, migrate::STEPS.len(), None)?;
        let found = async {
            let client = store.pool.get().await?;
            migrate::version(&**client).await
        };
        let found = found.await.map_err(|fault: Fault| store.unreachable(fault, "open the database"))?;
        migrate::check(found, store.known)?;
        if found == 0 {
            return Err(StoreError::Missing { path: store.address.shown.into() });
        }
        Ok(store)
    }

    /// Opens a database as a program that knows these steps beyond ours: for tests of an upgrade.
    #[cfg(feature = "conformance")]
    pub async fn open_ahead(url: &str, options: PgOptions, further: &[&[&str]]) -> Result<PgStore> {
        PgStore::open_with(url, options, &[migrate::STEPS, further].concat()).await
    }

    /// Opens a database as a program that knew only so many of our steps: for tests of an upgrade.
    #[cfg(feature = "conformance")]
    pub async fn open_behind(url: &str, options: PgOptions, steps: usize) -> Result<PgStore> {
        PgStore::open_with(url, options, &migrate::STEPS[..steps]).await
    }

    async fn open_with(url: &str, options: PgOptions, steps: &[&[&str]]) -> Result<PgStore> {
        let address = Address::parse(url)?;
        let (hints, _) = broadcast::channel(HINTS);
        let store = PgStore::new(&address, &options, steps.len(), Some(hints.clone()))?;
        let doing = "open the database";
        let client = store.pool.get().await.map_err(|e| store.unreachable(e.into(), doing))?;
        let ready = async {
            must_hold_any_text(&client, doing).await?;
            migrate::migrate(&client, steps, options.patience).await?;
            let now = "SELECT stakeout_make_weeks((extract(epoch FROM now()) * 1000000)::bigint)";
            client.execute(now, &[]).await?;
            if let Some(node) = &options.node {
                let freed = claim::free_own(&client, node).await?;
                if freed > 0 {
                    tracing::info!(freed, node, "claims of an earlier process are free again");
                }
            }
            Ok(())
        };
        ready.await.map_err(|fault: Fault| store.unreachable(fault, doing))?;
        drop(client);
        Ok(PgStore { listener: Some(Listener::start(address, hints).await), ..store })
    }

    /// The same database for whoever looks on, with connections of its own: the engine does not wait behind what people
    /// ask for. It claims nothing and hears no hints.
    pub fn for_onlookers(&self) -> Result<PgStore> {
        let options = PgOptions {
            connections: ONLOOKERS,
            clock: LeaseClock::Caller,
            node: None,
            patience: self.patience,
        };
        PgStore::new(&self.address, &options, self.known as usize, None)
    }

    fn new(
        address: &Address,
        options: &PgOptions,
        steps: usize,
        hints: Option<broadcast::Sender<Hint>>,
    ) -> Result<PgStore> {
        Ok(PgStore {
            pool: address.pool(options.connections)?,
            address: address.clone(),
            known: steps as u32,
            offset: Offset::new(options.clock),
            patience: options.patience,
            most_at_once: AtomicUsize::new(usize::MAX),
            sources: Mutex::default(),
            cursor: tokio::sync::Mutex::default(),
            hints: hints.unwrap_or_else(|| broadcast::channel(1).0),
            listener: None,
        })
    }

    /// What people may see of a URL: not user and password. An error says what is expected and repeats nothing.
    pub fn shown_url(url: &str) -> Result<String> {
        Ok(Address::parse(url)?.shown)
    }

    /// Where the database is, for people: without user and password.
    pub fn shown(&self) -> &str {
        &self.address.shown
    }

    /// A failure to open, with the place.
    fn unreachable(&self, fault: Fault, doing: &'static str) -> StoreError {
        match fault.into_store(doing) {
            StoreError::Database { doing, message } => {
                StoreError::Database { doing, message: format!("{}: {message}", self.address.shown) }
            }
            other => other,
        }
    }

    /// Runs `work` on a connection, in the store's words.
    async fn on<T>(&self, doing: &'static str, work: impl AsyncFnOnce(&mut Client) -> Work<T>) -> Result<T> {
        self.attempt(work).await.map_err(|fault| fault.into_store(doing))
    }

    /// Runs `work` on a connection. A database that does not answer is no reason to wait for ever: the connection is
    /// given up, and what was asked may or may not have been done, as when it is lost.
    async fn attempt<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Work<T>) -> Work<T> {
        let mut client = self.pool.get().await?;
        match tokio::time::timeout(self.patience, work(&mut client)).await {
            Ok(done) => done,
            Err(_) => {
                drop(Object::take(client));
                Err(Fault::Silent(self.patience))
            }
        }
    }

    /// The rows of sources by name; unknown ones are left out.
    async fn source_ids(&self, client: &Client, names: &[&str]) -> Work<Vec<i32>> {
        let known =
            |cache: &HashMap<String, i32>| names.iter().map(|name| cache.get(*name).copied()).collect();
        let ids: Option<Vec<i32>> = known(&self.sources.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(ids) = ids {
            return Ok(ids);
        }
        let found = all(client, "SELECT name, id FROM sources WHERE name = ANY ($1)", &[&names]).await?;
        let mut cache = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for row in found {
            cache.insert(row.try_get(0)?, row.try_get(1)?);
        }
        Ok(names.iter().filter_map(|name| cache.get(*name).copied()).collect())
    }
}

/// Refuses a database whose encoding cannot hold every text that upstreams send.
async fn must_hold_any_text(client: &tokio_postgres::Client, doing: &'static str) -> Work<()> {
    let encoding = client.query_one("SHOW server_encoding", &[]).await?;
    let encoding: &str = encoding.try_get(0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let message = format!("the database's encoding is {encoding}: make one with ENCODING 'UTF8'");
    Err(Fault::Store(StoreError::Database { doing, message }))
}

/// A connection for one long piece of work: it is allowed to take its time.
pub(crate) async fn session(url: &str) -> Result<tokio_postgres::Client> {
    let address = Address::parse(url)?;
    let connected = address.config.connect(address.tls.clone()).await;
    let (client, connection) = connected.map_err(|error| StoreError::Database {
        doing: "open the database",
        message: format!("{}: {}", address.shown, fault::say(&error)),
    })?;
    tokio::spawn(async move {
        // Whoever uses the connection is told by its own call.
        let _ = connection.await;
    });
    let doing = "open the database";
    must_hold_any_text(&client, doing).await.map_err(|fault| fault.into_store(doing))?;
    Ok(client)
}

/// Everything that an empty database lacks.
pub(crate) fn whole_schema() -> String {
    migrate::script(0, migrate::STEPS)
}

/// Runs a statement that stays prepared and answers its rows.
async fn all(client: &Client, sql: &str, parameters: &[Parameter<'_>]) -> Work<Vec<Row>> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, parameters).await?)
}

/// Runs a statement that stays prepared and answers its only row.
async fn one(client: &Client, sql: &str, parameters: &[Parameter<'_>]) -> Work<Row> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query_one(&statement, parameters).await?)
}
