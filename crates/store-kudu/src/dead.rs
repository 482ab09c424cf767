//! Series that are left without rows: they must not show, and may come back at any time.
//!
//! A series' row stays in its table; a mark in the registry says that it is dead. Whoever removes
//! rows looks which series have none left, inserts a mark for each, looks again, and only then sets
//! the mark to "dead" if it is still there. Whoever writes looks for marks of its series after its
//! rows are in, and removes them. Whichever order these steps fall in, a series with an acknowledged
//! row ends without a mark: either the second look found the row, or the writer found the mark.

use std::collections::{BTreeSet, HashSet};

use futures_util::future::join_all;
use kudu_client::{Predicate, ReadMode, Table};
use model::DatabaseId;
use store::StoreError;

use crate::error::cluster;
use crate::layout::{SERIES_ID, is_sharing, rows_of};
use crate::registry::{Entry, Which, number_of, ordered, space};
use crate::shared::Shared;

/// Series that are looked at at a time.
const LOOKS_AT_ONCE: usize = 32;

/// Stretches of ids that a writer looks for marks in, at most.
const STRETCHES_MAX: usize = 16;

/// First and last ids of stretches that hold all of these, cut where most ids lie between.
fn stretches(ids: &BTreeSet<i64>) -> Vec<(i64, i64)> {
    let ids: Vec<i64> = ids.iter().copied().collect();
    let mut gaps: Vec<(i64, usize)> =
        (1..ids.len()).map(|at| (ids[at].saturating_sub(ids[at - 1]), at)).collect();
    gaps.retain(|(gap, _)| *gap > 1);
    gaps.sort_unstable_by_key(|(gap, _)| std::cmp::Reverse(*gap));
    let mut cuts: Vec<usize> = gaps.iter().take(STRETCHES_MAX - 1).map(|(_, at)| *at).collect();
    cuts.sort_unstable();
    cuts.push(ids.len());
    let mut from = 0;
    let mut all = Vec::new();
    for to in cuts {
        if let [first, ..] = &ids[from..to] {
            all.push((*first, ids[to - 1]));
        }
        from = to;
    }
    all
}

impl Shared {
    /// The marks of some series, which a writer removes once its rows are in.
    pub(crate) async fn marks_of(
        &self,
        measurement: i64,
        series: &[i64],
    ) -> Result<Vec<Entry>, StoreError> {
        let written: BTreeSet<i64> = series.iter().copied().collect();
        let reads = stretches(&written).into_iter().map(|(first, last)| async move {
            let (first, end) = (ordered(first), ordered(last.saturating_add(1)));
            self.registry.read(measurement, Which::Within(space::DEAD, &first, &end), None).await
        });
        let mut marks = Vec::new();
        for found in join_all(reads).await {
            let is_of_them =
                |entry: &Entry| number_of(&entry.key).is_some_and(|id| written.contains(&id));
            marks.extend(found?.into_iter().filter(is_of_them));
        }
        Ok(marks)
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
            let ours = match is_sharing(measurement) {
                true => self.names.is_shared(database, &name),
                false => self.names.measurement_of(&name) == Some(measurement),
            };
            if ours && name.starts_with(&prefix) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_looked_for_where_they_are() {
        let of = |ids: &[i64]| stretches(&ids.iter().copied().collect());
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[7]), [(7, 7)]);
        assert_eq!(of(&[1, 2, 3, 1000, 1001]), [(1, 3), (1000, 1001)]);
        let spread: Vec<i64> = (0..100).map(|n| n * n).collect();
        let all = of(&spread);
        assert_eq!((all.len(), all[0].0, all[15].1), (STRETCHES_MAX, 0, 99 * 99));
        let is_in = |id: &i64| all.iter().any(|(first, last)| first <= id && id <= last);
        assert!(spread.iter().all(is_in));
    }
}
