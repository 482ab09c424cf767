//! Blocks of terms: the values of tags, front-coded, each with its list of series.
//!
//! Entry: bytes shared with the value before (varint), own bytes (text), posting list. Where one
//! key's values end and the next key's begin is not in the block: the directory counts them.

use std::ops::Range;

use crate::bytes::{Reader, put_text, put_varint};
use crate::error::Malformed;
use crate::posting::PostingRef;
use crate::run::format::RESTART_ENTRIES;
use crate::run::restarts::{BlockBuilder, Entries};

#[derive(Debug, Default)]
pub(crate) struct TermBlockBuilder {
    pub(crate) block: BlockBuilder,
    last: Vec<u8>,
}

impl TermBlockBuilder {
    /// Adds a value with its encoded posting list.
    pub(crate) fn add(&mut self, value: &[u8], posting: &[u8]) {
        let shared = if self.block.begin_entry() { 0 } else { common_prefix(&self.last, value) };
        put_varint(&mut self.block.entries, shared as u64);
        put_text(&mut self.block.entries, &value[shared..]);
        self.block.entries.extend_from_slice(posting);
        self.last.clear();
        self.last.extend_from_slice(value);
    }
}

pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Walks the terms of one block.
#[derive(Debug)]
pub(crate) struct TermCursor<'a> {
    reader: Reader<'a>,
    /// Number of the next term in the block.
    next: usize,
    count: usize,
    value: &'a mut Vec<u8>,
}

impl<'a> TermCursor<'a> {
    /// A cursor at the last restart at or before term `index`.
    pub(crate) fn near(
        block: &Entries<'a>,
        index: usize,
        value: &'a mut Vec<u8>,
    ) -> Result<Self, Malformed> {
        let restart = index / RESTART_ENTRIES;
        let reader = block.restart(restart)?;
        value.clear();
        Ok(Self { reader, next: restart * RESTART_ENTRIES, count: block.count, value })
    }

    pub(crate) fn next_index(&self) -> usize {
        self.next
    }

    /// Moves to the next term.
    pub(crate) fn advance(&mut self) -> Result<Option<PostingRef<'a>>, Malformed> {
        if self.next == self.count {
            return Ok(None);
        }
        self.next += 1;
        read_term(&mut self.reader, self.value).map(Some)
    }
}

/// Reads one entry on top of the value before.
pub(crate) fn read_term<'a>(
    reader: &mut Reader<'a>,
    value: &mut Vec<u8>,
) -> Result<PostingRef<'a>, Malformed> {
    let shared = reader.varint_len()?;
    if shared > value.len() {
        return Err(Malformed("a value shares more than there is"));
    }
    let own = reader.varint_len()?;
    value.truncate(shared);
    value.extend_from_slice(reader.take(own)?);
    PostingRef::read(reader)
}

/// Looks for `wanted` among the terms `range` of a block, which are the values of one key.
pub(crate) fn find<'a>(
    block: &Entries<'a>,
    range: Range<usize>,
    wanted: &[u8],
) -> Result<Option<PostingRef<'a>>, Malformed> {
    // The last restart within the range whose value is not above the wanted one.
    let mut low = range.start.div_ceil(RESTART_ENTRIES);
    let mut high = range.end.div_ceil(RESTART_ENTRIES);
    let first = low;
    while low < high {
        let middle = usize::midpoint(low, high);
        if restart_value(block, middle)? <= wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let start = if low > first { low - 1 } else { range.start / RESTART_ENTRIES };
    let mut value = Vec::with_capacity(64);
    let mut cursor = block.restart(start)?;
    for index in start * RESTART_ENTRIES..range.end.min(block.count) {
        let posting = read_term(&mut cursor, &mut value)?;
        if index < range.start {
            continue;
        }
        match value.as_slice().cmp(wanted) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => return Ok(Some(posting)),
            std::cmp::Ordering::Greater => return Ok(None),
        }
    }
    Ok(None)
}

fn restart_value<'a>(block: &Entries<'a>, nth: usize) -> Result<&'a [u8], Malformed> {
    let mut reader = block.restart(nth)?;
    if reader.varint()? != 0 {
        return Err(Malformed("a restart shares bytes"));
    }
    let len = reader.varint_len()?;
    reader.take(len)
}
