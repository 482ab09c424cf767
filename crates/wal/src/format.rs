//! Bytes of a log file. docs/formats/wal.md is normative; this module encodes and checks what that
//! page says.
//!
//! Invariants
//! - Decoding never trusts a byte before the checksum over it matched.
//! - A record's checksum covers its position, and no two records ever have the same position, so
//!   bytes of a file's earlier life cannot pass for records of its present one.
//!
//! Not here: finding records among damaged bytes (see `scan`), names of files (see `files`).

use std::fmt;

use crc32c::{crc32c, crc32c_append};

/// A position in the log: bytes of records since the log began, with gaps where it was reopened.
/// Grows for ever, is never used twice; 0 is before all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Positions stay below this, so that adding a file's length to one cannot overflow.
    pub(crate) const MAX: Self = Self(u64::MAX / 4);
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Longest record.
pub const RECORD_BYTES_MAX: usize = 256 << 20;

/// Longest file that is written: a full memory buffer and one longest record fit.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"NYALAWAL";
const VERSION: u32 = 1;
/// Incompatible feature: there may be fills between the records.
const FILLS: u32 = 1;

// Offsets in the file header, each from the one before.
const AT_VERSION: usize = MAGIC.len();
const AT_COMPATIBLE: usize = AT_VERSION + 4;
const AT_INCOMPATIBLE: usize = AT_COMPATIBLE + 4;
const AT_RESERVED: usize = AT_INCOMPATIBLE + 4;
const AT_SEQUENCE: usize = AT_RESERVED + 4;
const AT_BASE: usize = AT_SEQUENCE + 8;
const AT_PREVIOUS_END: usize = AT_BASE + 8;
const AT_HEADER_CRC: usize = FILE_HEADER_BYTES - 4;

const FILE_HEADER_BYTES: usize = 64;
/// The second copy lies in a sector of its own.
const SECOND_COPY: usize = 512;
/// Offset of the first record.
pub(crate) const DATA_START: usize = 1024;

/// Length of a record's header.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;

/// In a record's length: it is a fill, whose payload means nothing.
const FILL_BIT: u32 = 1 << 31;

const _: () = assert!(AT_PREVIOUS_END + 8 <= AT_HEADER_CRC);
const _: () = assert!(SECOND_COPY + FILE_HEADER_BYTES <= DATA_START);
const _: () = assert!(RECORD_BYTES_MAX < FILL_BIT as usize);

/// What a file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// Order among the files, same as in the name.
    pub(crate) sequence: u64,
    /// Position of the first byte at [`DATA_START`].
    pub(crate) base: Lsn,
    /// Where the records of the files before this one end.
    pub(crate) previous_end: Lsn,
}

/// Why a header is not one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The bytes are not what was written.
    Damaged(&'static str),
    /// Written by a later version.
    Unsupported(String),
}

/// The header read from a file and whether only one of its copies was good.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadHeader {
    pub(crate) header: FileHeader,
    /// Offset of the damaged copy.
    pub(crate) damaged_copy: Option<u64>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("BUG: four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("BUG: eight bytes"))
}

impl FileHeader {
    /// Everything before [`DATA_START`].
    pub(crate) fn encode(&self) -> [u8; DATA_START] {
        let mut copy = [0; FILE_HEADER_BYTES];
        copy[..AT_VERSION].copy_from_slice(&MAGIC);
        copy[AT_VERSION..AT_COMPATIBLE].copy_from_slice(&VERSION.to_le_bytes());
        copy[AT_INCOMPATIBLE..AT_RESERVED].copy_from_slice(&FILLS.to_le_bytes());
        copy[AT_SEQUENCE..AT_BASE].copy_from_slice(&self.sequence.to_le_bytes());
        copy[AT_BASE..AT_PREVIOUS_END].copy_from_slice(&self.base.0.to_le_bytes());
        copy[AT_PREVIOUS_END..AT_PREVIOUS_END + 8]
            .copy_from_slice(&self.previous_end.0.to_le_bytes());
        let crc = crc32c(&copy[..AT_HEADER_CRC]);
        copy[AT_HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        let mut bytes = [0; DATA_START];
        bytes[..FILE_HEADER_BYTES].copy_from_slice(&copy);
        bytes[SECOND_COPY..SECOND_COPY + FILE_HEADER_BYTES].copy_from_slice(&copy);
        bytes
    }

    /// Reads the header of the file that is named after `sequence`.
    pub(crate) fn decode(bytes: &[u8], sequence: u64) -> Result<ReadHeader, HeaderError> {
        let copy = |at: usize| match bytes.get(at..at + FILE_HEADER_BYTES) {
            Some(copy) => Self::decode_copy(copy, sequence),
            None => Err(HeaderError::Damaged("the file ends inside its header")),
        };
        match (copy(0), copy(SECOND_COPY)) {
            (Err(unsupported @ HeaderError::Unsupported(_)), _) => Err(unsupported),
            (Ok(header), second) => Ok(ReadHeader {
                header,
                damaged_copy: (second != Ok(header)).then_some(SECOND_COPY as u64),
            }),
            (Err(_), Ok(header)) => Ok(ReadHeader { header, damaged_copy: Some(0) }),
            (Err(first), Err(_)) => Err(first),
        }
    }

    fn decode_copy(copy: &[u8], sequence: u64) -> Result<Self, HeaderError> {
        if copy[..AT_VERSION] != MAGIC {
            return Err(HeaderError::Damaged("the header does not start as one"));
        }
        if crc32c(&copy[..AT_HEADER_CRC]) != u32_at(copy, AT_HEADER_CRC) {
            return Err(HeaderError::Damaged("the checksum of the header does not match"));
        }
        let version = u32_at(copy, AT_VERSION);
        if version != VERSION {
            return Err(HeaderError::Unsupported(format!("format version {version} is unknown")));
        }
        let features = u32_at(copy, AT_INCOMPATIBLE) & !FILLS;
        if features != 0 {
            let detail = format!("format features {features:#x} are unknown");
            return Err(HeaderError::Unsupported(detail));
        }
        let header = Self {
            sequence: u64_at(copy, AT_SEQUENCE),
            base: Lsn(u64_at(copy, AT_BASE)),
            previous_end: Lsn(u64_at(copy, AT_PREVIOUS_END)),
        };
        if header.sequence != sequence {
            return Err(HeaderError::Damaged("the header belongs to a file of another name"));
        }
        if header.base > Lsn::MAX || header.previous_end > header.base {
            return Err(HeaderError::Damaged("the positions in the header are impossible"));
        }
        Ok(header)
    }
}

/// A record's header. A record without payload is a seal: it only states what is durable, as does a
/// fill, which takes room so that what follows starts with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) is_fill: bool,
    /// Length of the payload.
    pub(crate) payload_bytes: u32,
    /// Checksum of the payload.
    pub(crate) payload_crc: u32,
    /// This many bytes before the record's start, everything was known to be durable; saturates.
    pub(crate) durable_back: u32,
}

impl RecordHeader {
    /// The header of a record that starts at `start`.
    pub(crate) fn encode(&self, start: Lsn) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        let length = self.payload_bytes | if self.is_fill { FILL_BIT } else { 0 };
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.durable_back.to_le_bytes());
        let crc = Self::checksum(&bytes[..12], start);
        bytes[12..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at `start`, if these bytes are one. Cheap for bytes that are not: most are told
    /// apart by a length above `payload_bytes_max`.
    #[inline]
    pub(crate) fn decode(
        bytes: &[u8; RECORD_HEADER_BYTES],
        start: Lsn,
        payload_bytes_max: usize,
    ) -> Option<Self> {
        let length = u32_at(bytes, 0);
        let (payload_bytes, is_fill) = (length & !FILL_BIT, length & FILL_BIT != 0);
        if payload_bytes as usize > payload_bytes_max {
            return None;
        }
        let durable_back = u32_at(bytes, 8);
        if u64::from(durable_back) > start.0
            || Self::checksum(&bytes[..12], start) != u32_at(bytes, 12)
        {
            return None;
        }
        Some(Self { is_fill, payload_bytes, payload_crc: u32_at(bytes, 4), durable_back })
    }

    fn checksum(fields: &[u8], start: Lsn) -> u32 {
        crc32c_append(crc32c(&start.0.to_le_bytes()), fields)
    }
}

#[cfg(test)]
pub(crate) mod tests;
