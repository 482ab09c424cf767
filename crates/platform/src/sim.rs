//! A disk in memory that loses power, fails and corrupts on demand.
//!
//! It holds every engine to the durability contract of [`Disk`](crate::Disk): bytes that were not
//! synced and names whose directory was not synced survive a crash whole, in part or not at all.
//!
//! Invariants
//! - The same seed, faults and operations give the same outcome, byte for byte.
//! - What was synced successfully, without a failed sync before it, survives every crash.
//! - After a crash, every operation on the old disk, its files and locks fails.
//!
//! Limits: everything is in memory, bytes twice; one lock around it all.
//! Not here: time, threads (operations of several threads are as deterministic as their order).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, DiskError, DiskResult, Entry, File, FileLock};
pub use faults::{Fault, FaultConfig};
use world::World;

mod faults;
mod node;
mod random;
mod world;

/// A simulated disk. Clones share it.
#[derive(Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    accesses: Accesses,
}

/// What was asked of files since somebody wanted to know; `None`: nobody does.
type Accesses = Arc<Mutex<Option<Vec<Access>>>>;

/// A part of a file that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The file.
    pub path: PathBuf,
    /// Its bytes.
    pub range: Range<u64>,
    /// To be read ahead; otherwise they were read.
    pub is_ahead: bool,
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("operations", &self.operations()).finish_non_exhaustive()
    }
}

impl SimDisk {
    /// An empty disk. Its root directories exist.
    #[must_use]
    pub fn new(seed: u64, faults: FaultConfig) -> Self {
        Self::of(World::new(seed, faults))
    }

    fn of(world: World) -> Self {
        Self { world: Arc::new(Mutex::new(world)), accesses: Accesses::default() }
    }

    /// The disk as it is found after power was lost now. This one fails from here on, but may be
    /// asked again for other outcomes of the same loss. The disk returned has no faults but keeps
    /// the capacity.
    #[must_use]
    pub fn crash(&self) -> Self {
        Self::of(self.world.lock().crash())
    }

    /// The disk as the next process finds it after this one was killed: nothing is lost, nothing
    /// becomes durable by it, and what a failed sync lost stays lost. This one fails from here on.
    #[must_use]
    pub fn kill(&self) -> Self {
        Self::of(self.world.lock().kill())
    }

    /// A disk of its own that holds now what this one does, as another process would find it.
    /// This one goes on.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::of(self.world.lock().fork())
    }

    /// Operations that changed or tried to change anything.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.world.lock().operations()
    }

    /// Makes every operation fail once [`Self::operations`] has come to `operations`.
    pub fn crash_after(&self, operations: u64) {
        self.world.lock().crash_after(operations);
    }

    /// Replaces the faults to come. Counting for [`Fault::Nth`] starts anew.
    pub fn set_faults(&self, faults: FaultConfig) {
        self.world.lock().set_faults(faults);
    }

    /// Flips one bit of what the disk holds of a file, seen by reads at once. Whether there is such
    /// a byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> bool {
        self.world.lock().flip_bit(path, offset, bit)
    }

    /// Flips a random bit of the durable bytes of a file whose path matches. Says which.
    pub fn flip_random_bit(&self, matching: impl Fn(&Path) -> bool) -> Option<(PathBuf, u64, u8)> {
        self.world.lock().flip_random_bit(&matching)
    }

    /// What every file holds, as reads would see it.
    #[must_use]
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.world.lock().contents()
    }

    /// What was read, or asked to be read ahead, since this was called last, in its order; from the first call on.
    pub fn accesses(&self) -> Vec<Access> {
        self.accesses.lock().replace(Vec::new()).unwrap_or_default()
    }

    fn file(&self, path: &Path, inode: u64, writable: bool) -> Arc<dyn File> {
        let (world, accesses) = (Arc::clone(&self.world), Arc::clone(&self.accesses));
        Arc::new(SimFile { world, accesses, path: path.to_owned(), inode, writable })
    }
}

#[derive(Debug)]
struct SimFile {
    world: Arc<Mutex<World>>,
    accesses: Accesses,
    path: PathBuf,
    inode: u64,
    writable: bool,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.world.lock().close(self.inode);
    }
}

#[derive(Debug)]
struct SimLock {
    world: Arc<Mutex<World>>,
    path: PathBuf,
}

impl FileLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.world.lock().unlock(&self.path);
    }
}

fn failed(
    operation: &'static str,
    path: &Path,
    offset: Option<u64>,
) -> impl FnOnce(std::io::Error) -> DiskError {
    move |source| DiskError { operation, path: path.to_owned(), offset, source }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        let inode = self.world.lock().create(path).map_err(failed("create", path, None))?;
        Ok(self.file(path, inode, true))
    }

    fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        let inode = self.world.lock().open(path).map_err(failed("open", path, None))?;
        Ok(self.file(path, inode, false))
    }

    fn open_write(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        let inode = self.world.lock().open(path).map_err(failed("open", path, None))?;
        Ok(self.file(path, inode, true))
    }

    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.world.lock().rename(from, to).map_err(failed("rename", from, None))
    }

    fn remove(&self, path: &Path) -> DiskResult<()> {
        self.world.lock().remove(path).map_err(failed("remove", path, None))
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<Entry>> {
        self.world.lock().list(dir).map_err(failed("list", dir, None))
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        self.world.lock().create_dir_all(dir).map_err(failed("create directory", dir, None))
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        self.world.lock().sync_dir(dir).map_err(failed("sync directory", dir, None))
    }

    fn lock(&self, path: &Path) -> DiskResult<Option<Box<dyn FileLock>>> {
        let taken = self.world.lock().lock(path).map_err(failed("lock", path, None))?;
        let lock = || SimLock { world: Arc::clone(&self.world), path: path.to_owned() };
        Ok(taken.then(|| Box::new(lock()) as Box<dyn FileLock>))
    }

    fn free_bytes(&self, path: &Path) -> DiskResult<u64> {
        self.world.lock().free_bytes().map_err(failed("free space", path, None))
    }
}

impl SimFile {
    fn note(&self, offset: u64, len: u64, is_ahead: bool) {
        if let Some(accesses) = &mut *self.accesses.lock() {
            let range = offset..offset.saturating_add(len);
            accesses.push(Access { path: self.path.clone(), range, is_ahead });
        }
    }

    fn changing<T>(
        &self,
        operation: &'static str,
        offset: Option<u64>,
        change: impl FnOnce(&mut World) -> std::io::Result<T>,
    ) -> DiskResult<T> {
        if !self.writable {
            let source = std::io::ErrorKind::PermissionDenied.into();
            return Err(failed(operation, &self.path, offset)(source));
        }
        change(&mut self.world.lock()).map_err(failed(operation, &self.path, offset))
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> DiskResult<u64> {
        self.world.lock().len(self.inode).map_err(failed("length", &self.path, None))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        self.note(offset, buf.len() as u64, false);
        let read = self.world.lock().read(self.inode, buf, offset);
        read.map_err(failed("read", &self.path, Some(offset)))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        self.changing("write", Some(offset), |world| world.write(self.inode, bytes, offset))
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.changing("set length", Some(len), |world| world.set_len(self.inode, len))
    }

    fn reserve(&self, len: u64) -> DiskResult<()> {
        self.changing("reserve", Some(len), |world| world.reserve(self.inode, len))
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn read_ahead(&self, offset: u64, len: u64) {
        self.note(offset, len, true);
    }

    fn sync(&self) -> DiskResult<()> {
        // A file opened for reading may be synced too.
        self.world.lock().sync(self.inode).map_err(failed("sync", &self.path, None))
    }
}

#[cfg(test)]
mod tests;
