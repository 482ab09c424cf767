//! Looks at the files of an index, and checks every block of them, without changing anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Disk, PageCache};

use crate::error::{SeriesError, SeriesResult};
use crate::manifest::{Manifest, run_name};
use crate::posting::Posting;
use crate::run::{Run, RunOpen, SeriesWalk, ValueWalk};

/// One run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Series in it, removed ones included.
    pub series: u64,
    /// Measurements in it.
    pub measurements: u64,
    /// Tags (key and value, per measurement) in it.
    pub tags: u64,
}

/// What the files of an index hold.
#[derive(Debug, Default)]
pub struct IndexInfo {
    /// Runs, oldest first; damaged ones that cannot be opened are not among them.
    pub runs: Vec<RunInfo>,
    /// Series that are removed and still in some run.
    pub removed: u64,
    /// What is damaged.
    pub errors: Vec<SeriesError>,
}

/// Reads the index in a directory; with `verify`, every block of it. The owner makes sure that no
/// process writes to it.
///
/// # Errors
/// The manifest of the index cannot be read. Damage to runs is among [`IndexInfo::errors`].
pub fn inspect(disk: &dyn Disk, dir: &Path, verify: bool) -> SeriesResult<IndexInfo> {
    let Some(manifest) = Manifest::load(disk, dir)? else { return Ok(IndexInfo::default()) };
    let mut info = IndexInfo { removed: manifest.removed.len(), ..IndexInfo::default() };
    let cache = Arc::new(PageCache::new(0));
    for listed in &manifest.runs {
        let path = dir.join(run_name(listed.number));
        let how = RunOpen { number: listed.number, cache: &cache, verify: true };
        let run = match Run::open(disk, &path, how) {
            Ok(run) => run,
            Err(error) => {
                info.errors.push(error);
                continue;
            }
        };
        if run.file_bytes() != listed.file_bytes || run.seed() != manifest.seed {
            let detail = "the run is not the one that the manifest lists".to_owned();
            info.errors.push(SeriesError::Corrupt { path: path.clone(), offset: 0, detail });
        }
        if verify {
            run.verify(&mut info.errors);
        }
        let (series, tags, measurements) = run.counts();
        info.runs.push(RunInfo { path, bytes: run.file_bytes(), series, measurements, tags });
    }
    Ok(info)
}

/// Reads everything in a run whose blocks are whole.
pub(crate) fn read_through(run: &Run, series: u32, terms: u32) -> SeriesResult<()> {
    let mut values = ValueWalk::new(run, 0..terms).uncached();
    let mut posting = Posting::default();
    while values.advance()? {
        values.load_posting(&mut posting)?;
    }
    let mut walk = SeriesWalk::new(run, 0..series).uncached();
    while walk.advance()? {}
    Ok(())
}
