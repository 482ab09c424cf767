//! Rows of a batch as line protocol.

use std::io::Write;

use model::key::push_escaped;
use model::{FieldType, LineBatch, LineRow};
use store::RejectedRow;

/// About what a time takes that the text did not have.
const TIME_BYTES: usize = 24;

/// About how long the lines of a batch are, bytes: what [`lines`] asks memory for.
pub(crate) fn bytes_of(batch: &LineBatch<'_>) -> usize {
    batch.text.len().saturating_add(batch.rows.len().saturating_mul(TIME_BYTES))
}

/// The rows that were not rejected, a line each, times in nanoseconds.
pub(crate) fn lines(batch: &LineBatch<'_>, rejected: &[RejectedRow]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes_of(batch));
    let mut refused = rejected.iter().map(|row| row.row as usize).peekable();
    for (at, row) in batch.rows.iter().enumerate() {
        if refused.next_if_eq(&at).is_none() {
            push_line(&mut text, batch, row);
        }
    }
    text
}

fn push_line(text: &mut Vec<u8>, batch: &LineBatch<'_>, row: &LineRow) {
    text.extend_from_slice(batch.raw_key(row));
    let Some(layout) = batch.layouts.get(row.layout as usize) else { return };
    let mut separator = b' ';
    for (field, slot) in layout.fields.iter().zip(batch.row_values(row)) {
        text.push(separator);
        separator = b',';
        push_escaped(text, field.name.as_bytes(), b",= ");
        text.push(b'=');
        push_value(text, batch, field.field_type, *slot);
    }
    push(text, format_args!(" {}\n", row.time_ns));
}

fn push_value(text: &mut Vec<u8>, batch: &LineBatch<'_>, field_type: FieldType, slot: u64) {
    match field_type {
        FieldType::Float => push(text, format_args!("{:?}", f64::from_bits(slot))),
        FieldType::Integer => push(text, format_args!("{}i", slot.cast_signed())),
        FieldType::Unsigned => push(text, format_args!("{slot}u")),
        FieldType::Boolean => push(text, format_args!("{}", slot != 0)),
        FieldType::String => {
            text.push(b'"');
            for byte in batch.string(slot) {
                if matches!(byte, b'"' | b'\\') {
                    text.push(b'\\');
                }
                text.push(*byte);
            }
            text.push(b'"');
        }
    }
}

fn push(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("BUG: a vector takes any bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ingest::line_protocol::{LineParser, ParseOptions, Precision};
    use store::RejectReason;

    #[test]
    fn what_was_stored_is_written_down_again() {
        let body = "m,b=1,a=x\\ y f=-0.5,i=-3i,t=true 5\nm,h=q f=1 6\nn s=\"a\\\"b\\\\\",e=1e300 7";
        let options = ParseOptions { precision: Precision::Second, default_time_ns: 0 };
        let parsed = LineParser::new().parse(body.as_bytes(), &options);
        let refused = RejectedRow { row: 1, reason: RejectReason::BeyondRetention };
        let text = lines(&parsed.batch, &[refused]);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "m,b=1,a=x\\ y f=-0.5,i=-3i,t=true 5000000000\n\
             n s=\"a\\\"b\\\\\",e=1e300 7000000000\n"
        );
    }
}
