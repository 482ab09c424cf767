//! What can go wrong with a segment file that is not a bug.

use std::path::{Path, PathBuf};

use platform::DiskError;

/// A failure to write or read a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Bytes of the file are not what was written. What they cover cannot be read; the rest can.
    #[error("{} is damaged at offset {offset}: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damaged part starts.
        offset: u64,
        /// What was found.
        detail: String,
    },
    /// The file was written by a version that knows more than this one.
    #[error("{} cannot be read by this version: {detail}; use a newer version", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is not known here.
        detail: String,
    },
    /// A value is larger than a segment can hold.
    #[error("a string of {bytes} bytes cannot be stored: the limit is {limit_bytes}")]
    StringTooLong {
        /// Length of the string.
        bytes: usize,
        /// The longest one possible.
        limit_bytes: usize,
    },
}

impl SegmentError {
    pub(crate) fn corrupt(path: &Path, offset: u64, detail: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_path_buf(), offset, detail: detail.into() }
    }

    /// Whether the file itself is damaged, as opposed to the disk failing or being too old a reader.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}
