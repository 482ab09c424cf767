//! From names to numbers: layouts, then series, row by row what is refused and why.

use std::borrow::Cow;

use hashbrown::HashMap;
use model::{DatabaseId, FieldType, Layout, LayoutField, LineBatch, SeriesId, SeriesKey};
use store::{RejectReason, RejectedRow, StoreError, WriteRequest};

use super::links::Links;
use super::resolver::KeyHash;
use super::{define, order};
use crate::engine::Engine;
use crate::memtable::ROW_VALUES_MAX;
use crate::rows::{BatchRow, FieldNo, MeasurementNo, RowBatch, RowLayout};

/// Rows ready for the log.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) batch: RowBatch<'a>,
    pub(super) links: Links,
    pub(super) rejected: Vec<RejectedRow>,
}

/// What becomes of each row while it is looked at.
type Outcome = Result<Option<SeriesId>, RejectReason>;

/// Resolves the rows of a request. Call with the gate held.
///
/// Nothing is made for rows that are refused: keys are looked at before layouts are made, and layouts
/// before series.
pub(super) fn prepare<'a>(
    engine: &Engine,
    request: &WriteRequest<'a>,
) -> Result<Prepared<'a>, StoreError> {
    let lines = request.batch;
    let database = request.policy.database;
    let keys: Vec<KeyHash> =
        lines.rows.iter().map(|row| KeyHash::new(database, row.key_hash)).collect();
    let mut found = Vec::new();
    engine.resolver.find_all(&keys, &mut found);
    let mut outcomes: Vec<Outcome> = found.into_iter().map(Ok).collect();
    refuse_old(request, &mut outcomes);
    let unknown = parse_unknown(lines, &keys, &mut outcomes);
    let layouts = resolve_layouts(engine, request, &mut outcomes)?;
    if !unknown.is_empty() {
        make_series(engine, database, unknown, &keys, &mut outcomes)?;
    }
    let mut rows = Vec::with_capacity(lines.rows.len());
    let mut rejected = Vec::new();
    for (at, (row, outcome)) in lines.rows.iter().zip(outcomes).enumerate() {
        match outcome {
            Ok(series) => rows.push(BatchRow {
                series: series.expect("BUG: a row that is not refused has a series"),
                time_ns: row.time_ns,
                layout: row.layout,
                values_start: row.values_start,
            }),
            Err(reason) => rejected.push(RejectedRow { row: at as u32, reason }),
        }
    }
    let links = order::by_series(&mut rows);
    let batch = RowBatch {
        database,
        policy: request.policy.id,
        partition_ns: request.policy.partition_ns,
        layouts,
        rows,
        values: Cow::Borrowed(&lines.values),
        strings: Cow::Borrowed(&lines.strings),
    };
    Ok(Prepared { batch, links, rejected })
}

fn refuse_old(request: &WriteRequest<'_>, outcomes: &mut [Outcome]) {
    let Some(retention_ns) = request.policy.retention_ns else { return };
    let keep_from = request.now_ns.saturating_sub(retention_ns);
    for (row, outcome) in request.batch.rows.iter().zip(outcomes) {
        if row.time_ns < keep_from {
            *outcome = Err(RejectReason::BeyondRetention);
        }
    }
}

/// The keys, each once, of rows whose series is not known; rows with keys that are none are refused.
fn parse_unknown(
    lines: &LineBatch<'_>,
    keys: &[KeyHash],
    outcomes: &mut [Outcome],
) -> HashMap<KeyHash, SeriesKey> {
    let mut parsed: HashMap<KeyHash, Result<SeriesKey, RejectReason>> = HashMap::new();
    for ((row, key), outcome) in lines.rows.iter().zip(keys).zip(outcomes) {
        if matches!(outcome, Ok(None)) {
            let series_key =
                parsed.entry(*key).or_insert_with(|| define::parse_key(lines.raw_key(row)));
            if let Err(reason) = series_key {
                *outcome = Err(reason.clone());
            }
        }
    }
    parsed.into_iter().filter_map(|(hash, key)| Some((hash, key.ok()?))).collect()
}

/// Finds or makes the series of unknown keys that some row still needs.
fn make_series(
    engine: &Engine,
    database: DatabaseId,
    mut unknown: HashMap<KeyHash, SeriesKey>,
    keys: &[KeyHash],
    outcomes: &mut [Outcome],
) -> Result<(), StoreError> {
    let waiting = |outcome: &Outcome| matches!(outcome, Ok(None));
    let mut needed = Vec::new();
    for (key, outcome) in keys.iter().zip(&*outcomes) {
        // In row order: series that are written together get neighbouring ids.
        if waiting(outcome) {
            needed.extend(unknown.remove(key).map(|series_key| (*key, series_key)));
        }
    }
    engine.metrics.series_lookups.add(needed.len() as u64);
    let made = define::series(engine, database, &needed)?;
    let made: HashMap<KeyHash, SeriesId> = needed.iter().map(|(hash, _)| *hash).zip(made).collect();
    for (key, outcome) in keys.iter().zip(outcomes) {
        if waiting(outcome) {
            *outcome = Ok(Some(made[key]));
        }
    }
    Ok(())
}

/// The numbers of each layout's measurement and fields, made if new; rows of layouts that cannot be
/// are refused. Layouts without rows keep no fields.
fn resolve_layouts(
    engine: &Engine,
    request: &WriteRequest<'_>,
    outcomes: &mut [Outcome],
) -> Result<Vec<RowLayout>, StoreError> {
    let lines: &LineBatch<'_> = request.batch;
    let unused = RowLayout { measurement: MeasurementNo(0), fields: Vec::new() };
    let mut layouts = vec![unused; lines.layouts.len()];
    let mut resolved = vec![false; lines.layouts.len()];
    // In the order of the rows that are not refused: of two types of a field the first one counts. A
    // row that is refused does not speak for those behind it, which may clash with something newer.
    for (row, outcome) in lines.rows.iter().zip(outcomes) {
        let at = row.layout as usize;
        if outcome.is_err() || resolved[at] {
            continue;
        }
        match resolve_layout(engine, request.policy.database, &lines.layouts[at])? {
            Ok(layout) => {
                layouts[at] = layout;
                resolved[at] = true;
            }
            Err(reason) => *outcome = Err(reason),
        }
    }
    Ok(layouts)
}

fn resolve_layout(
    engine: &Engine,
    database: DatabaseId,
    layout: &Layout<'_>,
) -> Result<Result<RowLayout, RejectReason>, StoreError> {
    let count = layout.fields.len();
    if count > ROW_VALUES_MAX {
        let reason = format!("a row has {count} fields, the limit is {ROW_VALUES_MAX}");
        return Ok(Err(RejectReason::Limit(reason)));
    }
    let known = engine.schema.find(database, &layout.measurement).and_then(|m| {
        let field = |f: &LayoutField<'_>| m.field(&f.name).filter(|(_, t)| *t == f.field_type);
        let fields: Option<Vec<(FieldNo, FieldType)>> = layout.fields.iter().map(field).collect();
        Some(RowLayout { measurement: m.no, fields: fields? })
    });
    match known {
        Some(layout) => Ok(Ok(layout)),
        None => define::layout(engine, database, layout),
    }
}
