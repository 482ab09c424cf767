//! Field values.
//!
//! Each `read_*` takes the text and where the value starts, and returns the value and where it ends,
//! or `None` if the bytes are not such a value; it does not look at what follows the value.

use memchr::memchr2;

/// Powers of ten that binary64 holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Decimal digits that are read without a thought about overflow: 10^18 - 1 fits i64.
const SAFE_DIGITS: usize = 18;

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    let value = text.get(at)?.wrapping_sub(b'0');
    (value < 10).then_some(u64::from(value))
}

/// `-?[0-9]{1,18}i`.
#[inline]
pub(super) fn read_integer(text: &[u8], start: usize) -> Option<(i64, usize)> {
    let negative = text.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let mut at = first;
    let mut number = 0i64;
    while let Some(d) = digit(text, at) {
        // The digit behind the safe ones may not fit; the number is given up right after it.
        number = number.wrapping_mul(10).wrapping_add(d as i64);
        at += 1;
        if at - first > SAFE_DIGITS {
            return None;
        }
    }
    if at == first || text.get(at) != Some(&b'i') {
        return None;
    }
    Some((if negative { -number } else { number }, at + 1))
}

/// `[0-9]{1,18}u`.
#[inline]
pub(super) fn read_unsigned(text: &[u8], start: usize) -> Option<(u64, usize)> {
    let mut at = start;
    let mut number = 0u64;
    while let Some(d) = digit(text, at) {
        number = number.wrapping_mul(10).wrapping_add(d);
        at += 1;
        if at - start > SAFE_DIGITS {
            return None;
        }
    }
    (at > start && text.get(at) == Some(&b'u')).then_some((number, at + 1))
}

/// A float without exponent whose digits and scale are exact in binary64 (W. D. Clinger, "How to
/// read floating point numbers accurately", 1990); the rest goes to the standard library.
#[inline]
pub(super) fn read_float(text: &[u8], start: usize) -> Option<(f64, usize)> {
    let negative = text.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut mantissa) = (first, 0u64);
    while let Some(d) = digit(text, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(d);
        at += 1;
    }
    let mut digits = at - first;
    let mut decimals = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(d) = digit(text, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(d);
            at += 1;
        }
        decimals = at - point;
        digits += decimals;
    }
    let exponent = matches!(text.get(at), Some(b'e' | b'E'));
    if digits == 0 {
        return None;
    }
    if exponent || digits > SAFE_DIGITS || mantissa > 1 << 53 || decimals > 22 {
        return read_float_slow(text, start);
    }
    let value = mantissa as f64 / EXACT_POWERS[decimals];
    Some((if negative { -value } else { value }, at))
}

#[cold]
fn read_float_slow(text: &[u8], start: usize) -> Option<(f64, usize)> {
    let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    let len = text[start..].iter().take_while(|b| is_part(b)).count();
    let number = std::str::from_utf8(&text[start..start + len]).ok()?;
    let legal = !number.starts_with('+') && number.bytes().any(|b| b.is_ascii_digit());
    let value: f64 = number.parse().ok().filter(|_| legal)?;
    value.is_finite().then_some((value, start + len))
}

/// `t`, `true`, `False`, ... as InfluxDB spells them.
#[inline]
pub(super) fn read_boolean(text: &[u8], start: usize) -> Option<(bool, usize)> {
    let rest = &text[start..];
    for (word, value) in [
        (&b"true"[..], true),
        (b"false", false),
        (b"True", true),
        (b"False", false),
        (b"TRUE", true),
        (b"FALSE", false),
        (b"t", true),
        (b"f", false),
        (b"T", true),
        (b"F", false),
    ] {
        if rest.starts_with(word) {
            return Some((value, start + word.len()));
        }
    }
    None
}

/// A quoted string; its text is added to `strings` without the escapes. Returns start and length of
/// the text in `strings` and where the value ends.
#[inline]
pub(super) fn read_string(
    text: &[u8],
    start: usize,
    strings: &mut Vec<u8>,
) -> Option<((u32, u32), usize)> {
    if text.get(start) != Some(&b'"') {
        return None;
    }
    let begin = strings.len();
    let mut at = start + 1;
    loop {
        let found = memchr2(b'"', b'\\', &text[at..])?;
        strings.extend_from_slice(&text[at..at + found]);
        at += found;
        if text[at] == b'"' {
            let part = (begin as u32, (strings.len() - begin) as u32);
            return Some((part, at + 1));
        }
        match text.get(at + 1) {
            Some(escaped @ (b'"' | b'\\')) => {
                strings.push(*escaped);
                at += 2;
            }
            _ => {
                strings.push(b'\\');
                at += 1;
            }
        }
    }
}
