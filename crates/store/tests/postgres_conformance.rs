//! PostgreSQL passes the suite that every backend passes.

use std::sync::Arc;

use async_trait::async_trait;
use stakeout_store::Store;
use stakeout_store::conformance::Backend;
use stakeout_store::conformance::server::PostgresServer;
use stakeout_store::postgres::{LeaseClock, PgOptions, PgStore};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

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
        let store = PgStore::open(url, options).await.expect("opens");
        raw(url).await.batch_execute(COUNT_ROWS).await.expect("counted");
        Arc::new(store)
    }
    fn survives_restart(&self) -> bool {
        true
    }
    fn rows_written(&self) -> Option<u64> {
        let url = self.url.get().cloned()?;
        // Whoever asks is in the middle of something else: the answer is fetched elsewhere.
        let asked = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let row = raw(&url).await.query_one(ROWS, &[]).await.expect("a count");
                row.get::<_, i64>(0) as u64
            })
        });
        Some(asked.join().expect("an answer"))
    }
}

async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

/// The server's own statistics lag behind; a sequence counts at once, also what is undone.
const COUNT_ROWS: &str = "
    CREATE SEQUENCE IF NOT EXISTS rows_written;
    CREATE OR REPLACE FUNCTION count_row() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM nextval(''rows_written''); RETURN NULL; END';
    DO $$ DECLARE v_table record; BEGIN
        FOR v_table IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
            AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'count_row')
        LOOP
            EXECUTE format('CREATE TRIGGER count_row AFTER INSERT OR UPDATE OR DELETE ON %I
                FOR EACH ROW EXECUTE FUNCTION count_row()', v_table.relname);
        END LOOP;
    END $$;";

const ROWS: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM rows_written";

stakeout_store::conformance_tests!(match OwnDatabase::new() {
    Some(database) => database,
    None => return,
});
