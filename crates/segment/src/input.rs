//! Reading and writing the small numbers that directories are made of.
//!
//! Varints are LEB128: seven bits a byte, low bits first, at most ten bytes. Signed numbers are
//! zigzagged. Every read checks that the bytes are there.

use codec::DecodeError;

/// Something that cannot have been written by a writer, and where in its input it was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) what: String,
}

impl From<DecodeError> for Malformed {
    fn from(error: DecodeError) -> Self {
        Self { at: 0, what: error.to_string() }
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A cursor over bytes that may hold anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn fail(&self, what: impl Into<String>) -> Malformed {
        Malformed { at: self.at, what: what.into() }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        match self.rest().get(..len) {
            Some(part) => {
                self.at += len;
                Ok(part)
            }
            None => Err(self.fail(format!("{len} bytes expected, {} left", self.rest().len()))),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let part = self.take(N)?;
        Ok(part.try_into().expect("BUG: take gives the length asked for"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
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
        Err(self.fail("a number has more than 64 bits"))
    }

    pub(crate) fn zigzag(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint that must not be larger than `max`; `what` names it.
    pub(crate) fn bounded(&mut self, max: u64, what: &str) -> Result<usize, Malformed> {
        let at = self.at;
        let value = self.varint()?;
        if value > max {
            return Err(Malformed {
                at,
                what: format!("{what} is {value}, at most {max} allowed"),
            });
        }
        usize::try_from(value).map_err(|_| Malformed { at, what: format!("{what} is {value}") })
    }

    /// Bytes preceded by their length.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.bounded(self.rest().len() as u64, "a length")?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.fail("a name is not UTF-8"))
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.rest().is_empty() {
            return Ok(());
        }
        Err(self.fail(format!("{} bytes too many", self.rest().len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert!(Input::new(&[0xff; 10]).varint().is_err());
        let mut bytes = vec![0xff; 9];
        bytes.push(1);
        assert_eq!(Input::new(&bytes).varint().unwrap(), u64::MAX);
        bytes[9] = 2;
        assert!(Input::new(&bytes).varint().is_err());
    }

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec((any::<u64>(), any::<i64>(), 0u32..64), 0..20)) {
            let mut bytes = Vec::new();
            for (unsigned, signed, shift) in &values {
                put_varint(&mut bytes, unsigned >> shift);
                put_zigzag(&mut bytes, signed >> shift);
            }
            let mut input = Input::new(&bytes);
            for (unsigned, signed, shift) in &values {
                prop_assert_eq!(input.varint().unwrap(), unsigned >> shift);
                prop_assert_eq!(input.zigzag().unwrap(), signed >> shift);
            }
            prop_assert!(input.end().is_ok());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut input = Input::new(&bytes);
            while input.varint().is_ok() {}
            let mut input = Input::new(&bytes);
            while input.bytes().is_ok_and(|b| !b.is_empty()) {}
            prop_assert!(input.at() <= bytes.len());
        }
    }
}
