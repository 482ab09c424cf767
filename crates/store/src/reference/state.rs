//! What the model remembers, and how writes, deletes and expiry change it.
//!
//! Invariants
//! - A series has at least one row; its rows have at least one field, each of the type the
//!   measurement has for it.
//! - Every row lies in exactly one partition of its policy; the partitions of a policy are disjoint.

use std::collections::BTreeMap;

use model::{
    Column, DatabaseId, FieldType, LineBatch, LineRow, MAX_TIME_NS, MIN_TIME_NS, MeasurementSchema,
    Name, PolicyId, Scalar, SeriesKey, TagExpr, TimeRange, partition_range,
};

use crate::testing::{self, scalar_of};
use crate::{
    CatalogDocument, DeleteRequest, DeleteTarget, MatchingRows, NameFilter, Policy, RejectReason,
    RejectedRow, WriteOutcome, WriteRequest,
};

/// Everything the store holds.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) databases: BTreeMap<DatabaseId, Database>,
    pub(super) catalog: CatalogDocument,
    pub(super) rows_written: u64,
    pub(super) closed: bool,
    /// Calls that may have changed rows, the last that may have changed any, and the last write of each time.
    changes: u64,
    changed_all: u64,
    changed_at: BTreeMap<(PolicyId, i64), u64>,
    series_created: u64,
    partitions_created: u64,
}

#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) measurements: BTreeMap<Name, Measurement>,
    /// Partitions by policy and first time.
    pub(super) partitions: BTreeMap<PolicyId, BTreeMap<i64, Partition>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    pub(super) number: u64,
    pub(super) time: TimeRange,
}

#[derive(Debug, Default)]
pub(super) struct Measurement {
    pub(super) fields: BTreeMap<Name, FieldType>,
    /// Series by canonical key.
    pub(super) series: BTreeMap<String, Series>,
}

#[derive(Debug)]
pub(super) struct Series {
    pub(super) key: SeriesKey,
    /// Counts up over the store's life.
    pub(super) created: u64,
    pub(super) rows: BTreeMap<PolicyId, Rows>,
}

/// Rows of one series in one policy by time.
pub(super) type Rows = BTreeMap<i64, BTreeMap<Name, Scalar>>;

impl Series {
    pub(super) fn matches(&self, expr: &TagExpr) -> bool {
        expr.evaluate(&|key: &str| self.key.tag(key))
    }

    fn is_empty(&self) -> bool {
        self.rows.values().all(BTreeMap::is_empty)
    }
}

impl State {
    pub(super) fn write(&mut self, request: &WriteRequest<'_>) -> WriteOutcome {
        self.changes += 1;
        let written = request.batch.rows.iter().map(|row| (request.policy.id, row.time_ns));
        self.changed_at.extend(written.map(|at| (at, self.changes)));
        let mut outcome = WriteOutcome::default();
        for (at, row) in request.batch.rows.iter().enumerate() {
            match self.write_row(request, row) {
                Ok(()) => outcome.rows_written += 1,
                Err(reason) => {
                    let row = u32::try_from(at).expect("BUG: a batch has less than 4 G rows");
                    outcome.rejected.push(RejectedRow { row, reason });
                }
            }
        }
        self.rows_written += outcome.rows_written;
        outcome
    }

    fn write_row(&mut self, request: &WriteRequest<'_>, row: &LineRow) -> Result<(), RejectReason> {
        let WriteRequest { policy, batch, now_ns } = request;
        let key = SeriesKey::parse(batch.raw_key(row))?;
        if policy.retention_ns.is_some_and(|kept| row.time_ns < now_ns.saturating_sub(kept)) {
            return Err(RejectReason::BeyondRetention);
        }
        if !key.tag("time").is_empty() {
            let measurement = &key.measurement;
            return Err(RejectReason::ReservedName(format!(
                "invalid tag key: input tag \"time\" on measurement \"{measurement}\" is invalid"
            )));
        }
        let fields = typed_fields(batch, row);
        let database = self.databases.entry(policy.database).or_default();
        if let Some(measurement) = database.measurements.get(&key.measurement) {
            measurement.check_types(&key.measurement, &fields)?;
        }
        database.ensure_partition(policy, row.time_ns, &mut self.partitions_created);
        let measurement = database.measurements.entry(key.measurement.clone()).or_default();
        for (name, value) in &fields {
            measurement.fields.insert(name.clone(), value.field_type());
        }
        let series = measurement.series.entry(key.to_string()).or_insert_with(|| {
            self.series_created += 1;
            Series { key, created: self.series_created, rows: BTreeMap::new() }
        });
        let rows = series.rows.entry(policy.id).or_default();
        rows.entry(row.time_ns).or_default().extend(fields);
        Ok(())
    }

    pub(super) fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
    ) -> Option<MeasurementSchema> {
        let measurement = self.databases.get(&database)?.measurements.get(measurement)?;
        let tags = measurement.series.values().flat_map(|s| s.key.tags.iter());
        let mut tag_keys: Vec<Name> = tags.map(|(key, _)| key.clone()).collect();
        tag_keys.sort_unstable();
        tag_keys.dedup();
        let fields = measurement.fields.iter().map(|(name, ty)| (name.clone(), *ty)).collect();
        Some(MeasurementSchema { fields, tag_keys })
    }

    fn change_all(&mut self) {
        self.changes += 1;
        self.changed_all = self.changes;
        self.changed_at.clear();
    }

    /// The last change of rows of a policy within `time`.
    pub(super) fn last_change(&self, policy: PolicyId, time: TimeRange) -> u64 {
        if time.is_empty() {
            return self.changed_all;
        }
        let changes = self.changed_at.range((policy, time.min)..=(policy, time.max));
        changes.map(|(_, change)| *change).max().unwrap_or(self.changed_all)
    }

    pub(super) fn delete(&mut self, request: &DeleteRequest) {
        self.change_all();
        let Some(database) = self.databases.get_mut(&request.database) else { return };
        match &request.target {
            DeleteTarget::Rows { measurements, series, time } => {
                database.delete_rows(measurements, series, *time);
            }
            DeleteTarget::Matching(rows) => database.delete_matching(rows),
            DeleteTarget::Measurement(name) => {
                database.measurements.remove(name);
            }
            DeleteTarget::Policy(policy) => {
                database.partitions.remove(policy);
                database.remove(|_, _| true, *policy, TimeRange::ALL);
            }
            DeleteTarget::Partition(policy, time) => {
                let Some(partitions) = database.partitions.get_mut(policy) else { return };
                if partitions.get(&time.min).is_some_and(|p| p.time == *time) {
                    partitions.remove(&time.min);
                    database.remove(|_, _| true, *policy, *time);
                }
            }
            DeleteTarget::Database => {
                self.databases.remove(&request.database);
            }
        }
    }

    pub(super) fn expire(&mut self, database: DatabaseId, policy: PolicyId, before: i64) -> u64 {
        self.change_all();
        let Some(database) = self.databases.get_mut(&database) else { return 0 };
        let Some(partitions) = database.partitions.get_mut(&policy) else { return 0 };
        let over: Vec<TimeRange> =
            partitions.values().map(|p| p.time).filter(|range| range.max < before).collect();
        partitions.retain(|_, partition| partition.time.max >= before);
        for range in &over {
            database.remove(|_, _| true, policy, *range);
        }
        over.len() as u64
    }

    pub(super) fn series_count(&self) -> usize {
        let measurements = self.databases.values().flat_map(|d| d.measurements.values());
        measurements.map(|m| m.series.len()).sum()
    }
}

impl Database {
    /// An existing partition keeps its bounds; a new one gives way to its neighbours.
    fn ensure_partition(&mut self, policy: &Policy, time_ns: i64, created: &mut u64) {
        let partitions = self.partitions.entry(policy.id).or_default();
        let before = partitions.range(..=time_ns).next_back().map(|(_, partition)| partition.time);
        if before.is_some_and(|range| range.contains(time_ns)) {
            return;
        }
        let after = partitions.range(time_ns..).next().map(|(start, _)| *start);
        let free = TimeRange {
            min: before.map_or(MIN_TIME_NS, |range| range.max + 1),
            max: after.map_or(MAX_TIME_NS, |start| start - 1),
        };
        let range = partition_range(time_ns, policy.partition_ns).intersect(&free);
        *created += 1;
        partitions.insert(range.min, Partition { number: *created, time: range });
    }

    fn delete_rows(&mut self, measurements: &NameFilter, expr: &TagExpr, time: TimeRange) {
        let policies: Vec<PolicyId> = self.partitions.keys().copied().collect();
        for policy in policies {
            let wanted = |name: &Name, s: &Series| measurements.accepts(name) && s.matches(expr);
            self.remove(wanted, policy, time);
        }
    }

    fn delete_matching(&mut self, named: &MatchingRows) {
        let Some(measurement) = self.measurements.get_mut(named.measurement()) else { return };
        for (key, range) in named.runs() {
            let Some(series) = measurement.series.get_mut(&key.to_string()) else { continue };
            let Some(rows) = series.rows.get_mut(&named.policy()) else { continue };
            let mut comparison = named.compare(range);
            for (time, row) in &*rows {
                let column = |(name, field_type): &(Name, FieldType)| {
                    let value = row.get(name).filter(|value| value.field_type() == *field_type);
                    testing::column_of(*field_type, value)
                };
                let columns: Vec<Column> = named.fields().iter().map(column).collect();
                comparison.see(&[*time], &columns, 0);
            }
            for time in comparison.finish() {
                rows.remove(&time);
            }
        }
        measurement.series.retain(|_, series| !series.is_empty());
    }

    /// Removes rows, and the series that are left without.
    fn remove(
        &mut self,
        wanted: impl Fn(&Name, &Series) -> bool,
        policy: PolicyId,
        time: TimeRange,
    ) {
        for (name, measurement) in &mut self.measurements {
            for series in measurement.series.values_mut() {
                if wanted(name, series)
                    && let Some(rows) = series.rows.get_mut(&policy)
                {
                    rows.retain(|at, _| !time.contains(*at));
                }
            }
            measurement.series.retain(|_, series| !series.is_empty());
        }
    }
}

impl Measurement {
    fn check_types(&self, name: &Name, fields: &[(Name, Scalar)]) -> Result<(), RejectReason> {
        for (field, value) in fields {
            let input = value.field_type();
            match self.fields.get(field) {
                Some(existing) if *existing != input => {
                    return Err(RejectReason::FieldTypeConflict {
                        measurement: name.clone(),
                        field: field.clone(),
                        input,
                        existing: *existing,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn typed_fields(batch: &LineBatch<'_>, row: &LineRow) -> Vec<(Name, Scalar)> {
    let layout = &batch.layouts[row.layout as usize];
    let slots = batch.row_values(row);
    let field = |(field, slot): (&model::LayoutField<'_>, &u64)| {
        (Name::from(&*field.name), scalar_of(batch, field.field_type, *slot))
    };
    layout.fields.iter().zip(slots).map(field).collect()
}
