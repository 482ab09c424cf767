//! Who looked ahead, for whatever, reads what others read.

use model::{Column, CompareOp, FieldType, Scalar, TimeRange, Values};

use super::blocks;
use crate::reader::thaw::LOOKS_BEFORE;
use crate::testing::{open, write};
use crate::{Block, Edge, Expected, FieldCondition, FieldOperand};

#[test]
fn who_looks_ahead_reads_the_same() {
    let (mut spec, plain) = crate::testing::regular(3000, 3, 10);
    spec.options.effort = codec::Effort::Cold;
    spec.options.window_rows_min = Some(256);
    let reader = open(write(&spec, &plain).0).unwrap();
    let fields: Vec<_> = reader.directory("m0").unwrap().unwrap().fields().to_vec();
    let fields: Vec<_> = fields.iter().enumerate().map(|(at, (_, t))| (Some(at), *t)).collect();
    let read = |block: &Block| {
        let parts = [20..100, 700..1300];
        let columns = fields.iter().flat_map(|(_, t)| [*t, *t]);
        let mut columns: Vec<_> = columns.map(|t| Column::new(Values::empty(t))).collect();
        reader.columns(block, &parts, &fields, &mut columns).unwrap();
        let windows = reader.windows(block).unwrap().expect("dense blocks have windows");
        reader.times(block, 0..block.rows(), &mut Vec::new()).unwrap();
        let place =
            reader.load_windows(block, [0, 1], &windows).unwrap().expect("of each field")[0];
        (columns, windows.field(place).clone())
    };
    let first = blocks(&reader, "m0");
    let expected: Vec<_> = first.iter().map(read).collect();
    // After some looks pages are thawed.
    (0..2 * LOOKS_BEFORE).for_each(|_| drop(first.iter().map(read).collect::<Vec<_>>()));
    let of_first = first[0].time();
    let some = TimeRange::new(of_first.min + 1, of_first.max - 1);
    let times = [TimeRange::ALL, TimeRange::EMPTY, of_first, some];
    let read_row = |block: &Block| {
        let mut row = Vec::new();
        assert!(reader.row(block, &fields[..1], 1234, &mut row).unwrap());
        row
    };
    let rows: Vec<_> = first.iter().map(read_row).collect();
    let all = [Expected::Rows, Expected::Summaries(1), Expected::Summaries(i64::MAX)];
    let all = all.into_iter().chain([Edge::First, Edge::Last].map(Expected::Row));
    for (wanted, time) in all.flat_map(|wanted| times.map(|time| (wanted, time))) {
        let mut ahead = blocks(&reader, "m0");
        let mut places: Vec<&mut Block> = ahead.iter_mut().collect();
        assert!(reader.look_ahead(&mut places, &fields, time, wanted), "everything was read");
        let mut of_disk = reader.read_ahead(&fields, time, wanted);
        first.iter().for_each(|block| of_disk.add(block));
        assert_eq!((of_disk.bytes(), of_disk.ask()), (0, false), "everything is in memory");
        assert!(ahead.iter().all(|block| block.known.group(0).is_some()));
        let has_windows = matches!(wanted, Expected::Summaries(_));
        assert!(ahead.iter().all(|block| block.known.windows().is_some() == has_windows));
        assert_eq!(ahead.iter().map(read_row).collect::<Vec<_>>(), rows);
        assert_eq!(ahead.iter().map(read).collect::<Vec<_>>(), expected);
    }
}

/// Of a file that nobody has read: what the disk is asked for, in bytes.
fn asked_of_cold(time: TimeRange, expected: Expected, fields: &[usize]) -> (u64, usize) {
    let (mut spec, plain) = crate::testing::regular(3000, 3, 10);
    spec.options.effort = codec::Effort::Cold;
    spec.options.window_rows_min = Some(256);
    let reader = open(write(&spec, &plain).0).unwrap();
    let of_reader = reader.directory("m0").unwrap().unwrap().fields().to_vec();
    let fields: Vec<_> = fields.iter().map(|at| (Some(*at), of_reader[*at].1)).collect();
    let mut blocks = blocks(&reader, "m0");
    let mut places: Vec<&mut Block> = blocks.iter_mut().collect();
    let is_there = reader.look_ahead(&mut places, &fields, time, expected);
    let mut ahead = reader.read_ahead(&fields, time, expected);
    blocks.iter().for_each(|block| ahead.add(block));
    let bytes = ahead.bytes();
    assert_eq!((ahead.ask(), is_there), (bytes > 0, bytes == 0));
    (bytes, blocks.len())
}

#[test]
fn of_what_is_not_in_memory_the_disk_is_asked_for_what_is_read() {
    const HOUR_NS: i64 = 3600 * 1_000_000_000;
    let of_rows = |fields: &[usize]| asked_of_cold(TimeRange::ALL, Expected::Rows, fields).0;
    let (both, one, other) = (of_rows(&[0, 1]), of_rows(&[0]), of_rows(&[1]));
    // The times are read once.
    assert!(one > 0 && other > 0 && one + other > both && both > one.max(other));
    // Whole hours are summed up, times are read to find the rows.
    let first_hour = 1_700_000_000_000_000_000 / HOUR_NS + 1;
    let hours = TimeRange::new(first_hour * HOUR_NS, (first_hour + 5) * HOUR_NS - 1);
    let summed = asked_of_cold(hours, Expected::Summaries(HOUR_NS), &[0]).0;
    assert!(summed > 0 && summed < one, "{summed} of {one} bytes");
    let cut = TimeRange::new(hours.min + 1, hours.max);
    let with_rows = asked_of_cold(cut, Expected::Summaries(HOUR_NS), &[0]).0;
    assert!(with_rows > one, "summaries and rows");
    let shorter = asked_of_cold(hours, Expected::Summaries(1), &[0]).0;
    assert!(shorter >= one, "rows: which length the windows have turns out when they are read");
    assert!(shorter < with_rows, "and then their summaries are of no use");
    // The directory has what is asked for.
    assert_eq!(asked_of_cold(TimeRange::ALL, Expected::Summaries(24 * HOUR_NS), &[0]).0, 0);
    assert_eq!(asked_of_cold(TimeRange::ALL, Expected::Row(Edge::Last), &[0]).0, 0);
    let (of_rows, blocks) = asked_of_cold(cut, Expected::Row(Edge::Last), &[0]);
    assert_eq!((of_rows, blocks), (one, 3));
}

#[test]
fn of_rows_that_satisfy_conditions_is_asked_for_what_finds_them() {
    let (spec, plain) = crate::testing::regular(3000, 3, 10);
    let reader = open(write(&spec, &plain).0).unwrap();
    let fields = [0, 1].map(|at| (Some(at), FieldType::Integer));
    let asked = |op: CompareOp, constant: i64| {
        let operand = FieldOperand::Constant(Scalar::Integer(constant));
        let conditions = [FieldCondition { field: 0, op, operand }];
        let ahead = reader.read_ahead(&fields, TimeRange::ALL, Expected::Rows);
        let mut ahead = ahead.satisfying(&conditions);
        blocks(&reader, "m0").iter().for_each(|block| ahead.add(block));
        ahead.bytes()
    };
    // Values lie between 0 and 100.
    let (to_find, all) = (asked(CompareOp::Greater, 50), asked(CompareOp::GreaterOrEqual, 0));
    assert!(to_find > 0 && to_find < all, "{to_find} and {all} bytes");
    assert_eq!(asked(CompareOp::Greater, 100), 0, "no row can satisfy it");
}
