//! What all operations of a handle share: the client, the tables that are there once, and what is
//! remembered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kudu_client::{Client, Error, RangePartition, Schema, Table, TableSpec};
use model::{Budget, DatabaseId, Name};
use parking_lot::Mutex;
use store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;

use crate::cache::Cache;
use crate::error::{cluster, lacks_servers, too_few_servers};
use crate::ids::Block;
use crate::layout::{self, FORMAT, Names};
use crate::measurement::Measurement;
use crate::metrics::Metrics;
use crate::options::KuduOptions;
use crate::registry::{Entry, Registry, STORE, Which, space};

/// Measurements remembered.
const MEASUREMENTS_MAX: usize = 4096;
/// How long the size of a table is remembered.
const STATISTICS_TTL: Duration = Duration::from_secs(10);
/// Memory of a remembered series, bytes, about.
const SERIES_BYTES: usize = 96;
/// Copies of a tablet where nothing is said and there are servers enough.
const REPLICAS: usize = 3;
/// Hash buckets of a table that begins with a range: masters limit what a table begins with.
pub(crate) const FIXED_BUCKETS_MAX: u32 = 16;
/// The oldest version of Kudu that is known to do.
const OLDEST: (u32, u32) = (1, 15);
/// How long a dropped table that a scan still reads is left alone at most, microseconds.
const DROPPED_KEPT_US: u64 = 3_600_000_000;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) client: Client,
    pub(crate) names: Names,
    pub(crate) buckets: u32,
    /// Measurements of a database that get tables of their own.
    pub(crate) tables: u32,
    /// Fields of a measurement that get a column of their own.
    pub(crate) columns: u32,
    pub(crate) replicas: i32,
    heartbeat_age_max: Duration,
    pub(crate) registry: Registry,
    pub(crate) series: Table,
    pub(crate) tags: Table,
    pub(crate) measurement_ids: AsyncMutex<Block>,
    pub(crate) partition_ids: AsyncMutex<Block>,
    pub(crate) measurements: Cache<(DatabaseId, Name), Arc<Measurement>>,
    /// By database and hash of the raw key.
    pub(crate) known_series: Cache<(DatabaseId, u128), (Arc<Measurement>, i64)>,
    /// Databases that had many tables, and when.
    pub(crate) full_databases: Cache<DatabaseId, Instant>,
    pub(crate) pins: Pins,
    /// Memory of what is done beside writes and queries.
    pub(crate) work: Budget,
    statistics: Cache<String, (Instant, u64)>,
    pub(crate) metrics: Metrics,
}

impl Shared {
    /// Connects, and makes the tables that are missing.
    pub(crate) async fn open(handle: Handle, options: &KuduOptions) -> Result<Self, StoreError> {
        let client = Client::new(options.client_config()?);
        client.connect().await.map_err(cluster)?;
        require_features(&client).await?;
        let names = Names { prefix: options.prefix.clone() };
        let replicas = match options.replicas {
            Some(replicas) => replicas,
            None => default_replicas(&client, &names, options.heartbeat_age_max).await?,
        };
        refuse_orphans(&client, &names).await?;
        let make = |name, schema, columns: &'static [&'static str]| {
            let client = client.clone();
            let buckets = options.buckets.min(FIXED_BUCKETS_MAX);
            async move { open_or_create(&client, name, schema?, columns, buckets, replicas).await }
        };
        let (registry, series, tags) = tokio::try_join!(
            make(names.registry(), layout::registry_schema(), &["owner"]),
            make(names.series(), layout::series_schema(), &["measurement_id", "key_hash"]),
            make(names.tags(), layout::tags_schema(), &["measurement_id", "tag_hash"]),
        )?;
        let registry = Registry { table: registry };
        check_format(&registry).await?;
        let shared = Self {
            handle,
            client,
            names,
            buckets: options.buckets,
            tables: options.tables,
            columns: options.columns.min(layout::COLUMNS_MAX),
            replicas,
            heartbeat_age_max: options.heartbeat_age_max,
            registry,
            series,
            tags,
            measurement_ids: AsyncMutex::default(),
            partition_ids: AsyncMutex::default(),
            measurements: Cache::new(MEASUREMENTS_MAX),
            known_series: Cache::new(options.cache_bytes / SERIES_BYTES),
            full_databases: Cache::new(MEASUREMENTS_MAX),
            pins: Pins::default(),
            work: Budget::new("memory-limit", options.work_bytes),
            statistics: Cache::new(MEASUREMENTS_MAX),
            metrics: Metrics::default(),
        };
        shared.sweep().await?;
        Ok(shared)
    }

    /// The moment that a read takes place at: after everything acknowledged so far.
    pub(crate) async fn now(&self) -> Result<u64, StoreError> {
        self.client.current_timestamp().await.map_err(cluster)
    }

    /// Complains unless there are servers enough for a new partition of so many copies. A master would
    /// begin to make it, and until it could finish nobody could learn the table's partitions.
    pub(crate) async fn require_servers(&self, copies: i32) -> Result<(), StoreError> {
        let (alive, all) = live_servers(&self.client, self.heartbeat_age_max).await?;
        if usize::try_from(copies).is_ok_and(|copies| copies <= alive) {
            return Ok(());
        }
        Err(lacks_servers(&format!("{alive} of {all} are alive, {copies} are needed")))
    }

    /// A data table with its ranges; `None` if it has been dropped.
    pub(crate) async fn open_with_ranges(
        &self,
        name: &str,
    ) -> Result<Option<(Table, Vec<RangePartition>)>, StoreError> {
        let opened = async {
            let table = self.client.open_table(name).await?;
            let ranges = table.range_partitions().await?;
            Ok((table, ranges))
        };
        match opened.await {
            Ok(found) => Ok(Some(found)),
            Err(Error::TableNotFound { .. }) => Ok(None),
            Err(error) => Err(cluster(error)),
        }
    }

    /// Rows of a table, roughly.
    pub(crate) async fn statistics(&self, table: &Table) -> Result<u64, StoreError> {
        let id = table.id();
        if let Some((asked, rows)) = self.statistics.get(&id)
            && asked.elapsed() < STATISTICS_TTL
        {
            return Ok(rows);
        }
        let rows = match self.client.table_statistics(table.name()).await {
            Ok(statistics) => statistics.live_rows.unwrap_or(0),
            Err(Error::TableNotFound { .. }) => 0,
            Err(error) => return Err(cluster(error)),
        };
        let rows = u64::try_from(rows).unwrap_or(0);
        self.statistics.insert(id, (Instant::now(), rows));
        Ok(rows)
    }

    /// Drops tables whose names begin with `prefix` and satisfy `wanted`.
    pub(crate) async fn drop_tables(
        &self,
        prefix: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        for table in self.client.list_tables(prefix).await.map_err(cluster)? {
            if table.starts_with(prefix) && wanted(&table) {
                self.drop_table(&table).await?;
            }
        }
        Ok(())
    }

    /// Drops a table. One that a scan of this handle reads is hidden, and goes when the scan does.
    async fn drop_table(&self, name: &str) -> Result<(), StoreError> {
        let table = match self.client.open_table(name).await {
            Ok(table) => table,
            Err(Error::TableNotFound { .. }) => return Ok(()),
            Err(error) => return Err(cluster(error)),
        };
        if !self.pins.is_pinned(&table.id()) {
            return match self.client.delete_table(name).await {
                Ok(()) | Err(Error::TableNotFound { .. }) => Ok(()),
                Err(error) => Err(cluster(error)),
            };
        }
        let hidden = format!(
            "{}{}.{:016x}",
            self.names.dropped(),
            self.client.last_timestamp() >> 12,
            rand::random::<u64>()
        );
        match table.alter().rename(&hidden).apply().await {
            Ok(_) => {}
            Err(Error::TableNotFound { .. }) => return Ok(()),
            Err(error) => return Err(cluster(error)),
        }
        if !self.pins.drop_later(&table.id(), &hidden) {
            self.client.delete_table(&hidden).await.map_err(cluster)?;
        }
        Ok(())
    }

    /// Drops hidden tables that a daemon has left which died, and that no scan can still be reading.
    async fn sweep(&self) -> Result<(), StoreError> {
        let now_us = self.now().await? >> 12;
        let dropped = self.names.dropped();
        let is_old = |table: &str| {
            let rest = table.strip_prefix(&dropped).and_then(|rest| rest.split('.').next());
            let at = rest.and_then(|digits| digits.parse::<u64>().ok());
            at.is_some_and(|at| at.saturating_add(DROPPED_KEPT_US) < now_us)
        };
        self.drop_tables(&dropped, is_old).await
    }
}

/// Complains about a cluster that cannot do what this store needs, before anything is made there.
async fn require_features(client: &Client) -> Result<(), StoreError> {
    match client.require_ignore_operations(false).await {
        Ok(()) => {}
        Err(error @ Error::Unsupported { .. }) => {
            return Err(StoreError::Invalid(format!(
                "the Kudu cluster is too old: Nyala needs Kudu 1.15 or later ({error})"
            )));
        }
        Err(error) => return Err(cluster(error)),
    }
    for server in client.list_tablet_servers().await.map_err(cluster)? {
        let Some(version) = server.version else { continue };
        if release_of(&version).is_some_and(|release| release < OLDEST) {
            let server = server.addresses.join(" ");
            return Err(StoreError::Invalid(format!(
                "tablet server {server} of the Kudu cluster is too old ({version}): Nyala needs Kudu \
                 1.15 or later"
            )));
        }
    }
    Ok(())
}

/// Major and minor number of a server's version, `kudu 1.18.0 (rev ...)` or the like.
fn release_of(version: &str) -> Option<(u32, u32)> {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut numbers = version.split_whitespace().find(is_number)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// How many tablet servers are alive, and how many the master knows.
async fn live_servers(
    client: &Client,
    heartbeat_age_max: Duration,
) -> Result<(usize, usize), StoreError> {
    let servers = client.list_tablet_servers().await.map_err(cluster)?;
    let is_alive = |age_ms: i32| u128::from(age_ms.unsigned_abs()) <= heartbeat_age_max.as_millis();
    let alive = servers.iter().filter(|server| is_alive(server.heartbeat_age_ms)).count();
    Ok((alive, servers.len()))
}

/// Copies of a tablet where nothing is said: as many as the registry has, so that all daemons agree
/// whichever servers they find; for the first one it depends on the servers that are there.
async fn default_replicas(
    client: &Client,
    names: &Names,
    heartbeat_age_max: Duration,
) -> Result<i32, StoreError> {
    let (alive, all) = live_servers(client, heartbeat_age_max).await?;
    let replicas = match client.open_table(&names.registry()).await {
        Ok(table) => table.replicas(),
        Err(Error::TableNotFound { .. }) if alive == 0 => {
            return Err(StoreError::Io(format!(
                "the Kudu cluster has no live tablet server ({all} listed): start some (kudu-tserver \
                 --tserver_master_addrs=...) and try again"
            )));
        }
        Err(Error::TableNotFound { .. }) => {
            if alive >= REPLICAS {
                3
            } else {
                1
            }
        }
        Err(error) => return Err(cluster(error)),
    };
    match usize::try_from(replicas) {
        Ok(1) => tracing::warn!(
            "new tables of the Kudu cluster get ONE copy: rows are lost with the server that has them \
             ({alive} of {all} tablet servers are alive; kudu://.../?replicas=3 makes three, and says \
             that one is meant: replicas=1)"
        ),
        Ok(copies) if copies > alive => tracing::warn!(
            "{alive} of {all} tablet servers of the Kudu cluster are alive: until there are {copies}, no \
             table and no partition can be made"
        ),
        _ => {}
    }
    Ok(replicas)
}

/// Complains about rows whose names are lost: made anew, the registry would give ids a second time.
async fn refuse_orphans(client: &Client, names: &Names) -> Result<(), StoreError> {
    let prefix = names.own();
    let tables = client.list_tables(&prefix).await.map_err(cluster)?;
    let own: Vec<&String> = tables.iter().filter(|table| table.starts_with(&prefix)).collect();
    let there = |name: &String| own.iter().any(|table| **table == *name);
    let missing = [names.registry(), names.series(), names.tags()];
    let missing = missing.iter().find(|name| !there(name));
    let is_data = |table: &str| table.starts_with(&format!("{prefix}db"));
    let data = own.iter().find(|table| is_data(table));
    match (missing, data) {
        (Some(missing), Some(data)) => Err(StoreError::Io(format!(
            "table {missing} of the Kudu cluster is missing but {data} is there: restore it \
             (kudu table recall, since Kudu 1.17), or give another prefix (kudu://.../?prefix=NAME)"
        ))),
        _ => Ok(()),
    }
}

async fn open_or_create(
    client: &Client,
    name: String,
    schema: Schema,
    hashed: &[&str],
    buckets: u32,
    replicas: i32,
) -> Result<Table, StoreError> {
    let table = match client.open_table(&name).await {
        Ok(table) => table,
        Err(Error::TableNotFound { .. }) => {
            let spec = TableSpec::new(&name, schema.clone()).hash(hashed, buckets).range(&[]);
            match client.create_table(&spec.replicas(replicas)).await {
                Ok(table) => table,
                Err(Error::TableExists { .. }) => {
                    client.open_table(&name).await.map_err(cluster)?
                }
                // Whoever starts the daemon has to do something about it.
                Err(error) if error.lacks_servers() => {
                    return Err(StoreError::Io(too_few_servers(&error.to_string())));
                }
                Err(error) => return Err(cluster(error)),
            }
        }
        Err(error) => return Err(cluster(error)),
    };
    let shape = |schema: &Schema| -> Vec<(String, kudu_client::DataType)> {
        schema.columns().iter().map(|c| (c.name.clone(), c.data_type)).collect()
    };
    if shape(table.schema()) != shape(&schema) || table.schema().key().len() != schema.key().len() {
        return Err(StoreError::Io(format!(
            "table {name} of the Kudu cluster is none of Nyala's: give another prefix \
             (kudu://.../?prefix=NAME), or rename that table"
        )));
    }
    Ok(table)
}

async fn check_format(registry: &Registry) -> Result<(), StoreError> {
    let entry = Entry::new(space::FORMAT, *b"format").number(FORMAT);
    if registry.insert_one(STORE, entry).await? {
        return Ok(());
    }
    let found = registry.read(STORE, Which::Space(space::FORMAT), None).await?;
    let version = found.first().and_then(|entry| entry.number).unwrap_or(0);
    let advice = match version {
        FORMAT => return Ok(()),
        _ if version < FORMAT => {
            "an earlier Nyala wrote them: export with that one, and import under another prefix"
        }
        _ => "a later Nyala wrote them: use that one",
    };
    Err(StoreError::Invalid(format!(
        "the tables {}.* of the Kudu cluster have layout version {version}, this program knows \
         {FORMAT}: {advice} (kudu://.../?prefix=NAME)",
        registry.table.name().trim_end_matches(".registry")
    )))
}

/// Tables that scans of this handle read, by id.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    pinned: Mutex<HashMap<String, Pinned>>,
}

#[derive(Debug, Default)]
struct Pinned {
    scans: usize,
    /// Name under which it goes when the last scan is done.
    drop_name: Option<String>,
}

impl Pins {
    pub(crate) fn pin(&self, id: &str) {
        self.pinned.lock().entry(id.to_owned()).or_default().scans += 1;
    }

    /// Ends a scan; gives the name of a table to be dropped now.
    pub(crate) fn unpin(&self, id: &str) -> Option<String> {
        let mut all = self.pinned.lock();
        let pinned = all.get_mut(id)?;
        pinned.scans -= 1;
        if pinned.scans > 0 {
            return None;
        }
        all.remove(id)?.drop_name
    }

    fn is_pinned(&self, id: &str) -> bool {
        self.pinned.lock().contains_key(id)
    }

    /// Leaves the drop to the last scan; `false`: there is none any more.
    fn drop_later(&self, id: &str, name: &str) -> bool {
        let mut all = self.pinned.lock();
        let Some(pinned) = all.get_mut(id) else { return false };
        pinned.drop_name = Some(name.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        assert_eq!(release_of("kudu 1.18.0 (rev 8b8ff4d4)"), Some((1, 18)));
        assert_eq!(release_of("1.9.0-SNAPSHOT"), Some((1, 9)));
        assert_eq!(release_of("kudu 2.0"), Some((2, 0)));
        assert_eq!((release_of(""), release_of("kudu"), release_of("kudu 1")), (None, None, None));
        assert!(release_of("kudu 1.9.0") < Some(OLDEST));
    }
}
