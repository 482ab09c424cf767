mod ahead;
mod apart;
mod damage;
mod guided;

use std::sync::Arc;

use model::{Column, CompareOp, FieldType, Holds, Scalar, SeriesId, TimeRange, Values};
use proptest::prelude::*;

use crate::testing::{
    ALL_SERIES, Cell, PlainMeasurement, PlainRow, Rng, Spec, check_together, open, read, scalar_of,
    specs, write, write_thawed,
};
use crate::{Block, Edge, FieldCondition, FieldOperand, SegmentReader};

fn wanted(
    measurement: &PlainMeasurement,
    series: &std::ops::RangeInclusive<SeriesId>,
    time: TimeRange,
) -> Vec<PlainRow> {
    let inside = |row: &&PlainRow| series.contains(&row.0) && time.contains(row.1);
    measurement.rows.iter().filter(inside).cloned().collect()
}

/// Some series and times that are about those of the rows.
fn some_range(rows: &[PlainRow], rng: &mut Rng) -> (std::ops::RangeInclusive<SeriesId>, TimeRange) {
    let mut pick = || {
        let row = &rows[rng.below(rows.len())];
        let around = rng.below(3) as i64 - 1;
        (row.0, row.1.saturating_add(around))
    };
    let ((a, t), (b, u)) = (pick(), pick());
    let series = if rng.below(2) == 0 { a..=a } else { a.min(b)..=a.max(b) };
    (series, TimeRange::new(t.min(u), t.max(u)))
}

fn blocks(reader: &SegmentReader, measurement: &str) -> Vec<Block> {
    let directory = reader.directory(measurement).unwrap().unwrap();
    let all = TimeRange::new(i64::MIN, i64::MAX);
    reader.blocks(&directory, &ALL_SERIES, all).map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_was_written_is_read(spec in specs()) {
        let plain = spec.plain();
        let (bytes, info) = write(&spec, &plain);
        let len = bytes.len() as u64;
        let reader = open(bytes).unwrap();
        prop_assert_eq!(reader.info(), &info);
        prop_assert_eq!((info.bytes, info.sequence), (len, spec.options.sequence));
        let rows: usize = plain.iter().map(|m| m.rows.len()).sum();
        prop_assert_eq!(info.rows, rows as u64);
        for measurement in &plain {
            let found = read(&reader, &measurement.name, ALL_SERIES, TimeRange::ALL).unwrap();
            prop_assert_eq!(&found, &measurement.rows);
            let streamed =
                read(&reader.streaming(), &measurement.name, ALL_SERIES, TimeRange::ALL).unwrap();
            prop_assert_eq!(&streamed, &measurement.rows);
            let listed = reader.measurements().unwrap();
            prop_assert_eq!(listed.get(&measurement.name).is_some(), !measurement.rows.is_empty());
        }
        let report = reader.verify();
        prop_assert!(report.errors.is_empty(), "{:?}", report.errors);
        prop_assert_eq!((report.rows, report.values, report.blocks), (info.rows, info.values, info.blocks));
        prop_assert!(reader.directory("m").unwrap().is_none());
    }

    #[test]
    fn any_series_and_times_are_found(spec in specs(), seed in any::<u64>()) {
        let plain = spec.plain();
        let reader = open(write(&spec, &plain).0).unwrap();
        let mut rng = Rng(seed);
        for measurement in plain.iter().filter(|m| !m.rows.is_empty()) {
            for _ in 0..5 {
                let (series, time) = some_range(&measurement.rows, &mut rng);
                let found = read(&reader, &measurement.name, series.clone(), time).unwrap();
                prop_assert_eq!(&found, &wanted(measurement, &series, time));
                check_together(&reader, &measurement.name, series.clone(), time);
                let directory = reader.directory(&measurement.name).unwrap().unwrap();
                let keys = |b: Result<Block, crate::SegmentError>| {
                    b.map(|b: Block| (b.first(), b.last())).unwrap()
                };
                let forwards: Vec<_> = reader.blocks(&directory, &series, time).map(keys).collect();
                let mut backwards: Vec<_> =
                    reader.blocks(&directory, &series, time).rev().map(keys).collect();
                backwards.reverse();
                prop_assert_eq!(&forwards, &backwards);
                let mut both = reader.blocks(&directory, &series, time);
                let mut met = 0;
                while (if rng.below(2) == 0 { both.next() } else { both.next_back() }).is_some() {
                    met += 1;
                }
                prop_assert_eq!(met, forwards.len());
                let (one, near) = (*series.start(), rng.below(4));
                let of_one = || reader.blocks(&directory, &(one..=one), time).map(keys);
                let walked = |edge| {
                    let (reader, directory) = (&reader, &directory);
                    let mut walk = reader.walk(directory, &(one..=one), time, near);
                    let next = move || walk.next_from(edge, reader, directory).unwrap();
                    std::iter::from_fn(next).map(|block| keys(Ok(block)))
                };
                prop_assert!(walked(Edge::First).eq(of_one()));
                prop_assert!(walked(Edge::Last).eq(of_one().rev()));
            }
        }
    }

    #[test]
    fn any_rows_of_a_column_are_read(spec in specs(), seed in any::<u64>()) {
        let plain = spec.plain();
        let reader = open(write(&spec, &plain).0).unwrap();
        let mut rng = Rng(seed);
        for measurement in plain.iter().filter(|m| !m.rows.is_empty()) {
            let mut start = 0;
            for block in blocks(&reader, &measurement.name) {
                let directory = reader.directory(&measurement.name).unwrap().unwrap();
                for (field, (_, field_type)) in directory.fields().iter().enumerate() {
                    // Two ranges, one behind the other in one column.
                    let mut out = Column::new(Values::empty(*field_type));
                    let (mut expected, mut counted) = (Vec::new(), out.clone());
                    for _ in 0..2 {
                        let a = rng.below(block.rows() + 1);
                        let b = a + rng.below(block.rows() - a + 1);
                        reader.column(&block, field, a..b, &mut out).unwrap();
                        reader.presence(&block, field, a..b, &mut counted).unwrap();
                        expected.extend(
                            measurement.rows[start + a..start + b].iter().map(|r| r.2[field].clone()),
                        );
                    }
                    let found: Vec<Cell> =
                        (0..out.len()).map(|row| crate::testing::cell_at(&out, row)).collect();
                    prop_assert_eq!(found, expected);
                    prop_assert_eq!(counted.len(), out.len());
                    prop_assert!((0..out.len()).all(|row| counted.is_valid(row) == out.is_valid(row)));
                }
                start += block.rows();
            }
        }
    }

    #[test]
    fn what_is_known_of_conditions_holds_for_the_rows(spec in specs(), seed in any::<u64>()) {
        let plain = spec.plain();
        let reader = open(write(&spec, &plain).0).unwrap();
        let mut rng = Rng(seed);
        for measurement in plain.iter().filter(|m| !m.rows.is_empty()) {
            let mut start = 0;
            for block in blocks(&reader, &measurement.name) {
                let rows = &measurement.rows[start..start + block.rows()];
                start += block.rows();
                for (field, (_, field_type)) in measurement.fields.iter().enumerate() {
                    let values: Vec<_> =
                        rows.iter().filter_map(|r| scalar_of(*field_type, &r.2[field])).collect();
                    let summary = block.summary(field);
                    prop_assert_eq!(summary.map_or(0, |s| s.count as usize), values.len());
                    for (edge, row) in [(Edge::First, 0), (Edge::Last, rows.len() - 1)] {
                        let known = block.edge_bits(field, edge);
                        let kept = block.has_one_series() && *field_type != FieldType::String;
                        prop_assert_eq!(known.is_some(), kept || values.is_empty());
                        if let Some(bits) = known {
                            let mut column = Column::new(Values::empty(*field_type));
                            column.push_bits(bits);
                            prop_assert_eq!(crate::testing::cell_at(&column, 0), rows[row].2[field].clone());
                        }
                    }
                    let any_row = &measurement.rows[rng.below(measurement.rows.len())];
                    let Some(value) = scalar_of(*field_type, &any_row.2[field]) else { continue };
                    for op in CompareOp::ALL {
                        let operand = FieldOperand::Constant(value.clone());
                        let found = block.holds(&FieldCondition { field, op, operand });
                        let holds = |v: &Scalar| compare(v, &value).is_some_and(|o| op.holds(o));
                        let satisfying = values.iter().filter(|value| holds(value)).count();
                        prop_assert!(found != Holds::Never || satisfying == 0);
                        prop_assert!(found != Holds::Always || satisfying == rows.len());
                    }
                }
            }
        }
    }
}

fn compare(a: &Scalar, b: &Scalar) -> Option<std::cmp::Ordering> {
    use Scalar::{Boolean, Float, Integer, String, Unsigned};
    match (a, b) {
        (Float(a), Float(b)) => a.partial_cmp(b),
        (Integer(a), Integer(b)) => Some(a.cmp(b)),
        (Unsigned(a), Unsigned(b)) => Some(a.cmp(b)),
        (Boolean(a), Boolean(b)) => Some(a.cmp(b)),
        (String(a), String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[test]
fn dense_blocks_have_windows_that_answer_for_their_rows() {
    // 2 series of 3000 rows, one every 10 seconds: an hour has 360.
    let (mut spec, plain) = crate::testing::regular(3000, 2, 10);
    spec.options.block_rows_max = 4096;
    spec.options.window_rows_min = Some(256);
    let reader = open(write(&spec, &plain).0).unwrap();
    let mut spans = 0;
    for block in blocks(&reader, "m0") {
        let windows = reader.windows(&block).unwrap().expect("dense blocks have windows");
        let index = windows.index();
        let place = reader.load_windows(&block, [0], &windows).unwrap().expect("of each field")[0];
        let of_field = windows.field(place);
        assert_eq!(index.window_ns(), 3_600_000_000_000);
        spans += index.len();
        for series in [SeriesId(1), SeriesId(2), SeriesId(3)] {
            for span in index.spans_of(series) {
                assert_eq!(index.series(span), series);
                let rows = index.rows(span).len();
                assert_eq!(of_field.count(span, rows), rows as u64);
            }
        }
    }
    assert!(spans >= 2 * 9, "{spans}");
    assert!(reader.verify().errors.is_empty());
}

#[test]
fn long_directories_are_cut_in_chunks() {
    let (mut spec, plain) = crate::testing::regular(3000, 3, 10);
    spec.options.block_rows_max = 2;
    let reader = open(write(&spec, &plain).0).unwrap();
    let directory = reader.directory("m0").unwrap().unwrap();
    assert!(directory.chunks.len() > 3, "{}", directory.chunks.len());
    let found = read(&reader, "m0", SeriesId(2)..=SeriesId(2), TimeRange::ALL).unwrap();
    assert_eq!(found, wanted(&plain[0], &(SeriesId(2)..=SeriesId(2)), TimeRange::ALL));
    assert!(reader.verify().errors.is_empty());
}

#[test]
fn nothing_at_all_is_a_segment_too() {
    let spec = Spec { seed: 1, measurements: Vec::new(), options: crate::WriterOptions::hot(7) };
    let (bytes, info) = write(&spec, &[]);
    assert_eq!(info.rows, 0);
    assert!(info.time.is_empty() && info.series.0 > info.series.1);
    let reader = open(bytes).unwrap();
    assert!(reader.measurements().unwrap().entries().is_empty());
    assert!(reader.verify().errors.is_empty());
}

#[test]
fn times_of_long_series_are_found_without_reading_all() {
    // Gaps, so that guessing by proportion misses; two series, so that blocks are shared.
    let (mut spec, mut plain) = crate::testing::regular(20_000, 2, 10);
    for row in plain[0].rows.iter_mut().filter(|row| row.1 % 100_000_000_000 > 60_000_000_000) {
        row.1 += 3;
    }
    let late = plain[0].rows[15_000].1;
    for row in plain[0].rows.iter_mut().filter(|row| row.1 > late) {
        row.1 += 1 << 50;
    }
    let mut rng = Rng(5);
    for block_rows_max in [50_000, 12_000] {
        spec.options.block_rows_max = block_rows_max;
        let reader = open(write(&spec, &plain).0).unwrap();
        for _ in 0..50 {
            let (series, time) = some_range(&plain[0].rows, &mut rng);
            let found = read(&reader, "m0", series.clone(), time).unwrap();
            assert_eq!(found, wanted(&plain[0], &series, time));
            check_together(&reader, "m0", series, time);
        }
    }
}

#[test]
fn a_removed_segment_leaves_the_cache_with_its_last_reader() {
    let (spec, plain) = crate::testing::regular(500, 2, 10);
    let cache = Arc::new(platform::PageCache::new(1 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let other = reader.clone();
    assert_eq!(read(&reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
    reader.set_removed();
    drop(reader);
    assert!(cache.stats().entries > 0);
    assert_eq!(read(&other, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
    drop(other);
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn streaming_adds_no_pages_to_the_cache() {
    let (spec, plain) = crate::testing::regular(500, 2, 10);
    let cache = Arc::new(platform::PageCache::new(1 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap().streaming();
    assert_eq!(read(&reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
    assert_eq!(cache.stats().entries, 2, "the list and the directory");
}

#[test]
fn parts_of_tight_pages_are_thawed_when_they_are_read_again() {
    let (mut spec, mut plain) = crate::testing::regular(20_000, 1, 10);
    // What has missing rows is read in pieces.
    plain[0].rows.iter_mut().for_each(|(_, _, cells)| cells[1] = Cell::Number(7));
    spec.options = crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
    let cache = Arc::new(platform::PageCache::new(8 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let part = |from: usize| {
        let time = TimeRange::new(plain[0].rows[from].1, plain[0].rows[from + 300].1);
        let found = read(&reader, "m0", ALL_SERIES, time).unwrap();
        assert_eq!(found, wanted(&plain[0], &ALL_SERIES, time));
        cache.stats().bytes_used
    };
    let row_is_there = || {
        let fields = [(Some(0), plain[0].fields[0].1)];
        reader.row(&blocks(&reader, "m0")[0], &fields, 9, &mut Vec::new()).unwrap()
    };
    // The first look leaves marks; seven more go on from them.
    let once = part(16_400);
    assert!(!row_is_there());
    for from in [9_000, 8_000, 17_000, 2_000, 12_000, 300, 19_000] {
        assert_eq!(part(from), once);
    }
    let last = part(2_000);
    assert!(last > once + 5_000, "{last} bytes after {once}");
    assert!(row_is_there());
    assert_eq!(part(9_999), last, "nothing is left to do");
    assert_eq!(read(&reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
}

#[test]
fn whole_tight_pages_are_thawed_when_they_are_read_again() {
    let (mut spec, plain) = crate::testing::regular(20_000, 1, 10);
    spec.options = crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
    let cache = Arc::new(platform::PageCache::new(8 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let all = |reader: &SegmentReader| {
        assert_eq!(read(reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
        cache.stats().bytes_used
    };
    let once = all(&reader);
    for _ in 0..4 {
        assert_eq!(all(&reader.streaming()), once, "who reads once leaves nothing behind");
    }
    assert_eq!([all(&reader), all(&reader)], [once; 2]);
    let thawed = all(&reader);
    assert!(thawed > once + 5_000, "{thawed} bytes after {once}");
    assert_eq!(all(&reader), thawed, "nothing is left to do");
}

#[test]
fn irregular_times_are_thawed_when_they_are_read_again_or_written() {
    // Two series in one block, whose rows come a little late, or not at all.
    let (mut spec, mut plain) = crate::testing::regular(3000, 2, 10);
    spec.options = crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
    let mut rng = Rng(11);
    plain[0].rows.iter_mut().for_each(|row| row.1 += rng.below(90_000_000) as i64);
    plain[0].rows.retain(|_| rng.below(20) > 0);
    for bytes_max in [0, usize::MAX] {
        let cache = Arc::new(platform::PageCache::new(8 << 20));
        let reader = write_thawed(&spec, &plain, &cache, bytes_max);
        let block = &blocks(&reader, "m0")[0];
        let look = |from: usize| {
            let mut times = Vec::new();
            reader.times(block, from..from + 50, &mut times).unwrap();
            let wanted = plain[0].rows[from..from + 50].iter().map(|row| row.1);
            assert!(times.into_iter().eq(wanted), "rows from {from}");
            cache.stats().bytes_used
        };
        let once = look(900);
        (0..7).for_each(|n| assert_eq!(look(n * 400), once));
        let ninth = look(4000);
        assert_eq!(ninth > once + 10_000, bytes_max == 0, "{ninth} bytes after {once}");
        assert_eq!(look(5123), ninth, "nothing is left to do");
        let time = TimeRange::new(plain[0].rows[700].1, plain[0].rows[2100].1);
        let found = read(&reader, "m0", SeriesId(2)..=SeriesId(2), time).unwrap();
        assert_eq!(found, wanted(&plain[0], &(SeriesId(2)..=SeriesId(2)), time));
    }
}

#[test]
fn times_that_keep_their_step_are_learned_when_all_are_read() {
    // Two series in one block, each with a row a step.
    let (mut spec, plain) = crate::testing::regular(3000, 2, 10);
    spec.options = crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
    let reader = open(write(&spec, &plain).0).unwrap();
    let block = &blocks(&reader, "m0")[0];
    let (rows, time) = (0..3000, TimeRange::new(plain[0].rows[7].1, plain[0].rows[9].1));
    let found = |rows| reader.calculated_rows(block, rows, time).unwrap().map(|found| found.rows);
    assert_eq!(found(rows.clone()), None);
    reader.times(block, 0..100, &mut Vec::new()).unwrap();
    assert_eq!(found(rows.clone()), None, "some times were read");
    reader.times(block, 0..block.rows(), &mut Vec::new()).unwrap();
    assert_eq!(found(rows), Some(7..10));
}

#[test]
fn regular_times_are_remembered_but_not_by_whoever_reads_everything_once() {
    let (spec, plain) = crate::testing::regular(9_000, 1, 10);
    let cache = Arc::new(platform::PageCache::new(8 << 20));
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
    let reader = SegmentReader::over(file, Arc::clone(&cache)).unwrap();
    let block = blocks(&reader, "m0").swap_remove(0);
    let looks = || {
        let stats = cache.stats();
        stats.hits + stats.misses
    };
    let time = TimeRange { min: block.first().1 + 5, max: block.first().1 + 3_000_000_000_000 };
    let found = || {
        let before = looks();
        let rows = reader.rows_in(&block, 0..block.rows(), time).unwrap();
        let end = reader.end_row(&block, time, Edge::Last).unwrap();
        assert_eq!((rows, end), (1..301, Some((300, time.max))));
        looks() - before
    };
    let whole = |reader: &SegmentReader| {
        let (before, mut times) = (looks(), Vec::new());
        reader.times(&block, 0..block.rows(), &mut times).unwrap();
        let rows = &plain[0].rows[..block.rows()];
        assert!(times.iter().eq(rows.iter().map(|(_, time, _)| time)));
        looks() - before
    };
    assert!(whole(&reader.streaming()) > 0);
    assert!(found() > 0, "the streaming reader left nothing behind");
    assert_eq!((found(), whole(&reader)), (0, 0));
    assert!(whole(&reader.streaming()) > 0, "a check reads the page");
}

#[test]
fn parts_of_segments_just_written_are_read_from_the_cache_alone() {
    // More fields than share an entry of the cache.
    let (mut spec, mut plain) = crate::testing::regular(20_000, 2, 10);
    spec.options = crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
    spec.measurements[0].0 = 20;
    plain[0].fields = (0..20).map(|f| (format!("f{f:02}").into(), FieldType::Integer)).collect();
    let mut rng = Rng(7);
    for (at, (_, _, cells)) in plain[0].rows.iter_mut().enumerate() {
        // So noisy that they are entropy-coded, and every fourth in runs.
        let mut number = |f| match f % 4 {
            3 => (at / 9 * 7919 % 50) as u64,
            _ => (rng.below(10) * rng.below(10)) as u64,
        };
        *cells = (0..20).map(|f| Cell::Number(number(f))).collect();
    }
    let written = |bytes_max| {
        let cache = Arc::new(platform::PageCache::new(64 << 20));
        (write_thawed(&spec, &plain, &cache, bytes_max), cache)
    };
    let (reader, cache) = written(usize::MAX);
    let all = cache.stats().bytes_used;
    let blocks = blocks(&reader, "m0");
    let before = cache.stats();
    assert_eq!(blocks.len(), 2);
    for (block, rows) in blocks.iter().zip(plain[0].rows.chunks(20_000)) {
        let fields: Vec<_> = (0..20).map(|f| (Some(f), FieldType::Integer)).collect();
        let mut columns = vec![Column::new(Values::empty(FieldType::Integer)); 20];
        let part = 1_000..1_700;
        reader.columns(block, std::slice::from_ref(&part), &fields, &mut columns).unwrap();
        for (field, column) in columns.iter().enumerate() {
            let found: Vec<Cell> =
                (0..700).map(|row| crate::testing::cell_at(column, row)).collect();
            let wanted = rows[1_000..1_700].iter().map(|row| row.2[field].clone());
            assert_eq!(found, wanted.collect::<Vec<_>>());
        }
        // In another order, and one that the measurement does not have.
        let numbers = (0..20).rev().map(Some).chain([None]);
        let fields: Vec<_> = numbers.map(|field| (field, FieldType::Integer)).collect();
        let mut found = Vec::new();
        for row in (0..20_000).step_by(611).chain([19_999]) {
            assert!(reader.row(block, &fields, row, &mut found).unwrap());
            let wanted = rows[row].2.iter().rev().chain([&Cell::Missing]);
            let number = |bits: &Option<u64>| bits.map_or(Cell::Missing, Cell::Number);
            assert!(found.iter().map(number).eq(wanted.cloned()), "row {row}");
        }
        assert!(!reader.clone().streaming().row(block, &fields, 0, &mut found).unwrap());
    }
    let after = cache.stats();
    assert_eq!((after.misses, after.bytes_used), (before.misses, before.bytes_used));
    assert_eq!(read(&reader, "m0", ALL_SERIES, TimeRange::ALL).unwrap(), plain[0].rows);
    // What is read as a whole comes from there too, unless the file is to be checked.
    let misses = |reader: &SegmentReader| {
        let (before, mut column) =
            (cache.stats().misses, Column::new(Values::empty(FieldType::Integer)));
        reader.column(&blocks[0], 3, 0..blocks[0].rows(), &mut column).unwrap();
        assert_eq!(crate::testing::cell_at(&column, 77), plain[0].rows[77].2[3]);
        cache.stats().misses - before
    };
    assert_eq!(misses(&reader.streaming()), 0);
    assert!(misses(&reader.checking()) > 0);
    // No more than was said, in blocks.
    let used = |bytes_max| written(bytes_max).1.stats().bytes_used;
    assert_eq!(used(0), 0);
    assert!((all / 3..all * 2 / 3).contains(&used(1)), "one block of two");
    // What is in the cache goes with the file, and with one that is not finished.
    reader.set_removed();
    drop((reader, blocks));
    assert_eq!(cache.stats().bytes_used, 0);
    let file = Arc::new(crate::memory::MemoryFile::new("test.seg", Vec::new()));
    let mut writer = crate::SegmentWriter::over(file, crate::WriterOptions::hot(3));
    writer.thaw_into(&cache, usize::MAX);
    let writer = crate::testing::write_rows(writer, &spec, &plain);
    assert!(cache.stats().bytes_used > all / 3, "blocks were written");
    drop(writer);
    assert_eq!(cache.stats().bytes_used, 0);
}

#[test]
fn parts_are_read_together_as_they_are_one_by_one() {
    // More fields than thawed pages have in one entry of the cache, of which one is missing now and then.
    let (mut spec, mut plain) = crate::testing::regular(20_000, 1, 10);
    spec.measurements[0].0 = 20;
    plain[0].fields = (0..20).map(|f| (format!("f{f:02}").into(), FieldType::Integer)).collect();
    for (at, (_, _, cells)) in plain[0].rows.iter_mut().enumerate() {
        cells.extend((2..20).map(|f| Cell::Number(((at * f) ^ (at / 7)) as u64 % 90)));
    }
    for cold in [false, true] {
        if cold {
            spec.options =
                crate::WriterOptions { window_rows_min: None, ..crate::WriterOptions::cold(3) };
        }
        let cache = Arc::new(platform::PageCache::new(8 << 20));
        let file = Arc::new(crate::memory::MemoryFile::new("test.seg", write(&spec, &plain).0));
        let reader = SegmentReader::over(file, cache).unwrap();
        let block = blocks(&reader, "m0").swap_remove(0);
        let rows = block.rows();
        let parts = [3..40, 40..40, rows / 2..rows / 2 + 700, rows - 5..rows];
        let empty = |field| Column::new(Values::empty(block.field_type(field)));
        let alone = |field: usize| {
            let mut column = empty(field);
            // Whole, so that nothing is thawed.
            reader.column(&block, field, 0..block.rows(), &mut column).unwrap();
            parts.clone().map(|rows| {
                let mut part = empty(field);
                part.extend_from(&column, rows);
                part
            })
        };
        // As the pages are, then from marks, then thawed, then found so; some fields a time later than the
        // others.
        for fields in [2..20, 0..20].into_iter().chain(std::iter::repeat_n(0..20, 12)) {
            let type_of = |field: usize| (Some(field), block.field_type(field));
            let fields: Vec<_> = fields.map(type_of).chain([(None, block.field_type(0))]).collect();
            let mut together: Vec<Column> = fields
                .iter()
                .flat_map(|(_, of)| vec![Column::new(Values::empty(*of)); parts.len()])
                .collect();
            reader.columns(&block, &parts, &fields, &mut together).unwrap();
            let missing = together.split_off((fields.len() - 1) * parts.len());
            assert!(missing.iter().zip(&parts).all(|(column, rows)| column.len() == rows.len()));
            assert!(missing.iter().all(|column| (0..column.len()).all(|at| !column.is_valid(at))));
            for ((field, _), together) in fields.iter().zip(together.chunks(parts.len())) {
                let Some(field) = *field else { panic!("the last was taken") };
                for (together, alone) in together.iter().zip(&alone(field)) {
                    assert_eq!(together.values, alone.values);
                    assert!((0..alone.len()).all(|at| together.is_valid(at) == alone.is_valid(at)));
                }
            }
        }
    }
}

#[test]
fn texts_that_are_too_long_to_be_read_together_are_right_too() {
    let (mut spec, mut plain) = crate::testing::regular(900, 1, 10);
    spec.options = crate::WriterOptions::cold(3);
    let mut rng = Rng(7);
    let mut text = || Cell::Text((0..1000).map(|_| (33 + rng.below(90)) as u8 as char).collect());
    let types = [FieldType::String, FieldType::String, FieldType::String, FieldType::Integer];
    plain[0].fields =
        types.iter().enumerate().map(|(f, of)| (format!("f{f}").into(), *of)).collect();
    for (at, (_, _, cells)) in plain[0].rows.iter_mut().enumerate() {
        *cells = vec![text(), text(), text(), Cell::Number(at as u64 * 7)];
    }
    let reader = open(write(&spec, &plain).0).unwrap();
    let block = blocks(&reader, "m0").swap_remove(0);
    assert_eq!(block.rows(), 900);
    let bytes = |field| block.page_place(field).unwrap().1.extent.len as usize;
    let together = super::fields::READ_TOGETHER_BYTES;
    assert!(bytes(0) < together && bytes(0) + bytes(1) > together, "{}", bytes(0));
    for wanted in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]] {
        let mut fields: Vec<_> = wanted.map(|field| (Some(field), block.field_type(field))).into();
        fields.insert(2, (None, block.field_type(0)));
        let empty = |(_, of): &(Option<usize>, FieldType)| Column::new(Values::empty(*of));
        let mut columns: Vec<Column> = fields.iter().map(empty).collect();
        let part = 100..800;
        reader.columns(&block, std::slice::from_ref(&part), &fields, &mut columns).unwrap();
        for ((field, _), column) in fields.into_iter().zip(&columns) {
            let cell = |row: &PlainRow| field.map_or(Cell::Missing, |field| row.2[field].clone());
            let found: Vec<Cell> =
                (0..700).map(|row| crate::testing::cell_at(column, row)).collect();
            assert_eq!(found, plain[0].rows[100..800].iter().map(cell).collect::<Vec<_>>());
        }
    }
}
