//! Entry points for fuzz targets: what clients send before it is known to be a statement or rows.

pub use crate::auth::fuzzing::authorization;
pub use crate::v2::fuzzing::delete_predicate;

use crate::binding::bound_values;
use crate::gzip::{UnpackError, both_ways_agree, pack, unpack};
use crate::multipart;
use crate::params::{FormKind, Params};

/// Reads `data` as a form. Its first line is a content type, the second the query of a URL, the rest
/// the body. Parameters of parts must lie in the body.
///
/// # Panics
/// When they do not, which is a bug.
pub fn form(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let [kind, query, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let (kind, query) = (String::from_utf8_lossy(kind), String::from_utf8_lossy(query));
    let Some(kind) = FormKind::of_content_type(&kind) else { return };
    if let FormKind::Multipart { boundary } = &kind {
        let found = multipart::parts(body, boundary);
        let bytes: usize = found.iter().map(|part| part.content.len()).sum();
        assert!(bytes <= body.len(), "BUG: parts are larger than their body");
    }
    let params = Params::of_form(&kind, body, Some(&query));
    for name in ["q", "db", "params", "rp"] {
        let text = params.get(name);
        assert!(text.len() <= 3 * data.len(), "BUG: a value is larger than what was sent");
    }
    if let (Some(text), Ok(bound)) = (params.query_text(), bound_values(params.get("params"))) {
        let _ = influxql::parse_query(text, &bound);
    }
}

/// Reads `data` as the JSON of bound parameters, and uses each where a value may stand.
pub fn bound_parameters(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(bound) = bound_values(text) else { return };
    for name in ["a", "b", ""] {
        let statement = format!("SELECT v FROM m WHERE x = ${name}");
        let Ok(query) = influxql::parse_query(&statement, &bound) else { continue };
        assert_eq!(query.statements.len(), 1, "BUG: a bound value became a statement");
    }
}

/// Unpacks `data`, and packs and unpacks it. No more may come of it than is allowed and was asked for, both ways
/// to unpack must agree, and what was packed must come back.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn gzip(data: &[u8]) {
    const BYTES_MAX: usize = 1 << 16;
    let mut asked = 0;
    let room = |bytes| {
        asked = bytes;
        Ok::<_, UnpackError>(())
    };
    if let Ok(plain) = unpack(data, BYTES_MAX, room) {
        let len = plain.as_ref().len();
        assert!(len <= BYTES_MAX && len <= asked, "BUG: more than asked for");
    }
    both_ways_agree(data, BYTES_MAX);
    let again = unpack(&pack(data), data.len(), |_| Ok::<_, UnpackError>(()));
    assert_eq!(again.as_ref().map(AsRef::as_ref), Ok(data), "BUG: packing changed bytes");
}
