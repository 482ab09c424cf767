use std::sync::Arc;

use model::{Column, FieldType, Name, SeriesId, TimeRange, Values};

use crate::memory::MemoryFile;
use crate::testing::{ALL_SERIES, open, read, regular, write};
use crate::{SegmentRows, SegmentWriter, SparseColumn, WriterOptions};

fn fields() -> Vec<(Name, FieldType)> {
    vec![("f".into(), FieldType::Integer)]
}

fn rows(runs: &[(u64, u32)], times: &[i64]) -> SegmentRows {
    SegmentRows {
        runs: runs.iter().map(|(s, n)| (SeriesId(*s), *n)).collect(),
        times: times.to_vec(),
        columns: vec![SparseColumn::new(Values::Integer(times.to_vec()))],
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
    wrong.columns = vec![SparseColumn::new(Values::Float(vec![0.0]))];
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
            columns: vec![SparseColumn::new(Values::String([*text].into_iter().collect()))],
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
    missing.columns[0] = SparseColumn::empty(FieldType::Integer);
    missing.columns[0].present = Some(model::Bitmap::filled(2, false));
    writer.append(&missing).unwrap();
    let info = writer.finish().unwrap();
    assert_eq!((info.rows, info.values), (2, 0));
}

/// The bytes of the example in the description of the format.
fn documented() -> Vec<u8> {
    let page = include_str!("../../../../docs/formats/segment.md");
    let (_, from) = page.split_once("```hex\n").unwrap();
    let (block, _) = from.split_once("```").unwrap();
    let digits: String =
        block.lines().map(|line| line.split('|').next().unwrap().replace(' ', "")).collect();
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_example_in_the_documents_is_what_is_written() {
    let file = Arc::new(MemoryFile::new("test.seg", Vec::new()));
    let mut writer = SegmentWriter::over(Arc::clone(&file) as _, WriterOptions::hot(258));
    let fields = [("idle".into(), FieldType::Integer), ("up".into(), FieldType::Boolean)];
    writer.begin_measurement(&"cpu".into(), &fields).unwrap();
    let up = Column {
        values: Values::Boolean([true, false, true].into_iter().collect()),
        validity: Some([true, false, true].into_iter().collect()),
    };
    let rows = SegmentRows {
        runs: vec![(SeriesId(7), 2), (SeriesId(9), 1)],
        times: vec![1000, 2000, 1500],
        columns: vec![SparseColumn::new(Values::Integer(vec![90, 92, 88])), up.into()],
    };
    writer.append(&rows).unwrap();
    writer.begin_measurement(&"mem".into(), &[("free".into(), FieldType::Integer)]).unwrap();
    let rows = SegmentRows {
        runs: vec![(SeriesId(8), 2)],
        times: vec![1000, 2000],
        columns: vec![SparseColumn::new(Values::Integer(vec![5, 7]))],
    };
    writer.append(&rows).unwrap();
    writer.finish().unwrap();
    assert_eq!(hex(&file.bytes()), hex(&documented()));
}

#[test]
#[should_panic(expected = "BUG: a segment is written on after it failed")]
fn a_failed_writer_cannot_finish() {
    let disk = platform::SimDisk::new(1, platform::FaultConfig::default());
    let mut writer =
        SegmentWriter::create(&disk, "/1.seg".as_ref(), WriterOptions::hot(1)).unwrap();
    writer.begin_measurement(&"m".into(), &fields()).unwrap();
    disk.set_faults(platform::FaultConfig {
        write: platform::Fault::From(1),
        ..platform::FaultConfig::default()
    });
    let mut noise = crate::testing::Rng(1);
    for series in 0..100 {
        let mut many = rows(&[(series, 10_000)], &(0..10_000).collect::<Vec<i64>>());
        let values = (0..10_000).map(|_| noise.next() as i64).collect();
        many.columns = vec![SparseColumn::new(Values::Integer(values))];
        if writer.append(&many).is_err() {
            drop(writer.finish());
            return;
        }
    }
}
