//! Tables and partitions that somebody has dropped behind the store's back: what the registry has, and
//! the cluster has not.
//!
//! Daemons that drop something take it out of the registry first, and those that make something
//! register it last. So what is registered and not there was dropped by hand; or it is on its way, which
//! is why everything is looked at again before anybody complains.

use std::time::Duration;

use kudu_client::{Error, Table, Value};
use model::{DatabaseId, Name, PolicyId, TimeRange};
use store::StoreError;

use crate::error::cluster;
use crate::layout::{Kind, is_sharing};
use crate::shared::Shared;

/// Times that something missing is looked for.
const LOOKS: usize = 3;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Whose tables are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) database: DatabaseId,
    pub(crate) policy: PolicyId,
    pub(crate) measurement: &'a Name,
    pub(crate) id: i64,
}

impl Shared {
    /// Complains about registered ranges that none of the measurement's tables has. `opened`: those that
    /// are open already.
    pub(crate) async fn refuse_lost(
        &self,
        owner: Owner<'_>,
        registered: &[TimeRange],
        opened: &[&Table],
    ) -> Result<(), StoreError> {
        let mut missing: Vec<TimeRange> = registered.to_vec();
        missing = without_place(missing, opened).await?;
        if missing.is_empty() {
            return Ok(());
        }
        // Each table has the ranges of the rows that were written to it.
        let others = self.known_tables(owner, opened);
        missing = without_place(missing, &others.iter().collect::<Vec<_>>()).await?;
        self.refuse_missing(owner, missing).await
    }

    /// Complains about registered ranges if they are not there and should be, whatever is remembered.
    pub(crate) async fn refuse_missing(
        &self,
        owner: Owner<'_>,
        mut missing: Vec<TimeRange>,
    ) -> Result<(), StoreError> {
        let mut complaint = None;
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            complaint = self.complaint(owner, &mut missing).await?;
            if complaint.is_none() {
                return Ok(());
            }
        }
        complaint.map_or(Ok(()), |text| Err(StoreError::Io(text)))
    }

    /// The measurement's other tables that this handle has opened before.
    fn known_tables(&self, owner: Owner<'_>, opened: &[&Table]) -> Vec<Table> {
        let key = (owner.database, owner.measurement.clone());
        let known = self.measurements.get(&key).filter(|known| known.id == owner.id);
        let Some(known) = known else { return Vec::new() };
        let tables =
            [Kind::Wide, Kind::Narrow].map(|kind| known.table(owner.policy, kind).opened());
        let is_new = |table: &Table| opened.iter().all(|open| open.id() != table.id());
        tables.into_iter().flatten().filter(is_new).collect()
    }

    /// What is wrong, as things are now, with ranges that were missing a moment ago.
    async fn complaint(
        &self,
        owner: Owner<'_>,
        missing: &mut Vec<TimeRange>,
    ) -> Result<Option<String>, StoreError> {
        let Owner { database, policy, measurement, id } = owner;
        if missing.is_empty() || self.lookup(database, measurement, None).await? != Some(id) {
            return Ok(None);
        }
        let now = self.state(id, None).await?.ranges.remove(&policy).unwrap_or_default();
        missing.retain(|range| now.contains(range));
        let mut has_table = false;
        let name = |kind| self.names.data(kind, database, policy, id, measurement);
        let main = if is_sharing(id) { Kind::Narrow } else { Kind::Wide };
        for kind in [Kind::Wide, Kind::Narrow] {
            if missing.is_empty() {
                return Ok(None);
            }
            if let Some((_, ranges)) = self.open_with_ranges(&name(kind)).await? {
                has_table = true;
                let there: Vec<TimeRange> = ranges.iter().map(crate::ranges::range_of).collect();
                missing.retain(|range| !there.contains(range));
            }
        }
        let Some(TimeRange { min, max }) = missing.first().copied() else { return Ok(None) };
        let table = name(main);
        Ok(Some(match has_table {
            false => format!(
                "table {table} of the Kudu cluster is gone, with the rows of measurement \
                 \"{measurement}\" in this retention policy: it was dropped or renamed by hand; restore it \
                 or rename it back, or give the measurement up (DROP MEASUREMENT)"
            ),
            true => format!(
                "the partition from {min} to {max} ns of table {table} of the Kudu cluster is gone, with \
                 its rows: it was dropped by hand; restore it, or go on without its rows by adding it \
                 again (kudu table add_range_partition) or writing to it"
            ),
        }))
    }
}

/// Ranges that none of the tables has a place for.
async fn without_place(
    mut ranges: Vec<TimeRange>,
    tables: &[&Table],
) -> Result<Vec<TimeRange>, StoreError> {
    for table in tables {
        let firsts: Vec<Value> = ranges.iter().map(|range| Value::from(range.min)).collect();
        match table.have_ranges(&firsts).await {
            Ok(found) => {
                let mut found = found.into_iter();
                ranges.retain(|_| !found.next().unwrap_or(false));
            }
            Err(Error::TableNotFound { .. }) => {}
            Err(error) => return Err(cluster(error)),
        }
    }
    Ok(ranges)
}
