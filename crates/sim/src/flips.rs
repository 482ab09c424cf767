//! Bit flips in durable files.
//!
//! A store is filled and left; then one bit of one file flips, and everything is read. Every answer
//! is right, or an error that names the file; a damaged log may lose rows behind the damage, but says
//! so. Nothing is read that was never written. What the damage does not touch goes on working, and
//! once the bit is flipped back everything is there: work done meanwhile has not made it worse.

mod damaged;
mod sent;

use std::path::{Path, PathBuf};

use platform::SimDisk;
use store::{Policy, Store};

use self::damaged::Damaged;
use self::sent::Sent;
use crate::content::{Content, Scope};
use crate::generate;
use crate::random::Random;
use crate::runner::{Runner, guarded};
use crate::setup::Setup;

/// What became of flipped bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlipSummary {
    /// Bits flipped.
    pub flips: u64,
    /// The store refused to open.
    pub refused: u64,
    /// Opening reported damage.
    pub reported: u64,
    /// Reading failed somewhere.
    pub read_errors: u64,
    /// Flipped back after further work.
    pub mended: u64,
}

impl FlipSummary {
    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        self.flips += other.flips;
        self.refused += other.refused;
        self.reported += other.reported;
        self.read_errors += other.read_errors;
        self.mended += other.mended;
    }
}

/// Where the store is, and what it holds while nothing is damaged.
#[derive(Debug)]
struct Base {
    setup: Setup,
    scope: Scope,
    /// One that takes more rows.
    policy: Policy,
    content: Content,
    sent: Sent,
}

/// The bit that is flipped.
#[derive(Clone, Debug)]
struct Flip {
    path: PathBuf,
    offset: u64,
    bit: u8,
}

/// The directories of a store.
const PARTS: [&str; 4] = ["segments", "series", "wal", "manifest"];

/// Fills a store with up to `length` operations that follow from `seed`, and flips `flips` bits of
/// it, one at a time.
///
/// # Errors
/// What the store does wrong, and with which bit.
pub fn run_flips(seed: u64, length: usize, flips: u64) -> Result<FlipSummary, String> {
    let mut random = Random::new(seed);
    let crashed = random.chance(25);
    let length = random.between(3, length.max(3) as u64) as usize;
    let (base, disk) = guarded(|| fill(seed, length, crashed))
        .map_err(|message| format!("seed {seed}, nothing flipped: {message}"))?;
    let mut summary = FlipSummary::default();
    for number in 0..flips {
        // The end of a log that was not closed cannot be told from a torn write.
        let parts = if crashed { &PARTS[..2] } else { &PARTS[..] };
        let part = base.setup.dir.join(parts[(number % parts.len() as u64) as usize]);
        let disk = disk.fork();
        let Some((path, offset, bit)) = disk.flip_random_bit(|path| path.starts_with(&part)) else {
            continue;
        };
        let flip = Flip { path, offset, bit };
        let examined = guarded(|| examine(&base, disk, &flip, random.next()));
        summary.add(&examined.map_err(|message| {
            let path = flip.path.display();
            format!(
                "seed {seed}, {length} operations, flip {number} (bit {bit} at {offset} of {path}): \
                 {message}"
            )
        })?);
    }
    Ok(summary)
}

fn fill(seed: u64, length: usize, crashed: bool) -> Result<(Base, SimDisk), String> {
    let mut runner = Runner::new(seed);
    let operations = generate::calm(seed, length);
    for operation in &operations {
        runner.apply(operation)?;
    }
    let Some(store) = runner.store.take() else {
        return Err("a history without operations".to_owned());
    };
    if !crashed {
        store.close().map_err(|e| format!("close failed: {e}"))?;
    }
    let disk = if crashed { runner.disk.crash() } else { runner.disk.kill() };
    drop(store);
    let (setup, scope) = (runner.setup.clone(), runner.oracle.scope.clone());
    let opened = setup.open(&disk.fork()).map_err(|e| format!("open failed: {e}"))?;
    let content = Content::read(&opened, &scope).map_err(|e| format!("reading failed: {e}"))?;
    runner.oracle.check(&content, true)?;
    let policy = *scope.policies.last().ok_or("a scope without policies")?;
    Ok((Base { setup, scope, policy, content, sent: Sent::of(&operations) }, disk))
}

fn examine(base: &Base, disk: SimDisk, flip: &Flip, seed: u64) -> Result<FlipSummary, String> {
    let mut summary = FlipSummary { flips: 1, ..FlipSummary::default() };
    let flipped = disk.contents().remove(&flip.path).ok_or("the flipped file is missing")?;
    let store = match base.setup.open(&disk) {
        Ok(store) => store,
        Err(error) => {
            damaged::check_names(&error, &flip.path)?;
            summary.refused = 1;
            return Ok(summary);
        }
    };
    let damage = &store.open_report().damage;
    if let Some(other) = damage.iter().find(|d| !d.contains(&*flip.path.to_string_lossy())) {
        return Err(format!("the damage reported is of another file: {other}"));
    }
    summary.reported = u64::from(!damage.is_empty());
    let rows_lost = is_in(base, "wal", &flip.path) && !damage.is_empty();
    let mut damaged = Damaged { base, flip, disk, store, rows_lost };
    summary.read_errors = u64::from(damaged.read()?);
    let work = damaged.work(&mut Random::new(seed))?;
    let after = damaged.disk.kill();
    drop(damaged);
    // Files of logs are given up and written again: the bit that flipped may not be there any more.
    if !is_in(base, "segments", &flip.path) && !is_in(base, "series", &flip.path) {
        return Ok(summary);
    }
    // A segment that nobody had a use for is gone, and another may have its name.
    if after.contents().get(&flip.path) == Some(&flipped) {
        after.flip_bit(&flip.path, flip.offset, flip.bit);
        summary.mended = 1;
    }
    let mended = base.setup.open(&after).map_err(|e| format!("once mended, open fails: {e}"))?;
    work.check(base, &mended).map_err(|message| format!("once mended: {message}"))?;
    Ok(summary)
}

fn is_in(base: &Base, part: &str, path: &Path) -> bool {
    path.starts_with(base.setup.dir.join(part))
}
