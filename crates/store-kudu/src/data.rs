//! Data tables: a wide one for each measurement and policy, and a narrow one where the measurement has
//! more fields than a table can have columns; one narrow table a policy for all measurements beyond
//! the first hundred or so of a database. Made and grown by whoever writes first.
//!
//! A range of time counts for readers once it is registered, so it is registered before rows are
//! written to it. The range ahead of the present is made by itself (`ahead`). All changes here are made
//! by several daemons at once: what exists already is success, and after any surprise the table is
//! looked at anew, a moment later.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kudu_client::{DataType, Error, Table, TableSpec};
use model::{FieldType, TimeRange};
use parking_lot::{Mutex, RwLock};
use store::{Policy, StoreError};
use tokio::sync::Mutex as AsyncMutex;

use crate::ahead::Turns;
use crate::error::{cluster, contended};
use crate::layout::{
    Kind, MEASUREMENT_ID, SERIES_ID, TIME, column_type, data_schema, field_column, is_sharing,
    narrow_schema,
};
use crate::measurement::{Measurement, range_entry};
use crate::ranges::{
    Needs, RANGES_PER_REQUEST, lacking, missing_ranges, partition_of, range_at, range_of,
};
use crate::registry::Entry;
use crate::shared::{FIXED_BUCKETS_MAX, Shared};

/// Changes of a table for one write.
const STEPS_MAX: usize = 100;
/// Tries to change a table while others change it.
const TRIES_MAX: u32 = 40;
/// Longest pause between two tries, milliseconds, as a power of two. All of them together are 8 s: another
/// daemon may be making the table, which takes a busy cluster seconds.
const PAUSE_MAX_LOG2: u32 = 8;

/// A data table as far as this handle knows it.
#[derive(Debug)]
pub(crate) struct DataTable {
    kind: Kind,
    known: RwLock<Option<Arc<Known>>>,
    /// Opened last by a reader: keeps alive what is known of its tablets.
    held: RwLock<Option<Table>>,
    /// One change at a time.
    changing: AsyncMutex<()>,
    /// Latest time that this handle has written or met, in nanoseconds since the earliest; 0: none.
    /// A guess only: others write, too, and rows are deleted.
    latest: AtomicU64,
    /// Columns of the table as it was known before it was looked at anew.
    had: Mutex<HashSet<String>>,
    /// Columns that were not there and were logged.
    missed: Mutex<HashSet<String>>,
    /// Who makes the range ahead.
    pub(crate) ahead: Turns,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) table: Table,
    /// Registered ranges, ascending.
    pub(crate) ranges: Vec<TimeRange>,
}

impl Known {
    fn covers(&self, time_ns: i64) -> bool {
        range_at(&self.ranges, time_ns).is_some()
    }

    fn satisfies(&self, needs: &Needs<'_>) -> bool {
        let columns = |(name, _): &(String, FieldType)| self.table.schema().find(name).is_some();
        needs.columns.iter().all(columns) && needs.times.iter().all(|time| self.covers(*time))
    }

    /// Complains about columns that are not of their field's type.
    fn check(&self, columns: &[(String, FieldType)]) -> Result<(), StoreError> {
        for (name, field_type) in columns {
            let Some(at) = self.table.schema().find(name) else { continue };
            let is = self.table.schema().columns()[at].data_type;
            check_type(self.table.name(), name, is, *field_type)?;
        }
        Ok(())
    }
}

/// Complains about a column that is not of its field's type.
pub(crate) fn check_type(
    table: &str,
    column: &str,
    is: DataType,
    field_type: FieldType,
) -> Result<(), StoreError> {
    let wanted = column_type(field_type);
    if is == wanted {
        return Ok(());
    }
    Err(StoreError::Io(format!(
        "column {column} of table {table} of the Kudu cluster is {is:?} instead of {wanted:?}: it \
         was changed by hand; rename it, and Nyala adds its own"
    )))
}

/// Complains about a table that was not cut into ranges.
fn check_cut(table: &Table, there: &[TimeRange]) -> Result<(), StoreError> {
    let whole = |range: &TimeRange| range.min == i64::MIN && range.max == i64::MAX - 1;
    match there.iter().any(whole) {
        false => Ok(()),
        true => Err(StoreError::Invalid(format!(
            "table {} of the Kudu cluster has one partition for all times: before 1.18 Kudu makes no \
             table without one, which tables of more than {FIXED_BUCKETS_MAX} buckets begin as; drop \
             it, and give fewer buckets (kudu://.../?buckets=N)",
            table.name()
        ))),
    }
}

impl DataTable {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            known: RwLock::default(),
            held: RwLock::default(),
            changing: AsyncMutex::default(),
            latest: AtomicU64::new(0),
            had: Mutex::default(),
            missed: Mutex::default(),
            ahead: Turns::default(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.read().clone()
    }

    pub(crate) fn hold(&self, table: &Table) {
        let before = self.held.write().replace(table.clone());
        if let Some(before) = before.filter(|before| before.schema() != table.schema()) {
            self.note_columns(&before);
        }
    }

    /// The table as a reader or writer has opened it last.
    pub(crate) fn opened(&self) -> Option<Table> {
        let held = self.held.read().clone();
        held.or_else(|| self.known().map(|known| known.table.clone()))
    }

    /// The latest time that this handle has written or met.
    pub(crate) fn latest_ns(&self) -> Option<i64> {
        let latest = self.latest.load(Ordering::Relaxed);
        (latest > 0).then(|| (latest ^ 1 << 63).cast_signed())
    }

    /// Notes a time that rows have.
    pub(crate) fn met(&self, time_ns: i64) {
        self.latest.fetch_max(time_ns.cast_unsigned() ^ 1 << 63, Ordering::Relaxed);
    }

    /// Opens the table anew when it is read next.
    pub(crate) fn release(&self) {
        if let Some(table) = self.held.write().take() {
            self.note_columns(&table);
        }
    }

    /// Looks at the table anew when it is needed next.
    pub(crate) fn forget(&self) {
        if let Some(known) = self.known.write().take() {
            self.note_columns(&known.table);
        }
    }

    fn note_columns(&self, table: &Table) {
        let names = table.schema().columns().iter().map(|column| column.name.clone());
        self.had.lock().extend(names);
    }

    /// A field's column is not there. Complains if this handle knows that it was. It need not have been:
    /// the field may have been written in other policies only, or a write is on its way.
    pub(crate) fn miss_column(&self, column: &str, only_policy: bool) -> Result<(), StoreError> {
        let Some(table) = self.opened() else { return Ok(()) };
        let table = table.name();
        if self.had.lock().contains(column) {
            return Err(StoreError::Io(format!(
                "column {column} of table {table} of the Kudu cluster is gone: it was renamed or \
                 dropped by hand; rename it back, or write the field and Nyala adds an empty one"
            )));
        }
        if only_policy && self.missed.lock().insert(column.to_owned()) {
            tracing::warn!(
                "table {table} of the Kudu cluster has no column {column}, which a field was \
                 registered for: no write came so far, or it was renamed or dropped by hand"
            );
        }
        Ok(())
    }

    fn learn(&self, table: Table, ranges: Vec<TimeRange>) -> Arc<Known> {
        let known = Arc::new(Known { table, ranges });
        *self.known.write() = Some(Arc::clone(&known));
        known
    }
}

impl Shared {
    /// The table with everything a write needs, made and changed where that is missing.
    pub(crate) async fn ensure(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        needs: &Needs<'_>,
    ) -> Result<Arc<Known>, StoreError> {
        if let Some(known) = data.known().filter(|known| known.satisfies(needs)) {
            if known.check(needs.columns).is_ok() {
                return Ok(known);
            }
            // Somebody may have put it right.
            data.forget();
        }
        let _turn = data.changing.lock().await;
        let (mut surprises, mut steps) = (0_u32, 0);
        while surprises < TRIES_MAX {
            if surprises > 0 {
                let pause_ms = 1 << surprises.min(PAUSE_MAX_LOG2);
                tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            }
            steps += 1;
            if steps > STEPS_MAX {
                return Err(StoreError::Invalid(format!(
                    "the rows of one write to measurement \"{}\" lie in more than {} new partitions: \
                     send them in several requests, or give the policy longer partitions (SHARD \
                     DURATION)",
                    measurement.name,
                    STEPS_MAX * RANGES_PER_REQUEST
                )));
            }
            let Some(known) = self.open_or_create_data(measurement, data, needs).await? else {
                surprises += 1;
                continue;
            };
            if known.satisfies(needs) {
                known.check(needs.columns)?;
                return Ok(known);
            }
            match self.grow(measurement, data, &known, needs).await {
                Ok(()) => {}
                Err(Surprise::Changed) => {
                    data.forget();
                    surprises += 1;
                }
                Err(Surprise::Failed(error)) => return Err(error),
            }
        }
        Err(contended("the data table"))
    }

    async fn open_or_create_data(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        needs: &Needs<'_>,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        if let Some(known) = data.known() {
            return Ok(Some(known));
        }
        match self.open_known(measurement, data, needs.policy).await? {
            Some(known) => Ok(Some(known)),
            None => self.create_data(measurement, data, needs).await,
        }
    }

    /// Opens a table that exists; its ranges are those registered.
    async fn open_known(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        policy: Policy,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        let name = self.data_name(measurement, data.kind, policy);
        let table = match self.client.open_table(&name).await {
            Ok(table) => table,
            Err(Error::TableNotFound { .. }) => return Ok(None),
            Err(error) => return Err(cluster(error)),
        };
        let registered = self.registered_ranges(measurement, policy).await?;
        // A range that was registered may have been dropped since: rows would have no place.
        let there = match self.ranges_there(&table).await {
            Ok(there) => there,
            // So may the table.
            Err(Error::TableNotFound { .. }) => return Ok(None),
            Err(error) => return Err(cluster(error)),
        };
        let ranges = registered.into_iter().filter(|range| there.contains(range)).collect();
        Ok(Some(data.learn(table, ranges)))
    }

    async fn ranges_there(&self, table: &Table) -> Result<Vec<TimeRange>, Error> {
        Ok(table.range_partitions().await?.iter().map(range_of).collect())
    }

    async fn registered_ranges(
        &self,
        measurement: &Measurement,
        policy: Policy,
    ) -> Result<Vec<TimeRange>, StoreError> {
        let mut state = self.state(measurement.id, None).await?;
        Ok(state.ranges.remove(&policy.id).unwrap_or_default())
    }

    pub(crate) fn data_name(
        &self,
        measurement: &Measurement,
        kind: Kind,
        policy: Policy,
    ) -> String {
        let Measurement { database, id, name, .. } = measurement;
        self.names.data(kind, *database, policy.id, *id, name)
    }

    /// Makes the table; `None`: somebody else has.
    async fn create_data(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        needs: &Needs<'_>,
    ) -> Result<Option<Arc<Known>>, StoreError> {
        let name = self.data_name(measurement, data.kind, needs.policy);
        let columns: Vec<(&str, FieldType)> =
            needs.columns.iter().map(|(name, ty)| (name.as_str(), *ty)).collect();
        let schema = match data.kind {
            Kind::Wide => data_schema(&columns)?,
            Kind::Narrow => narrow_schema()?,
        };
        // Masters limit how many tablets a table begins with, and before 1.18 do not make one
        // without a range.
        let registered = self.registered_ranges(measurement, needs.policy).await?;
        let owner = measurement.owner(needs.policy.id);
        self.refuse_lost(owner, &registered, &[]).await?;
        let mut first = missing_ranges(&[], &registered, needs);
        first.truncate(usize::from(self.buckets <= FIXED_BUCKETS_MAX));
        let hashed: &[&str] = match is_sharing(measurement.id) {
            true => &[MEASUREMENT_ID, SERIES_ID],
            false => &[SERIES_ID],
        };
        let spec = TableSpec::new(&name, schema)
            .hash(hashed, self.buckets)
            .range(&[TIME])
            .ranges(first.into_iter().map(partition_of))
            .replicas(self.replicas);
        match self.client.create_table(&spec).await {
            Ok(table) => Ok(Some(data.learn(table, Vec::new()))),
            Err(Error::TableExists { .. }) => Ok(None),
            Err(error) => Err(cluster(error)),
        }
    }

    /// What it means that a master refuses to change a table: somebody else has changed it since it
    /// was looked at, or it never will.
    async fn why_refused(&self, table: &Table, there: &[TimeRange], error: Error) -> Surprise {
        /// Status of changes that make no sense, such as ranges that overlap others.
        const INVALID_ARGUMENT: i32 = 4;
        if !matches!(error, Error::Master { status: INVALID_ARGUMENT, .. }) {
            return error.into();
        }
        let look_again = async {
            let now = self.client.open_table(table.name()).await?;
            let ranges = self.ranges_there(&now).await?;
            Ok::<_, Error>((now, ranges))
        };
        match look_again.await {
            Ok::<_, Error>((now, ranges)) => {
                let is_same = now.id() == table.id() && now.schema() == table.schema();
                match is_same && ranges == there {
                    true => Surprise::Failed(cluster(error)),
                    false => Surprise::Changed,
                }
            }
            Err(error) => error.into(),
        }
    }

    async fn register_ranges(
        &self,
        measurement: &Measurement,
        policy: Policy,
        ranges: &[TimeRange],
    ) -> Result<(), StoreError> {
        let entries: Vec<Entry> =
            ranges.iter().map(|range| range_entry(policy.id, *range)).collect();
        self.metrics.ranges_created.add(ranges.len() as u64);
        self.registry.upsert(measurement.id, &entries).await
    }

    /// Adds what is missing of columns and ranges.
    pub(crate) async fn grow(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        known: &Known,
        needs: &Needs<'_>,
    ) -> Result<(), Surprise> {
        // The schema may have grown by others' doing.
        let table = self.client.open_table(known.table.name()).await?;
        let mut alter = table.alter();
        let mut new_columns = 0;
        for (name, field_type) in needs.columns {
            if table.schema().find(name).is_none() {
                alter = alter.add_column(field_column(name, *field_type));
                new_columns += 1;
            }
        }
        let mut ranges = if table.id() == known.table.id() { known.ranges.clone() } else { vec![] };
        let mut missing = missing_ranges(&ranges, &[], needs);
        let mut new_ranges = 0;
        // Ranges that are there but not registered here count as they are.
        let there = self.ranges_there(&table).await?;
        if !missing.is_empty() {
            let found = lacking(&ranges, &there, needs);
            check_cut(&table, &there)?;
            let registered = self.registered_ranges(measurement, needs.policy).await?;
            missing = missing_ranges(&there, &registered, needs);
            if !missing.is_empty() {
                self.require_servers(table.replicas()).await?;
            }
            if measurement.has_one_table() {
                for TimeRange { min, max } in missing.iter().filter(|r| registered.contains(r)) {
                    let name = table.name();
                    tracing::warn!(
                        "the partition from {min} to {max} ns of table {name} of the Kudu cluster was \
                         dropped by hand, with its rows: it is made again for new ones"
                    );
                }
            }
            for range in &missing {
                alter = alter.add_range(partition_of(*range));
                new_ranges += 1;
            }
            missing.extend(found);
        }
        let table = match new_columns + new_ranges {
            0 => table,
            _ => match alter.apply().await {
                Ok(table) => table,
                Err(error) => return Err(self.why_refused(&table, &there, error).await),
            },
        };
        self.metrics.columns_created.add(new_columns);
        self.register_ranges(measurement, needs.policy, &missing).await?;
        ranges.extend(missing);
        ranges.sort_unstable_by_key(|range| range.min);
        data.learn(table, ranges);
        Ok(())
    }
}

/// Why a table could not be changed.
pub(crate) enum Surprise {
    /// Somebody else has changed it.
    Changed,
    Failed(StoreError),
}

impl From<StoreError> for Surprise {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for Surprise {
    fn from(error: Error) -> Self {
        match error {
            Error::AlreadyPresent(_) | Error::TableNotFound { .. } => Self::Changed,
            error => Self::Failed(cluster(error)),
        }
    }
}
