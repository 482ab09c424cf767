//! Names of the series that have rows in some policies, or in shards of some times.
//!
//! A store keeps one index for all policies and times of a database; InfluxDB looks into the shards
//! that a statement's times touch.

use model::{
    Column, ColumnBatch, DatabaseId, MeasurementSchema, Name, Reservation, SeriesKey, Strings,
    TagExpr, TimeRange, Values,
};
use store::{
    MetadataCursor, NameFilter, Policy, Scan, SeriesGroups, SeriesTable, StoreError, TagColumn,
};

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
    /// Series of one policy, whose keys are handed out.
    in_order: Option<InOrder>,
}

/// Keys that are made at once.
const KEYS_AT_ONCE: usize = 4096;

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
        Self { wanted, measurements, condition, time, context, in_order: None }
    }

    /// The names in one measurement, a row each; `None`: none.
    fn names(
        &mut self,
        name: &Name,
        policies: &[Policy],
    ) -> Result<Option<ColumnBatch>, QueryError> {
        let condition = &within_measurement(&self.condition, name);
        let mut present = Vec::with_capacity(policies.len());
        for policy in policies {
            let Some(schema) = self.context.schema(policy.database, name)? else { continue };
            let mut schema = MeasurementSchema::clone(&schema);
            if let Wanted::TagValues(keys) = &self.wanted {
                schema.tag_keys.retain(|key| keys.accepts(key));
            }
            let time = shards_of(self.time, policy.partition_ns);
            present.push(series_within(*policy, name, &schema, (condition, time), &self.context)?);
        }
        if let (Wanted::Keys, [(scan, series)]) = (&self.wanted, present.as_slice())
            && InOrder::is_possible(scan.series(), series)
            && let Some((scan, series)) = present.pop()
        {
            let in_order = InOrder::new(name, scan, series, self.context.budget.reserve(0)?)?;
            return Ok(self.in_order.insert(in_order).next());
        }
        let present: Vec<(&SeriesTable, &[u32])> =
            present.iter().map(|(scan, series)| (scan.series(), &**series)).collect();
        let mut held = self.context.budget.reserve(0)?;
        let columns = match &self.wanted {
            Wanted::Keys => vec![keys_of(name, &present, &mut held)?],
            Wanted::TagKeys => {
                let mut keys: Vec<&str> = Vec::new();
                for (table, series) in &present {
                    let has_values = |tags: &&TagColumn| !values_of(tags, series).is_empty();
                    keys.extend(table.tags.iter().filter(has_values).map(|tags| &*tags.key));
                }
                keys.sort_unstable();
                keys.dedup();
                vec![keys.into_iter().collect()]
            }
            Wanted::TagValues(_) => {
                let mut pairs: Vec<(&str, &str)> = Vec::new();
                for (table, series) in &present {
                    for tags in &table.tags {
                        let values = values_of(tags, series);
                        held.grow(values.len() * size_of::<(&str, &str)>())?;
                        pairs.extend(values.into_iter().map(|value| (&*tags.key, value)));
                    }
                }
                pairs.sort_unstable();
                pairs.dedup();
                vec![
                    pairs.iter().map(|(key, _)| *key).collect(),
                    pairs.iter().map(|(_, value)| *value).collect(),
                ]
            }
        };
        Ok(named(name, columns))
    }
}

/// The keys of series of several policies, sorted, each once.
fn keys_of(
    measurement: &Name,
    present: &[(&SeriesTable, &[u32])],
    held: &mut Reservation,
) -> Result<Strings, QueryError> {
    let mut keys: Vec<String> = Vec::new();
    for (table, series) in present {
        let before = keys.len();
        keys.extend(series.iter().map(|series| key_of(measurement, table, *series)));
        let bytes = keys[before..].iter().map(|key| size_of::<String>() + key.len());
        held.grow(bytes.sum())?;
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys.iter().map(String::as_str).collect())
}

fn key_of(measurement: &Name, table: &SeriesTable, series: u32) -> String {
    let value =
        |tags: &TagColumn| -> Name { tags.values.get(tags.codes[series as usize] as usize).into() };
    let tags = table.tags.iter().map(|tags| (tags.key.clone(), value(tags)));
    let tags = tags.filter(|(_, value)| !value.is_empty()).collect();
    SeriesKey { measurement: measurement.clone(), tags }.to_string()
}

/// Series in the order of their keys, whose keys are made as they are asked for.
struct InOrder {
    measurement: Name,
    scan: Box<dyn Scan>,
    series: Vec<u32>,
    next: usize,
    _held: Reservation,
}

impl InOrder {
    /// Whether keys are in the order of their tags' values.
    ///
    /// They are if each series has all tags, and no value has a byte that comes before the comma that follows it in a key, or
    /// is written with a backslash.
    fn is_possible(table: &SeriesTable, series: &[u32]) -> bool {
        let is_plain = |value: &str| value.bytes().all(|b| b > b',' && b != b'=' && b != b'\\');
        let are_plain = |tag: &TagColumn| {
            values_there(tag, series).all(|value| !value.is_empty() && is_plain(value))
        };
        table.tags.iter().all(are_plain)
    }

    /// Series of a scan for which it [`Self::is_possible`].
    fn new(
        measurement: &Name,
        scan: Box<dyn Scan>,
        series: Vec<u32>,
        mut held: Reservation,
    ) -> Result<Self, QueryError> {
        held.grow(series.len() * (size_of::<u32>() + SeriesGroups::BYTES_MAX))?;
        let tags: Vec<&TagColumn> = scan.series().tags.iter().collect();
        let series = SeriesGroups::new(series, &tags).series;
        held.resize(series.len() * size_of::<u32>())?;
        Ok(Self { measurement: measurement.clone(), scan, series, next: 0, _held: held })
    }

    /// The next keys.
    fn next(&mut self) -> Option<ColumnBatch> {
        let series = self.series[self.next..].iter().take(KEYS_AT_ONCE);
        let (name, table) = (&self.measurement, self.scan.series());
        let keys: Vec<String> = series.map(|series| key_of(name, table, *series)).collect();
        self.next += keys.len();
        named(name, vec![keys.iter().map(String::as_str).collect()])
    }
}

/// A batch of names of a measurement; `None`: there are none.
fn named(measurement: &Name, columns: Vec<Strings>) -> Option<ColumnBatch> {
    let rows = columns[0].len();
    if rows == 0 {
        return None;
    }
    let names: Strings = std::iter::repeat_n(&**measurement, rows).collect();
    let columns = std::iter::once(names).chain(columns);
    let columns = columns.map(|texts| Column::new(Values::String(texts))).collect();
    Some(ColumnBatch { rows, runs: Vec::new(), columns })
}

/// The values that a tag has in some series, each once, but for the empty one.
fn values_of<'a>(tags: &'a TagColumn, series: &[u32]) -> Vec<&'a str> {
    values_there(tags, series).filter(|value| !value.is_empty()).collect()
}

fn values_there<'a>(tags: &'a TagColumn, series: &[u32]) -> impl Iterator<Item = &'a str> {
    let mut is_there = vec![false; tags.values.len()];
    for series in series {
        is_there[tags.codes[*series as usize] as usize] = true;
    }
    let there = is_there.into_iter().enumerate().filter(|(_, is_there)| *is_there);
    there.map(|(code, _)| tags.values.get(code))
}

impl MetadataCursor for WithinCursor {
    fn next(&mut self) -> Result<Option<ColumnBatch>, StoreError> {
        if let Some(batch) = self.in_order.as_mut().and_then(InOrder::next) {
            return Ok(Some(batch));
        }
        self.in_order = None;
        while let Some((name, policies)) = self.measurements.next() {
            if let Some(batch) = self.names(&name, &policies).map_err(QueryError::into_store)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}
