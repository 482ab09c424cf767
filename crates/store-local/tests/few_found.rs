//! Of blocks that several series share, the rows that filters find are those that were written, few or many of them: with numbers
//! far out, values that are missing, times that follow a line or none, in one partition or two, of all series or some.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{CompareOp, FieldFilter, Operand, Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, HOUR_NS, Row, read_slice, scan_everything};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store};
use store_local::LocalStore;

mod common;
use common::{at_each_stage, every_series, open, random, satisfies};

const MINUTE: i64 = 60_000_000_000;
const POLICY: Policy = Policy { partition_ns: 48 * HOUR_NS, ..testing::POLICY };
const SERIES: u64 = 70;
const ROWS: u64 = 1200;

/// Temperatures that are seldom high, states, and counters; some series lack the states.
fn rows_of(series: u64, are_regular: bool) -> Vec<Row> {
    let mut count = 0;
    let mut row = |at: u64| {
        let some = random(series * 1009 + at);
        let far = if some.is_multiple_of(400) { 1_000_000 } else { 0 };
        let late = if are_regular { 0 } else { (some % 50) as i64 * 1_000_000_000 };
        count += some % 7;
        let mut fields = vec![
            ("count", Scalar::Integer(count as i64)),
            ("heat", Scalar::Float((2000 + some % 300) as f64 / 10.0)),
            ("level", Scalar::Integer((some % 100) as i64 + far)),
            ("third", Scalar::Float((some % 90) as f64 / 3.0)),
        ];
        if !series.is_multiple_of(7) && !some.is_multiple_of(11) {
            fields.push(("state", Scalar::Unsigned(some % 5)));
            fields.sort_by_key(|(name, _)| *name);
        }
        Row::new(&format!("m,id={series:04}"), &fields, at as i64 * 5 * MINUTE + late)
    };
    (0..ROWS).map(&mut row).collect()
}

fn filter(field: &str, op: CompareOp, constant: Scalar) -> FieldFilter {
    FieldFilter { field: field.into(), op, operand: Operand::Constant(constant) }
}

fn all_filters() -> Vec<Vec<FieldFilter>> {
    use CompareOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let than =
        |op| FieldFilter { field: "third".into(), op, operand: Operand::Field("heat".into()) };
    vec![
        vec![filter("heat", Less, Scalar::Float(200.05))],
        vec![filter("heat", GreaterOrEqual, Scalar::Float(229.9))],
        vec![filter("heat", Equal, Scalar::Float(212.3))],
        vec![filter("heat", Equal, Scalar::Float(212.34))],
        vec![filter("heat", LessOrEqual, Scalar::Float(229.0))],
        vec![filter("level", Greater, Scalar::Integer(99))],
        vec![filter("level", NotEqual, Scalar::Integer(50))],
        vec![filter("third", Less, Scalar::Float(0.3))],
        vec![than(Greater)],
        vec![filter("count", Less, Scalar::Integer(3))],
        vec![
            filter("state", Equal, Scalar::Unsigned(4)),
            filter("heat", Less, Scalar::Float(201.0)),
        ],
        vec![filter("heat", Greater, Scalar::Float(1e9))],
    ]
}

fn check(store: &LocalStore, rows: &[Row], stage: &str) {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let minutes = |from: i64, to: i64| TimeRange::new(from * 5 * MINUTE, to * 5 * MINUTE);
    // All, of one partition some, and around its end.
    for time in [TimeRange::ALL, minutes(20, 110), minutes(400, 900)] {
        for (filters, every) in all_filters().into_iter().flat_map(|f| [(f.clone(), 1), (f, 2)]) {
            let case = format!("{stage}: {time:?} {filters:?} {every}");
            let is_wanted = |row: &&Row| {
                let series: usize = row.key[5..].parse().unwrap();
                time.contains(row.time_ns)
                    && series.is_multiple_of(every)
                    && satisfies(row, &filters)
            };
            let all: Vec<Row> = rows.iter().filter(is_wanted).cloned().collect();
            let request = ScanRequest { time, filters: filters.clone(), ..everything.clone() };
            let scan = store.scan(&request).unwrap();
            let slice: ScanSlice = every_series(&*scan, &request, every);
            let mut found = read_slice(&*scan, &request, &slice).unwrap();
            // Filters are hints.
            found.retain(|row| satisfies(row, &filters));
            let other = found.iter().zip(&all).find(|(a, b)| a != b);
            assert_eq!(other, None, "{case}");
            assert_eq!(found.len(), all.len(), "{case}");
            check_joined(store, &request, every, (&all, rows.len()), &case);
        }
    }
}

/// Where it does not matter whose rows are, those that are wanted are among what is found, each once.
fn check_joined(
    store: &LocalStore,
    request: &ScanRequest,
    every: usize,
    (wanted, rows): (&[Row], usize),
    case: &str,
) {
    let request = ScanRequest { joins_series: true, ..request.clone() };
    let scan = store.scan(&request).unwrap();
    let mut cursor = scan.open(&every_series(&*scan, &request, every)).unwrap();
    let mut times = Vec::new();
    while let Some(item) = cursor.next().unwrap() {
        let ScanItem::Rows(batch) = item else { panic!("summaries were not asked for") };
        times.extend_from_slice(batch.times());
    }
    times.sort_unstable();
    let mut wanted: Vec<i64> = wanted.iter().map(|row| row.time_ns).collect();
    wanted.sort_unstable();
    let mut others = times.iter();
    let are_there = wanted.iter().all(|time| others.any(|other| other == time));
    assert!(are_there && times.len() <= rows, "{case} joined: {} of {}", times.len(), wanted.len());
}

#[test]
fn few_rows_that_filters_find_in_blocks_that_series_share_are_those_that_were_written() {
    for are_regular in [true, false] {
        let disk = SimDisk::new(1, FaultConfig::default());
        let store = open(&disk, 256 << 20);
        let rows: Vec<Row> = (0..SERIES).flat_map(|series| rows_of(series, are_regular)).collect();
        at_each_stage(&store, POLICY, (&rows, 10_000), |stage| {
            check(&store, &rows, &format!("{stage}, {are_regular}"));
        });
    }
}
