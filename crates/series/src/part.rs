//! What a part of the index (memory or a run) can say of one measurement.
//!
//! A series lies in exactly one part with all its tags, so every question is asked part by part
//! and the answers are united.

use std::ops::ControlFlow;

use roaring::RoaringTreemap;

use crate::error::SeriesResult;
use crate::posting::Posting;

/// A list of ids that is read only if wanted.
pub(crate) trait LazyPosting {
    /// Replaces `posting` by the list.
    fn load(&self, posting: &mut Posting) -> SeriesResult<()>;
}

/// What is called with every value of a tag and the series that have it.
pub(crate) type ValueVisitor<'a> =
    dyn FnMut(&str, &dyn LazyPosting) -> SeriesResult<ControlFlow<()>> + 'a;

/// Whether a value begins with a text. Of an empty one it is not asked: comparing no bytes took 40 ns, since a vector read from no
/// address is a fault, though one that is suppressed.
pub(crate) fn begins_with(value: &str, prefix: &str) -> bool {
    prefix.is_empty() || value.starts_with(prefix)
}

/// One measurement of one database in one part. Keys are named by numbers of the part's own.
pub(crate) trait MeasurementPart {
    /// Its series, removed ones included.
    fn all(&self) -> SeriesResult<RoaringTreemap>;
    /// How many those are.
    fn series_count(&self) -> u64;
    /// Number of tag keys; their numbers are `0..key_count`.
    fn key_count(&self) -> u32;
    fn key_name(&self, key: u32) -> &str;
    fn find_key(&self, name: &str) -> Option<u32>;
    /// The series that have the tag; `None`: all of them.
    fn present(&self, key: u32) -> SeriesResult<Option<RoaringTreemap>>;
    /// The series with this value, not `""`.
    fn postings(&self, key: u32, value: &str, posting: &mut Posting) -> SeriesResult<()>;
    /// Distinct values of the tag.
    fn value_count(&self, key: u32) -> u64;
    /// Every value of the tag that begins with `prefix`, in no particular order.
    fn for_each_value(
        &self,
        key: u32,
        prefix: &str,
        visitor: &mut ValueVisitor<'_>,
    ) -> SeriesResult<()>;
}
