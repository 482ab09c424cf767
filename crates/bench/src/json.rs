//! A small JSON reader that keeps the digits of numbers and the order of keys, and a comparison of documents.
//!
//! Answers of two servers are compared here, so `22` and `22.0`, or an int64 and the float next to it, must not
//! become one. Nesting is limited; the input is otherwise bounded by the caller.

use std::fmt;

use thiserror::Error;

mod compare;
mod read;

pub use compare::{Difference, differences};

#[cfg(test)]
mod tests;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object with its keys in order of appearance.
    Object(Vec<(String, Json)>),
}

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not JSON at byte {offset}: {reason}")]
pub struct JsonError {
    /// Where reading stopped.
    pub offset: usize,
    /// What was wrong there.
    pub reason: &'static str,
}

impl Json {
    /// Reads one document that fills the text, white space aside.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        let (value, rest) = read::document(text)?;
        match read::skip_space(text, rest) {
            end if end == text.len() => Ok(value),
            offset => Err(JsonError { offset, reason: "something follows the document" }),
        }
    }

    /// Reads documents that follow each other, as in a chunked answer.
    ///
    /// # Errors
    /// When one of them is not JSON.
    pub fn parse_sequence(text: &[u8]) -> Result<Vec<Self>, JsonError> {
        let mut documents = Vec::new();
        let mut offset = read::skip_space(text, 0);
        while offset < text.len() {
            let (value, end) = read::value_at(text, offset)?;
            documents.push(value);
            offset = read::skip_space(text, end);
        }
        Ok(documents)
    }

    /// The value of a key, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The elements, if this is an array.
    #[must_use]
    pub fn elements(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    /// Compact JSON; numbers with the digits they came with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(digits) => f.write_str(digits),
            Self::String(text) => write_string(f, text),
            Self::Array(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (key, value)) in members.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write_string(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            control if u32::from(control) < 0x20 => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}
