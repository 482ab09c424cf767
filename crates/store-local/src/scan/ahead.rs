//! Looking ahead in a segment: before the first of some series is read, the blocks of all of them are found, and what
//! reading these waits for is asked for from memory (`SegmentReader::look_ahead`). Where it turns out not to be in memory,
//! the disk is asked for what will be read of many series (`SegmentReader::read_ahead`).
//!
//! Not here: which series come next (`scan`).

use model::{SeriesId, TimeRange};
use segment::{Block, BlockWalk, Edge, Expected, ReadAhead};

use super::source::{SegmentSource, may_satisfy, same};

/// Bytes that the disk is asked for at once, about: what it reads in a few milliseconds, and little beside what the system
/// has for files.
const ASKED_BYTES: u64 = 8 << 20;

/// A series that was looked ahead for.
#[derive(Debug)]
pub(super) struct Ahead {
    /// What it was, and from which end.
    key: (SeriesId, TimeRange, Edge),
    /// A walk over the blocks that can have rows of it, the first of which was found.
    walk: BlockWalk,
}

/// What the disk was asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The last series of which it was: series are read in their order.
    last: Option<SeriesId>,
    /// How often in a row everything turned out to be in the cache.
    in_vain: u32,
    /// So many times it is not worth trying again.
    skips: u32,
}

impl Asked {
    /// Whether it is not worth trying now: the more often it was in vain, the longer.
    fn skip(&mut self) -> bool {
        let skips = self.skips > 0;
        self.skips = self.skips.saturating_sub(1);
        skips
    }

    /// Says that everything up to a series was asked for, if there was `any` of it.
    fn set(&mut self, last: SeriesId, any: bool) {
        self.last = Some(last);
        self.in_vain = if any { 0 } else { self.in_vain + 1 };
        self.skips = (1u32 << self.in_vain.min(16)) - 1;
    }
}

impl SegmentSource {
    /// Gets ready for what is expected to be read of the next series, in this order: what each of them waits for
    /// from memory is on its way for all of them then. Says whether it is all there, as far as is seen.
    pub(super) fn look_ahead(&mut self, series: &[SeriesId], time: TimeRange) -> bool {
        self.ahead.clear();
        let Some(expected) = self.expected else { return true };
        let edge = if let Expected::Row(edge) = expected { edge } else { Edge::First };
        let mut shared_to: Option<SeriesId> = None;
        for series in series.iter().copied() {
            // Series behind the first one of a block that they share are found with it.
            if !self.may_have(series, time) || shared_to.is_some_and(|last| series < last) {
                continue;
            }
            let mut walk = self.walk(series, time);
            // What cannot be read is found once more, and reported, by whoever reads it.
            let Ok(block) = self.peek_block(&mut walk, edge) else { break };
            if let Some(block) = block {
                self.near = block.place();
                shared_to = Some(block.last().0).filter(|_| !block.has_one_series());
            }
            self.ahead.push_back(Ahead { key: (series, time, edge), walk });
        }
        let blocks = self.ahead.iter_mut().filter_map(|ahead| ahead.walk.peeked());
        // Of one that is shared whole columns are read, or parts of them: only whether they are there matters.
        let (mut blocks, shared): (Vec<&mut Block>, Vec<&mut Block>) =
            blocks.partition(|block| block.has_one_series());
        if blocks.is_empty() {
            let first = shared.into_iter().next().map(|block| block.clone());
            return first.is_none_or(|block| self.is_there(&block, time, expected));
        }
        let conditions = self.conditions.as_deref().unwrap_or_default();
        if conditions.is_empty() && !self.only_counts {
            return self.reader.look_ahead(&mut blocks, &self.fields, time, expected);
        }
        // Most of what would be looked at is left out: one of them tells whether they are there.
        let may = |block: &&mut Block| may_satisfy(block, conditions);
        let first = blocks.into_iter().find(may).map(|block| block.clone());
        first.is_none_or(|block| self.is_there(&block, time, expected))
    }

    /// Whether what is expected to be read of a block is in memory.
    fn is_there(&self, block: &Block, time: TimeRange, expected: Expected) -> bool {
        let mut ahead = self.ahead_of(time, expected);
        ahead.add(block);
        ahead.bytes() == 0
    }

    /// To ask the disk for what is expected.
    fn ahead_of(&self, time: TimeRange, expected: Expected) -> ReadAhead<'_> {
        let conditions = self.conditions.as_deref().unwrap_or_default();
        let ahead = self.reader.read_ahead(&self.fields, time, expected);
        ahead.satisfying(conditions).counting(self.only_counts)
    }

    /// Asks the disk for what is expected to be read of the next series, in this order, unless it was asked for most of
    /// them before.
    pub(super) fn read_ahead(&mut self, series: &[SeriesId], time: TimeRange) {
        let behind = series.partition_point(|series| self.asked.last >= Some(*series));
        let next = &series[behind..];
        if next.len() * 2 >= series.len() && !next.is_empty() && !self.asked.skip() {
            self.ask(next, time);
        }
    }

    /// The same of one series with several blocks, if the first is not in memory.
    pub(super) fn read_ahead_of(&mut self, series: SeriesId, time: TimeRange, first: &Block) {
        if let Some(expected) = self.expected
            && self.asked.last < Some(series)
            && !self.is_there(first, time, expected)
        {
            self.ask(&[series], time);
        }
    }

    /// Asks the disk for what is expected to be read of some series, at least one.
    fn ask(&mut self, series: &[SeriesId], time: TimeRange) {
        let Some(expected) = self.expected else { return };
        // Of one row the block that has it, mostly.
        let (edge, is_one) = match expected {
            Expected::Row(edge) => (edge, true),
            Expected::Rows | Expected::Summaries(_) => (Edge::First, false),
        };
        let mut ahead = self.ahead_of(time, expected);
        let (mut last, mut near) = (series[0], self.near);
        let mut added: Option<Block> = None;
        'all: for series in series.iter().copied().filter(|series| self.may_have(*series, time)) {
            last = series;
            let mut walk = self.reader.walk(&self.directory, &(series..=series), time, near);
            // As above.
            while let Ok(Some(block)) = self.next_block(&mut walk, edge) {
                near = block.place();
                // Series may share blocks.
                if added.as_ref().is_none_or(|added| !same(added, &block)) {
                    ahead.add(&block);
                }
                added = Some(block);
                if ahead.bytes() >= ASKED_BYTES {
                    break 'all;
                }
                if is_one {
                    break;
                }
            }
        }
        let any = ahead.ask();
        self.asked.set(last, any);
    }

    /// A walk from one end over the blocks that can have rows of a series within `time`.
    pub(super) fn begin(&mut self, series: SeriesId, time: TimeRange, edge: Edge) -> BlockWalk {
        while self.ahead.front().is_some_and(|ahead| ahead.key.0 < series) {
            self.ahead.pop_front();
        }
        if self.ahead.front().is_some_and(|ahead| ahead.key == (series, time, edge))
            && let Some(ahead) = self.ahead.pop_front()
        {
            return ahead.walk;
        }
        self.walk(series, time)
    }
}
