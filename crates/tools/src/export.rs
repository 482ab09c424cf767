//! `nyala export`: everything of a running server as a dump (see `dump`), or as CSV.

mod options;
mod output;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ArgMatches;

pub(crate) use options::command as command_line;
use options::{Format, Options};
use output::{NobodyReads, Output};

use crate::csv_text;
use crate::http::Client;
use crate::influx::ident;
use crate::progress::say;
use crate::source::{
    Layout, Policy, Shards, Value, continuous_queries, databases, line_of, measurements, policies,
    read_slice,
};

/// Runs the export.
///
/// # Errors
/// The server is not there, or the file cannot be written.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    match export(matches) {
        // `| head` has seen enough.
        Err(error) if error.is::<NobodyReads>() => Ok(ExitCode::SUCCESS),
        other => other,
    }
}

fn export(matches: &ArgMatches) -> Result<ExitCode> {
    let options = Options::read(matches)?;
    let mut client = Client::new(options.endpoint.clone())?;
    let shards = Shards::ask(&mut client);
    let wanted = databases(&mut client, &options.databases)?;
    let mut output = Output::create(&options.out, options.compress)?;
    let mut all = Vec::new();
    for db in wanted {
        let mut of_db = policies(&mut client, &db)?;
        if !options.policy.is_empty() {
            of_db.retain(|policy| policy.name == options.policy);
        }
        all.push((db, of_db));
    }
    if options.format == Format::Lines && !options.only_lines {
        heading(&mut output, &options, &all)?;
    }
    let mut export = Export { client, shards, options: &options, output, points: 0 };
    for (db, policies) in &all {
        let layouts = measurements(&mut export.client, db, policies)?;
        for policy in policies {
            export.policy(db, policy, &layouts)?;
        }
    }
    let points = export.points;
    export.output.finish()?;
    for (db, _) in &all {
        for statement in continuous_queries(&mut export.client, db)? {
            say(&format!("not exported: {statement}"));
        }
    }
    say(&format!("exported {points} points"));
    Ok(ExitCode::SUCCESS)
}

fn heading(output: &mut Output, options: &Options, all: &[(String, Vec<Policy>)]) -> Result<()> {
    let (start, end) = options.window_texts()?;
    output.line(&format!("# INFLUXDB EXPORT: {start} - {end}"))?;
    output.line("# DDL")?;
    for (db, policies) in all {
        let first = policies.iter().find(|policy| policy.is_default).or(policies.first());
        let with = first.map_or(String::new(), |policy| {
            format!(" WITH {} NAME {}", policy.clauses(), ident(&policy.name))
        });
        output.line(&format!("CREATE DATABASE {}{with}", ident(db)))?;
        for policy in policies.iter().filter(|policy| Some(*policy) != first) {
            output.line(&format!(
                "CREATE RETENTION POLICY {} ON {} {}",
                ident(&policy.name),
                ident(db),
                policy.clauses()
            ))?;
        }
    }
    output.line("# DML")
}

struct Export<'o> {
    client: Client,
    shards: Shards,
    options: &'o Options,
    output: Output,
    points: u64,
}

impl Export<'_> {
    fn policy(&mut self, db: &str, policy: &Policy, layouts: &[Layout]) -> Result<()> {
        if self.options.format == Format::Lines && !self.options.only_lines {
            self.output.line(&format!("# CONTEXT-DATABASE:{db}"))?;
            self.output.line(&format!("# CONTEXT-RETENTION-POLICY:{}", policy.name))?;
        }
        for layout in layouts {
            self.measurement(db, &policy.name, layout)
                .with_context(|| format!("{db}.{}.{}", policy.name, layout.measurement))?;
        }
        Ok(())
    }

    fn measurement(&mut self, db: &str, policy: &str, layout: &Layout) -> Result<()> {
        let name = layout.measurement.as_str();
        let slices =
            self.shards.slices(&mut self.client, (db, policy, name), &self.options.window)?;
        let mut table = Table::new(db, policy, layout);
        let mut line = Vec::new();
        for slice in slices {
            let output = &mut self.output;
            let format = self.options.format;
            self.points +=
                read_slice(
                    &mut self.client,
                    (db, policy),
                    layout,
                    slice,
                    &mut |row| match format {
                        Format::Csv => output.bytes(table.record(row).as_bytes()),
                        Format::Lines => {
                            line_of(name, row, &mut line);
                            line.push(b'\n');
                            output.bytes(&line)
                        }
                    },
                )?;
        }
        Ok(())
    }
}

/// The rows of a measurement as CSV, with a header of their own.
struct Table<'t> {
    place: [&'t str; 3],
    layout: &'t Layout,
    has_header: bool,
}

impl<'t> Table<'t> {
    fn new(db: &'t str, policy: &'t str, layout: &'t Layout) -> Self {
        Self { place: [db, policy, &layout.measurement], layout, has_header: false }
    }

    fn record(&mut self, row: &crate::source::Row<'_>) -> String {
        let mut text = String::new();
        if !std::mem::replace(&mut self.has_header, true) {
            let first = ["database", "retention_policy", "measurement", "time"].map(str::to_owned);
            let tags = self.layout.tags.iter().map(|tag| format!("{tag}::tag"));
            let fields = self.layout.written().map(|(name, kind)| format!("{name}::{kind}"));
            let cells: Vec<String> = first.into_iter().chain(tags).chain(fields).collect();
            text.push_str(&csv_text::record(cells.iter().map(String::as_str)));
        }
        let tag = |key: &String| {
            let found = row.tags.iter().find(|(other, _)| other == key);
            found.map_or("", |(_, value)| value.as_str())
        };
        let field = |name: &str| {
            let found = row.fields.iter().find(|(other, _, _)| *other == name);
            found.map_or("", |(_, _, value)| match value {
                Value::Number(text) | Value::Text(text) => text,
                Value::Boolean(true) => "true",
                Value::Boolean(false) => "false",
            })
        };
        let tags = self.layout.tags.iter().map(tag);
        let fields = self.layout.written().map(|(name, _)| field(name));
        let cells = self.place.into_iter().chain([row.time_ns]).chain(tags).chain(fields);
        text.push_str(&csv_text::record(cells));
        text
    }
}
