//! A file in memory, for fuzzing and tests.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use platform::{DiskError, DiskResult, File};

/// Bytes that are read and written like a file.
#[derive(Debug, Default)]
pub(crate) struct MemoryFile {
    path: PathBuf,
    bytes: RwLock<Vec<u8>>,
    may_leave_memory: AtomicBool,
}

impl MemoryFile {
    pub(crate) fn new(path: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes: RwLock::new(bytes), ..Self::default() }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }

    #[cfg(test)]
    pub(crate) fn may_leave_memory(&self) -> bool {
        self.may_leave_memory.load(Ordering::Relaxed)
    }

    fn error(&self, operation: &'static str, offset: u64, kind: io::ErrorKind) -> DiskError {
        DiskError { operation, path: self.path.clone(), offset: Some(offset), source: kind.into() }
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        let bytes = self.bytes.read();
        let from = usize::try_from(offset).ok();
        let part = from.and_then(|at| bytes.get(at..)?.get(..buf.len()));
        let part = part.ok_or_else(|| self.error("read", offset, io::ErrorKind::UnexpectedEof))?;
        buf.copy_from_slice(part);
        Ok(())
    }

    fn write_at(&self, new: &[u8], offset: u64) -> DiskResult<()> {
        let end = usize::try_from(offset).ok().and_then(|at| at.checked_add(new.len()));
        let end = end.ok_or_else(|| self.error("write", offset, io::ErrorKind::FileTooLarge))?;
        let mut bytes = self.bytes.write();
        let len = bytes.len().max(end);
        bytes.resize(len, 0);
        bytes[end - new.len()..end].copy_from_slice(new);
        Ok(())
    }

    fn set_len(&self, len: u64) -> DiskResult<()> {
        let new = usize::try_from(len)
            .map_err(|_| self.error("set_len", len, io::ErrorKind::FileTooLarge))?;
        self.bytes.write().resize(new, 0);
        Ok(())
    }

    fn reserve(&self, _len: u64) -> DiskResult<()> {
        Ok(())
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn sync(&self) -> DiskResult<()> {
        Ok(())
    }

    fn leave_memory(&self) {
        self.may_leave_memory.store(true, Ordering::Relaxed);
    }
}
