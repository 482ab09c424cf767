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
use crate::exec::column::{append, cast, slice, take, undictionary};
use crate::exec::stream::{Part, SelectStream};
use crate::plan::Select;
use crate::{QueryContext, QueryError};

/// Rows of the parts that the inner query is asked for.
const PART_ROWS: usize = 1 << 14;

/// The kept rows of one name.
#[derive(Debug)]
struct KeptRows {
    table: SeriesTable,
    /// Where the rows of each series start, and the end.
    starts: Vec<usize>,
    /// Rows in the direction of `ascending`.
    rows: Arc<ColumnBatch>,
    /// Direction of time of the kept rows.
    ascending: bool,
    /// Direction of time they are read in.
    read_ascending: bool,
    _reservation: Reservation,
}

/// Runs a subquery and keeps its rows; one scan a name.
pub(super) fn scans(
    select: &Arc<Select>,
    outputs: &[(usize, FieldType)],
    tags: &[Name],
    ascending: bool,
    context: &QueryContext,
) -> Result<Vec<SubqueryScan>, QueryError> {
    let mut stream = SelectStream::open(Arc::clone(select), context)?;
    let mut kept: Vec<Keeper> = Vec::new();
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
    Ok(kept.into_iter().map(|keeper| keeper.finish(select.ascending, ascending)).collect())
}

/// Collects the rows of one name.
struct Keeper {
    name: Name,
    tags: Vec<(Name, Vec<Name>)>,
    header: Option<Arc<model::SeriesHeader>>,
    starts: Vec<usize>,
    /// Of all parts.
    rows: usize,
    /// Rows that lie side by side in a batch, of one or more parts, and are not in `columns` yet.
    waiting: Option<(Arc<ColumnBatch>, Range<usize>)>,
    columns: Vec<Column>,
    reservation: Reservation,
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
            tags: tags.iter().map(|tag| (tag.clone(), Vec::new())).collect(),
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
            for (key, values) in &mut self.tags {
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

    fn finish(mut self, ascending: bool, read_ascending: bool) -> SubqueryScan {
        let rows = self.columns[0].len();
        let series = self.starts.len() as u32;
        self.starts.push(rows);
        self.put_in_order(ascending);
        let tags = self.tags.into_iter().map(|(key, values)| tag_column(key, &values)).collect();
        let scan = KeptRows {
            table: SeriesTable { len: series, tags },
            starts: self.starts,
            rows: Arc::new(ColumnBatch { rows, runs: Vec::new(), columns: self.columns }),
            ascending,
            read_ascending,
            _reservation: self.reservation,
        };
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
    TagColumn { key, codes, values: Arc::new(texts) }
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
    fn times(&self) -> &[i64] {
        self.rows.times()
    }

    /// The rows of a series within `time`.
    fn within(&self, series: u32, time: TimeRange) -> Range<usize> {
        let (start, end) = (self.starts[series as usize], self.starts[series as usize + 1]);
        let times = &self.times()[start..end];
        let (from, to) = if self.ascending {
            (times.partition_point(|t| *t < time.min), times.partition_point(|t| *t <= time.max))
        } else {
            (times.partition_point(|t| *t > time.max), times.partition_point(|t| *t >= time.min))
        };
        start + from..start + to.max(from)
    }
}

impl Scan for KeptRows {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        let times = self.times().iter();
        let (Some(min), Some(max)) = (times.clone().min(), times.max()) else { return Vec::new() };
        let rows = self.rows.rows as u64;
        vec![ExtentPart { time: TimeRange::new(*min, *max), rows }]
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let all: Vec<u32> = match &slice.series {
            Some(series) => series.to_vec(),
            None => (0..self.table.len).collect(),
        };
        let ranges = all.into_iter().map(|series| (series, self.within(series, slice.time)));
        let ranges: Vec<_> = ranges.filter(|(_, range)| !range.is_empty()).collect();
        let reverse = self.ascending != self.read_ascending;
        let rows = Arc::clone(&self.rows);
        Ok(Box::new(KeptCursor { rows, ranges: ranges.into_iter(), reverse }))
    }

    fn stats(&self) -> ScanStats {
        ScanStats::default()
    }
}

/// Hands out kept rows, a batch of one or more series at a time.
struct KeptCursor {
    rows: Arc<ColumnBatch>,
    ranges: std::vec::IntoIter<(u32, Range<usize>)>,
    reverse: bool,
}

impl ScanCursor for KeptCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let mut rows: Vec<u32> = Vec::new();
        let mut runs = Vec::new();
        while rows.len() < PART_ROWS {
            let Some((series, range)) = self.ranges.next() else { break };
            runs.push(SeriesRun { series, rows: range.len() as u32 });
            let range = range.start as u32..range.end as u32;
            if self.reverse {
                rows.extend(range.rev());
            } else {
                rows.extend(range);
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = self.rows.columns.iter().map(|column| take(column, &rows)).collect();
        Ok(Some(ScanItem::Rows(ColumnBatch { rows: rows.len(), runs, columns })))
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
