//! Bodies of `/api/put`: one object, or an array of them.
//!
//! Invariant: of an array one point is held at a time; what is kept of the others are their lines.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};

use super::FIELD;
use crate::point::{Lines, PointError};

/// From here on a time is in milliseconds.
const MILLISECONDS_MIN: i64 = 10_000_000_000;

/// Why a body is none. The texts are InfluxDB's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It starts with neither `[` nor `{`.
    #[error("expected JSON array or hash")]
    Neither,
    /// The array is malformed.
    #[error("json array decode error")]
    Array,
    /// The object is malformed.
    #[error("json object decode error")]
    Object,
    /// A point cannot be stored.
    #[error("write series error: {0}")]
    Point(String),
}

#[derive(Deserialize)]
struct Point {
    #[serde(default)]
    metric: String,
    #[serde(default)]
    timestamp: i64,
    #[serde(default)]
    value: f64,
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
}

/// Reads a body and adds its points.
///
/// # Errors
/// [`JsonError`]: the body is to be refused as a whole, and some of its points may have been added.
pub fn parse_json(body: &[u8], lines: &mut Lines) -> Result<(), JsonError> {
    match body.first() {
        Some(b'[') => {
            let mut points = Points { lines, refused: None };
            let mut reader = serde_json::Deserializer::from_slice(body);
            let read = reader.deserialize_seq(&mut points).and_then(|()| reader.end());
            read.map_err(|_| JsonError::Array)?;
            points.refused.map_or(Ok(()), Err)
        }
        Some(b'{') => {
            let point = serde_json::from_slice::<Point>(body).map_err(|_| JsonError::Object)?;
            push(&point, lines)
        }
        _ => Err(JsonError::Neither),
    }
}

/// Takes the points of an array as they are read.
struct Points<'l> {
    lines: &'l mut Lines,
    /// The first one that cannot be stored. A body that is malformed further on is called that.
    refused: Option<JsonError>,
}

impl<'de> Visitor<'de> for &mut Points<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of points")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut points: A) -> Result<(), A::Error> {
        while let Some(point) = points.next_element::<Point>()? {
            if self.refused.is_none() {
                self.refused = push(&point, self.lines).err();
            }
        }
        Ok(())
    }
}

fn push(point: &Point, lines: &mut Lines) -> Result<(), JsonError> {
    let unit_ns = if point.timestamp < MILLISECONDS_MIN { 1_000_000_000 } else { 1_000_000 };
    let time_ns = point.timestamp.checked_mul(unit_ns);
    let time_ns = time_ns.ok_or_else(|| JsonError::Point("time out of range".to_owned()))?;
    let tags = point.tags.iter().flatten().filter(|(key, _)| !key.is_empty());
    let tags = tags.map(|(key, value)| (key.as_str(), value.as_str()));
    match lines.push(&point.metric, tags, [(FIELD, point.value)], time_ns) {
        Ok(()) => Ok(()),
        Err(error @ (PointError::Name | PointError::Value)) => {
            Err(JsonError::Point(format!("{}: {error}", point.metric)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(body: &str) -> Result<String, String> {
        let mut lines = Lines::default();
        parse_json(body.as_bytes(), &mut lines).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(lines.into_text()).unwrap())
    }

    #[test]
    fn bodies() {
        let one = r#"{"metric":"m","timestamp":1479496100,"value":1.5,"tags":{"a":"b c"}}"#;
        let line = "m,a=b\\ c value=1.5 1479496100000000000\n";
        assert_eq!(parsed(one).as_deref(), Ok(line));
        let milli = r#"{"metric":"n","timestamp":1479496100123,"value":2,"more":[1]}"#;
        let want = format!("{line}n value=2.0 1479496100123000000\n");
        assert_eq!(parsed(&format!("[{one},{milli}]")), Ok(want));
        assert_eq!(parsed("[]").as_deref(), Ok(""));
        for (body, error) in [
            ("", "expected JSON array or hash"),
            (" {}", "expected JSON array or hash"),
            ("[1]", "json array decode error"),
            ("{", "json object decode error"),
            (r#"{"metric":"m","value":"1"}"#, "json object decode error"),
        ] {
            assert_eq!(parsed(body), Err(error.to_owned()), "{body}");
        }
        assert!(parsed("{}").unwrap_err().starts_with("write series error: "));
        // A body that is malformed is called so, whatever comes before.
        assert!(parsed("[{},{}]").unwrap_err().starts_with("write series error: "));
        for malformed in ["[{},1]", "[{}", "[{}] x", "[{},]"] {
            assert_eq!(parsed(malformed), Err("json array decode error".to_owned()), "{malformed}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut body = br#"[{"metric":"m","timestamp":1,"value":1.5,"tags":{"a":"b"}}]"#.to_vec();
            let at = at.index(body.len());
            body[at] = byte;
            let _ = parse_json(&body, &mut Lines::default());
        }
    }
}
