//! The parts of an open store and the locks between them.
//!
//! Lock order: `gate`, then `publishing`, then `define`, then `structure`, then `order`, then lanes ascending. The log,
//! the index and the manifest lock for themselves and call nobody.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use model::PolicyId;
use parking_lot::{Mutex, RwLock};
use platform::{Disk, PageCache};
use series::SeriesIndex;
use store::StoreError;
use wal::{Lsn, Wal};

use crate::compaction::Kept;
use crate::error::wal_error;
use crate::manifest::{Edit, Manifest, ManifestState};
use crate::memtable::SHARDS;
use crate::metrics::Metrics;
use crate::options::{MemoryPlan, StoreOptions};
use crate::schema::{SchemaChange, SchemaRegistry};
use crate::view::{Partition, View};
use crate::work::WorkSignal;
use crate::write::Resolver;

/// Runs of the series index from which on looking for a series takes too long.
const INDEX_RUNS_MANY: usize = 40;
/// Tombstones from which on a delete, which copies the lists of the sources that have them, takes milliseconds.
const TOMBSTONES_MANY: usize = 10_000;
/// What a refused delete is told to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An open store.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) options: StoreOptions,
    pub(crate) memory: MemoryPlan,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) cache: Arc<PageCache>,
    pub(crate) wal: Wal,
    pub(crate) manifest: Manifest,
    pub(crate) index: SeriesIndex,
    pub(crate) schema: SchemaRegistry,
    pub(crate) resolver: Resolver,
    /// Writers hold it shared from the first look at a series until their rows are in memtables;
    /// whoever freezes memtables holds it alone, so that a freeze is a clean cut of the log.
    pub(crate) gate: RwLock<()>,
    /// Held while a flush moves definitions into the manifest: they must arrive in their order.
    pub(crate) publishing: Mutex<()>,
    /// Held while measurements, fields and series are made.
    pub(crate) define: Mutex<Definitions>,
    view: ArcSwap<View>,
    /// Held while the manifest and the view change, so that both always say the same.
    structure: Mutex<()>,
    /// Held while a batch gets its place in the log, until it has the first lane.
    pub(crate) order: Mutex<()>,
    /// One a shard, taken in order and hand over hand: batches reach every shard in log order.
    pub(crate) lanes: [Mutex<()>; SHARDS],
    pub(crate) metrics: Metrics,
    pub(crate) work: Arc<WorkSignal>,
    pub(crate) closed: AtomicBool,
    kept: OnceLock<KeptBy>,
    failure: Mutex<Option<String>>,
}

/// Says how long policies keep their rows.
struct KeptBy(Box<dyn Fn(PolicyId) -> Option<Kept> + Send + Sync>);

impl fmt::Debug for KeptBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptBy")
    }
}

/// Schema changes that the manifest does not have yet.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) schema: Vec<SchemaChange>,
}

/// What an engine is made of.
#[derive(Debug)]
pub(crate) struct EngineParts {
    pub(crate) options: StoreOptions,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) cache: Arc<PageCache>,
    pub(crate) wal: Wal,
    pub(crate) manifest: Manifest,
    pub(crate) index: SeriesIndex,
    pub(crate) schema: SchemaRegistry,
    pub(crate) definitions: Definitions,
    pub(crate) view: View,
}

impl Engine {
    pub(crate) fn new(parts: EngineParts) -> Self {
        let memory = MemoryPlan::new(parts.options.memory_bytes);
        Self {
            resolver: Resolver::new(memory.resolver / crate::write::RESOLVER_ENTRY_BYTES),
            memory,
            options: parts.options,
            disk: parts.disk,
            cache: parts.cache,
            wal: parts.wal,
            manifest: parts.manifest,
            index: parts.index,
            schema: parts.schema,
            gate: RwLock::new(()),
            publishing: Mutex::new(()),
            define: Mutex::new(parts.definitions),
            view: ArcSwap::from_pointee(parts.view),
            structure: Mutex::new(()),
            order: Mutex::new(()),
            lanes: std::array::from_fn(|_| Mutex::new(())),
            metrics: Metrics::default(),
            work: Arc::default(),
            closed: AtomicBool::new(false),
            kept: OnceLock::new(),
            failure: Mutex::new(None),
        }
    }

    /// The view as it is now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Changes manifest and view together: `change` gets the view and says which edits the manifest
    /// needs and what the view becomes. Nothing changes if the edits cannot be made durable.
    pub(crate) fn restructure<T>(
        &self,
        change: impl FnOnce(&View) -> Result<(Vec<Edit>, View, T), StoreError>,
    ) -> Result<T, StoreError> {
        let _structure = self.structure.lock();
        let (edits, view, result) = change(&self.view.load())?;
        if !edits.is_empty() {
            self.manifest.commit(&edits).inspect_err(|e| self.fail(e))?;
        }
        self.view.store(Arc::new(view));
        Ok(result)
    }

    /// Freezes the active memtables of the partitions that `chosen` accepts. Call with the gate held
    /// alone.
    pub(crate) fn freeze(&self, chosen: impl Fn(&Partition) -> bool) {
        self.freeze_at(self.wal.position(), chosen);
    }

    /// Freezes the chosen partitions' memtables, which have the log up to `end_lsn`: replay, where
    /// the log's own position is ahead.
    pub(crate) fn freeze_at(&self, end_lsn: Lsn, chosen: impl Fn(&Partition) -> bool) {
        let frozen = self.restructure(|view| {
            let mut next = view.clone();
            for partition in view.partitions() {
                if partition.active.is_some() && chosen(partition) {
                    next = next.with_partition(partition.key(), |p| p.freeze(end_lsn));
                }
            }
            Ok((Vec::new(), next, ()))
        });
        frozen.expect("BUG: a freeze touches no disk");
    }

    /// From now on `kept` says how long policies keep their rows.
    ///
    /// # Panics
    /// If something else does already.
    pub(crate) fn ask_how_long(
        &self,
        kept: impl Fn(PolicyId) -> Option<Kept> + Send + Sync + 'static,
    ) {
        assert!(
            self.kept.set(KeptBy(Box::new(kept))).is_ok(),
            "BUG: two say how long rows are kept"
        );
    }

    /// How long a policy keeps its rows, if somebody knows.
    pub(crate) fn kept(&self, policy: PolicyId) -> Option<Kept> {
        self.kept.get().and_then(|by| (by.0)(policy))
    }

    /// Whether nobody has written to a partition that has no memtables for a while.
    pub(crate) fn partition_idle(&self, partition: &Partition) -> bool {
        let last_write = partition.segments.iter().map(|s| s.last_write).max();
        last_write.is_some_and(|at| at.elapsed() >= self.options.idle_after)
    }

    /// Waits until the log is durable up to a position. If that fails, nobody knows whether what the
    /// log says will be the case after a restart.
    pub(crate) fn wait_durable(&self, lsn: Lsn) -> Result<(), StoreError> {
        self.wal.wait_durable(lsn).map_err(wal_error).inspect_err(|error| self.fail(error))
    }

    /// The path of a segment's file.
    pub(crate) fn segment_path(&self, id: u64) -> PathBuf {
        segment_path(&self.options, id)
    }

    /// Fails unless the store takes requests.
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Fails unless the store takes changes.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        self.check_open()?;
        match &*self.failure.lock() {
            Some(reason) => Err(StoreError::ReadOnly(reason.clone())),
            None => Ok(()),
        }
    }

    /// Makes the store read-only: after this failure nobody knows what the disk holds.
    pub(crate) fn fail(&self, error: &StoreError) {
        let mut failure = self.failure.lock();
        if failure.is_none() {
            tracing::error!(%error, "the store is read-only from now on");
            *failure = Some(error.to_string());
        }
    }

    /// Waits until there is room for more tombstones of single rows: they are held in memory until
    /// merges have carried them out.
    pub(crate) fn wait_for_tombstones(&self) -> Result<(), StoreError> {
        let limit = self.memory.tombstones;
        let used = || self.manifest.read(ManifestState::tombstone_bytes);
        if used() < limit {
            return Ok(());
        }
        self.work.notify();
        let enough = || used() < limit || self.check_writable().is_err();
        if self.work.wait_room(self.options.write_wait_max, enough) {
            return self.check_writable();
        }
        let reason = format!(
            "{} MiB of deletes wait to be carried out, the limit is {} MiB (a share of memory-limit)",
            used() >> 20,
            limit >> 20
        );
        Err(StoreError::Overloaded { reason, retry_after: RETRY_AFTER })
    }

    /// Whether tombstones take so much memory, or are so many, that merges should carry them out now.
    pub(crate) fn is_full_of_tombstones(&self) -> bool {
        let limit = self.memory.tombstones / 2;
        self.manifest.read(|state| {
            state.tombstones.len() >= TOMBSTONES_MANY || state.tombstone_bytes() >= limit
        })
    }

    /// Whether new series have so many runs of the index to be looked for in that writes slow down.
    pub(crate) fn has_many_index_runs(&self) -> bool {
        self.index.run_count() > INDEX_RUNS_MANY
    }

    /// Where the log has to start so that everything it alone holds stays: before the first row of
    /// every memtable, and not behind `definitions`, up to which definitions are elsewhere.
    pub(crate) fn log_start(view: &View, definitions: Lsn) -> Lsn {
        let tables = view.partitions().flat_map(|p| {
            let frozen = p.frozen.iter().map(|f| f.table.first_lsn);
            frozen.chain(p.active.iter().map(|t| t.first_lsn))
        });
        tables.fold(definitions, Lsn::min)
    }
}

/// The path of a segment's file in a store.
pub(crate) fn segment_path(options: &StoreOptions, id: u64) -> PathBuf {
    options.dir.join("segments").join(format!("{id:016x}.seg"))
}
