//! Writing: names to ids, rows to columns, and a look back before the answer.
//!
//! After its rows are in, a write looks whether the measurement still has the id they were written
//! under, whether their ranges are still registered, and whether one of its series counts as dead.
//! Where the first two do not hold, measurement or range were dropped meanwhile, and the rows are
//! written again to what took their place; the third is put right. So whatever is acknowledged is
//! found.

mod encode;
mod narrow;
mod prepare;

use std::sync::Arc;

use futures_util::future::join_all;
use kudu_client::{Error, Table};
use model::{DatabaseId, FieldType, PolicyId, TimeRange};
use store::{RejectedRow, StoreError, WriteOutcome, WriteRequest};

use self::encode::{Places, RowOf, Upsert};
use self::narrow::NarrowUpsert;
use self::prepare::{Prepared, Share};
use crate::error::{cluster, contended};
use crate::layout::{Kind, is_sharing};
use crate::measurement::{Measurement, registered_range};
use crate::ranges::{Needs, range_at, united};
use crate::registry::{Entry, Which, space};
use crate::shared::Shared;

/// Times a write is done again because somebody changed what it stands on.
const TRIES_MAX: usize = 20;
/// Rows encoded at a time.
const ROWS_PER_BATCH: usize = 16_384;
/// Values encoded at a time for a narrow table, about.
const CELLS_PER_BATCH: usize = 65_536;

/// How an attempt ended.
enum Attempt {
    Done,
    /// Something it stands on is not there any more.
    Again,
}

impl Shared {
    pub(crate) async fn write(
        self: &Arc<Self>,
        request: &WriteRequest<'_>,
    ) -> Result<WriteOutcome, StoreError> {
        for _ in 0..TRIES_MAX {
            let prepared = prepare::prepare(self, request).await?;
            if self.apply(request, &prepared).await? {
                let rejected: Vec<RejectedRow> = prepared.rejected;
                let rows = (request.batch.rows.len() - rejected.len()) as u64;
                self.metrics.rows_written.add(rows);
                self.metrics.rows_rejected.add(rejected.len() as u64);
                return Ok(WriteOutcome { rows_written: rows, rejected });
            }
            self.metrics.writes_repeated.add(1);
        }
        Err(contended("a measurement of the write"))
    }

    /// Writes what was prepared; `false`: it has to be prepared anew.
    async fn apply(
        self: &Arc<Self>,
        request: &WriteRequest<'_>,
        prepared: &Prepared,
    ) -> Result<bool, StoreError> {
        let shares = prepared.shares.iter().map(|share| self.apply_share(request, share));
        for attempt in join_all(shares).await {
            if matches!(attempt?, Attempt::Again) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn apply_share(
        self: &Arc<Self>,
        request: &WriteRequest<'_>,
        share: &Share,
    ) -> Result<Attempt, StoreError> {
        let places = {
            let known = share.measurement.fields.read();
            Places::new(request.batch, &share.rows, &known)
        };
        let Some(places) = places else { return Ok(Attempt::Again) };
        let rows = CELLS_PER_BATCH / places.narrow_max().max(1);
        let rows = rows.clamp(1, ROWS_PER_BATCH);
        let mut from = 0;
        while from < share.rows.len() {
            let to = (from + rows).min(share.rows.len());
            if matches!(self.upsert(request, share, &places, from..to).await?, Attempt::Again) {
                return Ok(Attempt::Again);
            }
            from = to;
        }
        self.look_back(request, share).await
    }

    /// Writes rows: to the measurement's wide table what has a column there, the rest to its narrow
    /// one.
    async fn upsert(
        self: &Arc<Self>,
        request: &WriteRequest<'_>,
        share: &Share,
        places: &Places,
        rows: std::ops::Range<usize>,
    ) -> Result<Attempt, StoreError> {
        let (mut wide, mut narrow): (Vec<RowOf>, Vec<RowOf>) = (Vec::new(), Vec::new());
        for (row, series) in share.rows[rows.clone()].iter().zip(&share.series[rows]) {
            let place = places.of(request.batch.rows[*row as usize].layout);
            wide.extend((place.wide > 0).then_some((*row, *series)));
            narrow.extend((place.narrow > 0).then_some((*row, *series)));
        }
        if !wide.is_empty() {
            let rows = Upsert::new(request.batch, &wide, places);
            let needs = needs(request, &rows.columns, &rows.times);
            let send = async |table: &Table| rows.send(table).await;
            if matches!(self.put(share, Kind::Wide, &needs, send).await?, Attempt::Again) {
                return Ok(Attempt::Again);
            }
        }
        if narrow.is_empty() {
            return Ok(Attempt::Done);
        }
        let cells = NarrowUpsert::new(request.batch, &narrow, places);
        let send = async |table: &Table| cells.send(table, share.measurement.id).await;
        self.put(share, Kind::Narrow, &needs(request, &[], &cells.times), send).await
    }

    /// Sends rows to one of the measurement's tables, made to fit them.
    async fn put(
        self: &Arc<Self>,
        share: &Share,
        kind: Kind,
        needs: &Needs<'_>,
        send: impl AsyncFn(&Table) -> Result<kudu_client::WriteOutcome, Error>,
    ) -> Result<Attempt, StoreError> {
        let measurement = &share.measurement;
        let data = measurement.table(needs.policy.id, kind);
        let known = self.ensure(measurement, &data, needs).await?;
        self.look_ahead(measurement, &data, &known, needs);
        match send(&known.table).await {
            Ok(outcome) => match outcome.row_errors.first() {
                None => {
                    if let Some(latest) = needs.times.iter().max() {
                        data.met(*latest);
                    }
                    Ok(Attempt::Done)
                }
                Some(error) => {
                    let table = known.table.name();
                    let message = &error.message;
                    Err(StoreError::Io(format!("Kudu refuses a row of {table}: {message}")))
                }
            },
            // A range, a column or the table is gone.
            Err(
                Error::NotCovered { .. }
                | Error::SchemaChanged { .. }
                | Error::TableNotFound { .. },
            ) => {
                data.forget();
                Ok(Attempt::Again)
            }
            Err(error) => Err(cluster(error)),
        }
    }

    /// Whether what the rows were written under still holds.
    async fn look_back(
        &self,
        request: &WriteRequest<'_>,
        share: &Share,
    ) -> Result<Attempt, StoreError> {
        let measurement = &share.measurement;
        let (id, entries, marks) = tokio::try_join!(
            self.lookup(measurement.database, &measurement.name, None),
            self.registry.read(measurement.id, Which::Space(space::RANGE), None),
            self.marks_of(measurement.id, &share.series),
        )?;
        if id == Some(measurement.id) {
            let times = share.rows.iter().map(|at| request.batch.rows[*at as usize].time_ns);
            if !are_registered(&entries, request.policy.id, times) {
                // A range was dropped while the rows were on their way, or will be in a moment.
                measurement.forget_tables(request.policy.id);
                return Ok(Attempt::Again);
            }
            self.revive(measurement.database, measurement.id, marks).await?;
            return Ok(Attempt::Done);
        }
        self.forget(measurement);
        // This write may have made a table after those of the measurement were dropped.
        self.drop_tables_of(measurement.database, measurement.id).await?;
        Ok(Attempt::Again)
    }

    /// Drops the tables of a measurement whose id is in no use any more, or removes its rows from those
    /// that it shares.
    pub(crate) async fn drop_tables_of(
        &self,
        database: DatabaseId,
        measurement: i64,
    ) -> Result<(), StoreError> {
        if is_sharing(measurement) {
            return self.delete_all_rows(database, measurement).await;
        }
        let of_it = |table: &str| self.names.measurement_of(table) == Some(measurement);
        self.drop_tables(&self.names.of_database(database), of_it).await
    }
}

fn needs<'a>(
    request: &WriteRequest<'_>,
    columns: &'a [(String, FieldType)],
    times: &'a [i64],
) -> Needs<'a> {
    Needs { policy: request.policy, columns, times, now_ns: request.now_ns }
}

/// Whether all times lie in ranges of the policy that are among a measurement's entries.
fn are_registered(entries: &[Entry], policy: PolicyId, times: impl Iterator<Item = i64>) -> bool {
    let ranges = entries.iter().filter_map(registered_range).filter(|(of, _)| *of == policy);
    let ranges = united(ranges.map(|(_, range)| range).collect());
    let mut last: Option<TimeRange> = None;
    for time in times {
        if last.is_some_and(|range| range.contains(time)) {
            continue;
        }
        last = range_at(&ranges, time);
        if last.is_none() {
            return false;
        }
    }
    true
}

/// A measurement of a batch.
type Measured = Arc<Measurement>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::range_entry;

    #[test]
    fn times_outside_of_registered_ranges_are_noticed() {
        let (one, two) = (PolicyId(1), PolicyId(2));
        let entries = [
            range_entry(one, TimeRange::new(10, 19)),
            range_entry(one, TimeRange::new(0, 9)),
            range_entry(two, TimeRange::new(20, 29)),
        ];
        let registered =
            |policy, times: &[i64]| are_registered(&entries, policy, times.iter().copied());
        assert!(registered(one, &[0, 19, 5, 10]) && registered(two, &[20]) && registered(one, &[]));
        assert!(!registered(one, &[0, 20]) && !registered(one, &[-1]) && !registered(two, &[5]));
    }
}
