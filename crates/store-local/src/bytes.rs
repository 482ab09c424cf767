//! Writing and reading of small binary structures: log records and manifest edits.
//!
//! Little endian, LEB128 for counts. A reader never trusts a length: whatever does not fit is
//! [`Malformed`].

use model::{FieldType, Name, TimeRange};

/// Bytes are not what a writer of this crate would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Adds to a buffer.
pub(crate) trait PutBytes {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// A count or an id.
    fn put_varint(&mut self, value: u64);
    /// Eight bytes.
    fn put_i64(&mut self, value: i64);
    /// Bytes with their length before them.
    fn put_block(&mut self, bytes: &[u8]);
    /// Both ends.
    fn put_time_range(&mut self, range: TimeRange);
}

impl PutBytes for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_block(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_time_range(&mut self, range: TimeRange) {
        self.put_i64(range.min);
        self.put_i64(range.max);
    }
}

/// Reads a buffer from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which are a `what` (for messages).
    pub(crate) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// The error for anything that does not fit.
    pub(crate) fn malformed(&self) -> Malformed {
        Malformed(self.what)
    }

    /// Whether everything was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails unless everything was read.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed()) }
    }

    /// Everything that was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }

    /// A varint that fits 32 bits.
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| self.malformed())
    }

    /// A count of things that each take at least `bytes_each` of what is left.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.varint()?).map_err(|_| self.malformed())?;
        let fits = count.checked_mul(bytes_each).is_some_and(|bytes| bytes <= self.rest.len());
        if fits { Ok(count) } else { Err(self.malformed()) }
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed(self.what))?;
        Ok(i64::from_le_bytes(bytes))
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.varint()?).map_err(|_| self.malformed())?;
        self.take(len)
    }

    pub(crate) fn name(&mut self) -> Result<Name, Malformed> {
        let text = std::str::from_utf8(self.block()?).map_err(|_| Malformed(self.what))?;
        Ok(text.into())
    }

    pub(crate) fn field_type(&mut self) -> Result<FieldType, Malformed> {
        FieldType::from_code(self.u8()?).ok_or(Malformed(self.what))
    }

    pub(crate) fn time_range(&mut self) -> Result<TimeRange, Malformed> {
        Ok(TimeRange { min: self.i64()?, max: self.i64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(a in any::<u64>(), b in any::<i64>(), c in any::<Vec<u8>>()) {
            let mut out = Vec::new();
            out.put_varint(a);
            out.put_i64(b);
            out.put_block(&c);
            let mut reader = Reader::new(&out, "test");
            prop_assert_eq!(reader.varint(), Ok(a));
            prop_assert_eq!(reader.i64(), Ok(b));
            prop_assert_eq!(reader.block(), Ok(&c[..]));
            prop_assert_eq!(reader.finish(), Ok(()));
            for cut in 0..out.len() {
                let mut reader = Reader::new(&out[..cut], "test");
                let all = reader.varint().and_then(|_| reader.i64()).and_then(|_| reader.block());
                prop_assert!(all.is_err());
            }
        }
    }

    #[test]
    fn counts_are_bounded_by_what_is_left() {
        let mut out = Vec::new();
        out.put_varint(u64::MAX);
        assert!(Reader::new(&out, "test").count(1).is_err());
        assert!(Reader::new(&[0xff; 11], "test").varint().is_err());
    }
}
