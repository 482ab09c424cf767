//! Doors for fuzzing: bytes in, no panic out.

use crate::format::{DATA_START, FileHeader, Lsn};
use crate::scan::{Item, Scanner};

/// Reads `bytes` as a whole log file, the way recovery does. Returns the number of records.
///
/// # Panics
/// If the scanner breaks its promise to cover all bytes in order.
#[must_use]
pub fn read_file(bytes: &[u8]) -> usize {
    let base = FileHeader::decode(bytes, 1).map_or(Lsn(0), |read| read.header.base);
    let data = bytes.get(DATA_START..).unwrap_or_default();
    let mut at = base;
    let mut records = 0;
    for item in Scanner::new(data, base) {
        let end = match item {
            Item::Record { end, .. } => {
                records += 1;
                end
            }
            Item::Damaged { start, end, recognised_end } => {
                assert!(start == at && recognised_end <= end, "BUG: damage out of order");
                end
            }
        };
        assert!(end > at, "BUG: the scanner stands still");
        at = end;
    }
    assert!(at.0 - base.0 == data.len() as u64, "BUG: bytes were left out");
    records
}
