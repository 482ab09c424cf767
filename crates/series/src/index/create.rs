//! Creating, restoring and removing series.

use std::sync::Arc;

use model::{DatabaseId, SeriesId, SeriesKey};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::index::{SeriesIndex, State, View};
use crate::part::MeasurementPart;

/// Keys of a batch that are added under one hold of the lock.
const CHUNK_KEYS: usize = 256;
/// The active part is sealed at this share of the memory.
const SEALED_PARTS: usize = 8;

impl SeriesIndex {
    /// The id of a key, and whether it is new. A new series is visible at once and durable with
    /// the next flush; until then the caller's log must have it.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read; nothing is created then.
    pub fn create(&self, database: DatabaseId, key: &SeriesKey) -> SeriesResult<(SeriesId, bool)> {
        let hash = KeyHash::of(self.seed, database, key);
        loop {
            let (found, view) = self.find(hash)?;
            if let Some(id) = found {
                return Ok((SeriesId(id), false));
            }
            let mut state = self.state.write();
            if Arc::ptr_eq(&view, &state.view) {
                let created = state.find_or_insert(database, key, hash);
                self.seal_if_grown(&mut state);
                return Ok(created);
            }
        }
    }

    /// [`SeriesIndex::create`] for many keys; the answers are in their order.
    ///
    /// # Errors
    /// As [`SeriesIndex::create`]; keys before the failing one may have been created, and are
    /// found by a later call.
    pub fn create_batch(
        &self,
        database: DatabaseId,
        keys: &[SeriesKey],
    ) -> SeriesResult<Vec<(SeriesId, bool)>> {
        let mut created = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(CHUNK_KEYS) {
            let hashes: Vec<_> =
                chunk.iter().map(|key| KeyHash::of(self.seed, database, key)).collect();
            while !self.create_chunk(database, chunk, &hashes, &mut created)? {}
        }
        Ok(created)
    }

    /// `false` if the view changed meanwhile and all has to be looked up again.
    fn create_chunk(
        &self,
        database: DatabaseId,
        keys: &[SeriesKey],
        hashes: &[KeyHash],
        created: &mut Vec<(SeriesId, bool)>,
    ) -> SeriesResult<bool> {
        let view = Arc::clone(&self.state.read().view);
        let mut found = Vec::with_capacity(keys.len());
        for hash in hashes {
            found.push(view.find(*hash)?);
        }
        let mut state = self.state.write();
        if !Arc::ptr_eq(&view, &state.view) {
            return Ok(false);
        }
        for ((key, hash), found) in keys.iter().zip(hashes).zip(found) {
            created.push(match found {
                Some(id) => (SeriesId(id), false),
                None => state.find_or_insert(database, key, *hash),
            });
        }
        self.seal_if_grown(&mut state);
        Ok(true)
    }

    /// Puts back a series that the log has: `key` was created with `id`. Log entries must be
    /// replayed in order; those of before the last flush are left out by themselves.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn restore(&self, database: DatabaseId, key: &SeriesKey, id: SeriesId) -> SeriesResult<()> {
        if id.0 < self.flushed_below() {
            // In a run, or removed since.
            return Ok(());
        }
        let hash = KeyHash::of(self.seed, database, key);
        loop {
            let (older, view) = self.find(hash)?;
            let mut state = self.state.write();
            if !Arc::ptr_eq(&view, &state.view) {
                continue;
            }
            state.next_id = state.next_id.max(id.0 + 1);
            let known = |state: &State| {
                state.active.contains_id(id.0)
                    || state.view.sealed.iter().any(|mem| mem.contains_id(id.0))
            };
            if known(&state) {
                return Ok(());
            }
            // The key was created anew, so whatever had it before was dead by then.
            let replaced = state.active.insert(database, key, hash, id.0);
            let dead: RoaringTreemap = older.into_iter().chain(replaced).collect();
            if !dead.is_empty() {
                state.remove(&dead);
            }
            self.seal_if_grown(&mut state);
            return Ok(());
        }
    }

    /// Removes series: they are gone from every answer, and their keys get new ids when created
    /// again. Ids that do not exist are ignored.
    pub fn remove(&self, ids: &RoaringTreemap) {
        let mut state = self.state.write();
        let known = state.known(ids);
        if !known.is_subset(&state.view.removed) {
            state.remove(&known);
        }
    }

    /// Removes all series of a database with ids lower than `below`. The caller takes
    /// [`SeriesIndex::next_id`] for it and logs that number, so that a replay does not reach series
    /// created later.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read; nothing is removed then.
    pub fn remove_database(&self, database: DatabaseId, below: SeriesId) -> SeriesResult<()> {
        let mut ids = RoaringTreemap::new();
        let view = {
            let state = self.state.read();
            for measurement in state.active.measurements(database) {
                ids |= measurement.all()?;
            }
            Arc::clone(&state.view)
        };
        for measurement in view.sealed.iter().flat_map(|mem| mem.measurements(database)) {
            ids |= measurement.all()?;
        }
        for run in &view.runs {
            run.for_each_measurement(database, &mut |measurement| {
                ids |= measurement.all()?;
                Ok(())
            })?;
        }
        ids.remove_range(below.0..);
        self.remove(&ids);
        Ok(())
    }

    fn seal_if_grown(&self, state: &mut State) {
        if state.active.bytes() >= (self.options.memory_bytes / SEALED_PARTS).max(64 << 10) {
            state.seal();
        }
    }
}

impl State {
    fn find_or_insert(
        &mut self,
        database: DatabaseId,
        key: &SeriesKey,
        hash: KeyHash,
    ) -> (SeriesId, bool) {
        if let Some(id) = self.find_active(hash) {
            return (SeriesId(id), false);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.active.insert(database, key, hash, id);
        (SeriesId(id), true)
    }

    /// Those of `ids` that some part has.
    fn known(&self, ids: &RoaringTreemap) -> RoaringTreemap {
        let mut known = RoaringTreemap::new();
        for run in &self.view.runs {
            known |= ids & run.ids();
        }
        let sealed = self.view.sealed.iter().map(|mem| &**mem);
        for mem in sealed.chain([&self.active]) {
            if ids.len() < mem.len() as u64 {
                known.extend(ids.iter().filter(|id| mem.contains_id(*id)));
            } else {
                known.extend(mem.ids().filter(|id| ids.contains(*id)));
            }
        }
        known
    }

    fn remove(&mut self, ids: &RoaringTreemap) {
        self.set_view(|view: &mut View| *Arc::make_mut(&mut view.removed) |= ids);
    }
}
