//! Concatenated strings cut into blocks that are compressed one by one, so that a range of rows
//! needs only the blocks it lies in.
//!
//! Layout: the compressed length of every block (uvarint), then the blocks. All blocks but the last
//! hold `BLOCK_BYTES` bytes.

use std::cell::RefCell;
use std::io::Cursor;
use std::ops::Range;

use crate::{
    encoding::{Effort, id},
    error::{DecodeError, Result},
    wire::{Reader, put_uvarint},
};

/// Large enough for the compressors' windows to fill, small enough for the second-level cache.
const BLOCK_BYTES: usize = 1 << 17;

/// The level at which compression stays several times faster than a disk writes.
const ZSTD_LEVEL: i32 = 3;

/// What is compressed first of some bytes.
pub(super) fn first(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(BLOCK_BYTES)]
}

thread_local! {
    /// Making one takes as long as some ten kilobytes of text.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
    static COMPRESSION: RefCell<Compression> = const { RefCell::new(Compression::new()) };
}

/// What is kept from one block to the next. Memory for each would come as zeros: given back to the system and
/// taken again page by page, which takes longer than compressing what it is for.
struct Compression {
    /// Where a block is compressed.
    block: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Compression {
    const fn new() -> Self {
        Self { block: Vec::new(), zstd: None }
    }

    /// `bytes`, which are at most `BLOCK_BYTES`, compressed.
    fn compress(&mut self, codec: Codec, bytes: &[u8]) -> &[u8] {
        let longest = match codec {
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(bytes.len()),
            Codec::Zstd => zstd::zstd_safe::compress_bound(bytes.len()),
        };
        if self.block.len() < longest {
            self.block.resize(longest, 0);
        }
        let len = match codec {
            Codec::Lz4 => lz4_flex::block::compress_into(bytes, &mut self.block).ok(),
            Codec::Zstd => self.compress_zstd(bytes).ok(),
        };
        &self.block[..len.expect("BUG: a block is refused although its buffer is large enough")]
    }

    fn compress_zstd(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let compressor = match &mut self.zstd {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress_to_buffer(bytes, self.block.as_mut_slice())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Lz4,
    Zstd,
}

impl Codec {
    pub(super) fn of(effort: Effort) -> Self {
        if effort == Effort::Cold { Self::Zstd } else { Self::Lz4 }
    }

    pub(super) fn from_id(id: u8) -> Self {
        if id == id::STRINGS_ZSTD { Self::Zstd } else { Self::Lz4 }
    }

    pub(super) fn id(self) -> u8 {
        match self {
            Self::Lz4 => id::STRINGS_LZ4,
            Self::Zstd => id::STRINGS_ZSTD,
        }
    }

    pub(super) fn compress(self, bytes: &[u8]) -> Vec<u8> {
        let (mut out, mut blocks) = (Vec::new(), Vec::new());
        COMPRESSION.with_borrow_mut(|compression| {
            for block in bytes.chunks(BLOCK_BYTES) {
                let compressed = compression.compress(self, block);
                put_uvarint(&mut out, compressed.len() as u64);
                blocks.extend_from_slice(compressed);
            }
        });
        out.append(&mut blocks);
        out
    }

    /// Appends some spans, ascending, of the `total` bytes that were compressed.
    pub(super) fn decompress(
        self,
        mut reader: Reader<'_>,
        total: u64,
        spans: &[Range<u64>],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // Totals are below 2^32: see `read_lengths`.
        let total = total as usize;
        let n_blocks = total.div_ceil(BLOCK_BYTES);
        let mut lengths = Vec::new();
        for _ in 0..n_blocks {
            lengths.push(reader.uvarint()?);
        }
        out.reserve(spans.iter().map(|span| (span.end - span.start) as usize).sum());
        let mut spans = spans.iter().map(|span| span.start as usize..span.end as usize).peekable();
        let mut buffer = Vec::new();
        for (index, &length) in lengths.iter().enumerate() {
            if length > reader.remaining() as u64 {
                let needed = length - reader.remaining() as u64;
                return Err(DecodeError::Truncated { needed });
            }
            let compressed = reader.take(length as usize)?;
            let start = index * BLOCK_BYTES;
            let end = (start + BLOCK_BYTES).min(total);
            while spans.next_if(|span| span.end <= start).is_some() {}
            let Some(first) = spans.peek().filter(|span| span.start < end) else { continue };
            if self == Self::Zstd && first.start <= start && end <= first.end {
                // All of it: to where it belongs.
                let had = out.len() as u64;
                let mut place = Cursor::new(&mut *out);
                place.set_position(had);
                if decompress_zstd(compressed, &mut place) != Some(end - start) {
                    return Err(DecodeError::Corrupt("compressed block of strings"));
                }
                continue;
            }
            buffer.resize(end - start, 0);
            if self.decompress_block(compressed, &mut buffer) != Some(end - start) {
                return Err(DecodeError::Corrupt("compressed block of strings"));
            }
            while let Some(span) = spans.peek().filter(|span| span.start < end) {
                let is_last = span.end > end;
                out.extend_from_slice(
                    &buffer[span.start.max(start) - start..span.end.min(end) - start],
                );
                if is_last {
                    break;
                }
                spans.next();
            }
        }
        reader.finish()
    }

    /// How many bytes of `buffer` were written, if the block is sound.
    fn decompress_block(self, compressed: &[u8], buffer: &mut [u8]) -> Option<usize> {
        match self {
            Self::Lz4 => lz4_flex::block::decompress_into(compressed, buffer).ok(),
            Self::Zstd => decompress_zstd(compressed, buffer),
        }
    }
}

/// How many bytes were written, if the frame is sound and there is room for all of them.
fn decompress_zstd<W: zstd::zstd_safe::WriteBuf + ?Sized>(
    compressed: &[u8],
    out: &mut W,
) -> Option<usize> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(zstd::bulk::Decompressor::new().ok()?),
        };
        decompressor.decompress_to_buffer(compressed, out).ok()
    })
}
