//! Entry points for fuzz targets.

use store::CatalogDocument;

use crate::document::{decode, encode};

/// Reads `data` as the catalog's document. What is accepted must come back when it is written.
///
/// # Panics
/// When it does not, which is a bug.
pub fn document(data: &[u8]) {
    let version = 1;
    let Ok(state) = decode(&CatalogDocument { version, bytes: data.to_vec() }) else { return };
    let bytes = encode(&state);
    let again = decode(&CatalogDocument { version, bytes: bytes.clone() });
    let again = again.expect("BUG: a written document is refused");
    assert_eq!(again.databases, state.databases, "BUG: databases changed");
    assert_eq!(encode(&again), bytes, "BUG: a document has two forms");
}
