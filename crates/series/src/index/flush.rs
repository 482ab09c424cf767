//! Making durable what is in memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::index::{InForce, SeriesIndex, View};
use crate::manifest::{ListedRun, Manifest, run_name};
use crate::mem::{Mem, MemSource};
use crate::merge::merge;
use crate::run::{Run, RunOpen, RunWriter};
use crate::source::Source;

impl SeriesIndex {
    /// Whether enough has gathered in memory for a flush.
    #[must_use]
    pub fn flush_wanted(&self) -> bool {
        self.memory_bytes() >= self.options.memory_bytes
    }

    /// Makes all that was created and removed before the call durable. Creating goes on meanwhile.
    ///
    /// # Errors
    /// [`crate::SeriesError`]; all is as before then, and another flush may succeed.
    pub fn flush(&self) -> SeriesResult<()> {
        let _one_at_a_time = self.flushing.lock();
        let (view, next_id) = {
            let mut state = self.state.write();
            state.seal();
            (Arc::clone(&state.view), state.next_id)
        };
        let sealed = &view.sealed;
        let mut live = RoaringTreemap::new();
        sealed.iter().for_each(|mem| live.extend(mem.ids()));
        let dead = &live & &*view.removed;
        live -= &dead;
        let run = if live.is_empty() {
            None
        } else {
            let sources = sealed.iter().map(|mem| MemSource::new(Arc::clone(mem)));
            let sources = sources.map(|source| Box::new(source) as Box<dyn Source>).collect();
            Some(self.write_run(sources, live, &dead)?)
        };
        let flushed = |mem: &Arc<Mem>| sealed.iter().any(|done| Arc::ptr_eq(done, mem));
        let edit = |view: &mut View| {
            view.sealed.retain(|mem| !flushed(mem));
            view.runs.extend(run.clone());
        };
        self.commit(next_id, &dead, run.as_deref(), &edit)
    }

    /// Writes a run of what is live in `sources` and opens it. It is durable, but not listed yet.
    pub(super) fn write_run(
        &self,
        sources: Vec<Box<dyn Source + '_>>,
        live: RoaringTreemap,
        dead: &RoaringTreemap,
    ) -> SeriesResult<Arc<Run>> {
        let number = {
            let manifest = &mut self.manifest.lock().manifest;
            manifest.next_run += 1;
            manifest.next_run - 1
        };
        let path = self.dir.join(run_name(number));
        let write = || {
            let terms = sources.iter().map(|source| source.terms()).sum();
            let mut writer = RunWriter::create(&*self.disk, &path, self.seed, live, terms)?;
            merge(sources, dead, &mut writer)?;
            writer.finish()?;
            // The name must be durable before a manifest that lists it can be.
            self.disk.sync_dir(&self.dir)?;
            Run::open(
                &*self.disk,
                &path,
                RunOpen { number, cache: &self.options.cache, verify: true },
            )
        };
        match write() {
            Ok(run) => Ok(Arc::new(run)),
            Err(error) => {
                self.discard(&path);
                Err(error)
            }
        }
    }

    /// Removes a run that is not listed. If that fails too, the next opening removes it.
    fn discard(&self, path: &Path) {
        let _the_first_error_is_reported = self.disk.remove(path);
    }

    /// Puts `edit` into force, on disk and for readers. `new_run` is the run it adds; `dead` are
    /// removed series that no part has afterwards.
    pub(super) fn commit(
        &self,
        next_id: u64,
        dead: &RoaringTreemap,
        new_run: Option<&Run>,
        edit: &dyn Fn(&mut View),
    ) -> SeriesResult<()> {
        let mut in_force = self.manifest.lock();
        let manifest = &in_force.manifest;
        let mut view = View::clone(&self.state.read().view);
        edit(&mut view);
        let next_id = next_id.max(manifest.next_id);
        let mut removed = &*view.removed - dead;
        // Ids above are not durable: after a crash they may be given to other series.
        removed.remove_range(next_id..);
        let list =
            |run: &Arc<Run>| ListedRun { number: run.number(), file_bytes: run.file_bytes() };
        let new = Manifest {
            seed: self.seed,
            next_id,
            next_run: manifest.next_run,
            runs: view.runs.iter().map(list).collect(),
            removed,
        };
        let old = Manifest { next_run: new.next_run, ..manifest.clone() };
        if new != old || in_force.uncertain {
            self.store(&mut in_force, new, new_run)?;
        }
        self.flushed_below.store(next_id, Ordering::Release);
        // Readers see it only now that it lasts.
        self.state.write().set_view(|view| {
            edit(view);
            if !dead.is_empty() {
                *Arc::make_mut(&mut view.removed) -= dead;
            }
        });
        Ok(())
    }

    fn store(
        &self,
        in_force: &mut InForce,
        new: Manifest,
        new_run: Option<&Run>,
    ) -> SeriesResult<()> {
        if let Err(error) = new.write(&*self.disk, &self.dir) {
            if let Some(run) = new_run {
                self.discard(run.path());
            }
            return Err(error);
        }
        // From here on the new manifest may be the one that a crash leaves: its run must stay.
        in_force.uncertain = true;
        Manifest::publish(&*self.disk, &self.dir)?;
        *in_force = InForce { manifest: new, uncertain: false };
        Ok(())
    }
}
