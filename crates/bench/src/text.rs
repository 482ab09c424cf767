//! Appends numbers to a byte buffer without allocating.

/// Appends a decimal integer.
pub fn push_int(out: &mut Vec<u8>, value: i64) {
    if (0..10).contains(&value) {
        out.push(b'0' + value as u8);
        return;
    }
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(value).as_bytes());
}

/// Appends the shortest text that reads back as the same float. The value must be finite.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    let mut buffer = zmij::Buffer::new();
    let text = buffer.format_finite(value);
    out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
}

/// Appends `scaled / 10^digits` without trailing zeros (`12350` with three digits is `12.35`).
pub fn push_decimal(out: &mut Vec<u8>, scaled: i64, digits: u32) {
    let unit = 10i64.pow(digits);
    if scaled < 0 {
        out.push(b'-');
    }
    let magnitude = scaled.unsigned_abs();
    let unit = unit.unsigned_abs();
    push_int(out, (magnitude / unit) as i64);
    let mut fraction = magnitude % unit;
    if fraction == 0 {
        return;
    }
    out.push(b'.');
    let mut place = unit / 10;
    while fraction > 0 {
        out.push(b'0' + (fraction / place) as u8);
        fraction %= place;
        place /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_drop_trailing_zeros() {
        assert_eq!(text(|out| push_decimal(out, 12350, 3)), "12.35");
        assert_eq!(text(|out| push_decimal(out, -5, 3)), "-0.005");
        assert_eq!(text(|out| push_decimal(out, 7000, 3)), "7");
        assert_eq!(text(|out| push_decimal(out, 0, 5)), "0");
    }

    proptest! {
        #[test]
        fn decimals_read_back(scaled in -1_000_000_000_000i64..1_000_000_000_000, digits in 0u32..6) {
            let read: f64 = text(|out| push_decimal(out, scaled, digits)).parse().unwrap();
            let wanted = scaled as f64 / 10f64.powi(digits as i32);
            prop_assert!((read - wanted).abs() <= wanted.abs() * 1e-15);
        }

        #[test]
        fn floats_read_back(value in any::<f64>()) {
            prop_assume!(value.is_finite());
            let read: f64 = text(|out| push_float(out, value)).parse().unwrap();
            prop_assert_eq!(read.to_bits(), value.to_bits());
        }

        #[test]
        fn integers_read_back(value in any::<i64>()) {
            prop_assert_eq!(text(|out| push_int(out, value)), value.to_string());
        }
    }
}
