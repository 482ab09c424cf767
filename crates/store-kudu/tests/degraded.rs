//! A cluster that has fewer live servers than its tables have copies, for longer than the master waits
//! for one: what is there is written and read, what is new is refused with advice.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::time::{Duration, Instant};

use common::fresh;
use kudu_client::{Client, ClientConfig};
use kudu_test_cluster::{Cluster, Options};
use model::Scalar;
use store::testing::{HOUR_NS, POLICY, Row, read_all, write};
use store::{Store, StoreError};
use store_kudu::{KuduOptions, KuduStore};

/// In the second half of a partition, when the next one is made ahead.
const LATE: i64 = HOUR_NS / 4 * 3;

fn row(key: &str, field: &str, time_ns: i64) -> Row {
    Row::new(key, &[(field, Scalar::Integer(time_ns))], time_ns)
}

/// Number of partitions of the first data table.
fn partitions(cluster: &Cluster, options: &KuduOptions) -> usize {
    let config = ClientConfig::new(cluster.masters()).unwrap().user("tester", "");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = Client::new(config);
        let table = client.open_table(&format!("{}.db1.rp1.m1.m", options.prefix)).await.unwrap();
        table.range_partitions().await.unwrap().len()
    })
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Why a write is refused that may be sent again.
fn refusal(store: &dyn Store, row: Row) -> String {
    match write(store, POLICY, &[row], 0) {
        Err(StoreError::Overloaded { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_there_goes_on_with_a_dead_server() {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    // The cluster's masters wait for five seconds.
    let heartbeat_age_max = Duration::from_secs(4);
    let options = KuduOptions { replicas: Some(3), heartbeat_age_max, ..fresh(&cluster) };
    let store = KuduStore::open(&options).unwrap();
    write(&store, POLICY, &[row("m,h=1", "x", 0)], 0).unwrap();
    assert_eq!(partitions(&cluster, &options), 1);
    cluster.tablet_server(1).kill();
    // Until the master counts the server as dead, it makes tables with two copies of three.
    let mut tried = 0;
    wait_for("the master counts the server as dead", || {
        tried += 1;
        write(&store, POLICY, &[row(&format!("new{tried}"), "x", 0)], 0).is_err()
    });

    // Also where rows ask for the range ahead, and for a new series and column.
    for (key, field) in [("m,h=1", "x"), ("m,h=2", "y")] {
        write(&store, POLICY, &[row(key, field, LATE)], LATE).unwrap();
    }
    let rows = read_all(&store, POLICY, "m").unwrap();
    assert_eq!(rows, [row("m,h=1", "x", 0), row("m,h=1", "x", LATE), row("m,h=2", "y", LATE)]);
    let refused = refusal(&store, row("n", "x", 0));
    assert!(refused.contains("nyala cluster status"), "{refused}");
    let refused = refusal(&store, row("m,h=1", "x", HOUR_NS));
    assert!(refused.contains("nyala cluster status"), "{refused}");
    assert_eq!(partitions(&cluster, &options), 1);

    // Another daemon that starts now makes no table with fewer copies than there were.
    let unsaid = KuduOptions { replicas: None, ..options.clone() };
    assert_eq!(KuduStore::open(&unsaid).unwrap().replicas(), 3);

    cluster.tablet_server(1).restart(&[]).unwrap();
    cluster.wait_until_complete().unwrap();
    write(&store, POLICY, &[row("n", "x", 0)], 0).unwrap();
    // The next partition is made by whoever has not failed to a moment ago.
    let other = KuduStore::open(&options).unwrap();
    write(&other, POLICY, &[row("m,h=1", "x", LATE)], LATE).unwrap();
    wait_for("the next partition", || partitions(&cluster, &options) == 2);
}

#[test]
fn copies_need_servers() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let three = KuduOptions { replicas: Some(3), ..fresh(&cluster) };
    let refused = KuduStore::open(&three).unwrap_err().to_string();
    assert!(refused.contains("live tablet servers") && refused.contains("replicas=N"), "{refused}");
    // Nothing said: as many as there can be, and as many as the first daemon has chosen.
    let unsaid = KuduOptions { replicas: None, ..three.clone() };
    assert_eq!(KuduStore::open(&unsaid).unwrap().replicas(), 1);
    // The store's own tables are there; new ones cannot be made.
    let store = KuduStore::open(&three).unwrap();
    let refused = refusal(&store, row("m,h=1", "x", 0));
    assert!(refused.contains("replicas=N"), "{refused}");
}

#[test]
fn a_cluster_without_tablet_servers_is_refused() {
    let cluster = Cluster::start(&Options::new(0)).unwrap();
    for replicas in [None, Some(1)] {
        let options = KuduOptions { replicas, ..fresh(&cluster) };
        let refused = KuduStore::open(&options).unwrap_err().to_string();
        assert!(refused.contains("live tablet server"), "{refused}");
    }
}

/// One that lacks an operation, as versions before 1.15 do.
#[test]
fn a_cluster_that_is_too_old_is_refused() {
    let lacking = Options::new(1).master_flag("--master_support_ignore_operations=false");
    let cluster = Cluster::start(&lacking).unwrap();
    let refused = KuduStore::open(&fresh(&cluster)).unwrap_err().to_string();
    assert!(refused.contains("too old") && refused.contains("1.15"), "{refused}");
    let config = ClientConfig::new(cluster.masters()).unwrap().user("tester", "");
    let made = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { Client::new(config).list_tables("").await.unwrap() });
    assert!(made.is_empty(), "{made:?}");
}
