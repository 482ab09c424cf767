//! The engine as a [`Store`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use model::{DatabaseId, Interrupt, MeasurementSchema, Name, PolicyId, TagExpr, TimeRange};
use parking_lot::Mutex;
use platform::{Disk, FileLock};
use roaring::RoaringTreemap;
use series::TagCodes;
use store::{
    CatalogDocument, DeleteRequest, MetadataCursor, MetadataRequest, Metric, Revision, Scan,
    ScanRequest, SeriesTable, Store, StoreError, SwapOutcome, TagColumn, WriteOutcome,
    WriteRequest,
};

use crate::compaction::Kept;
use crate::delete;
use crate::engine::Engine;
use crate::error::{disk_error, series_error, wal_error};
use crate::maintenance::{self, Busy, Duty};
use crate::manifest::Edit;
use crate::metadata;
use crate::metrics;
use crate::options::StoreOptions;
use crate::recover::{self, OpenReport};
use crate::scan::{EmptyScan, LocalScan, ScanPlan, SeriesList, TagCache, leave_out_absent};
use crate::schema::Measurement;
use crate::write;

/// The embedded store.
#[derive(Debug)]
pub struct LocalStore {
    engine: Arc<Engine>,
    busy: Arc<Busy>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    tags: TagCache,
    /// Keeps a second process away.
    lock: Mutex<Option<Box<dyn FileLock>>>,
    report: OpenReport,
}

impl LocalStore {
    /// Opens the store in a directory, or makes one there.
    ///
    /// # Errors
    /// [`StoreError`]: another process has it open, the disk fails, or something is damaged that
    /// nothing works without. Damage to single segments is in the report instead.
    pub fn open(disk: Arc<dyn Disk>, options: StoreOptions) -> Result<Self, StoreError> {
        disk.create_dir_all(&options.dir).map_err(disk_error)?;
        let lock = disk.lock(&options.dir.join("LOCK")).map_err(disk_error)?;
        let Some(lock) = lock else {
            return Err(StoreError::Invalid(format!(
                "the data directory {} is in use by another process",
                options.dir.display()
            )));
        };
        let threads = options.maintenance_threads;
        let (engine, report) = recover::open(disk, options)?;
        let store = Self {
            tags: TagCache::new(engine.memory.tag_cache),
            engine: Arc::new(engine),
            busy: Arc::default(),
            workers: Mutex::default(),
            lock: Mutex::new(Some(lock)),
            report,
        };
        for number in 0..threads {
            store.start_worker(format!("maintenance-{number}"), Duty::Everything)?;
        }
        if threads > 0 {
            store.start_worker("flush".to_owned(), Duty::Flushes)?;
        }
        Ok(store)
    }

    fn start_worker(&self, name: String, duty: Duty) -> Result<(), StoreError> {
        let (engine, busy) = (Arc::clone(&self.engine), Arc::clone(&self.busy));
        let worker = std::thread::Builder::new()
            .name(name)
            .spawn(move || maintenance::run(&engine, &busy, duty))
            .map_err(|e| StoreError::Io(format!("cannot start a thread: {e}")))?;
        self.workers.lock().push(worker);
        Ok(())
    }

    /// From now on small partitions that lie side by side become one when they rest, of policies that `kept` knows and as
    /// far as the time they keep their rows lets: none gets longer than an eighth of that.
    ///
    /// # Panics
    /// If it is called twice.
    pub fn join_partitions(&self, kept: impl Fn(PolicyId) -> Option<Kept> + Send + Sync + 'static) {
        self.engine.ask_how_long(kept);
    }

    /// What opening it found and did.
    #[must_use]
    pub fn open_report(&self) -> &OpenReport {
        &self.report
    }

    /// Does the background work that is due, here and now. For owners without maintenance threads.
    ///
    /// # Errors
    /// [`StoreError`] of the first job that fails.
    pub fn maintain(&self) -> Result<(), StoreError> {
        maintenance::finish(&self.engine, &self.busy, false)
    }

    /// Writes every row that is still in memory to segments.
    ///
    /// # Errors
    /// [`StoreError`] of the first flush that fails.
    pub fn flush(&self) -> Result<(), StoreError> {
        maintenance::flush_all(&self.engine, &self.busy)
    }

    /// Brings everything to its final form: all rows in segments for keeping.
    ///
    /// # Errors
    /// [`StoreError`] of the first job that fails.
    pub fn settle(&self) -> Result<(), StoreError> {
        maintenance::finish(&self.engine, &self.busy, true)
    }

    fn select(
        &self,
        measurement: &Measurement,
        expr: &TagExpr,
    ) -> Result<RoaringTreemap, StoreError> {
        let index = &self.engine.index;
        index.select(measurement.database, &measurement.name, expr).map_err(series_error)
    }

    fn series_table(
        &self,
        request: &ScanRequest,
        measurement: &Measurement,
        ids: &RoaringTreemap,
    ) -> Result<SeriesTable, StoreError> {
        let len = u32::try_from(ids.len())
            .map_err(|_| StoreError::Invalid("a scan of more than 2^32 series".to_owned()))?;
        if request.tags.is_empty() {
            return Ok(SeriesTable::new(len, Vec::new()));
        }
        if let Some((tags, orders)) = self.tags.get(measurement.no, ids, &request.tags) {
            return Ok(SeriesTable { len, tags, orders });
        }
        // Of some series that were asked for by their tags nothing is kept.
        if !matches!(request.series, TagExpr::True) {
            return Ok(SeriesTable::new(len, self.tag_columns(request, measurement, ids)?));
        }
        // Series that have rows in the time may be among those of a longer one: what is kept of these gets the other keys.
        let known = self.tags.known_beside(measurement.no, ids);
        let kept = known.as_ref().unwrap_or(ids);
        let tags = self.tag_columns(request, measurement, kept)?;
        self.tags.insert(measurement.no, kept, &tags);
        if known.is_none() {
            return Ok(SeriesTable::new(len, tags));
        }
        Ok(match self.tags.get(measurement.no, ids, &request.tags) {
            Some((tags, orders)) => SeriesTable { len, tags, orders },
            None => SeriesTable::new(len, self.tag_columns(request, measurement, ids)?),
        })
    }

    /// The tags of some series as the index has them.
    fn tag_columns(
        &self,
        request: &ScanRequest,
        measurement: &Measurement,
        ids: &RoaringTreemap,
    ) -> Result<Vec<TagColumn>, StoreError> {
        let (database, name) = (measurement.database, &measurement.name);
        let (keys, budget) = (&request.tags, &request.context.budget);
        let columns = self.engine.index.tag_columns(database, name, ids, keys, budget);
        let column = |(key, column): (&Name, TagCodes)| {
            let values = Arc::new(column.values);
            TagColumn { key: Arc::clone(key), codes: column.codes.into(), values }
        };
        Ok(keys.iter().zip(columns.map_err(series_error)?).map(column).collect())
    }
}

impl Store for LocalStore {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        write::write(&self.engine, request)
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        self.engine.check_open()?;
        self.engine.metrics.scans.add(1);
        let (database, name) = (request.policy.database, &request.measurement);
        let context = request.context.clone();
        let Some(measurement) = self.engine.schema.find(database, name) else {
            return Ok(Box::new(EmptyScan::new(&request.tags)));
        };
        // The view first: a series that is dropped afterwards has its rows in it, and none of them
        // is asked for.
        let view = self.engine.view();
        let ids = self.select(&measurement, &request.series)?;
        let total = match request.series {
            TagExpr::True => ids.len(),
            _ => self.engine.index.cardinality(database, Some(name)).map_err(series_error)?,
        };
        let partitions = view
            .policy(request.policy.id)
            .map_or_else(Vec::new, |p| p.overlapping(request.time).to_vec());
        let named = ids.len();
        let series = leave_out_absent(ids, total, &measurement, &partitions, request.time)?;
        let table = self.series_table(request, &measurement, &series)?;
        let list = SeriesList::of(&series);
        let plan = ScanPlan::new(request, measurement, partitions, list, (named, total));
        Ok(Box::new(LocalScan::new(plan, table, context)?))
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        self.engine.check_open()?;
        metadata::metadata(&self.engine, request)
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        interrupt.check()?;
        self.engine.check_open()?;
        let Some(found) = self.engine.schema.find(database, measurement) else { return Ok(None) };
        let tag_keys = || self.engine.index.tag_keys(database, measurement, None);
        Ok(Some(self.engine.schema.shown(&found, tag_keys).map_err(series_error)?))
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        self.engine.check_open()?;
        Ok(Some(self.engine.view().revision(policy, time)))
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        delete::delete(&self.engine, request)
    }

    fn expire(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<u64, StoreError> {
        delete::drop_partitions(&self.engine, database, Some(policy), before_ns)
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.engine.check_open()?;
        Ok(self.engine.manifest.read(|state| CatalogDocument {
            version: state.catalog_version,
            bytes: state.catalog_bytes.clone(),
        }))
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.engine.check_writable()?;
        self.engine.restructure(|view| {
            let current = self.catalog()?;
            if current.version != expected {
                return Ok((Vec::new(), view.clone(), SwapOutcome::Conflict(current)));
            }
            let version = expected + 1;
            let edit = Edit::Catalog { version, bytes: bytes.to_vec() };
            Ok((vec![edit], view.clone(), SwapOutcome::Swapped(version)))
        })
    }

    fn metrics(&self) -> Vec<Metric> {
        metrics::collect(&self.engine)
    }

    fn close(&self) -> Result<(), StoreError> {
        if self.engine.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.engine.work.notify_all();
        for worker in self.workers.lock().drain(..) {
            if worker.join().is_err() {
                return Err(StoreError::Io("a maintenance thread panicked".to_owned()));
            }
        }
        // Writers that were let in before are still at work; the gate is theirs until they are done.
        let _gate = self.engine.gate.write();
        self.engine.wal.close().map_err(wal_error)?;
        self.engine.manifest.close()?;
        self.lock.lock().take();
        Ok(())
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "closing the store failed");
        }
    }
}
