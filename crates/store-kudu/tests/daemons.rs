//! Several daemons on one cluster: they never disagree.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use common::fresh;
use kudu_client::{Cells, Operation, RowBatch};
use kudu_test_cluster::{Cluster, Options};
use model::{FieldType, Interrupt, Scalar, TagExpr, TimeRange};
use store::testing::{HOUR_NS, POLICY, Row, names, read_all, scan_everything, unlimited, write};
use store::{
    DeleteRequest, DeleteTarget, MetadataKind, MetadataRequest, NameFilter, RejectReason, ScanItem,
    ScanSlice, Store, StoreError, SwapOutcome,
};
use store_kudu::KuduStore;

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(&Options::new(2)).unwrap())
}

/// Handles that share tables but nothing in memory, as daemons do.
fn daemons<const N: usize>() -> [KuduStore; N] {
    let options = fresh(cluster());
    std::array::from_fn(|_| KuduStore::open(&options).unwrap())
}

fn integer(key: &str, field: &str, value: i64, time_ns: i64) -> Row {
    Row::new(key, &[(field, Scalar::Integer(value))], time_ns)
}

fn series(store: &dyn Store) -> Vec<Vec<String>> {
    let request = MetadataRequest {
        database: POLICY.database,
        kind: MetadataKind::Series,
        measurements: NameFilter::All,
        series: TagExpr::True,
        facts_max: None,
        context: unlimited(),
    };
    names(store, &request).unwrap()
}

/// All meet the same new measurement, series, fields and ranges at once.
#[test]
fn they_agree_on_everything_new() {
    let daemons = daemons::<4>();
    let rows_of = |daemon: i64, round: i64| -> Vec<Row> {
        (0..20)
            .map(|n| {
                let key = format!("m{},h={n}", round % 2);
                integer(&key, &format!("f{daemon}"), round, (round + n % 3) * HOUR_NS / 2)
            })
            .collect()
    };
    std::thread::scope(|scope| {
        for (daemon, store) in (0..).zip(&daemons) {
            scope.spawn(move || {
                for round in 0..6 {
                    let outcome = write(store, POLICY, &rows_of(daemon, round), 0).unwrap();
                    assert_eq!(outcome.rows_written, 20, "{:?}", outcome.rejected);
                }
            });
        }
    });
    let [first, others @ ..] = &daemons;
    assert_eq!(series(first).len(), 40);
    for measurement in ["m0", "m1"] {
        let rows = read_all(first, POLICY, measurement).unwrap();
        // Every row has a field of each daemon: they wrote to the same series.
        assert!(rows.iter().all(|row| row.fields.len() == 4), "{rows:?}");
        let keys: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys.len(), 20);
        for other in others {
            assert_eq!(read_all(other, POLICY, measurement).unwrap(), rows);
            let schema = |store: &dyn Store| {
                store.schema(POLICY.database, measurement, &Interrupt::new()).unwrap()
            };
            assert_eq!(schema(other), schema(first));
        }
    }
}

/// Few new series here, many there, at once: blocks of ids of different sizes do not overlap.
#[test]
fn they_give_no_id_twice() {
    let daemons = daemons::<2>();
    for round in 0..4 {
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for (store, count) in daemons.iter().zip([10, 200]) {
                let barrier = &barrier;
                scope.spawn(move || {
                    let row = |n| integer(&format!("m,round={round},of={count},n={n}"), "x", n, 0);
                    let rows: Vec<Row> = (0..count).map(row).collect();
                    barrier.wait();
                    assert_eq!(write(store, POLICY, &rows, 0).unwrap().rows_written, count as u64);
                });
            }
        });
    }
    let rows = read_all(&daemons[0], POLICY, "m").unwrap();
    assert_eq!(rows.len(), 4 * 210, "series with the same id have the same row");
}

/// The same new field with another type from each: one type holds for all.
#[test]
fn they_agree_on_types() {
    let daemons = daemons::<3>();
    for round in 0..8 {
        let values = [Scalar::Float(1.5), Scalar::Integer(1), Scalar::String("x".into())];
        let written: Vec<bool> = std::thread::scope(|scope| {
            let writers: Vec<_> = daemons
                .iter()
                .zip(values.clone())
                .map(|(store, value)| {
                    scope.spawn(move || {
                        let row = Row::new("m,h=1", &[(&format!("f{round}"), value)], 5);
                        let outcome = write(store, POLICY, &[row], 0).unwrap();
                        let conflict = outcome.rejected.iter().all(|rejected| {
                            matches!(rejected.reason, RejectReason::FieldTypeConflict { .. })
                        });
                        assert!(conflict, "{:?}", outcome.rejected);
                        outcome.rows_written == 1
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(written.iter().filter(|written| **written).count(), 1, "round {round}");
    }
    let rows = read_all(&daemons[0], POLICY, "m").unwrap();
    assert_eq!(rows[0].fields.len(), 8);
    assert_eq!(read_all(&daemons[2], POLICY, "m").unwrap(), rows);
}

/// Each counts a number in the catalog up: none is lost.
#[test]
fn they_swap_the_catalog_one_after_another() {
    let daemons = daemons::<3>();
    let rounds = 10_u64;
    std::thread::scope(|scope| {
        for store in &daemons {
            scope.spawn(move || {
                for _ in 0..rounds {
                    loop {
                        let now = store.catalog().unwrap();
                        let text = String::from_utf8(now.bytes).unwrap();
                        let next = text.trim().parse::<u64>().unwrap_or(0) + 1;
                        // Longer than a cell of a table.
                        let bytes = format!("{next}{}", " ".repeat(70_000));
                        match store.swap_catalog(now.version, bytes.as_bytes()).unwrap() {
                            SwapOutcome::Swapped(version) => {
                                assert_eq!(version, next);
                                break;
                            }
                            SwapOutcome::Conflict(other) => assert!(other.version > now.version),
                        }
                    }
                }
            });
        }
    });
    let last = daemons[0].catalog().unwrap();
    assert_eq!(last.version, 3 * rounds);
    assert!(last.bytes.starts_with((3 * rounds).to_string().as_bytes()));
}

/// One writes while the other drops: what was acknowledged after the last drop is there.
#[test]
fn drops_and_writes_at_once() {
    let [writer, dropper] = daemons::<2>();
    let drop_it = |store: &KuduStore| {
        let target = DeleteTarget::Measurement("m".into());
        store.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    };
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            for _ in 0..6 {
                drop_it(&dropper);
            }
        });
        let mut time = 0;
        while !dropping.is_finished() {
            let row = integer(&format!("m,h={}", time % 3), "x", time, time);
            assert_eq!(write(&writer, POLICY, &[row], 0).unwrap().rows_written, 1);
            time += 1;
        }
    });
    drop_it(&dropper);
    // The writer remembers the measurement that is gone; its type does not hold any more.
    let row = Row::new("m,h=1", &[("x", Scalar::Float(0.5))], 7);
    assert_eq!(write(&writer, POLICY, std::slice::from_ref(&row), 0).unwrap().rows_written, 1);
    assert_eq!(read_all(&dropper, POLICY, "m").unwrap(), [row]);
    let schema = dropper.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap();
    assert_eq!(schema.fields, [("x".into(), FieldType::Float)]);
}

/// A series whose last row one daemon deletes and another writes never hides.
#[test]
fn deletes_and_writes_at_once() {
    let [writer, deleter] = daemons::<2>();
    let delete_all = || {
        let target = DeleteTarget::Rows {
            measurements: NameFilter::All,
            series: TagExpr::True,
            time: TimeRange::ALL,
        };
        deleter.delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    };
    for round in 0..60 {
        let row = integer("m,h=1", "x", round, round);
        std::thread::scope(|scope| {
            scope.spawn(delete_all);
            write(&writer, POLICY, std::slice::from_ref(&row), 0).unwrap();
        });
        let rows = read_all(&deleter, POLICY, "m").unwrap();
        assert_eq!(series(&deleter).len(), usize::from(!rows.is_empty()), "round {round}");
        write(&writer, POLICY, std::slice::from_ref(&row), 0).unwrap();
        assert_eq!(series(&deleter).len(), 1);
        assert!(read_all(&deleter, POLICY, "m").unwrap().contains(&row));
    }
}

/// A cursor whose store is closed says so; it never ends as if it had handed out everything.
#[test]
fn a_closed_store_does_not_look_like_the_end() {
    let [store, _] = daemons::<2>();
    let rows: Vec<Row> = (0..30_000).map(|n| integer("m,h=1", "x", n, n)).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    let request = scan_everything(&store, POLICY, "m").unwrap();
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let mut seen = 0;
    let mut count = |item: Option<ScanItem>| match item {
        Some(ScanItem::Rows(batch)) => {
            seen += batch.rows;
            true
        }
        _ => false,
    };
    assert!(count(cursor.next().unwrap()));
    store.close().unwrap();
    let end = loop {
        match cursor.next() {
            Ok(item) if count(item.clone()) => {}
            end => break end,
        }
    };
    match end {
        Ok(_) => assert_eq!(seen, rows.len()),
        Err(error) => assert!(matches!(error, StoreError::Closed), "{error}"),
    }
}

/// A measurement that another daemon drops: who reads it gets all rows or an error that says why.
#[test]
fn a_measurement_dropped_while_it_is_read() {
    let [reader, dropper] = daemons::<2>();
    let rows: Vec<Row> =
        (0..60_000).map(|n| integer(&format!("m,h={}", n % 2), "x", n, n)).collect();
    write(&reader, POLICY, &rows, 0).unwrap();
    let request = scan_everything(&reader, POLICY, "m").unwrap();
    let scan = reader.scan(&request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let mut seen = 0;
    let target = DeleteTarget::Measurement("m".into());
    let drop_it = DeleteRequest { database: POLICY.database, target };
    let end = loop {
        match cursor.next() {
            Ok(Some(ScanItem::Rows(batch))) => {
                if seen == 0 {
                    dropper.delete(&drop_it).unwrap();
                }
                seen += batch.rows;
            }
            end => break end,
        }
    };
    match end {
        Ok(_) => assert_eq!(seen, rows.len()),
        Err(error) => assert!(error.to_string().contains("ask again"), "{error}"),
    }
    assert_eq!(read_all(&reader, POLICY, "m").unwrap(), []);
}

/// A daemon that died after it had dropped ranges, before it had marked the series without rows: the
/// next one that drops ranges does it.
#[test]
fn series_left_by_a_daemon_that_died_are_marked() {
    let options = fresh(cluster());
    let store = KuduStore::open(&options).unwrap();
    let at = |key, hour: i64| integer(key, "x", hour, hour * HOUR_NS);
    let rows = [at("m,h=0", 0), at("m,h=1", 1), at("m,h=2", 5), at("m,h=3", 1), at("m,h=3", 5)];
    write(&store, POLICY, &rows, 0).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let config = kudu_client::ClientConfig::new(cluster().masters()).unwrap();
        let client = kudu_client::Client::new(config.user("tester", ""));
        // What that daemon did.
        let data = client.open_table(&format!("{}.db1.rp1.m1.m", options.prefix)).await.unwrap();
        let first = data.range_partitions().await.unwrap().remove(0);
        data.alter().drop_range(first).apply().await.unwrap();
        let registry = client.open_table(&format!("{}.registry", options.prefix)).await.unwrap();
        let row = RowBatch::new(Operation::Insert, 1)
            .column(0, Cells::Int64(&[1]))
            .column(1, Cells::Int8(&[12]))
            .column(2, Cells::Slices(&[b"a token"]))
            .column(3, Cells::Int64(&[1]));
        assert_eq!(registry.write(&row).await.unwrap().row_errors, []);
    });
    assert_eq!(series(&store).len(), 4);
    assert_eq!(store.expire(POLICY.database, POLICY.id, 3 * HOUR_NS).unwrap(), 1);
    assert_eq!(series(&store), [["m", "m,h=2"], ["m", "m,h=3"]]);
    let rows = [at("m,h=1", 6), at("m,h=3", 7)];
    write(&store, POLICY, &rows, 0).unwrap();
    assert_eq!(store.expire(POLICY.database, POLICY.id, 6 * HOUR_NS).unwrap(), 1);
    assert_eq!(series(&store), [["m", "m,h=1"], ["m", "m,h=3"]]);
}

/// Tables of another layout are refused with a message that says what to do.
#[test]
fn another_layout_is_refused() {
    let options = fresh(cluster());
    drop(KuduStore::open(&options).unwrap());
    for (version, advice) in [(1, "an earlier Nyala"), (3, "a later Nyala")] {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let config = kudu_client::ClientConfig::new(cluster().masters()).unwrap();
            let client = kudu_client::Client::new(config.user("tester", ""));
            let name = format!("{}.registry", options.prefix);
            let table = client.open_table(&name).await.unwrap();
            let numbers = [version];
            let row = RowBatch::new(Operation::Upsert, 1)
                .column(0, Cells::Int64(&[0]))
                .column(1, Cells::Int8(&[0]))
                .column(2, Cells::Slices(&[b"format"]))
                .column(3, Cells::Int64(&numbers));
            assert_eq!(table.write(&row).await.unwrap().row_errors, []);
        });
        let error = KuduStore::open(&options).err().unwrap().to_string();
        assert!(error.contains(&format!("version {version}")) && error.contains(advice), "{error}");
    }
}

#[test]
fn what_kudu_cannot_hold_is_refused_row_by_row() {
    let [store] = daemons::<1>();
    let long = Row::new("m", &[("s", Scalar::String("x".repeat(65_537).into()))], 1);
    let fits = Row::new("m", &[("s", Scalar::String("x".repeat(65_536).into()))], 2);
    let outcome = write(&store, POLICY, &[long, fits.clone()], 0).unwrap();
    assert!(
        matches!(&outcome.rejected[0].reason, RejectReason::Limit(text) if text.contains("65536"))
    );
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), [fits]);
}
