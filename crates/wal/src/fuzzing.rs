//! Doors for fuzzing: bytes in, no panic out.

use std::ops::Range;

use crate::format::{DATA_START, FileHeader, Lsn, RecordHeader};
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
            Item::Fill { end, .. } => end,
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

/// Writes records and fills of the lengths that `data` names, damages some bytes of them, and reads: every
/// record that no damage touched must be found, and none that was never written.
///
/// `data` is a base, a number of records, their lengths, then the damage: a place and a byte to be
/// combined with the one there.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn damaged_file(data: &[u8]) {
    let Some((&[base, count], rest)) = data.split_first_chunk::<2>() else { return };
    let (lengths, damage) = rest.split_at(usize::from(count).min(rest.len()));
    let base = Lsn(u64::from(base) << 20);
    let (mut file, records) = write(base, lengths);
    let mut touched = vec![false; file.len()];
    for step in damage.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([step[0], step[1]]));
        if let Some(byte) = file.get_mut(at).filter(|_| step[2] != 0) {
            *byte ^= step[2];
            touched[at] = true;
        }
    }
    let mut found = Vec::new();
    for item in Scanner::new(&file, base) {
        if let Item::Record { end, payload, .. } = item {
            found.push((end, payload));
        }
    }
    let whole = |place: &Range<usize>| touched[place.clone()].iter().all(|touched| !touched);
    let expected: Vec<Lsn> = records
        .iter()
        .filter(|place| whole(place))
        .map(|place| Lsn(base.0 + place.end as u64))
        .collect();
    // Combining the same place twice may restore it, so more may be found, but nothing else.
    for end in &expected {
        assert!(found.iter().any(|(found, _)| found == end), "BUG: a good record was lost");
    }
    for (end, payload) in &found {
        let place = records.iter().find(|place| base.0 + place.end as u64 == end.0);
        let place = place.expect("BUG: a record that was never written");
        assert!(payload.iter().all(|byte| *byte == place.len() as u8), "BUG: a changed payload");
    }
}

/// Lengths from here on are fills.
const FILLS_FROM: u8 = 200;

/// Records, each made of its own length, and where they are, without the fills between them.
fn write(base: Lsn, lengths: &[u8]) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut file, mut places) = (Vec::new(), Vec::new());
    for length in lengths {
        let start = file.len();
        let bytes = crate::format::RECORD_HEADER_BYTES + usize::from(*length);
        let payload = vec![bytes as u8; usize::from(*length)];
        let is_fill = *length >= FILLS_FROM;
        let header = RecordHeader {
            is_fill,
            payload_bytes: u32::from(*length),
            payload_crc: if is_fill { 0 } else { crc32c::crc32c(&payload) },
            durable_back: 0,
        };
        file.extend_from_slice(&header.encode(Lsn(base.0 + start as u64)));
        file.extend_from_slice(&payload);
        if !is_fill {
            places.push(start..file.len());
        }
    }
    (file, places)
}
