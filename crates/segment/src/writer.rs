//! Writes one segment file, front to back.
//!
//! Layout: docs/formats/segment.md. Rows come in the file's order and leave as blocks; directories
//! follow the blocks they describe, the trailer comes last.
//!
//! Invariants
//! - Rows ascend by (measurement, series, time); anything else is a bug of the caller and stops it.
//! - Memory: one block of rows, a chunk of the directory, the output buffer; rows that fill whole
//!   blocks are encoded from where they are.
//! - A file without a trailer is not a segment: a crash or error before `finish` leaves garbage
//!   for the caller to remove, never a readable part.
//!
//! Not here: file names, durability of the name (`Disk::sync_dir` is the caller's).

use std::path::Path;
use std::sync::Arc;

use codec::Effort;
use model::{FieldType, Name, SeriesId, TimeRange, Values};
use platform::{Disk, File, PageCache};

use crate::SegmentError;
use crate::directory::chunk::ChunkBuilder;
use crate::directory::{ChunkEntry, Fields, top};
use crate::format::{
    self, BLOCK_ROWS_LIMIT, BLOCK_TEXT_LIMIT, Extent, MeasurementInfo, MeasurementList, NO_SERIES,
    SegmentInfo,
};
use crate::reader::{SegmentReader, Source, Thawer};
use crate::rows::{RowKey, RunPosition, SegmentRows};

mod apart;
pub(crate) mod block;
mod cut;
mod output;

use apart::{Apart, Piece};
use block::{BlockWriter, RowsView};
use cut::BlockLimits;
use output::Output;

/// A chunk of a directory is closed when it has this many bytes.
const CHUNK_BYTES: usize = 32 << 10;

/// Rows of a block that was written for keeping.
const COLD_BLOCK_ROWS: u32 = 64 << 10;
/// A series with so many rows in a segment that was written for keeping has blocks of its own there.
pub const LONG_SERIES_ROWS: u32 = COLD_BLOCK_ROWS / cut::LONG_SERIES_PART as u32;

/// How a segment is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The most rows a block gets, 1 to [`BLOCK_ROWS_LIMIT`]; of very many fields it gets fewer, of rows that have less than
    /// half of their fields more, so that it has as many values.
    pub block_rows_max: u32,
    /// The most bytes of text a block gets, unless a single row has more.
    pub block_text_bytes_max: u32,
    /// How much work encoding times, numbers and what is said of them may take.
    pub effort: Effort,
    /// How much work encoding text may take.
    pub text_effort: Effort,
    /// Blocks keep summaries of the shortest windows that hold this many rows on average. `None`:
    /// no blocks do. A window takes about four bytes a field; a field that few of the rows have gets none.
    pub window_rows_min: Option<u32>,
    /// A longer file is not kept in the system's memory once it is written.
    pub cached_bytes_max: u64,
    /// A number stored in the file, for the caller's use.
    pub sequence: u64,
}

impl WriterOptions {
    /// For rows that were just written: small blocks, text that is read fast. Numbers are entropy-coded at once, which
    /// takes 3 ns a value in place of 1 (decisions/0003).
    #[must_use]
    pub fn hot(sequence: u64) -> Self {
        Self {
            block_rows_max: 8 << 10,
            block_text_bytes_max: 1 << 20,
            effort: Effort::Cold,
            text_effort: Effort::Hot,
            window_rows_min: Some(256),
            cached_bytes_max: u64::MAX,
            sequence,
        }
    }

    /// For rows that will stay: large blocks, tight text.
    #[must_use]
    pub fn cold(sequence: u64) -> Self {
        Self {
            block_rows_max: COLD_BLOCK_ROWS,
            block_text_bytes_max: 4 << 20,
            text_effort: Effort::Cold,
            ..Self::hot(sequence)
        }
    }
}

/// Writes a segment.
#[derive(Debug)]
pub struct SegmentWriter {
    out: Output,
    options: WriterOptions,
    measurement: Option<OpenMeasurement>,
    finished: Vec<MeasurementInfo>,
    values: u64,
    blocks: BlockWriter,
    /// Whether something could not be written: the file would lack it.
    failed: bool,
}

/// The measurement whose rows are coming in.
#[derive(Debug)]
struct OpenMeasurement {
    name: Name,
    fields: Fields,
    limits: BlockLimits,
    apart: Apart,
    /// Rows not yet written: less than a block.
    pending: SegmentRows,
    /// No rows; the memory of those that were pending before.
    spare: SegmentRows,
    last: Option<RowKey>,
    /// The only series of the last block: what is left of it gets blocks of its own.
    own: Option<SeriesId>,
    chunk: ChunkBuilder,
    chunks: Vec<ChunkEntry>,
    info: MeasurementInfo,
    values: u64,
}

impl SegmentWriter {
    /// Starts a new file.
    ///
    /// # Errors
    /// If the disk fails, or the name exists.
    ///
    /// # Panics
    /// If an option is out of its range.
    pub fn create(
        disk: &dyn Disk,
        path: &Path,
        options: WriterOptions,
    ) -> Result<Self, SegmentError> {
        Ok(Self::over(disk.create(path)?, options))
    }

    pub(crate) fn over(file: Arc<dyn File>, options: WriterOptions) -> Self {
        let rows_max = options.block_rows_max;
        assert!((1..=BLOCK_ROWS_LIMIT).contains(&rows_max), "BUG: blocks of {rows_max} rows");
        let mut out = Output::new(file, options.cached_bytes_max);
        out.buffer().extend_from_slice(&format::encode_header(options.sequence));
        let blocks = BlockWriter::new(&options);
        Self {
            out,
            options,
            measurement: None,
            finished: Vec::new(),
            values: 0,
            blocks,
            failed: false,
        }
    }

    /// Puts thawed forms of pages that are slow in parts in the cache as they are written, block by block, until they fill so
    /// many bytes: reading parts of them costs at once what it otherwise costs after some looks. To be
    /// opened by [`Self::finish_and_open`], with the same cache.
    pub fn thaw_into(&mut self, cache: &Arc<PageCache>, bytes_max: usize) {
        let file = Arc::clone(self.out.file());
        self.blocks.set_thawer(Thawer::new(file, Arc::clone(cache), bytes_max));
    }

    /// Starts the next measurement: `name` is above the last one's, field names ascend. Without any
    /// rows it leaves no trace.
    ///
    /// # Errors
    /// If the disk fails; the writer is of no use then.
    ///
    /// # Panics
    /// If the names are out of order.
    pub fn begin_measurement(
        &mut self,
        name: &Name,
        fields: &[(Name, FieldType)],
    ) -> Result<(), SegmentError> {
        let before = self.measurement.as_ref().map(|m| &m.name);
        assert!(before.is_none_or(|b| b < name), "BUG: measurements out of order");
        assert!(fields.is_sorted_by(|a, b| a.0 < b.0), "BUG: fields out of order");
        self.check_usable();
        self.failed = true;
        self.close_measurement()?;
        self.failed = false;
        self.measurement = Some(OpenMeasurement::new(name, fields, &self.options));
        Ok(())
    }

    /// Adds rows, which follow those already there. The last series may go on.
    ///
    /// # Errors
    /// If the disk fails, or a string is too long to be stored; the writer is of no use then.
    ///
    /// # Panics
    /// If the rows are out of order, their columns are not those of the measurement, or no
    /// measurement was begun.
    pub fn append(&mut self, rows: &SegmentRows) -> Result<(), SegmentError> {
        self.check_usable();
        self.failed = true;
        self.append_rows(rows)?;
        self.failed = false;
        Ok(())
    }

    fn append_rows(&mut self, rows: &SegmentRows) -> Result<(), SegmentError> {
        let m = self.measurement.as_mut().expect("BUG: rows before their measurement");
        rows.check(&m.fields, m.last);
        let (Some((series, _)), Some(time)) = (rows.runs.last(), rows.times.last()) else {
            return Ok(());
        };
        check_text(rows)?;
        m.last = Some((*series, *time));
        m.limits.adapt(rows.len(), rows.values());
        let (mut at, mut position) = (0, RunPosition::default());
        let mut runs = Vec::new();
        while at < rows.len() {
            let left = rows.len() - at;
            let fit = cut::rows_that_fit(&m.pending, rows, at, &m.limits);
            if fit < left && m.pending.is_empty() {
                // A whole block: encoded from where it is.
                let len = m.direct_block_rows(rows, position, fit);
                rows.runs_of(&mut position, len, &mut runs);
                let view = RowsView { rows, runs: &runs, range: at..at + len };
                m.write_block(&mut self.out, &mut self.blocks, &view)?;
                at += len;
                continue;
            }
            let len = left.min(fit);
            rows.runs_of(&mut position, len, &mut runs);
            m.pending.push(rows, &runs, at..at + len);
            at += len;
            if fit < left {
                let next = Some(rows.runs[position.run].0);
                m.write_pending(&mut self.out, &mut self.blocks, next)?;
            }
        }
        Ok(())
    }

    /// Writes what is left, makes the file durable and says what it holds.
    ///
    /// # Errors
    /// If the disk fails; the file is then of no use.
    pub fn finish(self) -> Result<SegmentInfo, SegmentError> {
        Ok(self.write_rest()?.0)
    }

    /// The same, and opens the segment, unless it has no rows.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish_and_open(
        self,
        cache: Arc<PageCache>,
    ) -> Result<(SegmentInfo, Option<SegmentReader>), SegmentError> {
        let file = Arc::clone(self.out.file());
        let (info, thawer) = self.write_rest()?;
        if info.rows == 0 {
            return Ok((info, None));
        }
        let source = thawer.map_or_else(|| Source::new(file, cache), Thawer::finish);
        Ok((info, Some(SegmentReader::of(source)?)))
    }

    fn write_rest(mut self) -> Result<(SegmentInfo, Option<Thawer>), SegmentError> {
        self.check_usable();
        self.close_measurement()?;
        let start = self.out.position();
        let list = MeasurementList::new(std::mem::take(&mut self.finished));
        list.encode(self.out.buffer());
        let extent = self.out.extent_from(start);
        let total = |part: fn(&MeasurementInfo) -> u64| list.entries().iter().map(part).sum();
        let info = SegmentInfo {
            sequence: self.options.sequence,
            bytes: self.out.position() + format::TRAILER_LEN as u64,
            rows: total(|m| m.rows),
            values: self.values,
            blocks: total(|m| m.blocks),
            time: list.entries().iter().fold(TimeRange::EMPTY, |t, m| t.union(&m.time)),
            series: list.entries().iter().fold(NO_SERIES, |s, m| format::series_union(s, m.series)),
        };
        let trailer = format::encode_trailer(&info, &extent);
        self.out.buffer().extend_from_slice(&trailer);
        assert_eq!(self.out.position(), info.bytes, "BUG: the file has another length");
        self.out.finish()?;
        Ok((info, self.blocks.into_thawer()))
    }

    /// Bytes written or waiting to be, so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.out.position()
    }

    fn check_usable(&self) {
        assert!(!self.failed, "BUG: a segment is written on after it failed");
    }

    fn close_measurement(&mut self) -> Result<(), SegmentError> {
        let Some(mut m) = self.measurement.take() else { return Ok(()) };
        while !m.pending.is_empty() {
            m.write_pending(&mut self.out, &mut self.blocks, None)?;
        }
        self.values += m.values;
        if let Some(info) = m.write_directory(&mut self.out) {
            self.finished.push(info);
        }
        Ok(())
    }
}

impl OpenMeasurement {
    fn new(name: &Name, fields: &[(Name, FieldType)], options: &WriterOptions) -> Self {
        let directory = Extent { offset: 0, len: 0, crc32c: 0 };
        let info = MeasurementInfo {
            name: Arc::clone(name),
            rows: 0,
            blocks: 0,
            time: TimeRange::EMPTY,
            series: NO_SERIES,
            directory,
        };
        Self {
            name: Arc::clone(name),
            fields: fields.into(),
            limits: BlockLimits::new(options, fields.len()),
            apart: Apart::default(),
            pending: SegmentRows::empty(fields),
            spare: SegmentRows::empty(fields),
            last: None,
            own: None,
            chunk: ChunkBuilder::default(),
            chunks: Vec::new(),
            info,
            values: 0,
        }
    }

    /// How many rows from `at` on are the next block, where at most `limit` can be.
    fn direct_block_rows(&self, rows: &SegmentRows, at: RunPosition, limit: usize) -> usize {
        let runs = cut::run_rows_from(&rows.runs, at).zip(&rows.runs[at.run..]);
        let runs = runs.map(|(rows, (series, _))| (rows, self.is_long(*series, rows)));
        cut::block_rows(runs, limit)
    }

    fn is_long(&self, series: SeriesId, rows: u32) -> bool {
        self.own == Some(series) || cut::is_long(rows, &self.limits)
    }

    /// Writes blocks of pending rows: one at least, and those of long series that are complete. The
    /// row after the pending ones is of series `next`: if that is the last one's, it goes on.
    fn write_pending(
        &mut self,
        out: &mut Output,
        blocks: &mut BlockWriter,
        next: Option<SeriesId>,
    ) -> Result<(), SegmentError> {
        let spare = std::mem::take(&mut self.spare);
        let mut pending = std::mem::replace(&mut self.pending, spare);
        let mut runs = Vec::new();
        let mut position = RunPosition::default();
        let (mut at, mut written) = (0, Ok(()));
        while at < pending.len() && written.is_ok() {
            let (series, rows) = pending.runs[position.run];
            let complete = position.run + 1 < pending.runs.len() || next != Some(series);
            if at > 0 && !(complete && self.is_long(series, rows - position.used)) {
                break;
            }
            let left =
                cut::run_rows_from(&pending.runs, position).zip(&pending.runs[position.run..]);
            let left = left.map(|(rows, (series, _))| {
                let goes_on = u32::from(next == Some(*series));
                (rows + goes_on, self.is_long(*series, rows))
            });
            let len = cut::block_rows(left, pending.len() - at);
            pending.runs_of(&mut position, len, &mut runs);
            let view = RowsView { rows: &pending, runs: &runs, range: at..at + len };
            written = self.write_block(out, blocks, &view);
            at += len;
        }
        if at < pending.len() {
            pending.runs_of(&mut position, pending.len() - at, &mut runs);
            self.pending.push(&pending, &runs, at..pending.len());
        }
        pending.clear();
        self.spare = pending;
        written
    }

    /// Writes the rows of a block, or what it is cut into.
    fn write_block(
        &mut self,
        out: &mut Output,
        blocks: &mut BlockWriter,
        view: &RowsView<'_>,
    ) -> Result<(), SegmentError> {
        for Piece { runs, rows } in self.apart.pieces(view, &self.fields, blocks.effort()) {
            let piece = RowsView { rows: view.rows, runs: &view.runs[runs], range: rows };
            self.write_piece(out, blocks, &piece)?;
        }
        Ok(())
    }

    fn write_piece(
        &mut self,
        out: &mut Output,
        blocks: &mut BlockWriter,
        view: &RowsView<'_>,
    ) -> Result<(), SegmentError> {
        if self.chunk.len() >= CHUNK_BYTES {
            self.close_chunk(out);
        }
        let (entry, pages) = blocks.write(view, &self.fields, out);
        self.own = (view.runs.len() == 1).then_some(entry.first.0);
        self.chunk.push(&entry, pages, &self.fields);
        self.info.rows += u64::from(entry.rows);
        self.info.blocks += 1;
        self.info.time = self.info.time.union(&entry.time);
        let series = (entry.first.0, entry.last.0);
        self.info.series = format::series_union(self.info.series, series);
        self.values += pages.iter().map(|p| u64::from(p.count)).sum::<u64>();
        out.write_if_full()
    }

    fn close_chunk(&mut self, out: &mut Output) {
        let start = out.position();
        out.buffer().extend_from_slice(self.chunk.bytes());
        let extent = out.extent_from(start);
        self.chunks.extend(self.chunk.entry(extent));
        self.chunk.clear();
    }

    /// `None` if there are no rows.
    fn write_directory(mut self, out: &mut Output) -> Option<MeasurementInfo> {
        if self.chunk.is_empty() {
            return None;
        }
        if !self.chunks.is_empty() {
            self.close_chunk(out);
        }
        let inline = self.chunks.is_empty().then(|| self.chunk.bytes());
        let start = out.position();
        top::encode(&self.fields, &self.chunks, inline, out.buffer());
        Some(MeasurementInfo { directory: out.extent_from(start), ..self.info })
    }
}

/// Refuses strings that no block can hold.
fn check_text(rows: &SegmentRows) -> Result<(), SegmentError> {
    for column in &rows.columns {
        let Values::String(strings) = &column.values else { continue };
        if strings.text_bytes() <= BLOCK_TEXT_LIMIT {
            continue;
        }
        let lens = strings.places().iter().map(|(_, len)| *len as usize);
        if let Some(bytes) = lens.max().filter(|len| *len > BLOCK_TEXT_LIMIT) {
            return Err(SegmentError::StringTooLong { bytes, limit_bytes: BLOCK_TEXT_LIMIT });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
