//! What can be done to a store, as data: it can be repeated, cut down and printed.

use std::fmt;

use model::{CompareOp, DatabaseId, Name, PolicyId, Scalar, TagExpr, TimeRange};

use crate::testing::{Row, line_of};
use crate::{DeleteTarget, MetadataKind, NameFilter, Policy, TimeOrder, Windows};

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Write {
        policy: Policy,
        now_ns: i64,
        rows: Vec<Row>,
    },
    Delete {
        database: DatabaseId,
        target: DeleteTarget,
    },
    /// Rows that the model has when it runs, of which some are named with values they do not have.
    DeleteMatching(Picked),
    /// The partition at a position among those that the store lists then, modulo their number.
    DropPartition {
        database: DatabaseId,
        nth: usize,
    },
    Expire {
        database: DatabaseId,
        policy: PolicyId,
        before_ns: i64,
    },
    SwapCatalog {
        fresh: bool,
        bytes: Vec<u8>,
    },
    Scan(Probe),
    Names {
        database: DatabaseId,
        kind: MetadataKind,
        measurements: NameFilter,
        series: TagExpr,
    },
    /// Compares everything the database and its policies hold.
    CheckAll,
    Maintain,
    Reopen,
}

impl Operation {
    /// Whether rows may be others after it, of a store that stays open.
    pub(super) fn changes_rows(&self) -> bool {
        match self {
            Self::Write { .. }
            | Self::Delete { .. }
            | Self::DeleteMatching(_)
            | Self::DropPartition { .. }
            | Self::Expire { .. } => true,
            Self::SwapCatalog { .. }
            | Self::Scan(_)
            | Self::Names { .. }
            | Self::CheckAll
            | Self::Maintain
            | Self::Reopen => false,
        }
    }
}

/// Rows to be chosen from what is there.
#[derive(Clone, Debug)]
pub(super) struct Picked {
    pub(super) policy: Policy,
    pub(super) measurement: Name,
    /// As in [`Probe`].
    pub(super) fields: Vec<usize>,
    pub(super) series: TagExpr,
    pub(super) time: TimeRange,
    /// Of so many rows one is chosen; at least 1.
    pub(super) one_in: usize,
    /// Of so many chosen rows one is named with values of its neighbour; 0: none is.
    pub(super) stale_one_in: usize,
}

/// A scan whose types and series are looked up when it runs: they depend on what ran before.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) policy: Policy,
    pub(super) measurement: Name,
    /// Positions among the schema's fields, modulo their number. Empty: all of them.
    pub(super) fields: Vec<usize>,
    pub(super) series: TagExpr,
    pub(super) time: TimeRange,
    pub(super) order: TimeOrder,
    pub(super) filter: Option<ProbeFilter>,
    /// Positions among the fields that are asked for, modulo their number.
    pub(super) with_any: Option<Vec<usize>>,
    pub(super) rows_per_series: Option<u64>,
    pub(super) windows: Option<Windows>,
    pub(super) joins_series: bool,
    /// The scan is read by this many cursors over disjoint series ...
    pub(super) series_parts: u32,
    /// ... each cut at these times, ascending.
    pub(super) cuts: Vec<i64>,
}

/// Compares a field of the constant's type, by its position among these, modulo their number, with the constant, or, if there is
/// another: a number with this one, and of a text whether the end of the constant is in it, at one of its ends or all of it.
#[derive(Clone, Debug)]
pub(super) struct ProbeFilter {
    pub(super) field: usize,
    pub(super) op: CompareOp,
    pub(super) constant: Scalar,
    pub(super) other: Option<usize>,
}

impl Probe {
    pub(super) fn all(policy: Policy, measurement: &str) -> Self {
        Self {
            policy,
            measurement: measurement.into(),
            fields: Vec::new(),
            series: TagExpr::True,
            time: TimeRange::ALL,
            order: TimeOrder::Ascending,
            filter: None,
            with_any: None,
            rows_per_series: None,
            windows: None,
            joins_series: false,
            series_parts: 1,
            cuts: Vec::new(),
        }
    }

    /// The disjoint time ranges that the cuts make, in ascending order.
    pub(super) fn time_slices(&self) -> Vec<TimeRange> {
        let mut slices = Vec::new();
        let mut from = TimeRange::ALL.min;
        for cut in self.cuts.iter().filter(|cut| **cut > TimeRange::ALL.min) {
            if *cut > from {
                slices.push(TimeRange::new(from, cut - 1));
                from = *cut;
            }
        }
        slices.push(TimeRange::new(from, TimeRange::ALL.max));
        slices
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Write { policy, now_ns, rows } = self else { return write!(f, "{self:?}") };
        write!(f, "Write at {now_ns} to {policy:?}")?;
        for row in rows {
            write!(f, "\n    {}", line_of(row))?;
        }
        Ok(())
    }
}
