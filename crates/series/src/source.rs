//! What a merge reads: the contents of a part in order.

use model::{DatabaseId, Name};
use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::posting::Posting;

/// One measurement of a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceMeasurement {
    pub(crate) database: DatabaseId,
    pub(crate) name: Name,
    pub(crate) series: u32,
    pub(crate) all: RoaringTreemap,
    /// Sorted by name.
    pub(crate) keys: Vec<SourceKey>,
}

/// One tag key of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct SourceKey {
    pub(crate) name: Name,
    /// Number of its distinct values.
    pub(crate) terms: u32,
    /// The series that have it; `None`: all of the measurement.
    pub(crate) present: Option<RoaringTreemap>,
}

/// A part of the index, read once from front to back.
///
/// Measurements come sorted by (database, name). Of each, the terms come sorted by (key, value)
/// and are numbered from 0; the series come sorted by their tuples of term numbers. Terms and
/// series of a measurement may be left unread.
pub(crate) trait Source {
    fn next_measurement(&mut self) -> SeriesResult<Option<SourceMeasurement>>;
    /// The next term of the measurement.
    fn next_term(&mut self, value: &mut String, posting: &mut Posting) -> SeriesResult<()>;
    /// The next series of the measurement.
    fn next_series(&mut self, tuple: &mut Vec<u32>) -> SeriesResult<u64>;
    /// How many terms there are, over all measurements.
    fn terms(&self) -> u64;
    /// The next hash in ascending order, over all measurements.
    fn next_hash(&mut self) -> SeriesResult<Option<(KeyHash, u64)>>;
}
