//! Closing, crashing and opening the store.

use platform::{Disk, FaultConfig};
use store::{Store, StoreError};

use super::Runner;
use crate::operation::{Kind, Trouble};

impl Runner {
    /// Closes and opens the store. What goes wrong ends with it.
    pub(super) fn reopen(&mut self) -> Result<(), String> {
        let store = self.store.take().expect("BUG: no operation leaves the store closed");
        let closed = store.close();
        if let Err(error) = &closed
            && !self.troubled
        {
            return Err(format!("close failed: {error}"));
        }
        if self.is_dead() {
            return self.restart(store, false, &[]);
        }
        let proper = closed.is_ok() && !self.troubled;
        self.restart(store, true, &[])?;
        if proper && !self.store().open_report().clean {
            return Err("the store was closed, but says it was not".to_owned());
        }
        Ok(())
    }

    /// Loses power, or kills the process, and opens the store again, at first with troubles.
    pub(super) fn crash(&mut self, kill: bool, again: &[Trouble]) -> Result<(), String> {
        self.summary.crashes += 1;
        match self.store.take() {
            Some(store) => self.restart(store, kill, again),
            None => self.open(again),
        }
    }

    /// If power was lost meanwhile, crashes.
    pub(super) fn crash_if_dead(&mut self) -> Result<(), String> {
        if self.is_dead() { self.crash(false, &[]) } else { Ok(()) }
    }

    fn restart(&mut self, store: impl Store, kill: bool, again: &[Trouble]) -> Result<(), String> {
        self.renew_disk(kill);
        // Only now: a store that is dropped closes itself.
        drop(store);
        self.open(again)
    }

    /// The disk as the next process finds it.
    fn renew_disk(&mut self, kill: bool) {
        self.summary.disk_operations += self.disk.operations();
        self.disk = if kill && !self.is_dead() { self.disk.kill() } else { self.disk.crash() };
    }

    /// Opens the store after as many attempts with troubles as there are, and compares its content.
    fn open(&mut self, again: &[Trouble]) -> Result<(), String> {
        for trouble in again {
            self.begin(*trouble);
            match self.setup.open(&self.disk) {
                // It may have been the last operation that had power.
                Ok(store) if self.is_dead() => self.store = Some(store),
                Ok(store) => {
                    self.opened(store)?;
                    // A disk that was full has room again, a read works again.
                    self.end_faults();
                    return self.check(true);
                }
                Err(error) => self.check_open_failure(&error)?,
            }
            self.summary.open_failures += 1;
            self.renew_disk(false);
            self.store = None;
        }
        self.end_faults();
        let store = self.setup.open(&self.disk).map_err(|e| format!("open failed: {e}"))?;
        self.opened(store)?;
        self.troubled = false;
        self.check(true)
    }

    fn check_open_failure(&self, error: &StoreError) -> Result<(), String> {
        match error {
            StoreError::Corruption { .. } if !self.is_dead() => {
                Err(format!("open says so though nothing was damaged: {error}"))
            }
            StoreError::Invalid(_) => Err(format!("open failed: {error}")),
            _ => Ok(()),
        }
    }

    fn opened(&mut self, store: store_local::LocalStore) -> Result<(), String> {
        self.summary.opened += 1;
        let report = store.open_report();
        self.summary.rows_replayed += report.rows_replayed;
        if let Some(damage) = report.damage.first() {
            return Err(format!("open says so though nothing was damaged: {damage}"));
        }
        self.store = Some(store);
        Ok(())
    }

    /// Makes something go wrong from now on.
    pub(super) fn begin(&mut self, trouble: Trouble) {
        self.troubled = true;
        match trouble {
            Trouble::PowerLossAfter(operations) => {
                self.disk.crash_after(self.disk.operations() + u64::from(operations));
            }
            Trouble::Fail(kind, fault) => {
                let slot = match kind {
                    Kind::Write => &mut self.faults.write,
                    Kind::TornWrite => &mut self.faults.torn_write,
                    Kind::Sync => &mut self.faults.sync,
                    Kind::Read => &mut self.faults.read,
                    Kind::Names => &mut self.faults.names,
                };
                *slot = fault;
                self.disk.set_faults(self.faults);
            }
            Trouble::Full(free) => {
                // Unless power was lost.
                let left = self.disk.free_bytes(&self.setup.dir).unwrap_or_default();
                let used = self.faults.capacity_bytes.saturating_sub(left);
                self.faults.capacity_bytes = used.saturating_add(u64::from(free));
                self.disk.set_faults(self.faults);
            }
        }
    }

    /// Faults end and the disk has room again. What they did to the store stays.
    pub(super) fn end_faults(&mut self) {
        self.faults = FaultConfig::default();
        self.disk.set_faults(self.faults);
    }
}
