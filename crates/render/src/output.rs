//! Where the bytes of rows go.
//!
//! A vector's length is in memory: of many short writes each waits until the one before has stored it, four or five
//! cycles a cell. A [`Room`] writes into bytes that were cleared beforehand, at a place that stays in a register.

/// Takes bytes at its end.
pub(crate) trait Output {
    /// Writes all of `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// Writes the first `len` of `bytes`. All of them are copied and those too many written over, which is faster than a
    /// copy of unknown length.
    fn put_first<const N: usize>(&mut self, bytes: &[u8; N], len: usize);
}

impl Output for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_first<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        let end = self.len() + len;
        self.extend_from_slice(bytes);
        self.truncate(end);
    }
}

/// The end of a vector with cleared bytes behind it; [`finish`](Self::finish) takes back those that were not written.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    step: usize,
}

/// Bytes that are cleared at once: enough for rows, few enough to be in the first cache when they are written.
const STEP_BYTES_MIN: usize = 64;
const STEP_BYTES_MAX: usize = 2048;

impl<'a> Room<'a> {
    /// Room behind `out` for what is `expected` to be about so many bytes.
    pub(crate) fn new(out: &'a mut Vec<u8>, expected: usize) -> Self {
        let at = out.len();
        Self { out, at, step: expected.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX) }
    }

    /// Ends the vector where writing has come to.
    pub(crate) fn finish(self) {
        self.out.truncate(self.at);
    }

    /// Bytes of the vector so far.
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    /// What was written from byte `start` on.
    pub(crate) fn since(&self, start: usize) -> &[u8] {
        &self.out[start..self.at]
    }

    /// Lets the vector have memory for so many more bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.out.truncate(self.at);
        self.out.reserve(bytes);
    }

    /// The same room for a loop of short writes: the place of this one may be known to functions that were called, and
    /// could not stay in a register.
    #[inline]
    pub(crate) fn within(&mut self, write: impl FnOnce(&mut Room<'_>)) {
        let mut room = Room { out: self.out, at: self.at, step: self.step };
        write(&mut room);
        self.at = room.at;
    }
}

impl Output for Room<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        match self.out[self.at..].get_mut(..bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => put_far(self.out, self.at, bytes, self.step),
        }
        self.at += bytes.len();
    }

    #[inline]
    fn put_first<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        match self.out[self.at..].first_chunk_mut() {
            Some(place) => *place = *bytes,
            None => put_far(self.out, self.at, bytes, self.step),
        }
        self.at += len;
    }
}

/// Writes bytes at `at` after it has cleared room for them and a step further, so far as there is memory for that anyway.
#[cold]
fn put_far(out: &mut Vec<u8>, at: usize, bytes: &[u8], step: usize) {
    let end = at + bytes.len();
    let wanted = end + step;
    let len = if end <= out.capacity() { wanted.min(out.capacity()) } else { wanted };
    out.resize(len, 0);
    out[at..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_room_writes_what_a_vector_writes(
            before in prop::collection::vec(any::<u8>(), 0..20),
            capacity in 0usize..200,
            expected in 0usize..300,
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..90), any::<[u8; 24]>(), 0usize..25), 0..60),
        ) {
            let mut vector = before.clone();
            let mut out = Vec::with_capacity(capacity);
            out.extend_from_slice(&before);
            let mut room = Room::new(&mut out, expected);
            for (bytes, first, len) in &parts {
                vector.put(bytes);
                vector.put_first(first, *len);
                room.put(bytes);
                room.within(|room| room.put_first(first, *len));
                prop_assert_eq!(room.since(0), vector.as_slice());
                if *len == 7 {
                    room.reserve(*len);
                }
            }
            prop_assert_eq!(room.len(), vector.len());
            room.finish();
            prop_assert_eq!(out, vector);
        }
    }
}
