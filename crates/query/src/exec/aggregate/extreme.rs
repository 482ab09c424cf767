//! The point of a `max()` or `min()` over all rows of one measurement, where its time is shown: summaries say what the
//! value is, and then the rows that have it are looked for. A page that only holds others is not decoded.
//!
//! Invariants
//! - Both steps find the same rows: the store's revision is the same before the first and after the second.
//! - Where a step cannot say, or would have to read many rows for it, there is no answer here, and all rows are read.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Column, CompareOp, FieldFilter, Operand, Scalar, TagExpr, TimeRange, Values};
use store::{ScanItem, ScanRequest, ScanSlice, TimeOrder};

use super::{Item, Points, Reader, Recipe, Run, usage};
use crate::QueryError;
use crate::exec::accumulate::kernels::first_valid;
use crate::exec::input::ColumnSource;
use crate::exec::unit;
use crate::functions::Function;
use crate::plan::Source;

/// Of the rows this part is read at most to know a value.
const READ_PART: u64 = 16;

/// The point, if the SELECT asks for one and this is a way to find it that pays.
pub(super) fn point(run: &Run<'_>) -> Result<Option<Points>, QueryError> {
    let (select, context) = (run.select, run.context);
    let Some(request) = plain_request(run) else { return Ok(None) };
    let (policy, time) = (request.policy.id, request.time);
    let Some(revision) = context.store.revision(policy, time)? else { return Ok(None) };

    let recipe = Recipe::without_points(select);
    let units = unit::open(select, usage(select, &recipe), context)?;
    let [of_totals] = units.as_slice() else { return Ok(None) };
    if of_totals.groups.len() != 1 {
        return Ok(None);
    }
    let totals = Run { recipe: &recipe, unit: of_totals, combinations: Vec::new(), ..*run };
    let Some(values) = extreme(&totals)? else { return Ok(None) };
    let Some(value) = value_of(&values) else { return Ok(None) };

    let filter = FieldFilter {
        field: request.fields[0].0.clone(),
        op: CompareOp::Equal,
        operand: Operand::Constant(value.clone()),
    };
    // Of long series the first row that has the value is enough.
    let is_long = has_long_series(run);
    let having_it = ScanRequest {
        filters: vec![filter],
        order: TimeOrder::Ascending,
        windows: None,
        joins_series: !is_long,
        ..request.clone()
    };
    let scan = context.store.scan(&having_it)?;
    if context.store.revision(policy, time)? != Some(revision) {
        return Ok(None);
    }
    let slice = if is_long { ScanSlice::rows_per_series(1) } else { ScanSlice::all() };
    let mut cursor = scan.open(&slice)?;
    let mut first: Option<i64> = None;
    while let Some(item) = cursor.next()? {
        context.interrupt.check()?;
        let ScanItem::Rows(batch) = item else { panic!("BUG: summaries were not asked for") };
        let Values::Time(times) = &batch.columns[0].values else {
            panic!("BUG: column 0 of a batch is not the time")
        };
        let column = &batch.columns[1];
        for (row, at) in times.iter().enumerate() {
            // The store may hand out rows that it was not asked for.
            if has(column, row, &value) {
                first = Some(first.map_or(*at, |first| first.min(*at)));
            }
        }
    }
    Ok(first.map(|time| Points { times: vec![time], values, aux: Vec::new() }))
}

/// The value, if hardly any rows have to be read for it: of what is in memory, or overlaps, there are no summaries, and to read
/// such rows twice would take longer than to read all once.
fn extreme(run: &Run<'_>) -> Result<Option<Column>, QueryError> {
    let (input, range) = (&run.unit.inputs[0], run.read_range());
    let Some(slice) = run.unit.slice(0, 0..1, range) else { return Ok(None) };
    let rows = run.unit.rows_within(0, &slice) as u64;
    let shares = run.unit.shares(0, slice, rows, run.context)?;
    let (read, read_max) = (AtomicU64::new(0), rows / READ_PART);
    let of_share = |share: &ScanSlice| {
        let mut state = run.accumulator(1, range)?;
        let reader = Reader { context: run.context, interrupt: &run.context.interrupt };
        let is_whole = reader.read_while(input, share, |item| {
            match item {
                Item::Rows(batch) => {
                    let more = batch.rows as u64;
                    if read.fetch_add(more, Ordering::Relaxed) + more > read_max {
                        return Ok(false);
                    }
                    state.add_rows(0, input, &batch, |_| Some(0))?;
                }
                Item::Summaries(batch) => state.add_summaries(input, &batch, |_| Some(0))?,
            }
            Ok(true)
        })?;
        Ok(is_whole.then_some(state))
    };
    let parts = unit::on_threads(&shares, of_share)?;
    let Some(parts) = parts.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let mut parts = parts.into_iter();
    let Some(mut state) = parts.next() else { return Ok(None) };
    parts.try_for_each(|part| state.merge(part))?;
    let groups = state.finish(&run.unit.inputs, |_, points| points);
    Ok(groups.into_iter().flatten().next().map(|points| points.values))
}

/// What the only scan of `run` was asked for, if all that is wanted of it is one greatest or least number.
fn plain_request<'a>(run: &Run<'a>) -> Option<&'a ScanRequest> {
    let (select, context) = (run.select, run.context);
    let ([call], [Source::Measurement(_)]) = (select.calls.as_slice(), select.sources.as_slice())
    else {
        return None;
    };
    let [input] = run.unit.inputs.as_slice() else { return None };
    let request = input.request.as_ref()?;
    let is_plain = matches!(call.function, Function::Max | Function::Min)
        && call.transforms.is_empty()
        && select.windows.is_none()
        && select.aux.is_empty()
        && matches!(input.calls.as_slice(), [ColumnSource::Column { at: 1, cast: None }])
        && input.filter.is_none()
        && request.filters.is_empty()
        && request.fields.len() == 1;
    // Rows of one group that are all of the scan's; where points are counted none are read twice.
    let is_whole = run.unit.groups.len() == 1 && run.unit.groups.ordinals(0, 0..1).is_none();
    let pays = run.unit.extent.rows() >= context.tuning.extreme_rows;
    // Of pages that many series share summaries only answer for all that is in them.
    let pays = pays
        && (has_long_series(run)
            || (matches!(request.series, TagExpr::True) && request.time == TimeRange::ALL));
    (is_plain && is_whole && pays && context.limits.max_select_point == 0).then_some(request)
}

/// Whether pages are of one series each, mostly.
fn has_long_series(run: &Run<'_>) -> bool {
    let series = u64::from(run.unit.inputs[0].scan.series().len.max(1));
    run.unit.extent.rows() / series > run.context.tuning.extreme_series_rows
}

/// The number, if there is one that equals itself alone: of zeros the sign is that of the row.
fn value_of(column: &Column) -> Option<Scalar> {
    first_valid(column.validity.as_ref(), 0, column.values.len()).filter(|row| *row == 0)?;
    match &column.values {
        Values::Integer(values) => Some(Scalar::Integer(values[0])),
        Values::Unsigned(values) => Some(Scalar::Unsigned(values[0])),
        Values::Float(values) => Some(Scalar::Float(values[0])).filter(|_| values[0] != 0.0),
        _ => None,
    }
}

/// Whether a row has the value.
fn has(column: &Column, row: usize, value: &Scalar) -> bool {
    let is_valid = column.validity.as_ref().is_none_or(|validity| validity.get(row));
    is_valid
        && match (&column.values, value) {
            (Values::Integer(values), Scalar::Integer(value)) => values[row] == *value,
            (Values::Unsigned(values), Scalar::Unsigned(value)) => values[row] == *value,
            (Values::Float(values), Scalar::Float(value)) => values[row] == *value,
            _ => false,
        }
}
