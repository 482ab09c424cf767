//! The parts of a line: key, fields, end; fast where they are as expected, exact where not.

use std::ops::Range;

use memchr::memchr3;
use model::{FieldType, KeyError, SeriesKey, string_slot};

use super::layouts::{RawField, RawLayout};
use super::value;

/// Reads fields that are exactly those of `layout`. Returns where they end (a space or a line end),
/// `None` if anything differs; what was added to `values` and `strings` is the caller's to remove.
#[inline]
pub(super) fn verify(
    text: &[u8],
    start: usize,
    layout: &RawLayout<'_>,
    values: &mut Vec<u64>,
    strings: &mut Vec<u8>,
) -> Option<usize> {
    let mut at = start;
    for (index, (name, field_type)) in layout.fields.iter().enumerate() {
        if index > 0 {
            if text.get(at) != Some(&b',') {
                return None;
            }
            at += 1;
        }
        if !text.get(at..at + name.len()).is_some_and(|found| same(found, name)) {
            return None;
        }
        let (bits, end) = read(text, at + name.len(), *field_type, strings)?;
        values.push(bits);
        at = end;
    }
    match text.get(at) {
        Some(b',') => None,
        _ => Some(at),
    }
}

/// Whether two texts of one length are the same. Names are a dozen bytes long: two words each, for which
/// a call of `memcmp` would take longer than the comparing.
#[inline]
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    let (Some(a_end), Some(b_end)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) else {
        return a.iter().eq(b);
    };
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let (a_words, b_words) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    // The last word overlaps the one before where the length is no multiple of eight.
    word(a_end) == word(b_end) && a_words.iter().zip(b_words).all(|(a, b)| word(a) == word(b))
}

/// Reads a value of a known type as the bits of a slot.
#[inline]
fn read(
    text: &[u8],
    at: usize,
    field_type: FieldType,
    strings: &mut Vec<u8>,
) -> Option<(u64, usize)> {
    match field_type {
        FieldType::Integer => value::read_integer(text, at).map(|(v, end)| (v as u64, end)),
        FieldType::Float => value::read_float(text, at).map(|(v, end)| (v.to_bits(), end)),
        FieldType::Boolean => value::read_boolean(text, at).map(|(v, end)| (u64::from(v), end)),
        FieldType::Unsigned => value::read_unsigned(text, at),
        FieldType::String => value::read_string(text, at, strings)
            .map(|((start, len), end)| (string_slot(start, len), end)),
    }
}

/// Where a line ends.
pub(super) struct LineEnd {
    /// Behind its last byte.
    pub(super) end: usize,
    /// Where the next one starts.
    pub(super) next: usize,
    /// A quoted value is not closed in the whole text.
    pub(super) is_open: bool,
}

/// Where the line that starts at `start` ends, and where the next one starts. A newline inside a
/// quoted value is data; quotes count only where a value can start, after `=` behind the key.
pub(super) fn exact_line_end(text: &[u8], start: usize) -> LineEnd {
    let mut at = start;
    let (mut in_fields, mut quoted) = (false, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if text.get(at + 1) != Some(&b'\n') => at += 1,
            b' ' => in_fields = true,
            b'"' if quoted => quoted = false,
            b'"' if in_fields && text[at - 1] == b'=' => quoted = true,
            b'\n' if !quoted => break,
            _ => {}
        }
        at += 1;
    }
    let mut end = at.min(text.len());
    if quoted {
        // Never closed: the line ends at its first newline, so that its neighbours survive.
        end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
    }
    LineEnd { end: without_cr(text, start, end), next: end + 1, is_open: quoted }
}

fn without_cr(text: &[u8], start: usize, end: usize) -> usize {
    if end > start && text[end - 1] == b'\r' { end - 1 } else { end }
}

/// Length of the raw key: up to the first unescaped space.
pub(super) fn key_len(line: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = line.get(at..).and_then(|rest| memchr3(b' ', b'\\', b'\n', rest)) {
        at += found;
        match line[at] {
            b'\\' => at += 2,
            b' ' => return at,
            _ => at += 1,
        }
    }
    line.len()
}

/// InfluxDB's reason against a raw key, if there is one.
pub(super) fn check_key(key: &[u8]) -> Result<(), String> {
    match SeriesKey::parse(key) {
        // The key is the whole line then: what comes after it is missing.
        Ok(_) | Err(KeyError::OpenEscape) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The fields of a line, and where they end.
pub(super) struct Fields {
    pub(super) fields: Vec<RawField>,
    pub(super) end: usize,
}

/// Parses the fields in `range`, up to an unescaped, unquoted space or the end of the range.
pub(super) fn parse(
    text: &[u8],
    range: Range<usize>,
    values: &mut Vec<u64>,
    strings: &mut Vec<u8>,
) -> Result<Fields, String> {
    let line = &text[..range.end];
    let mut fields = Vec::new();
    let mut at = range.start;
    if at >= line.len() {
        return Err("missing fields".to_owned());
    }
    loop {
        let name_end = name_end(line, at);
        if line.get(name_end) != Some(&b'=') {
            return Err("invalid field format".to_owned());
        }
        if name_end == at {
            return Err("missing field key".to_owned());
        }
        let name = at..name_end + 1;
        let (bits, field_type, end) = any_value(line, name_end + 1, strings)?;
        values.push(bits);
        fields.push(RawField { name, field_type });
        at = end;
        match line.get(at) {
            Some(b',') => at += 1,
            None | Some(b' ') => return Ok(Fields { fields, end: at }),
            Some(_) => return Err("invalid field format".to_owned()),
        }
    }
}

/// Where the field name that starts at `at` ends: at an unescaped `=`, `,`, space or the line's end.
fn name_end(line: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = line.get(at) {
        match byte {
            b'\\' => at += 2,
            b'=' | b',' | b' ' => return at,
            _ => at += 1,
        }
    }
    line.len()
}

/// Reads a value whose type only its text tells.
fn any_value(
    line: &[u8],
    at: usize,
    strings: &mut Vec<u8>,
) -> Result<(u64, FieldType, usize), String> {
    match line.get(at) {
        None | Some(b',' | b' ') => Err("missing field value".to_owned()),
        Some(b'"') => {
            let ((start, len), end) =
                value::read_string(line, at, strings).ok_or("unbalanced quotes")?;
            Ok((string_slot(start, len), FieldType::String, end))
        }
        Some(b'0'..=b'9' | b'.' | b'-' | b'n' | b'N') => number(line, at),
        Some(_) => {
            let len = line[at..].iter().take_while(|b| !matches!(b, b',' | b' ')).count();
            match value::read_boolean(line, at) {
                Some((value, end)) if end == at + len => {
                    Ok((u64::from(value), FieldType::Boolean, end))
                }
                _ => Err("invalid boolean".to_owned()),
            }
        }
    }
}

fn number(line: &[u8], at: usize) -> Result<(u64, FieldType, usize), String> {
    let len = line[at..].iter().take_while(|b| !matches!(b, b',' | b' ')).count();
    let end = at + len;
    let invalid = || "invalid number".to_owned();
    let text = std::str::from_utf8(&line[at..end]).map_err(|_| invalid())?;
    let digits_only = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = text.strip_suffix('i') {
        if !digits_only(number.strip_prefix('-').unwrap_or(number)) {
            return Err(invalid());
        }
        let value =
            number.parse::<i64>().map_err(|_| out_of_range("integer", "ParseInt", number))?;
        return Ok((value as u64, FieldType::Integer, end));
    }
    if let Some(number) = text.strip_suffix('u') {
        if !digits_only(number) {
            return Err(invalid());
        }
        let value =
            number.parse::<u64>().map_err(|_| out_of_range("unsigned", "ParseUint", number))?;
        return Ok((value, FieldType::Unsigned, end));
    }
    match value::read_float(line, at) {
        Some((value, stop)) if stop == end => Ok((value.to_bits(), FieldType::Float, end)),
        _ if looks_like_float(text) => Err("invalid float".to_owned()),
        _ => Err(invalid()),
    }
}

/// Whether only the value of a number is wrong: it is out of range or its exponent lacks digits.
fn looks_like_float(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let mut previous = ' ';
    let legal = text.chars().enumerate().all(|(at, next)| {
        let before = std::mem::replace(&mut previous, next);
        match next {
            '0'..='9' | '.' => true,
            'e' | 'E' => at > 0,
            '+' | '-' => matches!(before, 'e' | 'E'),
            _ => false,
        }
    });
    let points = text.matches('.').count();
    legal && points <= 1 && text.len() > points
}

fn out_of_range(what: &str, function: &str, number: &str) -> String {
    format!(
        "unable to parse {what} {number}: strconv.{function}: parsing \"{number}\": value out of range"
    )
}
