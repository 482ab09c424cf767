//! Completes keywords, databases and measurements.

use influxql::{keywords, quote_ident};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::http::Client;
use crate::influx;

/// Measurements that are offered.
const MEASUREMENTS_MAX: usize = 10_000;

const COMMANDS: &[&str] = &[
    "auth",
    "chunk",
    "chunked",
    "clear",
    "connect",
    "consistency",
    "exit",
    "format",
    "help",
    "history",
    "insert",
    "precision",
    "pretty",
    "quit",
    "settings",
    "use",
];

/// Where names come from.
pub(super) struct NameSource<'s> {
    pub(super) client: &'s mut Client,
    pub(super) database: &'s str,
}

/// What may be completed.
#[derive(Debug, Default)]
pub(super) struct Names {
    databases: Vec<String>,
    measurements: Vec<String>,
}

impl Names {
    /// Asks for the names that there are now. A server that does not tell leaves none: completion is
    /// a convenience.
    pub(super) fn refresh(&mut self, source: &mut NameSource<'_>) {
        self.databases = list(source, "SHOW DATABASES");
        self.measurements = if source.database.is_empty() {
            Vec::new()
        } else {
            list(source, &format!("SHOW MEASUREMENTS LIMIT {MEASUREMENTS_MAX}"))
        };
    }

    /// Where the word before `pos` starts, and what it may become.
    fn candidates(&self, line: &str, pos: usize) -> (usize, Vec<String>) {
        let before = &line[..pos];
        let is_break = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | ';' | '.');
        let start = before
            .rfind(is_break)
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let bare = word.trim_start_matches('"');
        let quoted = bare.len() < word.len();
        let mut found = Vec::new();
        let starts = |name: &str| {
            name.get(..bare.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(bare))
        };
        let last = before[..start].split_whitespace().next_back().unwrap_or("").to_lowercase();
        let wants_name = matches!(last.as_str(), "use" | "on" | "from" | "insert");
        if !quoted && !bare.is_empty() && !wants_name {
            if start == 0 {
                found.extend(COMMANDS.iter().filter(|c| starts(c)).map(|c| (*c).to_owned()));
            }
            found.extend(keywords().filter(|k| starts(k)).map(|k| cased(k, bare)));
        }
        let names: &[&[String]] = match last.as_str() {
            "use" | "on" | "database" => &[&self.databases],
            "from" | "measurement" | "insert" => &[&self.measurements, &self.databases],
            _ if bare.is_empty() => &[],
            _ => &[&self.measurements, &self.databases],
        };
        for name in names.iter().copied().flatten().filter(|name| starts(name)) {
            let name = quote_ident(name);
            found.push(if quoted { name.always() } else { name }.to_string());
        }
        found.dedup();
        (start, found)
    }
}

fn list(source: &mut NameSource<'_>, statement: &str) -> Vec<String> {
    let rows = influx::small_rows(source.client, source.database, statement).unwrap_or_default();
    rows.into_iter().filter_map(|mut row| row.remove("name")).collect()
}

/// A keyword in the case that its beginning was typed in.
fn cased(keyword: &str, begun: &str) -> String {
    if begun.chars().any(char::is_lowercase) { keyword.to_lowercase() } else { keyword.to_owned() }
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.candidates(line, pos);
        let pair = |name: String| Pair { display: name.clone(), replacement: name };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates() {
        let names = Names {
            databases: vec!["metrics".to_owned(), "my db".to_owned()],
            measurements: vec!["mem".to_owned(), "select".to_owned()],
        };
        let of = |line: &str| names.candidates(line, line.len());
        assert_eq!(of("sel"), (0, vec!["select".to_owned(), "\"select\"".to_owned()]));
        assert_eq!(of("use m"), (4, vec!["metrics".to_owned(), "\"my db\"".to_owned()]));
        assert_eq!(of("use "), (4, vec!["metrics".to_owned(), "\"my db\"".to_owned()]));
        assert_eq!(of("SELECT x FROM \"me").1, ["\"mem\"", "\"metrics\""]);
        assert_eq!(of("SELECT mean(x) GRO"), (15, vec!["GROUP".to_owned(), "GROUPS".to_owned()]));
        assert_eq!(of("CREATE SUBSC").1, ["SUBSCRIPTION", "SUBSCRIPTIONS"]);
        assert_eq!(of("SELECT "), (7, vec![]));
        assert_eq!(of("\u{e9} \u{e9}"), (3, vec![]));
    }
}
