//! Servers that are killed, frozen, overloaded, or forget scanners; answers that are lost.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::proxy::Proxy;
use common::{client, config, count, keys, metrics, put};
use kudu_client::{Cells, Client, ClientConfig, Error, Operation, ReadMode, RowBatch, Table};
use kudu_test_cluster::{Cluster, Options};

/// Inserts rows of its own until told to stop; all must be acknowledged without an error.
async fn insert_until(table: Table, lane: i64, stop: Arc<AtomicBool>) -> Vec<(i64, i64)> {
    let mut acknowledged = Vec::new();
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let rows: Vec<(i64, i64)> = (next..next + 50).map(|t| (lane, t)).collect();
        next += 50;
        let outcome = put(&table, Operation::Insert, &rows).await.unwrap();
        assert_eq!(outcome.row_errors, [], "a repeated write was applied twice");
        acknowledged.extend(rows);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    acknowledged
}

fn index_of_leader(cluster: &Cluster, leaders: &[String]) -> usize {
    cluster.tablet_server_at(&leaders[0]).unwrap()
}

/// `kill -9` of a leading tablet server and of the leading master while rows are written and read:
/// no acknowledged row is lost, none is applied twice.
#[tokio::test(flavor = "multi_thread")]
async fn leaders_are_killed_during_writes_and_scans() {
    let cluster = Cluster::start(&Options::new(3).masters(3)).unwrap();
    let client = client(&cluster);
    let leader = client.leading_master().await.unwrap();
    for address in cluster.masters() {
        let alone = Client::new(ClientConfig::new([&address]).unwrap()).connect().await;
        if address == leader {
            alone.unwrap();
        } else {
            assert!(matches!(alone, Err(Error::MastersMissing { .. })), "{alone:?}");
        }
    }
    let spec = metrics("killed").replicas(3).timeout(Duration::from_secs(60));
    let table = client.create_table(&spec).await.unwrap();
    let base: Vec<(i64, i64)> = (0..20).flat_map(|s| (0..500).map(move |t| (100 + s, t))).collect();
    put(&table, Operation::Insert, &base).await.unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = tokio::task::JoinSet::new();
    for lane in 0..3 {
        writers.spawn(insert_until(table.clone(), lane, Arc::clone(&stop)));
    }
    // A fault-tolerant scan that has begun when its servers go away.
    let scan = table.scan().columns(["series", "time"]).batch_bytes(2000);
    let scan = scan.read_mode(ReadMode::Snapshot(Some(client.last_timestamp() + 1)));
    let mut scanner = scan.fault_tolerant().open().unwrap();
    let mut scanned = Vec::new();
    let first = scanner.next().await.unwrap().unwrap();
    scanned.extend(first.column(0).i64s().zip(first.column(1).i64s()));

    tokio::time::sleep(Duration::from_millis(300)).await;
    let victim = index_of_leader(&cluster, &table.tablet_leaders().await.unwrap());
    cluster.tablet_server(victim).kill();
    let mut rest = 0;
    while let Some(batch) = scanner.next().await.unwrap() {
        scanned.extend(batch.column(0).i64s().zip(batch.column(1).i64s()));
        rest += 1;
    }
    assert!(rest > 5, "the scan was to go on after the kill");
    let in_base = scanned.iter().filter(|key| key.0 >= 100).count();
    assert_eq!(in_base, base.len(), "each row once");
    scanned.sort_unstable();
    scanned.dedup();
    assert_eq!(scanned.iter().filter(|key| key.0 >= 100).count(), base.len());
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.tablet_server(victim).restart(&[]).unwrap();

    let master = client.leading_master().await.unwrap();
    let master = cluster.master_at(&master).unwrap();
    cluster.master(master).kill();
    let found = Client::new(config(&cluster)).open_table("killed").await.unwrap();
    assert_eq!(found.id(), table.id());
    let created = client.create_table(&metrics("after").replicas(1)).await.unwrap();
    put(&created, Operation::Insert, &[(1, 1)]).await.unwrap();
    cluster.master(master).restart(&[]).unwrap();

    stop.store(true, Ordering::Relaxed);
    let mut wanted: Vec<(i64, i64)> = writers.join_all().await.concat();
    assert!(!wanted.is_empty());
    wanted.extend(&base);
    wanted.sort_unstable();
    let got = keys(table.scan()).await.unwrap();
    assert_eq!(got.len(), wanted.len());
    assert_eq!(got, wanted);
    cluster.wait_until_complete().unwrap();
    let masters = cluster.master_list();
    let checked = retried(|| cluster.cli(&["cluster", "ksck", &masters, "-tables=killed"])).await;
    assert!(checked.contains("OK"), "{checked}");
}

/// Copies that were killed need a moment to catch up.
async fn retried<T>(mut attempt: impl FnMut() -> Result<T, kudu_test_cluster::Failure>) -> T {
    for _ in 0..60 {
        if let Ok(done) = attempt() {
            return done;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    attempt().unwrap()
}

/// A frozen server answers nothing: the write goes to the next leader, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_leader_is_replaced() {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    let impatient = config(&cluster).attempt_timeout(Duration::from_secs(2));
    let client = Client::new(impatient.operation_timeout(Duration::from_secs(60)));
    let table = client.create_table(&metrics("frozen").replicas(3)).await.unwrap();
    let rows: Vec<(i64, i64)> = (0..100).map(|i| (i, i)).collect();
    put(&table, Operation::Insert, &rows[..50]).await.unwrap();
    let victim = index_of_leader(&cluster, &table.tablet_leaders().await.unwrap());
    cluster.tablet_server(victim).freeze();
    let outcome = put(&table, Operation::Insert, &rows[50..]).await;
    let read = count(table.scan()).await;
    cluster.tablet_server(victim).thaw();
    assert_eq!(outcome.unwrap().row_errors, []);
    assert_eq!(read.unwrap(), 100);
}

/// Calls that are given up, by whoever made them or because their own time is over, leave nothing
/// behind that disturbs the next ones.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_given_up() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let client = client(&cluster);
    let table = client.create_table(&metrics("given_up").replicas(1)).await.unwrap();
    let rows: Vec<(i64, i64)> = (0..100).map(|i| (i, i)).collect();
    put(&table, Operation::Insert, &rows[..50]).await.unwrap();
    let mut begun = table.scan().batch_bytes(1).open().unwrap();
    begun.next().await.unwrap().unwrap();

    cluster.tablet_server(0).freeze();
    let moment = Duration::from_millis(200);
    let (counted, written, next) = tokio::join!(
        tokio::time::timeout(moment, count(table.scan())),
        tokio::time::timeout(moment, put(&table, Operation::Insert, &rows[50..])),
        // One batch is ahead, the second has to be fetched.
        tokio::time::timeout(moment, async {
            begun.next().await.unwrap();
            begun.next().await.unwrap();
        }),
    );
    assert!(counted.is_err() && written.is_err() && next.is_err(), "the server stands still");
    drop(begun);
    let (series, time) = ([7_i64], [-1_i64]);
    let one = RowBatch::new(Operation::Insert, 1)
        .column(0, Cells::Int64(&series))
        .column(1, Cells::Int64(&time));
    for limit in [Duration::ZERO, moment] {
        let late = table.write_within(&one, limit).await;
        assert!(matches!(late, Err(Error::TimedOut { limit: l, .. }) if l == limit), "{late:?}");
    }
    cluster.tablet_server(0).thaw();

    // What was given up may have been applied or not, but only once and row by row.
    let again = put(&table, Operation::Insert, &rows[50..]).await.unwrap();
    assert!(again.row_errors.iter().all(kudu_client::RowError::is_already_present));
    let again = table.write_within(&one, Duration::from_secs(60)).await.unwrap();
    assert!(again.row_errors.iter().all(kudu_client::RowError::is_already_present));
    let mut wanted = rows.clone();
    wanted.push((7, -1));
    wanted.sort_unstable();
    assert_eq!(keys(table.scan()).await.unwrap(), wanted);
    for round in 0..20 {
        let rows: Vec<(i64, i64)> = (0..10).map(|n| (n, 1000 + round * 10 + n)).collect();
        assert_eq!(put(&table, Operation::Insert, &rows).await.unwrap().row_errors, []);
    }
    assert_eq!(count(table.scan()).await.unwrap(), 301);
}

/// The server has done what it was asked for, and nobody learns of it: writes are repeated and applied
/// once, scans go on where they were.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_lost() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let server = cluster.tablet_server(0).address();
    let proxy = Proxy::start(server.clone()).await;
    let config = config(&cluster).override_address(&server, proxy.address()).unwrap();
    let client = Client::new(config);
    let table = client.create_table(&metrics("lost").replicas(1)).await.unwrap();
    let mut wanted = Vec::new();
    for round in 0..20 {
        let rows: Vec<(i64, i64)> = (0..500).map(|n| (n % 7, round * 500 + n)).collect();
        if round > 0 {
            proxy.lose_next();
        }
        // Applied a second time, rows would be refused as already present.
        assert_eq!(put(&table, Operation::Insert, &rows).await.unwrap().row_errors, []);
        assert!(round == 0 || proxy.has_lost());
        wanted.extend(rows);
    }
    wanted.sort_unstable();
    let scan = table.scan().columns(["series", "time"]).batch_bytes(1000);
    let scan = scan.read_mode(ReadMode::Snapshot(None)).fault_tolerant();
    let mut scanner = scan.open().unwrap();
    let (mut found, mut lost) = (Vec::new(), 0);
    while let Some(batch) = scanner.next().await.unwrap() {
        found.extend(batch.column(0).i64s().zip(batch.column(1).i64s()));
        if proxy.has_lost() {
            lost += 1;
            proxy.lose_next();
        }
    }
    assert!(lost > 5, "{lost}");
    found.sort_unstable();
    assert_eq!(found, wanted);
}

/// Short-lived scanners and a short queue: everything is retried, and what is lost is said.
#[tokio::test(flavor = "multi_thread")]
async fn scanners_expire_and_servers_are_busy() {
    let options = Options::new(1)
        .tablet_server_flag("--scanner_ttl_ms=4000")
        .tablet_server_flag("--scanner_gc_check_interval_us=200000")
        .tablet_server_flag("--rpc_service_queue_length=2")
        .tablet_server_flag("--rpc_num_service_threads=1")
        .flag("--rpc_default_keepalive_time_ms=3000");
    let cluster = Cluster::start(&options).unwrap();
    let client = client(&cluster);
    let table = client.create_table(&metrics("busy").replicas(1)).await.unwrap();
    // More at a time than the queue holds.
    let mut writers = tokio::task::JoinSet::new();
    for lane in 0..40 {
        let table = table.clone();
        writers.spawn(async move {
            let rows: Vec<(i64, i64)> = (0..2000).map(|t| (lane, t)).collect();
            put(&table, Operation::Insert, &rows).await.unwrap().row_errors.len()
        });
    }
    assert_eq!(writers.join_all().await.into_iter().sum::<usize>(), 0);
    assert_eq!(count(table.scan()).await.unwrap(), 80_000);

    // One batch is ahead of the consumer, so the third is the first that needs the scanner.
    let scan = || table.scan().batch_bytes(10_000);
    let mut scanner = scan().open().unwrap();
    scanner.next().await.unwrap().unwrap();
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        scanner.keep_alive().await.unwrap();
    }
    scanner.next().await.unwrap().unwrap();
    scanner.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    scanner.next().await.unwrap().unwrap();
    let expired = scanner.next().await;
    assert!(matches!(expired, Err(Error::ScanInterrupted(_))), "{expired:?}");

    let tolerant = scan().read_mode(ReadMode::Snapshot(None)).fault_tolerant();
    let mut scanner = tolerant.open().unwrap();
    let mut rows = scanner.next().await.unwrap().unwrap().rows();
    tokio::time::sleep(Duration::from_secs(6)).await;
    while let Some(batch) = scanner.next().await.unwrap() {
        rows += batch.rows();
    }
    assert_eq!(rows, 80_000);
    // Connections that the server has closed since are opened anew.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(put(&table, Operation::Insert, &[(99, 1)]).await.unwrap().row_errors, []);
}
