//! A sealed part in memory as input of a merge: everything sorted.

use std::sync::Arc;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::mem::Mem;
use crate::part::MeasurementPart;
use crate::posting::Posting;
use crate::source::{Source, SourceKey, SourceMeasurement};

#[derive(Debug)]
pub(crate) struct MemSource {
    mem: Arc<Mem>,
    /// Measurement numbers by (database, name).
    measurements: Vec<u32>,
    next_measurement: usize,
    /// Positions of series, grouped by measurement; `groups[m]..groups[m + 1]` are those of `m`.
    series: Vec<u32>,
    groups: Vec<u32>,
    hashes: std::vec::IntoIter<(KeyHash, u64)>,
    current: Current,
}

/// The measurement being read, sorted.
#[derive(Debug, Default)]
struct Current {
    measurement: usize,
    terms: Vec<u32>,
    next_term: usize,
    /// Tuples of term ranks, one series after another.
    tuples: Vec<u32>,
    /// (id, start and end in `tuples`), sorted by tuple.
    series: Vec<(u64, u32, u32)>,
    next_series: usize,
}

impl MemSource {
    pub(crate) fn new(mem: Arc<Mem>) -> Self {
        let mut measurements: Vec<u32> = (0..mem.measurements.len() as u32).collect();
        measurements.sort_unstable_by_key(|at| {
            let measurement = &mem.measurements[*at as usize];
            (measurement.database, &measurement.name)
        });
        let mut groups = vec![0; mem.measurements.len() + 1];
        for series in &mem.series {
            groups[series.measurement as usize + 1] += 1;
        }
        for at in 1..groups.len() {
            groups[at] += groups[at - 1];
        }
        let mut ends = groups.clone();
        let mut series = vec![0; mem.series.len()];
        for (at, one) in mem.series.iter().enumerate() {
            let end = &mut ends[one.measurement as usize];
            series[*end as usize] = at as u32;
            *end += 1;
        }
        let mut hashes: Vec<_> = mem.series.iter().map(|one| (one.hash, one.id)).collect();
        hashes.sort_unstable();
        Self {
            mem,
            measurements,
            next_measurement: 0,
            series,
            groups,
            hashes: hashes.into_iter(),
            current: Current::default(),
        }
    }

    /// Sorts the terms and the series of one measurement.
    fn sort(&mut self, number: u32, keys_in_order: &[u32]) {
        let measurement = &self.mem.measurements[number as usize];
        let current = &mut self.current;
        *current = Current { measurement: number as usize, ..Current::default() };
        current.terms.reserve_exact(measurement.terms.len());
        for key in keys_in_order {
            let start = current.terms.len();
            current.terms.extend_from_slice(&measurement.keys[*key as usize].1);
            let text = |term: &u32| measurement.terms[*term as usize].text(&measurement.text);
            current.terms[start..].sort_unstable_by(|a, b| text(a).cmp(text(b)));
        }
        let mut ranks = vec![0u32; measurement.terms.len()];
        for (rank, term) in current.terms.iter().enumerate() {
            ranks[*term as usize] = rank as u32;
        }
        let range =
            self.groups[number as usize] as usize..self.groups[number as usize + 1] as usize;
        for at in &self.series[range] {
            let series = &self.mem.series[*at as usize];
            let start = current.tuples.len() as u32;
            let tuple = self.mem.tuple(series).iter();
            current.tuples.extend(tuple.map(|term| ranks[*term as usize]));
            current.series.push((series.id, start, current.tuples.len() as u32));
        }
        let tuples = &current.tuples;
        let tuple = |series: &(u64, u32, u32)| &tuples[series.1 as usize..series.2 as usize];
        current.series.sort_unstable_by(|a, b| tuple(a).cmp(tuple(b)));
    }
}

impl Source for MemSource {
    fn next_measurement(&mut self) -> SeriesResult<Option<SourceMeasurement>> {
        let Some(number) = self.measurements.get(self.next_measurement).copied() else {
            return Ok(None);
        };
        self.next_measurement += 1;
        let mem = Arc::clone(&self.mem);
        let measurement = &mem.measurements[number as usize];
        let view = mem
            .measurement(measurement.database, &measurement.name)
            .expect("BUG: a measurement is found by its name");
        let mut order: Vec<u32> = (0..measurement.keys.len() as u32).collect();
        order.sort_unstable_by_key(|key| &measurement.keys[*key as usize].0);
        let mut keys = Vec::with_capacity(order.len());
        for key in &order {
            let (name, terms) = &measurement.keys[*key as usize];
            let (name, terms) = (name.clone(), terms.len() as u32);
            keys.push(SourceKey { name, terms, present: view.present(*key)? });
        }
        self.sort(number, &order);
        Ok(Some(SourceMeasurement {
            database: measurement.database,
            name: measurement.name.clone(),
            series: measurement.series,
            all: measurement.all(),
            keys,
        }))
    }

    fn next_term(&mut self, value: &mut String, posting: &mut Posting) -> SeriesResult<()> {
        let measurement = &self.mem.measurements[self.current.measurement];
        let number = self.current.terms[self.current.next_term];
        self.current.next_term += 1;
        value.clear();
        value.push_str(measurement.value(number));
        measurement.terms[number as usize].series.load(posting);
        Ok(())
    }

    fn next_series(&mut self, tuple: &mut Vec<u32>) -> SeriesResult<u64> {
        let (id, start, end) = self.current.series[self.current.next_series];
        self.current.next_series += 1;
        tuple.clear();
        tuple.extend_from_slice(&self.current.tuples[start as usize..end as usize]);
        Ok(id)
    }

    fn terms(&self) -> u64 {
        self.mem.measurements.iter().map(|measurement| measurement.terms.len() as u64).sum()
    }

    fn next_hash(&mut self) -> SeriesResult<Option<(KeyHash, u64)>> {
        Ok(self.hashes.next())
    }
}
