//! Packing answers.
//!
//! Most answers are short: to make the compressor's tables (a quarter of a megabyte) took longer than to pack,
//! so they are used again. The checksum is libdeflate's, which knows the processor's instructions for it.

use flate2::{Compress, Compression, FlushCompress, Status};
use libdeflater::Crc;

use crate::pool::Pool;

/// Compressors that wait for the next answer; each takes 270 KB.
static IDLE: Pool<Compress> = Pool::new(8);

/// Magic, deflate, no flags, no time, packed fast, unknown system (RFC 1952, section 2.3).
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];

/// Room beside what is packed, for the ends of blocks and of the file.
const ENDS_BYTES: usize = 64;

/// Packs an answer piece by piece.
#[derive(Debug)]
pub(crate) struct Packer {
    compress: Compress,
    /// Checksum of what was added.
    crc: u32,
    /// Bytes that were added, modulo 2^32.
    len: u32,
    out: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        let compress = IDLE.take().unwrap_or_else(|| Compress::new(Compression::fast(), false));
        Self { compress, crc: 0, len: 0, out: HEADER.to_vec() }
    }

    /// Adds a piece; gives what is ready to be sent, with `flush` all of it.
    pub(crate) fn add(&mut self, bytes: &[u8], flush: bool) -> Vec<u8> {
        self.deflate(bytes, if flush { FlushCompress::Sync } else { FlushCompress::None });
        std::mem::take(&mut self.out)
    }

    /// Adds the last piece; gives all that was not given yet.
    pub(crate) fn finish(mut self, bytes: &[u8]) -> Vec<u8> {
        self.deflate(bytes, FlushCompress::Finish);
        self.out.extend_from_slice(&self.crc.to_le_bytes());
        self.out.extend_from_slice(&self.len.to_le_bytes());
        // Only one that came to its end is used again: zlib-rs (0.6) does not forget all of a file that was left
        // in the middle.
        self.compress.reset();
        IDLE.give_back(self.compress);
        self.out
    }

    fn deflate(&mut self, bytes: &[u8], flush: FlushCompress) {
        let mut crc = Crc::with_initial(self.crc);
        crc.update(bytes);
        self.crc = crc.sum();
        self.len = self.len.wrapping_add(bytes.len() as u32);
        let mut rest = bytes;
        loop {
            self.out.reserve(rest.len() / 2 + ENDS_BYTES);
            let before = self.compress.total_in();
            let status = self
                .compress
                .compress_vec(rest, &mut self.out, flush)
                .expect("BUG: packing in memory failed");
            rest = &rest[(self.compress.total_in() - before) as usize..];
            // With room left, nothing waits inside to be given out.
            let has_room = self.out.len() < self.out.capacity();
            if status == Status::StreamEnd || (rest.is_empty() && has_room) {
                return;
            }
        }
    }
}

/// Packs a whole answer.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    Packer::new().finish(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_come_back(pieces in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..2000), any::<bool>()), 0..20,
        )) {
            let mut packer = Packer::new();
            let (mut packed, mut plain) = (Vec::new(), Vec::new());
            for (piece, flush) in &pieces {
                plain.extend_from_slice(piece);
                packed.extend_from_slice(&packer.add(piece, *flush));
                if *flush {
                    // What was sent can be read to its end.
                    let mut seen = vec![0; plain.len()];
                    prop_assert!(GzDecoder::new(&packed[..]).read_exact(&mut seen).is_ok());
                    prop_assert_eq!(&seen, &plain);
                }
            }
            packed.extend_from_slice(&packer.finish(b"end"));
            plain.extend_from_slice(b"end");
            let mut again = Vec::new();
            prop_assert!(GzDecoder::new(&packed[..]).read_to_end(&mut again).is_ok());
            prop_assert_eq!(again, plain);
        }
    }

    #[test]
    fn one_that_was_left_in_the_middle_leaves_nothing_to_the_next() {
        let mut left = Packer::new();
        let _ = left.add(&[b'x'; 100_000], false);
        drop(left);
        let mut plain = Vec::new();
        GzDecoder::new(&pack(b"y")[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, b"y");
    }
}
