//! Merging runs in the background.

use std::sync::Arc;

use hashbrown::HashSet;
use roaring::RoaringTreemap;

use crate::error::{SeriesError, SeriesResult};
use crate::index::{SeriesIndex, View};
use crate::policy::{RunStats, choose};
use crate::run::{Run, RunSource};
use crate::source::Source;

impl SeriesIndex {
    /// Whether [`SeriesIndex::merge_step`] has something to do.
    #[must_use]
    pub fn merge_wanted(&self) -> bool {
        let view = Arc::clone(&self.state.read().view);
        // A merge under way is the one that is wanted.
        self.merging.try_lock().is_some_and(|damaged| self.choose(&view, &damaged).is_some())
    }

    /// Merges some runs into one. `false` if there was nothing to do. Readers, creating and
    /// flushing go on meanwhile.
    ///
    /// # Errors
    /// [`SeriesError`]; all is as before then. A run found damaged is left alone from then on.
    pub fn merge_step(&self) -> SeriesResult<bool> {
        let mut damaged = self.merging.lock();
        let view = Arc::clone(&self.state.read().view);
        let Some(range) = self.choose(&view, &damaged) else { return Ok(false) };
        let runs = &view.runs[range];
        let result = self.merge_runs(&view, runs);
        if let Err(SeriesError::Corrupt { path, .. }) = &result {
            damaged.extend(runs.iter().filter(|run| run.path() == path).map(|run| run.number()));
        }
        result.map(|()| true)
    }

    fn choose(&self, view: &View, damaged: &HashSet<u64>) -> Option<std::ops::Range<usize>> {
        let stats = |run: &Arc<Run>| {
            if damaged.contains(&run.number()) {
                return RunStats { weight: u64::MAX, series: u64::MAX, dead: 0 };
            }
            let dead = run.ids().intersection_len(&view.removed);
            RunStats { weight: run.weight(), series: run.ids().len(), dead }
        };
        let stats: Vec<_> = view.runs.iter().map(stats).collect();
        choose(&stats, self.options.run_entries_max)
    }

    fn merge_runs(&self, view: &View, runs: &[Arc<Run>]) -> SeriesResult<()> {
        let mut live = RoaringTreemap::new();
        runs.iter().for_each(|run| live |= run.ids());
        let dead = &live & &*view.removed;
        live -= &dead;
        let merged = if live.is_empty() {
            None
        } else {
            let sources = runs.iter().map(|run| Box::new(RunSource::new(run)) as Box<dyn Source>);
            Some(self.write_run(sources.collect(), live, &dead)?)
        };
        let replaced = |run: &Arc<Run>| runs.iter().any(|old| old.number() == run.number());
        let edit = |view: &mut View| {
            let at = view.runs.iter().position(replaced);
            let at = at.expect("BUG: only a merge removes runs, and there is one at a time");
            view.runs.retain(|run| !replaced(run));
            view.runs.splice(at..at, merged.clone());
        };
        self.commit(0, &dead, merged.as_deref(), &edit)?;
        for run in runs {
            self.disk.remove(run.path())?;
        }
        Ok(())
    }
}
