//! Times that follow no line: of every so many'th row the time is kept, and pages that are slow in parts are, in pieces.
//!
//! A time is looked for among those that are known, without decoding anything, and rows are decoded from the last of them on.

use std::ops::Range;

use codec::{DecodeError, Effort, ExceptionPlaces, Waypoint};

/// Rows that are encoded together, as those of values (`thawed`).
const PIECE_ROWS: usize = 512;
/// Rows from one whose time is known to the next: what is decoded to find one row. An eighth of a byte a row, of three to
/// four that a page of such times takes.
pub(super) const KNOWN_ROWS: usize = 64;

/// Times of every [`KNOWN_ROWS`]th row of a page, from the first on.
#[derive(Debug)]
pub(super) struct Known {
    times: Box<[i64]>,
    /// Of a page that is read as it is, if it has many.
    exceptions: Option<ExceptionPlaces>,
}

impl Known {
    fn of(times: &[i64]) -> Self {
        let times = times.iter().step_by(KNOWN_ROWS).copied().collect();
        Self { times, exceptions: None }
    }

    /// Of times that are read from their page, which is this.
    pub(super) fn of_page(times: &[i64], page: &[u8]) -> Self {
        Self { exceptions: ExceptionPlaces::of_i64(page, times.len()), ..Self::of(times) }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let of_places = self.exceptions.as_ref().map_or(0, ExceptionPlaces::memory_bytes);
        size_of_val(&*self.times) + of_places
    }

    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    /// The time of one row, if it is known.
    fn at(&self, row: usize) -> Option<i64> {
        row.is_multiple_of(KNOWN_ROWS).then(|| self.times[row / KNOWN_ROWS])
    }

    /// What is known of the last row before `row`, or of it, in a page whose first row is `first`.
    fn waypoint(&self, row: usize, first: usize) -> Waypoint {
        let at = row / KNOWN_ROWS;
        let distance = self.times[at].wrapping_sub(self.times[first / KNOWN_ROWS]);
        let row = at * KNOWN_ROWS - first;
        let exceptions = self.exceptions.as_ref().map(|places| places.before(row));
        Waypoint { row, distance, exceptions: exceptions.unwrap_or_default() }
    }

    /// The time of one row of the page of `count` rows that these are of.
    pub(super) fn time_at(
        &self,
        page: &[u8],
        count: usize,
        row: usize,
    ) -> Result<i64, DecodeError> {
        match self.at(row) {
            Some(time) => Ok(time),
            None => {
                codec::integer_from(page, count, row, self.waypoint(row, 0)).map(u64::cast_signed)
            }
        }
    }

    /// Adds the times of some rows of that page to `out`.
    pub(super) fn append(
        &self,
        page: &[u8],
        count: usize,
        rows: Range<usize>,
        out: &mut Vec<i64>,
    ) -> Result<(), DecodeError> {
        if rows.is_empty() {
            return Ok(());
        }
        let waypoint = self.waypoint(rows.start, 0);
        codec::decode_i64_from(page, count, rows, waypoint, out)
    }
}

/// The times of a page that is slow in parts: pages of few rows, one behind the other.
#[derive(Debug)]
pub(super) struct Pieces {
    rows: usize,
    known: Known,
    /// Where each piece ends.
    ends: Box<[u32]>,
    bytes: Box<[u8]>,
}

impl Pieces {
    pub(super) fn of(times: &[i64]) -> Self {
        let mut bytes = Vec::new();
        let encode = |piece: &[i64]| {
            // So few rows are packed well without a search for what stands out of them.
            codec::encode_i64(piece, Effort::Fast, &mut bytes);
            u32::try_from(bytes.len()).expect("BUG: a page of 4 GiB")
        };
        let ends = times.chunks(PIECE_ROWS).map(encode).collect();
        Self { rows: times.len(), known: Known::of(times), ends, bytes: bytes.into() }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.known.memory_bytes() + size_of_val(&*self.ends) + self.bytes.len()
    }

    pub(super) fn known(&self) -> &Known {
        &self.known
    }

    /// The time of one row.
    pub(super) fn at(&self, row: usize) -> i64 {
        if let Some(time) = self.known.at(row) {
            return time;
        }
        let (page, first) = self.piece(row / PIECE_ROWS);
        let count = PIECE_ROWS.min(self.rows - first);
        let bits = codec::integer_from(page, count, row - first, self.known.waypoint(row, first));
        bits.expect("BUG: a piece was encoded wrongly").cast_signed()
    }

    /// Adds the times of some rows to `out`.
    pub(super) fn append(&self, rows: Range<usize>, out: &mut Vec<i64>) {
        out.reserve(rows.len());
        let mut from = rows.start;
        while from < rows.end {
            let (page, first) = self.piece(from / PIECE_ROWS);
            let count = PIECE_ROWS.min(self.rows - first);
            let to = rows.end.min(first + count);
            let waypoint = self.known.waypoint(from, first);
            codec::decode_i64_from(page, count, from - first..to - first, waypoint, out)
                .expect("BUG: a piece was encoded wrongly");
            from = to;
        }
    }

    /// The page of a piece, and its first row.
    fn piece(&self, piece: usize) -> (&[u8], usize) {
        let start = piece.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.bytes[start as usize..self.ends[piece] as usize], piece * PIECE_ROWS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_rows_come_back(
            steps in prop::collection::vec(0i64..1000, 1..1700),
            // Multiples of something are scaled, and some are far apart.
            unit in prop::sample::select(vec![1i64, 1_000_000, 1 << 50]),
            start: i64,
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let times: Vec<i64> = steps
                .iter()
                .scan(start, |time, step| {
                    *time = time.wrapping_add(step.wrapping_mul(unit));
                    Some(*time)
                })
                .collect();
            let pieces = Pieces::of(&times);
            let (a, b) = (ends.0.index(times.len() + 1), ends.1.index(times.len() + 1));
            let rows = a.min(b)..a.max(b);
            let mut out = vec![7];
            pieces.append(rows.clone(), &mut out);
            prop_assert_eq!(&out[1..], &times[rows.clone()]);
            let mut page = Vec::new();
            codec::encode_i64(&times, Effort::Hot, &mut page);
            let known = Known::of_page(&times, &page);
            out.truncate(1);
            known.append(&page, times.len(), rows.clone(), &mut out).unwrap();
            prop_assert_eq!(&out[1..], &times[rows.clone()]);
            for (row, time) in times.iter().enumerate().skip(rows.start).take(2 * KNOWN_ROWS) {
                prop_assert_eq!(pieces.at(row), *time);
                prop_assert_eq!(known.time_at(&page, times.len(), row).unwrap(), *time);
            }
        }
    }
}
