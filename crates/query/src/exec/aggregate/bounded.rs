//! The points of a `top()` or `bottom()` over all rows of one measurement. Summaries say what is greatest in each of many spans of
//! rows: as many rows as are wanted are at least as great as the last of so many of these, and no row behind it can be a point.
//! Rows that are behind are a filter's, by which the store leaves out what it can tell of without reading it.
//!
//! Invariants
//! - Both steps find the same rows: the store's revision is the same before the first and after the second.
//! - Where summaries do not say, or rows would have to be read for it, there is no answer here, and all rows are read.

use model::{Column, CompareOp, FieldFilter, Name, Operand, Scalar, TimeRange, Values};
use store::{ScanItem, ScanRequest, ScanSlice, SummaryParts, TimeOrder};

use super::extreme::{has_long_series, is_all, pays_to_look_first};
use super::{Points, Run};
use crate::QueryError;
use crate::exec::column;
use crate::exec::input::{ColumnSource, Input};
use crate::exec::unit::Unit;
use crate::functions::Function;
use crate::functions::rank;
use crate::functions::ranked::End;
use crate::plan::Source;

/// If more rows than this part come as rows, not as summaries, all are read at once.
const ROWS_PART: u64 = 8;

/// The same where pages that many series share may be cut by the time that is asked for: then all come as rows.
const CUT_ROWS_PART: u64 = 64;

/// What is asked for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    request: &'a ScanRequest,
    /// The field whose values are ranked.
    field: &'a Name,
    end: End,
    count: usize,
}

/// The points, if the SELECT asks for such and this is a way to find them that pays.
pub(super) fn points(run: &Run<'_>) -> Result<Option<Vec<Vec<Points>>>, QueryError> {
    let Some(asked) = asked(run) else { return Ok(None) };
    let (store, request) = (&run.context.store, asked.request);
    let (policy, time) = (request.policy.id, request.time);
    let Some(revision) = store.revision(policy, time)? else { return Ok(None) };
    let Some(bound) = bound(run, &asked)? else { return Ok(None) };
    let op = match asked.end {
        End::Largest => CompareOp::GreaterOrEqual,
        End::Smallest => CompareOp::LessOrEqual,
    };
    let operand = Operand::Constant(bound);
    let filters = vec![FieldFilter { field: asked.field.clone(), op, operand }];
    let request = ScanRequest { filters, ..request.clone() };
    let scan = store.scan(&request)?;
    if store.revision(policy, time)? != Some(revision) {
        return Ok(None);
    }
    let input = &run.unit.inputs[0];
    let input = Input {
        name: input.name.clone(),
        scan,
        calls: input.calls.clone(),
        aux: input.aux.clone(),
        dimensions: input.dimensions.clone(),
        filter: None,
        ascending: input.ascending,
        rows_per_series: input.rows_per_series,
        request: Some(request),
    };
    let unit = Unit::of_rows(input.name.clone(), vec![input]);
    let bounded = Run { unit: &unit, combinations: Vec::new(), ..*run };
    let state = bounded.read_state(0..1, bounded.read_range(), None)?;
    Ok(Some(state.finish(&unit.inputs)))
}

/// A value that as many rows as are wanted reach; `None`: summaries do not tell.
fn bound(run: &Run<'_>, asked: &Asked<'_>) -> Result<Option<Scalar>, QueryError> {
    let (field, field_type) = asked
        .request
        .fields
        .iter()
        .find(|(name, _)| name == asked.field)
        .expect("BUG: a function's field is not read");
    let parts = SummaryParts { min_max: true, ..SummaryParts::default() };
    let request = ScanRequest {
        fields: vec![(field.clone(), *field_type)],
        tags: Vec::new(),
        order: TimeOrder::Ascending,
        windows: Some(store::Windows { every_ns: None, offset_ns: 0, parts }),
        joins_series: !has_long_series(run),
        ..asked.request.clone()
    };
    let scan = run.context.store.scan(&request)?;
    let mut cursor = scan.open(&ScanSlice::all())?;
    let mut ends = Column::new(Values::empty(*field_type));
    let may_be_cut = !has_long_series(run) && request.time != TimeRange::ALL;
    let part = if may_be_cut { CUT_ROWS_PART } else { ROWS_PART };
    let mut rows_left = run.unit.extent.rows() / part;
    while let Some(item) = cursor.next()? {
        run.context.interrupt.check()?;
        match item {
            ScanItem::Rows(batch) => {
                let rows = batch.rows as u64;
                if rows > rows_left {
                    return Ok(None);
                }
                rows_left -= rows;
            }
            ScanItem::Summaries(batch) => {
                let of_field = &batch.fields[0];
                let values = match asked.end {
                    End::Largest => &of_field.maxs,
                    End::Smallest => &of_field.mins,
                };
                let spans = (0u32..).zip(&of_field.counts).filter(|(_, count)| **count > 0);
                let spans: Vec<u32> = spans.map(|(span, _)| span).collect();
                column::append(&mut ends, &column::take(&Column::new(values.clone()), &spans));
            }
        }
    }
    Ok(match &ends.values {
        Values::Float(v) if v.iter().any(|value| value.is_nan()) => None,
        Values::Float(v) => nth(v, asked).map(Scalar::Float),
        Values::Integer(v) => nth(v, asked).map(Scalar::Integer),
        Values::Unsigned(v) => nth(v, asked).map(Scalar::Unsigned),
        _ => None,
    })
}

/// The last of as many values as are wanted; `None`: there are not so many.
fn nth<T: crate::functions::values::Value>(values: &[T], asked: &Asked<'_>) -> Option<T> {
    let rank = match asked.end {
        End::Largest => values.len().checked_sub(asked.count)?,
        End::Smallest => asked.count - 1,
    };
    rank::nth(&[values], rank).map(|found| found.value)
}

/// What the only scan of `run` was asked for, if all that is wanted of it are a few of its greatest or least values.
fn asked<'a>(run: &Run<'a>) -> Option<Asked<'a>> {
    let select = run.select;
    let ([call], [Source::Measurement(_)]) = (select.calls.as_slice(), select.sources.as_slice())
    else {
        return None;
    };
    let (end, ranked) = match &call.function {
        Function::Top(ranked) => (End::Largest, ranked),
        Function::Bottom(ranked) => (End::Smallest, ranked),
        _ => return None,
    };
    let [input] = run.unit.inputs.as_slice() else { return None };
    let request = input.request.as_ref()?;
    let [ColumnSource::Column { at, cast: None }] = input.calls.as_slice() else { return None };
    let (field, _) = &request.fields[*at - 1];
    let is_plain = ranked.by.is_empty()
        && ranked.count > 0
        && call.transforms.is_empty()
        && select.windows.is_none()
        && input.filter.is_none()
        && request.filters.is_empty();
    let is_asked = is_plain && (has_long_series(run) || is_all(request)) && pays_to_look_first(run);
    is_asked.then_some(Asked { request, field, end, count: ranked.count })
}
