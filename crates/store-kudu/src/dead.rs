//! Series that are left without rows: they must not show, and may come back at any time.
//!
//! A series' row stays in its table; a mark in the registry says that it is dead. Whoever removes
//! rows looks which series have none left, inserts a mark for each, looks again, and only then sets
//! the mark to "dead" if it is still there. Whoever writes looks for marks of its series after its
//! rows are in, and removes them. Whichever order these steps fall in, a series with an acknowledged
//! row ends without a mark: either the second look found the row, or the writer found the mark.

use std::collections::HashSet;

use futures_util::future::join_all;
use kudu_client::{Predicate, ReadMode, Table};
use model::DatabaseId;
use store::StoreError;

use crate::error::cluster;
use crate::layout::{SERIES_ID, rows_of};
use crate::registry::{Entry, number_of, ordered, space};
use crate::shared::Shared;

/// Series that are looked at at a time.
const LOOKS_AT_ONCE: usize = 32;

impl Shared {
    /// Removes the marks, among a measurement's entries, of series that have just been written to.
    pub(crate) async fn revive(
        &self,
        measurement: i64,
        entries: &[Entry],
        series: &[i64],
    ) -> Result<(), StoreError> {
        if !entries.iter().any(|entry| entry.space == space::DEAD) {
            return Ok(());
        }
        let written: HashSet<i64> = series.iter().copied().collect();
        let of_them = |entry: &&Entry| {
            let id = number_of(&entry.key).filter(|_| entry.space == space::DEAD);
            id.is_some_and(|id| written.contains(&id))
        };
        let marks: Vec<Entry> = entries.iter().filter(of_them).cloned().collect();
        self.registry.delete(measurement, &marks).await
    }

    /// Marks those of `series` that have no row in any of the measurement's tables.
    pub(crate) async fn mark_dead(
        &self,
        database: DatabaseId,
        measurement: i64,
        series: &[i64],
    ) -> Result<(), StoreError> {
        let tables = self.tables_of(database, measurement).await?;
        let suspects = self.without_rows(&tables, measurement, series).await?;
        if suspects.is_empty() {
            return Ok(());
        }
        let mark = |id: &i64| {
            let mut key = ordered(*id).to_vec();
            key.extend(rand::random::<[u8; 8]>());
            Entry::new(space::DEAD, key).number(0)
        };
        let marks: Vec<Entry> = suspects.iter().map(mark).collect();
        self.registry.upsert(measurement, &marks).await?;
        // Anew, since a writer may have made a table for another policy.
        let tables = self.tables_of(database, measurement).await?;
        let dead = self.without_rows(&tables, measurement, &suspects).await?;
        let dead: HashSet<i64> = dead.into_iter().collect();
        let (mut dead_marks, mut others) = (Vec::new(), Vec::new());
        for (id, mark) in suspects.iter().zip(marks) {
            if dead.contains(id) {
                dead_marks.push(mark.number(1));
            } else {
                others.push(mark);
            }
        }
        self.registry.update(measurement, &dead_marks).await?;
        self.registry.delete(measurement, &others).await
    }

    async fn without_rows(
        &self,
        tables: &[Table],
        measurement: i64,
        series: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        let mut empty = Vec::new();
        for some in series.chunks(LOOKS_AT_ONCE) {
            let looks = join_all(some.iter().map(|id| has_rows(tables, measurement, *id))).await;
            for (id, has_rows) in some.iter().zip(looks) {
                if !has_rows? {
                    empty.push(*id);
                }
            }
        }
        Ok(empty)
    }

    /// Opens the data tables of a measurement.
    pub(crate) async fn tables_of(
        &self,
        database: DatabaseId,
        measurement: i64,
    ) -> Result<Vec<Table>, StoreError> {
        let prefix = self.names.of_database(database);
        let mut tables = Vec::new();
        for name in self.client.list_tables(&prefix).await.map_err(cluster)? {
            let ours = name.starts_with(&prefix);
            if ours && self.names.measurement_of(&name) == Some(measurement) {
                match self.client.open_table(&name).await {
                    Ok(table) => tables.push(table),
                    Err(kudu_client::Error::TableNotFound { .. }) => {}
                    Err(error) => return Err(cluster(error)),
                }
            }
        }
        Ok(tables)
    }
}

async fn has_rows(tables: &[Table], measurement: i64, series: i64) -> Result<bool, StoreError> {
    for table in tables {
        let scan = rows_of(table, measurement)
            .columns([SERIES_ID])
            .filter(Predicate::equal(SERIES_ID, series))
            .limit(1)
            .read_mode(ReadMode::Snapshot(None));
        match scan.open().map_err(cluster)?.next().await {
            Ok(None) | Err(kudu_client::Error::TableNotFound { .. }) => {}
            Ok(Some(_)) => return Ok(true),
            Err(error) => return Err(cluster(error)),
        }
    }
    Ok(false)
}
