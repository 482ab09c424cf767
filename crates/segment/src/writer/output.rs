//! The end of a file that is being written.

use std::sync::Arc;

use platform::File;

use crate::SegmentError;
use crate::format::Extent;

/// Bytes are handed to the disk in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;

/// A longer file does not stay in the system's memory: no memtable is flushed to so much, so that it was merged of what
/// is not the latest, and rests for a while. In batches of texts such files filled 24 GB in a minute and a half;
/// then nobody got anywhere for two seconds, until the system had found memory again.
const CACHED_BYTES_MAX: u64 = 128 << 20;

#[derive(Debug)]
pub(crate) struct Output {
    file: Arc<dyn File>,
    /// Bytes not yet handed to the disk.
    buffer: Vec<u8>,
    written: u64,
}

impl Output {
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        Self { file, buffer: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4), written: 0 }
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// For adding bytes at the end only.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The bytes from `start`, a position since the last write, to the end.
    pub(crate) fn extent_from(&self, start: u64) -> Extent {
        let from = start.checked_sub(self.written).expect("BUG: a part was written in two pieces");
        let bytes = &self.buffer[from as usize..];
        let len = u32::try_from(bytes.len()).expect("BUG: a part of 4 GiB");
        Extent { offset: start, len, crc32c: crc32c::crc32c(bytes) }
    }

    pub(crate) fn write_if_full(&mut self) -> Result<(), SegmentError> {
        if self.buffer.len() >= PIECE_BYTES { self.write() } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), SegmentError> {
        self.write()?;
        self.file.sync()?;
        if self.written > CACHED_BYTES_MAX {
            self.file.leave_memory();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), SegmentError> {
        self.file.write_at(&self.buffer, self.written)?;
        let len = self.buffer.len() as u64;
        self.file.start_writeback(self.written, len);
        self.written += len;
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use platform::DiskResult;

    use super::*;

    /// Takes everything and keeps nothing.
    #[derive(Debug, Default)]
    struct Sink {
        synced: AtomicBool,
        left_memory: AtomicBool,
    }

    impl File for Sink {
        fn path(&self) -> &Path {
            Path::new("sink")
        }

        fn len(&self) -> DiskResult<u64> {
            unreachable!("nobody asks")
        }

        fn read_at(&self, _buf: &mut [u8], _offset: u64) -> DiskResult<()> {
            unreachable!("nobody reads")
        }

        fn write_at(&self, _bytes: &[u8], _offset: u64) -> DiskResult<()> {
            Ok(())
        }

        fn set_len(&self, _len: u64) -> DiskResult<()> {
            unreachable!("nobody cuts")
        }

        fn reserve(&self, _len: u64) -> DiskResult<()> {
            unreachable!("nobody reserves")
        }

        fn start_writeback(&self, _offset: u64, _len: u64) {}

        fn sync(&self) -> DiskResult<()> {
            self.synced.store(true, Ordering::Relaxed);
            Ok(())
        }

        fn leave_memory(&self) {
            assert!(self.synced.load(Ordering::Relaxed), "before that nothing could leave");
            self.left_memory.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_long_files_leave_memory() {
        for (bytes, leaves) in [(CACHED_BYTES_MAX, false), (CACHED_BYTES_MAX + 1, true)] {
            let sink = Arc::new(Sink::default());
            let mut out = Output::new(Arc::clone(&sink) as Arc<dyn File>);
            while out.position() < bytes {
                let len = (bytes - out.position()).min(PIECE_BYTES as u64);
                out.buffer().extend(std::iter::repeat_n(7, len as usize));
                out.write_if_full().unwrap();
            }
            out.finish().unwrap();
            assert_eq!(sink.left_memory.load(Ordering::Relaxed), leaves, "{bytes} bytes");
        }
    }
}
