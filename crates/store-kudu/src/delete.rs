//! Deletes.
//!
//! Rows are found by their keys and removed one by one; a measurement, a policy or a database loses
//! its names first and its tables then, so that nobody finds half of it.

mod matching;

use std::collections::BTreeSet;

use kudu_client::{Cells, Operation, Predicate, ReadMode, RowBatch, Table};
use model::{DatabaseId, Name, PolicyId, TagExpr, TimeRange};
use store::{DeleteRequest, DeleteTarget, StoreError};

use crate::error::cluster;
use crate::layout::{FIELD_ID, Kind, SERIES_ID, TIME, hash, rows_of};
use crate::registry::{Entry, Which, owner_of, space};
use crate::shared::Shared;

/// Bytes of an answer while rows to be removed are looked for.
const BATCH_BYTES: u32 = 256 << 10;
/// Series looked for together; beyond, all are read.
const SERIES_PER_SCAN: usize = 200;

impl Shared {
    pub(crate) async fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        self.metrics.deletes.add(1);
        let database = request.database;
        match &request.target {
            DeleteTarget::Rows { measurements, series, time } => {
                let time = time.intersect(&TimeRange::ALL);
                if time.is_empty() || matches!(series, TagExpr::False) {
                    return Ok(());
                }
                for (name, id) in self.measurements_of(database, None).await? {
                    if measurements.accepts(&name) {
                        self.delete_rows(database, id, series, time).await?;
                    }
                }
                Ok(())
            }
            DeleteTarget::Matching(_) => {
                panic!("BUG: rows are compared by who can wait for a scan")
            }
            DeleteTarget::Measurement(name) => match self.lookup(database, name, None).await? {
                Some(id) => self.delete_measurement(database, name, id).await,
                None => Ok(()),
            },
            DeleteTarget::Partition(policy, time) => {
                self.drop_partition(database, *policy, *time).await
            }
            DeleteTarget::Policy(policy) => self.delete_policy(database, *policy).await,
            DeleteTarget::Database => {
                let measurements = self.measurements_of(database, None).await?;
                // Without names nobody finds the tables, which go at once.
                let entry =
                    |(name, _): &(Name, i64)| Entry::new(space::MEASUREMENT, hash(name.as_bytes()));
                let entries: Vec<Entry> = measurements.iter().map(entry).collect();
                self.registry.delete(owner_of(database), &entries).await?;
                self.drop_tables(&self.names.of_database(database), |_| true).await?;
                for (_, id) in measurements {
                    self.clear_measurement(database, id).await?;
                }
                // Tables that a writer made meanwhile, or a daemon left behind that died.
                self.drop_tables(&self.names.of_database(database), |_| true).await
            }
        }
    }

    async fn delete_rows(
        &self,
        database: DatabaseId,
        measurement: i64,
        expr: &TagExpr,
        time: TimeRange,
    ) -> Result<(), StoreError> {
        let now = self.now().await?;
        let mut listing = self.list_series(measurement, expr, now)?;
        let _held = self.hold_series(self.series_at_once())?;
        loop {
            let ids = listing.next_ids(self.series_at_once()).await?;
            if ids.is_empty() {
                return Ok(());
            }
            let mut touched = BTreeSet::new();
            for table in self.tables_of(database, measurement).await? {
                let some = Some(ids.as_slice());
                let found = self.delete_from(&table, measurement, some, time, now, |_, _| true);
                touched.extend(found.await?);
            }
            // A write that failed half way leaves series without rows: dropping all is to hit them, too.
            if time == TimeRange::ALL {
                let dead = self.dead_among(measurement, ids.clone(), now).await?;
                touched.extend(ids.into_iter().filter(|id| !dead.contains(*id)));
            }
            let touched: Vec<i64> = touched.into_iter().collect();
            self.mark_dead(database, measurement, &touched).await?;
        }
    }

    /// Removes all rows of a measurement that has no tables of its own.
    pub(crate) async fn delete_all_rows(
        &self,
        database: DatabaseId,
        measurement: i64,
    ) -> Result<(), StoreError> {
        let now = self.now().await?;
        for table in self.tables_of(database, measurement).await? {
            let all = TimeRange::ALL;
            self.delete_from(&table, measurement, None, all, now, |_, _| true).await?;
        }
        Ok(())
    }

    /// Removes the rows of these series (ascending; `None`: of all) as of a moment that `is_wanted`
    /// accepts by series and time; gives those of these series that had some.
    async fn delete_from(
        &self,
        table: &Table,
        measurement: i64,
        ids: Option<&[i64]>,
        time: TimeRange,
        moment: u64,
        is_wanted: impl Fn(i64, i64) -> bool,
    ) -> Result<BTreeSet<i64>, StoreError> {
        let mut touched = BTreeSet::new();
        let is_narrow = Kind::of(table) == Kind::Narrow;
        let columns = [SERIES_ID, TIME].into_iter().chain(is_narrow.then_some(FIELD_ID));
        let mut scan = rows_of(table, measurement)
            .columns(columns)
            .filter(Predicate::greater_or_equal(TIME, time.min))
            .filter(Predicate::less_or_equal(TIME, time.max))
            .read_mode(ReadMode::Snapshot(Some(moment)))
            .fault_tolerant()
            .batch_bytes(BATCH_BYTES);
        if let Some(ids) = ids.filter(|ids| ids.len() <= SERIES_PER_SCAN) {
            scan = scan.filter(Predicate::in_list(SERIES_ID, ids.iter().copied()));
        }
        let mut scanner = scan.open().map_err(cluster)?;
        while let Some(batch) = scanner.next().await.map_err(cluster)? {
            let is_of_them = |series, time| {
                ids.is_none_or(|ids| ids.binary_search(&series).is_ok()) && is_wanted(series, time)
            };
            let keys = batch.column(0).i64s().zip(batch.column(1).i64s()).enumerate();
            let of_them: Vec<usize> = keys
                .filter(|(_, (series, time))| is_of_them(*series, *time))
                .map(|(row, _)| row)
                .collect();
            let pick = |all: Vec<i64>| of_them.iter().map(|row| all[*row]).collect::<Vec<i64>>();
            let series = pick(batch.column(0).i64s().collect());
            let times = pick(batch.column(1).i64s().collect());
            if ids.is_some() {
                touched.extend(series.chunk_by(|a, b| a == b).filter_map(|run| run.first()));
            }
            let rows = RowBatch::new(Operation::DeleteIgnore, series.len());
            if is_narrow {
                let all: Vec<i32> = batch.column(2).i32s().collect();
                let fields: Vec<i32> = of_them.iter().map(|row| all[*row]).collect();
                let owners = vec![measurement; series.len()];
                let rows = rows
                    .column(0, Cells::Int64(&owners))
                    .column(1, Cells::Int64(&series))
                    .column(2, Cells::Int64(&times))
                    .column(3, Cells::Int32(&fields));
                remove(table, &rows).await?;
            } else {
                let rows = rows.column(0, Cells::Int64(&series)).column(1, Cells::Int64(&times));
                remove(table, &rows).await?;
            }
        }
        Ok(touched)
    }

    /// Takes the name away, then tables, series and what is known of the fields.
    async fn delete_measurement(
        &self,
        database: DatabaseId,
        name: &Name,
        id: i64,
    ) -> Result<(), StoreError> {
        let entry = Entry::new(space::MEASUREMENT, hash(name.as_bytes()));
        self.registry.delete(owner_of(database), &[entry]).await?;
        self.clear_measurement(database, id).await
    }

    /// Removes tables, series and what is known of the fields of a measurement that has no name any
    /// more.
    async fn clear_measurement(&self, database: DatabaseId, id: i64) -> Result<(), StoreError> {
        self.forget_where(|known| known.id == id);
        self.drop_tables_of(database, id).await?;
        for (table, key) in [(&self.series, "key_hash"), (&self.tags, "tag_hash")] {
            self.delete_series_rows(table, key, id).await?;
        }
        // Ends of blocks of ids stay: ids are never given twice.
        self.registry.clear(id, Which::Spaces(space::FIELD, space::RANGE)).await?;
        self.registry.clear(id, Which::Spaces(space::DEAD, i8::MAX)).await
    }

    async fn delete_series_rows(
        &self,
        table: &Table,
        key: &str,
        measurement: i64,
    ) -> Result<(), StoreError> {
        let with_series = table.schema().key().len() == 3;
        let mut columns = vec![key];
        columns.extend(with_series.then_some(SERIES_ID));
        let scan = table
            .scan()
            .columns(columns)
            .filter(Predicate::equal("measurement_id", measurement))
            .read_mode(ReadMode::Snapshot(None))
            .fault_tolerant()
            .batch_bytes(BATCH_BYTES);
        let mut scanner = scan.open().map_err(cluster)?;
        while let Some(batch) = scanner.next().await.map_err(cluster)? {
            let owners = vec![measurement; batch.rows()];
            let keys: Vec<&[u8]> =
                (0..batch.rows()).map(|row| batch.column(0).bytes(row)).collect();
            let mut rows = RowBatch::new(Operation::DeleteIgnore, batch.rows())
                .column(0, Cells::Int64(&owners))
                .column(1, Cells::Slices(&keys));
            let series: Vec<i64> = match with_series {
                true => batch.column(1).i64s().collect(),
                false => Vec::new(),
            };
            if with_series {
                rows = rows.column(2, Cells::Int64(&series));
            }
            remove(table, &rows).await?;
        }
        Ok(())
    }

    async fn delete_policy(
        &self,
        database: DatabaseId,
        policy: PolicyId,
    ) -> Result<(), StoreError> {
        let measurements = self.measurements_of(database, None).await?;
        let mut touched = Vec::new();
        for (_, id) in measurements {
            let entries = self.registry.read(id, Which::Space(space::RANGE), None).await?;
            let of_policy = |e: &Entry| e.key.starts_with(&policy.0.to_be_bytes());
            let entries: Vec<Entry> = entries.into_iter().filter(of_policy).collect();
            if !entries.is_empty() {
                self.registry.delete(id, &entries).await?;
                touched.push(id);
            }
        }
        self.measurements.retain(|_, known| {
            known.tables.lock().retain(|(of, _), _| *of != policy);
            true
        });
        self.drop_tables(&self.names.of_policy(database, policy), |_| true).await?;
        for id in touched {
            self.mark_all_dead(database, id).await?;
        }
        Ok(())
    }

    /// Marks every series of a measurement that has no rows left.
    pub(crate) async fn mark_all_dead(
        &self,
        database: DatabaseId,
        measurement: i64,
    ) -> Result<(), StoreError> {
        let now = self.now().await?;
        let mut listing = self.list_series(measurement, &TagExpr::True, now)?;
        let _held = self.hold_series(self.series_at_once())?;
        loop {
            let mut ids = listing.next_ids(self.series_at_once()).await?;
            if ids.is_empty() {
                return Ok(());
            }
            let dead = self.dead_among(measurement, ids.clone(), now).await?;
            ids.retain(|id| !dead.contains(*id));
            self.mark_dead(database, measurement, &ids).await?;
        }
    }
}

async fn remove(table: &Table, rows: &RowBatch<'_>) -> Result<(), StoreError> {
    if rows.rows() == 0 {
        return Ok(());
    }
    let outcome = table.write(rows).await.map_err(cluster)?;
    match outcome.row_errors.first() {
        None => Ok(()),
        Some(error) => {
            let (name, message) = (table.name(), &error.message);
            Err(StoreError::Io(format!("Kudu refuses to remove a row of {name}: {message}")))
        }
    }
}
