//! Where a checksummed block lies in its file.

use crate::bytes::{Reader, put_varint};
use crate::error::Malformed;

/// One block of a run file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRef {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) crc32c: u32,
}

impl BlockRef {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, u64::from(self.len));
        out.extend_from_slice(&self.crc32c.to_le_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { offset: reader.varint()?, len: reader.varint_u32()?, crc32c: reader.u32()? })
    }
}
