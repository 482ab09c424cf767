//! The series index of one store: a dictionary from series keys to ids, and back, and an inverted
//! index from tags to ids, over all databases.
//!
//! New series go to the active part in memory. A part that has grown is sealed; a flush writes the
//! sealed parts as one run, merges replace runs by larger ones. A question is asked of every part.
//!
//! Invariants
//! - Readers work on an immutable view (sealed parts, runs, removed ids); the lock is held to take
//!   the view and to look at the active part, which is small, and never during IO.
//! - An id is given once. All series with an id below the manifest's `next_id` are in the runs, or
//!   removed for good.
//! - A key has at most one live id.
//!
//! Not here: logging (the caller logs what `create` and `remove` did, and replays it), scheduling
//! (the caller calls `flush` and `merge_step` when they are wanted).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashSet;
use model::{DatabaseId, SeriesId, SeriesKey};
use parking_lot::{Mutex, RwLock};
use platform::{Disk, PageCache};
use roaring::RoaringTreemap;

use crate::error::{SeriesError, SeriesResult};
use crate::hash::KeyHash;
use crate::manifest::{Manifest, is_left_over, path_in, run_name};
use crate::mem::Mem;
use crate::run::{Run, RunOpen};

mod columns;
mod create;
mod flush;
mod keys;
mod merge;
mod names;
mod totals;
mod values;

pub use columns::TagCodes;
pub use totals::Totals;

/// How a series index is kept.
#[derive(Clone, Debug)]
pub struct SeriesOptions {
    /// Bytes in memory beyond which a flush is wanted. Up to about as much again is in use while
    /// one is under way.
    pub memory_bytes: usize,
    /// Seed of the key hashes of a new index; an existing one has its own. Must be hard to guess.
    pub hash_seed: u64,
    /// Series and distinct tag values that a merged run may hold together: bounds the memory and
    /// the time of a merge.
    pub run_entries_max: u64,
    /// Keeps what is read of the runs; may be shared with others.
    pub cache: Arc<PageCache>,
}

impl SeriesOptions {
    /// The usual bounds, with a seed for a new index.
    #[must_use]
    pub fn new(hash_seed: u64, cache: Arc<PageCache>) -> Self {
        Self { memory_bytes: 64 << 20, hash_seed, run_entries_max: 16 << 20, cache }
    }
}

/// The series dictionary and inverted index of one store.
#[derive(Debug)]
pub struct SeriesIndex {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: SeriesOptions,
    seed: u64,
    state: RwLock<State>,
    /// One flush at a time.
    flushing: Mutex<()>,
    /// One merge at a time; numbers of runs found damaged, which are left alone.
    merging: Mutex<HashSet<u64>>,
    manifest: Mutex<InForce>,
    /// The manifest's `next_id`.
    flushed_below: AtomicU64,
}

/// The manifest that is in force.
#[derive(Debug)]
struct InForce {
    manifest: Manifest,
    /// Publishing another one failed half-way: a crash may leave either, until one is published.
    uncertain: bool,
}

#[derive(Debug)]
struct State {
    active: Mem,
    view: Arc<View>,
    next_id: u64,
}

/// All parts but the active one.
#[derive(Clone, Debug, Default)]
struct View {
    /// Oldest first.
    runs: Vec<Arc<Run>>,
    /// Oldest first.
    sealed: Vec<Arc<Mem>>,
    /// Ids that some part has but that are dead.
    removed: Arc<RoaringTreemap>,
    counted: totals::Counted,
}

impl SeriesIndex {
    /// Opens the index in a directory, or makes one. Series that were created since the last flush
    /// are not there until the caller has replayed them with [`SeriesIndex::restore`].
    ///
    /// # Errors
    /// [`SeriesError`] if the disk fails or a file is damaged.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, options: SeriesOptions) -> SeriesResult<Self> {
        disk.create_dir_all(dir)?;
        let manifest = match Manifest::load(&*disk, dir)? {
            Some(manifest) => {
                // A process that was killed may have left a new name that is not durable yet: the
                // manifest before must be gone for good when the files go that only it lists.
                disk.sync_dir(dir)?;
                manifest
            }
            None => Self::initialise(&*disk, dir, &options)?,
        };
        for entry in disk.list(dir)? {
            if is_left_over(&entry.name, &manifest) {
                disk.remove(&dir.join(&entry.name))?;
            }
        }
        let mut runs = Vec::with_capacity(manifest.runs.len());
        for listed in &manifest.runs {
            let path = dir.join(run_name(listed.number));
            let how = RunOpen { number: listed.number, cache: &options.cache, verify: true };
            let run = Run::open(&*disk, &path, how)?;
            if run.file_bytes() != listed.file_bytes || run.seed() != manifest.seed {
                let detail = "the run is not the one that the manifest lists".to_owned();
                return Err(SeriesError::Corrupt { path, offset: 0, detail });
            }
            runs.push(Arc::new(run));
        }
        Ok(Self::over(disk, dir, options, manifest, runs))
    }

    fn over(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: SeriesOptions,
        manifest: Manifest,
        runs: Vec<Arc<Run>>,
    ) -> Self {
        let removed = Arc::new(manifest.removed.clone());
        let view = Arc::new(View { runs, removed, ..View::default() });
        let state = State { active: Mem::default(), view, next_id: manifest.next_id };
        Self {
            disk,
            dir: dir.to_owned(),
            options,
            seed: manifest.seed,
            state: RwLock::new(state),
            flushing: Mutex::new(()),
            merging: Mutex::new(HashSet::new()),
            flushed_below: AtomicU64::new(manifest.next_id),
            manifest: Mutex::new(InForce { manifest, uncertain: false }),
        }
    }

    /// An index of one run, for fuzzing: it can be asked, not changed.
    pub(crate) fn over_run(run: Run) -> Self {
        let options = SeriesOptions::new(0, Arc::new(PageCache::new(0)));
        let disk = Arc::new(platform::SystemDisk);
        Self::over(disk, Path::new(""), options, Manifest::default(), vec![Arc::new(run)])
    }

    fn flushed_below(&self) -> u64 {
        self.flushed_below.load(Ordering::Acquire)
    }

    fn initialise(disk: &dyn Disk, dir: &Path, options: &SeriesOptions) -> SeriesResult<Manifest> {
        // Runs are only ever written where a manifest is, so one of them must have been lost.
        if disk.list(dir)?.iter().any(|entry| entry.name.ends_with(".run")) {
            let detail = "the manifest is missing though there are runs".to_owned();
            return Err(SeriesError::Corrupt { path: path_in(dir), offset: 0, detail });
        }
        let manifest =
            Manifest { seed: options.hash_seed, next_id: 1, next_run: 1, ..Manifest::default() };
        manifest.write(disk, dir)?;
        Manifest::publish(disk, dir)?;
        Ok(manifest)
    }

    /// The id of a live series.
    ///
    /// # Errors
    /// [`SeriesError`] if a run cannot be read.
    pub fn lookup(&self, database: DatabaseId, key: &SeriesKey) -> SeriesResult<Option<SeriesId>> {
        let hash = KeyHash::of(self.seed, database, key);
        Ok(self.find(hash)?.0.map(SeriesId))
    }

    /// The key of a live series, with its database.
    ///
    /// # Errors
    /// [`SeriesError`] if a run cannot be read.
    pub fn key(&self, id: SeriesId) -> SeriesResult<Option<(DatabaseId, SeriesKey)>> {
        let view = {
            let state = self.state.read();
            if state.view.removed.contains(id.0) {
                return Ok(None);
            }
            if let Some(found) = state.active.key(id.0) {
                return Ok(Some(found));
            }
            Arc::clone(&state.view)
        };
        if let Some(found) = view.sealed.iter().find_map(|mem| mem.key(id.0)) {
            return Ok(Some(found));
        }
        match view.runs.iter().find(|run| run.ids().contains(id.0)) {
            Some(run) => run.key(id.0),
            None => Ok(None),
        }
    }

    /// The id that the next new series gets; all in use are lower.
    #[must_use]
    pub fn next_id(&self) -> SeriesId {
        SeriesId(self.state.read().next_id)
    }

    /// Heap bytes of the series that are not flushed yet.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let state = self.state.read();
        state.active.bytes() + state.view.sealed.iter().map(|mem| mem.bytes()).sum::<usize>()
    }

    /// Heap bytes that the runs hold while they are open: filters and block lists.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let view = Arc::clone(&self.state.read().view);
        view.runs.iter().map(|run| run.resident_bytes()).sum()
    }

    /// Bytes of the runs on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let view = Arc::clone(&self.state.read().view);
        view.runs.iter().map(|run| run.file_bytes()).sum()
    }

    /// Number of runs.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.state.read().view.runs.len()
    }

    /// The live id of a hash, and the view it was looked for in (which holds for the active part
    /// only as long as the lock would have been held).
    fn find(&self, hash: KeyHash) -> SeriesResult<(Option<u64>, Arc<View>)> {
        let view = {
            let state = self.state.read();
            if let Some(id) = state.find_active(hash) {
                return Ok((Some(id), Arc::clone(&state.view)));
            }
            Arc::clone(&state.view)
        };
        Ok((view.find(hash)?, view))
    }
}

impl State {
    fn find_active(&self, hash: KeyHash) -> Option<u64> {
        self.active.find(hash).filter(|id| self.view.is_live(*id))
    }

    /// Puts another view in place.
    fn set_view(&mut self, edit: impl FnOnce(&mut View)) {
        let mut view = View::clone(&self.view);
        edit(&mut view);
        self.view = Arc::new(view);
    }

    fn seal(&mut self) {
        if !self.active.is_empty() {
            let sealed = Arc::new(std::mem::take(&mut self.active));
            self.set_view(|view| view.sealed.push(sealed));
        }
    }
}

impl View {
    fn is_live(&self, id: u64) -> bool {
        self.removed.is_empty() || !self.removed.contains(id)
    }

    fn find(&self, hash: KeyHash) -> SeriesResult<Option<u64>> {
        for mem in self.sealed.iter().rev() {
            if let Some(id) = mem.find(hash).filter(|id| self.is_live(*id)) {
                return Ok(Some(id));
            }
        }
        for run in self.runs.iter().rev() {
            if run.may_contain(hash)
                && let Some(id) = run.find(hash)?.filter(|id| self.is_live(*id))
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
