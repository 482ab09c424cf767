//! Remembers which slices are imported: a file of JSON lines that only grows. A slice is there only if
//! it arrived whole and the source can get no newer rows in it.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::source::Slice;

/// What is done.
#[derive(Debug, Default)]
pub(super) struct State {
    done: HashSet<String>,
    /// None: nothing is remembered.
    file: Option<File>,
}

impl State {
    /// Reads the file, or begins it.
    ///
    /// # Errors
    /// It is the state of another import, or cannot be read.
    pub(super) fn open(path: Option<&Path>, source: &str, target: &str) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let context = || format!("the state file {}", path.display());
        let head = serde_json::to_string(&("nyala import", source, target))?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(context)?;
        let mut done = HashSet::new();
        let mut lines = BufReader::new(&file);
        let mut line = String::new();
        let mut first = true;
        while lines.read_line(&mut line).with_context(context)? > 0 {
            // The last line of an import that was killed may be torn.
            if let Some(whole) = line.strip_suffix('\n') {
                if first && whole != head {
                    bail!("{} belongs to another import: {whole}", context());
                }
                first = false;
                done.insert(whole.to_owned());
            } else {
                file.write_all(b"\n").with_context(context)?;
                break;
            }
            line.clear();
        }
        if first {
            file.write_all(format!("{head}\n").as_bytes()).with_context(context)?;
        }
        Ok(Self { done, file: Some(file) })
    }

    /// Whether anything was done before.
    pub(super) fn slices_done(&self) -> usize {
        self.done.len().saturating_sub(1)
    }

    pub(super) fn is_done(&self, place: (&str, &str, &str), slice: Slice) -> Result<bool> {
        Ok(!self.done.is_empty() && self.done.contains(&entry(place, slice)?))
    }

    /// # Errors
    /// It cannot be written.
    pub(super) fn set_done(&mut self, place: (&str, &str, &str), slice: Slice) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let line = entry(place, slice)? + "\n";
        file.write_all(line.as_bytes()).context("the state file")
    }
}

fn entry(place: (&str, &str, &str), slice: Slice) -> Result<String> {
    let (db, policy, measurement) = place;
    Ok(serde_json::to_string(&(db, policy, measurement, slice.first_ns, slice.last_ns))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_stays_done() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let place = ("d", "p\"", "m\n");
        let slice = |first_ns| Slice { first_ns, last_ns: 9 };
        let mut state = State::open(Some(&path), "a", "b").unwrap();
        state.set_done(place, slice(1)).unwrap();
        assert!(!state.is_done(place, slice(2)).unwrap());
        drop(state);
        let torn = std::fs::read_to_string(&path).unwrap() + "[\"d\",\"p";
        std::fs::write(&path, torn).unwrap();
        let mut state = State::open(Some(&path), "a", "b").unwrap();
        assert!(state.is_done(place, slice(1)).unwrap());
        assert_eq!(state.slices_done(), 1);
        state.set_done(place, slice(2)).unwrap();
        drop(state);
        let state = State::open(Some(&path), "a", "b").unwrap();
        assert!(state.is_done(place, slice(2)).unwrap());
        assert!(State::open(Some(&path), "a", "c").is_err());
        assert!(!State::open(None, "a", "c").unwrap().is_done(place, slice(1)).unwrap());
    }
}
