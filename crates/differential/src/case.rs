//! Case files: what is asked, one query per line.
//!
//! - `# ...` is a comment, empty lines mean nothing.
//! - `@db NAME` names the database of the following queries, `@db` none.
//! - `@set KEY=VALUE ...` sets further parameters of the following queries (`epoch`, `rp`, `chunked`, ...), `@set`
//!   none. `accept=TYPE` becomes a header, `params` may hold no spaces.
//! - `@expect STATUS BODY` is the answer that the next query must get instead of the recorded one, and
//!   `@reason TEXT` says why. If the query sets `accept`, BODY is text with the escapes below.
//! - `@script NAME DATABASE...` to `@end` is a sequence of requests that change things, in databases of its own,
//!   which are dropped before and after. Its lines are
//!   `query [KEY=VALUE ...] : TEXT` (POST), `get [KEY=VALUE ...] : TEXT` (GET), or
//!   `write [KEY=VALUE ...]` followed by the lines of its body: `|TEXT`, or `|e TEXT` with the escapes
//!   `\r \t \n \0 \\`.
//! - Every other line is a query, sent with GET.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

#[cfg(test)]
mod tests;

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) accept: Option<String>,
    /// The query, or the body of a write.
    pub(crate) text: String,
}

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// GET /query
    Get,
    /// POST /query with a form
    Query,
    /// POST /write
    Write,
}

/// A request, its name, and the answer of 1.8 where that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) key: String,
    pub(crate) request: Request,
    pub(crate) expected: Option<Expected>,
}

/// An answer written by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) reason: String,
}

/// Cases that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    /// A query that changes nothing.
    Plain(Case),
    /// Requests in order, in databases of their own.
    Script { databases: Vec<String>, steps: Vec<Case> },
}

/// A file of cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CaseFile {
    /// The file's name without `.txt`.
    pub(crate) name: String,
    pub(crate) groups: Vec<Group>,
}

impl CaseFile {
    pub(crate) fn cases(&self) -> impl Iterator<Item = &Case> {
        self.groups.iter().flat_map(|group| match group {
            Group::Plain(case) => std::slice::from_ref(case),
            Group::Script { steps, .. } => steps,
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        Self::parse(name, &text).with_context(|| format!("in {}", path.display()))
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut parser = Parser::default();
        for (index, line) in text.lines().enumerate() {
            parser.line(line).with_context(|| format!("line {}", index + 1))?;
        }
        parser.finish()?;
        let file = Self { name: name.to_owned(), groups: parser.groups };
        let mut keys: Vec<&str> = file.cases().map(|case| case.key.as_str()).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("the same case twice: {}", pair[0]);
        }
        Ok(file)
    }
}

/// All case files, by name.
pub(crate) fn read_all(root: &Path) -> Result<Vec<CaseFile>> {
    let directory = root.join("cases");
    let entries =
        fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| CaseFile::read(path)).collect()
}

/// The steps of a file that is one long script without `@script`, as data sets are.
pub(crate) fn parse_steps(text: &str) -> Result<Vec<Case>> {
    let file = CaseFile::parse("", &format!("@script data\n{text}\n@end"))?;
    match file.groups.into_iter().next() {
        Some(Group::Script { steps, .. }) => Ok(steps),
        _ => bail!("no steps"),
    }
}

#[derive(Default)]
struct Parser {
    groups: Vec<Group>,
    db: Option<String>,
    set: Vec<(String, String)>,
    expected: Option<(u16, String)>,
    reason: Option<String>,
    script: Option<Script>,
}

struct Script {
    name: String,
    databases: Vec<String>,
    steps: Vec<Case>,
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<()> {
        if let Some(body) = line.strip_prefix('|') {
            return self.body_line(body);
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let Some(directive) = line.strip_prefix('@') else {
            return if self.script.is_some() { self.step(line) } else { self.plain(line) };
        };
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        self.directive(word, rest.trim())
    }

    fn directive(&mut self, word: &str, rest: &str) -> Result<()> {
        match word {
            "db" => self.db = Some(rest.to_owned()).filter(|name| !name.is_empty()),
            "set" => self.set = pairs(rest)?,
            "reason" => self.reason = Some(rest.to_owned()),
            "expect" => {
                let (status, body) = rest.split_once(' ').unwrap_or((rest, ""));
                self.expected =
                    Some((status.parse().context("@expect needs a status")?, body.to_owned()));
            }
            "script" => {
                if self.script.is_some() {
                    bail!("a script inside a script");
                }
                let mut words = rest.split_ascii_whitespace().map(str::to_owned);
                let name = words.next().context("@script needs a name")?;
                self.script = Some(Script { name, databases: words.collect(), steps: Vec::new() });
            }
            "end" => {
                let script = self.script.take().context("@end without @script")?;
                if script.steps.is_empty() {
                    bail!("a script without steps");
                }
                self.groups
                    .push(Group::Script { databases: script.databases, steps: script.steps });
            }
            other => bail!("unknown directive @{other}"),
        }
        Ok(())
    }

    fn plain(&mut self, query: &str) -> Result<()> {
        let mut parameters = Vec::new();
        parameters.extend(self.db.clone().map(|db| ("db".to_owned(), db)));
        parameters.extend(self.set.iter().cloned());
        let described: Vec<String> =
            parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let key = format!("[{}] {query}", described.join(" "));
        let case = self.case(key, Kind::Get, parameters, query.to_owned())?;
        self.groups.push(Group::Plain(case));
        Ok(())
    }

    fn step(&mut self, line: &str) -> Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let kind = match word {
            "query" => Kind::Query,
            "get" => Kind::Get,
            "write" => Kind::Write,
            _ => bail!("a step starts with query, get or write"),
        };
        let (parameters, text) = match kind {
            Kind::Write => (rest, ""),
            Kind::Get | Kind::Query => {
                let at = rest.find(": ").context("a query step needs ` : ` before its text")?;
                (&rest[..at], rest[at + 2..].trim())
            }
        };
        let script = self.script.as_ref().context("BUG: a step outside of a script")?;
        let key = format!("{} {}: {line}", script.name, script.steps.len() + 1);
        let case = self.case(key, kind, pairs(parameters)?, text.to_owned())?;
        self.script.as_mut().context("BUG: a step outside of a script")?.steps.push(case);
        Ok(())
    }

    fn body_line(&mut self, line: &str) -> Result<()> {
        let step = self.script.as_mut().and_then(|script| script.steps.last_mut());
        let step = step.filter(|step| step.request.kind == Kind::Write);
        let step = step.context("a body line outside of a write")?;
        match line.strip_prefix("e ") {
            Some(escaped) => step.request.text.push_str(&unescape(escaped)?),
            None => step.request.text.push_str(line),
        }
        step.request.text.push('\n');
        Ok(())
    }

    fn case(
        &mut self,
        key: String,
        kind: Kind,
        mut parameters: Vec<(String, String)>,
        text: String,
    ) -> Result<Case> {
        let accept = parameters.iter().position(|(key, _)| key == "accept");
        let accept = accept.map(|index| parameters.remove(index).1);
        let expected = match (self.expected.take(), self.reason.take()) {
            (Some((status, body)), Some(reason)) => {
                let body = if accept.is_some() { unescape(&body)? } else { body };
                Some(Expected { status, body, reason })
            }
            (None, None) => None,
            _ => bail!("@expect and @reason go together"),
        };
        Ok(Case { key, request: Request { kind, parameters, accept, text }, expected })
    }

    fn finish(&self) -> Result<()> {
        if self.script.is_some() {
            bail!("a script does not end");
        }
        if self.expected.is_some() || self.reason.is_some() {
            bail!("@expect or @reason without a query");
        }
        Ok(())
    }
}

fn pairs(text: &str) -> Result<Vec<(String, String)>> {
    let pairs = text.split_ascii_whitespace().map(|word| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => bail!("{word:?} is not KEY=VALUE"),
    });
    pairs.collect()
}

fn unescape(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('r') => '\r',
            Some('t') => '\t',
            Some('n') => '\n',
            Some('0') => '\0',
            Some('\\') => '\\',
            other => bail!("unknown escape {other:?}"),
        });
    }
    Ok(out)
}
