//! Wire formats in: bytes from a client become a [`model::LineBatch`].
//!
//! Knows no store and reads no clock: whoever calls says what time rows without one get.

pub mod line_protocol;
pub mod prometheus;

/// Entrances for fuzzing.
pub mod fuzzing {
    use crate::line_protocol::{LineParser, ParseOptions, Precision};

    /// Parses `data` as a body of line protocol and touches everything that comes out.
    pub fn line_protocol(data: &[u8]) {
        let options = ParseOptions { precision: Precision::Nanosecond, default_time_ns: 0 };
        let parsed = LineParser::new().parse(data, &options);
        for row in &parsed.batch.rows {
            let _ = (parsed.batch.raw_key(row), parsed.batch.line(row));
            let fields = &parsed.batch.layouts[row.layout as usize].fields;
            for (field, slot) in fields.iter().zip(parsed.batch.row_values(row)) {
                if field.field_type == model::FieldType::String {
                    assert!(std::str::from_utf8(parsed.batch.string(*slot)).is_ok());
                }
            }
        }
    }
}
