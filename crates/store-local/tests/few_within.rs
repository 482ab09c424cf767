//! Of blocks that thousands of series share, the few rows within a short time are those that were written: their ends exactly,
//! of all series or some, of each all rows or the first or last ones, with filters about texts and numbers or none, joined or not.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{CompareOp, FieldFilter, Operand, Scalar, SeriesRun, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, HOUR_NS, Row, read_slice, scan_everything};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::{at_each_stage, every_series, open, random, satisfies};

const SECOND: i64 = 1_000_000_000;
const POLICY: Policy = Policy { partition_ns: 48 * HOUR_NS, ..testing::POLICY };
const SERIES: u64 = 5000;
/// Rows come within so many seconds.
const END: u64 = 20_000;

/// What a series has: a few rows at whole seconds; some series have so many that blocks end in the midst of them, and some have
/// rows late alone.
fn rows_of(series: u64) -> Vec<Row> {
    let rows = match series {
        1200 | 2500 => 20_000,
        _ if series % 53 == 7 => 600,
        _ => 1 + random(series) % 7,
    };
    let first = if series % 1000 < 500 { 0 } else { END / 2 };
    let mut times: Vec<u64> =
        (0..rows).map(|at| first + random(series * 1009 + at) % (END - first)).collect();
    times.sort_unstable();
    times.dedup();
    let row = |time: u64| {
        let some = random(series * 31 + time);
        let state = ["on", "off", "a text", "another"][some as usize % 4];
        let mut fields = vec![("x", Scalar::Integer((some % 5) as i64))];
        if !some.is_multiple_of(3) {
            fields.insert(0, ("state", Scalar::String(state.into())));
        }
        Row::new(&format!("m,id={series:04}"), &fields, time as i64 * SECOND)
    };
    times.into_iter().map(row).collect()
}

fn equals(field: &str, value: Scalar) -> FieldFilter {
    FieldFilter { field: field.into(), op: CompareOp::Equal, operand: Operand::Constant(value) }
}

fn requests(store: &LocalStore) -> Vec<ScanRequest> {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let mut requests = Vec::new();
    for (from, to) in [(4000, 4020), (0, 1), (9990, 10_400), (19_950, 30_000), (12_345, 12_345)] {
        // The last second is within the time, or just not.
        for less in [0, 1] {
            let time = TimeRange::new(from * SECOND, to * SECOND - less);
            let texts = |text: &str| equals("state", Scalar::String(text.into()));
            for filters in [
                vec![],
                vec![texts("on")],
                vec![equals("x", Scalar::Integer(3))],
                vec![texts("a text"), equals("x", Scalar::Integer(1))],
                vec![texts("nowhere")],
            ] {
                requests.push(ScanRequest { time, filters, ..everything.clone() });
            }
            let mut numbers = ScanRequest { time, ..everything.clone() };
            numbers.fields.retain(|(name, _)| &**name == "x");
            requests.push(numbers);
        }
    }
    requests
}

fn expected(rows: &[Row], request: &ScanRequest, every: usize) -> Vec<Row> {
    let has_all = |row: &&Row| {
        let series: usize = row.key[5..].parse().unwrap();
        request.time.contains(row.time_ns)
            && series.is_multiple_of(every)
            && satisfies(row, &request.filters)
    };
    let asked = |row: &Row| {
        let mut row = row.clone();
        row.fields.retain(|(name, _)| request.fields.iter().any(|(asked, _)| asked == name));
        row
    };
    rows.iter().filter(has_all).map(asked).collect()
}

/// The times of all rows, where it does not matter whose they are.
fn joined_times(store: &LocalStore, request: &ScanRequest, every: usize) -> Vec<i64> {
    let request = ScanRequest { joins_series: true, ..request.clone() };
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&every_series(&*scan, &request, every)).unwrap();
    let mut times = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let ScanItem::Rows(batch) = item else { panic!("summaries were not asked for") };
        let rows: usize = batch.runs.iter().map(|SeriesRun { rows, .. }| *rows as usize).sum();
        assert_eq!(rows, batch.rows);
        times.extend_from_slice(batch.times());
    }
    times.sort_unstable();
    times
}

fn check(store: &LocalStore, rows: &[Row], stage: &str) {
    for request in requests(store) {
        for every in [1, 3] {
            let (time, filters) = (request.time, &request.filters);
            let case = format!("{stage}: {time:?} {:?} {filters:?} {every}", request.fields);
            let all = expected(rows, &request, every);
            let found = |order: TimeOrder, few: Option<u64>| {
                let request = ScanRequest { order, ..request.clone() };
                let scan = store.scan(&request).unwrap();
                let slice =
                    ScanSlice { rows_per_series: few, ..every_series(&*scan, &request, every) };
                let mut found = read_slice(&*scan, &request, &slice).unwrap();
                // Filters are hints.
                found.retain(|row| satisfies(row, filters));
                found
            };
            let of_each = |order: TimeOrder, few: usize| {
                let mut some = Vec::new();
                for of_series in all.chunk_by(|a, b| a.key == b.key) {
                    match order {
                        TimeOrder::Ascending => some.extend(of_series.iter().take(few).cloned()),
                        TimeOrder::Descending => {
                            some.extend(of_series.iter().rev().take(few).cloned());
                        }
                    }
                }
                some
            };
            let forwards = found(TimeOrder::Ascending, None);
            let other = forwards.iter().zip(&all).find(|(a, b)| a != b);
            assert_eq!(other, None, "{case}");
            assert_eq!(forwards.len(), all.len(), "{case}");
            let backwards = found(TimeOrder::Descending, None);
            assert!(backwards == of_each(TimeOrder::Descending, usize::MAX), "{case} backwards");
            if filters.is_empty() {
                for order in [TimeOrder::Ascending, TimeOrder::Descending] {
                    assert!(found(order, Some(1)) == of_each(order, 1), "{case} {order:?}");
                }
                let mut times: Vec<i64> = all.iter().map(|row| row.time_ns).collect();
                times.sort_unstable();
                assert_eq!(joined_times(store, &request, every), times, "{case} joined");
            }
        }
    }
}

#[test]
fn few_rows_of_blocks_that_thousands_of_series_share_are_those_that_were_written() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    at_each_stage(&store, POLICY, (&rows, 20_000), |stage| check(&store, &rows, stage));
    // All rows are settled, and were asked for often.
    let time = TimeRange::new(4000 * SECOND, 4020 * SECOND);
    let request = ScanRequest { time, ..scan_everything(&store, POLICY, "m").unwrap() };
    let scan = store.scan(&request).unwrap();
    let mut keys: Vec<&str> =
        rows.iter().filter(|row| time.contains(row.time_ns)).map(|row| &*row.key).collect();
    keys.dedup();
    assert!(keys.len() > 20);
    let known = (0..scan.series().len).map(|at| testing::series_key(&*scan, &request, at));
    let mut known: Vec<String> = known.collect();
    known.sort_unstable();
    assert_eq!(known, keys, "series without rows in a short time are left out");
}
