//! The bytes of a body as they come over the wire.
//!
//! A piece that is long enough stays in the buffer that the connection read it into: a body of
//! megabytes is copied once, by the kernel, and not again to stand in one place.

use hyper::body::Bytes;
use memchr::{memchr, memrchr};

use crate::server::READ_BYTES_MAX;

/// A piece at least so long is kept with the buffer it was read into, which is at most twice as long.
const KEPT_BYTES_MIN: usize = READ_BYTES_MAX / 2;

/// Pieces of a body, in their order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: Vec<Bytes>,
    /// Short ones since then, put together.
    short: Vec<u8>,
    len: usize,
}

impl Pieces {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        if piece.len() >= KEPT_BYTES_MIN {
            self.seal();
            self.pieces.push(piece);
            return;
        }
        if self.short.len() + piece.len() > READ_BYTES_MAX {
            self.seal();
            self.short.reserve_exact(READ_BYTES_MAX);
        }
        self.short.extend_from_slice(&piece);
    }

    fn seal(&mut self) {
        if !self.short.is_empty() {
            self.pieces.push(Bytes::from(std::mem::take(&mut self.short)));
        }
    }

    /// Length of all of them, bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All bytes, if they stand in one place.
    pub(super) fn only(&mut self) -> Option<&[u8]> {
        self.seal();
        match &*self.pieces {
            [only] => Some(only),
            _ => None,
        }
    }

    /// All of them in one place.
    pub(crate) fn joined(mut self) -> Bytes {
        self.seal();
        match &mut *self.pieces {
            [only] => std::mem::take(only),
            pieces => Bytes::from(pieces.concat()),
        }
    }

    /// The same bytes in pieces each of which ends in a newline but the last: cut there, so that only
    /// what stands around a cut is copied.
    pub(crate) fn by_lines(mut self) -> Vec<Bytes> {
        self.seal();
        if self.pieces.len() < 2 {
            return self.pieces;
        }
        let mut lines = Vec::with_capacity(2 * self.pieces.len());
        // The start of a line that ends in a later piece.
        let mut open = Vec::new();
        for mut piece in self.pieces {
            if !open.is_empty() {
                let end = memchr(b'\n', &piece).map_or(piece.len(), |at| at + 1);
                open.extend_from_slice(&piece.split_to(end));
                if open.ends_with(b"\n") {
                    lines.push(Bytes::from(std::mem::take(&mut open)));
                }
            }
            let end = memrchr(b'\n', &piece).map_or(0, |at| at + 1);
            open.extend_from_slice(&piece.split_off(end));
            if !piece.is_empty() {
                lines.push(piece);
            }
        }
        if !open.is_empty() {
            lines.push(Bytes::from(open));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(texts: &[Vec<u8>]) -> Pieces {
        let mut pieces = Pieces::default();
        texts.iter().for_each(|text| pieces.push(Bytes::from(text.clone())));
        pieces
    }

    /// Pieces of lines, some of them long enough to be kept.
    fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let short = prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a')], 0..9);
        let long = (0usize..99).prop_map(|every| {
            let byte = |at| if every > 0 && at % (every * 999) == 0 { b'\n' } else { b'b' };
            (1..=KEPT_BYTES_MIN).map(byte).collect::<Vec<u8>>()
        });
        prop::collection::vec(prop_oneof![4 => short, 1 => long], 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn nothing_is_lost_and_pieces_end_with_lines(texts in texts()) {
            let whole = texts.concat();
            prop_assert_eq!(pieces(&texts).len(), whole.len());
            prop_assert_eq!(&pieces(&texts).joined()[..], &whole[..]);
            let lines = pieces(&texts).by_lines();
            prop_assert_eq!(lines.concat(), whole);
            for (at, piece) in lines.iter().enumerate() {
                prop_assert!(!piece.is_empty());
                prop_assert!(at + 1 == lines.len() || piece.ends_with(b"\n"), "piece {}", at);
            }
        }
    }

    #[test]
    fn long_pieces_stay_where_they_are_and_short_ones_do_not_add_up() {
        let long = Bytes::from(vec![b'\n'; KEPT_BYTES_MIN]);
        let mut pieces = Pieces::default();
        pieces.push(long.clone());
        for _ in 0..3 * READ_BYTES_MAX / 1000 {
            pieces.push(Bytes::from(vec![b'\n'; 1000]));
        }
        let lines = pieces.by_lines();
        assert_eq!(lines[0].as_ptr(), long.as_ptr());
        assert!(lines.iter().all(|piece| piece.len() <= READ_BYTES_MAX));
        assert_eq!(lines.len(), 4);
    }
}
