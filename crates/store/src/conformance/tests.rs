//! The suite passes on the model, and finds each of these faults.

use std::ops::Range;
use std::sync::Arc;

use model::{
    Column, ColumnBatch, DatabaseId, Interrupt, MeasurementSchema, PolicyId, SeriesRun,
    SummaryBatch, TimeRange, Values,
};
use parking_lot::Mutex;

use super::*;
use crate::reference::{ReferenceOptions, ReferenceStore, SummaryMode};
use crate::{
    CatalogDocument, DeleteRequest, DeleteTarget, ExtentPart, MatchingRows, MetadataCursor,
    MetadataRequest, Metric, Revision, Scan, ScanCursor, ScanItem, ScanRequest, ScanSlice,
    ScanStats, SeriesTable, StoreError, SwapOutcome, TimeOrder, WriteOutcome, WriteRequest,
};

/// What a [`Flawed`] store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// The last row of large batches is lost.
    LosesRow,
    /// Deletes by time are ignored.
    IgnoresDelete,
    /// Descending scans hand out nothing.
    NoDescending,
    /// Summaries count one row too much.
    Miscounts,
    /// A restart loses everything.
    Forgets,
    /// Expiry panics.
    PanicsOnExpire,
    /// Partitions cannot be dropped.
    KeepsPartitions,
    /// Rows that are named with other values than they have are removed all the same.
    DeletesChanged,
    /// Every swap of the catalog succeeds.
    SwapsAlways,
    /// The revision does not tell of deletes.
    HidesDeletes,
    /// Series are said to begin behind their first row.
    BeginsLate,
    /// No field is said to have a first value.
    EndsEarly,
    /// Series are cut behind the last one.
    CutsNothing,
    /// The last series is said to have no rows.
    LeavesOutSeries,
    /// No time is said to have rows.
    HasNoRows,
}

/// The model with a flaw, behind a handle that survives a restart.
#[derive(Debug)]
struct Flawed {
    flaw: Flaw,
    options: ReferenceOptions,
    store: Mutex<Arc<ReferenceStore>>,
    closed: Mutex<bool>,
    writes: Mutex<u64>,
}

impl Flawed {
    fn boxed(flaw: Flaw, options: ReferenceOptions) -> Box<dyn TestStore> {
        let store = Mutex::new(Arc::new(ReferenceStore::with_options(options)));
        Box::new(Self { flaw, options, store, closed: Mutex::new(false), writes: Mutex::new(0) })
    }

    fn get(&self) -> Result<Arc<ReferenceStore>, StoreError> {
        if *self.closed.lock() {
            return Err(StoreError::Closed);
        }
        Ok(self.store.lock().clone())
    }
}

impl TestStore for Flawed {
    fn store(&self) -> &dyn Store {
        self
    }

    fn reopen(&mut self) {
        *self.closed.lock() = false;
        if self.flaw == Flaw::Forgets {
            *self.store.lock() = Arc::new(ReferenceStore::with_options(self.options));
        }
    }

    fn maintain(&mut self) {}
}

impl Store for Flawed {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        let store = self.get()?;
        *self.writes.lock() += 1;
        let rows = request.batch.rows.len();
        if self.flaw == Flaw::LosesRow && rows > 100 {
            let lost = &request.batch.rows[rows - 1];
            let kept = model::LineBatch {
                text: request.batch.text.clone(),
                layouts: request.batch.layouts.clone(),
                rows: request.batch.rows[..rows - 1].to_vec(),
                values: request.batch.values[..lost.values_start as usize].to_vec(),
                strings: request.batch.strings.clone(),
            };
            let mut outcome = store.write(&WriteRequest { batch: &kept, ..*request })?;
            outcome.rows_written += 1;
            return Ok(outcome);
        }
        store.write(request)
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        let scan = self.get()?.scan(request)?;
        let empty = self.flaw == Flaw::NoDescending && request.order == TimeOrder::Descending;
        let is_ascending = request.order == TimeOrder::Ascending;
        Ok(Box::new(FlawedScan { scan, empty, flaw: self.flaw, is_ascending }))
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        self.get()?.metadata(request)
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        self.get()?.schema(database, measurement, interrupt)
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        match self.flaw {
            Flaw::HidesDeletes => Ok(Some(Revision([*self.writes.lock(), 0, 0]))),
            _ => self.get()?.revision(policy, time),
        }
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        match &request.target {
            DeleteTarget::Matching(named) if self.flaw == Flaw::DeletesChanged => {
                let target = DeleteTarget::Matching(Arc::new(whatever_they_hold(named)));
                self.get()?.delete(&DeleteRequest { target, ..request.clone() })
            }
            DeleteTarget::Rows { .. } if self.flaw == Flaw::IgnoresDelete => Ok(()),
            DeleteTarget::Partition(..) if self.flaw == Flaw::KeepsPartitions => Ok(()),
            _ => self.get()?.delete(request),
        }
    }

    fn expire(&self, database: DatabaseId, policy: PolicyId, at: i64) -> Result<u64, StoreError> {
        assert!(self.flaw != Flaw::PanicsOnExpire, "BUG: expiry");
        self.get()?.expire(database, policy, at)
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.get()?.catalog()
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        let store = self.get()?;
        let always = self.flaw == Flaw::SwapsAlways;
        store.swap_catalog(if always { store.catalog()?.version } else { expected }, bytes)
    }

    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    fn close(&self) -> Result<(), StoreError> {
        *self.closed.lock() = true;
        Ok(())
    }
}

/// The same rows without values.
fn whatever_they_hold(named: &MatchingRows) -> MatchingRows {
    let (series, ranges): (Vec<_>, Vec<_>) =
        named.runs().map(|(key, range)| (key.clone(), range)).unzip();
    let run =
        |(series, range): (u32, &Range<usize>)| SeriesRun { series, rows: range.len() as u32 };
    let rows = ColumnBatch {
        rows: named.len(),
        runs: (0..).zip(&ranges).map(run).collect(),
        columns: vec![Column::new(Values::Time(named.times().to_vec()))],
    };
    MatchingRows::new(named.policy(), named.measurement().clone(), Vec::new(), series, rows)
}

struct FlawedScan {
    scan: Box<dyn Scan>,
    empty: bool,
    flaw: Flaw,
    is_ascending: bool,
}

impl Scan for FlawedScan {
    fn series(&self) -> &SeriesTable {
        self.scan.series()
    }

    fn extent(&self) -> Vec<ExtentPart> {
        self.scan.extent()
    }

    fn cuts(&self, series: Option<&[u32]>, parts: usize) -> Result<Vec<usize>, StoreError> {
        if self.flaw == Flaw::CutsNothing && parts > 1 {
            return Ok(vec![series.map_or(self.series().len as usize, <[u32]>::len)]);
        }
        self.scan.cuts(series, parts)
    }

    fn ends(&self, series: Option<&[u32]>) -> Result<Option<Vec<i64>>, StoreError> {
        let mut ends = self.scan.ends(series)?;
        if self.flaw == Flaw::BeginsLate {
            let late = if self.is_ascending { 2 } else { -2 };
            ends.iter_mut().flatten().for_each(|end| *end += late);
        }
        Ok(ends)
    }

    fn field_ends(
        &self,
        series: &[u32],
        time: TimeRange,
    ) -> Result<Option<SummaryBatch>, StoreError> {
        let mut ends = self.scan.field_ends(series, time)?;
        if self.flaw == Flaw::EndsEarly {
            let fields = ends.iter_mut().flat_map(|ends| &mut ends.fields);
            fields.for_each(|field| field.counts.fill(0));
        }
        Ok(ends)
    }

    fn series_with_rows(&self) -> Result<Vec<u32>, StoreError> {
        let mut found = self.scan.series_with_rows()?;
        if self.flaw == Flaw::LeavesOutSeries {
            found.pop();
        }
        Ok(found)
    }

    fn has_rows(&self, time: TimeRange) -> Result<bool, StoreError> {
        Ok(self.flaw != Flaw::HasNoRows && self.scan.has_rows(time)?)
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let cursor = self.scan.open(slice)?;
        let miscounts = self.flaw == Flaw::Miscounts;
        Ok(Box::new(FlawedCursor { cursor, empty: self.empty, miscounts }))
    }

    fn stats(&self) -> ScanStats {
        self.scan.stats()
    }
}

struct FlawedCursor {
    cursor: Box<dyn ScanCursor>,
    empty: bool,
    miscounts: bool,
}

impl ScanCursor for FlawedCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let mut item = self.cursor.next()?;
        if let Some(ScanItem::Summaries(batch)) = &mut item
            && self.miscounts
        {
            batch.fields[0].counts[0] += 1;
        }
        Ok(if self.empty { None } else { item })
    }
}

fn options(summaries: SummaryMode) -> ReferenceOptions {
    ReferenceOptions {
        summaries,
        item_rows: 7,
        filters: true,
        rows_per_series: true,
        joins_series: true,
        ends: true,
    }
}

#[test]
fn the_model_conforms_whatever_it_chooses() {
    for summaries in [SummaryMode::Never, SummaryMode::Always, SummaryMode::Mixed] {
        run(&|| Flawed::boxed(Flaw::None, options(summaries)));
    }
}

#[test]
fn every_flaw_is_found_and_shown_shortly() {
    for flaw in [
        Flaw::LosesRow,
        Flaw::IgnoresDelete,
        Flaw::NoDescending,
        Flaw::Miscounts,
        Flaw::Forgets,
        Flaw::PanicsOnExpire,
        Flaw::KeepsPartitions,
        Flaw::DeletesChanged,
        Flaw::SwapsAlways,
        Flaw::HidesDeletes,
        Flaw::BeginsLate,
        Flaw::EndsEarly,
        Flaw::CutsNothing,
        Flaw::LeavesOutSeries,
        Flaw::HasNoRows,
    ] {
        let factory = || Flawed::boxed(flaw, options(SummaryMode::Mixed));
        let found = guard(|| {
            (1..=12).for_each(|seed| run_random(&factory, seed, 200));
            Ok(())
        });
        let message = found.expect_err(&format!("{flaw:?} was not found"));
        let (_, list) = message.split_once("after:").unwrap();
        let operations = list.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        assert!((1..=4).contains(&operations.count()), "{flaw:?}: {message}");
    }
}

#[test]
fn a_seed_gives_the_same_operations_every_time() {
    let print = |seed| format!("{:?}", generate::operations(seed, 100));
    assert_eq!(print(5), print(5));
    assert_ne!(print(5), print(6));
}
