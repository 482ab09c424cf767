//! Decimal digits of integers, eight at a time in one word.
//!
//! A word of eight digits is made without a branch: numbers of four, two and one digit side by side in it are divided by
//! 100 and 10 together, by a multiplication whose lanes do not meet (after P. Khuong, "How to print integers really fast",
//! 2017). Not here: floats, and numbers below 1000, for which
//! `number` has tables.

/// Digits of 64 bits with a sign, rounded up so that whole words can be copied.
pub(crate) const DIGITS_BYTES: usize = 24;

const EIGHT: u64 = 100_000_000;

/// The digits of `value` at the front of the bytes, and how many there are.
#[inline]
pub(crate) fn signed(value: i64) -> ([u8; DIGITS_BYTES], usize) {
    if value >= 0 {
        return unsigned(value.unsigned_abs());
    }
    let (digits, len) = unsigned(value.unsigned_abs());
    let mut bytes = [b'-'; DIGITS_BYTES];
    bytes[1..].copy_from_slice(&digits[..DIGITS_BYTES - 1]);
    (bytes, len + 1)
}

/// The digits of `value` at the front of the bytes, and how many there are.
#[inline]
pub(crate) fn unsigned(value: u64) -> ([u8; DIGITS_BYTES], usize) {
    let mut bytes = [0; DIGITS_BYTES];
    let len = match value {
        ..EIGHT => put_head(&mut bytes, value),
        _ if value < EIGHT * EIGHT => {
            let len = put_head(&mut bytes, value / EIGHT);
            put_eight(&mut bytes, len, value % EIGHT)
        }
        _ => {
            let (head, rest) = (value / (EIGHT * EIGHT), value % (EIGHT * EIGHT));
            let len = put_head(&mut bytes, head);
            let len = put_eight(&mut bytes, len, rest / EIGHT);
            put_eight(&mut bytes, len, rest % EIGHT)
        }
    };
    (bytes, len)
}

/// The digits of the number before, of which the next one mostly shares all but a few: times of rows.
#[derive(Clone, Debug)]
pub(crate) struct LastNumber {
    value: i64,
    /// The number before its last eight digits, and these; 0 and whatever if it has no more, or a sign.
    parts: (u64, u64),
    bytes: [u8; DIGITS_BYTES],
    len: usize,
}

impl LastNumber {
    pub(crate) fn new(value: i64) -> Self {
        let (bytes, len) = signed(value);
        Self { value, parts: (0, 0), bytes, len }
    }

    /// The digits of `value` at the front of the bytes, and how many there are.
    #[inline]
    pub(crate) fn digits(&mut self, value: i64) -> (&[u8; DIGITS_BYTES], usize) {
        if self.value != value {
            self.change(value);
        }
        (&self.bytes, self.len)
    }

    fn change(&mut self, value: i64) {
        self.value = value;
        let number = value.unsigned_abs();
        let (upper, low) = (number / EIGHT, number % EIGHT);
        let (old_upper, old_low) = std::mem::replace(&mut self.parts, (upper, low));
        let head = upper / EIGHT;
        if value < 0 || upper == 0 {
            (self.bytes, self.len) = signed(value);
            self.parts = (0, 0);
        } else if upper == old_upper {
            put_eight(&mut self.bytes, self.len - 8, low);
        } else if head > 0 && head == old_upper / EIGHT {
            put_eight(&mut self.bytes, self.len - 16, upper % EIGHT);
            if low != old_low {
                put_eight(&mut self.bytes, self.len - 8, low);
            }
        } else {
            (self.bytes, self.len) = unsigned(number);
        }
    }
}

/// Puts a number of up to eight digits at the front, without zeros before it.
#[inline]
fn put_head(bytes: &mut [u8; DIGITS_BYTES], value: u64) -> usize {
    let digits = eight(value);
    // The last digit stays, whatever it is.
    let zeros = (digits | (1 << 56)).trailing_zeros() / 8;
    bytes[..8].copy_from_slice(&(ascii(digits) >> (8 * zeros)).to_le_bytes());
    8 - zeros as usize
}

#[inline]
fn put_eight(bytes: &mut [u8; DIGITS_BYTES], at: usize, value: u64) -> usize {
    bytes[at..at + 8].copy_from_slice(&ascii(eight(value)).to_le_bytes());
    at + 8
}

const fn ascii(digits: u64) -> u64 {
    digits | u64::from_le_bytes([b'0'; 8])
}

/// The eight digits of a number below 10^8, a byte each, the first in the lowest.
#[inline]
const fn eight(value: u64) -> u64 {
    // Quotients are exact for what a lane holds: 10,486 / 2^20 for 100 below 10^4, 103 / 2^10 for 10 below 100.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text((bytes, len): ([u8; DIGITS_BYTES], usize)) -> String {
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    }

    #[test]
    fn every_lane_divides_exactly() {
        for value in (0..10_000).chain((0..10_000).map(|top| top * 10_000 + 9_999)) {
            assert_eq!(text(unsigned(value)), value.to_string());
        }
    }

    #[test]
    fn lengths_change_at_powers_of_ten() {
        for power in 0..20 {
            let power = 10u64.pow(power);
            for value in [power - 1, power, power + 1] {
                assert_eq!(text(unsigned(value)), value.to_string());
            }
        }
        assert_eq!(text(unsigned(u64::MAX)), u64::MAX.to_string());
        assert_eq!(text(signed(i64::MIN)), i64::MIN.to_string());
    }

    proptest! {
        #[test]
        fn digits_are_those_of_the_library(value in any::<u64>(), shift in 0u32..64) {
            for value in [value >> shift, value] {
                prop_assert_eq!(text(unsigned(value)), value.to_string());
                let value = value.cast_signed();
                prop_assert_eq!(text(signed(value)), value.to_string());
            }
        }

        #[test]
        fn numbers_follow_one_another(
            start in any::<i64>(),
            steps in prop::collection::vec((0u32..64, -3i64..4), 1..20),
        ) {
            let mut last = LastNumber::new(start);
            let mut value = start;
            for (shift, step) in steps {
                value = value.wrapping_add(step.wrapping_shl(shift));
                let (bytes, len) = last.digits(value);
                prop_assert_eq!(text((*bytes, len)), value.to_string());
            }
        }
    }
}
