//! What each operation means for store and oracle.

use std::sync::Arc;

use model::{PolicyId, TimeRange, partition_range};
use platform::Fault;
use store::testing::{self, Row};
use store::{DeleteRequest, DeleteTarget, Policy, Store, StoreError, WriteOutcome};

use store_local::LocalStore;

use super::Runner;
use crate::operation::Operation;
use crate::oracle::{Action, Answer, Left};
use crate::pool;

impl Runner {
    /// Does one operation.
    pub(crate) fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Crash { kill, again } => return self.crash(*kill, again),
            _ if self.store.is_none() => self.crash(true, &[])?,
            _ => {}
        }
        if !self.oracle.has_room() {
            self.crash(false, &[])?;
        }
        match operation {
            Operation::Write { policy, rows } => {
                let rows: Vec<Row> = rows.iter().map(pool::store_row).collect();
                self.write(*policy, &rows)?;
            }
            Operation::Bulk { policy, first, rows, spread } => {
                self.write(*policy, &pool::bulk(*first, *rows, *spread))?;
            }
            Operation::DeleteRows { database, measurement, host, times } => {
                self.delete(*database, pool::delete_rows(*measurement, *host, *times))?;
            }
            Operation::DeleteMatching { policy, measurement, fields, one_in, stale } => {
                let (of, name) = (self.policy(*policy), pool::measurement(*measurement));
                let rows = self.oracle.rows(of, name);
                let target = pool::delete_matching(of, name, &rows, (*fields, *one_in, *stale));
                self.delete(pool::database_of(*policy), target)?;
            }
            Operation::DeleteMeasurement { database, measurement } => {
                let name = pool::measurement(*measurement).into();
                self.delete(*database, DeleteTarget::Measurement(name))?;
            }
            Operation::DeletePolicy { policy } => {
                let id = self.policy(*policy).id;
                self.delete(pool::database_of(*policy), DeleteTarget::Policy(id))?;
            }
            Operation::DropPartition { policy, time } => {
                self.drop_partition(*policy, pool::time_ns(*time))?;
            }
            Operation::DeleteDatabase { database } => self.delete_database(*database)?,
            Operation::Expire { policy, before } => {
                self.expire(self.policy(*policy), pool::time_ns(*before))?;
            }
            Operation::SwapCatalog { bytes } => self.swap_catalog(*bytes)?,
            Operation::Flush => self.work(LocalStore::flush)?,
            Operation::Maintain => self.work(LocalStore::maintain)?,
            Operation::Settle => self.work(LocalStore::settle)?,
            Operation::Check => self.check_calmly()?,
            Operation::CheckWhileReadsFail(one_in) => self.check_while_reads_fail(*one_in)?,
            Operation::Reopen => self.reopen()?,
            Operation::Begin(trouble) => self.begin(*trouble),
            Operation::EndFaults => self.end_faults(),
            Operation::Crash { .. } => {}
        }
        self.crash_if_dead()
    }

    fn policy(&self, number: u8) -> Policy {
        pool::policy(number, self.generations[usize::from(pool::database_of(number))])
    }

    /// Runs `work` on the store. An error is returned if something may have gone wrong, together
    /// with whether the disk was changed.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&LocalStore) -> Result<T, StoreError>,
    ) -> Result<Result<T, bool>, String> {
        let before = self.disk.operations();
        match work(self.store()) {
            Ok(done) => {
                self.summary.acknowledged += 1;
                Ok(Ok(done))
            }
            Err(error) if self.troubled => {
                self.summary.failed += 1;
                match error {
                    StoreError::Corruption { .. } => Err(format!("nothing was damaged: {error}")),
                    _ => Ok(Err(self.disk.operations() > before)),
                }
            }
            Err(error) => Err(format!("failed: {error}")),
        }
    }

    fn write(&mut self, policy: u8, rows: &[Row]) -> Result<(), String> {
        let policy = self.policy(policy);
        let mut had_room = true;
        match self.attempt(|store| write_with_room(store, policy, rows, &mut had_room))? {
            Ok(outcome) => {
                // A batch that is refused whole waits for nothing to become durable.
                let proves = outcome.rows_written > 0;
                let action = Action::Write(policy, rows.into());
                let got = Answer::Write(outcome);
                let checked = self.oracle.certain(&action, |answer| *answer == got, proves);
                checked.map_err(|message| format!("the answer is {got:?}; {message}"))
            }
            Err(touched) => {
                let left = match (touched, had_room) {
                    (false, _) => Left::NoRows,
                    (true, true) => Left::NoneOrAll,
                    (true, false) => Left::NoneOrAllByPartition,
                };
                self.oracle.uncertain_write(policy, rows, left);
                Ok(())
            }
        }
    }

    fn delete(&mut self, database: u8, target: DeleteTarget) -> Result<(), String> {
        let generation = self.generations[usize::from(database % 2)];
        let request = DeleteRequest { database: pool::database(database, generation), target };
        match self.attempt(|store| store.delete(&request))? {
            Ok(()) => self.oracle.certain(&Action::Delete(request), |_| true, true),
            Err(true) => {
                self.oracle.uncertain_delete(&request);
                Ok(())
            }
            Err(false) => Ok(()),
        }
    }

    /// The partition of the store that has a time, if there is one: as long as those of the policy, or what has become of
    /// several. A number that it has from now on may not get to disk; whether it does not is the error.
    fn partition_at(
        &mut self,
        policy: Policy,
        time_ns: i64,
    ) -> Result<Result<Option<TimeRange>, bool>, String> {
        let list = |store: &LocalStore| pool::partitions(store, policy.database, policy.id);
        let listed = self.attempt(list)?;
        let has_time = |range: &TimeRange| range.contains(time_ns);
        Ok(listed.map(|listed| listed.into_iter().find(has_time)))
    }

    fn drop_partition(&mut self, policy: u8, time_ns: i64) -> Result<(), String> {
        let of = self.policy(policy);
        let Ok(range) = self.partition_at(of, time_ns)? else { return Ok(()) };
        let range = range.unwrap_or_else(|| partition_range(time_ns, of.partition_ns));
        self.delete(pool::database_of(policy), DeleteTarget::Partition(of.id, range))
    }

    /// What comes after the drop is of a new database, as the catalog would have it; unless the drop
    /// failed.
    fn delete_database(&mut self, number: u8) -> Result<(), String> {
        let failed = self.summary.failed;
        self.delete(number, DeleteTarget::Database)?;
        if self.summary.failed == failed {
            self.generations[usize::from(number % 2)] += 1;
            for policy in 0..3 {
                self.oracle.scope.add(self.policy(policy));
            }
        }
        Ok(())
    }

    fn expire(&mut self, policy: Policy, before_ns: i64) -> Result<(), String> {
        let Ok(at_end) = self.partition_at(policy, before_ns)? else { return Ok(()) };
        // Of a long partition that is not over the model would know parts that are.
        let before_ns = at_end.map_or(before_ns, |range| range.min);
        let (database, id): (_, PolicyId) = (policy.database, policy.id);
        let action = Action::Expire(database, id, before_ns);
        match self.attempt(|store| store.expire(database, id, before_ns))? {
            Ok(got) => {
                // A store may or may not count partitions that have become empty, and failed writes
                // may have left some.
                let lax = self.troubled;
                let accepts = |answer: &Answer| match answer {
                    Answer::Expired(dropped, changed) => {
                        (got > 0 || !changed) && (got == 0 || *dropped > 0 || lax)
                    }
                    _ => false,
                };
                let checked = self.oracle.certain(&action, accepts, true);
                checked.map_err(|message| format!("{got} partitions dropped; {message}"))
            }
            Err(true) => {
                self.oracle.uncertain(&action);
                Ok(())
            }
            Err(false) => Ok(()),
        }
    }

    fn swap_catalog(&mut self, bytes: u32) -> Result<(), String> {
        let now = self.store().catalog().map_err(|e| format!("reading failed: {e}"))?;
        let document: Arc<[u8]> =
            (0..bytes).map(|at| (at.wrapping_mul(bytes) >> 3) as u8).collect();
        let action = Action::SwapCatalog(now.version, Arc::clone(&document));
        match self.attempt(|store| store.swap_catalog(now.version, &document))? {
            Ok(outcome) => {
                let got = Answer::Swap(outcome);
                let checked = self.oracle.certain(&action, |answer| *answer == got, true);
                checked.map_err(|message| format!("the answer is {got:?}; {message}"))
            }
            Err(true) => {
                self.oracle.uncertain(&action);
                Ok(())
            }
            Err(false) => Ok(()),
        }
    }

    /// Background work changes nothing that anybody sees.
    fn work(
        &mut self,
        work: impl FnOnce(&LocalStore) -> Result<(), StoreError>,
    ) -> Result<(), String> {
        match work(self.store()) {
            Ok(()) => {
                self.summary.acknowledged += 1;
                Ok(())
            }
            Err(StoreError::Corruption { path, offset, detail }) => {
                Err(format!("nothing was damaged: {} at {offset}: {detail}", path.display()))
            }
            Err(_) if self.troubled => {
                self.summary.failed += 1;
                Ok(())
            }
            Err(error) => Err(format!("failed: {error}")),
        }
    }

    /// Compares the content while no read fails.
    fn check_calmly(&mut self) -> Result<(), String> {
        let mut calm = self.faults;
        calm.read = Fault::Never;
        self.disk.set_faults(calm);
        let checked = if self.is_dead() { Ok(()) } else { self.check(!self.troubled) };
        self.disk.set_faults(self.faults);
        checked
    }

    fn check_while_reads_fail(&mut self, one_in: u16) -> Result<(), String> {
        let mut faults = self.faults;
        faults.read = Fault::OneIn(u64::from(one_in));
        self.disk.set_faults(faults);
        let scope = self.oracle.scope.clone();
        for policy in &scope.policies {
            for measurement in &scope.measurements {
                match testing::read_all(self.store(), *policy, measurement) {
                    Ok(rows) => self.oracle.check_rows(*policy, measurement, &rows)?,
                    Err(StoreError::Io(_)) => self.summary.failed += 1,
                    Err(error) => return Err(format!("a failed read became: {error}")),
                }
            }
        }
        self.disk.set_faults(self.faults);
        Ok(())
    }
}

/// Writes as a client would that is told that there is no room: again, once there is. If it is the log
/// that has none, the rows are in memory, and the flush may keep some partitions of them.
fn write_with_room(
    store: &LocalStore,
    policy: Policy,
    rows: &[Row],
    had_room: &mut bool,
) -> Result<WriteOutcome, StoreError> {
    match testing::write(store, policy, rows, pool::NOW_NS) {
        Err(StoreError::Overloaded { .. }) => {
            *had_room = false;
            store.flush()?;
            testing::write(store, policy, rows, pool::NOW_NS)
        }
        written => written,
    }
}
