//! Segment files: immutable runs of rows sorted by measurement, series and time.
//!
//! One file holds rows of one partition. A [`SegmentWriter`] takes sorted rows and writes the file
//! from front to back; a [`SegmentReader`] finds blocks by series and time and decodes just the
//! columns and rows asked for. Layout: docs/formats/segment.md is normative.
//!
//! Not here: which segments exist, merging them, tombstones (store-local); how a page's values are
//! encoded (codec).

mod directory;
mod error;
mod format;
pub mod fuzzing;
mod input;
mod memory;
mod numbers;
mod reader;
mod rows;
mod runs;
mod sift;
mod sparse;
#[cfg(test)]
mod testing;
mod windows;
mod writer;

pub use directory::{Block, Directory, Edge, PageSummary, SummaryNumbers};
pub use error::SegmentError;
pub use format::{BLOCK_ROWS_LIMIT, MeasurementInfo, MeasurementList, SegmentInfo};
pub use reader::{
    BlockWalk, Blocks, ConditionTest, Expected, FieldStats, FoundRows, ReadAhead, SegmentReader,
    SeriesStretch, ShortTime, VerifyReport,
};
pub use rows::SegmentRows;
pub use runs::Runs;
pub use sift::{FieldCondition, FieldOperand, Stretch};
pub use sparse::SparseColumn;
pub use windows::{BlockWindows, SpanNumbers, WindowIndex, WindowSummaries};
pub use writer::{LONG_SERIES_ROWS, SegmentWriter, WriterOptions};
