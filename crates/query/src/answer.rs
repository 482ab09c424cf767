//! What a statement answers, pulled a batch at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Column, ColumnBatch, Documents, Name, ResultBatch, SeriesHeader, Values};

use crate::QueryError;
use crate::exec::column::{append, slice};
use crate::exec::stream::{Part, SelectStream};
use crate::show::NameStream;
use crate::zone::Zone;

/// A note beside the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How serious it is, as InfluxDB says it: `warning`.
    pub level: &'static str,
    /// The text.
    pub text: String,
}

/// The answer of one statement.
#[derive(Debug)]
pub struct Answer {
    messages: Vec<Message>,
    zone: Option<Arc<Zone>>,
    source: Source,
    chunk_rows: usize,
    documents: Documents,
    /// Rows that were read ahead, at most two parts.
    ahead: VecDeque<Part>,
}

enum Source {
    Ready(VecDeque<Part>),
    Select(Box<SelectStream>),
    Names(Box<NameStream>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Select(_) => "Select",
            Self::Names(_) => "Names",
        })
    }
}

impl Answer {
    /// Nothing to say.
    pub(crate) fn empty() -> Self {
        Self::ready(Vec::new(), usize::MAX)
    }

    /// Rows that are there already.
    pub(crate) fn ready(parts: Vec<Part>, chunk_rows: usize) -> Self {
        Self::new(Source::Ready(parts.into()), None, chunk_rows)
    }

    /// Rows of a running SELECT.
    pub(crate) fn select(stream: SelectStream, chunk_rows: usize) -> Self {
        let zone = stream.select().zone.clone();
        Self::new(Source::Select(Box::new(stream)), zone, chunk_rows)
    }

    /// Names from the store.
    pub(crate) fn names(stream: NameStream, chunk_rows: usize) -> Self {
        Self::new(Source::Names(Box::new(stream)), None, chunk_rows)
    }

    fn new(source: Source, zone: Option<Arc<Zone>>, chunk_rows: usize) -> Self {
        let chunk_rows = chunk_rows.max(1);
        let documents = Documents::Rows;
        Self { messages: Vec::new(), zone, source, chunk_rows, documents, ahead: VecDeque::new() }
    }

    /// The answer, cut into these documents if it is chunked.
    pub(crate) fn in_documents(mut self, documents: Documents) -> Self {
        self.documents = documents;
        self
    }

    /// The answer with some of the rows of each series only: `offset` left out, then at most
    /// `limit`; 0: no limit.
    ///
    /// # Panics
    /// If the rows are not all there already.
    #[must_use]
    pub fn limited(mut self, limit: u64, offset: u64) -> Self {
        let Source::Ready(parts) = &mut self.source else {
            panic!("BUG: LIMIT of rows that are still to be read belongs to who reads them")
        };
        for part in parts {
            let (from, to) = window(part.rows(), limit, offset);
            part.columns = part.columns.iter().map(|column| slice(column, from..to)).collect();
        }
        self
    }

    /// Notes beside the answer.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What makes a document of it, if it is sent in chunks.
    #[must_use]
    pub fn documents(&self) -> Documents {
        self.documents
    }

    /// The zone that times are to be shown in; `None`: UTC.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        self.zone.as_deref()
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// [`QueryError`]; the answer is of no further use then.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results hides failures")]
    pub fn next(&mut self) -> Result<Option<ResultBatch>, QueryError> {
        let first = match self.ahead.pop_front() {
            Some(part) => Some(part),
            None => self.pull()?,
        };
        let Some(mut part) = first else { return Ok(None) };
        let chunk = self.chunk_rows;
        // Reading stops one part behind the chunk, to know whether the series continues.
        while self.ahead.is_empty() && part.rows() <= chunk {
            match self.pull()? {
                None => break,
                Some(more) if Arc::ptr_eq(&more.header, &part.header) && part.rows() < chunk => {
                    for (column, more) in part.columns.iter_mut().zip(&more.columns) {
                        append(column, more);
                    }
                }
                Some(more) => self.ahead.push_back(more),
            }
        }
        let rows = part.rows();
        if rows > chunk {
            let rest = part.columns.iter().map(|column| slice(column, chunk..rows)).collect();
            self.ahead.push_front(Part { header: Arc::clone(&part.header), columns: rest });
            part.columns = part.columns.iter().map(|column| slice(column, 0..chunk)).collect();
        }
        let same = |ahead: &Part| Arc::ptr_eq(&ahead.header, &part.header);
        let continues = self.ahead.front().is_some_and(same);
        let rows = part.rows();
        let batch = ColumnBatch { rows, runs: Vec::new(), columns: part.columns };
        Ok(Some(ResultBatch { header: part.header, batch, continues }))
    }

    fn pull(&mut self) -> Result<Option<Part>, QueryError> {
        match &mut self.source {
            Source::Ready(parts) => Ok(parts.pop_front()),
            Source::Select(stream) => stream.next(self.chunk_rows),
            Source::Names(stream) => stream.next(),
        }
    }
}

/// The part of `len` entries that LIMIT and OFFSET leave.
pub(crate) fn window(len: usize, limit: u64, offset: u64) -> (usize, usize) {
    let from = offset.min(len as u64);
    let to = if limit == 0 { len as u64 } else { from.saturating_add(limit).min(len as u64) };
    (from as usize, to as usize)
}

/// A column of text.
pub(crate) fn text_column<'a>(texts: impl Iterator<Item = &'a str>) -> Column {
    Column::new(Values::String(texts.collect()))
}

/// A series of the answer that has no tags.
pub(crate) fn header(name: &str, columns: &[&str]) -> Arc<SeriesHeader> {
    let columns = columns.iter().map(|column| Name::from(*column)).collect();
    Arc::new(SeriesHeader { name: name.into(), columns, ..SeriesHeader::default() })
}
