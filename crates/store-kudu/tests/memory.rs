//! Memory is bounded by configuration: what is many is dealt with part by part, or refused by name.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use common::{fresh, one_server};
use kudu_client::{Client, ClientConfig};
use model::{Budget, FieldType, Interrupt, Scalar, TagExpr, TimeRange};
use store::testing::{
    HOUR_NS, POLICY, Row, matching, names, read, read_all, scan_everything, unlimited, write,
};
use store::{
    DeleteRequest, DeleteTarget, MetadataKind, MetadataRequest, NameFilter, ScanContext,
    ScanRequest, Store, StoreError,
};
use store_kudu::{KuduOptions, KuduStore};

/// Room for 256 series at a time.
const LITTLE: usize = 256 << 10;
const SERIES: i64 = 9000;

fn little_memory() -> KuduOptions {
    KuduOptions { work_bytes: LITTLE, ..fresh(one_server()) }
}

fn delete(store: &dyn Store, series: TagExpr, time: TimeRange) -> Result<(), StoreError> {
    let measurements = NameFilter::All;
    let target = DeleteTarget::Rows { measurements, series, time };
    store.delete(&DeleteRequest { database: POLICY.database, target })
}

fn limited(bytes: usize) -> ScanContext {
    let budget = Budget::new("query-memory-limit", bytes);
    ScanContext { budget, interrupt: Interrupt::new() }
}

fn listing(context: ScanContext) -> MetadataRequest {
    MetadataRequest {
        database: POLICY.database,
        kind: MetadataKind::Series,
        measurements: NameFilter::All,
        series: TagExpr::True,
        facts_max: None,
        context,
    }
}

fn is(tag: &str, value: &str) -> TagExpr {
    TagExpr::Equals(tag.into(), value.into())
}

/// A measurement of which nearly all series are gone, more than a query has memory for.
#[test]
fn series_without_rows_cost_no_memory() {
    let options = little_memory();
    let [store, other] = [(); 2].map(|()| KuduStore::open(&options).unwrap());
    let kind = |n: i64| if n % 1000 == 0 { "kept" } else { "gone" };
    let row = |n: i64| {
        let key = format!("m,host={n},kind={}", kind(n));
        Row::new(&key, &[("x", Scalar::Integer(n))], n * HOUR_NS / SERIES)
    };
    let rows: Vec<Row> = (0..SERIES).map(row).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    delete(&store, is("kind", "gone"), TimeRange::ALL).unwrap();
    let kept: Vec<Row> = (0..SERIES).filter(|n| n % 1000 == 0).map(row).collect();
    for store in [&store, &other] {
        let mut found = read_all(store, POLICY, "m").unwrap();
        found.sort_by_key(|row| row.time_ns);
        assert_eq!(found, kept);
        assert_eq!(names(store, &listing(unlimited())).unwrap().len(), kept.len());
        let schema = store.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap();
        let tags: Vec<&str> = schema.tag_keys.iter().map(|tag| &**tag).collect();
        assert_eq!(tags, ["host", "kind"]);
        for (host, found) in [("5000", 1), ("5001", 0)] {
            let everything = scan_everything(store, POLICY, "m").unwrap();
            let request =
                ScanRequest { series: is("host", host), context: limited(80 << 10), ..everything };
            assert_eq!(read(store, &request).unwrap().len(), found, "{host}");
        }
        // Here all marks have to be known at once.
        let error = names(store, &listing(limited(50 << 10))).unwrap_err().to_string();
        assert!(error.contains("query-memory-limit"), "{error}");
    }
    // One of them comes back.
    write(&other, POLICY, &[row(5001)], 0).unwrap();
    assert_eq!(read_all(&store, POLICY, "m").unwrap().len(), kept.len() + 1);
    let measurement = DeleteTarget::Measurement("m".into());
    store.delete(&DeleteRequest { database: POLICY.database, target: measurement }).unwrap();
    assert!(read_all(&other, POLICY, "m").unwrap().is_empty());
}

/// Half of so many series are gone that their marks are more than there is memory for: tag keys, which
/// every query asks for, are learned from a few series.
#[test]
fn tag_keys_are_learned_from_a_few_series() {
    let options = little_memory();
    let store = KuduStore::open(&options).unwrap();
    let row = |n: i64| {
        let key = format!("m,half={},host={n}", n % 2);
        Row::new(&key, &[("x", Scalar::Integer(n))], n)
    };
    let rows: Vec<Row> = (0..SERIES).map(row).collect();
    write(&store, POLICY, &rows, 0).unwrap();
    delete(&store, is("half", "1"), TimeRange::ALL).unwrap();
    let kinds = |kind| MetadataRequest { kind, ..listing(limited(50 << 10)) };
    assert_eq!(
        names(&store, &kinds(MetadataKind::TagKeys)).unwrap(),
        [["m", "half"], ["m", "host"]]
    );
    let error = names(&store, &kinds(MetadataKind::SeriesCounts)).unwrap_err().to_string();
    assert!(error.contains("query-memory-limit"), "{error}");
    let schema = store.schema(POLICY.database, "m", &Interrupt::new()).unwrap().unwrap();
    assert_eq!(schema.tag_keys.len(), 2);
}

/// Few series of a measurement with many rows are looked at one by one.
#[test]
fn few_series_of_a_large_table() {
    const ROWS: i64 = 280_000;
    let options = fresh(one_server());
    let row = |host: &str, time_ns: i64| {
        Row::new(&format!("m,host={host}"), &[("x", Scalar::Integer(1))], time_ns)
    };
    let store = KuduStore::open(&options).unwrap();
    let rows: Vec<Row> = (0..ROWS).map(|n| row("long", n)).collect();
    for some in rows.chunks(20_000) {
        write(&store, POLICY, some, 0).unwrap();
    }
    let few =
        [row("a", 1), row("b", 1), row("b", 2), row("c", 2), row("c", HOUR_NS), row("d", HOUR_NS)];
    write(&store, POLICY, &few, 0).unwrap();
    wait_for_rows(&options, ROWS + 6);
    // Numbers of rows are remembered: a store that has not asked before.
    let store = KuduStore::open(&options).unwrap();
    let series = || {
        let found = names(&store, &listing(unlimited())).unwrap();
        found.into_iter().map(|row| row[1].to_string()).collect::<Vec<_>>()
    };
    delete(&store, TagExpr::True, TimeRange::new(1, 1)).unwrap();
    assert_eq!(series(), ["m,host=b", "m,host=c", "m,host=d", "m,host=long"]);
    assert_eq!(store.expire(POLICY.database, POLICY.id, HOUR_NS).unwrap(), 1);
    assert_eq!(series(), ["m,host=c", "m,host=d"]);
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), [row("c", HOUR_NS), row("d", HOUR_NS)]);
}

/// Waits until the master has been told of so many rows, which takes a heartbeat or two.
fn wait_for_rows(options: &KuduOptions, rows: i64) {
    let config = ClientConfig::new(one_server().masters()).unwrap().user("tester", "");
    let table = format!("{}.db1.rp1.m1.m", options.prefix);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = Client::new(config);
        while client.table_statistics(&table).await.unwrap().live_rows != Some(rows) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
}

/// Rows named one by one in so many series that reading them takes more memory than there is.
#[test]
fn deletes_by_fields_have_a_limit() {
    let options = little_memory();
    let key = |n: i64| format!("m,host={n}");
    let rows: Vec<Row> =
        (0..3000).map(|n| Row::new(&key(n), &[("x", Scalar::Integer(n))], n)).collect();
    let little = KuduStore::open(&options).unwrap();
    write(&little, POLICY, &rows, 0).unwrap();
    let fields = [("x".into(), FieldType::Integer)];
    // One has changed since.
    write(&little, POLICY, &[Row::new(&key(7), &[("x", Scalar::Integer(-7))], 7)], 0).unwrap();
    let target = matching(POLICY, "m", &fields, &rows[..2500]);
    let request = DeleteRequest { database: POLICY.database, target };
    let error = little.delete(&request).unwrap_err().to_string();
    assert!(error.contains("memory-limit"), "{error}");
    assert_eq!(read_all(&little, POLICY, "m").unwrap().len(), rows.len());
    let roomy = KuduStore::open(&KuduOptions { work_bytes: 64 << 20, ..options }).unwrap();
    roomy.delete(&request).unwrap();
    assert_eq!(read_all(&little, POLICY, "m").unwrap().len(), 501);
}

/// More ranges of time than are merged: rows are gathered as far as there is memory, whatever was
/// thought of their number, and come in the same order with less.
#[test]
fn series_over_many_ranges() {
    const RANGES: i64 = 40;
    let store = KuduStore::open(&fresh(one_server())).unwrap();
    let row = |n: i64, at: i64| {
        let text = format!("{at}");
        let fields = [("x", Scalar::Integer(at)), ("y", Scalar::String(text.as_str().into()))];
        let fields = if at % 3 == 0 { &fields[..1] } else { &fields[..] };
        Row::new(&format!("m,host={n:02}"), fields, at * HOUR_NS / 12)
    };
    let of_series = |n: i64| (0..12 * RANGES).map(move |at| row(n, at));
    let rows: Vec<Row> = (0..30).flat_map(of_series).collect();
    for some in rows.chunks(4000) {
        write(&store, POLICY, some, 0).unwrap();
    }
    let everything = scan_everything(&store, POLICY, "m").unwrap();
    // Room for all, for fewer than there are, and for none.
    for context in [unlimited(), limited(5 << 19), limited(1 << 20)] {
        let request = ScanRequest { context, ..everything.clone() };
        let found = read(&store, &request).unwrap();
        assert!(found == rows, "{} of {} rows, or in another order", found.len(), rows.len());
    }
    // Some of them, and a part of the time.
    let time = TimeRange::new(5 * HOUR_NS / 2, 35 * HOUR_NS);
    let some = TagExpr::In(
        "host".into(),
        (0..30).step_by(2).map(|n| format!("{n:02}").as_str().into()).collect(),
    );
    let request = ScanRequest { series: some, time, ..everything };
    let wanted: Vec<Row> = rows
        .into_iter()
        .filter(|row| time.contains(row.time_ns) && row.key.as_bytes()[8] % 2 == 0)
        .collect();
    assert_eq!(read(&store, &request).unwrap(), wanted);
}
