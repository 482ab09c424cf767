//! The messages, as far as they are used.

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::BodyError;

/// Numbers of the parts of a series: labels and samples. A series is never decoded as a whole.
pub(super) const SERIES_LABELS: u32 = 1;
pub(super) const SERIES_SAMPLES: u32 = 2;

/// What stands before the name and the value of a usual label: their numbers and types.
const NAME_KEY: u8 = 1 << 3 | WireType::LengthDelimited as u8;
const VALUE_KEY: u8 = 2 << 3 | WireType::LengthDelimited as u8;

/// A label, still in its body. Whether it is text is for the caller to find out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Label<'a> {
    /// Reads a label; of a field that is there twice the last counts.
    #[inline]
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, BodyError> {
        if let [NAME_KEY, len @ ..0x80, rest @ ..] = bytes
            && let Some((name, [VALUE_KEY, len @ ..0x80, value @ ..])) =
                rest.split_at_checked(usize::from(*len))
            && value.len() == usize::from(*len)
        {
            return Ok(Self { name, value });
        }
        Self::decode_unusual(bytes)
    }

    #[cold]
    fn decode_unusual(bytes: &'a [u8]) -> Result<Self, BodyError> {
        let mut label = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, Field::Bytes(name)) => label.name = name,
                (2, Field::Bytes(value)) => label.value = value,
                (1 | 2, Field::Other) => {
                    return Err(BodyError::Malformed("a label that is no text".to_owned()));
                }
                _ => {}
            }
        }
        Ok(label)
    }

    /// Whether both parts are text.
    pub(super) fn check(self) -> Result<(), BodyError> {
        match (str::from_utf8(self.name), str::from_utf8(self.value)) {
            (Ok(_), Ok(_)) => Ok(()),
            _ => Err(BodyError::Malformed("a label that is not UTF-8".to_owned())),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    pub(super) timestamp_ms: i64,
}

/// What stands before the value and the time of a usual sample: their numbers and types.
const NUMBER_KEY: u8 = 1 << 3 | WireType::SixtyFourBit as u8;
const TIME_KEY: u8 = 2 << 3 | WireType::Varint as u8;

impl Sample {
    /// Reads a sample: a usual one at once.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BodyError> {
        if let [NUMBER_KEY, value @ ..] = bytes
            && let Some((value, [TIME_KEY, time @ ..])) = value.split_first_chunk()
            && let Some((timestamp_ms, [])) = split_varint(time)
        {
            let value = f64::from_le_bytes(*value);
            return Ok(Self { value, timestamp_ms: timestamp_ms as i64 });
        }
        Ok(Self::decode(bytes)?)
    }
}

#[derive(Clone, PartialEq, Message)]
struct Query {
    #[prost(int64, tag = "1")]
    start_ms: i64,
    #[prost(int64, tag = "2")]
    end_ms: i64,
    #[prost(message, repeated, tag = "3")]
    matchers: Vec<Matcher>,
}

#[derive(Clone, PartialEq, Message)]
struct Matcher {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    value: String,
}

/// One query of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadQuery {
    /// First time, milliseconds since 1970-01-01 UTC.
    pub start_ms: i64,
    /// Last time, milliseconds since 1970-01-01 UTC.
    pub end_ms: i64,
    /// All of them hold for a series that is wanted.
    pub matchers: Vec<LabelMatcher>,
}

/// A condition on a label; a label that is not there has the value `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMatcher {
    /// How it is compared.
    pub kind: MatchKind,
    /// The label.
    pub name: String,
    /// A value, or a regular expression for all of it.
    pub value: String,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
}

/// A field of a message, as far as anybody asks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    /// One that has a length.
    Bytes(&'a [u8]),
    /// A number or a group.
    Other,
}

/// The fields of a message with their numbers. After an error nothing follows.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Field<'a>), BodyError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        // The numbers that are used take one byte together with a type, most lengths another.
        if let [key @ 8..0x80, len @ ..0x80, rest @ ..] = self.0
            && key & 7 == WireType::LengthDelimited as u8
            && let Some((part, rest)) = rest.split_at_checked(usize::from(*len))
        {
            self.0 = rest;
            return Some(Ok((u32::from(key >> 3), Field::Bytes(part))));
        }
        self.next_unusual()
    }
}

impl<'a> Fields<'a> {
    #[inline(never)]
    fn next_unusual(&mut self) -> Option<Result<(u32, Field<'a>), BodyError>> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }

    fn read(&mut self) -> Result<(u32, Field<'a>), BodyError> {
        let short = || BodyError::Malformed("unexpected EOF".to_owned());
        let (number, wire_type) = decode_key(&mut self.0)?;
        if wire_type == WireType::LengthDelimited {
            let (len, rest) = split_varint(self.0).ok_or_else(short)?;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let (part, rest) = rest.split_at_checked(len).ok_or_else(short)?;
            self.0 = rest;
            return Ok((number, Field::Bytes(part)));
        }
        skip_field(wire_type, number, &mut self.0, DecodeContext::default())?;
        Ok((number, Field::Other))
    }
}

/// Takes a number of variable length from the start of `bytes`.
#[inline]
fn split_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    if let [byte @ ..0x80, rest @ ..] = bytes {
        return Some((u64::from(*byte), rest));
    }
    let mut rest = bytes;
    let number = decode_varint(&mut rest).ok()?;
    Some((number, rest))
}

/// The bytes of each part of a message that has the number `tag` and a length. After an error nothing follows.
#[inline]
pub(super) fn parts(bytes: &[u8], tag: u32) -> impl Iterator<Item = Result<&[u8], BodyError>> {
    Fields(bytes).filter_map(move |field| match field {
        Ok((number, Field::Bytes(part))) if number == tag => Some(Ok(part)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The queries of a read request.
///
/// # Errors
/// [`BodyError::Malformed`].
pub fn read_queries(bytes: &[u8]) -> Result<Vec<ReadQuery>, BodyError> {
    let mut queries = Vec::new();
    for part in parts(bytes, 1) {
        let query = Query::decode(part?)?;
        let matchers = query.matchers.into_iter().map(matcher).collect::<Result<_, _>>()?;
        queries.push(ReadQuery { start_ms: query.start_ms, end_ms: query.end_ms, matchers });
    }
    Ok(queries)
}

fn matcher(matcher: Matcher) -> Result<LabelMatcher, BodyError> {
    let kind = match matcher.kind {
        0 => MatchKind::Equal,
        1 => MatchKind::NotEqual,
        2 => MatchKind::Matches,
        3 => MatchKind::MatchesNot,
        other => return Err(BodyError::Malformed(format!("unknown match type {other}"))),
    };
    Ok(LabelMatcher { kind, name: matcher.name, value: matcher.value })
}

/// A label as the library reads it.
#[cfg(test)]
#[derive(Clone, PartialEq, Message)]
pub(super) struct OwnedLabel {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that are nearly a message: keys of fields 1 to 3 and 20 with any type, lengths, texts.
    fn nearly_messages() -> impl Strategy<Value = Vec<u8>> {
        let text = prop_oneof![4 => "[a-z]{0,3}", 1 => "\\PC{0,3}"].prop_map(String::into_bytes);
        let text = prop_oneof![8 => text, 1 => prop::collection::vec(any::<u8>(), 0..3)];
        let field = (prop_oneof![4 => 1u8..3, 1 => Just(3)], text).prop_map(|(number, text)| {
            let mut field = vec![number << 3 | 2, text.len() as u8];
            field.extend_from_slice(&text);
            field
        });
        let number = (1u8..4, any::<u64>()).prop_map(|(number, value)| {
            let mut field = vec![number << 3];
            prost::encoding::encode_varint(value, &mut field);
            field
        });
        let fixed = (1u8..4, any::<[u8; 8]>()).prop_map(|(number, bytes)| {
            let mut field = vec![number << 3 | 1];
            field.extend_from_slice(&bytes);
            field
        });
        let far = Just(vec![20 << 3 & 0x7f | 0x82, 1, 1, b'x']);
        let odd = prop::collection::vec(any::<u8>(), 0..3);
        let part = prop_oneof![8 => field, 2 => number, 2 => fixed, 1 => far, 1 => odd];
        prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn labels_are_read_as_the_library_reads_them(bytes in nearly_messages()) {
            let ours = Label::decode(&bytes).and_then(|label| label.check().map(|()| label));
            match OwnedLabel::decode(&bytes[..]) {
                Ok(theirs) => {
                    let theirs =
                        Label { name: theirs.name.as_bytes(), value: theirs.value.as_bytes() };
                    // Of a field that is there twice the library looks at both.
                    prop_assert_eq!(ours, Ok(theirs));
                }
                Err(_) => prop_assert!(ours.is_err() || has_twice(&bytes)),
            }
        }

        #[test]
        fn samples_are_read_as_the_library_reads_them(
            value in any::<f64>(), timestamp_ms: i64, bytes in nearly_messages(),
        ) {
            let sample = Sample { value, timestamp_ms };
            let usual = sample.encode_to_vec();
            let same = |a: Sample, b: Sample| {
                a.value.to_bits() == b.value.to_bits() && a.timestamp_ms == b.timestamp_ms
            };
            for bytes in [usual.clone(), [&usual, &bytes[..]].concat(), [&bytes[..], &usual].concat(), bytes] {
                match (Sample::read(&bytes), Sample::decode(&bytes[..])) {
                    (Ok(ours), Ok(theirs)) => prop_assert!(same(ours, theirs)),
                    (ours, theirs) => prop_assert!(ours.is_err() && theirs.is_err()),
                }
            }
        }
    }

    /// Whether the name or the value is there more than once.
    fn has_twice(bytes: &[u8]) -> bool {
        let mut counts = [0; 3];
        for (number, _) in Fields(bytes).flatten() {
            if let Some(count) = counts.get_mut(number as usize) {
                *count += 1;
            }
        }
        counts.iter().any(|count| *count > 1)
    }
}
