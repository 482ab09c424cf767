//! The disk as a trait.
//!
//! Durability contract, the same for every implementation and what the simulation holds engines to:
//! bytes written are durable only after [`File::sync`] of that file returned; a created, renamed or
//! removed name is durable only after [`Disk::sync_dir`] of its directory returned. Until then a
//! crash may keep all, none or any part of them. After a failed `sync` nothing may be assumed about
//! the bytes it covered: the caller must stop trusting the file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a failed disk operation says: which one, on what, and why.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}{}: {source}", path.display(), offset.map(|o| format!(" at offset {o}")).unwrap_or_default())]
pub struct DiskError {
    /// The operation, as a verb: `open`, `read`, `write`, `sync`, ...
    pub operation: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Offset of the bytes, where there is one.
    pub offset: Option<u64>,
    /// The operating system's reason.
    pub source: io::Error,
}

impl DiskError {
    /// Whether the name did not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the disk is full or a quota is used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }
}

/// The outcome of a disk operation.
pub type DiskResult<T> = Result<T, DiskError>;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the directory. Names that are not UTF-8 are left out of listings.
    pub name: String,
    /// Bytes, 0 for a directory.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Names and files.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Makes a new file for writing and reading; fails if the name exists.
    fn create(&self, path: &Path) -> DiskResult<Arc<dyn File>>;
    /// Opens an existing file for reading only.
    fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>>;
    /// Opens an existing file for writing and reading.
    fn open_write(&self, path: &Path) -> DiskResult<Arc<dyn File>>;
    /// Gives a file another name, replacing what had it. Atomic.
    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()>;
    /// Removes a file. Open handles stay readable.
    fn remove(&self, path: &Path) -> DiskResult<()>;
    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> DiskResult<Vec<Entry>>;
    /// Makes a directory and those above it; durable by itself. Existing ones are left as they are.
    fn create_dir_all(&self, dir: &Path) -> DiskResult<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> DiskResult<()>;
    /// Takes an exclusive lock on a file (made if missing), held until the value is dropped or the
    /// process ends. `None` if another process or handle holds it.
    fn lock(&self, path: &Path) -> DiskResult<Option<Box<dyn FileLock>>>;
    /// Bytes that can still be written on the file system of `path`.
    fn free_bytes(&self, path: &Path) -> DiskResult<u64>;
}

/// A lock that is held while the value lives.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// An open file. Reads and writes name their offset, so handles are shared without a lock.
#[expect(clippy::len_without_is_empty, reason = "the length is asked of the disk and may fail")]
pub trait File: Send + Sync + fmt::Debug {
    /// Where the file is, for messages.
    fn path(&self) -> &Path;
    /// Length in bytes.
    fn len(&self) -> DiskResult<u64>;
    /// Fills `buf` from `offset`; fails with `UnexpectedEof` if the file ends before.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()>;
    /// Writes all of `bytes` at `offset`, growing the file as needed.
    fn write_at(&self, bytes: &[u8], offset: u64) -> DiskResult<()>;
    /// Sets the length.
    fn set_len(&self, len: u64) -> DiskResult<()>;
    /// Reserves disk space up to `len` without changing the length visible to readers, where the
    /// file system can; otherwise does nothing. Later writes inside need no new blocks.
    fn reserve(&self, len: u64) -> DiskResult<()>;
    /// Starts writing back a range without waiting: a hint that spreads the cost of `sync`.
    fn start_writeback(&self, offset: u64, len: u64);
    /// Makes content and length durable (fdatasync).
    fn sync(&self) -> DiskResult<()>;
    /// Has the system start to read a range into its memory, without waiting: a hint. What is read of it later is there by
    /// then, or on its way together with what else was asked for.
    fn read_ahead(&self, _offset: u64, _len: u64) {}
    /// Has the system keep no content in memory that is on the disk: a hint, for long files that were written and
    /// are not read soon. Without it they fill all memory, and whoever wants some then waits for it.
    fn leave_memory(&self) {}
}
