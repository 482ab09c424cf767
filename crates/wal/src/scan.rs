//! Finds records among bytes that may be damaged, torn or left from a file's earlier life.
//!
//! Invariants
//! - Items come in the order of their positions and cover the bytes without a gap.
//! - A record is yielded only if the checksums of header and payload match at its position; a fill if
//!   that of its header does, since nothing is lost with its payload.
//! - Work is linear in the bytes: a damaged payload behind a good header is stepped over whole.
//!
//! Not here: whether damage is a torn write or corruption (see `recovery`).

use crate::format::{Lsn, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, RecordHeader};

/// One stretch of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A whole record, or a seal if `payload` is empty.
    Record {
        end: Lsn,
        payload: &'a [u8],
        /// Everything before this position was durable when the record was appended.
        durable: Lsn,
    },
    /// A record that means nothing but that.
    Fill { end: Lsn, durable: Lsn },
    /// Bytes that are no record.
    Damaged {
        start: Lsn,
        end: Lsn,
        /// End of the last record in it whose header is good; `start` if there is none.
        recognised_end: Lsn,
    },
}

/// Yields the records and the damage in the data of one file.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    data: &'a [u8],
    base: Lsn,
    at: usize,
    /// The record that ended the damage just yielded.
    found: Option<(usize, RecordHeader)>,
}

impl<'a> Scanner<'a> {
    /// Scans `data`, whose first byte has position `base`.
    pub(crate) fn new(data: &'a [u8], base: Lsn) -> Self {
        Self { data, base, at: 0, found: None }
    }

    fn lsn(&self, at: usize) -> Lsn {
        Lsn(self.base.0 + at as u64)
    }

    fn header_at(&self, at: usize) -> Option<RecordHeader> {
        let bytes = self.data.get(at..)?.first_chunk::<RECORD_HEADER_BYTES>()?;
        // Bytes never written. Skipped by value, so that no position makes them a seal.
        if *bytes == [0; RECORD_HEADER_BYTES] {
            return None;
        }
        let room = self.data.len() - at - RECORD_HEADER_BYTES;
        RecordHeader::decode(bytes, self.lsn(at), room.min(RECORD_BYTES_MAX))
    }

    fn payload(&self, at: usize, header: &RecordHeader) -> &'a [u8] {
        let start = at + RECORD_HEADER_BYTES;
        &self.data[start..start + header.payload_bytes as usize]
    }

    fn payload_is_good(&self, at: usize, header: &RecordHeader) -> bool {
        header.is_fill || crc32c::crc32c(self.payload(at, header)) == header.payload_crc
    }

    /// The next place after `at` that may hold a header: steps over zeros quickly.
    fn step(&self, at: usize) -> usize {
        const STEP: usize = 256;
        let mut next = at;
        while let Some(chunk) = self.data.get(next..next + STEP)
            && chunk[0] == 0
            && chunk.iter().fold(0, |any, byte| any | byte) == 0
        {
            next += STEP;
        }
        // A header may start with zeros that lie in the stretch.
        (at + 1).max(next.saturating_sub(RECORD_HEADER_BYTES - 1))
    }

    /// Steps over damage that starts at `self.at`.
    fn damage(&mut self) -> Item<'a> {
        let start = self.at;
        let mut recognised_end = start;
        let mut at = start;
        loop {
            if at + RECORD_HEADER_BYTES > self.data.len() {
                at = self.data.len();
                break;
            }
            if let Some(header) = self.header_at(at) {
                if self.payload_is_good(at, &header) {
                    self.found = Some((at, header));
                    break;
                }
                at += RECORD_HEADER_BYTES + header.payload_bytes as usize;
                recognised_end = at;
            } else {
                at = self.step(at);
            }
        }
        self.at = at;
        Item::Damaged {
            start: self.lsn(start),
            end: self.lsn(at),
            recognised_end: self.lsn(recognised_end),
        }
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.at == self.data.len() {
            return None;
        }
        let good = match self.found.take() {
            Some((at, header)) => {
                debug_assert_eq!(at, self.at);
                Some(header)
            }
            None => self.header_at(self.at).filter(|header| self.payload_is_good(self.at, header)),
        };
        let Some(header) = good else { return Some(self.damage()) };
        let payload = self.payload(self.at, &header);
        let durable = Lsn(self.lsn(self.at).0 - u64::from(header.durable_back));
        self.at += RECORD_HEADER_BYTES + payload.len();
        let end = self.lsn(self.at);
        Some(if header.is_fill {
            Item::Fill { end, durable }
        } else {
            Item::Record { end, payload, durable }
        })
    }
}

#[cfg(test)]
mod tests;
