//! Variable-length integers and a reader that never runs past its bytes.

use crate::error::{DecodeError, Result};

/// LEB128: seven bits a byte, least significant first.
#[inline]
pub(crate) fn put_uvarint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Zigzag, then LEB128.
#[inline]
pub(crate) fn put_ivarint(out: &mut Vec<u8>, value: i64) {
    put_uvarint(out, zigzag(value));
}

/// Bytes that `put_uvarint` writes.
#[inline]
pub(crate) fn uvarint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Maps small magnitudes of either sign to small unsigned numbers.
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of `zigzag`.
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The seven low bits of each byte, one behind the other.
#[inline]
fn join_sevens(bytes: u64) -> u64 {
    let pairs = (bytes & 0x007f_007f_007f_007f) | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let quads = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (quads & 0x0000_0000_0fff_ffff) | (quads & 0x0fff_ffff_0000_0000) >> 4
}

/// A cursor over the bytes of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        let (&first, rest) =
            self.bytes.split_first().ok_or(DecodeError::Truncated { needed: 1 })?;
        self.bytes = rest;
        Ok(first)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(DecodeError::Truncated { needed: (N - self.bytes.len()) as u64 });
        };
        self.bytes = rest;
        Ok(*head)
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.bytes.split_at_checked(n) else {
            return Err(DecodeError::Truncated { needed: (n - self.bytes.len()) as u64 });
        };
        self.bytes = rest;
        Ok(head)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    #[inline]
    pub(crate) fn uvarint(&mut self) -> Result<u64> {
        match self.bytes.first() {
            Some(&first) if first < 0x80 => {
                self.bytes = &self.bytes[1..];
                Ok(u64::from(first))
            }
            _ => self.long_uvarint(),
        }
    }

    /// One of two bytes or more. How many is not branched on, as far as a word of eight holds them: lengths that change would be
    /// guessed wrongly.
    fn long_uvarint(&mut self) -> Result<u64> {
        if let Some((word, _)) = self.bytes.split_first_chunk() {
            let word = u64::from_le_bytes(*word);
            let last = (!word & 0x8080_8080_8080_8080).trailing_zeros();
            if last < 64 {
                self.bytes = &self.bytes[last as usize / 8 + 1..];
                return Ok(join_sevens(word & u64::MAX >> (63 - last)));
            }
        }
        let mut value = u64::from(self.u8()? & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return Err(DecodeError::Corrupt("variable-length integer exceeds 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Corrupt("variable-length integer exceeds 64 bits"))
    }

    /// Passes over so many, whose values do not matter.
    pub(crate) fn skip_varints(&mut self, mut number: usize) -> Result<()> {
        while number > 0 {
            let Some((word, rest)) = self.bytes.split_first_chunk() else { break };
            let ends = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
            let here = ends.count_ones() as usize;
            // Behind the last of them something else may begin within the word.
            if here >= number {
                break;
            }
            (self.bytes, number) = (rest, number - here);
        }
        while number > 0 {
            number -= usize::from(self.u8()? < 0x80);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn ivarint(&mut self) -> Result<i64> {
        Ok(unzigzag(self.uvarint()?))
    }

    /// A length that must fit the bytes that are left, and those bytes.
    pub(crate) fn length_prefixed(&mut self) -> Result<&'a [u8]> {
        let len = self.uvarint()?;
        if len > self.bytes.len() as u64 {
            return Err(DecodeError::Truncated { needed: len - self.bytes.len() as u64 });
        }
        self.take(len as usize)
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            n => Err(DecodeError::TrailingBytes(n)),
        }
    }
}

/// Appends `page` after its length.
pub(crate) fn put_length_prefixed(out: &mut Vec<u8>, page: &[u8]) {
    put_uvarint(out, page.len() as u64);
    out.extend_from_slice(page);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn varints_round_trip(
            value: u64,
            bits in 0u32..64,
            behind in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let value = value >> bits;
            let mut out = Vec::new();
            put_uvarint(&mut out, value);
            prop_assert_eq!(out.len(), uvarint_len(value));
            out.extend_from_slice(&behind);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.uvarint(), Ok(value));
            prop_assert_eq!(reader.rest(), &behind[..]);
            prop_assert_eq!(zigzag(unzigzag(value)), value);
        }
    }

    proptest! {
        #[test]
        fn skipped_varints_are_read_ones(
            values in prop::collection::vec((any::<u64>(), 0u32..64), 0..40),
            skipped in any::<prop::sample::Index>(),
        ) {
            let mut out = Vec::new();
            values.iter().for_each(|(value, bits)| put_uvarint(&mut out, value >> bits));
            let skipped = skipped.index(values.len() + 1);
            let (mut read, mut passed) = (Reader::new(&out), Reader::new(&out));
            (0..skipped).try_for_each(|_| read.uvarint().map(drop)).unwrap();
            passed.skip_varints(skipped).unwrap();
            prop_assert_eq!(passed.rest(), read.rest());
            prop_assert!(Reader::new(&out).skip_varints(values.len() + 1).is_err());
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        let mut bytes = [0xff; 10];
        bytes[9] = 2;
        assert!(matches!(Reader::new(&bytes).uvarint(), Err(DecodeError::Corrupt(_))));
        bytes[9] = 1;
        assert_eq!(Reader::new(&bytes).uvarint(), Ok(u64::MAX));
        assert!(matches!(Reader::new(&bytes[..9]).uvarint(), Err(DecodeError::Truncated { .. })));
    }
}
