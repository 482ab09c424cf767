//! The load of every system, several times in turns: the machine is slower in one minute than in the next, and a
//! load of seconds would show that and not the system.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::{CompareOptions, Settling, dialect, load_options, prepare};
use crate::load::{LoadReport, load, note};
use crate::query_run::Dialect;
use crate::system::{Running, System};

/// Between the end of one server, whose files the disk has to forget, and the next.
const REST: Duration = Duration::from_secs(2);

/// A new server that was loaded. It stops before its files go.
pub(super) struct Loaded {
    pub(super) server: Running,
    pub(super) dialect: Dialect,
    pub(super) load: LoadReport,
    _directory: TempDir,
}

/// Starts a system in a directory of its own and loads it.
pub(super) fn load_new(system: &System, options: &CompareOptions) -> Result<Loaded> {
    std::thread::sleep(REST);
    let directory = new_directory(options.directory.as_deref());
    let directory = directory.context("no place for the server's files")?;
    let settings = nyala_settings(&options.settling);
    let server = system.start_with(directory.path(), &settings)?;
    let dialect = dialect(system);
    prepare(&server, &dialect)?;
    let load = load(&options.data, &load_options(&server, &dialect, options))?;
    note(&format!("loaded {:.2} M values/s", load.rate() / 1e6));
    Ok(Loaded { server, dialect, load, _directory: directory })
}

fn nyala_settings(settling: &Settling) -> Vec<(&'static str, String)> {
    let text = |idle_after: Duration| format!("{}ms", idle_after.as_millis());
    settling.nyala_idle_after.map(|after| ("NYALA_IDLE_AFTER", text(after))).into_iter().collect()
}

fn new_directory(parent: Option<&Path>) -> std::io::Result<TempDir> {
    match parent {
        Some(parent) => std::fs::create_dir_all(parent).and_then(|()| tempfile::tempdir_in(parent)),
        None => tempfile::tempdir(),
    }
}

/// Loads new servers of every system in turns, once less than the options say: the last load is that of
/// the server that is asked. One list a system.
pub(super) fn in_turns(
    systems: &[&System],
    options: &CompareOptions,
) -> Result<Vec<Vec<LoadReport>>> {
    let mut loads = vec![Vec::new(); systems.len()];
    for round in 1..options.load_rounds {
        for (system, loads) in systems.iter().zip(&mut loads) {
            note(&format!("== {}, load {round} of {}", system.name(), options.load_rounds));
            let loaded = load_new(system, options).with_context(|| system.name().to_owned())?;
            loads.push(loaded.load);
        }
    }
    Ok(loads)
}

/// The load of median rate (of an even number the faster one of the middle).
pub(super) fn median(loads: &[LoadReport]) -> Option<&LoadReport> {
    let mut sorted: Vec<&LoadReport> = loads.iter().collect();
    sorted.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    sorted.get(sorted.len() / 2).copied()
}
