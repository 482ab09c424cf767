//! The content of one simulated file: what reads see, what is durable, what lies between.

use super::random::Random;

/// The unit in which a real disk writes all or nothing.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A file, with or without a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// What reads see.
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    unsynced: Vec<Change>,
    reserved: u64,
    /// Open handles.
    pub(super) handles: u64,
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

impl Node {
    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn durable_len(&self) -> usize {
        self.durable.len()
    }

    /// Space it takes.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.reserved.max(self.live.len() as u64)
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        put(&mut self.live, offset, bytes);
        self.unsynced.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        // Cutting a file gives up what was reserved behind.
        self.reserved = self.reserved.min(len as u64);
        self.unsynced.push(Change::SetLen(len));
    }

    pub(super) fn reserve(&mut self, len: u64) {
        self.reserved = self.reserved.max(len);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            match change {
                Change::Write { offset, bytes } => put(&mut self.durable, offset, &bytes),
                Change::SetLen(len) => self.durable.resize(len, 0),
            }
        }
    }

    /// A failed sync: what was to become durable may or may not be, and is not tried again.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Write { offset, bytes } => self.survive(offset, &bytes, random),
                Change::SetLen(len) if random.coin() => self.durable.resize(len, 0),
                Change::SetLen(_) => {}
            }
        }
    }

    /// What is there after power was lost.
    pub(super) fn crash(&self, random: &mut Random) -> Self {
        let mut after = self.clone();
        after.fail_sync(random);
        after.live.clone_from(&after.durable);
        after.handles = 0;
        after
    }

    /// Makes some part of a write durable: all, none, up to a byte, or some of its sectors. The
    /// length may have grown even where the bytes were lost.
    fn survive(&mut self, offset: usize, bytes: &[u8], random: &mut Random) {
        match random.below(6) {
            0 | 1 => put(&mut self.durable, offset, bytes),
            2 => {}
            3 => {
                let end = offset + bytes.len();
                self.durable.resize(self.durable.len().max(end), 0);
            }
            4 => {
                let cut = random.below(bytes.len() as u64 + 1) as usize;
                put(&mut self.durable, offset, &bytes[..cut]);
            }
            _ => {
                let end = offset + bytes.len();
                self.durable.resize(self.durable.len().max(end), 0);
                let mut start = offset;
                while start < end {
                    let next = ((start / SECTOR + 1) * SECTOR).min(end);
                    if random.coin() {
                        put(&mut self.durable, start, &bytes[start - offset..next - offset]);
                    }
                    start = next;
                }
            }
        }
    }

    /// Whether there is such a byte.
    pub(super) fn flip_bit(&mut self, offset: usize, bit: u8) -> bool {
        let mask = 1 << (bit & 7);
        let durable = self.durable.get_mut(offset).map(|byte| *byte ^= mask).is_some();
        let live = self.live.get_mut(offset).map(|byte| *byte ^= mask).is_some();
        durable || live
    }
}
