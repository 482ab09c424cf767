//! Errors of the parser, in InfluxDB's words.

use std::fmt;

/// A place in the text, counted from 1 as users count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Character in the line.
    pub character: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, char {}", self.line, self.character)
    }
}

/// Why a text is no query. `Display` is the message InfluxDB gives behind `error parsing query: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Something else was expected.
    #[error("found {found}, expected {expected} at {position}")]
    Unexpected {
        /// The token as typed; `EOF` at the end of the text.
        found: String,
        /// What could have stood there, separated by commas.
        expected: String,
        /// Where `found` stands.
        position: Position,
    },
    /// A token that is what was expected and yet unusable, such as a number out of range.
    #[error("{message} at {position}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// Where.
        position: Position,
    },
    /// A clause of the field list that only a condition may have.
    #[error(
        "invalid operator {operator} in SELECT clause at {position}; operator is intended for WHERE clause"
    )]
    OperatorInSelect {
        /// The operator.
        operator: &'static str,
        /// Where the field starts.
        position: Position,
    },
    /// `RESAMPLE FOR` covers less than one bucket or one `EVERY`.
    #[error(
        "FOR duration must be >= GROUP BY time duration: must be a minimum of {min}, got {got}"
    )]
    ResampleTooShort {
        /// The least allowed.
        min: String,
        /// What was given.
        got: String,
    },
    /// `$name` without a value.
    #[error("missing parameter: {0}")]
    MissingParameter(String),
    /// Parentheses, calls, subqueries or arithmetic nest too deeply.
    #[error("query is nested too deeply: at most {max} levels are allowed")]
    TooDeep {
        /// The limit.
        max: u32,
    },
    /// A rule without a place in the text.
    #[error("{0}")]
    Rule(String),
}
