//! DELETE with conditions on fields: what a SELECT of all fields with the same FROM and WHERE shows is
//! what goes, in every policy of the database.
//!
//! The rows are read as a SELECT reads them, and sent down with the values that decided, a bounded
//! number at a time; the store removes those that still have these values. So nothing is locked while
//! the condition is evaluated, and no row goes that was written since and does not satisfy it.

use std::sync::Arc;

use influxql::Expr;
use model::{
    Column, ColumnBatch, DatabaseId, FieldType, MeasurementSchema, Name, Reservation, SeriesKey,
    SeriesRun, TagExpr, TimeRange, Values,
};
use store::{DeleteRequest, DeleteTarget, MatchingRows, NameFilter, Policy, ScanItem, ScanSlice};

use crate::exec::input::{Matching, open_matching};
use crate::names::policies;
use crate::plan::{Condition, MeasurementSource, Source, resolve_condition};
use crate::{QueryContext, QueryError};

/// Memory that rows may take before they are sent down, about.
const BYTES_MAX: usize = 16 << 20;

/// Removes the rows of `measurements` within `time` that satisfy `condition`.
pub(super) fn delete(
    measurements: Vec<(Name, Arc<MeasurementSchema>)>,
    condition: &Expr,
    time: TimeRange,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let policies = policies(database, context);
    let Some(any) = policies.first() else { return Ok(()) };
    let source = |(name, schema)| {
        let condition = Condition::none();
        Source::Measurement(MeasurementSource { name, policy: *any, schema, condition })
    };
    let mut sources: Vec<Source> = measurements.into_iter().map(source).collect();
    resolve_condition(condition, &mut sources)?;
    for mut source in sources {
        source.decide_name();
        let Source::Measurement(mut source) = source else { continue };
        if matches!(source.condition.tags, TagExpr::False) {
            continue;
        }
        if source.condition.predicate.is_none() {
            // Tags decide, after all.
            let measurements = NameFilter::In(vec![source.name.clone()]);
            let target =
                DeleteTarget::Rows { measurements, series: source.condition.tags.clone(), time };
            context.store.delete(&DeleteRequest { database, target })?;
            continue;
        }
        for policy in &policies {
            source.policy = *policy;
            delete_from(&source, time, context)?;
        }
    }
    Ok(())
}

fn delete_from(
    source: &MeasurementSource,
    time: TimeRange,
    context: &QueryContext,
) -> Result<(), QueryError> {
    let Some(matching) = open_matching(source, time, context)? else { return Ok(()) };
    let mut cursor = matching.input.cursor(&ScanSlice::all())?;
    let mut gathered = Gathered::new(&matching, source, context)?;
    while let Some(item) = cursor.next()? {
        context.interrupt.check()?;
        let ScanItem::Rows(batch) = item else { panic!("BUG: summaries were not asked for") };
        let batch = matching.input.wanted_rows(batch);
        let mut start = 0;
        for run in &batch.runs {
            let end = start + run.rows as usize;
            while start < end {
                let part = gathered.room().min(end - start);
                gathered.add(run.series, &batch, start..start + part);
                start += part;
                if gathered.is_full() {
                    gathered.send()?;
                }
            }
        }
        gathered.hold()?;
    }
    gathered.send()
}

/// Rows on their way down.
struct Gathered<'a> {
    matching: &'a Matching,
    source: &'a MeasurementSource,
    context: &'a QueryContext,
    /// The time, and the fields that are compared.
    rows: ColumnBatch,
    series: Vec<SeriesKey>,
    /// The scan's number of the last of them.
    last: Option<u32>,
    held: Reservation,
}

impl<'a> Gathered<'a> {
    fn new(
        matching: &'a Matching,
        source: &'a MeasurementSource,
        context: &'a QueryContext,
    ) -> Result<Self, QueryError> {
        let held = context.budget.reserve(0)?;
        let rows = ColumnBatch::default();
        let mut new =
            Self { matching, source, context, rows, series: Vec::new(), last: None, held };
        new.clear();
        Ok(new)
    }

    fn clear(&mut self) {
        let field = |(_, field_type): &(Name, FieldType)| Column::new(Values::empty(*field_type));
        let time = Column::new(Values::Time(Vec::new()));
        let columns = std::iter::once(time).chain(self.matching.compared.iter().map(field));
        self.rows = ColumnBatch { rows: 0, runs: Vec::new(), columns: columns.collect() };
        self.series.clear();
        self.last = None;
    }

    /// Rows that still fit.
    fn room(&self) -> usize {
        MatchingRows::ROWS_MAX - self.rows.rows
    }

    fn is_full(&self) -> bool {
        self.room() == 0 || self.rows.memory_bytes() >= BYTES_MAX
    }

    /// Reserves the memory of what was gathered.
    fn hold(&mut self) -> Result<(), QueryError> {
        // A key takes about what its text does, in pieces.
        const KEY_BYTES: usize = 256;
        Ok(self.held.resize(self.rows.memory_bytes() + self.series.len() * KEY_BYTES)?)
    }

    /// Adds rows of one series.
    fn add(&mut self, series: u32, batch: &ColumnBatch, range: std::ops::Range<usize>) {
        let rows = range.len();
        for (mine, theirs) in self.rows.columns.iter_mut().zip(&batch.columns) {
            mine.extend_from(theirs, range.clone());
        }
        self.rows.rows += rows;
        match self.rows.runs.last_mut() {
            Some(run) if self.last == Some(series) => run.rows += rows as u32,
            _ => {
                let at = self.series.len() as u32;
                self.rows.runs.push(SeriesRun { series: at, rows: rows as u32 });
                self.series.push(self.key(series));
                self.last = Some(series);
            }
        }
    }

    fn key(&self, series: u32) -> SeriesKey {
        let input = &self.matching.input;
        let columns = input.scan.series().tags.iter().enumerate();
        let tags = columns.map(|(at, column)| (column.key.clone(), input.tag(at, series)));
        let there = tags.filter(|(_, value)| !value.is_empty());
        let mut tags: Vec<(Name, Name)> = there.map(|(key, value)| (key, value.into())).collect();
        tags.sort_unstable();
        SeriesKey { measurement: self.source.name.clone(), tags }
    }

    /// Has the store remove what was gathered.
    fn send(&mut self) -> Result<(), QueryError> {
        self.hold()?;
        if self.rows.rows == 0 {
            return Ok(());
        }
        self.context.interrupt.check()?;
        let Policy { database, id, .. } = self.source.policy;
        let rows = std::mem::take(&mut self.rows);
        let series = std::mem::take(&mut self.series);
        let fields = self.matching.compared.clone();
        let named = MatchingRows::new(id, self.source.name.clone(), fields, series, rows);
        let target = DeleteTarget::Matching(Arc::new(named));
        self.context.store.delete(&DeleteRequest { database, target })?;
        self.clear();
        Ok(())
    }
}
