//! What the tests share: stores with tables of their own on one cluster.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kudu_test_cluster::{Cluster, Options};
use store::Store;
use store::conformance::TestStore;
use store_kudu::{KuduOptions, KuduStore};

/// A cluster of one tablet server that all tests of a binary share.
pub(crate) fn one_server() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&Options::new(1)).unwrap())
}

/// Options for a store with tables that nobody else has.
pub(crate) fn fresh(cluster: &Cluster) -> KuduOptions {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut options = KuduOptions::new(cluster.masters());
    options.prefix = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
    options.replicas = Some(1);
    options.buckets = 2;
    options.user = Some("tester".to_owned());
    // Long, so that a machine with much else to do passes, too.
    options.timeout = Duration::from_secs(120);
    options
}

/// A store under the conformance suite.
pub(crate) struct OnCluster {
    options: KuduOptions,
    store: KuduStore,
    masters: String,
}

impl OnCluster {
    /// Of a measurement's fields, so many have columns of their own.
    pub(crate) fn new(cluster: &Cluster, columns: u32) -> Self {
        Self::with(KuduOptions { columns, ..fresh(cluster) }, cluster)
    }

    pub(crate) fn with(options: KuduOptions, cluster: &Cluster) -> Self {
        let store = KuduStore::open(&options).unwrap();
        Self { options, store, masters: cluster.master_list() }
    }
}

impl TestStore for OnCluster {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn reopen(&mut self) {
        // A closed store may be opened again.
        let _ = self.store.close();
        self.store = KuduStore::open(&self.options).unwrap();
    }

    /// A second daemon would see the same: everything remembered goes.
    fn maintain(&mut self) {
        self.reopen();
    }
}

impl Drop for OnCluster {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let prefix = format!("{}.", self.options.prefix);
        runtime.block_on(async {
            let config = kudu_client::ClientConfig::new(self.masters.split(',')).unwrap();
            let client = kudu_client::Client::new(config.user("tester", ""));
            for table in client.list_tables(&prefix).await.unwrap() {
                if !table.starts_with(&prefix) {
                    continue;
                }
                match client.delete_table(&table).await {
                    // The end of a scan drops tables, too.
                    Ok(()) | Err(kudu_client::Error::TableNotFound { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
}
