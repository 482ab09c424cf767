//! What a statement answers, pulled a batch at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use model::{Column, Documents, Name, ResultBatch, SeriesHeader, Values};

use crate::QueryError;
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
    documents: Documents,
    /// What was read ahead, to know whether its series continues.
    ahead: Option<Part>,
}

enum Source {
    Ready(VecDeque<Part>),
    /// A running SELECT, and how many rows it may make at a time.
    Select(Box<SelectStream>, usize),
    Names(Box<NameStream>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Select(..) => "Select",
            Self::Names(_) => "Names",
        })
    }
}

impl Answer {
    /// Nothing to say.
    pub(crate) fn empty() -> Self {
        Self::ready(Vec::new())
    }

    /// Rows that are there already.
    pub(crate) fn ready(parts: Vec<Part>) -> Self {
        Self::new(Source::Ready(parts.into()), None)
    }

    /// Rows of a running SELECT; with functions at most `batch_rows` at a time.
    pub(crate) fn select(stream: SelectStream, batch_rows: usize) -> Self {
        let zone = stream.select().zone.clone();
        Self::new(Source::Select(Box::new(stream), batch_rows.max(1)), zone)
    }

    /// Names from the store.
    pub(crate) fn names(stream: NameStream) -> Self {
        Self::new(Source::Names(Box::new(stream)), None)
    }

    fn new(source: Source, zone: Option<Arc<Zone>>) -> Self {
        Self { messages: Vec::new(), zone, source, documents: Documents::Rows, ahead: None }
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
            part.narrow(from..to);
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

    /// The next rows, as many as were read together; `None` at the end.
    ///
    /// # Errors
    /// [`QueryError`]; the answer is of no further use then.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results hides failures")]
    pub fn next(&mut self) -> Result<Option<ResultBatch>, QueryError> {
        let next = match self.ahead.take() {
            Some(part) => Some(part),
            None => self.pull()?,
        };
        let Some(part) = next else { return Ok(None) };
        self.ahead = self.pull()?;
        let same = |ahead: &Part| Arc::ptr_eq(&ahead.header, &part.header);
        let continues = self.ahead.as_ref().is_some_and(same);
        let Part { header, batch, range } = part;
        Ok(Some(ResultBatch { header, batch, rows: range, continues }))
    }

    /// Whether [`Answer::next`] has rows at once, and nothing has to be read for them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ahead.is_some()
            && match &self.source {
                Source::Ready(_) => true,
                Source::Select(stream, _) => stream.is_ready(),
                Source::Names(_) => false,
            }
    }

    fn pull(&mut self) -> Result<Option<Part>, QueryError> {
        match &mut self.source {
            Source::Ready(parts) => Ok(parts.pop_front()),
            Source::Select(stream, batch_rows) => stream.next(*batch_rows),
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
