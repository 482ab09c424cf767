//! Summaries in place of rows, over data dense enough to have them: sums per window must be those of
//! the rows, whatever mixture of summaries and rows the store hands out.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use model::{FieldType, Scalar, TagExpr, TimeRange, Values};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, Row, unlimited, write};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store, SummaryParts, TimeOrder, Windows};
use store_local::LocalStore;

mod common;

const SECOND: i64 = 1_000_000_000;

const POLICY: Policy = Policy { partition_ns: 24 * testing::HOUR_NS, ..testing::POLICY };

fn open() -> LocalStore {
    common::open(&SimDisk::new(1, FaultConfig::default()), 32 << 20)
}

/// Rows each second; field `a` always, `b` on even seconds.
fn load(store: &LocalStore, series: i64, seconds: std::ops::Range<i64>) {
    let key = format!("m,s={series}");
    let rows: Vec<Row> = seconds
        .map(|t| {
            let a = ("a", Scalar::Integer(t * 7 % 1000 - series));
            let b = ("b", Scalar::Float((t % 100) as f64 / 4.0));
            let fields = if t % 2 == 0 { vec![a, b] } else { vec![a] };
            Row::new(&key, &fields, t * SECOND)
        })
        .collect();
    write(store, POLICY, &rows, 0).unwrap();
}

/// Per series, window and field: count, sum, minimum and maximum.
type Totals = BTreeMap<(u32, i64, usize), (u64, f64, f64, f64)>;

fn number(value: &Scalar) -> f64 {
    match value {
        Scalar::Integer(v) => *v as f64,
        Scalar::Float(v) => *v,
        other => panic!("{other:?} is no number"),
    }
}

/// Adds up what a scan hands out, whose rows must come in `order`; also how many spans were summaries.
fn totals(
    store: &LocalStore,
    time: TimeRange,
    windows: Option<Windows>,
    every: i64,
    order: TimeOrder,
) -> (Totals, usize) {
    let request = ScanRequest {
        policy: POLICY,
        measurement: "m".into(),
        fields: vec![("a".into(), FieldType::Integer), ("b".into(), FieldType::Float)],
        tags: Vec::new(),
        series: TagExpr::True,
        time,
        filters: Vec::new(),
        order,
        windows,
        joins_series: false,
        context: unlimited(),
    };
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let (mut totals, mut spans) = (Totals::new(), 0);
    let mut add = |key, count: u64, sum: f64, min: f64, max: f64| {
        let t = totals.entry(key).or_insert((0, 0.0, f64::INFINITY, f64::NEG_INFINITY));
        *t = (t.0 + count, t.1 + sum, t.2.min(min), t.3.max(max));
    };
    let mut last_row = BTreeMap::new();
    while let Some(item) = cursor.next().unwrap() {
        match item {
            ScanItem::Rows(batch) => {
                let mut row = 0;
                for run in &batch.runs {
                    for _ in 0..run.rows {
                        let time = batch.times()[row];
                        let before = last_row.insert(run.series, time);
                        if let Some(before) = before.filter(|_| windows.is_none()) {
                            assert_eq!(before < time, order == TimeOrder::Ascending);
                        }
                        let window = time.div_euclid(every);
                        for field in 0..2 {
                            if let Some(value) = batch.columns[field + 1].get(row) {
                                let v = number(&value);
                                add((run.series, window, field), 1, v, v, v);
                            }
                        }
                        row += 1;
                    }
                }
            }
            ScanItem::Summaries(batch) => {
                spans += batch.spans.len();
                for (at, span) in batch.spans.iter().enumerate() {
                    assert!(time.contains(span.min_time) && time.contains(span.max_time));
                    let window = span.min_time.div_euclid(every);
                    assert_eq!(window, span.max_time.div_euclid(every));
                    for field in 0..2 {
                        let s = &batch.fields[field];
                        let number = |values: &Values| number(&values.get(at));
                        if s.counts[at] > 0 {
                            let key = (span.series, window, field);
                            let (sum, min, max) =
                                (number(&s.sums), number(&s.mins), number(&s.maxs));
                            add(key, s.counts[at], sum, min, max);
                        }
                    }
                }
            }
        }
    }
    (totals, spans)
}

#[test]
fn windows_add_up_from_summaries_and_rows_alike() {
    let store = open();
    let parts = SummaryParts { sum: true, min_max: true, first_last: false };
    for series in 0..3 {
        load(&store, series, 0..20_000);
    }
    store.flush().unwrap();
    for stage in ["one segment", "a late segment", "overlapping memtable", "settled", "deleted"] {
        match stage {
            "a late segment" => {
                load(&store, 0, 20_000..26_000);
                store.flush().unwrap();
            }
            "overlapping memtable" => load(&store, 1, 4_000..4_010),
            "settled" => store.settle().unwrap(),
            "deleted" => {
                let target = store::DeleteTarget::Rows {
                    measurements: store::NameFilter::All,
                    series: TagExpr::Equals("s".into(), "2".into()),
                    time: TimeRange::new(5_000 * SECOND, 6_500 * SECOND),
                };
                store.delete(&store::DeleteRequest { database: POLICY.database, target }).unwrap();
            }
            _ => {}
        }
        let mut summed_up = 0;
        for every in [60, 3600, 7200].map(|s| s * SECOND) {
            for time in [TimeRange::ALL, TimeRange::new(1_234 * SECOND, 17_000 * SECOND + 5)] {
                let windows = Windows { every_ns: Some(every), offset_ns: 0, parts };
                for order in [TimeOrder::Ascending, TimeOrder::Descending] {
                    let (with, spans) = totals(&store, time, Some(windows), every, order);
                    let (without, none) = totals(&store, time, None, every, order);
                    assert_eq!(none, 0);
                    assert_eq!(with, without, "{stage}, windows of {every} ns over {time:?}");
                    summed_up += spans;
                }
            }
        }
        assert!(summed_up > 0, "{stage}: no summary was used");
    }
}

/// Late rows lie between those of a block, whose summaries stay what they are, until a row is written again.
#[test]
fn late_rows_leave_summaries_of_others() {
    let store = open();
    let parts = SummaryParts { sum: true, min_max: true, first_last: false };
    for series in 0..3 {
        load(&store, series, 0..20_000);
    }
    store.settle().unwrap();
    let windows = |every| Windows { every_ns: Some(every), offset_ns: 0, parts };
    let count = |every, time| {
        let (with, spans) = totals(&store, time, Some(windows(every)), every, TimeOrder::Ascending);
        let (without, _) = totals(&store, time, None, every, TimeOrder::Ascending);
        assert_eq!(with, without, "windows of {every} ns over {time:?}");
        spans
    };
    let ranges = [TimeRange::ALL, TimeRange::new(1_234 * SECOND, 17_000 * SECOND + 5)];
    let counts = || ranges.map(|time| [60, 3600].map(|every| count(every * SECOND, time)));
    let settled = counts();
    load(&store, 2, 19_900..20_000);
    let again = counts();
    assert!(again[0][1] + 2 >= settled[0][1], "the last rows were sent again: {again:?}");
    store.settle().unwrap();
    let settled = counts();
    let late = |from: i64| {
        let row = |t: i64| {
            let value = ("a", Scalar::Integer(t % 100_000));
            Row::new(&format!("m,s={}", t % 2), &[value], t * SECOND + SECOND / 2)
        };
        let rows: Vec<Row> = (0..300).map(|n| row((n * 7919 + from) % 20_000)).collect();
        write(&store, POLICY, &rows, 0).unwrap();
    };
    late(0);
    assert_eq!(counts(), settled, "late rows in memory");
    store.flush().unwrap();
    assert_eq!(counts(), settled, "late rows in a segment");
    late(3);
    assert_eq!(counts(), settled, "late rows in both");
    load(&store, 1, 4_000..4_001);
    let shared = counts();
    let fewer = |all: usize, left: usize| left < all && left > all / 2;
    assert!(fewer(settled[0][1], shared[0][1]), "a row was written again: {shared:?}");
}

#[test]
fn texts_are_counted_without_being_read() {
    let store = open();
    let text = |second: i64| Scalar::String(format!("text {second}").into());
    let rows: Vec<Row> = (0..3000)
        .map(|second| {
            let a = ("a", Scalar::Integer(second));
            let fields = if second % 3 == 0 { vec![a, ("s", text(second))] } else { vec![a] };
            Row::new("m,s=1", &fields, second * SECOND)
        })
        .collect();
    write(&store, POLICY, &rows, 0).unwrap();
    store.flush().unwrap();
    let windows = Windows { every_ns: None, offset_ns: 0, parts: SummaryParts::default() };
    let everything = testing::scan_everything(&store, POLICY, "m").unwrap();
    let request = ScanRequest { windows: Some(windows), ..everything };
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&ScanSlice::all()).unwrap();
    let mut counts = [0; 2];
    while let Some(item) = cursor.next().unwrap() {
        let ScanItem::Summaries(batch) = item else { panic!("rows were read") };
        for (count, field) in counts.iter_mut().zip(&batch.fields) {
            *count += field.counts.iter().sum::<u64>();
        }
    }
    // By name: `a`, then `s`.
    assert_eq!(counts, [3000, 1000]);
    assert_eq!(scan.stats().pages_read, 0);
}
