//! Made-up segments for tests, kept twice: as a file and as plain rows.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, FieldType, Name, Scalar, SeriesId, TimeRange, Values};
use platform::PageCache;
use proptest::prelude::*;

use crate::memory::MemoryFile;
use crate::{
    Block, Directory, Edge, SegmentError, SegmentInfo, SegmentReader, SegmentRows, SegmentWriter,
    SparseColumn, WriterOptions,
};

/// A value by its bits, so that NaNs and signed zeros can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Missing,
    Number(u64),
    Text(String),
}

/// One row of the plain copy.
pub(crate) type PlainRow = (SeriesId, i64, Vec<Cell>);

#[derive(Clone, Debug)]
pub(crate) struct PlainMeasurement {
    pub(crate) name: Name,
    pub(crate) fields: Vec<(Name, FieldType)>,
    pub(crate) rows: Vec<PlainRow>,
}

/// Everything that decides what a made-up segment looks like.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) seed: u64,
    pub(crate) measurements: Vec<(usize, usize)>,
    pub(crate) options: WriterOptions,
}

/// Repeatable numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    let measurement = (0usize..8, prop_oneof![0usize..20, 0usize..700]);
    let effort = prop_oneof![Just(codec::Effort::Hot), Just(codec::Effort::Cold)];
    let windows = prop_oneof![Just(None), (1u32..40).prop_map(Some)];
    let shape = (1u32..300, 1u32..4000, effort.clone(), effort, windows);
    (any::<u64>(), prop::collection::vec(measurement, 0..4), shape).prop_map(
        |(seed, measurements, (rows_max, text_max, effort, text_effort, window_rows_min))| Spec {
            seed,
            measurements,
            options: WriterOptions {
                block_rows_max: rows_max,
                block_text_bytes_max: text_max,
                effort,
                text_effort,
                window_rows_min,
                cached_bytes_max: seed,
                sequence: seed ^ 1,
            },
        },
    )
}

impl Spec {
    pub(crate) fn plain(&self) -> Vec<PlainMeasurement> {
        let mut rng = Rng(self.seed);
        let make = |(at, (fields, rows)): (usize, &(usize, usize))| {
            let mut measurement = PlainMeasurement {
                name: format!("m{at}").into(),
                fields: (0..*fields)
                    .map(|f| (format!("f{f}").into(), FieldType::ALL[rng.below(5)]))
                    .collect(),
                rows: Vec::new(),
            };
            fill(&mut measurement, *rows, &mut rng);
            measurement
        };
        self.measurements.iter().enumerate().map(make).collect()
    }
}

fn fill(measurement: &mut PlainMeasurement, rows: usize, rng: &mut Rng) {
    // Per field: how often a value is missing, and how wild the values are.
    let habits: Vec<(usize, usize)> = measurement
        .fields
        .iter()
        .map(|_| ([0, 0, 1, 50, 99][rng.below(5)], rng.below(3)))
        .collect();
    let step = [1, 1_000_000_000, 10_000_000_000, 1 << 58][rng.below(4)];
    let rows_per_series = 1 + rng.below(200);
    let mut series = [0, 1, u64::MAX - 800][rng.below(3)];
    let mut time = 0i64;
    let mut left = 0;
    for _ in 0..rows {
        let jump = if rng.below(10) == 0 { step * 3 + 1 } else { step };
        match time.checked_add(jump) {
            Some(next) if left > 0 => time = next,
            _ => {
                series += 1;
                left = 1 + rng.below(rows_per_series);
                time =
                    if rng.below(20) == 0 { model::MIN_TIME_NS } else { 1_700_000_000_000_000_000 };
            }
        }
        left -= 1;
        let cells =
            measurement.fields.iter().zip(&habits).map(|((_, field_type), (gaps, wild))| {
                if rng.below(100) < *gaps { Cell::Missing } else { cell(*field_type, *wild, rng) }
            });
        let cells = cells.collect();
        measurement.rows.push((SeriesId(series), time, cells));
    }
}

fn cell(field_type: FieldType, wild: usize, rng: &mut Rng) -> Cell {
    let any = rng.next();
    match (field_type, wild) {
        (FieldType::Boolean, _) => Cell::Number(any & 1),
        (FieldType::String, 0) => Cell::Text(["", "a", "running", "stopped"][rng.below(4)].into()),
        (FieldType::String, _) => Cell::Text("\u{e4}x\u{1f600}".repeat(rng.below(30))),
        (FieldType::Float, 0) => Cell::Number(((any % 1000) as f64 / 10.0).to_bits()),
        (FieldType::Float, 1) => {
            let odd = [0.0, -0.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, 1.5];
            Cell::Number(odd[rng.below(6)].to_bits())
        }
        (_, 0) => Cell::Number(any % 100),
        (_, 1) => Cell::Number([0, 1, i64::MAX as u64, i64::MIN as u64, u64::MAX][rng.below(5)]),
        // Among floats these have NaNs of all kinds.
        _ => Cell::Number(any | if rng.below(4) == 0 { 0x7ff0 << 48 } else { 0 }),
    }
}

/// Some plain rows as a writer takes them.
pub(crate) fn columns_of(fields: &[(Name, FieldType)], rows: &[PlainRow]) -> SegmentRows {
    let mut out = SegmentRows::empty(&[]);
    let mut columns: Vec<Column> =
        fields.iter().map(|(_, t)| Column::new(Values::empty(*t))).collect();
    for (series, time, cells) in rows {
        match out.runs.last_mut() {
            Some((last, n)) if last == series => *n += 1,
            _ => out.runs.push((*series, 1)),
        }
        out.times.push(*time);
        for (cell, column) in cells.iter().zip(&mut columns) {
            push_cell(column, cell);
        }
    }
    out.columns = columns.into_iter().map(SparseColumn::from).collect();
    out
}

fn push_cell(column: &mut Column, cell: &Cell) {
    match (cell, &mut column.values) {
        (Cell::Missing, _) => return column.extend_missing(1),
        (Cell::Number(bits), Values::Integer(v)) => v.push(*bits as i64),
        (Cell::Number(bits), Values::Unsigned(v)) => v.push(*bits),
        (Cell::Number(bits), Values::Float(v)) => v.push(f64::from_bits(*bits)),
        (Cell::Number(bits), Values::Boolean(v)) => v.push(*bits != 0),
        (Cell::Text(text), Values::String(v)) => v.push(text),
        _ => panic!("BUG: a cell of another type"),
    }
    if let Some(validity) = &mut column.validity {
        validity.push(true);
    }
}

pub(crate) fn cell_at(column: &Column, row: usize) -> Cell {
    if !column.is_valid(row) {
        return Cell::Missing;
    }
    match &column.values {
        Values::Integer(v) => Cell::Number(v[row] as u64),
        Values::Unsigned(v) => Cell::Number(v[row]),
        Values::Float(v) => Cell::Number(v[row].to_bits()),
        Values::Boolean(v) => Cell::Number(u64::from(v.get(row))),
        Values::String(v) => Cell::Text(v.get(row).into()),
        _ => panic!("BUG: not a column of a field"),
    }
}

pub(crate) fn scalar_of(field_type: FieldType, cell: &Cell) -> Option<Scalar> {
    match cell {
        Cell::Missing => None,
        Cell::Text(text) => Some(Scalar::String(text.as_str().into())),
        Cell::Number(bits) => crate::numbers::scalar(field_type, *bits),
    }
}

/// Writes a segment, its rows in pieces of any size.
pub(crate) fn write(spec: &Spec, plain: &[PlainMeasurement]) -> (Vec<u8>, SegmentInfo) {
    let file = Arc::new(MemoryFile::new("test.seg", Vec::new()));
    let writer = SegmentWriter::over(Arc::clone(&file) as _, spec.options);
    let info = write_rows(writer, spec, plain).finish().unwrap();
    (file.bytes(), info)
}

/// Writes a segment, so many bytes of whose thawed pages go in the cache.
pub(crate) fn write_thawed(
    spec: &Spec,
    plain: &[PlainMeasurement],
    cache: &Arc<PageCache>,
    bytes_max: usize,
) -> SegmentReader {
    let file = Arc::new(MemoryFile::new("test.seg", Vec::new()));
    let mut writer = SegmentWriter::over(file, spec.options);
    writer.thaw_into(cache, bytes_max);
    let writer = write_rows(writer, spec, plain);
    writer.finish_and_open(Arc::clone(cache)).unwrap().1.unwrap()
}

pub(crate) fn write_rows(
    mut writer: SegmentWriter,
    spec: &Spec,
    plain: &[PlainMeasurement],
) -> SegmentWriter {
    let mut rng = Rng(spec.seed);
    for measurement in plain {
        writer.begin_measurement(&measurement.name, &measurement.fields).unwrap();
        let mut left = measurement.rows.as_slice();
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(1 + rng.below(400)));
            writer.append(&columns_of(&measurement.fields, now)).unwrap();
            left = later;
        }
    }
    writer
}

pub(crate) fn open(bytes: Vec<u8>) -> Result<SegmentReader, SegmentError> {
    let cache = Arc::new(PageCache::new(1 << 20));
    SegmentReader::over(Arc::new(MemoryFile::new("test.seg", bytes)), cache)
}

/// Checks that rows of several series which are read at once are those of each.
pub(crate) fn check_together(
    reader: &SegmentReader,
    measurement: &str,
    series: std::ops::RangeInclusive<SeriesId>,
    time: TimeRange,
) {
    let directory = reader.directory(measurement).unwrap().unwrap();
    for block in reader.blocks(&directory, &series, time) {
        let block = block.unwrap();
        let runs = reader.runs(&block).unwrap();
        let wanted = runs.iter().filter(|(id, _)| series.contains(id)).map(|(_, rows)| rows);
        check_parts(reader, &directory, &block, (&wanted.collect::<Vec<_>>(), time)).unwrap();
    }
}

fn check_parts(
    reader: &SegmentReader,
    directory: &Directory,
    block: &Block,
    (series, time): (&[Range<usize>], TimeRange),
) -> Result<(), SegmentError> {
    let (mut times, mut of_each) = (vec![0], vec![0]);
    let parts = reader.times_in(block, series, time, &mut times)?;
    for (rows, part) in series.iter().zip(&parts) {
        let found = reader.times_in(block, std::slice::from_ref(rows), time, &mut of_each)?;
        assert_eq!(found.as_slice(), std::slice::from_ref(part));
    }
    assert_eq!(times, of_each);
    let fields = directory.fields().iter().enumerate().map(|(at, (_, t))| (Some(at), *t));
    let fields: Vec<(Option<usize>, FieldType)> = fields.collect();
    let empty = |(_, t): &(Option<usize>, FieldType)| Column::new(Values::empty(*t));
    let mut joined: Vec<Column> = fields.iter().map(empty).collect();
    let mut each = Vec::new();
    fields.iter().for_each(|field| each.extend(parts.iter().map(|_| empty(field))));
    reader.columns(block, &parts, &fields, &mut joined)?;
    reader.columns(block, &parts, &fields, &mut each)?;
    for (at, (joined, field)) in joined.iter().zip(&fields).enumerate() {
        let mut all = empty(field);
        let of_field = &each[at * parts.len()..(at + 1) * parts.len()];
        of_field.iter().for_each(|part| all.extend_from(part, 0..part.len()));
        let cells =
            |column: &Column| (0..column.len()).map(|row| cell_at(column, row)).collect::<Vec<_>>();
        assert_eq!(cells(joined), cells(&all), "in one column and in several");
    }
    Ok(())
}

/// The rows of a range of blocks that a reader finds.
pub(crate) fn read(
    reader: &SegmentReader,
    measurement: &str,
    series: std::ops::RangeInclusive<SeriesId>,
    time: TimeRange,
) -> Result<Vec<PlainRow>, SegmentError> {
    let mut out = Vec::new();
    let Some(directory) = reader.directory(measurement)? else { return Ok(out) };
    for block in reader.blocks(&directory, &series, time) {
        let block = block?;
        let runs = reader.runs(&block)?;
        check_without_gaps(&reader.streaming(), &directory, &block)?;
        for (id, rows) in runs.iter().filter(|(id, _)| series.contains(id)) {
            let mut times = vec![0];
            let found = reader.rows_in(&block, rows.clone(), time)?;
            let rows = reader.times_in(&block, &[rows], time, &mut times)?.remove(0);
            assert_eq!(rows, found, "two ways to the same rows");
            let times = &times[1..];
            if block.has_one_series() {
                let first = reader.end_row(&block, time, Edge::First)?;
                let last = reader.end_row(&block, time, Edge::Last)?;
                assert_eq!(first, times.first().map(|time| (rows.start, *time)), "the first row");
                assert_eq!(last, times.last().map(|time| (rows.end - 1, *time)), "the last row");
            }
            let empty = |(_, t): &(Name, FieldType)| Column::new(Values::empty(*t));
            let mut columns: Vec<Column> = directory.fields().iter().map(empty).collect();
            for (field, column) in columns.iter_mut().enumerate() {
                reader.column(&block, field, rows.clone(), column)?;
                assert_eq!(column.len(), rows.len());
            }
            for (row, t) in times.iter().enumerate() {
                out.push((id, *t, columns.iter().map(|c| cell_at(c, row)).collect()));
            }
        }
    }
    Ok(out)
}

/// Whether columns without gaps are the columns.
fn check_without_gaps(
    reader: &SegmentReader,
    directory: &Directory,
    block: &Block,
) -> Result<(), SegmentError> {
    let fields = directory.fields().iter().enumerate().map(|(at, (_, t))| (Some(at), *t));
    let fields: Vec<_> = fields.chain([(None, FieldType::Float)]).collect();
    let sparse = reader.sparse_columns(block, &fields)?;
    assert_eq!(block.values(), sparse.iter().map(|column| column.values.len()).sum::<usize>());
    for ((field, field_type), sparse) in fields.into_iter().zip(sparse) {
        let mut column = Column::new(Values::empty(field_type));
        match field {
            Some(field) => reader.column(block, field, 0..block.rows(), &mut column)?,
            None => column.extend_missing(block.rows()),
        }
        assert_eq!(sparse.len(), block.rows());
        let SparseColumn { values, present } = sparse;
        let (values, mut next) = (Column::new(values), 0);
        for row in 0..block.rows() {
            let is_there = present.as_ref().is_none_or(|present| present.get(row));
            let cell = if is_there { cell_at(&values, next) } else { Cell::Missing };
            next += usize::from(is_there);
            assert_eq!(cell, cell_at(&column, row), "two ways to the same values");
        }
    }
    Ok(())
}

pub(crate) const ALL_SERIES: std::ops::RangeInclusive<SeriesId> = SeriesId(0)..=SeriesId(u64::MAX);

/// Series 1..=`series` of `rows` rows, one every `step_s` seconds, with two integer fields that walk
/// at random; the second misses every other value.
pub(crate) fn regular(rows: usize, series: u64, step_s: i64) -> (Spec, Vec<PlainMeasurement>) {
    let spec = Spec {
        seed: 42,
        measurements: vec![(2, rows * series as usize)],
        options: WriterOptions::hot(9),
    };
    let mut rng = Rng(7);
    let mut plain = PlainMeasurement {
        name: "m0".into(),
        fields: vec![("f0".into(), FieldType::Integer), ("f1".into(), FieldType::Integer)],
        rows: Vec::new(),
    };
    for id in 1..=series {
        let mut value = 50i64;
        for row in 0..rows {
            value = (value + rng.below(5) as i64 - 2).clamp(0, 100);
            let time = 1_700_000_000_000_000_000 + row as i64 * step_s * 1_000_000_000;
            let second = if row % 2 == 0 { Cell::Number(7) } else { Cell::Missing };
            plain.rows.push((SeriesId(id), time, vec![Cell::Number(value as u64), second]));
        }
    }
    (spec, vec![plain])
}
