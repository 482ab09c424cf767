//! Deletes of rows that are named one by one, as far as they still have the values named with them.
//!
//! The gate is held alone from the look at the rows until they are hidden: nobody writes in between,
//! so that a row goes with exactly the values it was named with, or stays. What is read is the blocks
//! that the named times lie in, of the fields that are compared.

use std::sync::Arc;

use model::{DatabaseId, SeriesId, TimeRange};
use roaring::RoaringTreemap;
use store::{MatchingRows, StoreError};

use super::{hang_tombstones, remove_empty_series};
use crate::engine::Engine;
use crate::error::series_error;
use crate::scan::{Emitted, ScanPlan, SeriesReader, open_sources};
use crate::schema::Measurement;
use crate::tombstone::{HiddenSeries, RowSet, Tombstone};

/// Removes the rows that are what they are said to be.
pub(super) fn delete_matching(
    engine: &Engine,
    database: DatabaseId,
    named: &MatchingRows,
) -> Result<(), StoreError> {
    engine.wait_for_tombstones()?;
    let gate = engine.gate.write();
    let Some(measurement) = engine.schema.find(database, named.measurement()) else {
        return Ok(());
    };
    let rows = unchanged(engine, &measurement, named)?;
    if rows.is_empty() {
        return Ok(());
    }
    let series = rows.series();
    let tombstone = Tombstone {
        id: engine.manifest.next_tombstone_id(),
        database,
        policy: Some(named.policy()),
        measurement: Some(Arc::clone(&measurement.name)),
        time: rows.time(),
        series: HiddenSeries::Rows(rows),
    };
    // Durable when it returns.
    hang_tombstones(engine, vec![tombstone])?;
    drop(gate);
    remove_empty_series(engine, vec![(measurement, series)])
}

/// The rows that have the values they were named with. Call with the gate held alone.
fn unchanged(
    engine: &Engine,
    measurement: &Arc<Measurement>,
    named: &MatchingRows,
) -> Result<RowSet, StoreError> {
    let mut runs = Vec::new();
    for (key, range) in named.runs() {
        let found = engine.index.lookup(measurement.database, key).map_err(series_error)?;
        runs.extend(found.map(|series| (series, range)));
    }
    // In the order in which sources have them.
    runs.sort_unstable_by_key(|(series, _)| *series);
    let series: RoaringTreemap = runs.iter().map(|(series, _)| series.0).collect();
    let times = |range: &std::ops::Range<usize>| named.times().get(range.clone()).unwrap_or(&[]);
    let all =
        runs.iter().fold(TimeRange::EMPTY, |all, (_, range)| all.union(&bounds(times(range))));
    let view = engine.view();
    let policy = view.policy(named.policy()).filter(|p| p.database == measurement.database);
    let partitions = policy.map_or_else(Vec::new, |p| p.overlapping(all).to_vec());
    let plan = ScanPlan::of_fields(measurement, partitions, named.fields(), &series);
    let mut reader = SeriesReader::new(open_sources(&plan, all, &Arc::default())?, all);
    let mut rows: Vec<(SeriesId, Vec<i64>)> = Vec::with_capacity(runs.len());
    for (series, range) in runs {
        let wanted = times(&range);
        let mut comparison = named.compare(range.clone());
        // Without fields to compare nothing needs to be looked at.
        if !named.fields().is_empty() {
            reader.time = bounds(wanted);
            reader.only = Some(wanted.to_vec());
            reader.read(series, &mut |emitted| {
                if let Emitted::Rows(piece) = emitted {
                    comparison.see(&piece.times, &piece.columns, 0);
                }
            })?;
        }
        rows.push((series, comparison.finish()));
    }
    Ok(RowSet::new(rows))
}

/// The first and the last of times that ascend.
fn bounds(times: &[i64]) -> TimeRange {
    match (times.first(), times.last()) {
        (Some(first), Some(last)) => TimeRange::new(*first, *last),
        _ => TimeRange::EMPTY,
    }
}
