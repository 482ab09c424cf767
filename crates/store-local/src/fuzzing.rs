//! Entry points for fuzz targets.

use crate::manifest::{Edit, ManifestState, decode_edits, encode_edits};
use crate::write::Record;

/// Decodes `data` as a record of the log. What is accepted must come back when it is encoded.
///
/// # Panics
/// When it does not, which is a bug.
pub fn log_record(data: &[u8]) {
    // A page of one repeated value makes any number of rows of a few bytes: bounded here, so that
    // what a fuzzer tries stays small.
    const ROWS_MAX: u64 = 1 << 12;
    let Ok(record) = Record::decode_bounded(data, ROWS_MAX) else { return };
    let bytes = record.encode();
    let again =
        Record::decode_bounded(&bytes, ROWS_MAX).expect("BUG: an encoded record is refused");
    assert_eq!(format!("{again:?}"), format!("{record:?}"), "BUG: a record changed");
    assert_eq!(again.encode(), bytes, "BUG: a record has two encodings");
}

/// Decodes `data` as a record of the manifest, and applies it. What is accepted must come back when
/// it is encoded, and a snapshot must say what the edits said.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn manifest_record(data: &[u8]) {
    let Ok(edits) = decode_edits(data) else { return };
    let again = decode_edits(&encode_edits(&edits)).expect("BUG: an encoded record is refused");
    assert_eq!(again, edits, "BUG: edits changed");
    let mut state = ManifestState::default();
    // An edit that does not fit what is there is refused; the others count.
    for edit in &edits {
        let _ = state.apply(edit);
    }
    let snapshot: Vec<Edit> = state.snapshot();
    let mut copy = ManifestState::default();
    for edit in &snapshot {
        copy.apply(edit).expect("BUG: a snapshot does not fit itself");
    }
    assert_eq!(copy.snapshot(), snapshot, "BUG: a snapshot says something else than the state");
}
