//! What a scan reads of segments that are not in memory the disk was asked for before, block by block; what is in memory it
//! is not asked for.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{CompareOp, FieldFilter, Operand, Scalar, TagExpr, TimeRange};
use platform::{Access, FaultConfig, SimDisk};
use store::testing::{self, Row, write};
use store::{Policy, ScanItem, ScanRequest, ScanSlice, Store, SummaryParts, TimeOrder, Windows};
use store_local::LocalStore;

mod common;

const SECOND: i64 = 1_000_000_000;
const POLICY: Policy = Policy { partition_ns: 24 * testing::HOUR_NS, ..testing::POLICY };
const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

/// Series of a row each ten seconds for a day and six hours: two partitions, in each a block a series.
const MANY: i64 = 12;
/// One series of a row a second, of several blocks in the first partition and one in the second.
const LONG_SECONDS: i64 = 120_000;

fn row(series: i64, second: i64) -> Row {
    let value = |field: i64| {
        let wave = (second + series * 700 + field * 1900).rem_euclid(7200);
        // Noise, so that pages of two fields are not read as one.
        let noise =
            (second ^ field << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) >> 44;
        Scalar::Integer((wave - 3600).abs() / 36 * 1_000_000 + noise)
    };
    let fields: Vec<_> = FIELDS.iter().zip(0..).map(|(name, at)| (*name, value(at))).collect();
    Row::new(&format!("m,s={series:02}"), &fields, second * SECOND)
}

/// A disk with settled segments.
fn disk() -> SimDisk {
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = common::open(&disk, 256 << 20);
    for series in 0..MANY {
        let rows: Vec<Row> = (0..30 * 360).map(|at| row(series, at * 10)).collect();
        write(&store, POLICY, &rows, 0).unwrap();
    }
    let long: Vec<Row> = (0..LONG_SECONDS).map(|second| row(99, second)).collect();
    write(&store, POLICY, &long, 0).unwrap();
    store.settle().unwrap();
    store.close().unwrap();
    disk
}

/// Reads everything; batches and summaries.
fn read(store: &LocalStore, request: &ScanRequest, slice: &ScanSlice) -> usize {
    let scan = store.scan(request).unwrap();
    let mut cursor = scan.open(slice).unwrap();
    let mut found = 0;
    while let Some(item) = cursor.next().unwrap() {
        found += match item {
            ScanItem::Rows(batch) => batch.rows,
            ScanItem::Summaries(batch) => batch.spans.len(),
        };
    }
    found
}

/// What was asked of segments.
fn accesses(disk: &SimDisk) -> Vec<Access> {
    let is_segment = |access: &Access| access.path.extension().is_some_and(|e| e == "seg");
    disk.accesses().into_iter().filter(is_segment).collect()
}

fn check(disk: &SimDisk, what: &str, request: impl Fn(ScanRequest) -> ScanRequest) -> u64 {
    check_slice(disk, what, request, &ScanSlice::all())
}

/// Reads on a store that has nothing in memory. Bytes that were asked for ahead.
fn check_slice(
    disk: &SimDisk,
    what: &str,
    request: impl Fn(ScanRequest) -> ScanRequest,
    slice: &ScanSlice,
) -> u64 {
    let disk = disk.fork();
    let store = common::open(&disk, 256 << 20);
    let request = request(testing::scan_everything(&store, POLICY, "m").unwrap());
    drop(disk.accesses());
    let found = read(&store, &request, slice);
    assert!(found > 0, "{what}");
    let (mut asked, mut bytes, mut reads): (Vec<Access>, _, _) = (Vec::new(), 0, 0);
    for access in accesses(&disk) {
        let of_file = || asked.iter().filter(|asked| asked.path == access.path);
        if access.is_ahead {
            bytes += access.range.end - access.range.start;
            asked.push(access);
        } else if of_file().next().is_some() {
            reads += 1;
            let (start, end) = (access.range.start, access.range.end);
            let is_inside =
                of_file().any(|asked| asked.range.start <= start && end <= asked.range.end);
            assert!(is_inside, "{what}: {:?} was not asked for", access.range);
        }
        // Before anything can be asked for the directory is read.
    }
    assert!(reads > 0, "{what}");
    assert_eq!(read(&store, &request, slice), found, "{what}");
    let again = accesses(&disk);
    assert!(!again.iter().any(|access| access.is_ahead), "{what}: {again:?}");
    bytes
}

/// The long series, or those that are not.
fn series(is_long: bool) -> TagExpr {
    let long = TagExpr::Equals("s".into(), "99".into());
    if is_long { long } else { TagExpr::Not(Box::new(long)) }
}

#[test]
fn what_a_scan_reads_was_asked_for() {
    let disk = disk();
    let hours = |from: i64, to: i64| TimeRange::new(from * SECOND, to * SECOND - 1);
    let parts = SummaryParts { sum: true, ..SummaryParts::default() };
    let hourly = Windows { every_ns: Some(testing::HOUR_NS), offset_ns: 0, parts };
    let above = |value: i64| FieldFilter {
        field: "a".into(),
        op: CompareOp::Greater,
        operand: Operand::Constant(Scalar::Integer(value)),
    };
    for is_long in [false, true] {
        let of = |request: ScanRequest| ScanRequest { series: series(is_long), ..request };
        let one = |mut request: ScanRequest| {
            request.fields.truncate(1);
            request
        };
        let all = check(&disk, "rows", of);
        let some = check(&disk, "a field", |request| one(of(request)));
        assert!(some * 2 < all, "{some} bytes of {all}");
        let time = hours(7200, 100_800);
        let summed = check(&disk, "summaries", |request| ScanRequest {
            time,
            windows: Some(hourly),
            ..of(request)
        });
        assert!(summed * 2 < all, "{summed} bytes of {all}");
        check(&disk, "summaries and rows", |request| ScanRequest {
            time: hours(7300, 100_700),
            windows: Some(hourly),
            ..of(request)
        });
        let count = Windows { parts: SummaryParts::default(), ..hourly };
        let counted = check(&disk, "counts", |request| ScanRequest {
            time: hours(7300, 100_700),
            windows: Some(count),
            ..of(request)
        });
        assert!(counted * 2 < all, "{counted} bytes of {all}");
        let one_row = ScanSlice { rows_per_series: Some(1), ..ScanSlice::all() };
        if !is_long {
            let last = |request: ScanRequest| ScanRequest {
                time: hours(0, 50_000),
                order: TimeOrder::Descending,
                ..of(request)
            };
            let of_row = check_slice(&disk, "a row", last, &one_row);
            assert!(of_row <= all, "{of_row} bytes of {all}");
        }
        let above_90 = |request: ScanRequest| ScanRequest {
            filters: vec![above(90_000_000)],
            ..one(of(request))
        };
        let all_above = check(&disk, "rows above", above_90);
        if is_long {
            let first = check_slice(&disk, "the first row above", above_90, &one_row);
            assert!(
                first * 3 < all_above * 2,
                "the first block alone: {first} bytes of {all_above}"
            );
        }
        check(&disk, "sums above", |request| ScanRequest {
            filters: vec![above(90_000_000)],
            windows: Some(hourly),
            ..one(of(request))
        });
    }
}

#[test]
fn ends_of_series_that_share_blocks_were_asked_for() {
    const SHARING: i64 = 400;
    let disk = SimDisk::new(1, FaultConfig::default());
    let store = common::open(&disk, 256 << 20);
    for first in (0..SHARING).step_by(20) {
        let of = |series| (0..600).map(move |at| row(series, at * 60));
        let rows: Vec<Row> = (first..first + 20).flat_map(of).collect();
        write(&store, POLICY, &rows, 0).unwrap();
    }
    store.settle().unwrap();
    store.close().unwrap();
    let store = common::open(&disk, 256 << 20);
    let everything = testing::scan_everything(&store, POLICY, "m").unwrap();
    let request = ScanRequest { order: TimeOrder::Descending, ..everything };
    drop(disk.accesses());
    let found = read(&store, &request, &ScanSlice::rows_per_series(1));
    assert_eq!(found as i64, SHARING);
    let (ahead, read): (Vec<Access>, Vec<Access>) =
        accesses(&disk).into_iter().partition(|access| access.is_ahead);
    let was_asked = |access: &&Access| {
        let has = |asked: &Access| {
            asked.path == access.path
                && asked.range.start <= access.range.start
                && access.range.end <= asked.range.end
        };
        ahead.iter().any(has)
    };
    let bytes = |access: &Access| access.range.end - access.range.start;
    let all: u64 = read.iter().map(bytes).sum();
    let asked: u64 = read.iter().filter(was_asked).map(bytes).sum();
    // Directories, and whose rows are where, are read before anything is asked for.
    assert!(asked * 10 > all * 8, "{asked} bytes of {all} were asked for");
}
