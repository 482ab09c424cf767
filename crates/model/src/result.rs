//! What a statement answers: series of rows, in parts.

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
    pub columns: Vec<Name>,
    /// The column whose texts are lists, if there is one: an element a line.
    pub list: Option<usize>,
}

/// Some rows of one output series. An answer is a sequence of these; parts of one series follow one
/// another and share their header.
#[derive(Clone, Debug)]
pub struct ResultBatch {
    /// The series.
    pub header: Arc<SeriesHeader>,
    /// The rows. May have none: a series that is shown with its columns only.
    pub batch: ColumnBatch,
    /// Whether more rows of the same series follow.
    pub continues: bool,
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
