//! Looks at the files of a store that nobody has open, and checks them, without changing anything.
//!
//! Invariants
//! - The store's lock is held while an [`Inspector`] lives: no server opens the store meanwhile.
//! - Nothing is written, cut, removed or made but the lock, which is there already.
//!
//! Not here: repair; what the catalog's document means.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{DatabaseId, FieldType, Name, PolicyId, TimeRange};
use platform::{Disk, FileLock, PageCache};
use segment::{SegmentReader, VerifyReport};
use series::IndexInfo;
use store::{CatalogDocument, StoreError};
use wal::{Corruption, LogFile, Lsn, RecoveryReport};

use crate::error::{disk_error, segment_error, series_error, wal_error};
use crate::manifest::{Edit, ManifestState, SegmentMeta, decode_edits};
use crate::schema::SchemaChange;
use crate::write::Record;

/// A store that is looked at.
#[derive(Debug)]
pub struct Inspector {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    _lock: Box<dyn FileLock>,
}

/// A segment, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whose rows it holds.
    pub database: DatabaseId,
    /// Of which policy.
    pub policy: PolicyId,
    /// The partition whose rows it holds.
    pub partition: TimeRange,
    /// First and last time of its rows.
    pub time: TimeRange,
    /// Rows in it, hidden ones included.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// Whether it was written for keeping: large pages, tightest encodings.
    pub cold: bool,
    /// Deletes that hide some of its rows.
    pub tombstones: usize,
}

/// A measurement, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementFields {
    /// The database.
    pub database: DatabaseId,
    /// Its name.
    pub name: Name,
    /// Fields in the order in which they came.
    pub fields: Vec<(Name, FieldType)>,
}

/// What a log holds: its files and their state.
#[derive(Clone, Debug, Default)]
pub struct LogInfo {
    /// In order.
    pub files: Vec<LogFile>,
    /// Whole records.
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// Bytes at the end that a crash left unfinished; nothing acknowledged, no damage.
    pub torn_bytes: u64,
    /// Whether it was closed properly.
    pub clean: bool,
    /// Records by what they say: kind and number.
    pub kinds: Vec<(&'static str, u64)>,
    /// What is damaged.
    pub damage: Vec<Damage>,
}

/// What the manifest says.
#[derive(Clone, Debug, Default)]
pub struct ManifestInfo {
    /// The manifest's own log.
    pub log: LogInfo,
    /// Segments by id.
    pub segments: Vec<SegmentFile>,
    /// Deletes that hide rows of segments.
    pub tombstones: usize,
    /// Measurements and their fields.
    pub measurements: Vec<MeasurementFields>,
    /// Position from which on the write-ahead log is needed.
    pub log_start: u64,
    /// The catalog's document.
    pub catalog: Option<CatalogDocument>,
}

/// Bytes that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What does not fit.
    pub detail: String,
}

impl Damage {
    fn new(path: &Path, offset: u64, detail: &dyn fmt::Display) -> Self {
        Self { path: path.to_owned(), offset, detail: detail.to_string() }
    }

    /// A failure, as damage of `path` if it does not say of which file.
    fn from_error(path: &Path, error: StoreError) -> Self {
        match error {
            StoreError::Corruption { path, offset, detail } => Self { path, offset, detail },
            error => Self::new(path, 0, &error),
        }
    }
}

impl From<&Corruption> for Damage {
    fn from(found: &Corruption) -> Self {
        Self::new(&found.path, found.offset, &found.detail)
    }
}

impl Inspector {
    /// Takes the lock of the store in a directory.
    ///
    /// # Errors
    /// There is no store, or a process has it open.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, StoreError> {
        let shown = dir.display();
        let entries = disk.list(dir).map_err(disk_error)?;
        if !entries.iter().any(|entry| entry.name == "LOCK") {
            return Err(StoreError::Invalid(format!("{shown} is not a data directory")));
        }
        let Some(lock) = disk.lock(&dir.join("LOCK")).map_err(disk_error)? else {
            return Err(StoreError::Invalid(format!(
                "the data directory {shown} is in use by another process; stop it first"
            )));
        };
        Ok(Self { disk, dir: dir.to_owned(), _lock: lock })
    }

    /// Reads the manifest. What is said behind damage is left out.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn manifest(&self) -> Result<ManifestInfo, StoreError> {
        let dir = self.dir.join("manifest");
        let mut state = ManifestState::default();
        let mut misfit = None;
        let mut malformed = Vec::new();
        let mut edits_seen = 0;
        let (report, files) = self.look(&dir, &mut |lsn, payload| {
            let edits = match decode_edits(payload) {
                Ok(edits) => edits,
                Err(error) => {
                    malformed.push((lsn, error.to_string()));
                    return;
                }
            };
            for edit in &edits {
                edits_seen += 1;
                if *edit == Edit::Snapshot {
                    misfit = None;
                }
                if misfit.is_none() {
                    misfit = state.apply(edit).err().map(|error| (lsn, error.to_string()));
                }
            }
        })?;
        malformed.extend(misfit);
        let log = log_info(&report, files, vec![("edits", edits_seen)], &malformed);
        let segments = state.segments.values().map(|meta| self.segment_file(meta)).collect();
        let catalog = (state.catalog_version > 0).then(|| CatalogDocument {
            version: state.catalog_version,
            bytes: state.catalog_bytes.clone(),
        });
        Ok(ManifestInfo {
            log,
            segments,
            tombstones: state.tombstones.len(),
            measurements: measurements(state.schema.dump().1),
            log_start: state.log_start.map_or(0, |lsn| lsn.0),
            catalog,
        })
    }

    /// Reads the write-ahead log.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn log(&self) -> Result<LogInfo, StoreError> {
        let dir = self.dir.join("wal");
        let names = ["rows", "series", "schema", "deletes"];
        let mut counts = [0; 4];
        let mut malformed = Vec::new();
        let (report, files) = self.look(&dir, &mut |lsn, payload| {
            let kind = match Record::decode(payload) {
                Ok(Record::Rows(_)) => 0,
                Ok(Record::Series(..)) => 1,
                Ok(Record::Schema(_)) => 2,
                Ok(_) => 3,
                Err(error) => return malformed.push((lsn, error.to_string())),
            };
            counts[kind] += 1;
        })?;
        Ok(log_info(&report, files, names.into_iter().zip(counts).collect(), &malformed))
    }

    /// Reads the series index; with `verify`, all of it.
    ///
    /// # Errors
    /// Its manifest cannot be read.
    pub fn series(&self, verify: bool) -> Result<IndexInfo, StoreError> {
        series::inspect(&*self.disk, &self.dir.join("series"), verify).map_err(series_error)
    }

    /// Reads and checks all of a segment.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn segment(&self, path: &Path) -> Result<VerifyReport, StoreError> {
        let cache = Arc::new(PageCache::new(0));
        let reader = SegmentReader::open(&*self.disk, path, cache).map_err(segment_error)?;
        Ok(reader.verify())
    }

    /// Checks every byte of the store. Each damage is told to `found`; the number of bytes that were
    /// looked at is returned.
    ///
    /// # Errors
    /// The disk fails.
    pub fn verify(&self, found: &mut dyn FnMut(Damage)) -> Result<u64, StoreError> {
        let mut bytes = 0;
        let mut log = |dir: &str, read: Result<LogInfo, StoreError>| match read {
            Ok(info) => {
                bytes += info.files.iter().map(|file| file.bytes).sum::<u64>();
                info.damage.into_iter().for_each(&mut *found);
            }
            Err(error) => found(Damage::from_error(&self.dir.join(dir), error)),
        };
        let manifest = self.manifest();
        let segments = manifest.as_ref().map(|info| info.segments.clone()).unwrap_or_default();
        log("manifest", manifest.map(|info| info.log));
        log("wal", self.log());
        match self.series(true) {
            Ok(info) => {
                bytes += info.runs.iter().map(|run| run.bytes).sum::<u64>();
                for error in info.errors {
                    found(Damage::from_error(&self.dir.join("series"), series_error(error)));
                }
            }
            Err(error) => found(Damage::from_error(&self.dir.join("series"), error)),
        }
        for file in &segments {
            bytes += file.bytes;
            match self.segment(&file.path) {
                Ok(report) => {
                    for error in report.errors {
                        found(Damage::from_error(&file.path, segment_error(error)));
                    }
                    if report.rows != file.rows {
                        let detail =
                            format!("{} rows, the manifest says {}", report.rows, file.rows);
                        found(Damage::new(&file.path, 0, &detail));
                    }
                }
                Err(error) => found(Damage::from_error(&file.path, error)),
            }
        }
        Ok(bytes)
    }

    fn look(
        &self,
        dir: &Path,
        each: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(RecoveryReport, Vec<LogFile>), StoreError> {
        wal::look(&*self.disk, dir, &mut |lsn, payload| each(lsn.0, payload)).map_err(wal_error)
    }

    fn segment_file(&self, meta: &SegmentMeta) -> SegmentFile {
        SegmentFile {
            path: self.dir.join("segments").join(format!("{:016x}.seg", meta.id)),
            database: meta.database,
            policy: meta.policy,
            partition: meta.partition,
            time: meta.time,
            rows: meta.rows,
            bytes: meta.bytes,
            cold: meta.cold,
            tombstones: meta.tombstones.len(),
        }
    }
}

fn log_info(
    report: &RecoveryReport,
    files: Vec<LogFile>,
    kinds: Vec<(&'static str, u64)>,
    malformed: &[(u64, String)],
) -> LogInfo {
    let mut damage: Vec<Damage> = report.corruptions.iter().map(Damage::from).collect();
    for (lsn, detail) in malformed {
        let place = files.iter().find_map(|file| Some((&file.path, file.offset_of(Lsn(*lsn))?)));
        if let Some((path, offset)) = place {
            let detail = format!("the record that ends here: {detail}");
            damage.push(Damage { path: path.clone(), offset, detail });
        }
    }
    LogInfo {
        files,
        records: report.records,
        record_bytes: report.bytes,
        torn_bytes: report.torn_bytes,
        clean: report.clean,
        kinds,
        damage,
    }
}

fn measurements(changes: Vec<SchemaChange>) -> Vec<MeasurementFields> {
    let mut all: Vec<MeasurementFields> = Vec::new();
    for change in changes {
        match change {
            SchemaChange::Measurement { database, name, .. } => {
                all.push(MeasurementFields { database, name, fields: Vec::new() });
            }
            SchemaChange::Field { name, field_type, .. } => {
                // Fields follow their measurement.
                if let Some(measurement) = all.last_mut() {
                    measurement.fields.push((name, field_type));
                }
            }
            SchemaChange::Drop(_) => {}
        }
    }
    all
}
