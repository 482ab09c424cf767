//! Numbers as Go writes them, into a growing buffer.

use crate::digits;
use crate::output::Output;

/// Digits of the numbers below 1000, with their count.
static SMALL: [[u8; 4]; 1000] = digits(false);
/// The same with zeros in front.
static PADDED: [[u8; 4]; 1000] = digits(true);

const fn digits(padded: bool) -> [[u8; 4]; 1000] {
    let mut table = [[0; 4]; 1000];
    let mut n = 0;
    while n < 1000 {
        let digits = [(n / 100) as u8 + b'0', (n / 10 % 10) as u8 + b'0', (n % 10) as u8 + b'0'];
        table[n] = if n < 10 && !padded {
            [digits[2], 0, 0, 1]
        } else if n < 100 && !padded {
            [digits[1], digits[2], 0, 2]
        } else {
            [digits[0], digits[1], digits[2], 3]
        };
        n += 1;
    }
    table
}

/// A comma and the digits of the numbers below 1000, with the count of both.
static COMMA_SMALL: [[u8; 8]; 1000] = comma_digits();

const fn comma_digits() -> [[u8; 8]; 1000] {
    let mut table = [[0; 8]; 1000];
    let mut n = 0;
    while n < 1000 {
        let [a, b, c, len] = SMALL[n];
        table[n] = [b',', a, b, c, 0, 0, 0, len + 1];
        n += 1;
    }
    table
}

/// Writes a comma and an integer.
#[inline]
pub(crate) fn push_comma_i64(out: &mut impl Output, value: i64) {
    match COMMA_SMALL.get(usize::try_from(value).unwrap_or(usize::MAX)) {
        Some(entry) => out.put_first(entry, usize::from(entry[7])),
        None => {
            out.put(b",");
            push_signed(out, value);
        }
    }
}

/// Writes an integer.
pub(crate) fn push_i64(out: &mut impl Output, value: i64) {
    match SMALL.get(usize::try_from(value).unwrap_or(usize::MAX)) {
        Some(entry) => out.put_first(entry, usize::from(entry[3])),
        None => push_signed(out, value),
    }
}

/// Writes an unsigned integer.
pub(crate) fn push_u64(out: &mut impl Output, value: u64) {
    match SMALL.get(usize::try_from(value).unwrap_or(usize::MAX)) {
        Some(entry) => out.put_first(entry, usize::from(entry[3])),
        None => push_unsigned(out, value),
    }
}

fn push_signed(out: &mut impl Output, value: i64) {
    let (bytes, len) = digits::signed(value);
    out.put_first(&bytes, len);
}

fn push_unsigned(out: &mut impl Output, value: u64) {
    let (bytes, len) = digits::unsigned(value);
    out.put_first(&bytes, len);
}

/// Writes a finite float in the shortest form that reads back: plain, or with an exponent below
/// 1e-6 and from 1e21.
pub(crate) fn push_json_float(out: &mut impl Output, value: f64) {
    if push_whole(out, value) || push_short(out, value) {
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    match exponent_of(text) {
        // From here on both notations are the same.
        Some((digits, exponent)) if (-6..21).contains(&exponent) => {
            push_plain(out, &text[..digits], exponent);
        }
        _ => push_without_point_zero(out, text),
    }
}

/// Writes a finite float in the shortest form that reads back, never with an exponent.
pub(crate) fn push_plain_float(out: &mut impl Output, value: f64) {
    if push_whole(out, value) || push_short(out, value) {
        return;
    }
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value).as_bytes();
    match exponent_of(text) {
        Some((digits, exponent)) => push_plain(out, &text[..digits], exponent),
        None => push_without_point_zero(out, text),
    }
}

/// Writes whole numbers that a float holds exactly; the others are left to do.
fn push_whole(out: &mut impl Output, value: f64) -> bool {
    const EXACT: f64 = (1u64 << 53) as f64;
    let whole = value as i64;
    // The cast saturates, so that the comparison fails for what is too large; -0 keeps its sign.
    let is_whole = whole as f64 == value && value.abs() < EXACT;
    if !is_whole || whole == 0 && value.is_sign_negative() {
        return false;
    }
    push_i64(out, whole);
    true
}

/// Writes numbers of up to six digits behind the point, as most measured ones are; the others are
/// left to do.
///
/// The nearest float of `n` millionths is found by one exact division. With 15 digits or less no
/// two decimals share a float, so that these digits, without zeros at the end, are the shortest.
fn push_short(out: &mut impl Output, value: f64) -> bool {
    const DIGITS_15: u64 = 1_000_000_000_000_000;
    let millionths = (value.abs() * 1e6 + 0.5) as u64;
    if millionths == 0 || millionths >= DIGITS_15 || millionths as f64 / 1e6 != value.abs() {
        return false;
    }
    if value < 0.0 {
        out.put(b"-");
    }
    push_u64(out, millionths / 1_000_000);
    let rest = (millionths % 1_000_000) as usize;
    let ([a, b, c, _], [d, e, f, _]) = (PADDED[rest / 1000], PADDED[rest % 1000]);
    let digits = [b'.', a, b, c, d, e, f, b'0'];
    // Zeros at the end are zero bytes at the top of the word; the point never is one.
    let word = u64::from_le_bytes(digits) ^ u64::from_le_bytes([b'0'; 8]);
    let len = 8 - word.leading_zeros() as usize / 8;
    out.put_first(&digits, len);
    true
}

fn push_without_point_zero(out: &mut impl Output, text: &[u8]) {
    out.put(text.strip_suffix(b".0").unwrap_or(text));
}

/// Splits `d.ddde-x`: the length of the part before the `e`, and the exponent.
fn exponent_of(text: &[u8]) -> Option<(usize, i32)> {
    // At most four characters follow the e.
    let from = text.len().saturating_sub(5);
    let at = from + text[from..].iter().position(|byte| *byte == b'e')?;
    let exponent = std::str::from_utf8(&text[at + 1..]).expect("BUG: a number is ASCII");
    Some((at, exponent.parse().expect("BUG: an exponent is a number")))
}

/// Writes `[-]d[.ddd]` times ten to the `exponent` without an exponent.
fn push_plain(out: &mut impl Output, text: &[u8], exponent: i32) {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    if unsigned.len() < text.len() {
        out.put(b"-");
    }
    let fraction = unsigned.get(2..).unwrap_or_default();
    let fraction = if fraction == b"0" { &[][..] } else { fraction };
    if exponent < 0 {
        out.put(b"0.");
        push_zeros(out, exponent.unsigned_abs() as usize - 1);
        out.put(&unsigned[..1]);
        out.put(fraction);
        return;
    }
    out.put(&unsigned[..1]);
    let whole = (exponent as usize).min(fraction.len());
    out.put(&fraction[..whole]);
    push_zeros(out, exponent as usize - whole);
    if whole < fraction.len() {
        out.put(b".");
        out.put(&fraction[whole..]);
    }
}

fn push_zeros(out: &mut impl Output, mut count: usize) {
    const ZEROS: [u8; 32] = [b'0'; 32];
    while count > 0 {
        let zeros = count.min(ZEROS.len());
        out.put_first(&ZEROS, zeros);
        count -= zeros;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written<T>(push: fn(&mut Vec<u8>, T), value: T) -> String {
        let mut out = Vec::new();
        push(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_look_as_go_writes_them() {
        for (value, json, plain) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (22.0, "22", "22"),
            (-1.5, "-1.5", "-1.5"),
            (0.1, "0.1", "0.1"),
            (1e-5, "0.00001", "0.00001"),
            (1.5e-6, "0.0000015", "0.0000015"),
            (1e-6, "0.000001", "0.000001"),
            (9.99e-7, "9.99e-7", "0.000000999"),
            (-1e-7, "-1e-7", "-0.0000001"),
            (1e-10, "1e-10", "0.0000000001"),
            (9007199254740993.0, "9007199254740992", "9007199254740992"),
            (1e16, "10000000000000000", "10000000000000000"),
            (1.5e16, "15000000000000000", "15000000000000000"),
            (123456789012345680.0, "123456789012345680", "123456789012345680"),
            (-1e20, "-100000000000000000000", "-100000000000000000000"),
            (999999999999999900000.0, "999999999999999900000", "999999999999999900000"),
            // Exactly ....625: two texts of 16 digits are as near, and the even one is taken.
            (88475716029011.62, "88475716029011.62", "88475716029011.62"),
            (1e21, "1e+21", "1000000000000000000000"),
            (1.25e22, "1.25e+22", "12500000000000000000000"),
        ] {
            assert_eq!(written(push_json_float, value), json);
            assert_eq!(written(push_plain_float, value), plain);
        }
        assert_eq!(written(push_json_float, f64::MAX), "1.7976931348623157e+308");
        assert_eq!(written(push_json_float, 5e-324), "5e-324");
        assert_eq!(written(push_plain_float, 1e300).len(), 301);
    }

    proptest! {
        #[test]
        fn floats_read_back(bits in any::<u64>(), small in -1_000_000i64..1_000_000) {
            let next = f64::from_bits((small as f64 / 1000.0).to_bits() + 1);
            let short = small as f64 / 1000.0;
            let millionths = bits as i32 as f64 / 1e6;
            for value in [f64::from_bits(bits), short, next, millionths, small as f64 * 1e13] {
                if value.is_finite() {
                    for push in [push_json_float, push_plain_float] {
                        let text = written(push, value);
                        let read: f64 = text.parse().unwrap();
                        prop_assert_eq!(read.to_bits(), value.to_bits(), "{}", text);
                        prop_assert!(!text.ends_with(".0"));
                    }
                    // Rust writes as few digits, but where two are as near it takes the odd one.
                    let len = format!("{value}").len();
                    prop_assert_eq!(written(push_plain_float, value).len(), len);
                    prop_assert!(!written(push_plain_float, value).contains('e'));
                }
            }
        }

        #[test]
        fn integers_read_back(value in any::<i64>(), small in -2000i64..2000) {
            for value in [value, small] {
                prop_assert_eq!(written(push_i64, value), value.to_string());
                let unsigned = value.cast_unsigned();
                prop_assert_eq!(written(push_u64, unsigned), unsigned.to_string());
            }
        }
    }
}
