//! InfluxQL text to AST and back.
//!
//! [`parse_query`] turns text into a [`Query`]; `Display` of every node prints InfluxDB's normalised text; [`fold`], [`condition`],
//! [`names`] and [`visit`] are the operations on trees that a planner needs.
//!
//! Invariants
//! - Expressions are at most [`DEPTH_MAX`] levels deep and nest at most [`NESTING_MAX`] parentheses; chains of AND/OR are flat, however long.
//! - Parsing is linear in the text and never panics.
//! - `parse(print(tree)) == tree` for every parsed tree (a password prints as `[REDACTED]` and is the one exception).
//!
//! Not here: schemas, matching of regular expressions, time zone data, and the checks InfluxDB makes when it compiles a statement (crate `query`).

pub mod ast;
pub mod condition;
mod display;
pub mod duration;
mod error;
pub mod fold;
pub mod fuzzing;
mod lexer;
pub mod names;
mod params;
mod parser;
mod position;
mod redact;
mod regex;
pub mod time;
mod token;
pub mod visit;

pub use ast::*;
pub use condition::{ConditionError, TimeRange, split_condition};
pub use display::{quote_ident, quote_string};
pub use error::{ParseError, Position};
pub use fold::{FoldContext, reduce};
pub use params::{Param, Params};
pub use parser::{DEPTH_MAX, NESTING_MAX, parse_expr, parse_query, parse_statement};
pub use redact::redact;
pub use regex::{RegexError, translate_regex};
pub use time::{MAX_TIME_NS, MIN_TIME_NS, TimeZone, Timestamp, Utc};
pub use token::keywords;
