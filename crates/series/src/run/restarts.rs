//! Blocks of entries that build on one another, with a fresh start every few entries.
//!
//! Layout: count u16, position of each restart u32 (from the end of this list), entries.

use crate::bytes::Reader;
use crate::error::Malformed;
use crate::run::format::{BLOCK_BYTES, BLOCK_ENTRIES, RESTART_ENTRIES};

/// Gathers the entries of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    restarts: Vec<u32>,
    pub(crate) entries: Vec<u8>,
    count: usize,
}

impl BlockBuilder {
    /// Announces an entry; `true` if it must be stored whole.
    pub(crate) fn begin_entry(&mut self) -> bool {
        let restart = self.count.is_multiple_of(RESTART_ENTRIES);
        if restart {
            let at = u32::try_from(self.entries.len()).expect("BUG: a block passed 4 GiB");
            self.restarts.push(at);
        }
        self.count += 1;
        restart
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= BLOCK_BYTES || self.count == BLOCK_ENTRIES
    }

    /// Replaces `out` by the block and starts a new one.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&(self.count as u16).to_le_bytes());
        self.restarts.drain(..).for_each(|at| out.extend_from_slice(&at.to_le_bytes()));
        out.append(&mut self.entries);
        self.count = 0;
    }
}

/// A block as read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries<'a> {
    pub(crate) count: usize,
    restarts: &'a [u8],
    entries: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let count = usize::from(reader.u16()?);
        let restarts = reader.take(count.div_ceil(RESTART_ENTRIES) * 4)?;
        let entries = reader.take(reader.remaining())?;
        Ok(Self { count, restarts, entries })
    }

    pub(crate) fn entries_len(&self) -> usize {
        self.entries.len()
    }

    /// Where restart number `nth` begins.
    pub(crate) fn restart(&self, nth: usize) -> Result<Reader<'a>, Malformed> {
        let at = self.restarts.get(nth * 4..nth * 4 + 4).ok_or(Malformed("no such restart"))?;
        let at = u32::from_le_bytes(at.try_into().expect("BUG: took four bytes"));
        Reader::at_offset(self.entries, at as usize)
    }
}
