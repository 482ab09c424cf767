//! A store with a damaged file.

use std::path::Path;

use model::{DatabaseId, Name, Scalar, TagExpr};
use platform::SimDisk;
use store::testing::{self, Row};
use store::{
    DeleteRequest, DeleteTarget, MetadataKind, MetadataRequest, NameFilter, Store, StoreError,
};
use store_local::LocalStore;

use super::{Base, Flip, is_in};
use crate::content::Content;
use crate::pool;
use crate::random::Random;

/// A measurement that histories do not have.
const EXTRA: &str = "extra";

#[derive(Debug)]
pub(super) struct Damaged<'a> {
    pub(super) base: &'a Base,
    pub(super) flip: &'a Flip,
    pub(super) disk: SimDisk,
    pub(super) store: LocalStore,
    /// The log is damaged and says so.
    pub(super) rows_lost: bool,
}

/// What was done to a store while it was damaged.
#[derive(Debug, Default)]
pub(super) struct Work {
    extra: Vec<Row>,
    /// All rows of a measurement were deleted.
    deleted: Option<(DatabaseId, Name)>,
    /// Its delete failed: anything may be the case.
    unknown: Option<(DatabaseId, Name)>,
}

/// Fails unless an error says that `path` is damaged.
pub(super) fn check_names(error: &StoreError, path: &Path) -> Result<(), String> {
    match error {
        StoreError::Corruption { path: named, .. } if path.starts_with(named) => Ok(()),
        other => Err(format!("the error does not name the damaged file: {other}")),
    }
}

impl Damaged<'_> {
    /// Reads everything; whether some of it could not be read.
    pub(super) fn read(&self) -> Result<bool, String> {
        if self.rows_lost {
            let content = Content::read(&self.store, &self.base.scope)
                .map_err(|e| format!("reading failed: {e}"))?;
            self.base.sent.check(&content)?;
            return Ok(false);
        }
        let mut failed_policies = 0;
        let mut failed = false;
        for policy in &self.base.scope.policies {
            let mut of_policy = false;
            for measurement in &self.base.scope.measurements {
                let want = &self.base.content.rows[&(policy.id.0, measurement.clone())];
                match testing::read_all(&self.store, *policy, measurement) {
                    Ok(rows) if rows == *want => {}
                    Ok(rows) => return Err(wrong(measurement, &rows, want)),
                    Err(error) => {
                        check_names(&error, &self.flip.path)?;
                        of_policy = true;
                    }
                }
            }
            failed_policies += u32::from(of_policy);
            failed |= of_policy;
        }
        if is_in(self.base, "segments", &self.flip.path) && failed_policies > 1 {
            return Err(format!("a damaged segment hides {failed_policies} policies"));
        }
        Ok(failed | self.read_names()?)
    }

    fn read_names(&self) -> Result<bool, String> {
        for (database, want) in &self.base.content.series {
            let request = MetadataRequest {
                database: *database,
                kind: MetadataKind::Series,
                measurements: NameFilter::In(self.base.scope.measurements.clone()),
                series: TagExpr::True,
                facts_max: None,
                context: testing::unlimited(),
            };
            match testing::names(&self.store, &request) {
                Ok(rows) if rows.iter().map(|row| &row[1]).eq(want) => {}
                Ok(rows) => return Err(format!("series are {rows:?}, should be {want:?}")),
                Err(error) => {
                    check_names(&error, &self.flip.path)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Goes on working: writes, perhaps deletes, merges what there is.
    pub(super) fn work(&mut self, random: &mut Random) -> Result<Work, String> {
        let mut work = Work::default();
        self.write_extra(&mut work)?;
        if random.chance(40) {
            self.delete(random, &mut work)?;
        }
        if random.chance(70) {
            self.accept(self.store.settle())?;
        }
        self.check_extra(&work)?;
        if self.rows_lost {
            self.reopen()?;
            self.read()?;
            self.check_extra(&work)?;
        }
        Ok(work)
    }

    /// New series and fields: they must not meet rows of series whose definition was lost.
    fn write_extra(&self, work: &mut Work) -> Result<(), String> {
        let policy = self.base.policy;
        let row = |at: i64| {
            let fields = [("i", Scalar::Integer(at)), ("t", Scalar::Boolean(true))];
            Row::new(&format!("{EXTRA},n={}", at % 9), &fields, pool::NOW_NS + at)
        };
        let rows: Vec<Row> = (0..40).map(row).collect();
        let written = testing::write(&self.store, policy, &rows, pool::NOW_NS);
        if written.is_ok() {
            work.extra = rows;
            work.extra.sort_by(|a, b| a.key.cmp(&b.key));
        }
        self.accept(written.map(drop))
    }

    fn check_extra(&self, work: &Work) -> Result<(), String> {
        match testing::read_all(&self.store, self.base.policy, EXTRA) {
            Ok(rows) if rows == work.extra => Ok(()),
            Ok(rows) => Err(wrong(EXTRA, &rows, &work.extra)),
            Err(error) => self.accept(Err(error)),
        }
    }

    fn delete(&self, random: &mut Random, work: &mut Work) -> Result<(), String> {
        let number = random.below(self.base.scope.policies.len() as u64) as usize;
        let database = self.base.scope.policies[number].database;
        let measurement: Name = pool::measurement(random.below(3) as u8).into();
        let target = DeleteTarget::Rows {
            measurements: NameFilter::In(vec![measurement.clone()]),
            series: TagExpr::True,
            time: pool::time_range(None),
        };
        let deleted = self.store.delete(&DeleteRequest { database, target });
        let what = Some((database, measurement));
        if deleted.is_ok() {
            work.deleted = what;
        } else {
            work.unknown = what;
        }
        self.accept(deleted)
    }

    /// Work may fail because of the damage, and only because of it.
    fn accept(&self, outcome: Result<(), StoreError>) -> Result<(), String> {
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => check_names(&error, &self.flip.path),
        }
    }

    fn reopen(&mut self) -> Result<(), String> {
        self.store.close().map_err(|e| format!("close failed: {e}"))?;
        self.disk = self.disk.kill();
        let again = self.base.setup.open(&self.disk);
        self.store = again.map_err(|e| format!("opening a second time failed: {e}"))?;
        Ok(())
    }
}

impl Work {
    /// Compares a store whose file is whole again with what it held and what was done since.
    pub(super) fn check(&self, base: &Base, store: &LocalStore) -> Result<(), String> {
        for policy in &base.scope.policies {
            for measurement in &base.scope.measurements {
                let is = |what: &Option<(DatabaseId, Name)>| {
                    what.as_ref() == Some(&(policy.database, measurement.clone()))
                };
                if is(&self.unknown) {
                    continue;
                }
                let none = Vec::new();
                let key = (policy.id.0, measurement.clone());
                let want = if is(&self.deleted) { &none } else { &base.content.rows[&key] };
                let rows = testing::read_all(store, *policy, measurement)
                    .map_err(|e| format!("reading failed: {e}"))?;
                if rows != *want {
                    return Err(wrong(measurement, &rows, want));
                }
            }
        }
        let rows = testing::read_all(store, base.policy, EXTRA);
        let rows = rows.map_err(|e| format!("reading failed: {e}"))?;
        if rows == self.extra { Ok(()) } else { Err(wrong(EXTRA, &rows, &self.extra)) }
    }
}

fn wrong(measurement: &str, got: &[Row], want: &[Row]) -> String {
    let at = got.iter().zip(want).position(|(a, b)| a != b);
    let at = at.unwrap_or(got.len().min(want.len()));
    format!(
        "{measurement:?} has {} rows, should have {}; at {at}\n  is        {:?}\n  should be {:?}",
        got.len(),
        want.len(),
        got.get(at),
        want.get(at)
    )
}
