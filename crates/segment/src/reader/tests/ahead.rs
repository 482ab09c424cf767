//! Who looked ahead, for whatever, reads what others read.

use model::{Column, TimeRange, Values};

use super::blocks;
use crate::reader::thaw::LOOKS_BEFORE;
use crate::testing::{open, write};
use crate::{Block, Edge, Expected};

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
        let place = reader.load_windows(block, [0], &windows).unwrap().expect("of each field")[0];
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
        reader.look_ahead(&mut places, &fields, time, wanted);
        assert!(ahead.iter().all(|block| block.known.group(0).is_some()));
        let has_windows = matches!(wanted, Expected::Summaries(_));
        assert!(ahead.iter().all(|block| block.known.windows().is_some() == has_windows));
        assert_eq!(ahead.iter().map(read_row).collect::<Vec<_>>(), rows);
        assert_eq!(ahead.iter().map(read).collect::<Vec<_>>(), expected);
    }
}
