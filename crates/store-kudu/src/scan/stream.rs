//! One piece of a table, read forwards by a task of the runtime, which hands over blocks through a
//! bounded channel.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kudu_client::{Predicate, ReadMode, ScanBuilder, Table};
use model::TimeRange;
use store::{StoreError, TimeOrder};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::View;
use super::backward::backward;
use super::decode::Block;
use super::gather::gather;
use super::narrow::NarrowView;
use super::reader::Reader;
use crate::layout::{FIELD_ID, SERIES_ID, TIME, rows_of};
use crate::runtime;

/// Blocks that wait to be taken.
const BLOCKS_WAITING: usize = 1;

/// What a task reads.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) bucket: u32,
    /// Ids, ascending.
    pub(super) ids: Arc<[i64]>,
    pub(super) sparse: bool,
    /// Stretches of time, ascending; more than one only backwards, or to be gathered.
    pub(super) times: Vec<TimeRange>,
    pub(super) batch_bytes: u32,
    /// Of each series so many rows are enough.
    pub(super) rows_per_series: Option<u64>,
    /// Only rows matter that have a value of one of these fields, if not of any.
    pub(super) with_any: Option<Arc<[usize]>>,
    /// Memory that its rows may take if they are to be gathered range by range.
    pub(super) gather: Option<usize>,
}

/// What a task hands over: blocks, then `None` at the end. Without that end it was cut off.
pub(super) type Handed = Result<Option<Block>, StoreError>;

/// Where the blocks of a piece come from.
pub(super) struct Stream {
    blocks: mpsc::Receiver<Handed>,
    task: JoinHandle<()>,
    /// The block that is being read, and how far.
    pub(super) head: Option<Block>,
    pub(super) at: usize,
    ended: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream {
    pub(super) fn start(view: &Arc<View>, piece: Piece) -> Self {
        let (sender, blocks) = mpsc::channel(BLOCKS_WAITING);
        let owned = Arc::clone(view);
        let task = view.shared.handle.spawn(async move {
            let read = match (owned.request.order, piece.gather) {
                (TimeOrder::Descending, _) => backward(&owned, &piece, &sender).await,
                (TimeOrder::Ascending, None) => forward(&owned, &piece, &sender).await,
                (TimeOrder::Ascending, Some(bytes_max)) => {
                    gather(&owned, &piece, bytes_max, &sender).await
                }
            };
            // Nobody may be listening any more.
            let _ = sender.send(read.map(|()| None)).await;
        });
        Self { blocks, task, head: None, at: 0, ended: false }
    }

    /// Makes sure there is a row at `at` of `head`; `false`: the piece is read.
    pub(super) fn fill(&mut self, view: &View) -> Result<bool, StoreError> {
        loop {
            if self.head.as_ref().is_some_and(|block| self.at < block.rows()) {
                return Ok(true);
            }
            self.head = None;
            self.at = 0;
            if self.ended {
                return Ok(false);
            }
            let interrupt = &view.request.context.interrupt;
            let blocks = &mut self.blocks;
            let next = async { Ok(blocks.recv().await) };
            match runtime::wait(&view.shared.handle, Some(interrupt), next)? {
                Some(Ok(Some(block))) => self.head = Some(block),
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => return Err(error),
                None => return Err(StoreError::Closed),
            }
        }
    }
}

/// A scan of rows of `piece` within `time`, in the order of the key.
pub(super) fn builder(view: &View, table: &Table, piece: &Piece, time: TimeRange) -> ScanBuilder {
    let values = view.columns.iter().flatten().map(String::as_str);
    let columns: Vec<&str> = key_columns(piece).chain(values).collect();
    let mut scan = table.scan().columns(columns).bucket(piece.bucket);
    for predicate in &view.predicates {
        scan = scan.filter(predicate.clone());
    }
    if let Some(column) = only_column(view, piece) {
        scan = scan.filter(Predicate::is_not_null(column));
    }
    within(view, scan, piece, time)
}

/// The same of a narrow table, whose rows are values.
pub(super) fn narrow_builder(
    view: &View,
    narrow: &NarrowView,
    piece: &Piece,
    time: TimeRange,
) -> ScanBuilder {
    let columns = key_columns(piece).chain([FIELD_ID]).chain(narrow.values());
    let mut scan = rows_of(&narrow.table, narrow.measurement).columns(columns);
    if narrow.is_aligned {
        scan = scan.bucket(piece.bucket);
    }
    if let Some(filter) = narrow.filter() {
        scan = scan.filter(filter);
    }
    within(view, scan, piece, time)
}

fn key_columns<'a>(piece: &Piece) -> impl Iterator<Item = &'a str> + use<'a> {
    (piece.ids.len() > 1).then_some(SERIES_ID).into_iter().chain([TIME])
}

fn within(view: &View, scan: ScanBuilder, piece: &Piece, time: TimeRange) -> ScanBuilder {
    let scan = scan
        .read_mode(ReadMode::Snapshot(Some(view.moment)))
        .fault_tolerant()
        .batch_bytes(piece.batch_bytes)
        .filter(Predicate::greater_or_equal(TIME, time.min))
        .filter(Predicate::less_or_equal(TIME, time.max));
    match (&*piece.ids, piece.ids.first(), piece.ids.last()) {
        ([one], ..) => scan.filter(Predicate::equal(SERIES_ID, *one)),
        (_, Some(first), Some(last)) if !piece.sparse => scan
            .filter(Predicate::greater_or_equal(SERIES_ID, *first))
            .filter(Predicate::less_or_equal(SERIES_ID, *last)),
        (ids, ..) => scan.filter(Predicate::in_list(SERIES_ID, ids.iter().copied())),
    }
}

/// The column of the wide table that every row has a value in that matters, if servers can tell.
fn only_column<'a>(view: &'a View, piece: &Piece) -> Option<&'a str> {
    match piece.with_any.as_deref()? {
        [only] if view.narrow.is_none() => view.columns[*only].as_deref(),
        _ => None,
    }
}

/// Rows wanted of a single series; `None`: all.
pub(super) fn rows_wanted(view: &View, piece: &Piece) -> Option<u64> {
    // Rows that fail a filter must not use up the limit.
    let exact = view.request.filters.is_empty() && piece.ids.len() == 1;
    piece.rows_per_series.filter(|_| exact)
}

pub(super) async fn forward(
    view: &View,
    piece: &Piece,
    sender: &mpsc::Sender<Handed>,
) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (piece.times.first(), piece.times.last()) else {
        return Ok(());
    };
    let mut left = rows_wanted(view, piece);
    if left == Some(0) {
        return Ok(());
    }
    // Where there is one field every row counts: those without it do not come.
    let has_one = piece.with_any.is_none() && view.columns.iter().flatten().count() == 1;
    let limit = left.filter(|_| has_one || only_column(view, piece).is_some());
    let mut reader = Reader::open(view, piece, TimeRange::new(first.min, last.max), limit)?;
    while let Some((_, mut block)) = reader.next().await? {
        if let Some(any) = &piece.with_any {
            block.keep_with_any(any);
        }
        if let Some(left) = &mut left {
            block.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= block.rows() as u64;
        }
        if block.rows() > 0 && sender.send(Ok(Some(block))).await.is_err() {
            return Ok(());
        }
        if left == Some(0) {
            return Ok(());
        }
    }
    Ok(())
}

/// Counts what came from the servers.
pub(super) fn count(view: &View, block: &Block) {
    view.bytes.fetch_add(block.memory_bytes() as u64, Ordering::Relaxed);
    view.scanned.fetch_add(1, Ordering::Relaxed);
}
