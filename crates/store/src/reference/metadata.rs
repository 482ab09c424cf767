//! Answers about names: all of them are collected in a sorted set first.

use std::collections::{BTreeSet, VecDeque};

use model::{Column, ColumnBatch, Reservation, Strings, Values};

use super::state::{Partition, State};
use crate::{MetadataCursor, MetadataKind, MetadataRequest, ScanContext, StoreError};

pub(super) struct ReferenceMetadata {
    parts: VecDeque<ColumnBatch>,
    context: ScanContext,
    held: Option<Reservation>,
}

impl ReferenceMetadata {
    pub(super) fn new(state: &State, request: &MetadataRequest, part_rows: usize) -> Self {
        let facts: Vec<Vec<String>> = match request.kind {
            MetadataKind::Partitions => partitions(state, request),
            _ => collect(state, request).into_iter().collect(),
        };
        let mut parts: VecDeque<_> = facts.chunks(part_rows).map(batch_of).collect();
        if matches!(request.kind, MetadataKind::SeriesCounts) {
            parts = counts(&facts).chunks(part_rows).map(counts_batch).collect();
        }
        Self { parts, context: request.context.clone(), held: None }
    }
}

impl MetadataCursor for ReferenceMetadata {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        self.context.interrupt.check()?;
        self.held = None;
        let Some(part) = self.parts.pop_front() else { return Ok(None) };
        self.held = Some(self.context.budget.reserve(part.memory_bytes())?);
        Ok(Some(part))
    }
}

fn collect(state: &State, request: &MetadataRequest) -> BTreeSet<Vec<String>> {
    let mut facts = BTreeSet::new();
    let Some(database) = state.databases.get(&request.database) else { return facts };
    for (name, measurement) in &database.measurements {
        if !request.measurements.accepts(name) {
            continue;
        }
        let name = name.to_string();
        for series in measurement.series.values().filter(|s| s.matches(&request.series)) {
            let tags = series.key.tags.iter();
            match &request.kind {
                MetadataKind::Measurements => facts.extend([vec![name.clone()]]),
                MetadataKind::Series | MetadataKind::SeriesCounts => {
                    facts.extend([vec![name.clone(), series.key.to_string()]]);
                }
                // Not about series.
                MetadataKind::Partitions => {}
                MetadataKind::TagKeys => {
                    facts.extend(tags.map(|(key, _)| vec![name.clone(), key.to_string()]));
                }
                MetadataKind::TagValues(keys) => {
                    let wanted = tags.filter(|(key, _)| keys.accepts(key));
                    facts.extend(
                        wanted.map(|(k, v)| vec![name.clone(), k.to_string(), v.to_string()]),
                    );
                }
            }
        }
    }
    facts
}

/// How many facts there are of each measurement.
fn counts(facts: &[Vec<String>]) -> Vec<(&str, i64)> {
    let of_each = facts.chunk_by(|a, b| a[0] == b[0]);
    of_each.map(|facts| (facts[0][0].as_str(), facts.len() as i64)).collect()
}

fn counts_batch(counts: &[(&str, i64)]) -> ColumnBatch {
    let names: Strings = counts.iter().map(|(name, _)| *name).collect();
    let numbers = counts.iter().map(|(_, count)| *count).collect();
    let columns = vec![Values::String(names), Values::Integer(numbers)];
    let columns = columns.into_iter().map(Column::new).collect();
    ColumnBatch { rows: counts.len(), runs: Vec::new(), columns }
}

/// All that were made and not dropped, whether or not they have rows.
fn partitions(state: &State, request: &MetadataRequest) -> Vec<Vec<String>> {
    let Some(database) = state.databases.get(&request.database) else { return Vec::new() };
    let mut facts = Vec::new();
    for (policy, partitions) in &database.partitions {
        for Partition { number, time } in partitions.values() {
            let policy = u64::from(policy.0).to_string();
            facts.push(vec![
                number.to_string(),
                policy,
                time.min.to_string(),
                time.max.to_string(),
            ]);
        }
    }
    facts
}

fn batch_of(facts: &[Vec<String>]) -> ColumnBatch {
    let width = facts[0].len();
    let column = |at: usize| {
        let texts: Strings = facts.iter().map(|fact| fact[at].as_str()).collect();
        Column::new(Values::String(texts))
    };
    ColumnBatch { rows: facts.len(), runs: Vec::new(), columns: (0..width).map(column).collect() }
}
