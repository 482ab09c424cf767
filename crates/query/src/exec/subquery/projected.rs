//! Inner queries that only pick and compute columns: their rows are made from those of the store as
//! they are read, batch by batch.
//!
//! Every stored series stays a series of its own. The inner query's groups would put rows of several
//! series in order of time; the query around it does that again anyway.

use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, FieldType, Name, Strings, Values};
use store::{
    ExtentPart, Scan, ScanCursor, ScanItem, ScanSlice, ScanStats, SeriesTable, StoreError,
    TagColumn,
};

use super::SubqueryScan;
use crate::exec::column::{cast, take_column};
use crate::exec::input::{self, Input, ScanUse};
use crate::exec::rows::Block;
use crate::exec::stream::outputs;
use crate::plan::{ColumnKind, Select};
use crate::{QueryContext, QueryError};

/// Whether an inner query has nothing that depends on more than one row.
pub(super) fn is_possible(select: &Select) -> bool {
    let limits = [select.limit, select.offset, select.series_limit, select.series_offset];
    select.is_raw() && limits == [0; 4] && select.fill == Fill::Null && select.after.is_none()
}

/// The inner query's rows, one scan for each scan it reads.
pub(super) fn scans(
    select: &Arc<Select>,
    wanted: &[(usize, FieldType)],
    tags: &[Name],
    ascending: bool,
    context: &QueryContext,
) -> Result<Vec<SubqueryScan>, QueryError> {
    if select.aux.iter().all(|aux| aux.kind == ColumnKind::Unknown) {
        return Ok(Vec::new());
    }
    let usage = ScanUse { ascending, ..ScanUse::default() };
    let inputs = input::open(select, usage, context)?;
    let scan = |input: Input| {
        let name = input.name.clone();
        let series = input.scan.series();
        let tag = |tag: &Name| {
            let at = select.dimensions.iter().position(|dimension| dimension == tag);
            match at {
                Some(at) => series.tags[input.dimensions[at]].clone(),
                None => absent_tag(tag, series.len),
            }
        };
        let table = SeriesTable::new(series.len, tags.iter().map(tag).collect());
        let (select, wanted) = (Arc::clone(select), wanted.to_vec());
        let inner = Arc::new(Inner { select, wanted, input });
        SubqueryScan { name, scan: Box::new(Projected { inner, table }) }
    };
    Ok(inputs.into_iter().map(scan).collect())
}

fn absent_tag(key: &Name, series: u32) -> TagColumn {
    let values: Strings = [""].into_iter().collect();
    TagColumn { key: key.clone(), codes: vec![0; series as usize].into(), values: Arc::new(values) }
}

/// What is read, and what becomes of it.
struct Inner {
    select: Arc<Select>,
    wanted: Vec<(usize, FieldType)>,
    input: Input,
}

struct Projected {
    inner: Arc<Inner>,
    table: SeriesTable,
}

impl Scan for Projected {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        self.inner.input.scan.extent()
    }

    fn cuts(&self, series: Option<&[u32]>, parts: usize) -> Result<Vec<usize>, StoreError> {
        self.inner.input.scan.cuts(series, parts)
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let cursor = self.inner.input.scan.open(slice)?;
        Ok(Box::new(ProjectedCursor { inner: Arc::clone(&self.inner), cursor }))
    }

    fn stats(&self) -> ScanStats {
        self.inner.input.scan.stats()
    }
}

struct ProjectedCursor {
    inner: Arc<Inner>,
    cursor: Box<dyn ScanCursor>,
}

impl ScanCursor for ProjectedCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        loop {
            let batch = match self.cursor.next()? {
                None => return Ok(None),
                Some(ScanItem::Rows(batch)) => self.inner.input.wanted_rows(batch),
                Some(ScanItem::Summaries(_)) => panic!("BUG: summaries were not asked for"),
            };
            if batch.rows > 0 {
                return Ok(Some(ScanItem::Rows(self.inner.project(batch))));
            }
        }
    }
}

impl Inner {
    fn project(&self, mut batch: ColumnBatch) -> ColumnBatch {
        let slots = self.input.take_aux(&mut batch);
        let ColumnBatch { rows, runs, mut columns } = batch;
        let Values::Time(times) = columns.swap_remove(0).values else {
            panic!("BUG: the first column of a scan is the time")
        };
        let mut made = outputs(&self.select, Block { times, slots });
        let mut columns = Vec::with_capacity(self.wanted.len() + 1);
        columns.push(take_column(&mut made, 0, false));
        for (number, (at, field_type)) in self.wanted.iter().enumerate() {
            let is_wanted_again = self.wanted[number + 1..].iter().any(|(other, _)| other == at);
            columns.push(cast(take_column(&mut made, at + 1, is_wanted_again), *field_type));
        }
        ColumnBatch { rows, runs, columns }
    }
}
