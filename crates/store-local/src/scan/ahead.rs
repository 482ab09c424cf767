//! Looking ahead in a segment: before the first of some series is read, the blocks of all of them are found, and what
//! reading these waits for is asked for from memory (`SegmentReader::look_ahead`).
//!
//! Not here: which series come next (`scan`).

use model::{SeriesId, TimeRange};
use segment::{Block, BlockWalk, Edge, Expected};

use super::source::SegmentSource;

/// A series that was looked ahead for.
#[derive(Debug)]
pub(super) struct Ahead {
    /// What it was, and from which end.
    key: (SeriesId, TimeRange, Edge),
    /// The first block from there that can have rows of it.
    block: Option<Block>,
    /// A walk over the others.
    walk: BlockWalk,
}

impl SegmentSource {
    /// Gets ready for what is `expected` to be read of the next series, in this order: what each of them waits for
    /// from memory is on its way for all of them then.
    pub(super) fn look_ahead(&mut self, series: &[SeriesId], time: TimeRange, expected: Expected) {
        self.ahead.clear();
        let (edge, is_row) = match expected {
            Expected::Row(edge) => (edge, true),
            Expected::Rows | Expected::Summaries(_) => (Edge::First, false),
        };
        if self.has_tombstones() || self.few != is_row || self.only_counts {
            return;
        }
        let (first, last) = self.segment.meta.series;
        for series in series.iter().copied().filter(|series| (first..=last).contains(series)) {
            let mut walk = self.walk(series, time);
            // What cannot be read is found once more, and reported, by whoever reads it.
            let Ok(block) = self.next_block(&mut walk, edge) else { break };
            self.near = block.as_ref().map_or(self.near, Block::place);
            self.ahead.push_back(Ahead { key: (series, time, edge), block, walk });
        }
        let blocks = self.ahead.iter_mut().filter_map(|ahead| ahead.block.as_mut());
        // Of one that is shared whole columns are read.
        let mut blocks: Vec<&mut Block> = blocks.filter(|block| block.has_one_series()).collect();
        self.reader.look_ahead(&mut blocks, &self.fields, time, expected);
    }

    /// A walk over the blocks that can have rows of a series within `time`, and the first of them from one end, if it
    /// is known.
    pub(super) fn begin(
        &mut self,
        series: SeriesId,
        time: TimeRange,
        edge: Edge,
    ) -> (Option<Block>, BlockWalk) {
        let is_this = |ahead: &Ahead| ahead.key == (series, time, edge);
        match self.ahead.pop_front().filter(is_this) {
            Some(ahead) => (ahead.block, ahead.walk),
            None => (None, self.walk(series, time)),
        }
    }
}
