//! Blocks of series: for each its id and its tags as a tuple of term numbers.
//!
//! Term numbers count through the whole run, in (database, measurement, key, value) order, so the
//! series of a run ascend as tuples. Entry: terms shared with the tuple before and own terms in
//! one byte (four bits each; 255: two varints follow), the id as zigzag delta to the id before,
//! the first own term as delta to the term it replaces (or, where there was none, to the term
//! before it), the others as delta to the term before, minus one. At a restart the id before is
//! the run's base id.

use crate::bytes::{Reader, put_varint, unzigzag, zigzag};
use crate::error::Malformed;
use crate::run::format::RESTART_ENTRIES;
use crate::run::restarts::{BlockBuilder, Entries};

const ESCAPE: u8 = 0xff;

#[derive(Debug, Default)]
pub(crate) struct TupleBlockBuilder {
    pub(crate) block: BlockBuilder,
    last: Vec<u32>,
    last_id: u64,
}

impl TupleBlockBuilder {
    pub(crate) fn add(&mut self, tuple: &[u32], id: u64, base_id: u64) {
        if self.block.begin_entry() {
            self.last.clear();
            self.last_id = base_id;
        }
        let out = &mut self.block.entries;
        let shared = self.last.iter().zip(tuple).take_while(|(a, b)| a == b).count();
        let own = tuple.len() - shared;
        if shared < 15 && own < 15 {
            out.push((shared as u8) << 4 | own as u8);
        } else {
            out.push(ESCAPE);
            put_varint(out, shared as u64);
            put_varint(out, own as u64);
        }
        put_varint(out, zigzag(id.wrapping_sub(self.last_id).cast_signed()));
        let mut base = first_base(&self.last, shared);
        for term in &tuple[shared..] {
            let delta = term.checked_sub(base).expect("BUG: series come in ascending order");
            put_varint(out, u64::from(delta));
            base = term + 1;
        }
        self.last_id = id;
        self.last.clear();
        self.last.extend_from_slice(tuple);
    }
}

/// What the first own term is counted from.
fn first_base(last: &[u32], shared: usize) -> u32 {
    match (last.get(shared), shared.checked_sub(1)) {
        (Some(replaced), _) => *replaced,
        (None, Some(before)) => last[before] + 1,
        (None, None) => 0,
    }
}

/// The series a cursor stands at.
#[derive(Clone, Debug, Default)]
pub(crate) struct TupleState {
    pub(crate) tuple: Vec<u32>,
    pub(crate) id: u64,
}

impl TupleState {
    /// Reads entry `index` on top of the one before.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader<'_>,
        index: usize,
        base_id: u64,
    ) -> Result<(), Malformed> {
        if index.is_multiple_of(RESTART_ENTRIES) {
            self.tuple.clear();
            self.id = base_id;
        }
        let head = reader.u8()?;
        let (shared, own) = if head == ESCAPE {
            (reader.varint_len()?, reader.varint_len()?)
        } else {
            (usize::from(head >> 4), usize::from(head & 15))
        };
        // Each term takes a byte or more, which bounds what a wrong count can allocate.
        if shared > self.tuple.len() || own > reader.remaining() {
            return Err(Malformed("a series has more tags than there are"));
        }
        self.id = self.id.wrapping_add(unzigzag(reader.varint()?).cast_unsigned());
        let mut base = first_base(&self.tuple, shared);
        self.tuple.truncate(shared);
        for _ in 0..own {
            let term = reader.varint_u32()?.checked_add(base);
            let term = term.filter(|term| *term < u32::MAX).ok_or(TERM_TOO_LARGE)?;
            self.tuple.push(term);
            base = term + 1;
        }
        Ok(())
    }
}

const TERM_TOO_LARGE: Malformed = Malformed("a term number is too large");

/// Reads series number `index` of a block.
pub(crate) fn read_at(
    block: &Entries<'_>,
    index: usize,
    base_id: u64,
    state: &mut TupleState,
) -> Result<(), Malformed> {
    if index >= block.count {
        return Err(Malformed("a block holds fewer series than its index says"));
    }
    let restart = index / RESTART_ENTRIES;
    let mut reader = block.restart(restart)?;
    for at in restart * RESTART_ENTRIES..=index {
        state.read(&mut reader, at, base_id)?;
    }
    Ok(())
}
