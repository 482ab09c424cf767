//! What a statement answers: series of rows, in parts.

use std::ops::Range;
use std::sync::Arc;

use crate::{ColumnBatch, Name};

/// What the rows of one output series have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesHeader {
    /// Name of the series (mostly the measurement); empty: it has none.
    pub name: Name,
    /// Grouped tags, sorted by key. Empty: none are shown.
    pub tags: Vec<(Name, Name)>,
    /// Names of the columns, one a column of the batches.
    pub columns: Arc<[Name]>,
    /// The column whose texts are lists, if there is one: an element a line.
    pub list: Option<usize>,
}

/// Some rows of one output series. An answer is a sequence of these; parts of one series follow one
/// another and share their header.
#[derive(Clone, Debug)]
pub struct ResultBatch {
    /// The series.
    pub header: Arc<SeriesHeader>,
    /// Rows of this series and maybe of others.
    pub batch: Arc<ColumnBatch>,
    /// Which of them are meant. May be none: a series that is shown with its columns only.
    pub rows: Range<usize>,
    /// Whether more rows of the same series follow.
    pub continues: bool,
}

impl ResultBatch {
    /// All rows of `batch`, the last of the series.
    #[must_use]
    pub fn whole(header: Arc<SeriesHeader>, batch: ColumnBatch) -> Self {
        Self { header, rows: 0..batch.rows, batch: Arc::new(batch), continues: false }
    }
}

/// What makes a document of an answer that is sent in chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Documents {
    /// A number of rows of one series.
    #[default]
    Rows,
    /// A whole series, however long.
    Series,
    /// All of a statement's series.
    Statement,
}
