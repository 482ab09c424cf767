//! `nyala inspect`: what is in the files of a data directory, and whether they are whole.
//!
//! A directory that a server has open is refused: its files change while they are read.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use catalog::CatalogState;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use jiff::Timestamp;
use model::{DatabaseId, PolicyId, TimeRange};
use platform::SystemDisk;
use store_local::{Damage, Inspector, LogInfo, ManifestInfo};

use crate::banner::bytes;

/// The command line.
pub(crate) fn command() -> Command {
    let dir = Arg::new("data-dir")
        .long("data-dir")
        .value_name("DIR")
        .value_hint(ValueHint::DirPath)
        .value_parser(value_parser!(PathBuf))
        .default_value("./nyala-data")
        .global(true)
        .help("The data directory, which no server has open");
    let part = |name: &'static str, about: &'static str| Command::new(name).about(about);
    Command::new("inspect")
        .about("Look at the files of a data directory, or check them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(dir)
        .subcommand(part("manifest", "Databases, measurements, fields; state of the manifest"))
        .subcommand(
            part("segments", "Each segment: rows, bytes, times").arg(
                Arg::new("details")
                    .long("details")
                    .num_args(0)
                    .action(clap::ArgAction::SetTrue)
                    .help("Fields too, with bytes and encodings: reads all of every segment"),
            ),
        )
        .subcommand(part("wal", "The write-ahead log: files and what is in them"))
        .subcommand(part("series", "The series index: runs, series, tags"))
        .subcommand(
            part("verify", "Check every checksum; name file and offset of damage")
                .after_help("Exits with 0 if everything is whole, with 2 if something is damaged."),
        )
}

/// Exit code of `verify` when something is damaged.
const DAMAGED: u8 = 2;

/// Runs the command.
///
/// # Errors
/// The directory is none, or is in use, or cannot be read.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some((what, flags)) = matches.subcommand() else { return Ok(ExitCode::FAILURE) };
    let dir = flags.get_one::<PathBuf>("data-dir").cloned().unwrap_or_default();
    let inspector = Inspector::open(Arc::new(SystemDisk), &dir)?;
    let mut out = io::stdout().lock();
    let damaged = match what {
        "manifest" => manifest(&inspector, &mut out)?,
        "segments" => segments(&inspector, flags.get_flag("details"), &mut out)?,
        "wal" => {
            let info = inspector.log()?;
            log(&info, &mut out)?;
            report(&info.damage, &mut out)?
        }
        "series" => series(&inspector, &mut out)?,
        _ => verify(&inspector, &mut out)?,
    };
    out.flush()?;
    Ok(if damaged { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS })
}

fn report(damage: &[Damage], out: &mut dyn Write) -> Result<bool> {
    for Damage { path, offset, detail } in damage {
        writeln!(out, "damaged: {} at offset {offset}: {detail}", path.display())?;
    }
    Ok(!damage.is_empty())
}

fn verify(inspector: &Inspector, out: &mut dyn Write) -> Result<bool> {
    let mut damage = Vec::new();
    let looked_at = inspector.verify(&mut |found| damage.push(found))?;
    // The catalog's document is inside the manifest, and has a form of its own.
    if let Some(document) = inspector.manifest().ok().and_then(|info| info.catalog)
        && let Err(error) = CatalogState::read(&document)
    {
        writeln!(out, "damaged: the catalog in the manifest: {error}")?;
        return Ok(true);
    }
    let damaged = report(&damage, out)?;
    let verdict = match damage.len() {
        0 => "everything is whole".to_owned(),
        count => format!("{count} damaged places"),
    };
    writeln!(out, "{} looked at: {verdict}", bytes(looked_at))?;
    Ok(damaged)
}

/// Names of databases and policies by their numbers.
struct Names(Option<CatalogState>);

impl Names {
    fn of(info: &ManifestInfo) -> Self {
        Self(info.catalog.as_ref().and_then(|document| CatalogState::read(document).ok()))
    }

    fn database(&self, id: DatabaseId) -> String {
        let databases = self.0.as_ref().map_or(&[][..], |state| state.databases());
        let found = databases.iter().find(|database| database.id == id);
        found.map_or_else(|| format!("(dropped database {})", id.0), |found| found.name.to_string())
    }

    fn policy(&self, id: PolicyId) -> String {
        let databases = self.0.as_ref().map_or(&[][..], |state| state.databases());
        let policies = databases.iter().flat_map(|database| &database.policies);
        let found = policies.into_iter().find(|policy| policy.id == id);
        found.map_or_else(|| format!("(dropped policy {})", id.0), |found| found.name.to_string())
    }
}

fn manifest(inspector: &Inspector, out: &mut dyn Write) -> Result<bool> {
    let info = inspector.manifest()?;
    let names = Names::of(&info);
    log(&info.log, out)?;
    let rows: u64 = info.segments.iter().map(|segment| segment.rows).sum();
    let size: u64 = info.segments.iter().map(|segment| segment.bytes).sum();
    writeln!(out, "{} segments with {rows} rows, {}", info.segments.len(), bytes(size))?;
    writeln!(out, "{} deletes that hide rows of segments", info.tombstones)?;
    writeln!(out, "the write-ahead log is needed from position {}", info.log_start)?;
    for measurement in &info.measurements {
        let fields: Vec<String> =
            measurement.fields.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        let database = names.database(measurement.database);
        writeln!(out, "{database}.{}: {}", measurement.name, fields.join(", "))?;
    }
    report(&info.log.damage, out)
}

fn segments(inspector: &Inspector, details: bool, out: &mut dyn Write) -> Result<bool> {
    let info = inspector.manifest()?;
    let names = Names::of(&info);
    let mut damaged = report(&info.log.damage, out)?;
    for segment in &info.segments {
        let place =
            format!("{}.{}", names.database(segment.database), names.policy(segment.policy));
        let kind = if segment.cold { ", written for keeping" } else { "" };
        let hidden = match segment.tombstones {
            0 => String::new(),
            count => format!(", {count} deletes hide rows"),
        };
        writeln!(out, "{} {place}", segment.path.display())?;
        writeln!(out, "  {} rows, {}{kind}{hidden}", segment.rows, bytes(segment.bytes))?;
        writeln!(out, "  {} in partition {}", shown(segment.time), shown(segment.partition))?;
        if !details {
            continue;
        }
        let read = match inspector.segment(&segment.path) {
            Ok(read) => read,
            Err(error) => {
                writeln!(out, "damaged: {error}")?;
                damaged = true;
                continue;
            }
        };
        for error in &read.errors {
            writeln!(out, "damaged: {error}")?;
            damaged = true;
        }
        writeln!(
            out,
            "  {} blocks, {} values; times {}, series {}, summaries {}, directories {}",
            read.blocks,
            read.values,
            bytes(read.time_bytes),
            bytes(read.series_bytes),
            bytes(read.window_bytes),
            bytes(read.directory_bytes)
        )?;
        for field in &read.fields {
            let pages: Vec<String> =
                field.encodings.iter().map(|(name, count)| format!("{name} {count}")).collect();
            writeln!(
                out,
                "  {}.{} {}: {} values, {}; pages: {}",
                field.measurement,
                field.field,
                field.field_type,
                field.values,
                bytes(field.bytes),
                pages.join(", ")
            )?;
        }
    }
    Ok(damaged)
}

fn log(info: &LogInfo, out: &mut dyn Write) -> Result<()> {
    for file in &info.files {
        let base = file.base.map_or("damaged header".to_owned(), |base| format!("from {base}"));
        let size = bytes(file.bytes);
        writeln!(out, "{} {size}, {base} to {}", file.path.display(), file.end)?;
    }
    let kinds: Vec<String> = info.kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    let (records, size) = (info.records, bytes(info.record_bytes));
    writeln!(out, "{records} records with {size}: {}", kinds.join(", "))?;
    let closed = if info.clean { "closed properly" } else { "not closed properly" };
    let torn = match info.torn_bytes {
        0 => String::new(),
        torn => format!("; {} of an unfinished write at the end", bytes(torn)),
    };
    Ok(writeln!(out, "{closed}{torn}")?)
}

fn series(inspector: &Inspector, out: &mut dyn Write) -> Result<bool> {
    let info = inspector.series(false)?;
    for run in &info.runs {
        writeln!(
            out,
            "{} {}: {} series of {} measurements, {} tags",
            run.path.display(),
            bytes(run.bytes),
            run.series,
            run.measurements,
            run.tags
        )?;
    }
    writeln!(out, "{} series are removed and still in a run", info.removed)?;
    for error in &info.errors {
        writeln!(out, "damaged: {error}")?;
    }
    Ok(!info.errors.is_empty())
}

/// Times as people read them.
fn shown(range: TimeRange) -> String {
    let time = |ns: i64| Timestamp::from_nanosecond(ns.into()).map(|time| time.to_string());
    match (time(range.min), time(range.max)) {
        (Ok(first), Ok(last)) => format!("{first} to {last}"),
        _ => format!("{} ns to {} ns", range.min, range.max),
    }
}
