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
    /// A walk over the blocks that can have rows of it, the first of which was found.
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
        for series in series.iter().copied() {
            if !self.may_have(series, time) {
                continue;
            }
            let mut walk = self.walk(series, time);
            // What cannot be read is found once more, and reported, by whoever reads it.
            let Ok(block) = self.peek_block(&mut walk, edge) else { break };
            self.near = block.map_or(self.near, |block| block.place());
            self.ahead.push_back(Ahead { key: (series, time, edge), walk });
        }
        let blocks = self.ahead.iter_mut().filter_map(|ahead| ahead.walk.peeked());
        // Of one that is shared whole columns are read.
        let mut blocks: Vec<&mut Block> = blocks.filter(|block| block.has_one_series()).collect();
        self.reader.look_ahead(&mut blocks, &self.fields, time, expected);
    }

    /// A walk from one end over the blocks that can have rows of a series within `time`.
    pub(super) fn begin(&mut self, series: SeriesId, time: TimeRange, edge: Edge) -> BlockWalk {
        let is_this = |ahead: &Ahead| ahead.key == (series, time, edge);
        match self.ahead.pop_front().filter(is_this) {
            Some(ahead) => ahead.walk,
            None => self.walk(series, time),
        }
    }
}
