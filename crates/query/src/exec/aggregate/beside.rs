//! Other columns of the points that selectors choose, of few points among many rows: which rows these are is found first, and then
//! of these rows the other columns are read, not of all.
//!
//! Invariants
//! - Both scans see the same rows: the store's revision is the same before the first is opened and after the second was.
//! - A row is known by its series and its time.
//! - Series are those that the unit has: nobody wrote a new one since its scan was opened. What was planned holds.

use std::ops::Range;
use std::sync::Arc;

use model::{Column, FieldType, TimeRange, Values};
use store::{Scan, ScanItem, ScanRequest, ScanSlice, SeriesTable};

use super::{Points, Recipe, Run};
use crate::QueryError;
use crate::exec::column::Cell;
use crate::exec::input::{ColumnSource, Input};
use crate::exec::unit::{self, Unit};
use crate::functions::Function;
use crate::plan::{AuxPlan, CallPlan, ColumnKind, Select, Source};

/// Points whose other columns a thread reads at least.
const POINTS_A_THREAD: usize = 16;

/// So many times as many rows a point make up for finding them if the other columns are numbers, which are decoded sooner than texts.
const NUMBERS_PART: u64 = 16;

/// The points of all groups, if there are few and this is a way to find them.
pub(super) fn points(
    run: &Run<'_>,
    groups: &Range<usize>,
) -> Result<Option<Vec<Vec<Points>>>, QueryError> {
    let Some(request) = asked(run, groups) else { return Ok(None) };
    let (store, input) = (&run.context.store, &run.unit.inputs[0]);
    let Some((narrow, calls, filter)) = input.without_aux() else { return Ok(None) };
    let (policy, time) = (request.policy.id, request.time);
    let Some(revision) = store.revision(policy, time)? else { return Ok(None) };
    let (scan, whole) = (store.scan(&narrow)?, store.scan(request)?);
    let is_same = store.revision(policy, time)? == Some(revision);
    if !is_same || !have_same_series(scan.series(), input.scan.series()) {
        return Ok(None);
    }
    let select = showing_rows(run.select);
    let recipe = Recipe::new(&select);
    let input = Input {
        name: input.name.clone(),
        scan,
        calls,
        aux: vec![ColumnSource::RowSeries, ColumnSource::RowTime],
        dimensions: input.dimensions.clone(),
        filter,
        ascending: input.ascending,
        rows_per_series: input.rows_per_series,
        request: Some(narrow),
    };
    let unit = Unit::of_rows(input.name.clone(), vec![input]);
    if unit.extent.bounds() != run.unit.extent.bounds() {
        return Ok(None);
    }
    let combinations = run.combinations.clone();
    let found = Run { select: &select, recipe: &recipe, unit: &unit, combinations, ..*run };
    let mut of_groups = found.read(groups.clone(), found.read_range(), None)?;
    let rows: Vec<(u32, i64)> = of_groups.iter().flatten().flat_map(rows_of).collect();
    let mut cells = cells(run, &*whole, &rows)?.into_iter();
    let types = run.select.aux.iter().map(|aux| aux.kind.field_type());
    for points in of_groups.iter_mut().flatten() {
        let columns = types.clone().map(|field_type| Column::new(Values::empty(field_type)));
        points.aux = columns.collect();
        for of_row in cells.by_ref().take(points.times.len()) {
            let columns = points.aux.iter_mut().zip(&of_row);
            columns.for_each(|(column, cell)| column.push(cell.as_ref()));
        }
    }
    Ok(Some(of_groups))
}

/// Whether series of the same numbers have the same tags.
fn have_same_series(a: &SeriesTable, b: &SeriesTable) -> bool {
    let mut tags = a.tags.iter().zip(&b.tags);
    a.len == b.len && tags.all(|(a, b)| a.codes == b.codes && a.values == b.values)
}

/// What the only scan of `run` was asked for, if the points of one selector are wanted with fields of their rows, few of many
/// rows.
fn asked<'a>(run: &Run<'a>, groups: &Range<usize>) -> Option<&'a ScanRequest> {
    let select = run.select;
    let ([call], [Source::Measurement(_)]) = (select.calls.as_slice(), select.sources.as_slice())
    else {
        return None;
    };
    let [input] = run.unit.inputs.as_slice() else { return None };
    let of_window = match &call.function {
        Function::Max | Function::Min | Function::Percentile(_) => 1,
        // Otherwise they are at the ends of series.
        Function::First | Function::Last if select.windows.is_some() => 1,
        Function::Sample(count) => *count,
        Function::Top(ranked) | Function::Bottom(ranked) => ranked.count,
        _ => return None,
    };
    let is_field = |source: &ColumnSource| matches!(source, ColumnSource::Column { .. });
    let is_plain = call.transforms.is_empty() && input.aux.iter().any(is_field);
    let is_whole = *groups == (0..run.unit.groups.len())
        && (select.series_limit, select.series_offset) == (0, 0)
        // Where points are counted none are read twice.
        && run.context.limits.max_select_point == 0;
    let slots = run.windows_within(run.read_range()).saturating_mul(groups.len() as u64);
    let points = slots.saturating_mul(of_window as u64);
    let is_text = |aux: &AuxPlan| aux.kind == ColumnKind::Field(FieldType::String);
    let part = if select.aux.iter().any(is_text) { 1 } else { NUMBERS_PART };
    let rows_each = run.context.tuning.beside_rows.saturating_mul(part);
    let are_few = points.saturating_mul(rows_each) <= run.unit.extent.rows();
    if is_plain && is_whole && are_few { input.request.as_ref() } else { None }
}

/// The SELECT with what says where its points are in place of their other columns.
fn showing_rows(select: &Select) -> Select {
    let aux =
        |name: &str, field_type| AuxPlan { name: name.into(), kind: ColumnKind::Field(field_type) };
    Select {
        after: None,
        windows: select.windows.clone(),
        zone: select.zone.clone(),
        dimensions: select.dimensions.clone(),
        limited_dimensions: Vec::new(),
        own_dimensions: Vec::new(),
        calls: select.calls.iter().map(CallPlan::without_transforms).collect(),
        aux: vec![aux("series", FieldType::Unsigned), aux("time", FieldType::Integer)],
        outputs: Vec::new(),
        time_column: select.time_column.clone(),
        sources: Vec::new(),
        ..*select
    }
}

/// Series and times of points that were found so.
fn rows_of(points: &Points) -> impl Iterator<Item = (u32, i64)> {
    let (Values::Unsigned(series), Values::Integer(times)) =
        (&points.aux[0].values, &points.aux[1].values)
    else {
        panic!("BUG: columns of other types than were asked for")
    };
    series.iter().zip(times).map(|(series, time)| (*series as u32, *time))
}

/// The other columns of some rows.
fn cells(
    run: &Run<'_>,
    scan: &dyn Scan,
    rows: &[(u32, i64)],
) -> Result<Vec<Vec<Cell>>, QueryError> {
    let threads = run.context.threads.max(1);
    let of_thread = rows.len().div_ceil(threads).max(POINTS_A_THREAD);
    let shares: Vec<&[(u32, i64)]> = rows.chunks(of_thread).collect();
    let of_share = |share: &&[(u32, i64)]| -> Result<Vec<Vec<Cell>>, QueryError> {
        share.iter().map(|row| of_row(run, scan, *row)).collect()
    };
    Ok(unit::on_threads(&shares, of_share)?.concat())
}

/// The other columns of a row.
fn of_row(
    run: &Run<'_>,
    scan: &dyn Scan,
    (series, time): (u32, i64),
) -> Result<Vec<Cell>, QueryError> {
    run.context.interrupt.check()?;
    let slice = ScanSlice {
        series: Some(Arc::new([series])),
        time: TimeRange::new(time, time),
        ..ScanSlice::all()
    };
    let input = &run.unit.inputs[0];
    let mut cursor = scan.open(&slice)?;
    while let Some(item) = cursor.next()? {
        let ScanItem::Rows(batch) = item else { panic!("BUG: summaries were not asked for") };
        // The store may hand out rows that it was not asked for.
        let mut end = 0;
        let of_runs = batch.runs.iter().map(|run| {
            end += run.rows as usize;
            (run.series, end - run.rows as usize..end)
        });
        let mut of_series = of_runs.filter(|(of, _)| *of == series);
        let at = |mut rows: Range<usize>| rows.find(|row| batch.times()[*row] == time);
        if let Some(row) = of_series.find_map(|(_, rows)| at(rows)) {
            let cell = |source: &ColumnSource| match source {
                ColumnSource::Tag { at, blank } => input.tag_cell(*at, *blank, series),
                source => source.column(&batch, scan.series()).get(row),
            };
            return Ok(input.aux.iter().map(cell).collect());
        }
    }
    panic!("BUG: a row that was found is not there")
}
