//! Several threads at once: some write and delete while others flush and merge, until power is lost.
//!
//! Each thread has a measurement of its own in policies that all share, so that what it may find is
//! its own history alone, whatever the others do: while they work, and after a restart. Not the same
//! from run to run, since threads are not.

mod worker;

use std::sync::atomic::{AtomicBool, Ordering};

use platform::{Disk, FaultConfig, SimDisk};
use store_local::LocalStore;

use self::worker::Worker;
use crate::content::{Content, check_consistency};
use crate::random::Random;
use crate::runner::guarded;
use crate::setup::Setup;

/// What threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Operations acknowledged.
    pub acknowledged: u64,
    /// Threads whose last operation failed because power was lost.
    pub cut_off: u64,
    /// Times power was lost or the process killed.
    pub crashes: u64,
}

impl ThreadSummary {
    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.cut_off += other.cut_off;
        self.crashes += other.crashes;
    }
}

/// Threads that write and delete.
const WORKERS: u8 = 4;
/// Restarts of one store.
const ROUNDS: u64 = 3;

/// Lets threads work on a store that follows from `seed`, through several restarts.
///
/// # Errors
/// What the store did wrong.
pub fn run_threads(seed: u64) -> Result<ThreadSummary, String> {
    guarded(|| work(seed)).map_err(|message| format!("seed {seed}: {message}"))
}

fn work(seed: u64) -> Result<ThreadSummary, String> {
    let mut random = Random::new(seed);
    let mut setup = Setup::new(seed);
    setup.maintenance_threads = random.below(3) as usize;
    let mut disk = SimDisk::new(seed, FaultConfig::default());
    let mut workers: Vec<Worker> =
        (0..WORKERS).map(|number| Worker::new(number, random.next())).collect();
    let mut summary = ThreadSummary::default();
    for round in 0..ROUNDS {
        let store = setup.open(&disk).map_err(|e| format!("round {round}: open failed: {e}"))?;
        if let Some(damage) = store.open_report().damage.first() {
            return Err(format!("open says so though nothing was damaged: {damage}"));
        }
        for worker in &mut workers {
            check(worker, &store).map_err(|message| format!("round {round}: {message}"))?;
        }
        let lasts = random.chance(20);
        if !lasts {
            disk.crash_after(disk.operations() + random.between(1, 1500));
        }
        run_round(&store, &disk, &mut workers)?;
        summary.crashes += 1;
        let next = if lasts { disk.kill() } else { disk.crash() };
        drop(store);
        disk = next;
    }
    let store = setup.open(&disk).map_err(|e| format!("open failed: {e}"))?;
    for worker in &mut workers {
        check(worker, &store).map_err(|message| format!("at the end: {message}"))?;
        summary.acknowledged += worker.acknowledged;
        summary.cut_off += worker.cut_off;
    }
    Ok(summary)
}

/// Compares what a thread may find with what is there.
fn check(worker: &mut Worker, store: &LocalStore) -> Result<(), String> {
    let content =
        Content::read(store, &worker.oracle.scope).map_err(|e| format!("reading failed: {e}"))?;
    worker.oracle.check(&content, true)?;
    check_consistency(store, &worker.oracle.scope, &content)
}

/// Lets all threads work until they are done or power is lost.
fn run_round(store: &LocalStore, disk: &SimDisk, workers: &mut [Worker]) -> Result<(), String> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let handles: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(|| guarded(|| worker.work(store, disk))))
            .collect();
        let keeper = scope.spawn(|| guarded(|| keep(store, disk, &done)));
        let mut outcome = Ok(());
        for handle in handles {
            let result = handle.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
            outcome = outcome.and(result);
        }
        done.store(true, Ordering::Relaxed);
        let kept = keeper.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
        outcome.and(kept)
    })
}

/// Flushes and merges while the others work.
fn keep(store: &LocalStore, disk: &SimDisk, done: &AtomicBool) -> Result<(), String> {
    for turn in 0.. {
        if done.load(Ordering::Relaxed) {
            break;
        }
        let kept = match turn % 7 {
            6 => store.settle(),
            turn if turn % 2 == 0 => store.flush(),
            _ => store.maintain(),
        };
        if let Err(error) = kept {
            let dead = disk.free_bytes(std::path::Path::new("/")).is_err();
            return if dead { Ok(()) } else { Err(format!("background work failed: {error}")) };
        }
        std::thread::yield_now();
    }
    Ok(())
}
