//! Tree to text, as InfluxDB prints it: keywords in upper case, names quoted only where needed, single spaces.
//!
//! Printed text can be read back to an equal tree. Where InfluxDB's own text cannot (a float of more than three decimals, an
//! unquoted odd name behind DISTINCT or `SHOW MEASUREMENTS ON`), more digits or quotes are printed.

mod expr;
mod select;
mod show;
mod statement;

use std::fmt::{self, Display, Formatter, Write};

use crate::ast::{Measurement, Query, SortField};
use crate::token::keyword;

/// A name as it must be written in a query: bare if it can be, else in double quotes.
pub fn quote_ident(name: &str) -> QuotedIdent<'_> {
    let mut bytes = name.bytes();
    let bare = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && keyword(name).is_none();
    QuotedIdent { name, quoted: !bare }
}

/// A string in single quotes with its escapes.
pub fn quote_string(text: &str) -> impl Display + '_ {
    QuotedString(text)
}

/// Prints a name; see [`quote_ident`].
#[derive(Clone, Copy, Debug)]
pub struct QuotedIdent<'a> {
    name: &'a str,
    quoted: bool,
}

impl QuotedIdent<'_> {
    /// With quotes, needed or not.
    #[must_use]
    pub fn always(self) -> Self {
        Self { quoted: true, ..self }
    }
}

impl Display for QuotedIdent<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.quoted { write_quoted(f, self.name, '"') } else { f.write_str(self.name) }
    }
}

struct QuotedString<'a>(&'a str);

impl Display for QuotedString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quoted(f, self.0, '\'')
    }
}

fn write_quoted(f: &mut Formatter<'_>, text: &str, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\\', quote]) {
        let (plain, tail) = rest.split_at(at);
        f.write_str(plain)?;
        let special = tail.chars().next().unwrap_or(quote);
        f.write_char('\\')?;
        f.write_char(if special == '\n' { 'n' } else { special })?;
        rest = &tail[special.len_utf8()..];
    }
    f.write_str(rest)?;
    f.write_char(quote)
}

/// Source text of a regex between slashes.
fn write_regex(f: &mut Formatter<'_>, regex: &str) -> fmt::Result {
    f.write_char('/')?;
    for (i, part) in regex.split('/').enumerate() {
        if i > 0 {
            f.write_str("\\/")?;
        }
        f.write_str(part)?;
    }
    f.write_char('/')
}

/// `items` separated by commas.
fn write_list<T: Display>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// ` CLAUSE value` if there is a value.
fn write_clause<T: Display>(f: &mut Formatter<'_>, clause: &str, value: Option<T>) -> fmt::Result {
    match value {
        Some(value) => write!(f, " {clause} {value}"),
        None => Ok(()),
    }
}

/// ` CLAUSE item, ..` if there are items.
fn write_list_clause<T: Display>(f: &mut Formatter<'_>, clause: &str, items: &[T]) -> fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    write!(f, " {clause} ")?;
    write_list(f, items)
}

/// ` CLAUSE n` unless n is 0.
fn write_count(f: &mut Formatter<'_>, clause: &str, n: u64) -> fmt::Result {
    write_clause(f, clause, (n > 0).then_some(n))
}

/// ` ON database`
fn write_database(f: &mut Formatter<'_>, database: Option<&String>) -> fmt::Result {
    write_clause(f, "ON", database.map(|db| quote_ident(db)))
}

/// ` FROM measurement, ..`
fn write_measurements(f: &mut Formatter<'_>, sources: &[Measurement]) -> fmt::Result {
    write_list_clause(f, "FROM", sources)
}

/// ` ORDER BY ..`
fn write_order_by(f: &mut Formatter<'_>, order_by: &[SortField]) -> fmt::Result {
    write_list_clause(f, "ORDER BY", order_by)
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, statement) in self.statements.iter().enumerate() {
            if i > 0 {
                f.write_str(";\n")?;
            }
            statement.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for SortField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{} ", quote_ident(name))?;
        }
        f.write_str(if self.ascending { "ASC" } else { "DESC" })
    }
}
