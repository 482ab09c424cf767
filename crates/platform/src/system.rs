//! The operating system's disk.
//!
//! Invariants
//! - Every failure carries the operation, the path and, for bytes, the offset.
//! - A directory made by [`SystemDisk`] is durable when the call returns; other names are durable
//!   after `sync_dir`, bytes after `sync` (which on macOS asks the drive itself).
//! - Locks are advisory whole-file locks of the open file description: the kernel drops them when
//!   the process dies, however it dies.
//! - What is left of a large file that was removed goes with its last handle, on Linux little by little (see `space`).
//!
//! Not here: caching (see `page_cache`), faults (see `sim`).

use std::fs::{self, OpenOptions, TryLockError};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskError, DiskResult, Entry, File, FileLock};

/// Bytes that Linux is asked to read ahead with one call. It leaves out without a word what is more than the device's
/// own read-ahead, which is 128 KiB unless somebody has set it.
#[cfg(target_os = "linux")]
const READ_AHEAD_BYTES: u64 = 128 << 10;

/// The operating system's disk. Stateless: every value is the same disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

#[derive(Debug)]
struct SystemFile {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    file: space::FreedInSteps,
    #[cfg(not(target_os = "linux"))]
    file: fs::File,
}

/// The lock goes with the open file; the field is only ever dropped.
#[derive(Debug)]
struct SystemLock {
    _file: fs::File,
}

impl FileLock for SystemLock {}

fn at(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    move |source| DiskError { operation, path: path.to_owned(), offset: None, source }
}

fn open_with(
    operation: &'static str,
    path: &Path,
    options: &OpenOptions,
) -> DiskResult<Arc<dyn File>> {
    let file = options.open(path).map_err(at(operation, path))?;
    Ok(Arc::new(SystemFile { path: path.to_owned(), file: file.into() }))
}

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        open_with("create", path, OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn open(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        open_with("open", path, OpenOptions::new().read(true))
    }

    fn open_write(&self, path: &Path) -> DiskResult<Arc<dyn File>> {
        open_with("open", path, OpenOptions::new().read(true).write(true))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the disk others are to take")]
    fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        fs::rename(from, to).map_err(at("rename", from))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the disk others are to take")]
    fn remove(&self, path: &Path) -> DiskResult<()> {
        fs::remove_file(path).map_err(at("remove", path))
    }

    fn list(&self, dir: &Path) -> DiskResult<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in fs::read_dir(dir).map_err(at("list", dir))? {
            let found = found.map_err(at("list", dir))?;
            let Ok(name) = found.file_name().into_string() else { continue };
            let path = found.path();
            // Follows symbolic links, so that data may be placed elsewhere with them.
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => entries.push(Entry { name, len: 0, is_dir: true }),
                Ok(meta) => entries.push(Entry { name, len: meta.len(), is_dir: false }),
                // Removed since the directory was read: as if it had been removed before.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at("list", &path)(error)),
            }
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, dir: &Path) -> DiskResult<()> {
        let mut missing = Vec::new();
        for path in dir.ancestors() {
            if path.as_os_str().is_empty() {
                break;
            }
            match fs::metadata(path) {
                Ok(meta) if meta.is_dir() => break,
                Ok(_) => {
                    return Err(at("create directory", path)(io::ErrorKind::NotADirectory.into()));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(path),
                Err(error) => return Err(at("create directory", path)(error)),
            }
        }
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => {}
                // Another thread made it since; its sync may not have happened yet.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at("create directory", path)(error)),
            }
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            self.sync_dir(above.unwrap_or(Path::new(".")))?;
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> DiskResult<()> {
        let handle = OpenOptions::new().read(true).open(dir).map_err(at("sync directory", dir))?;
        handle.sync_all().map_err(at("sync directory", dir))
    }

    fn lock(&self, path: &Path) -> DiskResult<Option<Box<dyn FileLock>>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(at("lock", path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(SystemLock { _file: file }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(at("lock", path)(error)),
        }
    }

    fn free_bytes(&self, path: &Path) -> DiskResult<u64> {
        let stat = rustix::fs::statvfs(path).map_err(|e| at("free space", path)(e.into()))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl SystemFile {
    fn failed(&self, operation: &'static str, offset: Option<u64>, source: io::Error) -> DiskError {
        DiskError { operation, path: self.path.clone(), offset, source }
    }
}

impl File for SystemFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.file.metadata().map_err(|e| self.failed("length", None, e))?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| self.failed("read", Some(offset), e))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| self.failed("write", Some(offset), e))
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        self.file.set_len(len).map_err(|e| self.failed("set length", Some(len), e))
    }

    fn reserve(&self, len: u64) -> DiskResult<()> {
        #[cfg(target_os = "linux")]
        if len > 0 {
            use rustix::fs::FallocateFlags;
            use rustix::io::Errno;
            loop {
                match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, len) {
                    Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(self.failed("reserve", Some(len), errno.into())),
                }
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = len;
        Ok(())
    }

    #[allow(unsafe_code)]
    fn start_writeback(&self, offset: u64, len: u64) {
        // Not posix_fadvise's "will not need": that starts to write as well, but then drops what a fast
        // disk has already taken, a third of a segment here, which is soon read back.
        // A hint: the sync that follows reports what matters, so a refusal here changes nothing.
        #[cfg(target_os = "linux")]
        if let (Ok(offset), Ok(len @ 1..)) = (i64::try_from(offset), i64::try_from(len)) {
            let (file, flags) = (self.file.as_raw_fd(), libc::SYNC_FILE_RANGE_WRITE);
            // SAFETY: takes numbers and no pointers; the file is open as long as `self` is.
            let _ = unsafe { libc::sync_file_range(file, offset, len, flags) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }

    fn sync(&self) -> DiskResult<()> {
        self.file.sync_data().map_err(|e| self.failed("sync", None, e))
    }

    fn read_ahead(&self, offset: u64, len: u64) {
        #[cfg(target_os = "linux")]
        for at in (0..len).step_by(READ_AHEAD_BYTES as usize) {
            let part = std::num::NonZeroU64::new(READ_AHEAD_BYTES.min(len - at));
            // A hint: whoever reads the range meets what went wrong.
            let _ =
                rustix::fs::fadvise(&self.file, offset + at, part, rustix::fs::Advice::WillNeed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }

    fn leave_memory(&self) {
        // A hint: a refusal changes nothing.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

#[cfg(target_os = "linux")]
mod space;
#[cfg(test)]
mod tests;
