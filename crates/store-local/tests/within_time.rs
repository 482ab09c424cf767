//! Rows of a short time of many series, which are read block after block, are those that were written: in blocks that series
//! share and in blocks of their own, all fields or some, filtered or summed up.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use model::{ColumnBatch, CompareOp, FieldFilter, Operand, Scalar, SeriesRun, TimeRange, Values};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, HOUR_NS, Row, read_slice, scan_everything, write};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store, SummaryParts, TimeOrder, Windows};
use store_local::LocalStore;

mod common;
use common::{every_series, open, random, satisfies};

const SECOND: i64 = 1_000_000_000;
const POLICY: Policy = Policy { partition_ns: 48 * HOUR_NS, ..testing::POLICY };
const SERIES: u64 = 200;
/// Rows of most of them, which share blocks.
const ROWS: i64 = 300;
/// Rows of some of them, which have blocks of their own: where they were flushed two.
const MANY: i64 = 12_000;
/// Rows of those behind the last one with so many, from here on: what is left of it shares a block with them.
const FEW: i64 = 3;
const FEW_FROM: u64 = 141;
const END: i64 = MANY * 10;

/// What a series has: rows over the same time, as many as it has, in steps or not, `y` now and then.
fn rows_of(series: u64) -> impl Iterator<Item = Row> {
    let rows = match series {
        20 | 60 | 140 => MANY,
        FEW_FROM.. => FEW,
        _ => ROWS,
    };
    let (first, step) = if rows == FEW { (END - 50, 10) } else { (0, END / rows) };
    (0..rows).map(move |at| {
        let some = random(series * 10_007 + at as u64);
        let jitter = if series.is_multiple_of(3) { some as i64 % step } else { 0 };
        let mut fields = vec![("x", Scalar::Integer(at / 7 + (some % 50) as i64))];
        if some.is_multiple_of(5) {
            fields.push(("y", Scalar::Float(some as f64 / 8.0)));
        }
        if series.is_multiple_of(2) {
            fields
                .insert(0, ("state", Scalar::String(["on", "off", ""][some as usize % 3].into())));
        }
        Row::new(&format!("m,id={series:03}"), &fields, (first + at * step + jitter) * SECOND)
    })
}

fn x_of(row: &Row) -> Option<i64> {
    let x = row.fields.iter().find(|(name, _)| &**name == "x");
    x.map(|(_, value)| match value {
        Scalar::Integer(x) => *x,
        _ => panic!("an integer"),
    })
}

/// Which rows a request is about, with the fields that it asks for.
fn expected(rows: &[Row], request: &ScanRequest, every: usize) -> Vec<Row> {
    let is_wanted = |row: &&Row| {
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
    rows.iter().filter(is_wanted).map(asked).filter(|row| !row.fields.is_empty()).collect()
}

/// Of a window: count, sum, least and greatest value.
type Total = (u64, i64, i64, i64);

/// By series, unless they are joined, and window.
type Totals = BTreeMap<(u32, i64), Total>;

fn add(totals: &mut Totals, key: (u32, i64), (count, sum, min, max): Total) {
    if count > 0 {
        let total = totals.entry(key).or_insert((0, 0, i64::MAX, i64::MIN));
        *total = (total.0 + count, total.1 + sum, total.2.min(min), total.3.max(max));
    }
}

/// Adds up what a scan hands out of its first field, an integer; and how many spans were summed up.
fn totals(store: &LocalStore, request: &ScanRequest, every: usize) -> (Totals, usize) {
    let window = |time: i64| match request.windows.unwrap().every_ns {
        Some(every) => time.div_euclid(every),
        None => 0,
    };
    let scan = store.scan(request).unwrap();
    let whose = |ordinal: u32| {
        let key = || testing::series_key(&*scan, request, ordinal)[5..].parse().unwrap();
        if request.joins_series { SeriesRun::SEVERAL } else { key() }
    };
    let mut cursor = scan.open(&every_series(&*scan, request, every)).unwrap();
    let (mut totals, mut spans) = (Totals::new(), 0);
    while let Some(item) = cursor.next().unwrap() {
        match item {
            ScanItem::Rows(ColumnBatch { runs, columns, .. }) => {
                let (Values::Time(times), Values::Integer(values)) =
                    (&columns[0].values, &columns[1].values)
                else {
                    panic!("other columns")
                };
                let mut at = 0;
                for SeriesRun { series, rows } in runs {
                    for row in at..at + rows as usize {
                        let value = values[row];
                        add(
                            &mut totals,
                            (whose(series), window(times[row])),
                            (1, value, value, value),
                        );
                    }
                    at += rows as usize;
                }
                assert_eq!(at, times.len());
            }
            ScanItem::Summaries(batch) => {
                spans += batch.spans.len();
                let field = &batch.fields[0];
                let (Values::Integer(sums), Values::Integer(mins), Values::Integer(maxs)) =
                    (&field.sums, &field.mins, &field.maxs)
                else {
                    panic!("other summaries")
                };
                for (at, span) in batch.spans.iter().enumerate() {
                    assert_eq!(window(span.min_time), window(span.max_time));
                    let total = (field.counts[at], sums[at], mins[at], maxs[at]);
                    add(&mut totals, (whose(span.series), window(span.min_time)), total);
                }
            }
        }
    }
    (totals, spans)
}

fn requests(store: &LocalStore) -> Vec<ScanRequest> {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let seconds = |from: i64, to: i64| TimeRange::new(from * SECOND, to * SECOND);
    let times = [
        seconds(40_000, 43_000),
        seconds(0, 5000),
        seconds(END - 7001, END + 5),
        // Whole hours, which have summaries, and both ends.
        seconds(20_011, 29_000),
        seconds(7, 11),
        // With rows of both blocks of those with many.
        seconds(10_000, END - 1000),
        seconds(50_000, END + 1000),
        seconds(END + 200, END + 300),
    ];
    let greater = |constant| FieldFilter {
        field: "x".into(),
        op: CompareOp::Greater,
        operand: Operand::Constant(Scalar::Integer(constant)),
    };
    let mut requests = Vec::new();
    for time in times {
        for fields in [&["x"][..], &["y"], &["x", "y", "state"], &["state"]] {
            for filters in [vec![], vec![greater(60)], vec![greater(30), greater(85)]] {
                let mut request = ScanRequest { time, filters, ..everything.clone() };
                request.fields.retain(|(name, _)| fields.contains(&&**name));
                let has_x = fields.contains(&"x");
                if has_x || request.filters.is_empty() {
                    requests.push(request);
                }
            }
        }
    }
    requests
}

/// Of each series the first or last rows, or all from the last one on.
fn check_few(store: &LocalStore, request: &ScanRequest, (every, all): (usize, &[Row]), case: &str) {
    for (order, few) in [
        (TimeOrder::Ascending, Some(1)),
        (TimeOrder::Descending, Some(2)),
        (TimeOrder::Descending, None),
    ] {
        // Of rows that filters leave others may come along.
        if few.is_some() && !request.filters.is_empty() {
            continue;
        }
        let mut expected = Vec::new();
        for of_series in all.chunk_by(|a, b| a.key == b.key) {
            let few = few.map_or(usize::MAX, |few| few as usize);
            match order {
                TimeOrder::Ascending => expected.extend(of_series.iter().take(few)),
                TimeOrder::Descending => expected.extend(of_series.iter().rev().take(few)),
            }
        }
        let request = ScanRequest { order, ..request.clone() };
        let scan = store.scan(&request).unwrap();
        let slice = ScanSlice { rows_per_series: few, ..every_series(&*scan, &request, every) };
        let mut found = read_slice(&*scan, &request, &slice).unwrap();
        found.retain(|row| satisfies(row, &request.filters));
        assert!(found.iter().eq(expected), "{case} {order:?} {few:?}");
    }
}

/// Compares what is read with what was written; how many spans were summed up.
fn check(store: &LocalStore, rows: &[Row], stage: &str) -> usize {
    let mut spans = 0;
    for request in requests(store) {
        for every in [1, 3] {
            let case = format!(
                "{stage}: {:?} {:?} {:?} {every}",
                request.time, request.fields, request.filters
            );
            let expected = expected(rows, &request, every);
            let mut found = {
                let scan = store.scan(&request).unwrap();
                read_slice(&*scan, &request, &every_series(&*scan, &request, every)).unwrap()
            };
            // Filters are hints.
            found.retain(|row| satisfies(row, &request.filters));
            let other = found.iter().zip(&expected).find(|(a, b)| a != b);
            assert_eq!(other, None, "{case}");
            assert_eq!(found.len(), expected.len(), "{case}");
            check_few(store, &request, (every, &expected), &case);
            if request.fields.len() > 1
                || &*request.fields[0].0 != "x"
                || !request.filters.is_empty()
            {
                continue;
            }
            for (joins_series, every_ns) in [
                (false, Some(3600)),
                (true, Some(60)),
                (true, None),
                (false, None),
                (true, Some(7200)),
            ] {
                let every_ns = every_ns.map(|seconds| seconds * SECOND);
                let parts = SummaryParts { sum: true, min_max: true, first_last: false };
                let windows = Some(Windows { every_ns, offset_ns: 0, parts });
                let request = ScanRequest { windows, joins_series, ..request.clone() };
                let mut of_rows = Totals::new();
                for row in &expected {
                    let series = row.key[5..].parse().unwrap();
                    let whose = if joins_series { SeriesRun::SEVERAL } else { series };
                    let window = every_ns.map_or(0, |every| row.time_ns.div_euclid(every));
                    let x = x_of(row).unwrap();
                    add(&mut of_rows, (whose, window), (1, x, x, x));
                }
                let (totals, of_request) = totals(store, &request, every);
                assert!(totals == of_rows, "{case} {windows:?} {joins_series}");
                spans += of_request;
            }
        }
    }
    spans
}

#[test]
fn rows_of_a_short_time_are_those_that_were_written() {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let rows: Vec<Row> = (0..SERIES).flat_map(rows_of).collect();
    // Some of them late, over times of others.
    let (late, early): (Vec<Row>, Vec<Row>) =
        rows.iter().cloned().partition(|row| row.time_ns / SECOND / 1000 % 7 == 3);
    let write_all = |rows: &[Row]| {
        for rows in rows.chunks(20_000) {
            write(&store, POLICY, rows, 0).unwrap();
        }
    };
    write_all(&early);
    assert_eq!(check(&store, &early, "in memory"), 0);
    store.flush().unwrap();
    check(&store, &early, "flushed");
    store.settle().unwrap();
    // Pages that are looked at again are thawed.
    for time in 0..3 {
        let spans = check(&store, &early, &format!("settled, {time}"));
        assert!(spans > 0, "none was summed up");
    }
    write_all(&late);
    check(&store, &rows, "settled and in memory");
    store.flush().unwrap();
    check(&store, &rows, "settled and flushed");
    write_all(&late);
    check(&store, &rows, "written again");
}

#[test]
fn a_series_with_many_more_rows_than_others_is_read_by_itself() {
    const MOST: i64 = 80_000;
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = open(&disk, 256 << 20);
    let rows_of = |series: i64| {
        let step = if series == 20 { 1 } else { MOST / 100 };
        (0..MOST).step_by(step as usize).map(move |at| {
            let x = Scalar::Integer(random((series * MOST + at) as u64) as i64 % 100);
            Row::new(&format!("m,id={series:03}"), &[("x", x)], at * SECOND)
        })
    };
    let rows: Vec<Row> = (0..260).flat_map(rows_of).collect();
    for rows in rows.chunks(20_000) {
        write(&store, POLICY, rows, 0).unwrap();
    }
    store.flush().unwrap();
    let everything = scan_everything(&store, POLICY, "m").unwrap();
    let time = TimeRange::new(SECOND, (MOST - 2) * SECOND);
    let request = ScanRequest { time, ..everything };
    let expected = expected(&rows, &request, 1);
    let scan = store.scan(&request).unwrap();
    let found = read_slice(&*scan, &request, &ScanSlice::all()).unwrap();
    assert!(found == expected);
    check_few(&store, &request, (1, &expected), "a series with most rows");
    // The last rows of each once more, so that they are in two sources.
    for rows in rows.chunk_by(|a, b| a.key == b.key) {
        write(&store, POLICY, &rows[rows.len() - 5..], 0).unwrap();
    }
    let scan = store.scan(&request).unwrap();
    let found = read_slice(&*scan, &request, &ScanSlice::all()).unwrap();
    assert!(found == expected, "in two sources");
    check_few(&store, &request, (1, &expected), "a series with most rows in two sources");
}
