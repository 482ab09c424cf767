//! Entry points for fuzz targets.

use model::{FieldType, LineBatch, LineRow, SeriesKey, key_hash};

use crate::line_protocol::{LineParser, ParseOptions, Parsed, Precision};
use crate::prometheus::{BodyError, read_queries, write_rows};

const PRECISIONS: [Precision; 6] = [
    Precision::Nanosecond,
    Precision::Microsecond,
    Precision::Millisecond,
    Precision::Second,
    Precision::Minute,
    Precision::Hour,
];

/// Parses `data` as a body of line protocol, whose first byte picks the precision. The fast path and
/// the exact one must agree on every line, and rows must lie within the body.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn line_protocol(data: &[u8]) {
    let Some((first, body)) = data.split_first() else { return };
    let precision = PRECISIONS[usize::from(*first) % PRECISIONS.len()];
    let options = ParseOptions { precision, default_time_ns: 7 };
    let fast = LineParser::new().parse(body, &options);
    let exact = LineParser::new().parse_with(body, &options, true);
    assert_eq!(fast.problems, exact.problems, "BUG: the paths differ in what they refuse");
    assert_eq!(rows(&fast), rows(&exact), "BUG: the paths differ in what they read");
    let lines = body.split(|byte| *byte == b'\n').count();
    assert!(fast.batch.rows.len() + fast.problems.len() <= lines, "BUG: more rows than lines");
}

/// Reads `data` as the body of a remote write and of a remote read. Every row's key must name its
/// measurement, or be none at all.
///
/// # Panics
/// When that is not so, which is a bug.
pub fn prometheus(data: &[u8]) {
    let _ = read_queries(data);
    let batch = match write_rows(data) {
        Ok(parsed) => parsed.batch,
        Err(BodyError::Malformed(_) | BodyError::TooLarge) => return,
    };
    for row in &batch.rows {
        let key = batch.raw_key(row);
        assert_eq!(row.key_hash, key_hash(key), "BUG: the hash is another key's");
        assert!(f64::from_bits(batch.row_values(row)[0]).is_finite(), "BUG: nothing writes that");
        // The store refuses what is no key, by name.
        let Ok(key) = SeriesKey::parse(key) else { continue };
        let measurement = &*batch.layouts[row.layout as usize].measurement;
        assert_eq!(&*key.measurement, measurement, "BUG: a key of another measurement");
    }
}

/// All that a row says, names in place of numbers.
type Spelled<'a> = (LineRow, &'a str, Vec<(&'a str, FieldType, &'a [u8], u64)>);

fn rows<'a>(parsed: &'a Parsed<'_>) -> Vec<Spelled<'a>> {
    parsed.batch.rows.iter().map(|row| spelled(&parsed.batch, row)).collect()
}

fn spelled<'a>(batch: &'a LineBatch<'_>, row: &LineRow) -> Spelled<'a> {
    assert!(batch.line(row).starts_with(batch.raw_key(row)), "BUG: a key outside of its line");
    let layout = &batch.layouts[row.layout as usize];
    let fields = layout.fields.iter().zip(batch.row_values(row)).map(|(field, slot)| {
        let (text, bits) = match field.field_type {
            FieldType::String => (batch.string(*slot), 0),
            _ => (&b""[..], *slot),
        };
        assert!(std::str::from_utf8(text).is_ok(), "BUG: a string that is not UTF-8");
        (&*field.name, field.field_type, text, bits)
    });
    // Numbers that need not be the same.
    let row = LineRow { layout: 0, values_start: 0, ..*row };
    (row, &layout.measurement, fields.collect())
}
