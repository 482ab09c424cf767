//! What happens in a history, as data: it can be repeated, cut down, printed and pasted.
//!
//! Everything is a small number that stands for something out of a pool, so that rows meet and a
//! printed history stays readable.

use std::fmt;

pub use platform::Fault;

/// One step of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Rows are written.
    Write {
        /// 0 and 1: of the first database; 2: of the second.
        policy: u8,
        /// The rows.
        rows: Vec<Row>,
    },
    /// Many rows are written, a second apart.
    Bulk {
        /// As in `Write`.
        policy: u8,
        /// The first row; the values of the others follow from it.
        first: Row,
        /// How many.
        rows: u16,
        /// Whether each is of another series.
        spread: bool,
    },
    /// Rows are deleted.
    DeleteRows {
        /// 0 or 1.
        database: u8,
        /// `None`: of all measurements.
        measurement: Option<u8>,
        /// `None`: of all series; else of those with this tag value.
        host: Option<u8>,
        /// `None`: of all times; else from one to the other.
        times: Option<(u16, u16)>,
    },
    /// Rows are deleted that are named one by one, with the values that they have.
    DeleteMatching {
        /// As in `Write`.
        policy: u8,
        /// Which.
        measurement: u8,
        /// Bits of the fields that are compared.
        fields: u8,
        /// One of so many of the rows is named; 0 is 1.
        one_in: u8,
        /// Whether every other one is named with the values of another.
        stale: bool,
    },
    /// A measurement is dropped.
    DeleteMeasurement {
        /// 0 or 1.
        database: u8,
        /// Which.
        measurement: u8,
    },
    /// All rows of a policy are deleted.
    DeletePolicy {
        /// As in `Write`.
        policy: u8,
    },
    /// A partition is dropped.
    DropPartition {
        /// As in `Write`.
        policy: u8,
        /// That of this time.
        time: u16,
    },
    /// A database is dropped; its place in the history is taken by a new one.
    DeleteDatabase {
        /// 0 or 1.
        database: u8,
    },
    /// Old partitions are dropped.
    Expire {
        /// As in `Write`.
        policy: u8,
        /// Those before this time.
        before: u16,
    },
    /// The catalog's document is replaced.
    SwapCatalog {
        /// By one of this length.
        bytes: u32,
    },
    /// Memtables become segments.
    Flush,
    /// Background work that is due is done.
    Maintain,
    /// All background work is done.
    Settle,
    /// The store's content is compared with the model's.
    Check,
    /// The content is read while one in so many reads fails: answers are right or errors.
    CheckWhileReadsFail(u16),
    /// The store is closed and opened again.
    Reopen,
    /// Power is lost, or the process killed, and the store opened again.
    Crash {
        /// Whether only the process dies.
        kill: bool,
        /// What goes wrong while it is opened, attempt after attempt; a last attempt is spared.
        again: Vec<Trouble>,
    },
    /// Something goes wrong from now on, until the store is opened again.
    Begin(Trouble),
    /// Faults end.
    EndFaults,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Power is lost after so many more operations of the disk.
    PowerLossAfter(u16),
    /// Operations of one kind fail.
    Fail(Kind, Fault),
    /// The disk takes only so many more bytes.
    Full(u32),
}

/// A kind of disk operation that can fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing of a write happens.
    Write,
    /// A part of a write happens.
    TornWrite,
    /// A sync fails and loses what it covered.
    Sync,
    /// Reads.
    Read,
    /// Making, renaming, removing and syncing of names.
    Names,
}

/// One row, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Measurement and tags.
    pub series: u8,
    /// Hour and a 64th of it.
    pub time: u16,
    /// Which fields, a bit each.
    pub fields: u8,
    /// What the values are made of.
    pub value: u32,
}

impl fmt::Display for Operation {
    /// Rust, with `use sim::{Fault::*, Kind, Operation::*, Row, Trouble::*}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").replace('[', "vec!["))
    }
}

/// With the name of the type, since an operation has the name of a kind.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Write => "Write",
            Self::TornWrite => "TornWrite",
            Self::Sync => "Sync",
            Self::Read => "Read",
            Self::Names => "Names",
        };
        write!(f, "Kind::{name}")
    }
}
