//! Servers that die, freeze or lose a tablet to another one while rows are written and read through
//! different handles: no acknowledged row is lost or doubled, reads are right, and all go on by
//! themselves.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::fresh;
use kudu_client::{Client, ClientConfig};
use kudu_test_cluster::{Cluster, Options};
use model::{Interrupt, Scalar, TagExpr};
use store::testing::{HOUR_NS, POLICY, Row, read_all, scan_everything, write};
use store::{MetadataKind, MetadataRequest, NameFilter, ScanSlice, Store, StoreError};
use store_kudu::{KuduOptions, KuduStore};

/// Rows of a write.
const ROWS: i64 = 10;

fn rows_at(time: i64) -> Vec<Row> {
    let row = |n| Row::new(&format!("m,h={n}"), &[("x", Scalar::Integer(time))], time);
    (0..ROWS).map(row).collect()
}

/// How far writer and reader are.
#[derive(Default)]
struct Work {
    stop: AtomicBool,
    failed: AtomicBool,
    written: AtomicI64,
    read: AtomicI64,
}

impl Work {
    /// Waits for so many more writes, and for two more reads: the second has begun since.
    fn go_on(&self, writes: i64) {
        let (written, read) =
            (self.written.load(Ordering::Relaxed), self.read.load(Ordering::Relaxed));
        while self.written.load(Ordering::Relaxed) < written + writes
            || self.read.load(Ordering::Relaxed) < read + 2
        {
            assert!(!self.failed.load(Ordering::Relaxed), "writer or reader has failed");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn write(&self, store: &dyn Store) {
        for time in 1.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let outcome = write(store, POLICY, &rows_at(time), 0).unwrap();
            assert_eq!(outcome.rows_written, ROWS as u64);
            self.written.store(time, Ordering::Relaxed);
        }
    }

    /// Every read has whatever was acknowledged before it began, once.
    fn read(&self, store: &dyn Store) {
        while !self.stop.load(Ordering::Relaxed) {
            let acknowledged = self.written.load(Ordering::Relaxed);
            let seen = read_all(store, POLICY, "m").unwrap();
            let whole = seen.iter().filter(|row| row.time_ns <= acknowledged).count();
            assert_eq!(whole as i64, (acknowledged + 1) * ROWS);
            self.read.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Tells when a thread ends by a panic.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Writes and reads while `trouble` is made.
fn while_working(cluster: &Cluster, options: &KuduOptions, trouble: impl FnOnce(&Work)) {
    let (writer, reader) = (KuduStore::open(options).unwrap(), KuduStore::open(options).unwrap());
    write(&writer, POLICY, &rows_at(0), 0).unwrap();
    let work = Work::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _alarm = Alarm(&work.failed);
            work.write(&writer);
        });
        scope.spawn(|| {
            let _alarm = Alarm(&work.failed);
            work.read(&reader);
        });
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            work.go_on(10);
            trouble(&work);
            work.go_on(10);
        }));
        work.stop.store(true, Ordering::Relaxed);
        if let Err(panic) = made {
            std::panic::resume_unwind(panic);
        }
    });
    let last = work.written.load(Ordering::Relaxed);
    let fresh = KuduStore::open(options).unwrap();
    let mut keys: Vec<(String, i64)> = read_all(&fresh, POLICY, "m")
        .unwrap()
        .into_iter()
        .map(|row| (row.key, row.time_ns))
        .collect();
    assert_eq!(keys.len() as i64, (last + 1) * ROWS);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len() as i64, (last + 1) * ROWS, "rows are there twice");
    check_by_kudu(cluster, options, (last + 1) * ROWS);
}

/// Kudu's own tool finds as many rows, and that all copies of all tables are alike: those on servers
/// that were dead need a moment to catch up.
fn check_by_kudu(cluster: &Cluster, options: &KuduOptions, rows: i64) {
    let masters = cluster.master_list();
    let filter = format!("-tables={}.*", options.prefix);
    let ksck = || cluster.cli(&["cluster", "ksck", &masters, &filter, "-checksum_scan"]);
    let mut checked = ksck();
    for _ in 0..60 {
        if checked.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
        checked = ksck();
    }
    let text = checked.unwrap();
    assert!(text.contains("OK"), "{text}");
    let tables = cluster.cli(&["table", "list", &masters, &filter]).unwrap();
    let table = tables.lines().find(|line| line.ends_with(".m")).unwrap();
    let scan = ["table", "scan", &masters, table, "-columns=series_id", "-show_values=false"];
    let scanned = cluster.cli(&scan).unwrap();
    assert!(scanned.contains(&format!("Total count {rows} ")), "{rows}: {scanned}");
}

fn ask<T>(cluster: &Cluster, question: impl AsyncFnOnce(Client) -> T) -> T {
    let config = ClientConfig::new(cluster.masters()).unwrap().user("tester", "");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(question(Client::new(config)))
}

/// Leaders of the tablets of the data table.
fn leaders(cluster: &Cluster, options: &KuduOptions) -> Vec<usize> {
    let addresses = ask(cluster, async |client| {
        let names = client.list_tables(&options.prefix).await.unwrap();
        let name = names.iter().find(|name| name.ends_with(".m")).unwrap();
        client.open_table(name).await.unwrap().tablet_leaders().await.unwrap()
    });
    addresses.iter().filter_map(|address| cluster.tablet_server_at(address)).collect()
}

#[test]
fn killed_servers_take_nothing_with_them() {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    let options = KuduOptions { replicas: Some(3), ..fresh(&cluster) };
    while_working(&cluster, &options, |work| {
        for victim in 0..2 {
            cluster.tablet_server(victim).kill();
            work.go_on(20);
            cluster.tablet_server(victim).restart(&[]).unwrap();
            cluster.wait_until_complete().unwrap();
        }
    });
}

/// The leading master dies; new series, fields and partitions wait for the next one.
#[test]
fn a_killed_master_stops_nothing() {
    let cluster = Cluster::start(&Options::new(3).masters(3)).unwrap();
    let options = KuduOptions { replicas: Some(3), ..fresh(&cluster) };
    let other = KuduStore::open(&options).unwrap();
    while_working(&cluster, &options, |work| {
        let leader = ask(&cluster, async |client| client.leading_master().await.unwrap());
        let leader = cluster.master_at(&leader).unwrap();
        cluster.master(leader).kill();
        work.go_on(20);
        let row = Row::new("n,new=series", &[("new", Scalar::Boolean(true))], 30 * HOUR_NS);
        write(&other, POLICY, std::slice::from_ref(&row), 0).unwrap();
        assert_eq!(read_all(&other, POLICY, "n").unwrap(), [row]);
        cluster.master(leader).restart(&[]).unwrap();
    });
}

/// A leading tablet server stands still for some seconds: others lead, or it is waited for.
#[test]
fn a_frozen_server_is_left_or_waited_for() {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    let options = KuduOptions { replicas: Some(3), ..fresh(&cluster) };
    while_working(&cluster, &options, |work| {
        let victim = leaders(&cluster, &options)[0];
        cluster.tablet_server(victim).freeze();
        std::thread::sleep(Duration::from_secs(4));
        cluster.tablet_server(victim).thaw();
        work.go_on(20);
    });
    // Attempts wait for a third of this: work goes on while the server stands still.
    let timeout = Duration::from_secs(9);
    let options = KuduOptions { replicas: Some(3), timeout, ..fresh(&cluster) };
    while_working(&cluster, &options, |work| {
        let victim = leaders(&cluster, &options)[0];
        cluster.tablet_server(victim).freeze();
        work.go_on(20);
        cluster.tablet_server(victim).thaw();
    });
}

/// Queries end when they are to, whatever they wait for.
#[test]
fn queries_end_in_time_while_the_cluster_stands_still() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let store = KuduStore::open(&fresh(&cluster)).unwrap();
    // More than the store asks for ahead: what has come before the cluster stands still must not be all.
    const PART_ROWS: i64 = 60_000;
    for part in 0..8 {
        let rows = part * PART_ROWS..(part + 1) * PART_ROWS;
        let rows: Vec<Row> =
            rows.map(|n| Row::new("m,h=1", &[("x", Scalar::Integer(n))], n)).collect();
        write(&store, POLICY, &rows, 0).unwrap();
    }
    let request = |budget_ms: u64| {
        let mut request = scan_everything(&store, POLICY, "m").unwrap();
        let deadline = Instant::now() + Duration::from_millis(budget_ms);
        request.context.interrupt = Interrupt::with_deadline(deadline);
        request
    };
    let late = |what: Result<(), StoreError>| {
        assert!(matches!(what, Err(StoreError::Interrupted(_))), "{what:?}");
    };
    let (mut short, running) = (request(0), request(3000));
    let scan = store.scan(&running).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    cursor.next().unwrap();
    cluster.tablet_server(0).freeze();
    late(loop {
        match cursor.next() {
            Ok(Some(_)) => {}
            end => break end.map(drop),
        }
    });
    let mut soon = || {
        let deadline = Instant::now() + Duration::from_millis(300);
        short.context.interrupt = Interrupt::with_deadline(deadline);
        short.clone()
    };
    late(store.scan(&soon()).map(drop));
    let interrupt = soon().context.interrupt;
    late(store.schema(POLICY.database, "m", &interrupt).map(drop));
    let names = MetadataRequest {
        database: POLICY.database,
        kind: MetadataKind::Series,
        measurements: NameFilter::All,
        series: TagExpr::True,
        facts_max: None,
        context: soon().context,
    };
    late(store.metadata(&names).map(drop));
    cluster.tablet_server(0).thaw();
    assert_eq!(read_all(&store, POLICY, "m").unwrap().len() as i64, 8 * PART_ROWS);
}

/// All tablets of the data go to the other server, one after another.
#[test]
fn moved_tablets_are_found() {
    let cluster = Cluster::start(&Options::new(2)).unwrap();
    let options = fresh(&cluster);
    let masters = cluster.master_list();
    while_working(&cluster, &options, |work| {
        let listed = cluster.cli(&["tserver", "list", &masters, "-columns=uuid"]).unwrap();
        let servers: Vec<&str> =
            listed.lines().map(str::trim).filter(|line| line.len() == 32).collect();
        let filter = format!("-tables={}.db*", options.prefix);
        let all = cluster.cli(&["table", "list", &masters, "-list_tablets", &filter]).unwrap();
        let mut moved = 0;
        let mut tablet = "";
        for line in all.lines() {
            let mut words = line.split_whitespace();
            match (words.next(), words.next()) {
                (Some("T"), Some(id)) => tablet = id,
                (Some("L"), Some(from)) => {
                    let to = servers.iter().find(|server| **server != from).unwrap();
                    let change = ["tablet", "change_config", "move_replica", &masters, tablet];
                    cluster.cli(&[&change[..], &[from, to]].concat()).unwrap();
                    work.go_on(5);
                    moved += 1;
                }
                _ => {}
            }
        }
        assert!(moved > 0, "{all}");
    });
}

/// Writes of several handles that wait half a second only; gives the rows that were acknowledged and
/// why others were not.
fn impatient(options: &KuduOptions) -> (Vec<i64>, Vec<String>) {
    let options = KuduOptions { timeout: Duration::from_millis(500), ..options.clone() };
    let store = KuduStore::open(&options).unwrap();
    let (acknowledged, refused) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (store, acknowledged, refused) = (&store, &acknowledged, &refused);
            scope.spawn(move || {
                for time in (0..10).map(|n| writer * 10 + n) {
                    let row = Row::new("n,h=1", &[("x", Scalar::Integer(time))], time);
                    match write(store, POLICY, &[row], 0) {
                        Ok(_) => acknowledged.lock().unwrap().push(time),
                        Err(StoreError::Overloaded { reason, .. }) => {
                            refused.lock().unwrap().push(reason);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    (acknowledged.into_inner().unwrap(), refused.into_inner().unwrap())
}

/// A server that takes ten writes a second for each tablet: writes take longer, or are refused with the
/// advice to come back; what is acknowledged is there once.
#[test]
fn throttled_writes_are_not_lost() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let options = fresh(&cluster);
    let store = KuduStore::open(&options).unwrap();
    let first = Row::new("n,h=1", &[("x", Scalar::Integer(-1))], -1);
    write(&store, POLICY, &[first], 0).unwrap();
    while_working(&cluster, &options, |work| {
        cluster.tablet_server(0).restart(&["--tablet_throttler_rpc_per_sec=10"]).unwrap();
        cluster.wait_until_complete().unwrap();
        work.go_on(30);
        let (acknowledged, refused) = impatient(&options);
        assert!(refused.iter().any(|reason| reason.contains("throttled")), "{refused:?}");
        let rows = read_all(&store, POLICY, "n").unwrap();
        let times: Vec<i64> = rows.iter().map(|row| row.time_ns).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        assert!(acknowledged.iter().all(|time| times.contains(time)));
        cluster.tablet_server(0).restart(&[]).unwrap();
        cluster.wait_until_complete().unwrap();
    });
}
