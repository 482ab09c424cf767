//! Series keys: a measurement and its tags in line protocol's own notation.
//!
//! The canonical key has the tags sorted by key and is escaped as line protocol is: `,` and space
//! in the measurement; `,`, `=` and space in tag keys and values. Two raw keys name the same series
//! exactly if their canonical keys are the same bytes.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use crate::Name;

/// Longest canonical key, bytes.
pub const KEY_BYTES_MAX: usize = 65_535;

/// A canonical series key with its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesKey {
    /// Measurement, escapes removed.
    pub measurement: Name,
    /// Tags sorted by key, escapes removed; no key twice, no value empty.
    pub tags: Vec<(Name, Name)>,
}

/// Why some bytes are no series key. The texts are InfluxDB's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum KeyError {
    #[error("missing measurement")]
    MissingMeasurement,
    #[error("missing tag key")]
    MissingTagKey,
    #[error("missing tag value")]
    MissingTagValue,
    #[error("invalid tag format")]
    InvalidTagFormat,
    #[error("duplicate tags")]
    DuplicateTags,
    #[error("invalid UTF-8")]
    InvalidUtf8,
    #[error("backslash at the end of the key")]
    OpenEscape,
    #[error("max key length exceeded: {0} > {KEY_BYTES_MAX}")]
    TooLong(usize),
}

/// What a backslash precedes in the name of a measurement, and in keys and values of tags.
const MEASUREMENT_SPECIAL: &[u8; 2] = b", ";
const TAG_SPECIAL: &[u8; 3] = b",= ";

impl SeriesKey {
    /// Reads a raw key: tags in any order, escapes as sent.
    ///
    /// # Errors
    /// [`KeyError`] says what is wrong, as InfluxDB would.
    pub fn parse(raw: &[u8]) -> Result<Self, KeyError> {
        let raw = std::str::from_utf8(raw).map_err(|_| KeyError::InvalidUtf8)?;
        let backslashes = raw.bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 {
            // Tags are sorted: it would escape what comes to stand behind it.
            return Err(KeyError::OpenEscape);
        }
        let (measurement, mut rest) = split_unescaped(raw, b',');
        if measurement.is_empty() {
            return Err(KeyError::MissingMeasurement);
        }
        let mut tags = Vec::new();
        while let Some(text) = rest {
            let (tag, after) = split_unescaped(text, b',');
            rest = after;
            tags.push(parse_tag(tag)?);
        }
        tags.sort_unstable();
        if tags.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(KeyError::DuplicateTags);
        }
        let measurement = unescape(measurement, MEASUREMENT_SPECIAL).into();
        let key = Self { measurement, tags };
        let len = key.canonical_len();
        if len > KEY_BYTES_MAX {
            return Err(KeyError::TooLong(len));
        }
        Ok(key)
    }

    /// The value of the tag `key`, `""` if there is none.
    #[must_use]
    pub fn tag(&self, key: &str) -> &str {
        match self.tags.binary_search_by(|(k, _)| (**k).cmp(key)) {
            Ok(at) => &self.tags[at].1,
            Err(_) => "",
        }
    }

    /// Bytes of the canonical notation.
    fn canonical_len(&self) -> usize {
        let tag = |(key, value): &(Name, Name)| {
            2 + escaped_len(key, TAG_SPECIAL) + escaped_len(value, TAG_SPECIAL)
        };
        escaped_len(&self.measurement, MEASUREMENT_SPECIAL)
            + self.tags.iter().map(tag).sum::<usize>()
    }
}

/// The canonical notation.
impl fmt::Display for SeriesKey {
    // A new series is written to the log like this: without the detour of format strings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.measurement, MEASUREMENT_SPECIAL))?;
        for (key, value) in &self.tags {
            f.write_str(",")?;
            f.write_str(&escape(key, TAG_SPECIAL))?;
            f.write_str("=")?;
            f.write_str(&escape(value, TAG_SPECIAL))?;
        }
        Ok(())
    }
}

fn parse_tag(tag: &str) -> Result<(Name, Name), KeyError> {
    let (key, value) = split_unescaped(tag, b'=');
    if key.is_empty() {
        return Err(KeyError::MissingTagKey);
    }
    let Some(value) = value.filter(|v| !v.is_empty()) else {
        return Err(KeyError::MissingTagValue);
    };
    if split_unescaped(value, b'=').1.is_some() {
        return Err(KeyError::InvalidTagFormat);
    }
    Ok((unescape(key, TAG_SPECIAL).into(), unescape(value, TAG_SPECIAL).into()))
}

/// Splits at the first `separator` that no backslash precedes.
fn split_unescaped(text: &str, separator: u8) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == separator => return (&text[..at], Some(&text[at + 1..])),
            _ => at += 1,
        }
    }
    (text, None)
}

/// Removes the backslash before each of `special` (ASCII); other backslashes stay.
#[must_use]
pub fn unescape<'a>(text: &'a str, special: &[u8]) -> Cow<'a, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escapes = c == '\\' && chars.peek().is_some_and(|n| is_special(*n, special));
        if !escapes {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Puts a backslash before each of `special` (ASCII).
#[must_use]
pub fn escape<'a, const N: usize>(text: &'a str, special: &[u8; N]) -> Cow<'a, str> {
    if !has_any(text.as_bytes(), special) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(escaped_len(text, special));
    push_escaped(&mut out, text.as_bytes(), special);
    Cow::Owned(String::from_utf8(out).expect("BUG: a backslash before ASCII broke a character"))
}

/// Adds `text` with a backslash before each of `special` (ASCII), of which most texts have none.
#[inline]
pub fn push_escaped<const N: usize>(out: &mut Vec<u8>, text: &[u8], special: &[u8; N]) {
    if !has_any(text, special) {
        out.extend_from_slice(text);
        return;
    }
    for byte in text {
        if special.contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

/// Whether one of `wanted` is in `text`: eight bytes at a time, as names are a dozen bytes long.
#[inline]
#[must_use]
pub fn has_any<const N: usize>(text: &[u8], wanted: &[u8; N]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let Some(end) = text.last_chunk::<8>() else {
        return text.iter().any(|byte| wanted.contains(byte));
    };
    // A byte that is there is zero in the difference; of a zero byte alone the highest bit is not set before
    // and set after one is taken away (Hacker's Delight, section 6-1).
    let word_has = |bytes: &[u8; 8]| {
        let word = u64::from_ne_bytes(*bytes);
        let zeros = |byte: u8| {
            let difference = word ^ (u64::from(byte) * ONES);
            difference.wrapping_sub(ONES) & !difference
        };
        wanted.iter().fold(0, |any, byte| any | zeros(*byte)) & (ONES << 7) != 0
    };
    // The last word overlaps the one before where the length is no multiple of eight.
    text.as_chunks::<8>().0.iter().any(word_has) || word_has(end)
}

/// Bytes of `text` once escaped.
fn escaped_len(text: &str, special: &[u8]) -> usize {
    // No byte of a longer character is ASCII.
    text.len() + text.bytes().filter(|byte| special.iter().any(|s| s == byte)).count()
}

fn is_special(c: char, special: &[u8]) -> bool {
    c.is_ascii() && special.contains(&(c as u8))
}

/// The hash that names a raw key in a [`crate::LineBatch`].
///
/// 128 bits of XXH3 with a seed drawn once a process: two keys of ten billion collide with a
/// chance below 1e-18, and nobody outside can look for a collision. Never written to disk.
#[must_use]
pub fn key_hash(raw: &[u8]) -> u128 {
    static SEED: OnceLock<u64> = OnceLock::new();
    let seed = *SEED.get_or_init(|| {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(0u64)
    });
    xxhash_rust::xxh3::xxh3_128_with_seed(raw, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(raw: &str) -> Result<String, KeyError> {
        SeriesKey::parse(raw.as_bytes()).map(|k| k.to_string())
    }

    #[test]
    fn sorts_tags_and_keeps_escapes() {
        assert_eq!(canonical("cpu").unwrap(), "cpu");
        assert_eq!(canonical("cpu,b=2,a=1").unwrap(), "cpu,a=1,b=2");
        assert_eq!(canonical(r"c\ p\,u,k\=1=v\ x").unwrap(), r"c\ p\,u,k\=1=v\ x");
        assert_eq!(canonical(r"a=b,x=\y").unwrap(), r"a=b,x=\y");
        let key = SeriesKey::parse(br"m,a\,b=c\=d").unwrap();
        assert_eq!(key.tag("a,b"), "c=d");
        assert_eq!(key.tag("a"), "");
    }

    #[test]
    fn says_what_is_wrong() {
        for (raw, error) in [
            ("", KeyError::MissingMeasurement),
            (",a=1", KeyError::MissingMeasurement),
            ("m,", KeyError::MissingTagKey),
            ("m,=1", KeyError::MissingTagKey),
            ("m,a", KeyError::MissingTagValue),
            ("m,a=", KeyError::MissingTagValue),
            ("m,a=1=2", KeyError::InvalidTagFormat),
            ("m,a=1,a=2", KeyError::DuplicateTags),
        ] {
            assert_eq!(canonical(raw), Err(error), "{raw}");
        }
        let long = format!("m,a={}", "x".repeat(KEY_BYTES_MAX));
        assert_eq!(canonical(&long), Err(KeyError::TooLong(KEY_BYTES_MAX + 4)));
        assert_eq!(SeriesKey::parse(b"m,a=\xff"), Err(KeyError::InvalidUtf8));
        // Sorted, it would read `m,a=\,z=\0`: one tag too few.
        assert_eq!(SeriesKey::parse(br"m,z=\0,a=\"), Err(KeyError::OpenEscape));
        assert_eq!(canonical(r"m,z=0,a=\\").unwrap(), r"m,a=\\,z=0");
    }

    proptest! {
        #[test]
        fn special_bytes_are_found_and_escaped(text in "[a-z,= \u{80}-\u{ff}-]{0,30}") {
            let is_special = |c: &char| [',', '=', ' '].contains(c);
            prop_assert_eq!(has_any(text.as_bytes(), b",= "), text.chars().any(|c| is_special(&c)));
            let backslash = |c| is_special(&c).then_some('\\').into_iter().chain([c]);
            let expected: String = text.chars().flat_map(backslash).collect();
            prop_assert_eq!(&escape(&text, b",= "), &expected);
            prop_assert_eq!(unescape(&expected, b",= "), text);
        }

        #[test]
        fn any_names_survive_notation(
            // A part that ends in a backslash cannot be written down: it would escape what follows.
            measurement in "[^\\\\\\x00]{1,8}",
            tags in prop::collection::btree_map("[^\\\\\\x00]{1,6}", "[^\\\\\\x00]{1,6}", 0..4),
        ) {
            let tags: Vec<(Name, Name)> =
                tags.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
            let key = SeriesKey { measurement: measurement.into(), tags };
            prop_assert_eq!(key.canonical_len(), key.to_string().len());
            prop_assert_eq!(SeriesKey::parse(key.to_string().as_bytes()), Ok(key));
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(raw in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(key) = SeriesKey::parse(&raw) {
                let again = SeriesKey::parse(key.to_string().as_bytes());
                prop_assert_eq!(again, Ok(key));
            }
        }
    }
}
