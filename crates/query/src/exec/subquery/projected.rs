//! Inner queries that only pick and compute columns: their rows are made from those of the store as
//! they are read, batch by batch.
//!
//! Every stored series stays a series of its own. The inner query's groups would put rows of several
//! series in order of time; the query around it does that again anyway.

use std::sync::Arc;

use influxql::Fill;
use model::{ColumnBatch, FieldType, Name, Strings};
use store::{
    ExtentPart, Scan, ScanCursor, ScanItem, ScanSlice, ScanStats, SeriesTable, StoreError,
    TagColumn,
};

use super::SubqueryScan;
use crate::exec::column::cast;
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
        let table = SeriesTable { len: series.len, tags: tags.iter().map(tag).collect() };
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
                return Ok(Some(ScanItem::Rows(self.inner.project(&batch))));
            }
        }
    }
}

impl Inner {
    fn project(&self, batch: &ColumnBatch) -> ColumnBatch {
        let table = self.input.scan.series();
        let aux = self.input.aux.iter();
        let slots = aux.map(|source| source.column(batch, table).into_owned()).collect();
        let block = Block { times: batch.times().to_vec(), slots };
        let mut made = outputs(&self.select, block);
        let wanted = self.wanted.iter().map(|(at, t)| cast(made[at + 1].clone(), *t)).collect();
        let time = made.swap_remove(0);
        let columns: Vec<_> = std::iter::once(time).chain::<Vec<_>>(wanted).collect();
        ColumnBatch { rows: batch.rows, runs: batch.runs.clone(), columns }
    }
}
