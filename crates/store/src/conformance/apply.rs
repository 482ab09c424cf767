//! Does operations to the store under test and to the model, and compares what they say.

use std::collections::BTreeSet;

use model::{DatabaseId, FieldType, Interrupt, Name, PolicyId, TagExpr};

use super::TestStore;
use super::compare::{check_probe, names_request};
use super::operation::{Operation, Picked, Probe};
use super::partitions::{self, Numbers};
use super::revisions::Revisions;
use crate::reference::{ReferenceOptions, ReferenceStore};
use crate::testing::{self, Row};
use crate::{
    DeleteRequest, DeleteTarget, MetadataKind, NameFilter, Policy, Store, StoreError, SwapOutcome,
    WriteOutcome,
};

/// A store and the model of what it should hold.
pub(super) struct Pair {
    pub(super) test: Box<dyn TestStore>,
    pub(super) model: ReferenceStore,
    /// Policies and measurements that were ever written to.
    seen_policies: Vec<Policy>,
    seen_measurements: Vec<Name>,
    numbers: Numbers,
}

impl Pair {
    pub(super) fn new(test: Box<dyn TestStore>) -> Self {
        let options =
            ReferenceOptions { filters: true, rows_per_series: false, ..Default::default() };
        Self {
            test,
            model: ReferenceStore::with_options(options),
            seen_policies: Vec::new(),
            seen_measurements: Vec::new(),
            numbers: Numbers::default(),
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.test.store()
    }

    /// Does an operation, and compares what it gives; what it changes shows in revisions.
    pub(super) fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        if !operation.changes_rows() {
            return self.perform(operation);
        }
        let before = self.revisions()?;
        self.perform(operation)?;
        before.check(&self.revisions()?)
    }

    fn revisions(&self) -> Result<Revisions, String> {
        let stores = (self.store(), &self.model);
        Revisions::take(stores, &self.seen_policies, &self.seen_measurements)
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Write { policy, now_ns, rows } => {
                self.write_at(*policy, rows, *now_ns).map(drop)
            }
            Operation::Delete { database, target } => self.delete(*database, target.clone()),
            Operation::DeleteMatching(picked) => self.delete_matching(picked),
            Operation::DropPartition { database, nth } => {
                let listed = partitions::list(self.store(), *database)?;
                let Some(chosen) = listed.get(nth % listed.len().max(1)) else { return Ok(()) };
                self.delete(*database, DeleteTarget::Partition(chosen.policy, chosen.time))
            }
            Operation::Expire { database, policy, before_ns } => {
                self.expire(*database, *policy, *before_ns)
            }
            Operation::SwapCatalog { fresh, bytes } => self.swap_catalog(*fresh, bytes),
            Operation::Scan(probe) => self.probe(probe),
            Operation::Names { database, kind, measurements, series } => {
                self.names(*database, kind, measurements, series).map(drop)
            }
            Operation::CheckAll => self.check_all(),
            Operation::Maintain => {
                self.test.maintain();
                Ok(())
            }
            Operation::Reopen => {
                self.test.reopen();
                Ok(())
            }
        }
    }

    pub(super) fn write(&mut self, policy: Policy, rows: &[Row]) -> Result<WriteOutcome, String> {
        self.write_at(policy, rows, 0)
    }

    pub(super) fn write_at(
        &mut self,
        policy: Policy,
        rows: &[Row],
        now_ns: i64,
    ) -> Result<WriteOutcome, String> {
        if !self.seen_policies.iter().any(|p| p.id == policy.id) {
            self.seen_policies.push(policy);
        }
        for layout in testing::line_batch(rows).layouts {
            if !self.seen_measurements.iter().any(|m| **m == *layout.measurement) {
                self.seen_measurements.push(layout.measurement.into());
            }
        }
        let got = testing::write(self.store(), policy, rows, now_ns).map_err(failed("write"))?;
        let want = testing::write(&self.model, policy, rows, now_ns).map_err(failed("model"))?;
        same("outcome of a write", &got, &want)?;
        Ok(got)
    }

    pub(super) fn delete(
        &mut self,
        database: DatabaseId,
        target: DeleteTarget,
    ) -> Result<(), String> {
        self.numbers.deleted();
        let request = DeleteRequest { database, target };
        self.store().delete(&request).map_err(failed("delete"))?;
        self.model.delete(&request).map_err(failed("model"))
    }

    fn delete_matching(&mut self, picked: &Picked) -> Result<(), String> {
        let Picked { policy, measurement, .. } = picked;
        let mut request =
            testing::scan_everything(&self.model, *policy, measurement).map_err(failed("model"))?;
        request.series = picked.series.clone();
        request.time = picked.time;
        let rows = testing::read(&self.model, &request).map_err(failed("model"))?;
        let mut named: Vec<Row> = rows.iter().step_by(picked.one_in).cloned().collect();
        if picked.stale_one_in > 0 {
            for at in (0..named.len()).step_by(picked.stale_one_in) {
                named[at].fields = named[(at + 1) % named.len()].fields.clone();
            }
        }
        let of_schema = |at: &usize| request.fields[at % request.fields.len()].clone();
        let mut fields: Vec<(Name, FieldType)> = match request.fields.is_empty() {
            true => return Ok(()),
            false => picked.fields.iter().map(of_schema).collect(),
        };
        fields.sort_unstable();
        fields.dedup();
        let target = testing::matching(*policy, measurement, &fields, &named);
        self.delete(policy.database, target)
    }

    pub(super) fn expire(
        &mut self,
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    ) -> Result<(), String> {
        self.numbers.deleted();
        let series = |store: &dyn Store| {
            let all =
                names_request(database, &MetadataKind::Series, &NameFilter::All, &TagExpr::True);
            testing::names(store, &all).map_err(failed("metadata"))
        };
        let before = series(&self.model)?;
        let got = self.store().expire(database, policy, before_ns).map_err(failed("expire"))?;
        let dropped = self.model.expire(database, policy, before_ns).map_err(failed("model"))?;
        // A store may or may not count partitions that had become empty.
        if got == 0 && before != series(&self.model)? {
            return Err(format!("expire dropped nothing, the model {dropped} partitions"));
        }
        if got > 0 && dropped == 0 {
            return Err(format!("expire dropped {got} partitions, the model none"));
        }
        Ok(())
    }

    fn swap_catalog(&self, fresh: bool, bytes: &[u8]) -> Result<(), String> {
        let now = self.store().catalog().map_err(failed("catalog"))?;
        let model = self.model.catalog().map_err(failed("model"))?;
        same("catalog", &now, &model)?;
        let expected = if fresh { now.version } else { now.version + 1 };
        let got = self.store().swap_catalog(expected, bytes).map_err(failed("swap_catalog"))?;
        let want = self.model.swap_catalog(expected, bytes).map_err(failed("model"))?;
        if fresh && got != SwapOutcome::Swapped(now.version + 1) {
            return Err(format!("a swap of version {expected} gave {got:?}"));
        }
        same("outcome of a swap", &got, &want)
    }

    pub(super) fn probe(&self, probe: &Probe) -> Result<(), String> {
        check_probe(self.store(), &self.model, probe)
            .map_err(|message| format!("scan of {probe:?}: {message}"))
    }

    /// Compares an answer about names and returns it.
    pub(super) fn names(
        &self,
        database: DatabaseId,
        kind: &MetadataKind,
        measurements: &NameFilter,
        series: &TagExpr,
    ) -> Result<Vec<Vec<String>>, String> {
        let request = names_request(database, kind, measurements, series);
        let got = testing::names(self.store(), &request).map_err(failed("metadata"))?;
        let want = testing::names(&self.model, &request).map_err(failed("model"))?;
        same(&format!("{kind:?} of {measurements:?} where {series:?}"), &got, &want)?;
        Ok(got)
    }

    /// Compares all rows, schemas and names.
    pub(super) fn check_all(&mut self) -> Result<(), String> {
        let mut databases: Vec<DatabaseId> = Vec::new();
        for policy in &self.seen_policies {
            if !databases.contains(&policy.database) {
                databases.push(policy.database);
            }
            for measurement in &self.seen_measurements {
                self.check_schema(policy.database, measurement)?;
                self.probe(&Probe::all(*policy, measurement))?;
            }
        }
        for database in databases {
            for kind in [
                MetadataKind::Measurements,
                MetadataKind::Series,
                MetadataKind::SeriesCounts,
                MetadataKind::TagKeys,
                MetadataKind::TagValues(NameFilter::All),
            ] {
                self.names(database, &kind, &NameFilter::All, &TagExpr::True)?;
            }
            self.check_partitions(database)?;
        }
        Ok(())
    }

    fn check_partitions(&mut self, database: DatabaseId) -> Result<(), String> {
        let mut times = BTreeSet::new();
        for policy in self.seen_policies.iter().filter(|p| p.database == database) {
            for measurement in &self.seen_measurements {
                let rows = testing::read_all(&self.model, *policy, measurement);
                let rows = rows.map_err(failed("model"))?;
                times.extend(rows.iter().map(|row| (policy.id, row.time_ns)));
            }
        }
        let listed = partitions::list(self.store(), database)?;
        self.numbers.check(&listed, &times)
    }

    fn check_schema(&self, database: DatabaseId, measurement: &str) -> Result<(), String> {
        let got = self
            .store()
            .schema(database, measurement, &Interrupt::new())
            .map_err(failed("schema"))?;
        let want =
            self.model.schema(database, measurement, &Interrupt::new()).map_err(failed("model"))?;
        same(&format!("schema of {measurement} of {database:?}"), &got, &want)
    }
}

/// Turns an error into a message.
pub(super) fn failed(what: &'static str) -> impl Fn(StoreError) -> String {
    move |error| format!("{what} failed: {error}")
}

/// Compares two things that should be equal.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    got: &T,
    want: &T,
) -> Result<(), String> {
    if got == want {
        return Ok(());
    }
    Err(format!("{what}\n  is        {got:?}\n  should be {want:?}"))
}
