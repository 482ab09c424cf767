//! Does a history to a store on a simulated disk and to the oracle, and compares.

mod apply;
mod guard;
mod open;

use platform::{Disk, FaultConfig, SimDisk};
use store_local::LocalStore;

pub(crate) use guard::guarded;

use crate::content::{Content, Scope, check_consistency};
use crate::operation::Operation;
use crate::oracle::Oracle;
use crate::pool;
use crate::setup::Setup;

/// What a run did, for whoever wants to know that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations acknowledged.
    pub acknowledged: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Times the power was lost or the process killed.
    pub crashes: u64,
    /// Times the store was opened.
    pub opened: u64,
    /// Attempts to open it that failed because of some trouble.
    pub open_failures: u64,
    /// Whole contents compared.
    pub checks: u64,
    /// Rows written to the log again by opening.
    pub rows_replayed: u64,
    /// Changes of the disk.
    pub disk_operations: u64,
}

impl Summary {
    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.crashes += other.crashes;
        self.opened += other.opened;
        self.open_failures += other.open_failures;
        self.checks += other.checks;
        self.rows_replayed += other.rows_replayed;
        self.disk_operations += other.disk_operations;
    }
}

/// Does `operations` to a new store that follows from `seed`.
///
/// # Errors
/// What the store did wrong.
pub fn run(seed: u64, operations: &[Operation]) -> Result<Summary, String> {
    guarded(|| {
        let mut runner = Runner::new(seed);
        runner.run(operations)?;
        Ok(runner.summary)
    })
}

/// A store under test with everything around it.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) setup: Setup,
    pub(crate) disk: SimDisk,
    pub(crate) store: Option<LocalStore>,
    pub(crate) oracle: Oracle,
    /// Of each database, how many before it were dropped.
    generations: [u32; 2],
    faults: FaultConfig,
    /// Something may have gone wrong since the store was opened: errors are excused.
    troubled: bool,
    pub(crate) summary: Summary,
}

impl Runner {
    /// With no store yet: the first operation makes one.
    pub(crate) fn new(seed: u64) -> Self {
        let mut scope = Scope { catalog: true, ..Scope::default() };
        scope.measurements = pool::measurements().map(Into::into).collect();
        (0..3).for_each(|number| scope.add(pool::policy(number, 0)));
        Self {
            setup: Setup::new(seed),
            disk: SimDisk::new(seed, FaultConfig::default()),
            store: None,
            oracle: Oracle::new(scope),
            generations: [0; 2],
            faults: FaultConfig::default(),
            troubled: false,
            summary: Summary::default(),
        }
    }

    /// Does all of a history and looks at what there is in the end.
    pub(crate) fn run(&mut self, operations: &[Operation]) -> Result<(), String> {
        for (at, operation) in operations.iter().enumerate() {
            let done = self.apply(operation);
            done.map_err(|message| format!("operation {at}, {}: {message}", short(operation)))?;
        }
        self.finish()
    }

    /// Ends what is going wrong, and looks at the content once more, after a proper restart too.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        if self.store.is_none() || self.troubled {
            self.crash(true, &[])?;
        }
        let end = |message| format!("at the end: {message}");
        self.check(true).map_err(end)?;
        self.reopen().map_err(end)?;
        self.summary.disk_operations += self.disk.operations();
        Ok(())
    }

    pub(crate) fn store(&self) -> &LocalStore {
        self.store.as_ref().expect("BUG: no operation leaves the store closed")
    }

    /// Whether the disk lost power.
    fn is_dead(&self) -> bool {
        self.disk.free_bytes(&self.setup.dir).is_err()
    }

    /// Compares everything. `settled`: nothing failed since the store was opened.
    fn check(&mut self, settled: bool) -> Result<(), String> {
        self.summary.checks += 1;
        let store = self.store.as_ref().expect("BUG: no operation leaves the store closed");
        let content =
            Content::read(store, &self.oracle.scope).map_err(|e| format!("reading failed: {e}"))?;
        self.oracle.check(&content, settled)?;
        check_consistency(store, &self.oracle.scope, &content)
    }
}

/// The operation without its rows.
fn short(operation: &Operation) -> String {
    let text = operation.to_string();
    match text.find(", rows: vec!") {
        Some(end) => format!("{} .. }}", &text[..end]),
        None => text,
    }
}
