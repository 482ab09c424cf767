//! The point of a `max()` or `min()` over all rows of one measurement, where its time is shown: summaries say what the
//! value is, and then the rows that have it are looked for. A page that only holds others is not decoded.
//!
//! Invariants
//! - Both steps find the same rows: the store's revision is the same before the first and after the second.
//! - Where a step cannot say, there is no answer here, and all rows are read.

use model::{Column, CompareOp, FieldFilter, Operand, Scalar, TagExpr, TimeRange, Values};
use store::{ScanItem, ScanRequest, ScanSlice, TimeOrder};

use super::{Points, Recipe, Run, usage};
use crate::exec::accumulate::kernels::first_valid;
use crate::exec::input::ColumnSource;
use crate::exec::unit;
use crate::functions::Function;
use crate::plan::Source;
use crate::{QueryContext, QueryError};

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
    let found = totals.read(0..1, totals.read_range(), None)?;
    let [points] = found[0].as_slice() else { return Ok(None) };
    let Some(value) = value_of(&points.values) else { return Ok(None) };

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
    let values = points.values.clone();
    Ok(first.map(|time| Points { times: vec![time], values, aux: Vec::new() }))
}

/// What the only scan of `run` was asked for, if all that is wanted of it is one greatest or least number.
fn plain_request<'a>(run: &Run<'a>) -> Option<&'a ScanRequest> {
    let (select, context): (_, &QueryContext) = (run.select, run.context);
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
