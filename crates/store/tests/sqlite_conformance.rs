//! SQLite passes the suite that every backend passes: on disk and in memory.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use stakeout_store::Store;
use stakeout_store::conformance::Backend;
use stakeout_store::sqlite::{Counters, OpenOptions, SqliteStore};
use tempfile::TempDir;

struct OnDisk {
    dir: TempDir,
    counters: Mutex<Arc<Counters>>,
}

impl OnDisk {
    fn new() -> OnDisk {
        OnDisk { dir: tempfile::tempdir().expect("a directory"), counters: Mutex::default() }
    }
}

#[async_trait]
impl Backend for OnDisk {
    async fn open(&self) -> Arc<dyn Store> {
        let store =
            SqliteStore::open(self.dir.path().join("test.db"), OpenOptions::default()).expect("opens");
        *self.counters.lock().expect("lock") = Arc::clone(store.counters());
        Arc::new(store)
    }
    fn survives_restart(&self) -> bool {
        true
    }
    fn rows_written(&self) -> Option<u64> {
        Some(self.counters.lock().expect("lock").rows_written())
    }
}

#[derive(Default)]
struct InMemory {
    counters: Mutex<Arc<Counters>>,
}

#[async_trait]
impl Backend for InMemory {
    async fn open(&self) -> Arc<dyn Store> {
        let store = SqliteStore::in_memory().expect("opens");
        *self.counters.lock().expect("lock") = Arc::clone(store.counters());
        Arc::new(store)
    }
    fn survives_restart(&self) -> bool {
        false
    }
    fn rows_written(&self) -> Option<u64> {
        Some(self.counters.lock().expect("lock").rows_written())
    }
}

mod on_disk {
    stakeout_store::conformance_tests!(super::OnDisk::new());
}

mod in_memory {
    stakeout_store::conformance_tests!(super::InMemory::default());
}
