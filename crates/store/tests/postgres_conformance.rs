//! PostgreSQL passes the suite that every backend passes.

use std::sync::Arc;

use async_trait::async_trait;
use stakeout_store::Store;
use stakeout_store::conformance::Backend;
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use tokio::sync::OnceCell;

struct OwnDatabase {
    server: &'static PostgresServer,
    url: OnceCell<String>,
}

impl OwnDatabase {
    fn new() -> Option<OwnDatabase> {
        PostgresServer::shared().map(|server| OwnDatabase { server, url: OnceCell::new() })
    }
}

#[async_trait]
impl Backend for OwnDatabase {
    async fn open(&self) -> Arc<dyn Store> {
        let url = self.url.get_or_init(|| self.server.create()).await;
        // The stories have their own time, and their node is always the same.
        let options =
            PgOptions { clock: LeaseClock::Caller, node: Some("node-1".into()), ..PgOptions::default() };
        Arc::new(PgStore::open(url, options).await.expect("opens"))
    }
    fn survives_restart(&self) -> bool {
        true
    }
    fn rows_written(&self) -> Option<u64> {
        None
    }
}

stakeout_store::conformance_tests!(match OwnDatabase::new() {
    Some(database) => database,
    None => return,
});
