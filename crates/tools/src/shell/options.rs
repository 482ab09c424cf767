//! The command line of the shell: the options of `influx`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::print::Format;
use super::session::{Precision, is_consistency};
use crate::args::{self, text};
use crate::http::Endpoint;

const AFTER_HELP: &str = "\
Options may be written with one dash or two, as in `influx -host a` and `--host=a`.
Without -execute and with a terminal, it asks for statements; `help` there says more.

Examples:
  nyala shell -database metrics -execute 'SELECT * FROM cpu LIMIT 5' -format json -pretty
  nyala shell -host db.example -ssl -username ann -password ''
  nyala shell -import -path dump.gz -compressed";

/// What the shell is to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(super) endpoint: Endpoint,
    pub(super) database: String,
    pub(super) precision: Precision,
    pub(super) format: Format,
    pub(super) consistency: String,
    pub(super) pretty: bool,
    pub(super) execute: Option<String>,
    pub(super) import: Option<Import>,
    pub(super) version: bool,
    /// What is wrong and no reason to stop.
    pub(super) complaints: Vec<String>,
}

/// A file to import.
#[derive(Debug)]
pub(crate) struct Import {
    pub(super) path: PathBuf,
    pub(super) compressed: bool,
    pub(super) points_per_second: u64,
}

/// The options.
pub(crate) fn command() -> Command {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("shell")
        .about("Ask a server in InfluxQL")
        .after_help(AFTER_HELP)
        .disable_version_flag(true)
        .args(args::connection())
        .arg(value("database", "NAME", "Database that statements are for"))
        .arg(value("execute", "STATEMENTS", "Execute this and leave"))
        .arg(value("format", "FORMAT", "column, csv or json").default_value("column"))
        .arg(
            value("precision", "UNIT", "How times look: rfc3339, h, m, s, ms, u or ns")
                .default_value("ns"),
        )
        .arg(
            value("consistency", "LEVEL", "For writes: any, one, quorum or all")
                .default_value("all"),
        )
        .arg(args::switch("pretty", "Indent JSON"))
        .arg(args::switch("import", "Import a dump (see -path)"))
        .arg(
            value("path", "FILE", "What to import; - is the standard input")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(args::switch("compressed", "The dump is packed with gzip"))
        .arg(
            value("pps", "POINTS", "Import at most so many points a second; 0: no limit")
                .value_parser(value_parser!(u64))
                .default_value("0"),
        )
        .arg(
            Arg::new("version")
                .long("version")
                .action(ArgAction::SetTrue)
                .help("Show the version and leave"),
        )
}

impl Options {
    /// # Errors
    /// They make no sense.
    pub(super) fn read(matches: &ArgMatches) -> Result<Self> {
        let mut complaints = Vec::new();
        let endpoint = args::endpoint(matches)?;
        let precision = text(matches, "precision");
        let precision = Precision::parse(&precision).unwrap_or_else(|| {
            complaints.push(Precision::complaint(&precision));
            Precision::default()
        });
        let format = text(matches, "format");
        let Some(format) = Format::parse(&format) else {
            bail!("unknown format {format:?}: use json, csv or column")
        };
        let consistency = text(matches, "consistency");
        if !is_consistency(&consistency) {
            bail!("unknown consistency level {consistency:?}: use any, one, quorum or all");
        }
        let path = matches.get_one::<PathBuf>("path").cloned();
        let import = match (args::is_on(matches, "import"), path) {
            (true, Some(path)) => Some(Import {
                path,
                compressed: args::is_on(matches, "compressed"),
                points_per_second: matches.get_one("pps").copied().unwrap_or(0),
            }),
            (true, None) => bail!("-import needs a file: -path FILE"),
            (false, Some(_)) => bail!("-path is for -import"),
            (false, None) => None,
        };
        Ok(Self {
            endpoint,
            database: text(matches, "database"),
            precision,
            format,
            consistency,
            pretty: args::is_on(matches, "pretty"),
            execute: matches.get_one("execute").cloned(),
            import,
            version: matches.get_flag("version"),
            complaints,
        })
    }
}
