//! The command line of `nyala export`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use jiff::Timestamp;

use crate::args::{self, text};
use crate::http::Endpoint;
use crate::source::Window;

const AFTER_HELP: &str = "\
The dump is one that influx -import, nyala import and nyala shell -import read: statements that make \
databases and retention policies, then every point as line protocol. CSV has a header for each \
measurement, with types; an empty text cannot be told from no value there.
Continuous queries, subscriptions and users are in neither; nyala import --from copies the first and \
the last from a running server.
Options may be written with one dash or two.

Examples:
  nyala export -out dump.gz -compress
  nyala export -database metrics -format csv -out - | head";

/// What is to be exported.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) endpoint: Endpoint,
    pub(super) databases: Vec<String>,
    /// Empty: all.
    pub(super) policy: String,
    pub(super) window: Window,
    pub(super) out: PathBuf,
    pub(super) compress: bool,
    pub(super) format: Format,
    pub(super) only_lines: bool,
}

/// How points are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Lines,
    Csv,
}

/// The options.
pub(crate) fn command() -> Command {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("export")
        .about("Write the points of a server to a dump or CSV")
        .after_help(AFTER_HELP)
        .args(args::connection())
        .arg(value("database", "NAME", "Database to export (all)").action(ArgAction::Append))
        .arg(value("retention", "NAME", "Retention policy to export (all)"))
        .arg(value("start", "TIME", "Points from this time on (RFC 3339)"))
        .arg(value("end", "TIME", "Points before this time"))
        .arg(
            value("out", "FILE", "Where to; - is the standard output")
                .value_parser(value_parser!(PathBuf))
                .required(true),
        )
        .arg(args::switch("compress", "Pack with gzip"))
        .arg(args::switch("lponly", "Only line protocol, without statements and comments"))
        .arg(value("format", "FORMAT", "lines or csv").default_value("lines"))
}

impl Options {
    /// # Errors
    /// They make no sense.
    pub(super) fn read(matches: &ArgMatches) -> Result<Self> {
        let databases: Option<Vec<String>> =
            matches.get_many("database").map(|all| all.cloned().collect());
        let format = match text(matches, "format").as_str() {
            "lines" => Format::Lines,
            "csv" => Format::Csv,
            other => bail!("unknown format {other:?}: use lines or csv"),
        };
        let policy = text(matches, "retention");
        if !policy.is_empty() && databases.as_ref().is_none_or(|names| names.len() != 1) {
            bail!("-retention needs one -database");
        }
        Ok(Self {
            endpoint: args::endpoint(matches)?,
            databases: databases.unwrap_or_default(),
            policy,
            window: Window::parse(&text(matches, "start"), &text(matches, "end"))?,
            out: matches.get_one("out").cloned().unwrap_or_default(),
            compress: args::is_on(matches, "compress"),
            format,
            only_lines: args::is_on(matches, "lponly"),
        })
    }

    /// The window as the heading of a dump shows it.
    pub(super) fn window_texts(&self) -> Result<(Timestamp, Timestamp)> {
        let second = |ns: i64| Timestamp::from_second(ns.div_euclid(1_000_000_000));
        Ok((second(self.window.first_ns)?, second(self.window.last_ns)?))
    }
}
