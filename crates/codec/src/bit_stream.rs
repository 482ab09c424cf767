//! Streams of bits, least significant first.

use crate::error::{DecodeError, Result};

/// Writes bits, least significant first.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    word: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends a value, which has at most `width` bits, and `width` is at most 61.
    #[inline]
    pub fn put(&mut self, value: u64, width: u32) {
        self.word |= value << self.filled;
        self.filled += width;
        if self.filled >= 64 {
            self.bytes.extend_from_slice(&self.word.to_le_bytes());
            self.filled -= 64;
            self.word = if self.filled == 0 { 0 } else { value >> (width - self.filled) };
        }
    }

    /// The bytes, of which the last is filled up with zeros.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.filled.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.word.to_le_bytes()[..len]);
        self.bytes
    }
}

/// Reads bits, least significant first; past the end there are zeros, which `check` reports.
#[derive(Debug)]
pub struct BitReader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) bit: usize,
}

impl<'a> BitReader<'a> {
    /// Reads from a bit on.
    #[must_use]
    pub fn new(bytes: &'a [u8], bit: usize) -> Self {
        Self { bytes, bit }
    }

    /// The bit that comes next.
    #[must_use]
    pub fn bit(&self) -> usize {
        self.bit
    }

    /// The next `width` bits, at most 61.
    #[inline]
    pub fn get(&mut self, width: u32) -> u64 {
        let at = self.bit / 8;
        let shift = self.bit % 8;
        let mask = (1u64 << width) - 1;
        self.bit += width as usize;
        if width <= 57
            && let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>())
        {
            return u64::from_le_bytes(*word) >> shift & mask;
        }
        let mut window = [0u8; 16];
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        let len = rest.len().min(9);
        window[..len].copy_from_slice(&rest[..len]);
        (u128::from_le_bytes(window) >> shift) as u64 & mask
    }

    /// Whether there were as many bits as were read.
    ///
    /// # Errors
    /// When there were not.
    pub fn check(&self) -> Result<()> {
        match self.bit.div_ceil(8).checked_sub(self.bytes.len()) {
            None | Some(0) => Ok(()),
            Some(needed) => Err(DecodeError::Truncated { needed: needed as u64 }),
        }
    }

    /// Whether what was read is all there is, up to the end of a byte.
    ///
    /// # Errors
    /// When there are bytes that were not read, or fewer than were.
    pub fn finish(self) -> Result<()> {
        self.check()?;
        match self.bytes.len() - self.bit.div_ceil(8) {
            0 => Ok(()),
            n => Err(DecodeError::TrailingBytes(n)),
        }
    }
}
