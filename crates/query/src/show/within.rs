//! Names of the series that have rows in some policies, or in shards of some times.
//!
//! A store keeps one index for all policies and times of a database; InfluxDB looks into the shards
//! that a statement's times touch. A row of each series is read to find out.

use std::collections::BTreeSet;

use model::{
    Column, ColumnBatch, DatabaseId, Name, Reservation, SeriesKey, TagExpr, TimeRange, Values,
};
use store::{MetadataCursor, NameFilter, Policy, StoreError};

use crate::plan::{matching, within_measurement};
use crate::presence::{series_within, shards_of};
use crate::{QueryContext, QueryError};

/// What is asked of the series.
pub(super) enum Wanted {
    /// Their keys.
    Keys,
    /// The keys of their tags.
    TagKeys,
    /// The values of these tags.
    TagValues(NameFilter),
}

/// Hands out names, a measurement at a time.
pub(super) struct WithinCursor {
    wanted: Wanted,
    measurements: std::vec::IntoIter<(Name, Vec<Policy>)>,
    condition: TagExpr,
    time: TimeRange,
    context: QueryContext,
}

/// The measurements that pass a filter, each with all policies of the database.
///
/// # Errors
/// A failing store.
pub(super) fn in_all_policies(
    filter: NameFilter,
    database: DatabaseId,
    context: &QueryContext,
) -> Result<Vec<(Name, Vec<Policy>)>, QueryError> {
    let catalog = context.catalog.snapshot();
    let found = catalog.databases().iter().find(|known| known.id == database);
    let names = found.iter().flat_map(|d| d.policies.iter().map(|p| (&*d.name, &*p.name)));
    let policies: Vec<Policy> =
        names.filter_map(|(database, name)| catalog.resolve(database, Some(name)).ok()).collect();
    let names = matching(filter, database, context)?;
    Ok(names.into_iter().map(|name| (name, policies.clone())).collect())
}

impl WithinCursor {
    /// The names of series that satisfy `condition` and have rows in shards that hold a part of `time`.
    pub(super) fn new(
        wanted: Wanted,
        measurements: Vec<(Name, Vec<Policy>)>,
        condition: TagExpr,
        time: TimeRange,
        context: &QueryContext,
    ) -> Self {
        let (measurements, context) = (measurements.into_iter(), context.clone());
        Self { wanted, measurements, condition, time, context }
    }

    /// The names in one measurement, a row each.
    fn names(&self, name: &Name, policies: &[Policy]) -> Result<BTreeSet<Vec<Name>>, QueryError> {
        let mut held = self.context.budget.reserve(0)?;
        let mut found = BTreeSet::new();
        let condition = &within_measurement(&self.condition, name);
        for policy in policies {
            let Some(schema) = self.context.schema(policy.database, name)? else { continue };
            let time = shards_of(self.time, policy.partition_ns);
            let (scan, series) =
                series_within(*policy, name, &schema, (condition, time), &self.context)?;
            let table = scan.series();
            for series in series {
                let value = |tags: &store::TagColumn| {
                    Name::from(tags.values.get(tags.codes[series as usize] as usize))
                };
                let tags = table.tags.iter().map(|tags| (tags.key.clone(), value(tags)));
                let tags = tags.filter(|(_, value)| !value.is_empty());
                match &self.wanted {
                    Wanted::Keys => {
                        let key = SeriesKey { measurement: name.clone(), tags: tags.collect() };
                        add(&mut found, vec![key.to_string().into()], &mut held)?;
                    }
                    Wanted::TagKeys => {
                        for (key, _) in tags {
                            add(&mut found, vec![key], &mut held)?;
                        }
                    }
                    Wanted::TagValues(keys) => {
                        for (key, value) in tags.filter(|(key, _)| keys.accepts(key)) {
                            add(&mut found, vec![key, value], &mut held)?;
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Adds a row of names, and the memory it takes.
fn add(
    found: &mut BTreeSet<Vec<Name>>,
    row: Vec<Name>,
    held: &mut Reservation,
) -> Result<(), QueryError> {
    let bytes: usize = row.iter().map(|name| name.len() + 64).sum();
    if found.insert(row) {
        held.grow(bytes)?;
    }
    Ok(())
}

impl MetadataCursor for WithinCursor {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        while let Some((name, policies)) = self.measurements.next() {
            let found = self.names(&name, &policies).map_err(QueryError::into_store)?;
            let Some(width) = found.first().map(Vec::len) else { continue };
            let rows = found.len();
            let column = |at: usize| {
                let texts = found.iter().map(|row| &*row[at]).collect();
                Column::new(Values::String(texts))
            };
            let names = std::iter::repeat_n(&*name, rows).collect();
            let mut columns = vec![Column::new(Values::String(names))];
            columns.extend((0..width).map(column));
            return Ok(Some(ColumnBatch { rows, runs: Vec::new(), columns }));
        }
        Ok(None)
    }
}
