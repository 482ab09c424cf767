//! Entry points for fuzz targets.

use crate::{Params, parse_query};

/// Parses arbitrary bytes; a query that parses must print to text that parses to the same query.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(query) = parse_query(&text, &Params::new()) else { return };
    let printed = query.to_string();
    if printed.contains("[REDACTED]") {
        return;
    }
    match parse_query(&printed, &Params::new()) {
        Ok(again) => assert_eq!(again, query, "BUG: {text:?} printed as {printed:?}"),
        Err(e) => panic!("BUG: {text:?} printed as {printed:?}, which is refused: {e}"),
    }
}
