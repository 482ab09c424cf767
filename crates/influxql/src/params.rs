//! Values bound to `$name` in a query.
//!
//! A bound value becomes one token and is never read as text again, so it cannot change the shape of a query.
//!
//! Not here: JSON, which the server decodes.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::duration::DurationText;
use crate::token::Tok;

/// A bound value.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A number.
    Float(f64),
    /// An integer.
    Integer(i64),
    /// A string.
    String(String),
    /// A truth value.
    Boolean(bool),
    /// Source text of a regex.
    Regex(String),
    /// A name.
    Identifier(String),
    /// Text of a duration, such as `1h`.
    Duration(String),
    /// A value that cannot be bound, with the reason; using it is an error.
    Invalid(String),
}

impl Param {
    /// The value `{kind: value}`: `value` taken as the named kind of token. What does not fit becomes [`Param::Invalid`].
    pub fn of_kind(kind: &str, value: Self) -> Self {
        let reason = match (kind, value) {
            (_, Self::Invalid(reason)) => reason,
            ("ident" | "identifier", Self::String(s)) => return Self::Identifier(s),
            ("ident" | "identifier", _) => "identifier must be a string value".to_owned(),
            ("regex", Self::String(s)) => return Self::Regex(s),
            ("regex", _) => "regex literal must be a string value".to_owned(),
            ("string", Self::String(s)) => return Self::String(s),
            ("string", _) => "string literal must be a string value".to_owned(),
            ("float" | "number", Self::Float(f)) => return Self::Float(f),
            ("float" | "number", Self::Integer(i)) => return Self::Float(i as f64),
            ("float" | "number", _) => "number literal must be a float value".to_owned(),
            ("int" | "integer", Self::Integer(i)) => return Self::Integer(i),
            ("int" | "integer", _) => "integer literal must be an integer value".to_owned(),
            ("duration", Self::String(s)) => return Self::Duration(s),
            ("duration", Self::Integer(ns)) => return Self::duration_ns(ns),
            ("duration", _) => "duration literal must be a string or integer value".to_owned(),
            (kind, _) => format!("unknown bind object type: {kind}"),
        };
        Self::Invalid(reason)
    }

    /// A duration.
    pub fn duration_ns(ns: i64) -> Self {
        Self::Duration(DurationText(ns).to_string())
    }

    /// For an object with another number of entries than one.
    pub fn not_one_entry() -> Self {
        Self::Invalid("bound object parameter value must have exactly one entry".to_owned())
    }

    /// For a value of a type that no token has; `type_name` as the user should read it.
    pub fn unsupported(type_name: &str) -> Self {
        Self::Invalid(format!("unable to bind parameter with type {type_name}"))
    }

    /// The token that stands for this value.
    pub(crate) fn token(&self) -> (Tok, Cow<'_, str>) {
        match self {
            Self::Float(f) => (Tok::Number, Cow::Owned(f.to_string())),
            Self::Integer(i) => (Tok::Integer, Cow::Owned(i.to_string())),
            Self::String(s) => (Tok::String, Cow::Borrowed(s)),
            Self::Boolean(true) => (Tok::True, Cow::Borrowed("")),
            Self::Boolean(false) => (Tok::False, Cow::Borrowed("")),
            Self::Regex(s) => (Tok::Regex, Cow::Borrowed(s)),
            Self::Identifier(s) => (Tok::Ident, Cow::Borrowed(s)),
            Self::Duration(s) => (Tok::DurationVal, Cow::Borrowed(s)),
            Self::Invalid(reason) => (Tok::BoundParam, Cow::Borrowed(reason)),
        }
    }
}

/// Bound values by name, without the dollar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(HashMap<String, Param>);

impl Params {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `value` to `name`, replacing what was there.
    pub fn insert(&mut self, name: impl Into<String>, value: Param) {
        self.0.insert(name.into(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Param> {
        self.0.get(name)
    }
}

impl FromIterator<(String, Param)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, Param)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}
