//! How much a database has: figures that somebody asks for again and again.
//!
//! Invariant: a view never changes, so what its parts have is counted once and kept with it. Only the
//! active part, which is small and in memory, is looked at each time.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::HashSet;
use model::DatabaseId;
use parking_lot::Mutex;
use roaring::RoaringTreemap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::SeriesResult;
use crate::index::{SeriesIndex, View};
use crate::part::MeasurementPart;

/// What a database has that is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Its series.
    pub series: u64,
    /// Its measurements.
    pub measurements: u64,
}

/// What the parts of a view have, once somebody asked. A copy knows nothing: it is about to be changed.
#[derive(Debug, Default)]
pub(super) struct Counted(Mutex<Option<Arc<Parts>>>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What some parts have of each database.
#[derive(Debug, Default)]
struct Parts(HashMap<DatabaseId, OfDatabase>);

#[derive(Debug, Default)]
struct OfDatabase {
    series: u64,
    /// Hashes of their names: there may be as many as series, and two of the same hash do no harm.
    measurements: HashSet<u64>,
}

impl Parts {
    fn add(
        &mut self,
        part: &dyn MeasurementPart,
        (database, name_hash): (DatabaseId, u64),
        removed: &RoaringTreemap,
    ) -> SeriesResult<()> {
        let mut live = part.series_count();
        if !removed.is_empty() {
            live -= part.all()?.intersection_len(removed);
        }
        if live > 0 {
            let of_database = self.0.entry(database).or_default();
            of_database.series += live;
            of_database.measurements.insert(name_hash);
        }
        Ok(())
    }
}

impl SeriesIndex {
    /// How much each database has; those that are not there have nothing. Cheap, unless series were
    /// removed or a flush or merge ended since it was asked last.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn totals(&self) -> SeriesResult<HashMap<DatabaseId, Totals>> {
        let name_hash = |name: &str| xxh3_64_with_seed(name.as_bytes(), self.seed);
        let mut active = Parts::default();
        let view = {
            let state = self.state.read();
            for part in state.active.all_measurements() {
                let whose = (part.database(), name_hash(part.name()));
                active.add(&part, whose, &state.view.removed)?;
            }
            Arc::clone(&state.view)
        };
        let kept = view.parts(&name_hash)?;
        let total = |(id, of): (&DatabaseId, &OfDatabase)| {
            let measurements = of.measurements.len() as u64;
            (*id, Totals { series: of.series, measurements })
        };
        let mut totals: HashMap<DatabaseId, Totals> = kept.0.iter().map(total).collect();
        for (id, of_active) in active.0 {
            let known = kept.0.get(&id).map(|of_kept| &of_kept.measurements);
            let is_new = |hash: &&u64| known.is_none_or(|known| !known.contains(*hash));
            let totals = totals.entry(id).or_default();
            totals.series += of_active.series;
            totals.measurements += of_active.measurements.iter().filter(is_new).count() as u64;
        }
        Ok(totals)
    }
}

impl View {
    fn parts(&self, name_hash: &dyn Fn(&str) -> u64) -> SeriesResult<Arc<Parts>> {
        if let Some(known) = &*self.counted.0.lock() {
            return Ok(Arc::clone(known));
        }
        let mut found = Parts::default();
        for part in self.sealed.iter().flat_map(|mem| mem.all_measurements()) {
            found.add(&part, (part.database(), name_hash(part.name())), &self.removed)?;
        }
        for run in &self.runs {
            run.for_every_measurement(&mut |database, part| {
                found.add(&part, (database, name_hash(part.name())), &self.removed)
            })?;
        }
        let found = Arc::new(found);
        *self.counted.0.lock() = Some(Arc::clone(&found));
        Ok(found)
    }
}
