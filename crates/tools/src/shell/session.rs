//! The state of a shell, and what its commands do to it.

use std::fmt::Write as _;
use std::io::Write;

use anyhow::{Context, Result};

use super::command::{Clear, Command, parse};
use super::insert::Insert;
use super::names::NameSource;
use super::options::Options;
use super::print::{Format, Printer};
use super::table::align;
use super::{help, insert};
use crate::http::{Client, Endpoint, INTERRUPTED, Refusal};
use crate::influx::{self, BadAnswer, Documents, ident};

const NO_DATABASE: &str = "\
Warning: It is possible this error is due to not setting a database.
Please set a database with the command \"use <database>\".
";
const NO_TARGET: &str = "\
Note: error may be due to not setting a database or retention policy.
Please set a database with the command \"use <database>\" or
INSERT INTO <database>.<retention-policy> <point>
";

/// How times look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Precision {
    /// What `epoch` is to be; empty: texts.
    unit: String,
}

impl Default for Precision {
    fn default() -> Self {
        Self { unit: "ns".to_owned() }
    }
}

impl Precision {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.to_lowercase().as_str() {
            "rfc3339" => Some(Self { unit: String::new() }),
            unit @ ("h" | "m" | "s" | "ms" | "u" | "ns") => Some(Self { unit: unit.to_owned() }),
            _ => None,
        }
    }

    pub(super) fn complaint(text: &str) -> String {
        format!("Unknown precision {text:?}. Please use rfc3339, h, m, s, ms, u or ns.")
    }

    /// The unit of times in lines.
    pub(super) fn of_lines(&self) -> &str {
        if self.unit == "ns" { "" } else { &self.unit }
    }
}

pub(super) fn is_consistency(level: &str) -> bool {
    matches!(level, "any" | "one" | "quorum" | "all")
}

/// What a command led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// The statements failed; it is printed already.
    Failed(String),
    Exit,
}

/// A shell.
pub(super) struct Session {
    client: Client,
    pub(super) database: String,
    policy: String,
    precision: Precision,
    format: Format,
    consistency: String,
    pretty: bool,
    chunked: bool,
    /// 0: the server's own.
    chunk_size: u64,
    /// Remarks from the command line that are not said yet.
    complaints: Vec<String>,
    /// Commands of this session and those before; kept by `interactive`.
    pub(super) history: Vec<String>,
}

impl Session {
    /// # Errors
    /// The system has no room for a client.
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self {
            client: Client::new(options.endpoint.clone())?,
            database: options.database.clone(),
            policy: String::new(),
            precision: options.precision.clone(),
            format: options.format,
            consistency: options.consistency.clone(),
            pretty: options.pretty,
            chunked: true,
            chunk_size: 0,
            complaints: options.complaints.clone(),
            history: Vec::new(),
        })
    }

    /// Makes sure that the server is there, and gives its version.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn connect(&mut self) -> Result<String> {
        influx::ping(&mut self.client)
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }

    /// From now on Ctrl-C ends a request.
    pub(super) fn set_interruptible(&mut self) {
        self.client.interruptible = true;
    }

    pub(super) fn name_source(&mut self) -> NameSource<'_> {
        NameSource { client: &mut self.client, database: &self.database }
    }

    /// Does what a line says.
    ///
    /// # Errors
    /// What is printed cannot be printed.
    pub(super) fn obey(&mut self, line: &str, out: &mut dyn Write) -> Result<Outcome> {
        self.complain(out)?;
        match parse(line) {
            Command::Exit => return Ok(Outcome::Exit),
            Command::Query(text) => return self.query(text, out),
            Command::Insert(text) => return self.insert(text, out),
            Command::Connect(address) => return self.connect_to(address, out),
            Command::Auth => self.ask_user(out)?,
            Command::Help => out.write_all(help::HELP.as_bytes())?,
            Command::History => {
                for line in &self.history {
                    writeln!(out, "{line}")?;
                }
            }
            Command::Settings => out.write_all(self.settings().as_bytes())?,
            Command::Use(text) => return self.use_database(text, out),
            Command::Clear(Some(Clear::Database)) => {
                self.database.clear();
                self.policy.clear();
                writeln!(out, "database context cleared")?;
            }
            Command::Clear(Some(Clear::Policy)) => {
                self.policy.clear();
                writeln!(out, "retention policy context cleared")?;
            }
            Command::Clear(None) => out.write_all(help::CLEAR.as_bytes())?,
            other => self.set(&other, out)?,
        }
        Ok(Outcome::Done)
    }

    /// Asks statements.
    ///
    /// # Errors
    /// What is printed cannot be printed.
    pub(super) fn ask(&mut self, statements: &str, out: &mut dyn Write) -> Result<Outcome> {
        self.complain(out)?;
        self.query(statements, out)
    }

    /// Says what is not said yet.
    fn complain(&mut self, out: &mut dyn Write) -> Result<()> {
        for complaint in std::mem::take(&mut self.complaints) {
            writeln!(out, "{complaint}")?;
        }
        Ok(())
    }

    /// Commands that change how answers look.
    fn set(&mut self, command: &Command<'_>, out: &mut dyn Write) -> Result<()> {
        match command {
            Command::Format(name) => match Format::parse(name) {
                Some(format) => self.format = format,
                None => {
                    writeln!(out, "Unknown format {name:?}. Please use json, csv, or column.")?;
                }
            },
            Command::Precision(unit) => match Precision::parse(unit) {
                Some(precision) => self.precision = precision,
                None => writeln!(out, "{}", Precision::complaint(unit))?,
            },
            Command::Consistency(level) if is_consistency(level) => {
                level.clone_into(&mut self.consistency);
            }
            Command::Consistency(level) => {
                let use_what = "Please use any, one, quorum, or all.";
                writeln!(out, "Unknown consistency level {level:?}. {use_what}")?;
            }
            Command::Pretty => {
                self.pretty = !self.pretty;
                let state = if self.pretty { "enabled" } else { "disabled" };
                writeln!(out, "Pretty print {state}")?;
            }
            Command::Chunked => {
                self.chunked = !self.chunked;
                let state = if self.chunked { "enabled" } else { "disabled" };
                writeln!(out, "chunked responses {state}")?;
            }
            Command::ChunkSize(size) => match size.parse() {
                Ok(size) => {
                    self.chunk_size = size;
                    writeln!(out, "chunk size set to {size}")?;
                }
                Err(_) => writeln!(out, "unable to parse chunk size from {size:?}")?,
            },
            _ => {}
        }
        Ok(())
    }

    fn query(&mut self, statements: &str, out: &mut dyn Write) -> Result<Outcome> {
        let chunk_size = self.chunk_size.to_string();
        let params = [
            ("db", self.database.as_str()),
            ("rp", &self.policy),
            ("epoch", &self.precision.unit),
            ("chunked", if self.chunked { "true" } else { "" }),
            ("chunk_size", if self.chunk_size > 0 { &chunk_size } else { "" }),
        ];
        let ask = influx::query(statements, &params, false);
        let printer = Printer::new(out, self.format, self.pretty);
        let failed = match self.client.ask_ok(&ask) {
            Err(error) => {
                let error = format!("{error:#}");
                printer.refused(&error)?;
                Some(error)
            }
            Ok(answer) => match printer.print(&mut Documents::new(answer)) {
                Ok(failed) => failed,
                Err(error) if error.root_cause().to_string() == INTERRUPTED => {
                    Some(INTERRUPTED.to_owned())
                }
                // The next statement may do better.
                Err(error) if error.is::<BadAnswer>() => Some(format!("{error:#}")),
                Err(error) => return Err(error),
            },
        };
        let Some(error) = failed else { return Ok(Outcome::Done) };
        writeln!(out, "ERR: {error}")?;
        if self.database.is_empty() {
            out.write_all(NO_DATABASE.as_bytes())?;
        }
        Ok(Outcome::Failed(error))
    }

    fn insert(&mut self, text: &str, out: &mut dyn Write) -> Result<Outcome> {
        let Some(Insert { database, policy, line }) = insert::parse(text) else {
            writeln!(out, "ERR: {}", insert::USAGE)?;
            return Ok(Outcome::Done);
        };
        let params = [
            ("db", database.as_deref().unwrap_or(&self.database)),
            ("rp", policy.as_deref().unwrap_or(&self.policy)),
            ("precision", self.precision.of_lines()),
            ("consistency", &self.consistency),
        ];
        let ask = influx::write(line.as_bytes().to_vec().into(), &params);
        match self.client.ask_ok(&ask) {
            Ok(answer) => answer.finish()?,
            Err(error) => {
                // As it came: who reads it may want the document.
                let refusal = error.downcast_ref::<Refusal>();
                let body = refusal.map(|refusal| refusal.body.clone());
                writeln!(out, "ERR: {}", body.unwrap_or_else(|| format!("{error:#}")))?;
                if params[0].1.is_empty() {
                    out.write_all(NO_TARGET.as_bytes())?;
                }
            }
        }
        Ok(Outcome::Done)
    }

    fn connect_to(&mut self, address: &str, out: &mut dyn Write) -> Result<Outcome> {
        let now = self.endpoint().clone();
        let next = match Endpoint::parse(address) {
            Ok(next) => Endpoint { security: now.security, user: now.user, ..next },
            Err(error) => {
                writeln!(out, "ERR: {error:#}")?;
                return Ok(Outcome::Done);
            }
        };
        let interruptible = self.client.interruptible;
        let before = std::mem::replace(&mut self.client, Client::new(next)?);
        self.client.interruptible = interruptible;
        if let Err(error) = self.connect() {
            self.client = before;
            writeln!(out, "ERR: {error:#}; still connected to {}", self.endpoint())?;
        }
        Ok(Outcome::Done)
    }

    fn ask_user(&mut self, out: &mut dyn Write) -> Result<()> {
        write!(out, "username: ")?;
        out.flush()?;
        let mut name = String::new();
        std::io::stdin().read_line(&mut name).context("no name")?;
        let password = rpassword::prompt_password("password: ").context("no password")?;
        let name = name.trim().to_owned();
        self.client.set_user(Some((name, password)).filter(|(name, _)| !name.is_empty()));
        Ok(())
    }

    fn use_database(&mut self, text: &str, out: &mut dyn Write) -> Result<Outcome> {
        let Some((database, policy)) = insert::qualified(text.trim_end_matches(';').trim()) else {
            writeln!(
                out,
                "Could not parse database name from {:?}.",
                format!("use {text}").trim()
            )?;
            return Ok(Outcome::Done);
        };
        if let Some(complaint) = self.lacks("SHOW DATABASES", &database) {
            let list = "Run SHOW DATABASES for a list of existing databases.";
            writeln!(
                out,
                "ERR: {}",
                complaint.unwrap_or_else(|| {
                    format!("Database {database} doesn't exist. {list}\nDB does not exist!")
                })
            )?;
            return Ok(Outcome::Done);
        }
        self.database.clone_from(&database);
        self.policy.clear();
        writeln!(out, "Using database {database}")?;
        let Some(policy) = policy else { return Ok(Outcome::Done) };
        let list = format!("SHOW RETENTION POLICIES ON {}", ident(&database));
        if let Some(complaint) = self.lacks(&list, &policy) {
            writeln!(out, "ERR: {}", complaint.unwrap_or_else(|| {
                format!(
                    "RETENTION POLICY {policy} doesn't exist. Run {list} for a list of existing \
                     retention policies."
                )
            }))?;
            return Ok(Outcome::Done);
        }
        writeln!(out, "Using retention policy {policy}")?;
        self.policy = policy;
        Ok(Outcome::Done)
    }

    /// Whether a list of names lacks one; `Some(Some(why))` if it cannot be had.
    fn lacks(&mut self, list: &str, name: &str) -> Option<Option<String>> {
        match influx::small_rows(&mut self.client, "", list) {
            Err(error) => Some(Some(format!("{error:#}"))),
            Ok(rows) => {
                let there = rows.iter().any(|row| row.get("name").is_some_and(|n| n == name));
                (!there).then_some(None)
            }
        }
    }

    fn settings(&self) -> String {
        let endpoint = self.endpoint();
        let user = endpoint.user.as_ref().map_or("", |(name, _)| name);
        let mut text = "Setting\tValue\n--------\t--------\n".to_owned();
        for (name, value) in [
            ("Host", endpoint.authority().as_str()),
            ("Username", user),
            ("Database", &self.database),
            ("RetentionPolicy", &self.policy),
            ("Pretty", &self.pretty.to_string()),
            ("Format", self.format.name()),
            ("Write Consistency", &self.consistency),
            ("Chunked", &self.chunked.to_string()),
            ("Chunk Size", &self.chunk_size.to_string()),
        ] {
            // A string takes any text.
            let _ = writeln!(text, "{name}\t{value}");
        }
        align(&text) + "\n"
    }
}
