//! The end of a file that is being written.

use std::sync::Arc;

use platform::{File, give_way};

use crate::SegmentError;
use crate::format::Extent;

/// Bytes are handed to the disk in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;
/// The system gets them in parts of this size, between which others may have the processor: a copy of 1 MiB takes it
/// a millisecond.
const PART_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(crate) struct Output {
    file: Arc<dyn File>,
    /// Bytes not yet handed to the disk.
    buffer: Vec<u8>,
    written: u64,
    /// A longer file is not kept in the system's memory.
    cached_bytes_max: u64,
}

impl Output {
    pub(crate) fn new(file: Arc<dyn File>, cached_bytes_max: u64) -> Self {
        let buffer = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        Self { file, buffer, written: 0, cached_bytes_max }
    }

    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// For adding bytes at the end only.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Where those bytes are in the file, and what they are.
    pub(crate) fn extent_from(&self, start: u64) -> Extent {
        let bytes = self.bytes_from(start);
        let len = u32::try_from(bytes.len()).expect("BUG: a part of 4 GiB");
        Extent { offset: start, len, crc32c: crc32c::crc32c(bytes) }
    }

    /// The bytes from `start`, a position since the last write, to the end.
    pub(crate) fn bytes_from(&self, start: u64) -> &[u8] {
        let from = start.checked_sub(self.written).expect("BUG: a part was written in two pieces");
        &self.buffer[from as usize..]
    }

    pub(crate) fn write_if_full(&mut self) -> Result<(), SegmentError> {
        if self.buffer.len() >= PIECE_BYTES { self.write() } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), SegmentError> {
        self.write()?;
        self.file.sync()?;
        if self.written > self.cached_bytes_max {
            self.file.leave_memory();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), SegmentError> {
        let start = self.written;
        for part in self.buffer.chunks(PART_BYTES) {
            give_way();
            self.file.write_at(part, self.written)?;
            self.written += part.len() as u64;
        }
        self.file.start_writeback(start, self.written - start);
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryFile;

    #[test]
    fn only_long_files_leave_memory() {
        for (bytes, leaves) in [(100, false), (101, true)] {
            let file = Arc::new(MemoryFile::default());
            let mut out = Output::new(Arc::clone(&file) as Arc<dyn File>, 100);
            out.buffer().resize(bytes, 7);
            out.finish().unwrap();
            assert_eq!(file.may_leave_memory(), leaves, "{bytes} bytes");
        }
    }
}
