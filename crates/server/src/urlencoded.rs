//! Takes `application/x-www-form-urlencoded` text apart, as the URL standard says. Every query comes through here, with
//! an escape every few bytes: one pass over them, and nothing is decoded that nobody asks for.

use std::borrow::Cow;

/// Names and values, both still encoded, in their order.
pub(crate) fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut from = 0;
    let pair_ends = memchr::memchr_iter(b'&', text).chain([text.len()]);
    let pairs = pair_ends.map(move |end| &text[std::mem::replace(&mut from, end + 1)..end]);
    pairs.filter(|pair| !pair.is_empty()).map(|pair| {
        let name_len = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        (&pair[..name_len], pair.get(name_len + 1..).unwrap_or_default())
    })
}

/// The text of a name or value. What is no escape stands for itself; what is not UTF-8 becomes U+FFFD.
pub(crate) fn decode(encoded: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr::memchr2(b'%', b'+', encoded) else {
        return String::from_utf8_lossy(encoded);
    };
    // Decoding makes nothing longer: each byte is written over one that was read.
    let mut decoded = encoded.to_vec();
    let (mut at, mut len) = (first, first);
    while let Some(byte) = decoded.get(at) {
        let (byte, bytes) = match byte {
            b'+' => (b' ', 1),
            b'%' => escaped(&decoded[at..]).map_or((b'%', 1), |byte| (byte, 3)),
            byte => (*byte, 1),
        };
        decoded[len] = byte;
        len += 1;
        at += bytes;
    }
    decoded.truncate(len);
    let lossy = |text: Vec<u8>| String::from_utf8_lossy(&text).into_owned();
    Cow::Owned(String::from_utf8(decoded).unwrap_or_else(|error| lossy(error.into_bytes())))
}

/// The byte that an escape in front of `text` stands for, if it is one.
#[inline]
fn escaped(text: &[u8]) -> Option<u8> {
    let [_, high, low] = *text.first_chunk()?;
    let (high, low) = (DIGITS[usize::from(high)], DIGITS[usize::from(low)]);
    ((high | low) < 16).then_some(high << 4 | low)
}

/// The values of hexadecimal digits, [`NO_DIGIT`] of other bytes.
static DIGITS: [u8; 256] = digits();
const NO_DIGIT: u8 = 0xff;

const fn digits() -> [u8; 256] {
    let mut table = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        table[b"0123456789abcdef"[value] as usize] = value as u8;
        table[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &[u8]) -> Vec<(String, String)> {
        pairs(text).map(|(n, v)| (decode(n).into_owned(), decode(v).into_owned())).collect()
    }

    #[test]
    fn escapes_and_what_only_looks_like_them() {
        let expected =
            [("q", "a b+c"), ("%zz", "%"), ("", "x=y"), ("alone", ""), ("u", "\u{fffd}!")];
        let expected = expected.map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(decoded(b"q=a+b%2Bc&%zz=%&=x=y&&alone&u=%ff!"), expected);
    }

    proptest! {
        #[test]
        fn the_library_agrees(text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[a-f%+&=0-9\u{e4}]{0,60}".prop_map(String::into_bytes),
        ]) {
            let library = form_urlencoded::parse(&text);
            let library: Vec<_> =
                library.map(|(n, v)| (n.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(decoded(&text), library);
        }
    }
}
