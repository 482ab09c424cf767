//! Series that are left without rows: they must not show, and may come back at any time.
//!
//! A series' row stays in its table; a mark in the registry says that it is dead. Whoever removes
//! rows looks which series have none left, inserts a mark for each, looks again, and only then sets
//! the mark to "dead" if it is still there. Whoever writes looks for marks of its series after its
//! rows are in, and removes those of series that have rows. Whichever order these steps fall in, a series with an
//! acknowledged row ends without a mark: either the second look found the row, or the writer found the mark. And one
//! whose rows were removed before the writer looked keeps its mark, or gets one from whoever removed them.

use futures_util::future::join_all;
use kudu_client::{Predicate, ReadMode, Table};
use model::{DatabaseId, Reservation};
use store::StoreError;

use crate::error::cluster;
use crate::layout::{SERIES_ID, is_sharing, rows_of};
use crate::registry::{Entry, Which, number_of, ordered, space};
use crate::shared::Shared;

/// Series that are looked at at a time.
const LOOKS_AT_ONCE: usize = 32;

/// Rows that are read in the time of looking for a row of one series, about.
pub(crate) const ROWS_PER_LOOK: u128 = 2000;
/// Stretches of ids that marks are looked for in, at most.
pub(crate) const STRETCHES_MAX: usize = 16;
/// Marks that are read together with what else is known of a measurement.
const MARKS_FIRST: usize = 4096;
/// Memory of looking for the mark of a series, bytes.
pub(crate) const BYTES_PER_LOOK: usize = 32;
/// Memory of dealing with a series, bytes, about: most of it is its mark.
const BYTES_PER_SERIES: usize = 256;
/// Series that are dealt with at a time.
const SERIES_MIN: usize = 256;
const SERIES_MAX: usize = 1 << 16;
/// Behind every key of a mark.
const END: [u8; 17] = [0xff; 17];

/// Series without rows, as far as their marks were read.
#[derive(Debug, Default)]
pub(crate) struct Dead {
    /// Ascending.
    ids: Vec<i64>,
    is_cut: bool,
}

impl Dead {
    /// Takes the next mark, in the order of keys, unless there are many.
    pub(crate) fn learn(&mut self, mark: &Entry) {
        if self.ids.len() >= MARKS_FIRST {
            self.is_cut = true;
        } else {
            self.add(mark);
        }
    }

    fn add(&mut self, mark: &Entry) {
        let Some(id) = number_of(&mark.key).filter(|_| mark.number == Some(1)) else { return };
        if self.ids.last() != Some(&id) {
            self.ids.push(id);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether there may be more than are here.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

/// First and last ids of stretches that hold all of these, cut where most ids lie between. They are
/// ascending.
fn stretches(ids: &[i64]) -> Vec<(i64, i64)> {
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
        let mut written = series.to_vec();
        written.sort_unstable();
        written.dedup();
        self.marks_among(measurement, &written, None, Some).await
    }

    /// Removes marks that a writer found behind its rows. Those of series whose rows are gone again stay: somebody
    /// removed the new rows as well, and marked the series for that.
    pub(crate) async fn revive(
        &self,
        database: DatabaseId,
        measurement: i64,
        mut marks: Vec<Entry>,
    ) -> Result<(), StoreError> {
        if marks.is_empty() {
            return Ok(());
        }
        let mut marked: Vec<i64> = marks.iter().filter_map(|mark| number_of(&mark.key)).collect();
        marked.sort_unstable();
        marked.dedup();
        let tables = self.tables_of(database, measurement).await?;
        let gone = self.without_rows(&tables, measurement, &marked).await?;
        marks.retain(|mark| number_of(&mark.key).is_none_or(|id| gone.binary_search(&id).is_err()));
        self.registry.delete(measurement, &marks).await
    }

    /// Those of some series, in any order, that have no rows.
    pub(crate) async fn dead_among(
        &self,
        measurement: i64,
        mut series: Vec<i64>,
        moment: u64,
    ) -> Result<Dead, StoreError> {
        series.sort_unstable();
        let id_of = |mark: Entry| number_of(&mark.key).filter(|_| mark.number == Some(1));
        let mut ids = self.marks_among(measurement, &series, Some(moment), id_of).await?;
        ids.sort_unstable();
        Ok(Dead { ids, is_cut: false })
    }

    /// What `take` keeps of the marks of some series, which are ascending.
    async fn marks_among<T>(
        &self,
        measurement: i64,
        series: &[i64],
        moment: Option<u64>,
        take: impl Fn(Entry) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let is_of_them =
            |mark: &Entry| number_of(&mark.key).is_some_and(|id| series.binary_search(&id).is_ok());
        let read = async |first: i64, last: i64| {
            let (first, end) = (ordered(first), ordered(last.saturating_add(1)));
            let which = Which::Within(space::DEAD, &first, &end);
            let mut reading = self.registry.open(measurement, which, moment, None)?;
            let mut kept = Vec::new();
            while let Some(marks) = reading.next().await? {
                kept.extend(marks.into_iter().filter(is_of_them).filter_map(&take));
            }
            Ok::<_, StoreError>(kept)
        };
        let reads = stretches(series).into_iter().map(|(first, last)| read(first, last));
        let mut all = Vec::new();
        for kept in join_all(reads).await {
            all.extend(kept?);
        }
        Ok(all)
    }

    /// Reads the marks that `dead` lacks.
    pub(crate) async fn complete_dead(
        &self,
        measurement: i64,
        dead: &mut Dead,
        moment: u64,
        held: &mut Reservation,
    ) -> Result<(), StoreError> {
        if !dead.is_cut {
            return Ok(());
        }
        *dead = Dead::default();
        let which = Which::Within(space::DEAD, &[], &END);
        let mut reading = self.registry.open(measurement, which, Some(moment), None)?;
        while let Some(marks) = reading.next().await? {
            // A list that grows is copied.
            held.resize((dead.ids.len() + marks.len()) * 3 * size_of::<i64>())?;
            marks.iter().for_each(|mark| dead.add(mark));
        }
        Ok(())
    }

    /// Series that are dealt with at a time, so that it takes a part of the memory for such work:
    /// for each its id, its mark, and what it takes to look for its rows.
    pub(crate) fn series_at_once(&self) -> usize {
        (self.work.limit_bytes() / 4 / BYTES_PER_SERIES).clamp(SERIES_MIN, SERIES_MAX)
    }

    /// Memory of dealing with so many series.
    pub(crate) fn hold_series(&self, series: usize) -> Result<Reservation, StoreError> {
        Ok(self.work.reserve(series * BYTES_PER_SERIES)?)
    }

    /// Marks those of `series` (ascending) that have no row in any of the measurement's tables.
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
        let (mut dead_marks, mut others) = (Vec::new(), Vec::new());
        for (id, mark) in suspects.iter().zip(marks) {
            if dead.binary_search(id).is_ok() {
                dead_marks.push(mark.number(1));
            } else {
                others.push(mark);
            }
        }
        self.registry.update(measurement, &dead_marks).await?;
        self.registry.delete(measurement, &others).await
    }

    /// Those of `series` (ascending) that have no row.
    async fn without_rows(
        &self,
        tables: &[Table],
        measurement: i64,
        series: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        let mut rows = 0;
        for table in tables {
            rows += u128::from(self.statistics(table).await?);
        }
        if rows < series.len() as u128 * ROWS_PER_LOOK {
            return not_found(tables, measurement, series).await;
        }
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

/// Those of `series` (ascending) that do not show among all rows.
async fn not_found(
    tables: &[Table],
    measurement: i64,
    series: &[i64],
) -> Result<Vec<i64>, StoreError> {
    let (Some(first), Some(last)) = (series.first(), series.last()) else { return Ok(Vec::new()) };
    let mut is_found = vec![false; series.len()];
    for table in tables {
        let scan = rows_of(table, measurement)
            .columns([SERIES_ID])
            .filter(Predicate::greater_or_equal(SERIES_ID, *first))
            .filter(Predicate::less_or_equal(SERIES_ID, *last))
            .read_mode(ReadMode::Snapshot(None))
            .fault_tolerant();
        let mut scanner = scan.open().map_err(cluster)?;
        loop {
            let batch = match scanner.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) | Err(kudu_client::Error::TableNotFound { .. }) => break,
                Err(error) => return Err(cluster(error)),
            };
            let mut before = None;
            for id in batch.column(0).i64s().filter(|id| before.replace(*id) != Some(*id)) {
                if let Ok(at) = series.binary_search(&id) {
                    is_found[at] = true;
                }
            }
        }
    }
    let without = series.iter().zip(is_found).filter(|(_, is_found)| !is_found);
    Ok(without.map(|(id, _)| *id).collect())
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
        let of = stretches;
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
