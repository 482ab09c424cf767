//! The messages, as far as they are used.

use prost::Message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::BodyError;

/// Numbers of the parts of a series: labels and samples. A series is never decoded as a whole.
pub(super) const SERIES_LABELS: u32 = 1;
pub(super) const SERIES_SAMPLES: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    pub(super) timestamp_ms: i64,
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

/// Calls `visit` with the bytes of each part of a message that has the number `tag` and a length.
pub(super) fn each_part(
    mut bytes: &[u8],
    tag: u32,
    mut visit: impl FnMut(&[u8]) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    while bytes.has_remaining() {
        let (number, wire_type) = decode_key(&mut bytes)?;
        if number != tag || wire_type != WireType::LengthDelimited {
            skip_field(wire_type, number, &mut bytes, DecodeContext::default())?;
            continue;
        }
        let len = usize::try_from(decode_varint(&mut bytes)?).unwrap_or(usize::MAX);
        let short = || BodyError::Malformed("unexpected EOF".to_owned());
        let (part, rest) = bytes.split_at_checked(len).ok_or_else(short)?;
        visit(part)?;
        bytes = rest;
    }
    Ok(())
}

/// The queries of a read request.
///
/// # Errors
/// [`BodyError::Malformed`].
pub fn read_queries(bytes: &[u8]) -> Result<Vec<ReadQuery>, BodyError> {
    let mut queries = Vec::new();
    each_part(bytes, 1, |part| {
        let query = Query::decode(part)?;
        let matchers = query.matchers.into_iter().map(matcher).collect::<Result<_, _>>()?;
        queries.push(ReadQuery { start_ms: query.start_ms, end_ms: query.end_ms, matchers });
        Ok(())
    })?;
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
