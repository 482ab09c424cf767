//! A tablet server is killed while rows are written to three copies: none acknowledged is lost.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use common::fresh;
use kudu_test_cluster::{Cluster, Options};
use model::{DatabaseId, PolicyId, Scalar};
use store::testing::{Row, read_all, write};
use store::{Policy, Store};
use store_kudu::{KuduOptions, KuduStore};

const HOUR: i64 = 3_600_000_000_000;
const POLICY: Policy =
    Policy { database: DatabaseId(1), id: PolicyId(1), partition_ns: HOUR, retention_ns: None };

fn rows_at(time: i64) -> Vec<Row> {
    let row = |n| Row::new(&format!("m,h={n}"), &[("x", Scalar::Integer(time))], time);
    (0..10).map(row).collect()
}

#[test]
fn a_killed_server_takes_nothing_with_it() {
    let cluster = Cluster::start(&Options::new(3)).unwrap();
    let options = KuduOptions { replicas: Some(3), ..fresh(&cluster) };
    let (store, other) = (KuduStore::open(&options).unwrap(), KuduStore::open(&options).unwrap());
    write(&store, POLICY, &rows_at(0), 0).unwrap();
    let (stop, written) = (AtomicBool::new(false), AtomicI64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for time in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let outcome = write(&store, POLICY, &rows_at(time), 0).unwrap();
                assert_eq!(outcome.rows_written, 10);
                written.store(time, Ordering::Relaxed);
            }
        });
        let reached = |count: i64| {
            while written.load(Ordering::Relaxed) < count {
                assert!(!writer.is_finished(), "the writer has failed");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        for victim in 0..2 {
            let before = written.load(Ordering::Relaxed);
            reached(before + 10);
            cluster.tablet_server(victim).kill();
            let before = written.load(Ordering::Relaxed);
            // Writing goes on without it, and others see what was acknowledged.
            reached(before + 20);
            let acknowledged = written.load(Ordering::Relaxed);
            let seen = read_all(&other, POLICY, "m").unwrap();
            let whole = seen.iter().filter(|row| row.time_ns <= acknowledged).count();
            assert_eq!(whole as i64, (acknowledged + 1) * 10);
            cluster.tablet_server(victim).restart(&[]).unwrap();
            cluster.wait_until_complete().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let last = written.load(Ordering::Relaxed);
    let rows = read_all(&other, POLICY, "m").unwrap();
    assert_eq!(rows.len() as i64, (last + 1) * 10);
    store.close().unwrap();
}
