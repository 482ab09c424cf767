//! Constants and fixed parts of a run file; docs/formats/series-index.md is normative.

use crate::block::BlockRef;
use crate::bytes::Reader;
use crate::error::Malformed;

pub(crate) const MAGIC: [u8; 8] = *b"NYSERIE1";
pub(crate) const VERSION: u16 = 1;
/// Magic, version, features that old readers may ignore, features they must know.
pub(crate) const HEADER_BYTES: usize = 8 + 2 + 2 + 2 + 2;
/// Meta block offset, length, checksum; checksum of the trailer; magic.
pub(crate) const TRAILER_BYTES: usize = 8 + 4 + 4 + 4 + 8;
/// A block is closed when it holds this many bytes...
pub(crate) const BLOCK_BYTES: usize = 4096;
/// ... or this many entries.
pub(crate) const BLOCK_ENTRIES: usize = 512;
/// Every so many entries one is stored whole.
pub(crate) const RESTART_ENTRIES: usize = 16;
/// Average number of hashes in a bucket.
pub(crate) const BUCKET_HASHES: u64 = 96;
/// Number of ids in a full page of the id map.
pub(crate) const ID_PAGE_IDS: usize = 1024;

const _: () = assert!(HEADER_BYTES == 16 && TRAILER_BYTES == 28);
const _: () = assert!(BLOCK_ENTRIES <= u16::MAX as usize);
const _: () = assert!(ID_PAGE_IDS <= u16::MAX as usize);

pub(crate) fn header() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// What keeps this build from reading a file, if anything. The trailer is read first: its checksum
/// covers the header.
pub(crate) fn check_header(bytes: &[u8; HEADER_BYTES]) -> Result<Option<String>, Malformed> {
    let mut rest = Reader::new(&bytes[8..]);
    let (version, _compatible, incompatible) = (rest.u16()?, rest.u16()?, rest.u16()?);
    if version != VERSION {
        return Ok(Some(format!("format version {version}")));
    }
    Ok((incompatible != 0).then(|| format!("features {incompatible:#06x}")))
}

pub(crate) fn trailer(meta: BlockRef) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..8].copy_from_slice(&meta.offset.to_le_bytes());
    bytes[8..12].copy_from_slice(&meta.len.to_le_bytes());
    bytes[12..16].copy_from_slice(&meta.crc32c.to_le_bytes());
    let crc = ends_crc(&header(), &bytes);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes[20..].copy_from_slice(&MAGIC);
    bytes
}

/// The checksum over header and trailer.
fn ends_crc(header: &[u8; HEADER_BYTES], trailer: &[u8; TRAILER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(header), &trailer[..16])
}

/// Where the meta block is.
pub(crate) fn read_trailer(
    header: &[u8; HEADER_BYTES],
    bytes: &[u8; TRAILER_BYTES],
    verify: bool,
) -> Result<BlockRef, Malformed> {
    if header[..8] != MAGIC {
        return Err(Malformed("this is no run of the series index"));
    }
    if bytes[20..] != MAGIC {
        return Err(Malformed("the file does not end as a run does"));
    }
    let mut reader = Reader::new(bytes);
    let meta = BlockRef { offset: reader.u64()?, len: reader.u32()?, crc32c: reader.u32()? };
    if verify && reader.u32()? != ends_crc(header, bytes) {
        return Err(Malformed("the checksum of header and trailer does not match"));
    }
    Ok(meta)
}
