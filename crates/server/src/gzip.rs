//! Gzip, both ways.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

/// Why a body cannot be unpacked. The texts are InfluxDB's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("{0}")]
    Broken(&'static str),
    /// There is more in it than is allowed.
    #[error("more than {0} bytes")]
    TooLong(usize),
}

/// Bytes unpacked at a time, so that little more than the limit is ever held.
const STEP_BYTES: usize = 64 << 10;

/// Unpacks a whole body of at most `bytes_max` bytes; `room` is asked before memory for that many
/// bytes in all is taken.
pub(crate) fn unpack<E: From<UnpackError>>(
    packed: &[u8],
    bytes_max: usize,
    mut room: impl FnMut(usize) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    if packed.is_empty() {
        return Err(UnpackError::Broken("EOF").into());
    }
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

/// Packs an answer piece by piece.
#[derive(Debug)]
pub(crate) struct Packer(GzEncoder<Vec<u8>>);

impl Packer {
    pub(crate) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Adds a piece; gives what is ready to be sent, with `flush` all of it.
    pub(crate) fn add(&mut self, bytes: &[u8], flush: bool) -> Vec<u8> {
        const NEVER_FAILS: &str = "BUG: writing to memory failed";
        self.0.write_all(bytes).expect(NEVER_FAILS);
        if flush {
            self.0.flush().expect(NEVER_FAILS);
        }
        std::mem::take(self.0.get_mut())
    }

    /// Gives the end.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0.finish().expect("BUG: writing to memory failed")
    }
}

/// Packs a whole answer.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packer = Packer::new();
    let mut out = packer.add(bytes, false);
    out.extend_from_slice(&packer.finish());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpack_all(packed: &[u8], max: usize) -> Result<Vec<u8>, UnpackError> {
        unpack(packed, max, |_| Ok(()))
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
        assert_eq!(outcome, Err(UnpackError::TooLong(1 << 20)));
        assert!(most <= (1 << 20) + 2 * STEP_BYTES, "{most}");
        assert_eq!(unpack_all(&pack(&[7; 1000]), 1000), Ok(vec![7; 1000]), "the limit is allowed");
    }

    #[test]
    fn no_room() {
        let packed = pack(&[1; 1000]);
        let refused = UnpackError::Broken("no room");
        assert_eq!(unpack(&packed, 10_000, |_| Err(refused.clone())), Err(refused.clone()));
    }

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
            }
            packed.extend_from_slice(&packer.finish());
            prop_assert_eq!(unpack_all(&packed, 1 << 20), Ok(plain));
        }

        #[test]
        fn any_bytes_are_refused_or_unpacked(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut headed = vec![0x1f, 0x8b, 8, 0];
            headed.extend_from_slice(&bytes);
            let _ = (unpack_all(&bytes, 1000), unpack_all(&headed, 1000));
        }
    }
}
