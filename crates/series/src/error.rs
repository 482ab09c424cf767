//! What can go wrong in the series index.

use std::path::PathBuf;

use model::OverBudget;
use platform::DiskError;

/// Why the series index could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The disk failed. What was durable stays durable; a flush or merge can be tried again.
    #[error("series index: {0}")]
    Disk(#[from] DiskError),
    /// Bytes of a file are not what was written. Other blocks and files stay readable.
    #[error("series index: {} is corrupt at offset {offset}: {detail}", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// Where the damaged block begins.
        offset: u64,
        /// What does not fit.
        detail: String,
    },
    /// The file was written by a newer program.
    #[error(
        "series index: {} needs {needs}, which this build does not read; use a newer nyala",
        path.display()
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The format version or feature that is missing here.
        needs: String,
    },
    /// The answer would take more memory than the query may use.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
}

/// The outcome of an operation on the series index.
pub type SeriesResult<T> = Result<T, SeriesError>;

/// Bytes that do not decode; the reader of the block adds file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);
