//! Reading a part in memory.

use std::ops::ControlFlow;

use model::{DatabaseId, Name, SeriesKey};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::mem::posting::MemPosting;
use crate::mem::{Mem, MemMeasurement};
use crate::part::{LazyPosting, MeasurementPart, ValueVisitor, begins_with};
use crate::posting::Posting;
use std::hash::BuildHasher;

/// One measurement of a part in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemMeasurementView<'a> {
    mem: &'a Mem,
    measurement: &'a MemMeasurement,
}

impl Mem {
    pub(crate) fn measurement(
        &self,
        database: DatabaseId,
        name: &str,
    ) -> Option<MemMeasurementView<'_>> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one((database, name));
        let same = |at: &u32| self.measurements[*at as usize].is(database, name);
        let at = self.by_name.find(hash, same)?;
        Some(MemMeasurementView { mem: self, measurement: &self.measurements[*at as usize] })
    }

    /// The measurements of a database, in no particular order.
    pub(crate) fn measurements(
        &self,
        database: DatabaseId,
    ) -> impl Iterator<Item = MemMeasurementView<'_>> {
        self.all_measurements().filter(move |part| part.database() == database)
    }

    /// The measurements of all databases, in no particular order.
    pub(crate) fn all_measurements(&self) -> impl Iterator<Item = MemMeasurementView<'_>> {
        self.measurements.iter().map(|measurement| MemMeasurementView { mem: self, measurement })
    }

    /// The key of a series, with its database.
    pub(crate) fn key(&self, id: u64) -> Option<(DatabaseId, SeriesKey)> {
        let series = &self.series[self.position(id)? as usize];
        let measurement = &self.measurements[series.measurement as usize];
        let tag = |term: &u32| {
            let name = &measurement.keys[measurement.terms[*term as usize].key as usize].0;
            (name.clone(), measurement.value(*term).into())
        };
        let tags = self.tuple(series).iter().map(tag).collect();
        Some((measurement.database, SeriesKey { measurement: measurement.name.clone(), tags }))
    }
}

impl<'a> MemMeasurementView<'a> {
    pub(crate) fn database(&self) -> DatabaseId {
        self.measurement.database
    }

    pub(crate) fn name(&self) -> &'a Name {
        &self.measurement.name
    }

    pub(crate) fn any_series(&self, mut wanted: impl FnMut(u64) -> bool) -> bool {
        self.measurement.shapes.iter().any(|(_, series)| series.any(&mut wanted))
    }

    pub(crate) fn any_series_with(&self, key: u32, mut wanted: impl FnMut(u64) -> bool) -> bool {
        let shapes = self.measurement.shapes.iter();
        shapes.filter(|(keys, _)| keys.contains(&key)).any(|(_, series)| series.any(&mut wanted))
    }

    /// The values of a tag that some wanted series has, in no particular order.
    pub(crate) fn values_of(&self, key: u32, mut wanted: impl FnMut(u64) -> bool) -> Vec<&'a str> {
        let measurement = self.measurement;
        let terms = measurement.keys[key as usize].1.iter();
        let live = terms.filter(|term| measurement.terms[**term as usize].series.any(&mut wanted));
        live.map(|term| measurement.value(*term)).collect()
    }

    /// The value a series of this part has for each of `keys`, if any.
    pub(crate) fn tags_of(&self, id: u64, keys: &[Option<u32>], out: &mut Vec<Option<&'a str>>) {
        out.clear();
        out.resize(keys.len(), None);
        let Some(position) = self.mem.position(id) else { return };
        for term in self.mem.tuple(&self.mem.series[position as usize]) {
            let key = self.measurement.terms[*term as usize].key;
            for (slot, wanted) in out.iter_mut().zip(keys) {
                if *wanted == Some(key) {
                    *slot = Some(self.measurement.value(*term));
                }
            }
        }
    }
}

impl MeasurementPart for MemMeasurementView<'_> {
    fn all(&self) -> SeriesResult<RoaringTreemap> {
        Ok(self.measurement.all())
    }

    fn series_count(&self) -> u64 {
        u64::from(self.measurement.series)
    }

    fn key_count(&self) -> u32 {
        self.measurement.keys.len() as u32
    }

    fn key_name(&self, key: u32) -> &str {
        &self.measurement.keys[key as usize].0
    }

    fn find_key(&self, name: &str) -> Option<u32> {
        self.measurement.by_key.get(name).copied()
    }

    fn present(&self, key: u32) -> SeriesResult<Option<RoaringTreemap>> {
        if self.measurement.shapes.iter().all(|(keys, _)| keys.contains(&key)) {
            return Ok(None);
        }
        Ok(Some(self.measurement.union_of_shapes(|keys| keys.contains(&key))))
    }

    fn postings(&self, key: u32, value: &str, posting: &mut Posting) -> SeriesResult<()> {
        match self.measurement.find_term(&self.mem.hasher, key, value) {
            Some(term) => self.measurement.terms[term as usize].series.load(posting),
            None => posting.clear(),
        }
        Ok(())
    }

    fn value_count(&self, key: u32) -> u64 {
        self.measurement.keys[key as usize].1.len() as u64
    }

    fn for_each_value(
        &self,
        key: u32,
        prefix: &str,
        visitor: &mut ValueVisitor<'_>,
    ) -> SeriesResult<()> {
        for term in &self.measurement.keys[key as usize].1 {
            let value = self.measurement.value(*term);
            if !begins_with(value, prefix) {
                continue;
            }
            let series = &self.measurement.terms[*term as usize].series;
            if visitor(value, series)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

impl LazyPosting for MemPosting {
    fn load(&self, posting: &mut Posting) -> SeriesResult<()> {
        Self::load(self, posting);
        Ok(())
    }
}
