//! Of blocks that several series share, the first and the last rows of each series are those that were written: of series that
//! ended early, lack values at their ends, or lie in several blocks and partitions, within any time.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{Scalar, TimeRange};
use platform::{FaultConfig, SimDisk};
use store::testing::{self, HOUR_NS, Row, read_slice, scan_everything, write};
use store::{Policy, ScanRequest, ScanSlice, Store, TimeOrder};
use store_local::LocalStore;

mod common;
use common::{at_each_stage, every_series, open, random, value};

const MINUTE: i64 = 60_000_000_000;
const POLICY: Policy = Policy { partition_ns: 48 * HOUR_NS, ..testing::POLICY };
const SERIES: u64 = 170;
const ROWS: u64 = 1000;

/// Three days and a half, of which some series have the first two or fewer. `load` is always there, the others are not.
fn rows_of(series: u64, are_regular: bool) -> Vec<Row> {
    let rows = match series % 23 {
        5 => 100,
        11 => 600,
        17 => 990,
        _ => ROWS,
    };
    (0..rows).map(|at| row_of(series, at, are_regular)).collect()
}

fn row_of(series: u64, at: u64, are_regular: bool) -> Row {
    let some = random(series * 1009 + at);
    let late = if are_regular { 0 } else { (some % 50) as i64 * 1_000_000_000 };
    let mut fields = vec![("load", Scalar::Float((some % 3000) as f64 / 10.0))];
    if series % 31 != 4 || at < 400 {
        fields.push(("note", Scalar::String(format!("note {}", some % 900).into())));
    }
    if !some.is_multiple_of(if series.is_multiple_of(40) { 2 } else { 300 }) {
        fields.push(("state", Scalar::Integer((some % 5) as i64)));
    }
    Row::new(&format!("m,id={series:04}"), &fields, at as i64 * 5 * MINUTE + late)
}

/// What is asked for.
struct Question {
    time: TimeRange,
    order: TimeOrder,
    /// So many rows of each series, of every so many'th.
    few: usize,
    every: usize,
    fields: &'static [&'static str],
    /// Of the fields those of which rows have one.
    any: &'static [usize],
}

impl Question {
    /// Of each series so many of these rows from the end, as they are asked for.
    fn ends_of(&self, rows: &[Row], order: TimeOrder) -> Vec<Row> {
        let any = || self.any.iter().map(|at| self.fields[*at]);
        let is_wanted = |row: &&Row| {
            let series: usize = row.key[5..].parse().unwrap();
            self.time.contains(row.time_ns)
                && series.is_multiple_of(self.every)
                && any().any(|field| value(row, field).is_some())
        };
        let of_fields = |row: &Row| {
            let mut row = row.clone();
            row.fields.retain(|(name, _)| self.fields.contains(&&**name));
            row
        };
        let mut ends = Vec::new();
        for of_series in rows.chunk_by(|a, b| a.key == b.key) {
            match order {
                TimeOrder::Ascending => {
                    ends.extend(of_series.iter().filter(is_wanted).take(self.few).map(of_fields));
                }
                TimeOrder::Descending => {
                    let rows = of_series.iter().rev().filter(is_wanted);
                    ends.extend(rows.take(self.few).map(of_fields));
                }
            }
        }
        ends
    }

    fn check(&self, store: &LocalStore, everything: &ScanRequest, rows: &[Row], stage: &str) {
        let Self { time, order, few, every, fields, any } = self;
        let case = format!("{stage}: {time:?} {order:?} {few} {every} {fields:?} {any:?}");
        let mut request = ScanRequest { time: *time, order: *order, ..everything.clone() };
        request.fields.retain(|(name, _)| fields.contains(&&**name));
        let scan = store.scan(&request).unwrap();
        let slice = ScanSlice {
            rows_per_series: Some(*few as u64),
            with_any: (any.len() < fields.len()).then(|| any.to_vec().into()),
            ..every_series(&*scan, &request, *every)
        };
        // More may be handed out of each.
        let found = read_slice(&*scan, &request, &slice).unwrap();
        assert!(found.iter().all(|row| time.contains(row.time_ns)), "{case}");
        let found = self.ends_of(&found, TimeOrder::Ascending);
        let expected = self.ends_of(rows, *order);
        let other = found.iter().zip(&expected).find(|(a, b)| a != b);
        assert_eq!(other, None, "{case}");
        assert_eq!(found.len(), expected.len(), "{case}");
    }
}

fn check(store: &LocalStore, rows: &[Row], stage: &str) {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    let minutes = |from: i64, to: i64| TimeRange::new(from * 5 * MINUTE, to * 5 * MINUTE);
    let times = [TimeRange::ALL, minutes(20, 1110), minutes(300, 420), minutes(580, 991)];
    let asked: [(&[&str], &[usize]); 5] = [
        (&["load"], &[0]),
        (&["load", "note", "state"], &[0, 1, 2]),
        (&["state"], &[0]),
        (&["load", "note", "state"], &[1]),
        (&["load", "state"], &[1]),
    ];
    for (time, (fields, any)) in times.into_iter().flat_map(|time| asked.map(|asked| (time, asked)))
    {
        for order in [TimeOrder::Ascending, TimeOrder::Descending] {
            for (few, every) in [(1, 1), (1, 3), (3, 1), (64, 2), (65, 1)] {
                let question = Question { time, order, few, every, fields, any };
                question.check(store, &everything, rows, stage);
            }
        }
    }
}

/// Of series that share blocks pages are read once for many.
fn check_pages_read(store: &LocalStore) {
    let everything = scan_everything(store, POLICY, "m").unwrap();
    for order in [TimeOrder::Ascending, TimeOrder::Descending] {
        let mut request = ScanRequest { order, ..everything.clone() };
        request.fields.retain(|(name, _)| &**name == "load");
        let scan = store.scan(&request).unwrap();
        let found = read_slice(&*scan, &request, &ScanSlice::rows_per_series(1)).unwrap();
        assert_eq!(found.len() as u64, SERIES);
        let pages = scan.stats().pages_read;
        assert!(pages > 0 && pages < SERIES / 2, "{pages} pages for {SERIES} series");
    }
}

#[test]
fn ends_of_series_that_share_blocks_are_those_that_were_written() {
    for are_regular in [true, false] {
        let disk = SimDisk::new(1, FaultConfig::default());
        let store = open(&disk, 256 << 20);
        let rows: Vec<Row> = (0..SERIES).flat_map(|series| rows_of(series, are_regular)).collect();
        at_each_stage(&store, POLICY, (&rows, 20_000), |stage| {
            check(&store, &rows, &format!("{stage}, {are_regular}"));
        });
        check_pages_read(&store);
        // And where most have one more in a segment of its own, and some others in memory, not all in order.
        let mut rows = rows;
        for (stage, lacking, later) in [("flushed", 23, &[7][..]), ("in memory", 57, &[20, 22, 21])]
        {
            for at in later {
                let has_more = |series: &u64| series % lacking != 5;
                let row = |series| row_of(series, ROWS + at, are_regular);
                let some: Vec<Row> = (0..SERIES).filter(has_more).map(row).collect();
                write(&store, POLICY, &some, 0).unwrap();
                rows.extend(some);
            }
            if stage == "flushed" {
                store.flush().unwrap();
            }
            check_pages_read(&store);
            rows.sort_by(|a, b| (&a.key, a.time_ns).cmp(&(&b.key, b.time_ns)));
            check(&store, &rows, stage);
        }
    }
}
