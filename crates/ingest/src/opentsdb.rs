//! OpenTSDB's lines (`put metric time value tag=value ...`) and JSON (`/api/put`).

mod json;

pub use json::{JsonError, parse_json};

use crate::point::Lines;

/// The only field there is.
const FIELD: &str = "value";

/// What a line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A point, which was added.
    Put,
    /// Who is there.
    Version,
    /// Nothing: the line is empty.
    Nothing,
}

/// Why a line is nothing that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It has too few columns, or does not start with `put`.
    #[error("not a line of put")]
    Line,
    /// The time has neither 10 digits nor 13.
    #[error("not a time in seconds or milliseconds")]
    Time,
    /// The value is no number that can be stored.
    #[error("not a number")]
    Value,
    /// A name cannot be written down.
    #[error("a name that cannot be written down")]
    Name,
}

/// Reads a line and adds its point, if it has one. Tags that are none are left out.
///
/// # Errors
/// [`LineError`]: nothing was added.
pub fn parse_line(line: &str, lines: &mut Lines) -> Result<Command, LineError> {
    let mut columns = line.split_whitespace();
    let command = columns.next();
    let (metric, time, value) = match (command, columns.next(), columns.next(), columns.next()) {
        (None, ..) => return Ok(Command::Nothing),
        (Some("version"), None, ..) => return Ok(Command::Version),
        (Some("put"), Some(metric), Some(time), Some(value)) => (metric, time, value),
        _ => return Err(LineError::Line),
    };
    let number: i64 = time.parse().map_err(|_| LineError::Time)?;
    let time_ns = match time.len() {
        10 => number.checked_mul(1_000_000_000),
        13 => number.checked_mul(1_000_000),
        _ => None,
    };
    let time_ns = time_ns.ok_or(LineError::Time)?;
    let value: f64 = value.parse().map_err(|_| LineError::Value)?;
    if !value.is_finite() {
        return Err(LineError::Value);
    }
    let tags = columns.filter_map(|tag| {
        tag.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty())
    });
    let added = lines.push(metric, last_of_each(tags), [(FIELD, value)], time_ns);
    added.map(|()| Command::Put).map_err(|_| LineError::Name)
}

/// Tags in the order of their keys; of those with the same key the last one.
fn last_of_each<'a>(
    tags: impl Iterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut tags: Vec<_> = tags.collect();
    // Tags of a key stay in their order.
    tags.sort_by_key(|(key, _)| *key);
    let mut tags = tags.into_iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let (key, value) = tags.next()?;
            if tags.peek().is_none_or(|(next, _)| *next != key) {
                return Some((key, value));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Result<(Command, String), LineError> {
        let mut lines = Lines::default();
        let command = parse_line(line, &mut lines)?;
        Ok((command, String::from_utf8(lines.into_text()).unwrap()))
    }

    #[test]
    fn lines_of_put() {
        for (line, want) in [
            ("put m 1479496100 1.5", "m value=1.5 1479496100000000000\n"),
            ("put m 1479496100123 2 b=2 a=1", "m,a=1,b=2 value=2.0 1479496100123000000\n"),
            (" put  m\t1479496100 1 a=1 bad =x y= a=2\r", "m,a=2 value=1.0 1479496100000000000\n"),
            ("put m 1479496100 1 a=b=c", "m,a=b\\=c value=1.0 1479496100000000000\n"),
        ] {
            assert_eq!(parsed(line), Ok((Command::Put, want.to_owned())), "{line}");
        }
        assert_eq!(parsed("version"), Ok((Command::Version, String::new())));
        assert_eq!(parsed(" "), Ok((Command::Nothing, String::new())));
        for (line, error) in [
            ("get m 1479496100 1", LineError::Line),
            ("put m 1479496100", LineError::Line),
            ("put m 147949610 1", LineError::Time),
            ("put m 147949610x 1", LineError::Time),
            ("put m 1479496100 x", LineError::Value),
            ("put m 1479496100 nan", LineError::Value),
            ("put #m 1479496100 1", LineError::Name),
        ] {
            assert_eq!(parsed(line), Err(error), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(line in "(put )?[a-c =#\\\\,.]{0,8} ?[0-9-]{0,14} ?[0-9.e]{0,5}.{0,8}") {
            let mut lines = Lines::default();
            let put = parse_line(&line, &mut lines) == Ok(Command::Put);
            prop_assert_eq!(lines.points(), usize::from(put));
        }
    }
}
