//! The point of a `max()` or `min()` over all rows of one measurement, where its time is shown. A first look takes what summaries
//! say, and rows where there are none (in memory, or where sources overlap). If a summary's value is not behind those of such rows,
//! a second look finds the first row that has it: a page that only holds others is not decoded.
//!
//! Invariants
//! - Both steps find the same rows: the store's revision is the same before the first and after the second.
//! - Where a step cannot say, or would have to read many rows for it, there is no answer here, and all rows are read.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::{Column, CompareOp, FieldFilter, Operand, Scalar, TagExpr, TimeRange, Values};
use store::{Scan, ScanItem, ScanRequest, ScanSlice, TimeOrder};

use super::{Accumulator, Item, Points, Reader, Recipe, Run, usage};
use crate::QueryError;
use crate::exec::accumulate::kernels::first_valid;
use crate::exec::column;
use crate::exec::input::ColumnSource;
use crate::exec::unit;
use crate::functions::Function;
use crate::plan::Source;

/// Of the rows of short series this part is read at most to know a value.
const READ_PART: u64 = 8;

/// How many times as many series are looked at next, if they are not short.
const GROWTH: u32 = 32;
/// Of short ones so many are looked at first, which lie in a page or two, and then all.
const FEW_SHORT: u32 = 64;

/// The point, if the SELECT asks for one and this is a way to find it that pays.
pub(super) fn point(run: &Run<'_>) -> Result<Option<Points>, QueryError> {
    let (select, context) = (run.select, run.context);
    let Some(request) = plain_request(run) else { return Ok(None) };
    let (policy, time) = (request.policy.id, request.time);
    let Some(revision) = context.store.revision(policy, time)? else { return Ok(None) };

    let recipe = Recipe::without_points(select);
    let mut usage = usage(select, &recipe);
    // Of rows that are joined the points are not known.
    usage.joins_series &= !has_long_series(run);
    let units = unit::open(select, usage, context)?;
    let [unit] = units.as_slice() else { return Ok(None) };
    if unit.groups.len() != 1 || unit.inputs.len() != 1 {
        return Ok(None);
    }
    let rows = Run { unit, combinations: Vec::new(), ..*run };
    let summaries = Run { unit, recipe: &recipe, combinations: Vec::new(), ..*run };
    let Some((point, summed)) = first_look(&rows, &summaries)? else { return Ok(None) };
    let Some(summed) = summed else { return Ok(point) };
    let Some(value) = value_of(&summed.values) else { return Ok(None) };
    if let Some(point) = point {
        let wanted = match select.calls[0].function {
            Function::Max => Ordering::Greater,
            _ => Ordering::Less,
        };
        match value_of(&point.values).and_then(|mine| order(&mine, &value)) {
            Some(order) if order == wanted => return Ok(Some(point)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    let scan = context.store.scan(&having(request, &value, has_long_series(run)))?;
    if context.store.revision(policy, time)? != Some(revision) {
        return Ok(None);
    }
    second_look(run, &*scan, &value)
}

/// The point among the rows that no summaries stand for, and what is greatest or least of the others. `None`: rows of short
/// series would have to be read twice, and they are too many.
fn first_look(
    rows: &Run<'_>,
    summaries: &Run<'_>,
) -> Result<Option<(Option<Points>, Option<Points>)>, QueryError> {
    let (unit, range) = (rows.unit, rows.read_range());
    let input = &unit.inputs[0];
    let Some(slice) = unit.slice(0, 0..1, range) else { return Ok(None) };
    let count = unit.rows_within(0, &slice) as u64;
    let shares = unit.shares(0, slice, count, rows.context)?;
    let is_long = has_long_series(rows);
    let (read, read_max) = (AtomicU64::new(0), count / READ_PART);
    let of_share = |share: &ScanSlice| {
        let (mut points, mut totals) =
            (rows.accumulator(1, range)?, summaries.accumulator(1, range)?);
        let reader = Reader { context: rows.context, interrupt: &rows.context.interrupt };
        let is_whole = reader.read_while(input, share, |item| {
            match item {
                Item::Rows(batch) if is_long => points.add_rows(0, input, &batch, |_| Some(0))?,
                Item::Rows(batch) => {
                    let more = batch.rows as u64;
                    if read.fetch_add(more, Relaxed) + more > read_max {
                        return Ok(false);
                    }
                    totals.add_rows(0, input, &batch, |_| Some(0))?;
                }
                Item::Summaries(batch) => totals.add_summaries(input, &batch, |_| Some(0))?,
            }
            Ok(true)
        })?;
        Ok(is_whole.then_some((points, totals)))
    };
    let parts = unit::on_threads(&shares, of_share)?;
    let Some(parts) = parts.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let mut parts = parts.into_iter();
    let Some((mut points, mut totals)) = parts.next() else { return Ok(None) };
    for (more_points, more_totals) in parts {
        points.merge(more_points)?;
        totals.merge(more_totals)?;
    }
    let only = |state: Accumulator<'_>| {
        let points = state.finish(&unit.inputs).into_iter().flatten().next();
        points.filter(|points| has_value(&points.values))
    };
    Ok(Some((only(points), only(totals))))
}

/// The rows that have the value, of long series the first of each.
fn having(request: &ScanRequest, value: &Scalar, is_long: bool) -> ScanRequest {
    let field = request.fields[0].0.clone();
    let operand = Operand::Constant(value.clone());
    ScanRequest {
        filters: vec![FieldFilter { field, op: CompareOp::Equal, operand }],
        order: TimeOrder::Ascending,
        windows: None,
        joins_series: !is_long,
        ..request.clone()
    }
}

/// The first row that has the value, as it has it: of zeros the sign is that of the row.
///
/// Many rows may have it, as many are zero or full, and the store leaves out what does not have it, but reads what does. So a few
/// series are looked at first, and of the others only what is earlier than what they have.
fn second_look(
    run: &Run<'_>,
    scan: &dyn Scan,
    value: &Scalar,
) -> Result<Option<Points>, QueryError> {
    let is_short = rows_per_series(run) < run.context.tuning.slice_series_rows;
    let rows_per_series = has_long_series(run).then_some(1);
    let (mut more, growth) = if is_short { (FEW_SHORT, u32::MAX) } else { (1, GROWTH) };
    let begins = run.unit.extent.bounds().min;
    let mut first: Option<Points> = None;
    let (mut done, all) = (0, scan.series().len);
    while done < all {
        let known = first.as_ref().map(|first| first.times[0]);
        if known.is_some_and(|known| known <= begins) {
            break;
        }
        let end = if all - done > more { done + more } else { all };
        // Pages of many short series are read as wholes faster than cut by time.
        let before = known.filter(|_| !is_short).map_or(i64::MAX, |known| known.saturating_sub(1));
        let time = TimeRange::new(i64::MIN, before);
        let slice = ScanSlice { time, rows_per_series, ..ScanSlice::series_range(done..end) };
        let found = first_of(run, scan, &slice, value)?;
        let is_earlier = |found: &Points| known.is_none_or(|known| found.times[0] < known);
        first = found.filter(is_earlier).or(first);
        (done, more) = (end, more.saturating_mul(growth));
    }
    Ok(first)
}

/// The first row of a slice that has the value.
fn first_of(
    run: &Run<'_>,
    scan: &dyn Scan,
    slice: &ScanSlice,
    value: &Scalar,
) -> Result<Option<Points>, QueryError> {
    let mut cursor = scan.open(slice)?;
    let mut first: Option<(i64, Column)> = None;
    while let Some(item) = cursor.next()? {
        run.context.interrupt.check()?;
        let ScanItem::Rows(batch) = item else { panic!("BUG: summaries were not asked for") };
        let Values::Time(times) = &batch.columns[0].values else {
            panic!("BUG: column 0 of a batch is not the time")
        };
        let (mut first_time, mut first_row) = (first.as_ref().map(|(time, _)| *time), None);
        for (row, at) in (0u32..).zip(times) {
            // The store may hand out rows that it was not asked for.
            if first_time.is_none_or(|time| *at < time)
                && has(&batch.columns[1], row as usize, value)
            {
                (first_time, first_row) = (Some(*at), Some((*at, row)));
            }
        }
        if let Some((time, row)) = first_row {
            first = Some((time, column::take(&batch.columns[1], &[row])));
        }
    }
    Ok(first.map(|(time, values)| Points { times: vec![time], values, aux: Vec::new() }))
}

/// What the only scan of `run` was asked for, if all that is wanted of it is one greatest or least number.
fn plain_request<'a>(run: &Run<'a>) -> Option<&'a ScanRequest> {
    let select = run.select;
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
    // Of pages that many series share summaries only answer for all that is in them.
    let are_answered = has_long_series(run) || is_all(request) && request.time == TimeRange::ALL;
    (is_plain && are_answered && pays_to_look_first(run)).then_some(request)
}

/// Whether it pays to ask summaries before rows of the only scan are read: all rows of it are of one group.
pub(super) fn pays_to_look_first(run: &Run<'_>) -> bool {
    let is_whole = run.unit.groups.len() == 1 && run.unit.groups.ordinals(0, 0..1).is_none();
    is_whole
        && run.unit.extent.rows() >= run.context.tuning.extreme_rows
        // Where points are counted none are read twice.
        && run.context.limits.max_select_point == 0
}

/// Whether all series are asked for.
pub(super) fn is_all(request: &ScanRequest) -> bool {
    matches!(request.series, TagExpr::True)
}

/// Whether pages are of one series each, mostly: a page has rows of one stretch of the extent.
pub(super) fn has_long_series(run: &Run<'_>) -> bool {
    rows_per_series(run) > run.context.tuning.extreme_series_rows
}

/// Rows of a series, about, in the stretch of the extent that has most.
fn rows_per_series(run: &Run<'_>) -> u64 {
    let series = u64::from(run.unit.inputs[0].scan.series().len.max(1));
    let rows = run.unit.extent.parts().iter().map(|part| part.rows).max().unwrap_or(0);
    rows / series
}

/// Whether there is a value.
fn has_value(column: &Column) -> bool {
    first_valid(column.validity.as_ref(), 0, column.values.len()).is_some()
}

/// How two numbers of one type compare.
fn order(a: &Scalar, b: &Scalar) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Integer(a), Scalar::Integer(b)) => Some(a.cmp(b)),
        (Scalar::Unsigned(a), Scalar::Unsigned(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        _ => None,
    }
}

/// The number.
fn value_of(column: &Column) -> Option<Scalar> {
    match &column.values {
        Values::Integer(values) => Some(Scalar::Integer(values[0])),
        Values::Unsigned(values) => Some(Scalar::Unsigned(values[0])),
        Values::Float(values) => Some(Scalar::Float(values[0])),
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
