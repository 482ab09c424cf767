//! Pieces to items: streams of the next groups run ahead, those of the first are merged by series.
//!
//! Runs of a series are copied whole from a stream's block to the item. Among streams that stand at
//! the same series the one of the earliest range comes first, so that times ascend.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{Column, ColumnBatch, Reservation, SeriesRun, TimeRange, Values};
use store::{ScanCursor, ScanItem, ScanSlice, StoreError, TimeOrder};

use super::View;
use super::decode::Block;
use super::plan::{Group, groups};
use super::stream::{Piece, Stream};
use crate::layout::SERIES_ID;

/// Streams that run at a time, unless one group needs more.
const STREAMS_MAX: usize = 16;
/// Rows of an item at most, about.
const ITEM_ROWS: usize = 8192;
/// Memory of an item at most, bytes, about: an eighth of what is left within these.
const ITEM_BYTES: std::ops::RangeInclusive<usize> = 16 << 10..=1 << 20;
/// Size of servers' answers, bytes.
const BATCH_BYTES_MIN: usize = 16 << 10;
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Answers of a stream that may be in memory: one read, one waiting, one on its way.
const BATCHES_PER_STREAM: usize = 3;
/// Streams that gather at a time.
const GATHERING_MAX: usize = 4;
/// Rows that a stream may gather, bytes. They take it twice, while they are put in order.
const GATHER_BYTES_MIN: usize = 64 << 10;
const GATHER_BYTES_MAX: usize = 16 << 20;

/// A cursor.
pub(super) struct KuduCursor {
    view: Arc<View>,
    waiting: VecDeque<Group>,
    running: VecDeque<Running>,
    batch_bytes: usize,
    item_bytes: usize,
    gather_bytes: Option<usize>,
    /// Of each series so many rows are enough, of those with a value of one of some fields.
    rows_per_series: Option<u64>,
    with_any: Option<Arc<[usize]>>,
    streams: Reservation,
    item: Option<Reservation>,
}

/// A group whose streams run.
struct Running {
    group: Group,
    streams: Vec<Stream>,
}

impl KuduCursor {
    pub(super) fn open(view: &Arc<View>, slice: &ScanSlice) -> Result<Self, StoreError> {
        let budget = &view.request.context.budget;
        let left = budget.limit_bytes().saturating_sub(budget.used_bytes());
        let share = left / (2 * STREAMS_MAX * BATCHES_PER_STREAM);
        let gather_bytes = (left / (8 * GATHERING_MAX)).min(GATHER_BYTES_MAX);
        let gather_bytes = (gather_bytes >= GATHER_BYTES_MIN).then_some(gather_bytes);
        Ok(Self {
            view: Arc::clone(view),
            waiting: groups(view, slice, gather_bytes)?.into(),
            gather_bytes,
            rows_per_series: slice.rows_per_series,
            with_any: slice.with_any.clone(),
            running: VecDeque::new(),
            batch_bytes: share.clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX),
            item_bytes: (left / 8).clamp(*ITEM_BYTES.start(), *ITEM_BYTES.end()),
            streams: budget.reserve(0)?,
            item: None,
        })
    }

    /// Starts streams of the next groups.
    fn run_ahead(&mut self) -> Result<(), StoreError> {
        let mut count: usize = self.running.iter().map(|running| running.streams.len()).sum();
        while let Some(group) = self.waiting.front() {
            let is_one = group.gathers || self.view.request.order == TimeOrder::Descending;
            let gather = self.gather_bytes.filter(|_| group.gathers);
            let more = pieces(group, is_one);
            let gathering = self.running.iter().filter(|running| running.group.gathers).count();
            let gathering = gathering + usize::from(group.gathers);
            let is_much = count + more.len() > STREAMS_MAX || gathering > GATHERING_MAX;
            if count > 0 && is_much {
                break;
            }
            let rows = gathering * 2 * self.gather_bytes.unwrap_or(0);
            let bytes = (count + more.len()) * BATCHES_PER_STREAM * self.batch_bytes;
            match self.streams.resize(bytes + rows) {
                Ok(()) => {}
                Err(_) if count > 0 => break,
                Err(error) => return Err(error.into()),
            }
            let Some(group) = self.waiting.pop_front() else { break };
            count += more.len();
            let start = |times| {
                let piece = Piece {
                    bucket: group.bucket,
                    ids: Arc::clone(&group.ids),
                    sparse: group.sparse,
                    times,
                    batch_bytes: u32::try_from(self.batch_bytes).unwrap_or(u32::MAX),
                    rows_per_series: self.rows_per_series,
                    with_any: self.with_any.clone(),
                    gather,
                };
                Stream::start(&self.view, piece)
            };
            let streams = more.into_iter().map(start).collect();
            self.running.push_back(Running { group, streams });
        }
        Ok(())
    }
}

/// The stretches of time of each stream of a group. `is_one`: it has one stream.
fn pieces(group: &Group, is_one: bool) -> Vec<Vec<TimeRange>> {
    if is_one {
        return vec![group.times.clone()];
    }
    group.times.iter().map(|time| vec![*time]).collect()
}

impl Running {
    /// The stream that is to be read next: of the least series the first.
    fn next_stream(&mut self, view: &View) -> Result<Option<usize>, StoreError> {
        let mut least: Option<(i64, usize)> = None;
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if !stream.fill(view)? {
                continue;
            }
            let Some(block) = &stream.head else { continue };
            let here = (block.series_at(stream.at), at);
            least = Some(least.map_or(here, |least| least.min(here)));
        }
        Ok(least.map(|(_, at)| at))
    }

    fn ordinal(&self, id: i64) -> Result<u32, StoreError> {
        let at = self.group.ids.binary_search(&id).ok();
        let ordinal = at.and_then(|at| self.group.ordinals.get(at)).copied();
        ordinal.ok_or_else(|| StoreError::Io(format!("Kudu sent a row of another {SERIES_ID}")))
    }
}

/// An item in the making.
struct Item {
    batch: ColumnBatch,
    bytes: usize,
}

impl Item {
    fn new(view: &View) -> Self {
        let mut columns = vec![Column::new(Values::Time(Vec::new()))];
        let fields = view.request.fields.iter();
        columns.extend(fields.map(|(_, ty)| Column::new(Values::empty(*ty))));
        Self { batch: ColumnBatch { rows: 0, runs: Vec::new(), columns }, bytes: 0 }
    }

    fn is_full(&self, bytes_max: usize) -> bool {
        self.batch.rows >= ITEM_ROWS || self.bytes >= bytes_max
    }

    /// Copies rows of one series; gives the row behind the last.
    fn add(&mut self, ordinal: u32, block: &Block, from: usize) -> usize {
        let end = block.run_end(from).min(from + ITEM_ROWS);
        let rows = end - from;
        match self.batch.runs.last_mut() {
            Some(run) if run.series == ordinal => run.rows += rows as u32,
            _ => self.batch.runs.push(SeriesRun { series: ordinal, rows: rows as u32 }),
        }
        let Some((time, fields)) = self.batch.columns.split_first_mut() else { return end };
        if let Values::Time(times) = &mut time.values {
            times.extend_from_slice(&block.times[from..end]);
        }
        self.bytes += rows * 8;
        for (column, source) in fields.iter_mut().zip(&block.columns) {
            column.extend_from(source, from..end);
            self.bytes += match &source.values {
                Values::String(texts) => {
                    let lens = texts.places()[from..end].iter().map(|(_, len)| *len as usize);
                    lens.sum::<usize>() + rows * 8
                }
                _ => rows * 8,
            };
        }
        self.batch.rows += rows;
        end
    }
}

impl ScanCursor for KuduCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        let view = Arc::clone(&self.view);
        let context = &view.request.context;
        context.interrupt.check()?;
        self.item = None;
        let mut item = Item::new(&view);
        loop {
            self.run_ahead()?;
            let Some(first) = self.running.front_mut() else { break };
            let Some(at) = first.next_stream(&view)? else {
                self.running.pop_front();
                continue;
            };
            let stream = &first.streams[at];
            let Some(block) = &stream.head else { continue };
            let ordinal = first.ordinal(block.series_at(stream.at))?;
            let end = item.add(ordinal, block, stream.at);
            first.streams[at].at = end;
            if item.is_full(self.item_bytes) {
                break;
            }
        }
        if item.batch.rows == 0 {
            return Ok(None);
        }
        let rows = item.batch.rows as u64;
        view.rows.fetch_add(rows, Ordering::Relaxed);
        view.shared.metrics.rows_scanned.add(rows);
        self.item = Some(context.budget.reserve(item.batch.memory_bytes())?);
        Ok(Some(ScanItem::Rows(item.batch)))
    }
}
