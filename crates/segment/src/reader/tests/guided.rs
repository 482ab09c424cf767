//! Pages that are read as they are: a few rows of one, from what is kept of it.

use std::sync::Arc;

use model::{FieldType, SeriesId, TimeRange};

use super::wanted;
use crate::reader::SegmentReader;
use crate::testing::{ALL_SERIES, Cell, PlainMeasurement, Rng, Spec, read, write};

const SERIES: u64 = 60;
const ROWS: usize = 300;

/// Counters of short series in one block, sent when it suits them: values and times that are packed as differences, with
/// exceptions where series begin, and more of times.
fn counters() -> (Spec, Vec<PlainMeasurement>) {
    let rows = SERIES as usize * ROWS;
    let (mut spec, _) = crate::testing::regular(rows, 1, 10);
    let types = [FieldType::Integer, FieldType::Unsigned, FieldType::Float];
    spec.measurements[0] = (types.len(), rows);
    let mut rng = Rng(61);
    let mut plain = PlainMeasurement {
        name: "m0".into(),
        fields: types.iter().zip(0..).map(|(t, at)| (format!("f{at}").into(), *t)).collect(),
        rows: Vec::new(),
    };
    for id in 1..=SERIES {
        let (mut time, mut count) = (rng.below(1 << 30) as i64, rng.below(1 << 40) as u64);
        for _ in 0..ROWS {
            time += 30_000_000 + [0, 31, -969][rng.below(40).saturating_sub(37)] * 1000;
            count += rng.below(1 << 30) as u64;
            let float = (count as f64 / 1e6).to_bits();
            let cells = [count, count, float].map(Cell::Number).to_vec();
            plain.rows.push((SeriesId(id), time, cells));
        }
    }
    (spec, vec![plain])
}

#[test]
fn rows_of_pages_that_are_read_as_they_are_come_from_what_is_kept() {
    let (spec, plain) = counters();
    let cache = Arc::new(platform::PageCache::new(8 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let part = |reader: &SegmentReader, series: u64, row: usize| {
        let series = SeriesId(series)..=SeriesId(series);
        let of_series = (series.start().0 as usize - 1) * ROWS;
        let time = |row: usize| plain[0].rows[of_series + row].1;
        let time = TimeRange::new(time(row), time(row + 40));
        let found = read(reader, "m0", series.clone(), time).unwrap();
        assert_eq!(found, wanted(&plain[0], &series, time));
        cache.stats().bytes_used
    };
    // Whoever reads everything once keeps nothing.
    let none = part(&reader.streaming(), 30, 9);
    assert_eq!(part(&reader.streaming(), 50, 100), none);
    assert_eq!(read(&reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
    let pages = cache.stats().bytes_used;
    let mut rng = Rng(1);
    let mut some = || {
        let (series, row) = (1 + rng.below(SERIES as usize), rng.below(ROWS - 40));
        part(&reader, series as u64, row)
    };
    let all = (0..500).map(|_| some()).last().unwrap();
    assert!(pages < all && all < pages + pages / 20, "{all} bytes after {pages}");
    assert_eq!(some(), all, "nothing is left to do");
}
