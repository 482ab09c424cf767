//! Rows of many short series out of several sources: what each source has of a thousand series is read at once, then put
//! together series by series.
//!
//! While rows come, the latest ones are in a few segments and a memtable. Asked for one by one, a series with a handful of
//! rows costs a search in each of them, and for each a list, columns and a lock: far more than its rows. Here blocks are
//! decoded whole and a shard of a memtable is locked once for all of its series.
//!
//! Where no row is later written to again (of each series what a newer source has is later in time, as it is of rows that come
//! in order), the rows of a source are what they are: those that filters leave out are left out before anything is put
//! together, and where it does not matter which series a row is of nothing is.

use std::ops::Range;
use std::sync::Arc;

use model::{Bitmap, Column, SeriesId, SeriesRun, TimeRange, Values};
use segment::{Block, Edge};
use store::{StoreError, TimeOrder};

use super::memtable_source::MemtableSource;
use super::merge::merge;
use super::piece::{Piece, empty_like};
use super::series_left::SeriesLeft;
use super::series_reader::{PartitionSources, SeriesReader};
use super::shared_block::{ManyRows, READ_ALONE, is_shared};
use super::source::{SegmentSource, Source, same};
use super::within_time::has_long_runs;
use crate::error::segment_error;
use crate::memtable::{Few, FoundRows};

/// Rows and cells that are gathered at once, about: more than a few series have, few enough to stay in a core's cache.
const ROWS_AT_ONCE: u64 = 1 << 15;
const CELLS_AT_ONCE: u64 = 1 << 18;
/// So many cells of segments are enough, however few each series was thought to have: rows may lie closer together than on
/// average.
const CELLS_ENOUGH: usize = 8 << 18;
/// Series that are gathered at once.
const SERIES_AT_ONCE: Range<u64> = 64..2048;

/// How many series are gathered at once if each has so many rows of so many columns; `None`: as many are better read by
/// themselves.
pub(super) fn series_at_once(rows_each: u64, columns: usize) -> Option<usize> {
    let rows = ROWS_AT_ONCE.min(CELLS_AT_ONCE / columns.max(1) as u64);
    let series = (rows / rows_each.max(1)).min(SERIES_AT_ONCE.end);
    usize::try_from(series).ok().filter(|_| series >= SERIES_AT_ONCE.start)
}

/// Rows of one series in one piece, at least one. A million series have millions of these: they are short.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The series, by its place among those that are gathered.
    at: u32,
    piece: u32,
    start: u32,
    end: u32,
}

impl Part {
    fn new(at: usize, piece: usize, rows: Range<usize>) -> Self {
        let [at, piece, start, end] = [at, piece, rows.start, rows.end].map(|number| number as u32);
        Self { at, piece, start, end }
    }

    fn rows(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn piece<'a>(&self, pieces: &'a [Arc<Piece>]) -> &'a Piece {
        &pieces[self.piece as usize]
    }

    /// The first and the last time.
    fn ends(&self, pieces: &[Arc<Piece>]) -> (i64, i64) {
        let times = &self.piece(pieces).times;
        (times[self.start as usize], times[self.end as usize - 1])
    }
}

/// What sources have.
#[derive(Debug, Default)]
struct Found {
    pieces: Vec<Arc<Piece>>,
    /// Those of older sources first; of each source by series and time.
    parts: Vec<Part>,
    /// Of segments.
    cells: usize,
}

impl SeriesReader {
    /// Whether rows of many series may be gathered: nothing is hidden.
    pub(super) fn gathers(&self) -> bool {
        let hides_nothing = |source: &Source| match source {
            Source::Memtable(memtable) => memtable.tombstones.is_empty(),
            Source::Segment(segment) => !segment.has_tombstones(),
        };
        self.partitions.iter().flat_map(|partition| &partition.sources).all(hides_nothing)
    }

    /// Reads the next of the series that are `left`, up to the first that has blocks of its own.
    ///
    /// # Panics
    /// Unless [`Self::gathers`].
    pub(super) fn gather(&mut self, left: &SeriesLeft<'_>) -> Result<ManyRows, StoreError> {
        let mut wanted: Vec<(u32, SeriesId)> = left.iter().take(self.gathered).collect();
        let all = wanted.len();
        let has_windows = self.windows.is_some();
        let mut found = Found::default();
        // Segments first: they may say that fewer series can be gathered. In a partition memtables are newer than all.
        for PartitionSources { time, sources, .. } in &mut self.partitions {
            let time = self.time.intersect(time);
            for source in sources {
                if let Source::Segment(segment) = source {
                    let shared = found.add_segment(segment, &wanted, time, has_windows)?;
                    wanted.truncate(shared);
                }
            }
        }
        if wanted.len() < all.min(READ_ALONE) {
            return Ok(ManyRows::none(READ_ALONE));
        }
        found.parts.retain(|part| (part.at as usize) < wanted.len());
        for PartitionSources { time, sources, .. } in &self.partitions {
            let time = self.time.intersect(time);
            for source in sources {
                if let Source::Memtable(memtable) = source {
                    found.add_memtable(memtable, &wanted, (time, None));
                }
            }
        }
        let is_final = found.is_ascending(wanted.len());
        let joins = is_final && self.joins_series && self.order == TimeOrder::Ascending;
        if is_final && !joins && !self.filters.is_empty() {
            found.leave_out(|piece| self.kept(piece, (self.time, self.time)));
        }
        let joined = if joins { found.all() } else { found.by_series(&wanted, is_final) };
        let rows = joined.and_then(|(piece, runs)| {
            let kept = self.kept(&piece, (self.time, self.time));
            self.cut(piece, &runs, kept.as_ref(), self.joins_series)
        });
        let (done, alone) = (wanted.len(), usize::from(wanted.len() < all));
        Ok(ManyRows { rows, done, alone, ..ManyRows::default() })
    }
}

impl MemtableSource {
    /// Rows of many series, one behind the other, with those of each that has any; no more than are enough, about. `None` if
    /// there are none.
    pub(super) fn few_of_many(
        &self,
        wanted: &[(u32, SeriesId)],
        time: TimeRange,
    ) -> Option<(Piece, Vec<(u32, Range<usize>)>)> {
        let mut found = Found::default();
        found.add_memtable(self, wanted, (time, self.few.as_ref()));
        found.by_series(wanted, true)
    }
}

impl Found {
    fn add_memtable(
        &mut self,
        source: &MemtableSource,
        wanted: &[(u32, SeriesId)],
        within: (TimeRange, Option<&Few>),
    ) {
        let MemtableSource { table, pin, places, .. } = source;
        let series = wanted.iter().map(|(_, series)| *series);
        table.read_many(series, within, pin, places, |block, of_series| {
            let piece = self.pieces.len();
            self.pieces.push(Arc::new(Piece { times: block.times, columns: block.columns }));
            let part = |FoundRows { at, rows }| Part::new(at, piece, rows);
            self.parts.extend(of_series.into_iter().map(part));
        });
    }

    /// Adds what a segment has of the first of the wanted series, as many as share their blocks with others; how many these
    /// are.
    fn add_segment(
        &mut self,
        source: &mut SegmentSource,
        wanted: &[(u32, SeriesId)],
        time: TimeRange,
        has_windows: bool,
    ) -> Result<usize, StoreError> {
        let mut at = 0;
        let mut read: Option<Block> = None;
        while let Some((_, first)) = wanted.get(at) {
            let mut next = at + 1;
            if source.may_have(*first, time) {
                let mut walk = source.walk(*first, time);
                while let Some(block) = source.next_block(&mut walk, Edge::First)? {
                    if read.as_ref().is_some_and(|read| same(read, &block)) {
                        continue;
                    }
                    // A series with several blocks may have any number of rows.
                    let is_alone = block.has_one_series() && walk.may_have_more();
                    let is_short = !is_alone && source.has_parts_within(&block, time);
                    if !is_shared(&block, has_windows) && !is_short {
                        return Ok(at);
                    }
                    next = next.max(self.add_block(source, &block, (wanted, at), time)?);
                    read = Some(block);
                }
            }
            at = next;
            if self.cells >= CELLS_ENOUGH {
                return Ok(at.min(wanted.len()));
            }
        }
        Ok(wanted.len())
    }

    /// Adds what a block has of the wanted series from `at` on; the place of the first of them that blocks behind it may
    /// have rows of.
    fn add_block(
        &mut self,
        source: &mut SegmentSource,
        block: &Block,
        (wanted, at): (&[(u32, SeriesId)], usize),
        time: TimeRange,
    ) -> Result<usize, StoreError> {
        source.near = block.place();
        let runs = source.reader.runs(block).map_err(segment_error)?;
        let last = runs.series(runs.len() - 1);
        let (mut run, mut next) = (runs.index_from(wanted[at].1), at);
        let (mut places, mut rows_of) = (Vec::new(), Vec::new());
        for (place, (_, series)) in wanted.iter().enumerate().skip(at) {
            if *series > last {
                break;
            }
            next = place + usize::from(*series < last);
            run = runs.index_near(run, *series);
            if runs.series(run) == *series {
                places.push(place);
                rows_of.push(runs.rows(run));
            }
        }
        if source.has_parts_within(block, time) && has_long_runs(block, &runs) {
            let (piece, found) = source.read_parts_within(block, &rows_of, time)?;
            let mut end = 0;
            let behind = found.into_iter().map(|rows| {
                end += rows.len();
                end - rows.len()..end
            });
            self.add_parts(Arc::new(piece), places, behind);
            return Ok(next);
        }
        let (whole, is_inside) = (source.held_whole(block)?, time.covers(&block.time()));
        let within = rows_of.into_iter().map(|rows| {
            if is_inside {
                return rows;
            }
            let times = &whole.times[rows.clone()];
            let from = times.partition_point(|at| *at < time.min);
            let to = times.partition_point(|at| *at <= time.max);
            rows.start + from..rows.start + to
        });
        self.add_parts(Arc::clone(&whole), places, within);
        Ok(next)
    }

    /// Adds rows of a piece, of series by their places.
    fn add_parts(
        &mut self,
        piece: Arc<Piece>,
        places: Vec<usize>,
        rows_of: impl Iterator<Item = Range<usize>>,
    ) {
        let (number, columns) = (self.pieces.len(), piece.columns.len() + 1);
        for (place, rows) in places.into_iter().zip(rows_of).filter(|(_, rows)| !rows.is_empty()) {
            self.cells += rows.len() * columns;
            self.parts.push(Part::new(place, number, rows));
        }
        self.pieces.push(piece);
    }

    /// Whether of each of so many series all that a part has is later than what the parts before it have.
    fn is_ascending(&self, series: usize) -> bool {
        let mut last = vec![i64::MIN; series];
        self.parts.iter().all(|part| {
            let (from, to) = part.ends(&self.pieces);
            std::mem::replace(&mut last[part.at as usize], to) < from
        })
    }

    /// Leaves out parts of which `kept` keeps no row.
    fn leave_out(&mut self, kept: impl Fn(&Piece) -> Option<Bitmap>) {
        let kept: Vec<Option<Bitmap>> = self.pieces.iter().map(|piece| kept(piece)).collect();
        self.parts.retain(|part| {
            let kept = kept[part.piece as usize].as_ref();
            kept.is_none_or(|kept| kept.count_ones_in(part.rows()) > 0)
        });
    }

    /// All of it as it comes; `None` if there is nothing.
    fn all(self) -> Option<(Piece, Vec<(u32, Range<usize>)>)> {
        let mut joined = Joined::new(self.pieces);
        self.parts.iter().for_each(|part| joined.add(*part));
        let rows = joined.rows;
        Some((joined.finish()?, vec![(SeriesRun::SEVERAL, 0..rows)]))
    }

    /// All of it, series by series, with the rows of each; `None` if there is nothing.
    fn by_series(
        self,
        wanted: &[(u32, SeriesId)],
        is_ascending: bool,
    ) -> Option<(Piece, Vec<(u32, Range<usize>)>)> {
        let mut parts = sorted(&self.parts, wanted.len());
        let mut joined = Joined::new(self.pieces);
        let mut runs: Vec<(u32, Range<usize>)> = Vec::new();
        for of_series in parts.chunk_by_mut(|a, b| a.at == b.at) {
            let start = joined.rows;
            if is_ascending || in_order(&joined.pieces, of_series) {
                of_series.iter().for_each(|part| joined.add(*part));
            } else {
                joined.add_merged(of_series);
            }
            runs.push((wanted[of_series[0].at as usize].0, start..joined.rows));
        }
        Some((joined.finish()?, runs))
    }
}

/// Parts of so many series, series by series; those of older sources stay before those of newer ones.
fn sorted(parts: &[Part], series: usize) -> Vec<Part> {
    let mut places = vec![0; series];
    parts.iter().for_each(|part| places[part.at as usize] += 1);
    let mut next = 0;
    places.iter_mut().for_each(|place| next += std::mem::replace(place, next));
    let mut sorted = vec![Part::default(); parts.len()];
    for part in parts {
        let place = &mut places[part.at as usize];
        sorted[*place] = *part;
        *place += 1;
    }
    sorted
}

/// Rows one behind the other.
struct Joined {
    pieces: Vec<Arc<Piece>>,
    /// Where they are; neighbours already are one part, of whichever series.
    parts: Vec<Part>,
    rows: usize,
}

impl Joined {
    fn new(pieces: Vec<Arc<Piece>>) -> Self {
        Self { pieces, parts: Vec::new(), rows: 0 }
    }

    fn add(&mut self, part: Part) {
        self.rows += part.rows().len();
        match self.parts.last_mut() {
            Some(last) if last.piece == part.piece && last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
    }

    /// Adds rows of one series whose times overlap, those of older sources first.
    fn add_merged(&mut self, parts: &[Part]) {
        let cut = |part: &Part| part.piece(&self.pieces).part(part.rows());
        let merged = merge(&parts.iter().map(cut).collect::<Vec<_>>());
        self.add(Part::new(0, self.pieces.len(), 0..merged.times.len()));
        self.pieces.push(Arc::new(merged));
    }

    /// Copies them; `None` if there are none.
    fn finish(self) -> Option<Piece> {
        let columns = self.parts.first()?.piece(&self.pieces).columns.len();
        let mut times = Vec::with_capacity(self.rows);
        for part in &self.parts {
            times.extend_from_slice(&part.piece(&self.pieces).times[part.rows()]);
        }
        Some(Piece { times, columns: (0..columns).map(|column| self.column(column)).collect() })
    }

    /// A column of all rows, of which there are some.
    fn column(&self, column: usize) -> Column {
        let of = |part: &Part| &part.piece(&self.pieces).columns[column];
        let mut all = empty_like(of(&self.parts[0]));
        all.values.reserve(self.rows);
        let are_all_there = self.pieces.iter().all(|p| p.columns[column].validity.is_none());
        // Parts are a row or two: what type they are of is asked once.
        macro_rules! copy {
            ($type:ident, $values:expr) => {
                for part in &self.parts {
                    let Values::$type(values) = &of(part).values else {
                        panic!("BUG: columns of two types")
                    };
                    $values.extend_from_slice(&values[part.rows()]);
                }
            };
        }
        match &mut all.values {
            Values::Float(values) if are_all_there => copy!(Float, values),
            Values::Integer(values) if are_all_there => copy!(Integer, values),
            _ => self.parts.iter().for_each(|part| all.extend_from(of(part), part.rows())),
        }
        all
    }
}

/// Puts parts of one series in order of time if none overlaps another; whether that is so.
fn in_order(pieces: &[Arc<Piece>], parts: &mut [Part]) -> bool {
    let is_before = |a: &Part, b: &Part| a.ends(pieces).1 < b.ends(pieces).0;
    let are_ascending = |parts: &[Part]| parts.windows(2).all(|two| is_before(&two[0], &two[1]));
    if are_ascending(parts) {
        return true;
    }
    let mut sorted = parts.to_vec();
    sorted.sort_by_key(|part| part.ends(pieces).0);
    let are_apart = are_ascending(&sorted);
    if are_apart {
        parts.copy_from_slice(&sorted);
    }
    are_apart
}

#[cfg(test)]
mod tests {
    use model::Scalar;
    use proptest::prelude::*;

    use super::*;

    /// What sources have of some series: two columns, one with gaps and one without.
    fn found(sources: &[Vec<(usize, i64)>]) -> Found {
        let mut found = Found::default();
        for (source, rows) in sources.iter().enumerate() {
            let rows: std::collections::BTreeSet<(usize, i64)> = rows.iter().copied().collect();
            let rows: Vec<(usize, i64)> = rows.into_iter().collect();
            let mut columns = vec![Column::new(Values::Integer(Vec::new())); 2];
            for (at, (_, time)) in rows.iter().enumerate() {
                let value = Scalar::Integer((source * 1000 + at) as i64);
                columns[0].push(Some(&value).filter(|_| (*time + source as i64) % 3 > 0));
                columns[1].push(Some(&value));
            }
            for of_series in rows.chunk_by(|a, b| a.0 == b.0) {
                let start = rows.partition_point(|row| row.0 < of_series[0].0);
                let part = Part::new(of_series[0].0, source, start..start + of_series.len());
                found.parts.push(part);
            }
            let times = rows.iter().map(|(_, time)| *time).collect();
            found.pieces.push(Arc::new(Piece { times, columns }));
        }
        found
    }

    const SERIES: usize = 6;

    proptest! {
        #[test]
        fn what_sources_have_is_put_together(
            mut sources in prop::collection::vec(prop::collection::vec((0..SERIES, 0..12i64), 0..20), 1..4),
            come_in_order: bool,
        ) {
            if come_in_order {
                let later = |(at, rows): (i64, &mut Vec<(usize, i64)>)| {
                    rows.iter_mut().for_each(|(_, time)| *time += 20 * at);
                };
                (0..).zip(&mut sources).for_each(later);
            }
            let wanted: Vec<(u32, SeriesId)> = (0..SERIES as u32).map(|at| (at + 50, SeriesId(7))).collect();
            let is_ascending = found(&sources).is_ascending(SERIES);
            prop_assert!(is_ascending || !come_in_order);
            let expected = |at: usize| {
                let Found { pieces, parts, .. } = found(&sources);
                let of_series = parts.iter().filter(|part| part.at as usize == at);
                let cut: Vec<Piece> = of_series.map(|p| p.piece(&pieces).part(p.rows())).collect();
                (!cut.is_empty()).then(|| merge(&cut))
            };
            let (piece, runs) = found(&sources).by_series(&wanted, is_ascending).unwrap_or_default();
            let mut runs = runs.into_iter().peekable();
            for (at, (ordinal, _)) in wanted.iter().enumerate() {
                let of_series = runs.next_if(|(run, _)| run == ordinal);
                let there = of_series.map(|(_, rows)| piece.part(rows));
                let expected = expected(at);
                prop_assert_eq!(there.as_ref().map(|p| &p.times), expected.as_ref().map(|p| &p.times));
                let values = |piece: &Option<Piece>| {
                    let columns = piece.iter().flat_map(|piece| &piece.columns);
                    columns.flat_map(|c| (0..c.len()).map(|at| c.get(at)).collect::<Vec<_>>()).collect::<Vec<_>>()
                };
                prop_assert_eq!(values(&there), values(&expected));
            }
            if is_ascending {
                let rows = |(piece, _): (Piece, Vec<(u32, Range<usize>)>)| {
                    let row = |at: usize| {
                        (piece.times[at], piece.columns.iter().map(|c| c.get(at)).collect::<Vec<_>>())
                    };
                    let mut rows: Vec<_> = (0..piece.times.len()).map(row).collect();
                    rows.sort_by_key(|row| format!("{row:?}"));
                    rows
                };
                let all = found(&sources).all().map(rows);
                prop_assert_eq!(all, found(&sources).by_series(&wanted, false).map(rows));
            }
        }
    }

    #[test]
    fn series_with_many_rows_or_columns_are_not_gathered() {
        assert_eq!(series_at_once(6, 2), Some(2048));
        assert_eq!(series_at_once(100, 2), Some(327));
        assert_eq!(series_at_once(513, 2), None);
        assert_eq!(series_at_once(0, 100), Some(2048));
        assert_eq!(series_at_once(6, 1000), None);
    }
}
