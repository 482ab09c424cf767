//! An answer in the form in which it is stored and compared.
//!
//! What differs from run to run is removed: shard numbers in messages, the database `_internal` in a list.

use bench::http::Response;
use bench::json::{Json, differences};

/// Relative difference of floats that is not an error: the order of summing is the server's choice.
const TOLERANCE: f64 = 1e-12;
const DIFFERENCES_MAX: usize = 5;

/// A body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// One JSON document.
    Document(Json),
    /// Several JSON documents, as in a chunked answer.
    Chunks(Vec<Json>),
    /// Anything else, compared byte for byte.
    Text(String),
}

/// Status, the two headers that clients look at, and the body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) error_header: Option<String>,
    pub(crate) body: Body,
}

impl Answer {
    pub(crate) fn of(response: &Response<'_>, as_text: bool) -> Self {
        Self {
            status: response.status,
            content_type: response.header("Content-Type").map(str::to_owned),
            error_header: response.header("X-Influxdb-Error").map(mask_shard),
            body: Body::of(response.body, as_text),
        }
    }

    /// An answer written by hand to a request that accepts `content_type`; non-2xx answers repeat
    /// their message in a header.
    pub(crate) fn by_hand(status: u16, content_type: &str, body: &str) -> Self {
        let body = Body::of(body.as_bytes(), false);
        let message = match &body {
            Body::Document(document) if status >= 300 => document.get("error").and_then(Json::text),
            _ => None,
        };
        let error_header = message.map(str::to_owned);
        Self { status, content_type: Some(content_type.to_owned()), error_header, body }
    }

    /// Everything in which the other answer differs, one line each.
    pub(crate) fn differences(&self, actual: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.status != actual.status {
            found.push(format!("status: expected {}, got {}", self.status, actual.status));
        }
        let headers = [
            ("Content-Type", &self.content_type, &actual.content_type),
            ("X-Influxdb-Error", &self.error_header, &actual.error_header),
        ];
        for (name, expected, actual) in headers {
            if expected != actual {
                found.push(format!(
                    "{name}: expected {}, got {}",
                    shown(expected.as_deref()),
                    shown(actual.as_deref())
                ));
            }
        }
        found.extend(self.body.differences(&actual.body));
        found
    }
}

fn shown(header: Option<&str>) -> String {
    header.map_or_else(|| "none".to_owned(), |value| format!("{value:?}"))
}

impl Body {
    fn of(bytes: &[u8], as_text: bool) -> Self {
        if !as_text && let Ok(mut documents) = Json::parse_sequence(bytes) {
            documents.iter_mut().for_each(normalise);
            match documents.len() {
                0 => {}
                1 => return Self::Document(documents.remove(0)),
                _ => return Self::Chunks(documents),
            }
        }
        Self::Text(String::from_utf8_lossy(bytes).into_owned())
    }

    fn documents(&self) -> Option<&[Json]> {
        match self {
            Self::Document(document) => Some(std::slice::from_ref(document)),
            Self::Chunks(documents) => Some(documents),
            Self::Text(_) => None,
        }
    }

    fn differences(&self, actual: &Self) -> Vec<String> {
        match (self, actual) {
            (Self::Text(expected), Self::Text(actual)) if expected == actual => Vec::new(),
            (Self::Text(expected), Self::Text(actual)) => text_difference(expected, actual),
            _ => match (self.documents(), actual.documents()) {
                (Some([expected]), Some([actual])) => describe(expected, actual),
                (Some(expected), Some(actual)) => {
                    describe(&Json::Array(expected.to_vec()), &Json::Array(actual.to_vec()))
                }
                _ => vec![format!("body: expected {self}, got {actual}")],
            },
        }
    }
}

fn describe(expected: &Json, actual: &Json) -> Vec<String> {
    differences(expected, actual, TOLERANCE, DIFFERENCES_MAX)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn text_difference(expected: &str, actual: &str) -> Vec<String> {
    let mut pairs = expected.lines().zip(actual.lines()).enumerate();
    let first = pairs.find(|(_, (expected, actual))| expected != actual);
    vec![match first {
        Some((index, (expected, actual))) => {
            format!("line {}: expected {expected:?}, got {actual:?}", index + 1)
        }
        None => format!("expected {} bytes of text, got {}", expected.len(), actual.len()),
    }]
}

impl std::fmt::Display for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN_CHARACTERS_MAX: usize = 300;
        let text = match self {
            Self::Document(document) => document.to_string(),
            Self::Chunks(documents) => {
                documents.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
            Self::Text(text) => format!("{text:?}"),
        };
        let cut: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
        f.write_str(&cut)
    }
}

/// Removes what depends on the server's history.
fn normalise(document: &mut Json) {
    match document {
        Json::Array(elements) => elements.iter_mut().for_each(normalise),
        Json::Object(members) => {
            let databases = members
                .iter()
                .any(|(key, value)| key == "name" && value.text() == Some("databases"));
            for (key, value) in members {
                match value {
                    Json::String(text) if key == "error" => *text = mask_shard(text),
                    Json::Array(rows) if databases && key == "values" => {
                        let internal = Json::Array(vec![Json::String("_internal".to_owned())]);
                        rows.retain(|row| *row != internal);
                    }
                    other => normalise(other),
                }
            }
        }
        _ => {}
    }
}

/// `shard 17: ...` becomes `shard N: ...`.
fn mask_shard(message: &str) -> String {
    let Some(rest) = message.strip_prefix("shard ") else { return message.to_owned() };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { message.to_owned() } else { format!("shard N{}", &rest[digits..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer::by_hand(status, "application/json", body)
    }

    #[test]
    fn history_is_masked() {
        let one = answer(200, r#"{"results":[{"error":"shard 3: fields"}]}"#);
        let other = answer(200, r#"{"results":[{"error":"shard 14: fields"}]}"#);
        assert_eq!(one.differences(&other), [""; 0]);
        let with =
            answer(200, r#"{"series":[{"name":"databases","values":[["_internal"],["a"]]}]}"#);
        let without = answer(200, r#"{"series":[{"name":"databases","values":[["a"]]}]}"#);
        assert_eq!(with.differences(&without), [""; 0]);
    }

    #[test]
    fn every_part_is_compared() {
        let one = answer(400, r#"{"error":"a"}"#);
        let other = answer(200, r#"{"error":"b"}"#);
        assert_eq!(one.differences(&other).len(), 3);
        assert_eq!(one.error_header.as_deref(), Some("a"));
        assert_eq!(answer(200, "{}\n{}").differences(&answer(200, "{}")).len(), 1);
        assert_eq!(
            answer(200, "a,b\n1,2").differences(&answer(200, "a,b\n1,3")),
            ["line 2: expected \"1,2\", got \"1,3\""]
        );
        assert_eq!(answer(200, "").differences(&answer(200, "{}")).len(), 1);
    }
}
