//! Reading times of a block, and finding the rows of a series inside a time range without decoding all of them.
//!
//! Times with one step are told by calculation (`regular`), and so are those that keep a step for long, of several series
//! or with gaps, once they were learned (`lines`). Others of blocks that were written to be kept are entropy-coded, as
//! values are; what is read of them again and again is kept in another form (`kept`, `pieces`). Where very many series share a
//! block, a short time of all of them is looked for in a list of its rows by time (`short`, `by_time`).

mod by_time;
mod kept;
mod lines;
mod parts;
mod pieces;
mod regular;
mod short;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use codec::DecodeError;
use model::TimeRange;
use platform::Page;

use super::SegmentReader;
use super::source::Kind;
use crate::SegmentError;
use crate::directory::{Block, Edge};
pub(super) use kept::KeptTimes;
use kept::Learned;
use lines::Lines;
use pieces::{KNOWN_ROWS, Known};
pub(super) use regular::Regular;
pub use short::ShortTime;

/// So few times are decoded at once rather than searched.
const DECODE_AT_ONCE: usize = 256;
/// The same for blocks of many series, where the ends of one are looked for as well, if times are known of some rows.
const DECODE_AT_ONCE_KNOWN: usize = 512;
/// The same if none are, where a probe may cost as much as this.
const DECODE_AT_ONCE_SHARED: usize = 4096;
/// Rows of a page that are decoded together where one of them is looked for: to read one of them those before it are added up
/// from where the page says what the sum is, which is once for so many rows (docs/formats/encodings.md, int-delta).
const CHUNK_ROWS: usize = 4096;

/// The times of a block.
struct Times<'a> {
    reader: &'a SegmentReader,
    block: &'a Block,
    form: Form,
}

enum Form {
    Regular(Regular),
    Lines(Arc<Lines>),
    Page {
        page: Arc<Page>,
        /// What is kept beside the page, if that may stay in the cache.
        kept: Option<Arc<KeptTimes>>,
    },
}

impl<'a> Times<'a> {
    fn open(reader: &'a SegmentReader, block: &'a Block) -> Result<Self, SegmentError> {
        // Who reads everything once may do so to check it.
        let known = if reader.keep_pages { Regular::known(block) } else { None };
        let form = match known {
            Some(regular) => Form::Regular(regular),
            None => Form::read(reader, block)?,
        };
        Ok(Self { reader, block, form })
    }

    /// Adds the times of some rows to `out`.
    fn decode(&self, rows: Range<usize>, out: &mut Vec<i64>) -> Result<(), SegmentError> {
        let (page, kept) = match &self.form {
            Form::Regular(regular) => {
                regular.append(rows, out);
                return Ok(());
            }
            Form::Lines(lines) => {
                lines.append(rows, out);
                return Ok(());
            }
            Form::Page { page, kept } => (page, kept.as_ref()),
        };
        match kept.map(|kept| (kept, kept.learned())) {
            Some((_, Some(Learned::Pieces(pieces)))) => {
                pieces.append(rows, out);
                Ok(())
            }
            Some((_, Some(Learned::Known(known)))) => {
                known.append(page, self.block.rows(), rows, out).map_err(|e| self.damaged(&e))
            }
            Some((kept, None)) => {
                let are_most = rows.len() * 2 > self.block.rows();
                let are_worth_it = kept.touch(are_most);
                if !are_most && !are_worth_it {
                    return self.decode_page(page, rows, out);
                }
                let whole = self.learn(page, kept, are_worth_it)?;
                out.extend_from_slice(&whole[rows]);
                Ok(())
            }
            // Whoever opens them next is given lines that were learned since.
            _ => self.decode_page(page, rows, out),
        }
    }

    fn damaged(&self, error: &DecodeError) -> SegmentError {
        let offset = self.block.entry().times.offset;
        self.reader.shared.source.damaged(offset, &error.to_string())
    }

    /// The times that were learned of some rows, if they are not calculated.
    fn learned(&self) -> Option<&Known> {
        let Form::Page { kept: Some(kept), .. } = &self.form else { return None };
        match kept.learned()? {
            Learned::Lines(_) => None,
            Learned::Pieces(pieces) => Some(pieces.known()),
            Learned::Known(known) => Some(known),
        }
    }

    /// So many rows are best decoded together, from a multiple of their number on.
    fn chunk_rows(&self) -> usize {
        if self.learned().is_some() { KNOWN_ROWS } else { CHUNK_ROWS }
    }

    /// The times that are known of some rows without decoding those before them: of each so many'th row, from the first on.
    fn known(&self) -> Option<KnownTimes<'_>> {
        if let Some(known) = self.learned() {
            return Some(KnownTimes { rows: KNOWN_ROWS, times: Cow::Borrowed(known.times()) });
        }
        match &self.form {
            Form::Page { page, .. } => {
                let times = Cow::Owned(codec::restarts_i64(page, self.block.rows())?);
                Some(KnownTimes { rows: codec::RESTART_ROWS, times })
            }
            Form::Regular(_) | Form::Lines(_) => None,
        }
    }

    /// So few rows of a series are decoded rather than searched.
    fn rows_at_once(&self) -> usize {
        match (self.learned(), self.block.has_one_series()) {
            (_, true) => DECODE_AT_ONCE,
            (Some(_), false) => DECODE_AT_ONCE_KNOWN,
            (None, false) => DECODE_AT_ONCE_SHARED,
        }
    }

    /// The time of one row.
    fn at(&self, row: usize) -> Result<i64, SegmentError> {
        match &self.form {
            Form::Regular(regular) => Ok(regular.at(row)),
            Form::Lines(lines) => Ok(lines.at(row)),
            Form::Page { page, kept } => {
                match kept.as_ref().and_then(|kept| kept.learned()) {
                    Some(Learned::Pieces(pieces)) => return Ok(pieces.at(row)),
                    Some(Learned::Known(known)) => {
                        let time = known.time_at(page, self.block.rows(), row);
                        return time.map_err(|e| self.damaged(&e));
                    }
                    _ => {}
                }
                let mut time = Vec::with_capacity(1);
                self.decode(row..row + 1, &mut time)?;
                Ok(time[0])
            }
        }
    }

    /// The rows inside `time` among `rows` of one series.
    fn find(&self, rows: Range<usize>, time: TimeRange) -> Result<FoundRows, SegmentError> {
        let mut search = Search::new(self);
        let rows = if rows.is_empty() { rows } else { search.rows_in(rows, time)? };
        if rows.is_empty() {
            return Ok(FoundRows::none());
        }
        let time = TimeRange::new(search.at(rows.start)?, search.at(rows.end - 1)?);
        Ok(FoundRows { rows, time, near: (search.rows, search.times) })
    }

    /// The rows inside `time` among `rows` of one series; their times are added to `out`.
    fn within(
        &self,
        rows: Range<usize>,
        time: TimeRange,
        out: &mut Vec<i64>,
    ) -> Result<Range<usize>, SegmentError> {
        if rows.is_empty() {
            return Ok(rows);
        }
        if time.covers(&self.block.time()) {
            self.decode(rows.clone(), out)?;
            return Ok(rows);
        }
        if rows.len() <= self.rows_at_once() && !self.form.is_calculated() {
            let had = out.len();
            self.decode(rows.clone(), out)?;
            let inside = inside(&out[had..], time);
            out.truncate(had + inside.end);
            out.drain(had..had + inside.start);
            return Ok(rows.start + inside.start..rows.start + inside.end);
        }
        let mut search = Search::new(self);
        let found = search.rows_in(rows, time)?;
        match search.known_of(&found) {
            Some(times) => out.extend_from_slice(times),
            None => self.decode(found.clone(), out)?,
        }
        Ok(found)
    }

    fn decode_page(
        &self,
        page: &[u8],
        rows: Range<usize>,
        out: &mut Vec<i64>,
    ) -> Result<(), SegmentError> {
        codec::decode_i64_range(page, self.block.rows(), rows, out).map_err(|e| self.damaged(&e))
    }

    /// Learns the times of the page; if not `at_any_cost`, only what costs next to nothing. Gives them.
    fn learn(
        &self,
        page: &[u8],
        kept: &Arc<KeptTimes>,
        at_any_cost: bool,
    ) -> Result<Vec<i64>, SegmentError> {
        let mut whole = Vec::with_capacity(self.block.rows());
        self.decode_page(page, 0..self.block.rows(), &mut whole)?;
        let bytes = kept.learn(&whole, page, at_any_cost);
        let (source, extent) = (&self.reader.shared.source, &self.block.entry().times);
        if bytes > 0 {
            source.grew(Kind::KeptTimes, extent, kept, bytes);
        }
        Ok(whole)
    }
}

/// See [`Times::known`].
struct KnownTimes<'a> {
    /// How far the rows are from each other.
    rows: usize,
    times: Cow<'a, [i64]>,
}

impl KnownTimes<'_> {
    /// Moves `low` and `high`, rows before `time` and not before it with their times, towards each other.
    fn narrow(&self, time: i64, low: &mut (usize, i64), high: &mut (usize, i64)) {
        let rows = self.rows;
        // Those between the two.
        let (mut from, mut to) = (low.0 / rows + 1, high.0.div_ceil(rows));
        let mut guesses = 0;
        while from < to {
            let middle = if guesses < GUESSES_MAX {
                let row = low.0 + share(time, low.1, high.1, high.0 - low.0);
                (row / rows).clamp(from, to - 1)
            } else {
                from + (to - from) / 2
            };
            guesses += 1;
            let known = (middle * rows, self.times[middle]);
            if known.1 < time {
                (*low, from) = (known, middle + 1);
            } else {
                (*high, to) = (known, middle);
            }
        }
    }
}

impl Form {
    fn read(reader: &SegmentReader, block: &Block) -> Result<Self, SegmentError> {
        let (source, extent) = (&reader.shared.source, &block.entry().times);
        let known = reader
            .keep_pages
            .then(|| source.cached::<KeptTimes>(Kind::KeptTimes, extent))
            .flatten();
        if let Some(lines) = known.as_deref().and_then(KeptTimes::lines) {
            return Ok(Self::Lines(Arc::clone(lines)));
        }
        let page = source.page(extent, reader.keep_pages)?;
        if known.is_none()
            && let Some(regular) = Regular::of_page(&page, block, reader.keep_pages)
        {
            return Ok(Self::Regular(regular));
        }
        let keep = || reader.keep_pages.then(|| source.entry(Kind::KeptTimes, extent));
        Ok(Self::Page { page, kept: known.or_else(keep) })
    }

    /// Whether rows are found, and times told, by calculation.
    fn is_calculated(&self) -> bool {
        matches!(self, Self::Regular(_) | Self::Lines(_))
    }
}

/// Adds the times of some rows of a block to `out`.
pub(super) fn times(
    reader: &SegmentReader,
    block: &Block,
    rows: Range<usize>,
    out: &mut Vec<i64>,
) -> Result<(), SegmentError> {
    Times::open(reader, block)?.decode(rows, out)
}

/// The rows inside `time` among those of each of some series; their times are added to `out`.
pub(crate) fn times_in(
    reader: &SegmentReader,
    block: &Block,
    series: &[Range<usize>],
    time: TimeRange,
    out: &mut Vec<i64>,
) -> Result<Vec<Range<usize>>, SegmentError> {
    if time.is_empty() || !time.overlaps(&block.time()) {
        return Ok(series.iter().map(|rows| rows.start..rows.start).collect());
    }
    let times = Times::open(reader, block)?;
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return Ok(Vec::new()) };
    let all = first.start..last.end;
    let rows: usize = series.iter().map(Range::len).sum();
    let are_most = rows * 2 > all.len();
    let are_found = times.learned().is_some() && rows > times.rows_at_once() * series.len();
    if series.len() < 2 || times.form.is_calculated() || are_found || !are_most {
        return series.iter().map(|rows| times.within(rows.clone(), time, out)).collect();
    }
    let mut whole = Vec::with_capacity(all.len());
    times.decode(all.clone(), &mut whole)?;
    Ok(series
        .iter()
        .map(|rows| {
            let of_series = &whole[rows.start - all.start..rows.end - all.start];
            let inside = inside(of_series, time);
            out.extend_from_slice(&of_series[inside.clone()]);
            rows.start + inside.start..rows.start + inside.end
        })
        .collect())
}

/// Which of some times, which ascend, are inside `time`.
fn inside(times: &[i64], time: TimeRange) -> Range<usize> {
    let start = times.partition_point(|t| *t < time.min);
    start..start + times[start..].partition_point(|t| *t <= time.max)
}

/// The rows inside `time` among `rows`.
pub(crate) fn rows_in(
    reader: &SegmentReader,
    block: &Block,
    rows: Range<usize>,
    time: TimeRange,
) -> Result<Range<usize>, SegmentError> {
    if rows.is_empty() || time.is_empty() || !time.overlaps(&block.time()) {
        return Ok(rows.start..rows.start);
    }
    if time.covers(&block.time()) {
        return Ok(rows);
    }
    search(&Times::open(reader, block)?, rows, time)
}

/// Rows of a block that were looked for, as [`SegmentReader::find_rows`] finds them.
#[derive(Clone, Debug)]
pub struct FoundRows {
    /// The rows.
    pub rows: Range<usize>,
    /// The times of the first and the last of them; empty if there are none.
    pub time: TimeRange,
    /// Rows around them, and their times, that were read to find these.
    near: (Range<usize>, Vec<i64>),
}

impl FoundRows {
    fn none() -> Self {
        Self { rows: 0..0, time: TimeRange::EMPTY, near: (0..0, Vec::new()) }
    }

    /// The times of some rows of the block, if they were read to find these.
    #[must_use]
    pub fn times(&self, rows: &Range<usize>) -> Option<&[i64]> {
        let (near, times) = &self.near;
        let is_near = near.start <= rows.start && rows.end <= near.end;
        is_near.then(|| &times[rows.start - near.start..rows.end - near.start])
    }
}

/// The rows inside `time` among `rows` of one series, with what was read to find them.
pub(super) fn find(
    reader: &SegmentReader,
    block: &Block,
    rows: Range<usize>,
    time: TimeRange,
) -> Result<FoundRows, SegmentError> {
    if rows.is_empty() || time.is_empty() || !time.overlaps(&block.time()) {
        return Ok(FoundRows::none());
    }
    Times::open(reader, block)?.find(rows, time)
}

/// The same if nothing has to be read for it but what says so.
pub(super) fn calculated(
    reader: &SegmentReader,
    block: &Block,
    rows: Range<usize>,
    time: TimeRange,
) -> Result<Option<FoundRows>, SegmentError> {
    let times = Times::open(reader, block)?;
    times.form.is_calculated().then(|| times.find(rows, time)).transpose()
}

fn search(
    of_block: &Times<'_>,
    rows: Range<usize>,
    time: TimeRange,
) -> Result<Range<usize>, SegmentError> {
    Search::new(of_block).rows_in(rows, time)
}

/// The row of a block of one series that is nearest to an end of `time` inside of it, and its time.
pub(super) fn end_row(
    reader: &SegmentReader,
    block: &Block,
    time: TimeRange,
    edge: Edge,
) -> Result<Option<(usize, i64)>, SegmentError> {
    if time.is_empty() || !time.overlaps(&block.time()) {
        return Ok(None);
    }
    let of_block = Times::open(reader, block)?;
    let mut search = Search::new(&of_block);
    let rows = search.rows_in(0..block.rows(), time)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let row = if edge == Edge::First { rows.start } else { rows.end - 1 };
    Ok(Some((row, search.at(row)?)))
}

/// The times of the first and the last of some rows of one series, at least one.
pub(crate) fn bounds(
    reader: &SegmentReader,
    block: &Block,
    rows: &Range<usize>,
) -> Result<TimeRange, SegmentError> {
    let times = Times::open(reader, block)?;
    Ok(TimeRange::new(times.at(rows.start)?, times.at(rows.end - 1)?))
}

struct Search<'a> {
    of_block: &'a Times<'a>,
    /// The rows that were read last, and their times.
    rows: Range<usize>,
    times: Vec<i64>,
}

impl<'a> Search<'a> {
    fn new(of_block: &'a Times<'a>) -> Self {
        Self { of_block, rows: 0..0, times: Vec::new() }
    }

    fn read(&mut self, rows: Range<usize>) -> Result<&[i64], SegmentError> {
        if self.known_of(&rows).is_none() {
            self.times.clear();
            self.of_block.decode(rows.clone(), &mut self.times)?;
            self.rows = rows.clone();
        }
        Ok(&self.times[rows.start - self.rows.start..rows.end - self.rows.start])
    }

    /// The times of some rows, if these were read last.
    fn known_of(&self, rows: &Range<usize>) -> Option<&[i64]> {
        let are_known = self.rows.start <= rows.start && rows.end <= self.rows.end;
        are_known.then(|| &self.times[rows.start - self.rows.start..rows.end - self.rows.start])
    }

    /// The time of one row, if need be read by itself.
    fn at(&self, row: usize) -> Result<i64, SegmentError> {
        match self.times.get(row.wrapping_sub(self.rows.start)) {
            Some(time) => Ok(*time),
            None => self.of_block.at(row),
        }
    }

    /// The rows inside `time` among `rows`.
    fn rows_in(
        &mut self,
        rows: Range<usize>,
        time: TimeRange,
    ) -> Result<Range<usize>, SegmentError> {
        match &self.of_block.form {
            Form::Regular(regular) => return Ok(regular.rows_in(&rows, time)),
            Form::Lines(lines) => return Ok(lines.rows_in(&rows, time)),
            Form::Page { .. } => {}
        }
        let (first, last) = self.ends(&rows)?;
        let start = match time.min {
            min if min <= first => rows.start,
            min if min > last => rows.end,
            min => self.first_not_before(min, rows.clone(), (first, last))?,
        };
        let end = match time.max {
            max if max >= last => rows.end,
            max if max < first => rows.start,
            // max < last, so that one more is a time as well.
            max => self.first_not_before(max + 1, rows, (first, last))?,
        };
        Ok(start..end.max(start))
    }

    /// Times of the first and the last row.
    fn ends(&mut self, rows: &Range<usize>) -> Result<(i64, i64), SegmentError> {
        let block = self.of_block.block;
        if block.has_one_series() && rows.len() == block.rows() {
            return Ok((block.first().1, block.last().1));
        }
        let first = self.read(rows.start..rows.start + 1)?[0];
        let last = self.read(rows.end - 1..rows.end)?[0];
        Ok((first, last))
    }

    /// The first of `rows` at `time` or later; `ends` are the times of the first and the last row,
    /// and `time` lies behind the first and not behind the last.
    fn first_not_before(
        &mut self,
        time: i64,
        rows: Range<usize>,
        ends: (i64, i64),
    ) -> Result<usize, SegmentError> {
        // The other end of a short time was mostly found nearby.
        if let (Some(first), Some(last)) = (self.times.first(), self.times.last())
            && *first < time
            && time <= *last
        {
            return Ok(self.rows.start + self.times.partition_point(|t| *t < time));
        }
        let chunk_rows = self.of_block.chunk_rows();
        // Invariant: the row at `low` is before `time`, the row at `high` is not.
        let (mut low, mut high) = ((rows.start, ends.0), (rows.end - 1, ends.1));
        if let Some(known) = self.of_block.known() {
            known.narrow(time, &mut low, &mut high);
        }
        let ((mut low, mut low_time), (mut high, mut high_time)) = (low, high);
        let mut guesses = 0;
        while high - low > 1 {
            let middle = if guesses < GUESSES_MAX {
                low + share(time, low_time, high_time, high - low)
            } else {
                low + (high - low) / 2
            };
            guesses += 1;
            let chunk = middle.clamp(low + 1, high - 1) / chunk_rows * chunk_rows;
            let (from, to) = (chunk.max(low), (chunk + chunk_rows).min(high + 1));
            let times = self.read(from..to)?;
            let (first, last) = (times[0], times[times.len() - 1]);
            if first >= time {
                (high, high_time) = (from, first);
            } else if last < time {
                (low, low_time) = (to - 1, last);
            } else {
                return Ok(from + times.partition_point(|t| *t < time));
            }
        }
        Ok(high)
    }
}

/// Most series are even enough for the first guesses at where a time is; others are halved after so many.
const GUESSES_MAX: usize = 3;

/// How many of `steps` steps from `low` to `high` lead to `time`.
fn share(time: i64, low: i64, high: i64, steps: usize) -> usize {
    let part = u128::from(time.abs_diff(low)) * steps as u128;
    // No more than `steps`, since `time` is not behind `high`; damaged times may disagree.
    ((part / u128::from(high.abs_diff(low).max(1))) as usize).min(steps)
}
