//! Variable-length integers and a reader that never runs past its bytes.
//!
//! A varint is LEB128: seven bits a byte, low ones first, at most ten bytes.

use crate::error::Malformed;

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

pub(crate) fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Reads forward through a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn at_offset(bytes: &'a [u8], at: usize) -> Result<Self, Malformed> {
        if at > bytes.len() {
            return Err(Malformed("an offset points past the block"));
        }
        Ok(Self { bytes, at })
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(Malformed("the block ends too early"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("BUG: took N bytes"))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        // Nearly all varints of the format are one byte.
        if let Some(byte) = self.bytes.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Ok(u64::from(*byte));
        }
        self.varint_long()
    }

    fn varint_long(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(Malformed("the block ends in a number"))?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is too long"))
    }

    pub(crate) fn varint_u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed("a number is too large"))
    }

    pub(crate) fn varint_len(&mut self) -> Result<usize, Malformed> {
        let len = self.varint()?;
        usize::try_from(len).map_err(|_| Malformed("a length is too large"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let len = self.varint_len()?;
        as_text(self.take(len)?)
    }
}

pub(crate) fn as_text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed("a name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec(any::<u64>(), 0..20), shift in 0u32..64) {
            let mut out = Vec::new();
            for value in &values {
                put_varint(&mut out, value >> shift);
            }
            let mut reader = Reader::new(&out);
            for value in &values {
                prop_assert_eq!(reader.varint(), Ok(value >> shift));
                let signed = value.cast_signed();
                prop_assert_eq!(unzigzag(zigzag(signed)), signed);
            }
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            while reader.varint().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while reader.text().is_ok() && !reader.is_empty() {}
        }
    }
}
