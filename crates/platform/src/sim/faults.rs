//! Which operations fail, and when.

use super::random::Random;

/// When a kind of operation fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// It does not.
    #[default]
    Never,
    /// One in this many, at random.
    OneIn(u64),
    /// The one with this number, from 1, and no other.
    Nth(u64),
    /// The one with this number, from 1, and all after it.
    From(u64),
}

/// What goes wrong on a simulated disk. By default nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultConfig {
    /// A write fails with nothing written.
    pub write: Fault,
    /// A write fails after it wrote a part.
    pub torn_write: Fault,
    /// A sync fails. Of what it covered, any part is lost, though reads show it until a crash, and
    /// later syncs succeed without it.
    pub sync: Fault,
    /// A read fails.
    pub read: Fault,
    /// Making, renaming, removing or syncing names fails, with nothing done.
    pub names: Fault,
    /// Bytes that fit. Beyond that, writes fail after the part that fits.
    pub capacity_bytes: u64,
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            write: Fault::Never,
            torn_write: Fault::Never,
            sync: Fault::Never,
            read: Fault::Never,
            names: Fault::Never,
            capacity_bytes: u64::MAX,
        }
    }
}

/// A fault with its count of operations.
#[derive(Clone, Debug)]
struct Counted {
    fault: Fault,
    seen: u64,
}

impl Counted {
    fn new(fault: Fault) -> Self {
        Self { fault, seen: 0 }
    }

    fn strikes(&mut self, random: &mut Random) -> bool {
        self.seen += 1;
        match self.fault {
            Fault::Never => false,
            Fault::OneIn(count) => random.below(count.max(1)) == 0,
            Fault::Nth(number) => self.seen == number,
            Fault::From(number) => self.seen >= number,
        }
    }
}

/// The faults of a disk under way.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    write: Counted,
    torn_write: Counted,
    sync: Counted,
    read: Counted,
    names: Counted,
    pub(super) capacity_bytes: u64,
}

/// A kind of operation that may fail.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Write,
    TornWrite,
    Sync,
    Read,
    Names,
}

impl Faults {
    pub(super) fn new(config: FaultConfig) -> Self {
        Self {
            write: Counted::new(config.write),
            torn_write: Counted::new(config.torn_write),
            sync: Counted::new(config.sync),
            read: Counted::new(config.read),
            names: Counted::new(config.names),
            capacity_bytes: config.capacity_bytes,
        }
    }

    pub(super) fn strikes(&mut self, kind: Kind, random: &mut Random) -> bool {
        let counted = match kind {
            Kind::Write => &mut self.write,
            Kind::TornWrite => &mut self.torn_write,
            Kind::Sync => &mut self.sync,
            Kind::Read => &mut self.read,
            Kind::Names => &mut self.names,
        };
        counted.strikes(random)
    }
}
