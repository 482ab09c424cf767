//! What data to make: a workload's shape, its size and its seed, and the interface of all generators.
//!
//! A generator streams: its memory depends on the number of hosts at most, never on the length of the run,
//! and it allocates nothing per row once its buffers have grown.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::services::Services;
use crate::single_field::SingleField;
use crate::tsbs::{Fleet, Trucks};
use crate::ycsb::Ycsb;

/// 2016-01-01T00:00:00Z, where TSBS data starts.
pub const TSBS_START_NS: i64 = 1_451_606_400_000_000_000;
/// One second in nanoseconds.
pub const SECOND_NS: i64 = 1_000_000_000;
/// One hour in nanoseconds.
pub const HOUR_NS: i64 = 3600 * SECOND_NS;

/// The shapes of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// TSBS cpu-only: measurement `cpu`, ten tags, ten integer fields. High cardinality is this shape with many hosts.
    CpuOnly,
    /// TSBS devops: nine measurements per host.
    Devops,
    /// TSBS iot: trucks with missing tags and fields, late rows.
    Iot,
    /// What agents of services send: irregular times, numbers, states and texts, with gaps.
    Services,
    /// One float field, as many tag sets as `scale` says.
    SingleField,
    /// Ten 100-byte string fields, keys in hashed order.
    Ycsb,
}

impl Workload {
    /// Every workload with its name on the command line.
    pub const ALL: [(&'static str, Self); 6] = [
        ("cpu-only", Self::CpuOnly),
        ("devops", Self::Devops),
        ("iot", Self::Iot),
        ("services", Self::Services),
        ("single-field", Self::SingleField),
        ("ycsb", Self::Ycsb),
    ];
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, known)| known == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Workload {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, workload)| *workload)
            .ok_or_else(|| SpecError::UnknownWorkload(name.to_owned()))
    }
}

/// A mistake in the description of a workload.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// No workload has this name.
    #[error("unknown workload {0:?}: use cpu-only, devops, iot, services, single-field or ycsb")]
    UnknownWorkload(String),
    /// A workload without hosts has no rows.
    #[error("scale must be between 1 and {max}, got {got}")]
    Scale {
        /// The refused scale.
        got: u64,
        /// The largest scale that a generator can number.
        max: u64,
    },
    /// The step must move time forward.
    #[error("step must be positive, got {0} ns")]
    Step(i64),
    /// The data must span some time.
    #[error("end ({end_ns}) must be after start ({start_ns})")]
    Range {
        /// First timestamp.
        start_ns: i64,
        /// The timestamp before which data stops.
        end_ns: i64,
    },
}

/// A workload, its size and its seed. Equal specs generate equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The shape.
    pub workload: Workload,
    /// Hosts, trucks, tag sets or keys.
    pub scale: u64,
    /// Time of the first rows.
    pub start_ns: i64,
    /// Rows lie before this time.
    pub end_ns: i64,
    /// Distance between two rows of a series.
    pub step_ns: i64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Host states are kept in memory, about 100 bytes each.
const SCALE_MAX: u64 = 100_000_000;

impl Spec {
    /// cpu-only with the start, step and seed that all runs here share.
    #[must_use]
    pub fn cpu_only(scale: u64, hours: i64) -> Self {
        Self {
            workload: Workload::CpuOnly,
            scale,
            start_ns: TSBS_START_NS,
            end_ns: TSBS_START_NS.saturating_add(hours.saturating_mul(HOUR_NS)),
            step_ns: 10 * SECOND_NS,
            seed: 123,
        }
    }

    /// Starts generating.
    ///
    /// # Errors
    /// When the sizes make no sense.
    pub fn generator(&self) -> Result<Box<dyn Generator>, SpecError> {
        self.check()?;
        Ok(match self.workload {
            Workload::CpuOnly => Box::new(Fleet::cpu_only(self)),
            Workload::Devops => Box::new(Fleet::devops(self)),
            Workload::Iot => Box::new(Trucks::new(self)),
            Workload::Services => Box::new(Services::new(self)),
            Workload::SingleField => Box::new(SingleField::new(self)),
            Workload::Ycsb => Box::new(Ycsb::new(self)),
        })
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.scale == 0 || self.scale > SCALE_MAX {
            return Err(SpecError::Scale { got: self.scale, max: SCALE_MAX });
        }
        if self.step_ns <= 0 {
            return Err(SpecError::Step(self.step_ns));
        }
        let span_ns = self.end_ns.checked_sub(self.start_ns);
        if span_ns.is_none_or(|span_ns| span_ns <= 0) {
            return Err(SpecError::Range { start_ns: self.start_ns, end_ns: self.end_ns });
        }
        Ok(())
    }
}

/// What one call of [`Generator::fill`] appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch {
    /// Lines.
    pub rows: u64,
    /// Fields in those lines.
    pub values: u64,
}

impl std::ops::AddAssign for Batch {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.values += other.values;
    }
}

/// A stream of line protocol.
pub trait Generator: Send {
    /// Appends up to `rows_max` lines. No rows means that the data has ended.
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch;
}

/// All lines of a workload at once; for small data sets.
///
/// # Errors
/// As [`Spec::generator`].
pub fn generate_all(spec: &Spec) -> Result<(Vec<u8>, Batch), SpecError> {
    let mut generator = spec.generator()?;
    let mut out = Vec::new();
    let mut total = Batch::default();
    loop {
        let batch = generator.fill(10_000, &mut out);
        if batch.rows == 0 {
            return Ok((out, total));
        }
        total += batch;
    }
}

/// Time of the data as a generator walks through it: the current step, ended by `end_ns`.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub(crate) time_ns: i64,
    end_ns: i64,
    step_ns: i64,
    digits: Vec<u8>,
}

impl Steps {
    pub(crate) fn new(spec: &Spec) -> Self {
        let mut steps = Self {
            time_ns: spec.start_ns,
            end_ns: spec.end_ns,
            step_ns: spec.step_ns,
            digits: Vec::new(),
        };
        steps.print();
        steps
    }

    pub(crate) fn ended(&self) -> bool {
        self.time_ns >= self.end_ns
    }

    pub(crate) fn advance(&mut self) {
        self.time_ns = self.time_ns.saturating_add(self.step_ns);
        self.print();
    }

    /// The end of every line of this step: a space, the time, a line feed.
    pub(crate) fn line_end(&self) -> &[u8] {
        &self.digits
    }

    fn print(&mut self) {
        self.digits.clear();
        self.digits.push(b' ');
        crate::text::push_int(&mut self.digits, self.time_ns);
        self.digits.push(b'\n');
    }
}
