//! Reading a whole segment and checking everything that is said in it.

use std::sync::Arc;

use model::{Column, FieldType, Name, TimeRange, Values};

use super::SegmentReader;
use crate::SegmentError;
use crate::directory::{Block, Directory, Edges, PageEntry};
use crate::format::{self, Extent, HEADER_LEN, MeasurementInfo, NO_SERIES};
use crate::input::Input;
use crate::numbers::{Number, Numbers};
use crate::windows::{SpanNumbers, WindowSummaries};

/// What a full check of a segment found.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Everything that is wrong, in the order of the file where it was found.
    pub errors: Vec<SegmentError>,
    /// Rows that could be read.
    pub rows: u64,
    /// Values that could be read.
    pub values: u64,
    /// Blocks that were looked at.
    pub blocks: u64,
    /// Encoded bytes of times.
    pub time_bytes: u64,
    /// Encoded bytes that say which series rows belong to.
    pub series_bytes: u64,
    /// Encoded bytes of window summaries, indexes included.
    pub window_bytes: u64,
    /// Bytes of directories, header, trailer and measurement list.
    pub directory_bytes: u64,
    /// What there is of each field of each measurement.
    pub fields: Vec<FieldStats>,
}

/// What a segment holds of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldStats {
    /// The measurement.
    pub measurement: Name,
    /// The field.
    pub field: Name,
    /// Its type.
    pub field_type: FieldType,
    /// Values that are not missing.
    pub values: u64,
    /// Encoded bytes, validity included.
    pub bytes: u64,
    /// Pages by name of their encoding.
    pub encodings: Vec<(&'static str, u64)>,
}

pub(crate) fn verify(reader: &SegmentReader) -> VerifyReport {
    let reader = reader.checking();
    let mut check =
        Check { reader: &reader, report: VerifyReport::default(), position: HEADER_LEN as u64 };
    match reader.measurements() {
        Ok(list) => {
            for measurement in list.entries() {
                check.measurement(measurement);
            }
            check.totals(list.entries());
        }
        Err(error) => check.report.errors.push(error),
    }
    let mut report = check.report;
    let pages: u64 = report.fields.iter().map(|f| f.bytes).sum();
    let data = pages + report.time_bytes + report.series_bytes + report.window_bytes;
    report.directory_bytes = reader.info().bytes.saturating_sub(data);
    report
}

struct Check<'a> {
    reader: &'a SegmentReader,
    report: VerifyReport,
    /// Where the next part of the file must start.
    position: u64,
}

impl Check<'_> {
    fn wrong(&mut self, offset: u64, what: impl Into<String>) {
        let error = SegmentError::corrupt(self.reader.path(), offset, what);
        self.report.errors.push(error);
    }

    /// Keeps the value; notes the error.
    fn note<T>(&mut self, result: Result<T, SegmentError>) -> Option<T> {
        result.map_err(|error| self.report.errors.push(error)).ok()
    }

    /// The parts of a file follow one another without a gap.
    fn starts(&mut self, offset: u64, end: u64) {
        if offset != self.position {
            let expected = self.position;
            self.wrong(offset, format!("a part of the file was expected to start at {expected}"));
        }
        self.position = end;
    }

    fn totals(&mut self, entries: &[MeasurementInfo]) {
        let info = *self.reader.info();
        let time = entries.iter().fold(TimeRange::EMPTY, |t, m| t.union(&m.time));
        let series = entries.iter().fold(NO_SERIES, |s, m| format::series_union(s, m.series));
        let rows: u64 = entries.iter().map(|m| m.rows).sum();
        let blocks: u64 = entries.iter().map(|m| m.blocks).sum();
        let list_offset = self.reader.shared.list.offset;
        self.starts(list_offset, info.bytes);
        if (rows, blocks, time, series) != (info.rows, info.blocks, info.time, info.series) {
            self.wrong(list_offset, "the trailer does not sum up the measurements");
        }
        // Where something could not be read, there is an error already.
        if self.report.errors.is_empty() && self.report.values != info.values {
            self.wrong(list_offset, "the trailer does not say how many values there are");
        }
    }

    fn measurement(&mut self, info: &MeasurementInfo) {
        let Some(directory) = self.note(self.reader.read_directory(&info.directory)) else {
            self.position = info.directory.end();
            return;
        };
        let first_field = self.report.fields.len();
        for (name, field_type) in directory.fields() {
            self.report.fields.push(FieldStats {
                measurement: Arc::clone(&info.name),
                field: Arc::clone(name),
                field_type: *field_type,
                values: 0,
                bytes: 0,
                encodings: Vec::new(),
            });
        }
        let (mut rows, mut blocks, mut time, mut series) = (0, 0, TimeRange::EMPTY, NO_SERIES);
        for index in 0..directory.chunks.len() {
            let Some(chunk) = self.note(self.reader.chunk(&directory, index)) else {
                self.position = directory.chunks[index].extent.end();
                continue;
            };
            for index in 0..chunk.blocks.len() {
                let block = Block::new(Arc::clone(&chunk), index);
                let entry = block.entry();
                rows += u64::from(entry.rows);
                blocks += 1;
                time = time.union(&entry.time);
                series = format::series_union(series, (entry.first.0, entry.last.0));
                self.block(&block, first_field);
            }
            if directory.inline.is_none() {
                let extent = directory.chunks[index].extent;
                self.starts(extent.offset, extent.end());
            }
        }
        self.report.blocks += blocks;
        self.starts(info.directory.offset, info.directory.end());
        if (rows, blocks, time, series) != (info.rows, info.blocks, info.time, info.series) {
            let what = format!("the directory of {} is not what the list says", info.name);
            self.wrong(info.directory.offset, what);
        }
        self.chunk_bounds(&directory, info);
    }

    /// What the top level says of its chunks.
    fn chunk_bounds(&mut self, directory: &Arc<Directory>, info: &MeasurementInfo) {
        for (index, entry) in directory.chunks.iter().enumerate() {
            let Ok(chunk) = self.reader.chunk(directory, index) else { continue };
            if chunk.entry(entry.extent) != *entry {
                self.wrong(info.directory.offset, format!("chunk {index} has other bounds"));
            }
        }
    }

    fn block(&mut self, block: &Block, first_field: usize) {
        let entry = block.entry().clone();
        self.starts(entry.times.offset, entry.end);
        self.report.time_bytes += u64::from(entry.times.len);
        let len = |extent: Option<Extent>| extent.map_or(0, |e| u64::from(e.len));
        self.report.series_bytes += len(entry.runs);
        self.report.window_bytes += len(entry.window_index);
        if let Some(times) = self.block_times(block) {
            self.report.rows += times.len() as u64;
            self.window_starts(block, &times);
        }
        for page in block.pages() {
            self.report.window_bytes += len(page.windows);
            self.page(block, page, first_field + page.field as usize);
        }
    }

    /// The times of a block, where they could be read.
    fn block_times(&mut self, block: &Block) -> Option<Vec<i64>> {
        let entry = block.entry();
        let mut times = Vec::new();
        let read = self.reader.times(block, 0..block.rows(), &mut times);
        let runs = self.note(self.reader.runs(block));
        self.note(read)?;
        let runs = runs?;
        let (mut first, mut last, mut time) = (None, None, TimeRange::EMPTY);
        for (series, rows) in runs.iter() {
            let times = &times[rows];
            if !times.is_sorted_by(|a, b| a < b) {
                self.wrong(entry.times.offset, "the times of a series do not ascend");
            }
            first.get_or_insert((series, times[0]));
            last = Some((series, times[times.len() - 1]));
            time = time.union(&TimeRange::new(times[0], times[times.len() - 1]));
        }
        if (first, last, time) != (Some(entry.first), Some(entry.last), entry.time) {
            self.wrong(entry.times.offset, "the times of a block are not those of its directory");
        }
        Some(times)
    }

    fn window_starts(&mut self, block: &Block, times: &[i64]) {
        let Some(Some(windows)) = self.note(self.reader.windows(block)) else { return };
        let index = windows.index();
        let inside = |span: usize| {
            let start = index.start_ns(span);
            times[index.rows(span)]
                .iter()
                .all(|t| t.checked_sub(start).is_some_and(|t| (0..index.window_ns()).contains(&t)))
        };
        if !(0..index.len()).all(inside) {
            let offset = block.entry().window_index.map_or(0, |e| e.offset);
            self.wrong(offset, "a window does not hold its rows");
        }
    }

    fn page(&mut self, block: &Block, page: &PageEntry, stats: usize) {
        let field = page.field as usize;
        let field_type = block.field_type(field);
        let bytes = u64::from(page.extent.len);
        let mut out = Column::new(Values::empty(field_type));
        let read = self.reader.column(block, field, 0..block.rows(), &mut out);
        let name = self.encoding(block, page);
        self.report.fields[stats].bytes += bytes;
        if self.note(read).is_none() {
            return;
        }
        let stats = &mut self.report.fields[stats];
        stats.values += u64::from(page.count);
        if let Some(name) = name {
            match stats.encodings.iter_mut().find(|(n, _)| *n == name) {
                Some((_, pages)) => *pages += 1,
                None => stats.encodings.push((name, 1)),
            }
        }
        self.report.values += u64::from(page.count);
        if !agree(field_type, numbers_of(&out, &(0..out.len())), page.numbers, page.count) {
            self.wrong(page.extent.offset, "a page does not have the numbers its directory says");
        }
        if page.edges.is_some_and(|stated| edges_of(&out) != Some(stated)) {
            self.wrong(page.extent.offset, "a page does not have the edges its directory says");
        }
        self.windows(block, page, &out);
    }

    fn encoding(&self, block: &Block, page: &PageEntry) -> Option<&'static str> {
        let bytes = self.reader.shared.source.page(&page.extent, false).ok()?;
        let mut input = Input::new(&bytes);
        if page.count < block.entry().rows {
            input.bytes().ok()?;
        }
        if block.field_type(page.field as usize) == FieldType::String {
            input.varint().ok()?;
        }
        Some(codec::encoding_name(input.rest()))
    }

    fn windows(&mut self, block: &Block, page: &PageEntry, values: &Column) {
        let Some(Some(of_block)) = self.note(self.reader.windows(block)) else { return };
        let index = of_block.index();
        let read = self.reader.load_windows(block, [page.field as usize], &of_block);
        let (Some(Some(places)), Some(extent)) = (self.note(read), page.windows) else { return };
        let windows = of_block.field(places[0]);
        let field_type = block.field_type(page.field as usize);
        let agrees = |span: usize| {
            let rows = index.rows(span);
            let count = rows.clone().filter(|row| values.is_valid(*row)).count();
            let stated = Some(span_numbers(windows, span));
            let found = numbers_of(values, &rows);
            windows.count(span, rows.len()) == count as u64
                && (count == 0 || agree(field_type, found, stated, count as u32))
        };
        if !(0..index.len()).all(agrees) {
            self.wrong(extent.offset, "a window summary does not sum up its rows");
        }
    }
}

/// The edges of a column as a writer would store them.
fn edges_of(column: &Column) -> Option<Edges> {
    let bits = |row: usize| {
        let bits = match &column.values {
            Values::Integer(v) => v[row] as u64,
            Values::Unsigned(v) => v[row],
            Values::Float(v) => v[row].to_bits(),
            Values::Boolean(v) => u64::from(v.get(row)),
            _ => return None,
        };
        Some(column.is_valid(row).then_some(bits))
    };
    Some([bits(0)?, bits(column.len().checked_sub(1)?)?])
}

/// Whether two lots of numbers are of the same values; sums of floats depend on the order a little.
fn agree(
    field_type: FieldType,
    found: Option<Numbers>,
    stated: Option<Numbers>,
    count: u32,
) -> bool {
    let (FieldType::Float, Some(a), Some(b)) = (field_type, found, stated) else {
        return found == stated;
    };
    let [min, max, found, stated] = [a.min, a.max, a.sum, b.sum].map(f64::from_bits);
    let tolerance = min.abs().max(max.abs()) * f64::from(count) * 1e-9;
    let close = (found - stated).abs() <= tolerance || !found.is_finite() || !stated.is_finite();
    (a.min, a.max) == (b.min, b.max) && close
}

/// The numbers of some rows as a writer would store them.
fn numbers_of(column: &Column, rows: &std::ops::Range<usize>) -> Option<Numbers> {
    fn some<T: Number>(
        column: &Column,
        values: &[T],
        rows: &std::ops::Range<usize>,
    ) -> Option<Numbers> {
        let valid = rows.clone().filter(|row| column.is_valid(*row));
        T::numbers(&valid.map(|row| values[row]).collect::<Vec<_>>())
    }
    match &column.values {
        Values::Integer(v) => some(column, v, rows),
        Values::Unsigned(v) => some(column, v, rows),
        Values::Float(v) => some(column, v, rows),
        Values::Boolean(v) => {
            let valid = rows.clone().filter(|row| column.is_valid(*row));
            let (mut count, mut trues) = (0, 0);
            for row in valid {
                count += 1;
                trues += u64::from(v.get(row));
            }
            let all = u64::from(trues == count);
            (count > 0).then_some(Numbers { min: all, max: u64::from(trues > 0), sum: trues })
        }
        _ => None,
    }
}

fn span_numbers(windows: &WindowSummaries, span: usize) -> Numbers {
    let SpanNumbers { sum, min, max } = windows.numbers()[span];
    Numbers { min, max, sum }
}
