//! Unpacking bodies.
//!
//! A body is nearly always one file that says at its end how long it is: that much memory is made ready, and
//! libdeflate unpacks into it in one go, twice as fast as what has to be able to stop anywhere. Whatever is
//! otherwise, or wrong, is unpacked step by step from its beginning, which also finds InfluxDB's words for it.
//!
//! Invariant: both ways accept the same bodies and give the same bytes.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use libdeflater::Decompressor;
use memchr::memmem;

use crate::pool::Pool;

/// Why a body cannot be unpacked. The texts are InfluxDB's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("{0}")]
    Broken(&'static str),
    /// There is more in it than is allowed.
    #[error("more than {0} bytes")]
    TooLong(usize),
}

/// Unpackers that wait for the next body, with the memory of the last.
static IDLE: Pool<Unpacker> = Pool::new(4);

/// More memory than this is given back to the system: an agent's 10,000 rows are 3.5 MB.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Bytes unpacked at a time, so that little more than the limit is ever held.
const STEP_BYTES: usize = 64 << 10;

/// How a file begins (RFC 1952, section 2.3.1), with the only method there is.
const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
/// Flags that are looked at by the exact way only: a checksum of the header, and those that mean nothing yet.
const FLAGS_UNUSUAL: u8 = 0xe2;
/// The shortest header, and the length at the end.
const HEADER_BYTES: usize = 10;
const LENGTH_BYTES: usize = 4;
/// Deflate packs 258 bytes into two bits at best.
const RATIO_MAX: usize = 1032;

struct Unpacker {
    decompressor: Decompressor,
    /// As long as the longest body it was used for: what is written over need not be cleared first.
    out: Vec<u8>,
}

/// An unpacked body.
pub(crate) struct Unpacked {
    /// There until this is dropped.
    unpacker: Option<Unpacker>,
    len: usize,
}

impl AsRef<[u8]> for Unpacked {
    fn as_ref(&self) -> &[u8] {
        self.unpacker.as_ref().map_or(&[], |unpacker| &unpacker.out[..self.len])
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        if let Some(unpacker) = self.unpacker.take()
            && unpacker.out.capacity() <= KEPT_BYTES_MAX
        {
            IDLE.give_back(unpacker);
        }
    }
}

/// Unpacks a whole body of at most `bytes_max` bytes; `room` is asked before memory for that many
/// bytes in all is taken.
pub(crate) fn unpack<E: From<UnpackError>>(
    packed: &[u8],
    bytes_max: usize,
    mut room: impl FnMut(usize) -> Result<(), E>,
) -> Result<Unpacked, E> {
    if packed.is_empty() {
        return Err(UnpackError::Broken("EOF").into());
    }
    let new = || Unpacker { decompressor: Decompressor::new(), out: Vec::new() };
    let mut unpacker = IDLE.take().unwrap_or_else(new);
    let mut len = None;
    if let Some(announced) = announced_len(packed).filter(|len| *len <= bytes_max) {
        room(announced)?;
        len = unpacker.in_one_go(packed, announced);
    }
    let len = match len {
        Some(len) => len,
        None => {
            // Not both at a time.
            unpacker.out = Vec::new();
            unpacker.out = step_by_step(packed, bytes_max, room)?;
            unpacker.out.len()
        }
    };
    Ok(Unpacked { unpacker: Some(unpacker), len })
}

/// The length of what is in `packed`, if it is one usual file: to unpack that many bytes from its beginning
/// proves that it is.
pub(crate) fn announced_len(packed: &[u8]) -> Option<usize> {
    let (before, announced) = packed.split_last_chunk::<LENGTH_BYTES>()?;
    let is_usual = before.starts_with(MAGIC) && before.get(MAGIC.len())? & FLAGS_UNUSUAL == 0;
    // Bytes behind a file, another one perhaps, are not noticed by who unpacks the first alone. But then the
    // length that it ends with stands before them too.
    let is_alone = memmem::find(before.get(HEADER_BYTES..)?, announced).is_none();
    let announced = u32::from_le_bytes(*announced) as usize;
    let is_possible = announced / RATIO_MAX <= packed.len();
    (is_usual && is_alone && is_possible).then_some(announced)
}

impl Unpacker {
    /// Unpacks one file of `announced` bytes; `None` if it is not that.
    fn in_one_go(&mut self, packed: &[u8], announced: usize) -> Option<usize> {
        if self.out.len() < announced {
            self.out.reserve_exact(announced - self.out.len());
            self.out.resize(announced, 0);
        }
        let unpacked = self.decompressor.gzip_decompress(packed, &mut self.out[..announced]);
        unpacked.ok().filter(|len| *len == announced)
    }
}

/// Unpacks whatever it is.
fn step_by_step<E: From<UnpackError>>(
    packed: &[u8],
    bytes_max: usize,
    mut room: impl FnMut(usize) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut decoder = MultiGzDecoder::new(packed);
    let mut out = Vec::new();
    loop {
        let len = out.len();
        if out.capacity() - len < STEP_BYTES {
            let capacity = (len * 2).max(packed.len() * 4).max(STEP_BYTES).min(bytes_max);
            let capacity = capacity.max(len) + STEP_BYTES;
            room(capacity)?;
            out.reserve_exact(capacity - len);
        }
        out.resize(len + STEP_BYTES, 0);
        let read = match decoder.read(&mut out[len..]) {
            Ok(read) => read,
            Err(error) => return Err(UnpackError::Broken(reason(&error)).into()),
        };
        out.truncate(len + read);
        if out.len() > bytes_max {
            return Err(UnpackError::TooLong(bytes_max).into());
        }
        if read == 0 {
            return Ok(out);
        }
    }
}

/// What Go's decoder would have said.
fn reason(error: &io::Error) -> &'static str {
    let text = error.to_string();
    if error.kind() == io::ErrorKind::UnexpectedEof {
        "unexpected EOF"
    } else if text.contains("header") {
        "gzip: invalid header"
    } else if text.contains("checksum") {
        "gzip: invalid checksum"
    } else {
        "flate: corrupt input"
    }
}

/// Holds the two ways against each other; for tests and fuzz targets.
///
/// # Panics
/// When they differ, which is a bug.
pub(crate) fn both_ways_agree(packed: &[u8], bytes_max: usize) {
    let free = |_| Ok::<_, UnpackError>(());
    let either = unpack(packed, bytes_max, free);
    let exact = match packed {
        [] => Err(UnpackError::Broken("EOF")),
        _ => step_by_step(packed, bytes_max, free),
    };
    let either = either.as_ref().map(AsRef::as_ref);
    assert_eq!(either, exact.as_deref(), "BUG: a body is unpacked to this and to that");
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::super::pack;
    use super::*;

    fn unpack_all(packed: &[u8], max: usize) -> Result<Vec<u8>, UnpackError> {
        unpack(packed, max, |_| Ok(())).map(|unpacked| unpacked.as_ref().to_vec())
    }

    fn packed_at(level: u32, plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn broken_bodies() {
        let packed = pack(b"cpu v=1\ncpu v=2\n");
        let broken = |bytes: &[u8]| unpack_all(bytes, 1 << 20).unwrap_err().to_string();
        assert_eq!(broken(b""), "EOF");
        assert_eq!(broken(b"cpu v=1, not packed"), "gzip: invalid header");
        assert_eq!(broken(&packed[..packed.len() - 3]), "unexpected EOF");
        assert_eq!(broken(&packed[..12]), "unexpected EOF");
        let mut wrong = packed.clone();
        let at = wrong.len() - 6;
        wrong[at] ^= 1;
        assert_eq!(broken(&wrong), "gzip: invalid checksum");
    }

    #[test]
    fn bombs_are_cut_short() {
        let packed = pack(&vec![b'x'; 50 << 20]);
        assert!(packed.len() < 2_000_000);
        let mut most = 0;
        let outcome = unpack(&packed, 1 << 20, |bytes| {
            most = most.max(bytes);
            Ok::<_, UnpackError>(())
        });
        assert_eq!(outcome.err(), Some(UnpackError::TooLong(1 << 20)));
        assert!(most <= (1 << 20) + 2 * STEP_BYTES, "{most}");
        assert_eq!(unpack_all(&pack(&[7; 1000]), 1000), Ok(vec![7; 1000]), "the limit is allowed");
    }

    #[test]
    fn what_a_body_claims_to_be_is_not_believed_beyond_reason() {
        let mut packed = pack(b"cpu v=1");
        let at = packed.len() - 4;
        packed[at..].copy_from_slice(&(1u32 << 20).to_le_bytes());
        assert_eq!(announced_len(&packed), None);
        packed[at..].copy_from_slice(&8u32.to_le_bytes());
        assert_eq!(announced_len(&packed), Some(8));
        assert_eq!(
            unpack_all(&packed, 1 << 20),
            Err(UnpackError::Broken("gzip: invalid checksum"))
        );
    }

    #[test]
    fn no_room() {
        let packed = pack(&[1; 1000]);
        let refused = UnpackError::Broken("no room");
        let outcome = unpack(&packed, 10_000, |_| Err(refused.clone()));
        assert_eq!(outcome.err(), Some(refused));
    }

    #[test]
    fn several_files_are_one_body() {
        let one = packed_at(6, b"cpu v=1\n");
        let two = [one.clone(), one.clone()].concat();
        assert_eq!(unpack_all(&two, 100), Ok(b"cpu v=1\ncpu v=1\n".to_vec()));
        let mut no_second = two.clone();
        no_second[one.len()] = 0;
        assert_eq!(
            unpack_all(&no_second, 100),
            Err(UnpackError::Broken("gzip: invalid header")),
            "it ends as the first does"
        );
    }

    #[test]
    fn memory_of_the_body_before_is_used_and_nothing_of_it_seen() {
        for len in [100_000, 10, 0, 70_000] {
            let plain = vec![len as u8; len];
            assert_eq!(announced_len(&pack(&plain)), Some(len).filter(|len| *len > 0));
            assert_eq!(unpack_all(&pack(&plain), 1 << 20), Ok(plain));
        }
    }

    proptest! {
        #[test]
        fn both_ways_agree_whatever_comes(
            plain in prop::collection::vec(prop_oneof![4 => Just(b'a'), 1 => any::<u8>()], 0..3000),
            level in 0u32..10,
            files in 1usize..3,
            change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut packed = packed_at(level, &plain).repeat(files);
            if let Some((at, byte)) = change {
                let at = at.index(packed.len());
                packed[at] ^= byte;
            }
            if let Some(cut) = cut {
                packed.truncate(cut.index(packed.len()));
            }
            both_ways_agree(&packed, 4000);
        }

        #[test]
        fn any_bytes_are_refused_or_unpacked(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut headed = vec![0x1f, 0x8b, 8, 0];
            headed.extend_from_slice(&bytes);
            both_ways_agree(&bytes, 1000);
            both_ways_agree(&headed, 1000);
        }
    }
}
