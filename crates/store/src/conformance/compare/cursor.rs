//! Reads a cursor and checks the shape of what it hands out.

use std::collections::BTreeMap;

use model::{ColumnBatch, FieldSummaries, FieldType, SeriesRun, SummaryBatch, TimedValues, Values};

use super::in_order;
use crate::conformance::apply::failed;
use crate::reference::{parts_of, window_of};
use crate::testing::{Row, series_key};
use crate::{Scan, ScanItem, ScanRequest, ScanSlice, SummaryParts, Windows};

/// The rows of a cursor that may hand out nothing else.
pub(super) fn read_cursor(
    scan: &dyn Scan,
    request: &ScanRequest,
    slice: &ScanSlice,
) -> Result<Vec<Row>, String> {
    let (rows, summaries) = read_items(scan, request, slice)?;
    if summaries.is_empty() { Ok(rows) } else { Err("summaries were not asked for".into()) }
}

/// The rows and the summaries of a cursor.
pub(super) fn read_items(
    scan: &dyn Scan,
    request: &ScanRequest,
    slice: &ScanSlice,
) -> Result<(Vec<Row>, Vec<SummaryBatch>), String> {
    let mut cursor = scan.open(slice).map_err(failed("open"))?;
    let (mut rows, mut summaries) = (Vec::new(), Vec::new());
    let matters = !request.joins_series || slice.rows_per_series.is_some();
    let order = || SeriesOrder { last: None, matters, slice };
    let (mut order, mut summary_order) = (order(), order());
    let mut last_times: BTreeMap<u32, i64> = BTreeMap::new();
    while let Some(item) = cursor.next().map_err(failed("next"))? {
        match item {
            ScanItem::Rows(batch) => {
                check_shape(request, &batch)?;
                read_rows(scan, request, &batch, &mut order, &mut last_times, &mut rows)?;
            }
            ScanItem::Summaries(batch) => {
                let Some(windows) = request.windows else {
                    return Err("summaries were not asked for".into());
                };
                check_summaries(request, slice, windows, &batch, &mut summary_order)?;
                summaries.push(batch);
            }
        }
    }
    if cursor.next().map_err(failed("next"))?.is_some() {
        return Err("the cursor goes on after its end".into());
    }
    Ok((rows, summaries))
}

/// Series must come in ascending order over all items of a kind, unless it does not matter whose rows are.
struct SeriesOrder<'a> {
    last: Option<u32>,
    matters: bool,
    slice: &'a ScanSlice,
}

impl SeriesOrder<'_> {
    fn next(&mut self, series: u32, len: u32) -> Result<(), String> {
        if self.matters && self.last.is_some_and(|last| series < last) {
            return Err(format!("series {series} comes after {:?}", self.last));
        }
        let inside = self.slice.series.as_ref().is_none_or(|some| some.contains(&series));
        if series >= len || !inside {
            return Err(format!("series {series} is not in the slice"));
        }
        self.last = Some(series);
        Ok(())
    }
}

fn check_shape(request: &ScanRequest, batch: &ColumnBatch) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("a batch has {what}: {batch:?}"));
    if batch.rows == 0 {
        return wrong("no rows");
    }
    let in_runs: u64 = batch.runs.iter().map(|run| u64::from(run.rows)).sum();
    if in_runs != batch.rows as u64 || batch.runs.iter().any(|run| run.rows == 0) {
        return wrong("runs that do not fit its rows");
    }
    if batch.columns.len() != request.fields.len() + 1 {
        return wrong("another number of columns than fields were asked for");
    }
    if !matches!(batch.columns[0].values, Values::Time(_)) || batch.columns[0].validity.is_some() {
        return wrong("no complete time as column 0");
    }
    for column in &batch.columns {
        let valid = column.validity.as_ref().map_or(batch.rows, model::Bitmap::len);
        if column.len() != batch.rows || valid != batch.rows {
            return wrong("a column of another length");
        }
    }
    for ((_, field_type), column) in request.fields.iter().zip(&batch.columns[1..]) {
        let fits = match field_type {
            FieldType::Float => matches!(column.values, Values::Float(_)),
            FieldType::Integer => matches!(column.values, Values::Integer(_)),
            FieldType::Unsigned => matches!(column.values, Values::Unsigned(_)),
            FieldType::String => {
                matches!(column.values, Values::String(_) | Values::Dictionary(..))
            }
            FieldType::Boolean => matches!(column.values, Values::Boolean(_)),
        };
        if !fits {
            return wrong("a column of another type than was asked for");
        }
    }
    Ok(())
}

fn read_rows(
    scan: &dyn Scan,
    request: &ScanRequest,
    batch: &ColumnBatch,
    order: &mut SeriesOrder<'_>,
    last_times: &mut BTreeMap<u32, i64>,
    rows: &mut Vec<Row>,
) -> Result<(), String> {
    let mut at = 0;
    for run in &batch.runs {
        let is_joined = run.series == SeriesRun::SEVERAL;
        let key = if is_joined {
            check_joined(request, order.slice)?;
            String::new()
        } else {
            order.next(run.series, scan.series().len)?;
            series_key(scan, request, run.series)
        };
        for row in at..at + run.rows as usize {
            let time_ns = batch.times()[row];
            if !request.time.contains(time_ns) || !order.slice.time.contains(time_ns) {
                return Err(format!("the row at {time_ns} is outside of the times asked for"));
            }
            let before = if is_joined { None } else { last_times.insert(run.series, time_ns) };
            // Windows are aggregated in any order, but no time may come twice.
            let order = request.order;
            if before.is_some_and(|b| !in_order(order, b, time_ns)) && request.windows.is_none() {
                return Err(format!("{time_ns} comes after {before:?}, {order:?}"));
            }
            let mut fields = Vec::new();
            for ((name, _), column) in request.fields.iter().zip(&batch.columns[1..]) {
                fields.extend(column.get(row).map(|value| (name.clone(), value)));
            }
            if fields.is_empty() {
                return Err(format!("the row at {time_ns} has no value"));
            }
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            rows.push(Row { key: key.clone(), time_ns, fields });
        }
        at += run.rows as usize;
    }
    Ok(())
}

fn check_summaries(
    request: &ScanRequest,
    slice: &ScanSlice,
    windows: Windows,
    batch: &SummaryBatch,
    order: &mut SeriesOrder<'_>,
) -> Result<(), String> {
    let lengths =
        batch.fields.iter().all(|field| has_parts(field, batch.spans.len(), windows.parts));
    if batch.spans.is_empty() || batch.fields.len() != request.fields.len() || !lengths {
        return Err(format!("summaries of a wrong shape: {batch:?}"));
    }
    for (at, span) in batch.spans.iter().enumerate() {
        if span.series == SeriesRun::SEVERAL {
            check_joined(request, slice)?;
        } else {
            order.next(span.series, u32::MAX)?;
        }
        let time = request.time.intersect(&slice.time);
        let inside = span.min_time <= span.max_time
            && time.contains(span.min_time)
            && time.contains(span.max_time);
        let one_window = window_of(span.min_time, windows) == window_of(span.max_time, windows);
        let has_values = batch.fields.iter().any(|field| field.counts[at] > 0);
        if !inside || !one_window || !has_values {
            return Err(format!("a summary does not lie in one window asked for: {span:?}"));
        }
    }
    Ok(())
}

fn check_joined(request: &ScanRequest, slice: &ScanSlice) -> Result<(), String> {
    if !request.joins_series || slice.rows_per_series.is_some() {
        return Err("rows of several series were not asked for together".into());
    }
    Ok(())
}

/// Whether a field has all `parts` of so many spans that it can have.
fn has_parts(field: &FieldSummaries, spans: usize, parts: SummaryParts) -> bool {
    let timed = |ends: &TimedValues| ends.times.len() == spans && ends.values.len() == spans;
    let parts = parts_of(field, parts);
    field.counts.len() == spans
        && (!parts.sum || field.sums.len() == spans)
        && (!parts.min_max || field.mins.len() == spans && field.maxs.len() == spans)
        && (!parts.first_last || timed(&field.firsts) && timed(&field.lasts))
}
