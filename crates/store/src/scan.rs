//! Reading rows.
//!
//! `Store::scan` pins a view and resolves the series; the [`Scan`] it gives can then be opened any
//! number of times, for some of the series and a part of the time: in parallel (disjoint series),
//! group by group (one output series after another), or slice by slice (rows of many series in time
//! order within bounded memory). All cursors of one scan see the same rows.

use std::ops::Range;
use std::sync::Arc;

use model::{
    Budget, ColumnBatch, FieldFilter, FieldType, Interrupt, Name, Strings, SummaryBatch, TagExpr,
    TimeRange,
};

use crate::{Policy, SeriesOrders, StoreError};

/// Limits that a read obeys.
#[derive(Clone, Debug)]
pub struct ScanContext {
    /// Memory it may take.
    pub budget: Budget,
    /// When to stop.
    pub interrupt: Interrupt,
}

/// Which rows of one measurement are wanted.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Database and policy.
    pub policy: Policy,
    /// The measurement.
    pub measurement: Name,
    /// Fields wanted, in the order of the batches' columns, with the types the schema gives them. A
    /// row is handed out if at least one of these fields has a value in it. Empty: no rows at all.
    pub fields: Vec<(Name, FieldType)>,
    /// Tags whose values per series are wanted, in the order of the series table's columns.
    pub tags: Vec<Name>,
    /// Which series. Exact: no other series appears.
    pub series: TagExpr,
    /// Which times. Exact: no other row appears.
    pub time: TimeRange,
    /// A hint: every wanted row satisfies all of these, about fields that `fields` has: of others the store would not see what
    /// was written to them later. It may hand out other rows, but never summaries of them.
    pub filters: Vec<FieldFilter>,
    /// Order of each series' rows.
    pub order: TimeOrder,
    /// A hint: rows will only be aggregated, by series and window, so that the store may hand out
    /// summaries in place of rows. Together with `filters` only if all rows that satisfy them are wanted: summaries are of such
    /// rows alone, rows are to be looked at again.
    pub windows: Option<Windows>,
    /// A hint: it does not matter which of the series of a slice a row is of. The store may then join rows of several to one
    /// run, and sum up rows of several: both are said to be of [`SeriesRun::SEVERAL`](model::SeriesRun::SEVERAL). Times of
    /// such a run are in no order, and may come twice. Runs of one series need not ascend by series then, and a series may
    /// come again; its rows are in order all the same. Not in slices with `rows_per_series`, never together with `first_last`
    /// of summaries.
    pub joins_series: bool,
    /// Limits of the work.
    pub context: ScanContext,
}

/// The order of a series' rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeOrder {
    /// Earliest first.
    Ascending,
    /// Latest first.
    Descending,
}

/// Windows that rows will be aggregated by: `[offset + k * every, offset + (k + 1) * every)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Length, nanoseconds, positive. `None`: one window over the whole time of the request.
    pub every_ns: Option<i64>,
    /// Where window 0 starts, nanoseconds.
    pub offset_ns: i64,
    /// What the consumer will use of a summary; the rest is left unspecified. If that is the count alone and
    /// there are no filters, so are values of rows: of each it matters only whether it is there.
    pub parts: SummaryParts,
}

/// Parts of a summary. `count` is always there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryParts {
    /// `sum` is used.
    pub sum: bool,
    /// `min` and `max` are used.
    pub min_max: bool,
    /// `first` and `last` are used.
    pub first_last: bool,
}

/// What a cursor hands out.
#[derive(Clone, Debug, PartialEq)]
pub enum ScanItem {
    /// Rows: column 0 is the time, then the requested fields; `runs` names the series.
    Rows(ColumnBatch),
    /// Summaries in place of rows; only where the request has `windows`.
    Summaries(SummaryBatch),
}

/// The part of a scan that a cursor reads.
#[derive(Clone, Debug)]
pub struct ScanSlice {
    /// Which series, by ordinal, ascending. `None`: all.
    pub series: Option<Arc<[u32]>>,
    /// Which times; cut to the request's.
    pub time: TimeRange,
    /// A hint: only rows matter that have a value of one of these fields, named by their places in the
    /// request's; the others may be left out. `None`: any of them. Never together with `windows`.
    pub with_any: Option<Arc<[usize]>>,
    /// A hint: of each series only this many rows are read, from the first in the request's order, of those
    /// that satisfy the filters and `with_any`. The store may hand out more.
    pub rows_per_series: Option<u64>,
}

impl ScanSlice {
    /// Everything the scan has.
    #[must_use]
    pub fn all() -> Self {
        Self { series: None, time: TimeRange::ALL, with_any: None, rows_per_series: None }
    }

    /// The series with ordinals in `range`.
    #[must_use]
    pub fn series_range(range: Range<u32>) -> Self {
        Self { series: Some(range.collect()), ..Self::all() }
    }

    /// Of each series this many rows.
    #[must_use]
    pub fn rows_per_series(rows: u64) -> Self {
        Self { rows_per_series: Some(rows), ..Self::all() }
    }
}

/// A pinned view with the series of a request.
pub trait Scan: Send + Sync {
    /// The matching series. Some may turn out to have no rows.
    fn series(&self) -> &SeriesTable;

    /// Where in time the rows are, roughly: disjoint parts in ascending order that together hold
    /// every row of the request. For cutting a scan into slices of bounded size.
    fn extent(&self) -> Vec<ExtentPart>;

    /// Where to cut series (by ordinal, ascending; `None`: all), so that at most `parts` parts take about as long to read each:
    /// how many series come before each cut, ascending. A hint: any cuts do.
    ///
    /// # Errors
    /// [`StoreError`].
    fn cuts(&self, series: Option<&[u32]>, parts: usize) -> Result<Vec<usize>, StoreError> {
        Ok(even_cuts(series.map_or(self.series().len as usize, <[u32]>::len), parts))
    }

    /// For each of some series (by ordinal, ascending; `None`: all) a time that none of its rows comes before, in the
    /// request's order: mostly that of its first row. `None`: rows are found as fast.
    ///
    /// # Errors
    /// [`StoreError`].
    fn ends(&self, series: Option<&[u32]>) -> Result<Option<Vec<i64>>, StoreError> {
        let _ = series;
        Ok(None)
    }

    /// The first value in the request's order that each field has in each of some series (by ordinal, ascending) within a
    /// time: a summary a series that has any. Of its parts `counts` are there (1, or 0 where the field has no value), and
    /// `firsts` or, in descending order, `lasts`. Not with filters. `None`: there is nothing faster than reading rows.
    ///
    /// # Errors
    /// [`StoreError`].
    fn field_ends(
        &self,
        series: &[u32],
        time: TimeRange,
    ) -> Result<Option<SummaryBatch>, StoreError> {
        let _ = (series, time);
        Ok(None)
    }

    /// The series (by ordinal, ascending) that have rows. Not with filters.
    ///
    /// # Errors
    /// [`StoreError`].
    fn series_with_rows(&self) -> Result<Vec<u32>, StoreError> {
        read_for_rows(self, None)
    }

    /// Whether there are rows within a time, of any series; of those that do not satisfy filters it may say that there are.
    ///
    /// # Errors
    /// [`StoreError`].
    fn has_rows(&self, time: TimeRange) -> Result<bool, StoreError> {
        let slice = ScanSlice { time, ..ScanSlice::all() };
        Ok(self.open(&slice)?.next()?.is_some())
    }

    /// Starts reading. The cursor hands out rows by series in ascending ordinal; of each series in the
    /// request's order, no time twice. Summaries come by ascending ordinal as well, but in no order
    /// with the rows. With `windows`, but for `first_last` of summaries, runs of a series come in any order, each in order by
    /// itself. The series of consecutive items may be the same; items are never empty. What is joined
    /// comes anywhere.
    ///
    /// # Errors
    /// [`StoreError`].
    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError>;

    /// What all cursors of this scan have done so far.
    fn stats(&self) -> ScanStats;
}

/// The series of some (by ordinal, ascending; `None`: all) that have rows, by reading one of each: see
/// [`Scan::series_with_rows`].
///
/// # Errors
/// [`StoreError`].
pub fn read_for_rows<S: Scan + ?Sized>(
    scan: &S,
    series: Option<Arc<[u32]>>,
) -> Result<Vec<u32>, StoreError> {
    let mut cursor = scan.open(&ScanSlice { series, ..ScanSlice::rows_per_series(1) })?;
    let mut found: Vec<u32> = Vec::new();
    while let Some(item) = cursor.next()? {
        if let ScanItem::Rows(batch) = item {
            found.extend(batch.runs.iter().filter(|run| run.rows > 0).map(|run| run.series));
            found.dedup();
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Where to cut so many series into parts of as many each, see [`Scan::cuts`].
#[must_use]
pub fn even_cuts(series: usize, parts: usize) -> Vec<usize> {
    let each = series.div_ceil(parts.max(1)).max(1);
    (1..parts).map(|part| part * each).take_while(|cut| *cut < series).collect()
}

/// Reads a slice of a scan.
pub trait ScanCursor: Send {
    /// The next rows or summaries, `None` at the end.
    ///
    /// # Errors
    /// [`StoreError`]; the cursor is of no further use then.
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError>;
}

/// A stretch of time and about how many rows of the matching series are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentPart {
    /// The stretch.
    pub time: TimeRange,
    /// An estimate of the rows of the scan's series in it.
    pub rows: u64,
}

/// What a scan touched, for EXPLAIN ANALYZE and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Sources (segments, memtables, tablets) that could have held rows.
    pub sources: u64,
    /// Of these, left out because of their time or series bounds.
    pub sources_pruned: u64,
    /// Pages (or blocks) decoded.
    pub pages_read: u64,
    /// Pages left out because of bounds, filters or summaries.
    pub pages_pruned: u64,
    /// Pages answered by their summary.
    pub pages_summarised: u64,
    /// Encoded bytes of the pages read, but not of those that single rows were picked out of in memory.
    pub bytes_read: u64,
    /// Rows handed out.
    pub rows: u64,
}

/// The series of a scan, with the tags that were asked for, column by column.
#[derive(Clone, Debug, Default)]
pub struct SeriesTable {
    /// Number of series; ordinals are `0..len`.
    pub len: u32,
    /// One column a requested tag, in the request's order.
    pub tags: Vec<TagColumn>,
    /// What is known of the order of these series by their tags.
    pub orders: SeriesOrders,
}

impl SeriesTable {
    /// A table of so many series of whose order nothing is known.
    #[must_use]
    pub fn new(len: u32, tags: Vec<TagColumn>) -> Self {
        Self { len, tags, orders: SeriesOrders::default() }
    }
}

/// The values of one tag over the series of a scan.
#[derive(Clone, Debug)]
pub struct TagColumn {
    /// The tag key.
    pub key: Name,
    /// Per series, an index into `values`.
    pub codes: Arc<[u32]>,
    /// The distinct values, sorted bytewise, and maybe others that no series has; series without the tag have `""`.
    pub values: Arc<Strings>,
}
