//! Inner queries that run to their end: their rows are kept in memory and read like those of a store.

use std::ops::Range;
use std::sync::Arc;

use model::{
    Column, ColumnBatch, FieldType, Name, Reservation, SeriesRun, Strings, TimeRange, Values,
};
use store::{
    ExtentPart, Scan, ScanCursor, ScanItem, ScanSlice, ScanStats, SeriesTable, StoreError,
    TagColumn,
};

use super::SubqueryScan;
use crate::exec::aggregate::Together;
use crate::exec::column::{append, cast, slice, take, undictionary};
use crate::exec::stream::{Part, SelectStream};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Rows of the parts that the inner query is asked for.
const PART_ROWS: usize = 1 << 14;

/// The kept rows of one name, as a scan.
#[derive(Debug)]
struct KeptScan {
    table: SeriesTable,
    rows: Arc<KeptRows>,
}

#[derive(Debug)]
struct KeptRows {
    /// Where the rows of each series start, and the end.
    starts: Vec<usize>,
    /// In the direction of `ascending`.
    rows: ColumnBatch,
    /// From the earliest to the latest.
    time: TimeRange,
    /// Direction of time of the kept rows.
    ascending: bool,
    usage: KeptUse,
    _reservation: Reservation,
}

/// How kept rows are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptUse {
    /// Direction of time.
    pub(crate) ascending: bool,
    /// Whether it does not matter which series a row is of.
    pub(crate) joins_series: bool,
}

/// Runs a subquery and keeps its rows; one scan a name.
pub(super) fn scans(
    select: &Arc<Select>,
    outputs: &[(usize, FieldType)],
    tags: &[Name],
    usage: KeptUse,
    context: &QueryContext,
) -> Result<Vec<SubqueryScan>, QueryError> {
    let mut stream = SelectStream::open(Arc::clone(select), context)?;
    let mut kept: Vec<Keeper> = Vec::new();
    while let Some(rows) = stream.next_together()? {
        if kept.last().is_none_or(|keeper| keeper.name != *rows.name()) {
            kept.push(Keeper::new(rows.name(), outputs, tags, context)?);
        }
        kept.last_mut().expect("BUG: just added").add_together(&rows, outputs)?;
    }
    while let Some(part) = stream.next(PART_ROWS)? {
        context.interrupt.check()?;
        if kept.last().is_none_or(|keeper| keeper.name != part.header.name) {
            kept.push(Keeper::new(&part.header.name, outputs, tags, context)?);
        }
        let keeper = kept.last_mut().expect("BUG: just added");
        keeper.add(&part, outputs)?;
    }
    for keeper in &mut kept {
        keeper.keep_waiting(outputs)?;
    }
    Ok(kept.into_iter().map(|keeper| keeper.finish(select.ascending, usage)).collect())
}

/// Collects the rows of one name.
struct Keeper {
    name: Name,
    tags: Vec<KeptTag>,
    header: Option<Arc<model::SeriesHeader>>,
    starts: Vec<usize>,
    /// Of all parts.
    rows: usize,
    /// Rows that lie side by side in a batch, of one or more parts, and are not in `columns` yet.
    waiting: Option<(Arc<ColumnBatch>, Range<usize>)>,
    columns: Vec<Column>,
    reservation: Reservation,
}

/// The values of a tag.
struct KeptTag {
    key: Name,
    /// Of series that came one by one.
    values: Vec<Name>,
    /// Of series that came together.
    coded: Option<(Arc<Strings>, Vec<u32>)>,
}

impl KeptTag {
    fn new(key: &Name) -> Self {
        Self { key: key.clone(), values: Vec::new(), coded: None }
    }

    fn add_together(&mut self, rows: &Together<'_>) {
        let missing = || Arc::new(std::iter::once("").collect());
        let Some((texts, codes)) = rows.tag(&self.key) else {
            let (_, all) = self.coded.get_or_insert_with(|| (missing(), Vec::new()));
            all.resize(all.len() + rows.batch().rows, 0);
            return;
        };
        let (known, all) = self.coded.get_or_insert_with(|| (Arc::clone(texts), Vec::new()));
        assert!(Arc::ptr_eq(known, texts), "BUG: groups of one name have several lists of values");
        all.extend(codes);
    }

    fn finish(self) -> TagColumn {
        match self.coded {
            Some((values, codes)) => TagColumn { key: self.key, codes: codes.into(), values },
            None => tag_column(self.key, &self.values),
        }
    }
}

impl Keeper {
    fn new(
        name: &Name,
        outputs: &[(usize, FieldType)],
        tags: &[Name],
        context: &QueryContext,
    ) -> Result<Self, QueryError> {
        let mut columns = vec![Column::new(Values::Time(Vec::new()))];
        columns.extend(outputs.iter().map(|(_, t)| Column::new(Values::empty(*t))));
        Ok(Self {
            name: name.clone(),
            tags: tags.iter().map(KeptTag::new).collect(),
            header: None,
            starts: Vec::new(),
            rows: 0,
            waiting: None,
            columns,
            reservation: context.budget.reserve(0)?,
        })
    }

    fn add(&mut self, part: &Part, outputs: &[(usize, FieldType)]) -> Result<(), QueryError> {
        let same = |header: &Arc<model::SeriesHeader>| Arc::ptr_eq(header, &part.header);
        if !self.header.as_ref().is_some_and(same) {
            self.starts.push(self.rows);
            for KeptTag { key, values, .. } in &mut self.tags {
                let found = part.header.tags.iter().find(|(name, _)| name == key);
                values.push(found.map_or_else(|| Name::from(""), |(_, value)| value.clone()));
            }
            self.header = Some(Arc::clone(&part.header));
        }
        self.rows += part.rows();
        match &mut self.waiting {
            Some((batch, rows))
                if Arc::ptr_eq(batch, &part.batch) && rows.end == part.range.start =>
            {
                rows.end = part.range.end;
                Ok(())
            }
            _ => {
                self.keep_waiting(outputs)?;
                self.waiting = Some((Arc::clone(&part.batch), part.range.clone()));
                Ok(())
            }
        }
    }

    /// Takes over rows that are each of a series of their own.
    fn add_together(
        &mut self,
        rows: &Together<'_>,
        outputs: &[(usize, FieldType)],
    ) -> Result<(), QueryError> {
        let (batch, count) = (rows.batch(), rows.batch().rows);
        self.starts.extend(self.rows..self.rows + count);
        self.tags.iter_mut().for_each(|tag| tag.add_together(rows));
        self.rows += count;
        self.keep_waiting(outputs)?;
        self.waiting = Some((Arc::clone(batch), 0..count));
        self.keep_waiting(outputs)
    }

    /// Takes over the rows that wait for it.
    fn keep_waiting(&mut self, outputs: &[(usize, FieldType)]) -> Result<(), QueryError> {
        let Some((batch, rows)) = self.waiting.take() else { return Ok(()) };
        let column = |at: usize| match rows == (0..batch.rows) {
            true => batch.columns[at].clone(),
            false => slice(&batch.columns[at], rows.clone()),
        };
        append(&mut self.columns[0], &column(0));
        for (kept, (at, field_type)) in self.columns[1..].iter_mut().zip(outputs) {
            let mut more = cast(column(*at + 1), *field_type);
            undictionary(&mut more);
            append(kept, &more);
        }
        let bytes: usize = self.columns.iter().map(|c| c.values.memory_bytes()).sum();
        let bytes = bytes + self.starts.len() * (64 + 32 * self.tags.len());
        if bytes > self.reservation.bytes() {
            // In steps, so that the budget is not asked for every part.
            self.reservation.resize(bytes + bytes / 4)?;
        }
        Ok(())
    }

    fn finish(mut self, ascending: bool, usage: KeptUse) -> SubqueryScan {
        let rows = self.columns[0].len();
        let series = self.starts.len() as u32;
        self.starts.push(rows);
        self.put_in_order(ascending);
        let tags = self.tags.into_iter().map(KeptTag::finish).collect();
        let rows = ColumnBatch { rows, runs: Vec::new(), columns: self.columns };
        let times = rows.times().iter();
        let time = times.clone().min().zip(times.max());
        let kept = KeptRows {
            starts: self.starts,
            time: time.map_or(TimeRange::EMPTY, |(min, max)| TimeRange::new(*min, *max)),
            rows,
            ascending,
            usage,
            _reservation: self.reservation,
        };
        let scan = KeptScan { table: SeriesTable::new(series, tags), rows: Arc::new(kept) };
        SubqueryScan { name: self.name, scan: Box::new(scan) }
    }
}

impl Keeper {
    /// Sorts the rows of each series by time. They come so but for what `top()` and its like choose
    /// in queries that go backwards.
    fn put_in_order(&mut self, ascending: bool) {
        let times = match &self.columns[0].values {
            Values::Time(times) => times,
            other => panic!("BUG: times are no {other:?}"),
        };
        if self.starts.len() == times.len() + 1 {
            // They have a row each.
            return;
        }
        let key = |row: &u32| if ascending { times[*row as usize] } else { !times[*row as usize] };
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        let mut sorted = true;
        for bounds in self.starts.windows(2) {
            let rows = &mut order[bounds[0]..bounds[1]];
            if !rows.is_sorted_by_key(&key) {
                rows.sort_by_key(|row| key(row));
                sorted = false;
            }
        }
        if !sorted {
            self.columns = self.columns.iter().map(|column| take(column, &order)).collect();
        }
    }
}

/// The tag column of series with these values.
pub(crate) fn tag_column(key: Name, values: &[Name]) -> TagColumn {
    let (texts, codes) = if values.is_sorted() { of_sorted(values) } else { of_any(values) };
    let texts: Strings = texts.into_iter().map(|value| &**value).collect();
    TagColumn { key, codes: codes.into(), values: Arc::new(texts) }
}

/// The values that differ, ascending, and the place of each value among them. Groups mostly come in order.
fn of_sorted(values: &[Name]) -> (Vec<&Name>, Vec<u32>) {
    let (mut distinct, mut codes) = (Vec::<&Name>::new(), Vec::with_capacity(values.len()));
    for value in values {
        if distinct.last() != Some(&value) {
            distinct.push(value);
        }
        codes.push(distinct.len() as u32 - 1);
    }
    (distinct, codes)
}

/// The same of values in any order.
fn of_any(values: &[Name]) -> (Vec<&Name>, Vec<u32>) {
    let mut distinct: Vec<&Name> = values.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let code = |value: &Name| distinct.binary_search(&value).unwrap_or(0) as u32;
    let codes = values.iter().map(code).collect();
    (distinct, codes)
}

impl KeptRows {
    /// The rows of a series within `time`.
    fn within(&self, series: u32, time: TimeRange) -> Range<usize> {
        let (start, end) = (self.starts[series as usize], self.starts[series as usize + 1]);
        if time.covers(&self.time) {
            return start..end;
        }
        let times = &self.rows.times()[start..end];
        let (from, to) = if self.ascending {
            (times.partition_point(|t| *t < time.min), times.partition_point(|t| *t <= time.max))
        } else {
            (times.partition_point(|t| *t > time.max), times.partition_point(|t| *t >= time.min))
        };
        start + from..start + to.max(from)
    }
}

impl Scan for KeptScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let KeptRows { rows, time, .. } = &*self.rows;
        match time.is_empty() {
            true => Vec::new(),
            false => vec![ExtentPart { time: *time, rows: rows.rows as u64 }],
        }
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        Ok(Box::new(KeptCursor {
            kept: Arc::clone(&self.rows),
            time: slice.time,
            series: slice.series.clone(),
            count: slice.series.as_ref().map_or(self.table.len as usize, |series| series.len()),
            next: 0,
        }))
    }

    fn stats(&self) -> ScanStats {
        ScanStats::default()
    }
}

/// Hands out kept rows, a batch of one or more series at a time.
struct KeptCursor {
    kept: Arc<KeptRows>,
    time: TimeRange,
    /// The ordinals to read; `None`: all.
    series: Option<Arc<[u32]>>,
    count: usize,
    /// How many of them are done.
    next: usize,
}

impl ScanCursor for KeptCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let kept = Arc::clone(&self.kept);
        let (mut ranges, mut runs) = (Vec::<Range<usize>>::new(), Vec::new());
        let mut count = 0;
        while count < PART_ROWS && self.next < self.count {
            let series = self.series.as_ref().map_or(self.next as u32, |all| all[self.next]);
            self.next += 1;
            let range = kept.within(series, self.time);
            if range.is_empty() {
                continue;
            }
            count += range.len();
            runs.push(SeriesRun { series, rows: range.len() as u32 });
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let is_reversed = kept.ascending != kept.usage.ascending;
        let rows_in_order = || -> Vec<u32> {
            if !is_reversed {
                return ranges.iter().flat_map(|r| r.start as u32..r.end as u32).collect();
            }
            // Series by series, each backwards.
            let of_series = runs.iter().map(|run| kept.within(run.series, self.time));
            of_series.flat_map(|r| (r.start as u32..r.end as u32).rev()).collect()
        };
        let columns = kept.rows.columns.iter();
        let columns = match ranges.as_slice() {
            [range] if !is_reversed => columns.map(|column| slice(column, range.clone())).collect(),
            _ => {
                let order = rows_in_order();
                columns.map(|column| take(column, &order)).collect()
            }
        };
        if kept.usage.joins_series {
            runs = vec![SeriesRun { series: SeriesRun::SEVERAL, rows: count as u32 }];
        }
        Ok(Some(ScanItem::Rows(ColumnBatch { rows: count, runs, columns })))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorted_values_have_the_codes_of_any(mut values in prop::collection::vec("[a-c]{0,2}", 0..20)) {
            values.sort();
            let values: Vec<Name> = values.into_iter().map(Name::from).collect();
            prop_assert_eq!(of_sorted(&values), of_any(&values));
        }
    }
}
