use std::sync::Arc;

use model::{Column, FieldType, Name, SeriesId, TimeRange, Values};

use crate::memory::MemoryFile;
use crate::testing::{ALL_SERIES, open, read, regular, write};
use crate::{SegmentRows, SegmentWriter, WriterOptions};

fn fields() -> Vec<(Name, FieldType)> {
    vec![("f".into(), FieldType::Integer)]
}

fn rows(runs: &[(u64, u32)], times: &[i64]) -> SegmentRows {
    SegmentRows {
        runs: runs.iter().map(|(s, n)| (SeriesId(*s), *n)).collect(),
        times: times.to_vec(),
        columns: vec![Column::new(Values::Integer(times.to_vec()))],
    }
}

fn writer() -> SegmentWriter {
    let file = Arc::new(MemoryFile::new("test.seg", Vec::new()));
    let mut writer = SegmentWriter::over(file, WriterOptions::hot(1));
    writer.begin_measurement(&"m".into(), &fields()).unwrap();
    writer
}

#[test]
fn a_series_may_go_on_in_the_next_rows() {
    let mut writer = writer();
    writer.append(&rows(&[(1, 1), (2, 2)], &[5, 1, 2])).unwrap();
    writer.append(&rows(&[(2, 1), (9, 1)], &[3, -7])).unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.rows, info.values, info.blocks), (5, 5, 1));
    assert_eq!(info.time, TimeRange::new(-7, 5));
    assert_eq!(info.series, (SeriesId(1), SeriesId(9)));
}

#[test]
#[should_panic(expected = "BUG: rows out of order")]
fn the_same_row_twice_is_a_bug() {
    let mut writer = writer();
    writer.append(&rows(&[(1, 1)], &[5])).unwrap();
    drop(writer.append(&rows(&[(1, 1)], &[5])));
}

#[test]
#[should_panic(expected = "BUG: times of a series out of order")]
fn falling_times_are_a_bug() {
    drop(writer().append(&rows(&[(1, 3)], &[5, 7, 6])));
}

#[test]
#[should_panic(expected = "BUG: measurements out of order")]
fn measurements_must_ascend() {
    drop(writer().begin_measurement(&"m".into(), &fields()));
}

#[test]
#[should_panic(expected = "BUG: column f is not integer")]
fn a_column_of_another_type_is_a_bug() {
    let mut wrong = rows(&[(1, 1)], &[5]);
    wrong.columns = vec![Column::new(Values::Float(vec![0.0]))];
    drop(writer().append(&wrong));
}

#[test]
fn text_limits_blocks_and_long_values_get_their_own() {
    let mut options = WriterOptions::hot(1);
    options.block_text_bytes_max = 100;
    let file = Arc::new(MemoryFile::new("test.seg", Vec::new()));
    let mut writer = SegmentWriter::over(Arc::clone(&file) as _, options);
    let fields = vec![("s".into(), FieldType::String)];
    writer.begin_measurement(&"m".into(), &fields).unwrap();
    let long = "x".repeat(1000);
    let texts = ["a", "b", &long, "c", &long[..60], &long[..60], "d"];
    for (at, text) in texts.iter().enumerate() {
        let rows = SegmentRows {
            runs: vec![(SeriesId(at as u64), 1)],
            times: vec![0],
            columns: vec![Column::new(Values::String([*text].into_iter().collect()))],
        };
        writer.append(&rows).unwrap();
    }
    assert_eq!(writer.finish().unwrap().blocks, 4);
    let reader = open(file.bytes()).unwrap();
    assert_eq!(read(&reader, "m", ALL_SERIES, TimeRange::ALL).unwrap().len(), texts.len());
    assert!(reader.verify().errors.is_empty());
}

#[test]
fn blocks_end_with_series_where_that_costs_little() {
    let (mut spec, plain) = regular(95, 6, 10);
    spec.options.block_rows_max = 100;
    let (bytes, info) = write(&spec, &plain);
    assert_eq!(info.blocks, 6);
    let reader = open(bytes).unwrap();
    let directory = reader.directory("m0").unwrap().unwrap();
    for block in reader.blocks(&directory, &ALL_SERIES, TimeRange::ALL) {
        let block = block.unwrap();
        assert!(block.has_one_series(), "{:?}", (block.first(), block.last(), block.rows()));
    }
}

#[test]
fn a_field_without_values_takes_no_page() {
    let mut writer = writer();
    let mut missing = rows(&[(1, 2)], &[5, 6]);
    missing.columns[0].validity = Some(model::Bitmap::filled(2, false));
    writer.append(&missing).unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.rows, info.values), (2, 0));
}
