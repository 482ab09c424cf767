//! Selecting series, and the names of measurements and tag keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{DatabaseId, Name, TagExpr};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::index::{SeriesIndex, View};
use crate::part::MeasurementPart;
use crate::run::Run;
use crate::select::select;

/// What is called with a measurement of each part.
type PartVisitor<'a> = dyn FnMut(&dyn MeasurementPart) -> SeriesResult<()> + 'a;

impl SeriesIndex {
    /// The live series of a measurement that a condition holds for.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn select(
        &self,
        database: DatabaseId,
        measurement: &str,
        expr: &TagExpr,
    ) -> SeriesResult<RoaringTreemap> {
        let mut selected = RoaringTreemap::new();
        let mut add = |part: &dyn MeasurementPart| {
            let ids = select(part, expr)?;
            if selected.is_empty() {
                selected = ids;
            } else {
                selected |= ids;
            }
            Ok(())
        };
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement) {
                add(&part)?;
            }
            Arc::clone(&state.view)
        };
        let mut needed = Vec::new();
        self.needed_tags(database, measurement, expr, &mut needed);
        // Most runs can be told to lack the tag of a narrow condition without a look inside.
        let may_match = |run: &Run| needed.iter().all(|tag| run.may_contain(*tag));
        view.for_each_part(database, measurement, &may_match, &mut add)?;
        if !view.removed.is_empty() {
            selected -= &*view.removed;
        }
        Ok(selected)
    }

    /// Number of live series of a measurement, or of a whole database.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn cardinality(
        &self,
        database: DatabaseId,
        measurement: Option<&str>,
    ) -> SeriesResult<u64> {
        let Some(measurement) = measurement else {
            return Ok(self.totals()?.get(&database).map_or(0, |totals| totals.series));
        };
        let mut count = 0;
        let mut add = |part: &dyn MeasurementPart, removed: &RoaringTreemap| {
            count += part.series_count();
            if !removed.is_empty() {
                count -= part.all()?.intersection_len(removed);
            }
            Ok(())
        };
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement) {
                add(&part, &state.view.removed)?;
            }
            Arc::clone(&state.view)
        };
        view.for_each_part(database, measurement, &|_| true, &mut |p| add(p, &view.removed))?;
        Ok(count)
    }

    /// The measurements with live series, sorted.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn measurements(&self, database: DatabaseId) -> SeriesResult<Vec<Name>> {
        let mut names = BTreeSet::new();
        let view = {
            let state = self.state.read();
            for part in state.active.measurements(database) {
                if part.any_series(|id| state.view.is_live(id)) {
                    names.insert(part.name().clone());
                }
            }
            Arc::clone(&state.view)
        };
        for part in view.sealed.iter().flat_map(|mem| mem.measurements(database)) {
            if !names.contains(part.name()) && part.any_series(|id| view.is_live(id)) {
                names.insert(part.name().clone());
            }
        }
        for run in &view.runs {
            run.for_each_measurement(database, &mut |part| {
                if !names.contains(part.name()) && view.has_live(&part)? {
                    names.insert(part.name().into());
                }
                Ok(())
            })?;
        }
        Ok(names.into_iter().collect())
    }

    /// Whether a measurement has live series.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn has_measurement(&self, database: DatabaseId, measurement: &str) -> SeriesResult<bool> {
        let view = {
            let state = self.state.read();
            let part = state.active.measurement(database, measurement);
            if part.is_some_and(|part| part.any_series(|id| state.view.is_live(id))) {
                return Ok(true);
            }
            Arc::clone(&state.view)
        };
        let mut found = false;
        view.for_each_part(database, measurement, &|_| true, &mut |part| {
            found = found || view.has_live(part)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// The tag keys that live series of a measurement have, sorted; with `among`, only those of the
    /// given series.
    ///
    /// # Errors
    /// [`crate::SeriesError`] if a run cannot be read.
    pub fn tag_keys(
        &self,
        database: DatabaseId,
        measurement: &str,
        among: Option<&RoaringTreemap>,
    ) -> SeriesResult<Vec<Name>> {
        let mut names: BTreeSet<Name> = BTreeSet::new();
        let view = {
            let state = self.state.read();
            if let Some(part) = state.active.measurement(database, measurement) {
                for key in 0..part.key_count() {
                    if part.any_series_with(key, |id| state.view.is_wanted(id, among)) {
                        names.insert(part.key_name(key).into());
                    }
                }
            }
            Arc::clone(&state.view)
        };
        view.for_each_part(database, measurement, &|_| true, &mut |part| {
            let live = view.wanted(part, among)?;
            if live.as_ref().is_some_and(RoaringTreemap::is_empty) {
                return Ok(());
            }
            for key in 0..part.key_count() {
                let name = part.key_name(key);
                if names.contains(name) {
                    continue;
                }
                let has = match &live {
                    None => true,
                    Some(live) => part.present(key)?.is_none_or(|all| !all.is_disjoint(live)),
                };
                if has {
                    names.insert(name.into());
                }
            }
            Ok(())
        })?;
        Ok(names.into_iter().collect())
    }

    /// Adds the tags that every series has for which the condition holds.
    fn needed_tags(
        &self,
        database: DatabaseId,
        measurement: &str,
        expr: &TagExpr,
        needed: &mut Vec<KeyHash>,
    ) {
        match expr {
            TagExpr::Equals(key, value) if !value.is_empty() => {
                needed.push(KeyHash::of_term(self.seed, database, measurement, (key, value)));
            }
            TagExpr::And(parts) => {
                parts.iter().for_each(|p| self.needed_tags(database, measurement, p, needed));
            }
            _ => {}
        }
    }
}

impl View {
    fn for_each_part(
        &self,
        database: DatabaseId,
        measurement: &str,
        in_run: &dyn Fn(&Run) -> bool,
        visitor: &mut PartVisitor<'_>,
    ) -> SeriesResult<()> {
        for part in self.sealed.iter().filter_map(|mem| mem.measurement(database, measurement)) {
            visitor(&part)?;
        }
        for run in self.runs.iter().filter(|run| in_run(run)) {
            if let Some(part) = run.measurement(database, measurement)? {
                visitor(&part)?;
            }
        }
        Ok(())
    }

    pub(super) fn is_wanted(&self, id: u64, among: Option<&RoaringTreemap>) -> bool {
        among.is_none_or(|among| among.contains(id)) && self.is_live(id)
    }

    fn has_live(&self, part: &dyn MeasurementPart) -> SeriesResult<bool> {
        Ok(self.removed.is_empty() || !part.all()?.is_subset(&self.removed))
    }

    /// The live series of a part that are `among` the given; `None` for all it has.
    pub(super) fn wanted(
        &self,
        part: &dyn MeasurementPart,
        among: Option<&RoaringTreemap>,
    ) -> SeriesResult<Option<RoaringTreemap>> {
        if among.is_none() && self.removed.is_empty() {
            return Ok(None);
        }
        let all = part.all()?;
        let mut wanted = all.clone();
        if let Some(among) = among {
            wanted &= among;
        }
        wanted -= &*self.removed;
        Ok((wanted != all).then_some(wanted))
    }
}
