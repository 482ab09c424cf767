//! Hash buckets (key to id) and pages of the id map (id to position among the sorted keys).

use crate::bytes::Reader;
use crate::error::Malformed;
use crate::hash::KeyHash;
use crate::run::format::ID_PAGE_IDS;

/// Bytes of one entry of a bucket: high and low part of the hash, id less the run's base id.
pub(crate) fn hash_entry_bytes(wide_ids: bool) -> usize {
    if wide_ids { 20 } else { 16 }
}

pub(crate) fn put_hash(out: &mut Vec<u8>, hash: KeyHash, id_offset: u64, wide_ids: bool) {
    out.extend_from_slice(&hash.high.to_le_bytes());
    out.extend_from_slice(&hash.low.to_le_bytes());
    if wide_ids {
        out.extend_from_slice(&id_offset.to_le_bytes());
    } else {
        let narrow = u32::try_from(id_offset).expect("BUG: the run was said to have narrow ids");
        out.extend_from_slice(&narrow.to_le_bytes());
    }
}

pub(crate) fn read_hash(entry: &[u8], wide_ids: bool) -> Result<(KeyHash, u64), Malformed> {
    let mut reader = Reader::new(entry);
    let hash = KeyHash { high: reader.u64()?, low: reader.u32()? };
    let id_offset = if wide_ids { reader.u64()? } else { u64::from(reader.u32()?) };
    Ok((hash, id_offset))
}

/// Which of `buckets` buckets a hash is in; ascends with the hash.
pub(crate) fn bucket_of(hash: KeyHash, buckets: u64) -> u64 {
    ((u128::from(hash.high) * u128::from(buckets)) >> 64) as u64
}

/// The id offset of `wanted` in a bucket.
pub(crate) fn find_hash(
    bucket: &[u8],
    wanted: KeyHash,
    wide_ids: bool,
) -> Result<Option<u64>, Malformed> {
    let width = hash_entry_bytes(wide_ids);
    if !bucket.len().is_multiple_of(width) {
        return Err(Malformed("a bucket holds a part of a hash"));
    }
    let (mut low, mut high) = (0, bucket.len() / width);
    while low < high {
        let middle = usize::midpoint(low, high);
        let (hash, id) = read_hash(&bucket[middle * width..(middle + 1) * width], wide_ids)?;
        match hash.cmp(&wanted) {
            std::cmp::Ordering::Equal => return Ok(Some(id)),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(None)
}

/// Gathers one page of the id map. Layout: 1 if the ids have gaps else 0 (u8), bytes of a position
/// (u8), count (u16), if there are gaps each id less the first (u32), positions.
#[derive(Debug, Default)]
pub(crate) struct IdPageBuilder {
    ids: Vec<u64>,
    positions: Vec<u32>,
}

impl IdPageBuilder {
    /// Whether `id` can go on this page.
    pub(crate) fn takes(&self, id: u64) -> bool {
        let near = self.ids.first().is_none_or(|first| id - first <= u64::from(u32::MAX));
        near && self.ids.len() < ID_PAGE_IDS
    }

    pub(crate) fn add(&mut self, id: u64, position: u32) {
        self.ids.push(id);
        self.positions.push(position);
    }

    /// Replaces `out` by the page and starts a new one; returns the first id, `None` if empty.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let (first, last) = (*self.ids.first()?, *self.ids.last()?);
        let gaps = last - first + 1 != self.ids.len() as u64;
        let widest = self.positions.iter().copied().max().unwrap_or(0);
        let width = (32 - (widest | 1).leading_zeros()).div_ceil(8) as usize;
        out.clear();
        out.push(u8::from(gaps));
        out.push(width as u8);
        out.extend_from_slice(&(self.ids.len() as u16).to_le_bytes());
        for id in self.ids.drain(..) {
            if gaps {
                out.extend_from_slice(&((id - first) as u32).to_le_bytes());
            }
        }
        for position in self.positions.drain(..) {
            out.extend_from_slice(&position.to_le_bytes()[..width]);
        }
        Some(first)
    }
}

/// The position of the id that is `offset` above the page's first.
pub(crate) fn find_position(page: &[u8], offset: u64) -> Result<Option<u32>, Malformed> {
    let mut reader = Reader::new(page);
    let (gaps, width) = (reader.u8()?, usize::from(reader.u8()?));
    let count = usize::from(reader.u16()?);
    if gaps > 1 || !(1..=4).contains(&width) {
        return Err(Malformed("an id page has an unknown layout"));
    }
    let ids = reader.take(if gaps == 1 { count * 4 } else { 0 })?;
    let positions = reader.take(count * width)?;
    let at = if gaps == 0 {
        usize::try_from(offset).ok().filter(|at| *at < count)
    } else {
        let id_at = |at: usize| {
            u64::from(u32::from_le_bytes([
                ids[at * 4],
                ids[at * 4 + 1],
                ids[at * 4 + 2],
                ids[at * 4 + 3],
            ]))
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if id_at(middle) < offset { low = middle + 1 } else { high = middle }
        }
        (low < count && id_at(low) == offset).then_some(low)
    };
    Ok(at.map(|at| {
        let mut bytes = [0; 4];
        bytes[..width].copy_from_slice(&positions[at * width..(at + 1) * width]);
        u32::from_le_bytes(bytes)
    }))
}
