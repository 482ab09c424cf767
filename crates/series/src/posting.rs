//! Lists of series ids.
//!
//! Most lists hold one id (a tag value that one series has), some hold millions. Short ones are a
//! sorted vector in memory and deltas next to their term on disk; long ones are roaring sets, on
//! disk in a block of their own.

use std::sync::Arc;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::block::BlockRef;
use crate::bytes::{Reader, put_varint};
use crate::error::Malformed;

/// Longest list kept as a vector in memory.
const FEW_MAX: usize = 64;
/// Longest encoding kept next to the term.
const INLINE_BYTES_MAX: usize = 96;

/// A set of ids. Reused from term to term, so that a list of one id allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Posting {
    /// Sorted and distinct; empty if `set` is there.
    few: Vec<u64>,
    /// Shared with the cache until changed.
    set: Option<Arc<RoaringTreemap>>,
}

impl Posting {
    pub(crate) fn clear(&mut self) {
        self.few.clear();
        self.set = None;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.set.as_ref().is_none_or(|set| set.is_empty())
    }

    pub(crate) fn len(&self) -> u64 {
        self.set.as_ref().map_or(self.few.len() as u64, |set| set.len())
    }

    pub(crate) fn push(&mut self, id: u64) {
        match &mut self.set {
            Some(set) => {
                Arc::make_mut(set).insert(id);
            }
            None => match self.few.binary_search(&id) {
                Ok(_) => {}
                Err(at) => {
                    self.few.insert(at, id);
                    self.spill();
                }
            },
        }
    }

    pub(crate) fn set_to(&mut self, set: RoaringTreemap) {
        self.share(Arc::new(set));
    }

    pub(crate) fn share(&mut self, set: Arc<RoaringTreemap>) {
        self.few.clear();
        self.set = Some(set);
    }

    pub(crate) fn union_with(&mut self, other: &Self) {
        match &other.set {
            Some(theirs) => {
                let set = Arc::make_mut(self.set.get_or_insert_default());
                *set |= &**theirs;
                set.extend(self.few.drain(..));
            }
            None => other.few.iter().for_each(|id| self.push(*id)),
        }
    }

    pub(crate) fn subtract(&mut self, removed: &RoaringTreemap) {
        match &mut self.set {
            Some(set) => *Arc::make_mut(set) -= removed,
            None => self.few.retain(|id| !removed.contains(*id)),
        }
    }

    pub(crate) fn intersects(&self, ids: &RoaringTreemap) -> bool {
        match &self.set {
            Some(set) => !set.is_disjoint(ids),
            None => self.few.iter().any(|id| ids.contains(*id)),
        }
    }

    pub(crate) fn add_to(&self, union: &mut Union) {
        match &self.set {
            Some(set) => union.add_set(set),
            None => self.few.iter().for_each(|id| union.push(*id)),
        }
    }

    pub(crate) fn for_each_in(&self, ids: &RoaringTreemap, mut f: impl FnMut(u64)) {
        match &self.set {
            Some(set) => (&**set & ids).iter().for_each(f),
            None => self.few.iter().filter(|id| ids.contains(**id)).for_each(|id| f(*id)),
        }
    }

    pub(crate) fn for_each(&self, f: impl FnMut(u64)) {
        match &self.set {
            Some(set) => set.iter().for_each(f),
            None => self.few.iter().copied().for_each(f),
        }
    }

    pub(crate) fn into_set(self) -> RoaringTreemap {
        match self.set {
            Some(set) => Arc::unwrap_or_clone(set),
            None => self.few.into_iter().collect(),
        }
    }

    fn spill(&mut self) {
        if self.few.len() > FEW_MAX {
            self.set = Some(Arc::new(self.few.drain(..).collect()));
        }
    }
}

impl FromIterator<u64> for Posting {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut posting = Self::default();
        ids.into_iter().for_each(|id| posting.push(id));
        posting
    }
}

/// A union of many lists, most of them short: gathers single ids and adds them sorted.
#[derive(Debug, Default)]
pub(crate) struct Union {
    few: Vec<u64>,
    set: RoaringTreemap,
}

impl Union {
    const GATHERED_MAX: usize = 1 << 16;

    pub(crate) fn push(&mut self, id: u64) {
        self.few.push(id);
        if self.few.len() == Self::GATHERED_MAX {
            self.settle();
        }
    }

    pub(crate) fn add_set(&mut self, set: &RoaringTreemap) {
        self.set |= set;
    }

    pub(crate) fn finish(mut self) -> RoaringTreemap {
        self.settle();
        self.set
    }

    fn settle(&mut self) {
        self.few.sort_unstable();
        self.few.dedup();
        let sorted = RoaringTreemap::from_sorted_iter(self.few.drain(..));
        let sorted = sorted.expect("BUG: ids were just sorted");
        if self.set.is_empty() {
            self.set = sorted;
        } else {
            self.set |= sorted;
        }
    }
}

/// A list as it stands in a block: the ids, or where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PostingRef<'a> {
    /// `count` ids as deltas from the run's base id.
    Inline { count: u32, deltas: Reader<'a> },
    /// A block with a set.
    Block(BlockRef),
}

impl<'a> PostingRef<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = reader.varint_u32()?;
        if count == 0 {
            return Ok(Self::Block(BlockRef::read(reader)?));
        }
        let deltas = *reader;
        for _ in 0..count {
            reader.varint()?;
        }
        Ok(Self::Inline { count, deltas })
    }
}

/// The largest id: there is one behind it, which says where ids go on.
const ID_MAX: u64 = u64::MAX - 1;
const ID_TOO_LARGE: Malformed = Malformed("a series id is too large");

/// Reads an inline list into `posting`.
pub(crate) fn read_inline(
    count: u32,
    mut deltas: Reader<'_>,
    base_id: u64,
    posting: &mut Posting,
) -> Result<(), Malformed> {
    posting.clear();
    let mut id = base_id;
    for nth in 0..count {
        let delta = deltas.varint()?;
        let step = if nth == 0 { Some(delta) } else { delta.checked_add(1) };
        let next = step.and_then(|s| id.checked_add(s));
        id = next.filter(|id| *id <= ID_MAX).ok_or(ID_TOO_LARGE)?;
        // Ids ascend by construction, so this is an append.
        posting.few.push(id);
    }
    posting.spill();
    Ok(())
}

/// Appends the inline form, or says that the list needs a block of its own.
pub(crate) fn put_inline(posting: &Posting, base_id: u64, out: &mut Vec<u8>) -> bool {
    if posting.set.as_ref().is_some_and(|set| set.len() > INLINE_BYTES_MAX as u64) {
        return false;
    }
    let from_set: Vec<u64>;
    let ids = match &posting.set {
        Some(set) => {
            from_set = set.iter().collect();
            &from_set
        }
        None => &posting.few,
    };
    assert!(!ids.is_empty(), "BUG: an empty posting list is never written");
    let start = out.len();
    put_varint(out, ids.len() as u64);
    let limit = out.len() + INLINE_BYTES_MAX;
    let mut next = base_id;
    for id in ids {
        put_varint(out, *id - next);
        if out.len() > limit {
            out.truncate(start);
            return false;
        }
        next = *id + 1;
    }
    true
}

/// Appends a set: a bitmap for each high half of the ids, in order.
pub(crate) fn put_set(set: &RoaringTreemap, out: &mut Vec<u8>) {
    let bitmaps: Vec<_> = set.bitmaps().filter(|(_, bitmap)| !bitmap.is_empty()).collect();
    put_varint(out, bitmaps.len() as u64);
    for (high, bitmap) in bitmaps {
        out.extend_from_slice(&high.to_le_bytes());
        put_varint(out, bitmap.serialized_size() as u64);
        bitmap.serialize_into(&mut *out).expect("BUG: writing to memory does not fail");
    }
}

pub(crate) fn read_set(reader: &mut Reader<'_>) -> Result<RoaringTreemap, Malformed> {
    let count = reader.varint()?;
    let mut bitmaps: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let high = reader.u32()?;
        if bitmaps.last().is_some_and(|(last, _)| *last >= high) {
            return Err(Malformed("a set's parts are out of order"));
        }
        let len = reader.varint_len()?;
        let bitmap = RoaringBitmap::deserialize_from(reader.take(len)?)
            .map_err(|_| Malformed("a set's bitmap does not decode"))?;
        if bitmap.is_empty() {
            return Err(Malformed("a set's part is empty"));
        }
        bitmaps.push((high, bitmap));
    }
    let set = RoaringTreemap::from_bitmaps(bitmaps);
    if set.max().is_some_and(|id| id > ID_MAX) { Err(ID_TOO_LARGE) } else { Ok(set) }
}

#[cfg(test)]
mod tests;
