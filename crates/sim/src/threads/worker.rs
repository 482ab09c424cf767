//! A thread with a measurement of its own.

use std::path::Path;
use std::sync::Arc;

use model::{Name, Scalar, TagExpr};
use platform::{Disk, SimDisk};
use store::testing::{self, Row};
use store::{DeleteRequest, DeleteTarget, NameFilter, Policy, Store, StoreError};
use store_local::LocalStore;

use crate::content::{Content, Scope};
use crate::oracle::{Action, Answer, Left, Oracle};
use crate::pool;
use crate::random::Random;

/// Operations of a round.
const OPERATIONS: u64 = 120;
/// Hours that rows lie in: each in a partition of its own in one of the policies.
const HOURS: u64 = 3;

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) oracle: Oracle,
    pub(super) acknowledged: u64,
    pub(super) cut_off: u64,
    measurement: Name,
    /// The first one also keeps the catalog's document.
    number: u8,
    random: Random,
}

impl Worker {
    pub(super) fn new(number: u8, seed: u64) -> Self {
        let measurement: Name = format!("w{number}").into();
        let mut scope = Scope { catalog: number == 0, ..Scope::default() };
        scope.measurements.push(measurement.clone());
        [0, 2].into_iter().for_each(|policy| scope.add(pool::policy(policy, 0)));
        Self {
            oracle: Oracle::new(scope),
            acknowledged: 0,
            cut_off: 0,
            measurement,
            number,
            random: Random::new(seed),
        }
    }

    /// Works until it is done or an operation fails because power was lost.
    pub(super) fn work(&mut self, store: &LocalStore, disk: &SimDisk) -> Result<(), String> {
        for _ in 0..OPERATIONS {
            let done = match self.random.below(100) {
                0..70 => self.write(store)?,
                70..80 => self.delete(store)?,
                80..85 => self.swap_catalog(store)?,
                _ => self.read(store)?,
            };
            match done {
                Ok(()) => self.acknowledged += 1,
                Err(error) if disk.free_bytes(Path::new("/")).is_ok() => {
                    return Err(format!("{} failed: {error}", self.measurement));
                }
                Err(_) => {
                    self.cut_off += 1;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn policy(&mut self) -> Policy {
        pool::policy(self.random.pick(&[0, 2]), 0)
    }

    fn row(&mut self) -> Row {
        let hour = self.random.below(HOURS) as u16;
        let time = hour * pool::STEPS + self.random.below(u64::from(pool::STEPS)) as u16;
        let value = self.random.below(1_000_000);
        let mut fields = vec![("i", Scalar::Integer(value as i64))];
        if self.random.chance(50) {
            fields.push(("f", Scalar::Float(value as f64 / 3.0)));
        }
        if self.random.chance(20) {
            fields.push(("s", Scalar::String(format!("{value}").into())));
        }
        let host = self.random.below(5);
        Row::new(&format!("{},host={host}", self.measurement), &fields, pool::time_ns(time))
    }

    fn write(&mut self, store: &LocalStore) -> Result<Result<(), StoreError>, String> {
        let policy = self.policy();
        let count = self.random.between(1, 20);
        let rows: Vec<Row> = (0..count).map(|_| self.row()).collect();
        loop {
            match testing::write(store, policy, &rows, pool::NOW_NS) {
                Ok(outcome) => {
                    let got = Answer::Write(outcome);
                    let action = Action::Write(policy, rows.into());
                    return self.oracle.certain(&action, |a| *a == got, true).map(Ok);
                }
                // No memory: some other thread makes room.
                Err(StoreError::Overloaded { .. }) => std::thread::yield_now(),
                Err(error) => {
                    self.oracle.uncertain_write(policy, &rows, Left::NoneOrAllByPartition);
                    return Ok(Err(error));
                }
            }
        }
    }

    fn delete(&mut self, store: &LocalStore) -> Result<Result<(), StoreError>, String> {
        let target = if self.random.chance(15) {
            DeleteTarget::Measurement(self.measurement.clone())
        } else if self.random.chance(40) {
            return self.delete_matching(store);
        } else {
            let series = match self.random.chance(60) {
                true => TagExpr::Equals("host".into(), format!("{}", self.random.below(5)).into()),
                false => TagExpr::True,
            };
            let mut time = || self.random.below(HOURS * u64::from(pool::STEPS)) as u16;
            let times = (time(), time());
            DeleteTarget::Rows {
                measurements: NameFilter::In(vec![self.measurement.clone()]),
                series,
                time: pool::time_range(self.random.chance(80).then_some(times)),
            }
        };
        let database = self.policy().database;
        self.do_delete(store, DeleteRequest { database, target })
    }

    fn delete_matching(&mut self, store: &LocalStore) -> Result<Result<(), StoreError>, String> {
        let policy = self.policy();
        let rows = self.oracle.rows(policy, &self.measurement);
        let chosen = (self.random.below(16) as u8, self.random.between(1, 9) as u8, false);
        let target = pool::delete_matching(policy, &self.measurement, &rows, chosen);
        self.do_delete(store, DeleteRequest { database: policy.database, target })
    }

    fn do_delete(
        &mut self,
        store: &LocalStore,
        request: DeleteRequest,
    ) -> Result<Result<(), StoreError>, String> {
        match store.delete(&request) {
            Ok(()) => self.oracle.certain(&Action::Delete(request), |_| true, true).map(Ok),
            Err(error) => {
                self.oracle.uncertain_delete(&request);
                Ok(Err(error))
            }
        }
    }

    fn swap_catalog(&mut self, store: &LocalStore) -> Result<Result<(), StoreError>, String> {
        if self.number != 0 {
            return Ok(Ok(()));
        }
        let bytes: Arc<[u8]> = (0..self.random.below(300)).map(|at| at as u8).collect();
        let version = match store.catalog() {
            Ok(now) => now.version,
            Err(error) => return Ok(Err(error)),
        };
        let action = Action::SwapCatalog(version, Arc::clone(&bytes));
        match store.swap_catalog(version, &bytes) {
            Ok(outcome) => {
                let got = Answer::Swap(outcome);
                self.oracle.certain(&action, |answer| *answer == got, true).map(Ok)
            }
            Err(error) => {
                self.oracle.uncertain(&action);
                Ok(Err(error))
            }
        }
    }

    /// Its own rows are what it wrote, whatever the others do meanwhile.
    fn read(&mut self, store: &LocalStore) -> Result<Result<(), StoreError>, String> {
        match Content::read(store, &self.oracle.scope) {
            Ok(content) => self.oracle.check(&content, false).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}
