//! The command line of `nyala import`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::args::{self, text};
use crate::http::{Endpoint, Security};
use crate::source::Window;

const AFTER_HELP: &str = "\
From files: dumps of influx_inspect export, influxd or nyala export (statements, then lines), bare \
line protocol (with --database), and CSV; packed with gzip or not.
From a server (--from): every database, retention policy, point and continuous query. A field with \
several types keeps its name for the first of float, integer, unsigned, string, boolean; values of \
the others go to a field called after their type (v_string). Both sides' values are counted at the \
end.

Examples:
  nyala import dump.gz
  nyala import --database metrics lines.txt
  nyala import --database metrics --measurement weather --tags city weather.csv
  nyala import --from http://old-server:8086 --state import.state";

/// What is to be imported, and where to.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) from: From,
    pub(super) to: Endpoint,
    /// Of a server: those that are wanted, none for all. For files: where lines belong.
    pub(super) databases: Vec<String>,
    pub(super) policy: String,
    pub(super) precision: String,
    pub(super) lines_per_second_max: u64,
    pub(super) measurement: String,
    pub(super) tags: Vec<String>,
    pub(super) window: Window,
    pub(super) state: Option<PathBuf>,
    pub(super) passwords: Option<PathBuf>,
    pub(super) verify: bool,
}

/// Where from.
#[derive(Debug)]
pub(super) enum From {
    Files(Vec<PathBuf>),
    Server(Endpoint),
}

/// The options.
pub(crate) fn command() -> Command {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |name: &'static str, what: &'static str, help: &'static str| {
        value(name, what, help).value_parser(value_parser!(PathBuf))
    };
    Command::new("import")
        .about("Load dumps, CSV, or all of another server into a server")
        .after_help(AFTER_HELP)
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .num_args(0..)
                .value_parser(value_parser!(PathBuf))
                .help("Dumps, line protocol or CSV (by their ending .csv or .csv.gz); -: stdin"),
        )
        .args(args::connection())
        .arg(value("from", "URL", "Server to import from: http[s]://[USER[:PASSWORD]@]HOST[:PORT]"))
        .arg(args::switch("from-unsafeSsl", "Believe any certificate of that server"))
        .arg(
            value("database", "NAME", "Database to import (all), or that bare lines belong to")
                .action(ArgAction::Append),
        )
        .arg(value("retention", "NAME", "Retention policy that bare lines belong to"))
        .arg(
            value("precision", "UNIT", "Of times in files: ns, u, ms, s, m or h")
                .default_value("ns"),
        )
        .arg(
            value("pps", "POINTS", "Points a second at most; 0: no limit")
                .value_parser(value_parser!(u64))
                .default_value("0"),
        )
        .arg(value("measurement", "NAME", "CSV without such a column: the measurement"))
        .arg(
            value("tags", "COLUMNS", "CSV: columns that are tags, separated by commas")
                .value_delimiter(','),
        )
        .arg(value("start", "TIME", "From a server: points from this time on (RFC 3339)"))
        .arg(value("end", "TIME", "From a server: points before this time"))
        .arg(path(
            "state",
            "FILE",
            "From a server: remembers what arrived whole, to go on after a break",
        ))
        .arg(path(
            "user-passwords",
            "FILE",
            "From a server: make its users, with new passwords that are written to this new file",
        ))
        .arg(
            args::switch("verify", "From a server: count on both sides at the end")
                .default_value("true"),
        )
}

impl Options {
    /// # Errors
    /// They make no sense.
    pub(super) fn read(matches: &ArgMatches) -> Result<Self> {
        let files: Vec<PathBuf> = many(matches, "file");
        let from = match (matches.get_one::<String>("from"), files.is_empty()) {
            (Some(_), false) => bail!("import either from files or from a server"),
            (None, true) => bail!("what to import? Name files, or a server with --from"),
            (None, false) => From::Files(files),
            (Some(url), true) => {
                let mut source = Endpoint::parse(url)?;
                if args::is_on(matches, "from-unsafeSsl") {
                    source.security = Security::TlsAnyCertificate;
                }
                From::Server(source)
            }
        };
        let given =
            |name: &str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
        let (only_files, only_server): (&[_], &[_]) = (
            &["retention", "precision", "measurement", "tags"],
            &["start", "end", "state", "user-passwords", "verify", "from-unsafeSsl"],
        );
        let misplaced = match from {
            From::Files(_) => only_server,
            From::Server(_) => only_files,
        };
        if let Some(name) = misplaced.iter().find(|name| given(name)) {
            let other = if matches!(from, From::Files(_)) { "a server (--from)" } else { "files" };
            bail!("--{name} is for imports from {other}");
        }
        let databases: Vec<String> = many(matches, "database");
        if matches!(from, From::Files(_)) && databases.len() > 1 {
            bail!("the lines of a file belong to one --database");
        }
        let precision = text(matches, "precision");
        if !matches!(precision.as_str(), "ns" | "u" | "ms" | "s" | "m" | "h") {
            bail!("unknown precision {precision:?}: use ns, u, ms, s, m or h");
        }
        Ok(Self {
            from,
            to: args::endpoint(matches)?,
            databases,
            policy: text(matches, "retention"),
            precision,
            lines_per_second_max: matches.get_one("pps").copied().unwrap_or(0),
            measurement: text(matches, "measurement"),
            tags: many(matches, "tags"),
            window: Window::parse(&text(matches, "start"), &text(matches, "end"))?,
            state: matches.get_one("state").cloned(),
            passwords: matches.get_one("user-passwords").cloned(),
            verify: args::is_on(matches, "verify"),
        })
    }

    /// The database of bare lines; empty if none is named.
    pub(super) fn database(&self) -> &str {
        self.databases.first().map_or("", String::as_str)
    }
}

fn many<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    matches.get_many(name).map(|all| all.cloned().collect()).unwrap_or_default()
}
