//! Walking the blocks of a measurement, forwards and backwards.

use std::ops::Range;
use std::sync::Arc;

use crate::SegmentError;
use crate::directory::{Block, Chunk, Directory, Edge, KeyRange};

use super::SegmentReader;

/// A walk over the blocks that can have the wanted rows, from either end.
///
/// It is lent reader and directory for each step, the same each time: many short walks, one a series, then count no
/// references. Reads directories as it goes; after an error it goes on behind what could not be read.
#[derive(Debug)]
pub struct BlockWalk {
    keys: KeyRange,
    /// Where in a chunk the first wanted block probably is.
    near: usize,
    /// Chunks not yet opened from either end.
    chunks: Range<usize>,
    front: Option<OpenChunk>,
    back: Option<OpenChunk>,
    /// The next block from one end, found before somebody asks for it.
    peeked: Option<(Edge, Block)>,
}

#[derive(Debug)]
struct OpenChunk {
    chunk: Arc<Chunk>,
    blocks: Range<usize>,
}

impl OpenChunk {
    /// Takes the next block from an end of a chunk, if one is open. The last block takes the chunk with it: of most
    /// series there is one, and threads that read the same chunk would wait for each other's counting.
    fn take(open: &mut Option<Self>, edge: Edge, keys: &KeyRange) -> Option<Block> {
        let mut this = open.take()?;
        let inside = |index: &usize| this.chunk.blocks[*index].time.overlaps(&keys.time);
        let index = match edge {
            Edge::First => this.blocks.find(inside),
            Edge::Last => this.blocks.rfind(inside),
        }?;
        if this.blocks.is_empty() {
            return Some(Block::new(this.chunk, index));
        }
        let block = Block::new(Arc::clone(&this.chunk), index);
        *open = Some(this);
        Some(block)
    }
}

impl BlockWalk {
    pub(crate) fn new(directory: &Directory, keys: KeyRange, near: usize) -> Self {
        Self {
            keys,
            near,
            chunks: directory.chunks_for(&keys),
            front: None,
            back: None,
            peeked: None,
        }
    }

    /// The next block from one end, with what the walk was begun with.
    ///
    /// # Errors
    /// If the disk fails or a directory is damaged.
    ///
    /// # Panics
    /// If the directory is another one.
    pub fn next_from(
        &mut self,
        edge: Edge,
        reader: &SegmentReader,
        directory: &Directory,
    ) -> Result<Option<Block>, SegmentError> {
        if let Some((from, block)) = self.peeked.take() {
            assert_eq!(from, edge, "BUG: a block was looked at from the other end");
            return Ok(Some(block));
        }
        let Self { keys, near, chunks, front, back, .. } = self;
        let (this, other) = match edge {
            Edge::First => (front, back),
            Edge::Last => (back, front),
        };
        loop {
            if let Some(block) = OpenChunk::take(this, edge, keys) {
                return Ok(Some(block));
            }
            let index = match edge {
                Edge::First => chunks.next(),
                Edge::Last => chunks.next_back(),
            };
            let Some(index) = index else {
                return Ok(OpenChunk::take(other, edge, keys));
            };
            if directory.chunks[index].time.overlaps(&keys.time) {
                let chunk = reader.chunk(directory, index)?;
                let blocks = chunk.blocks_for(keys, *near);
                *this = Some(OpenChunk { chunk, blocks });
            }
        }
    }
}

impl BlockWalk {
    /// Finds the block that [`next_from`](Self::next_from) gives next from this end, the only one it may be asked for
    /// then, and leaves it where it is.
    ///
    /// # Errors
    /// As `next_from`.
    ///
    /// # Panics
    /// As `next_from`.
    pub fn peek_from(
        &mut self,
        edge: Edge,
        reader: &SegmentReader,
        directory: &Directory,
    ) -> Result<Option<&mut Block>, SegmentError> {
        self.peeked = self.next_from(edge, reader, directory)?.map(|block| (edge, block));
        Ok(self.peeked())
    }

    /// Whether there may be more blocks behind the one that was given last.
    #[must_use]
    pub fn may_have_more(&self) -> bool {
        self.peeked.is_some()
            || self.front.is_some()
            || self.back.is_some()
            || !self.chunks.is_empty()
    }

    /// The block that was found by [`peek_from`](Self::peek_from).
    pub fn peeked(&mut self) -> Option<&mut Block> {
        self.peeked.as_mut().map(|(_, block)| block)
    }
}

/// Blocks that can have the wanted rows, in the order of the file, or from its end with `rev()`: a [`BlockWalk`] with
/// what it needs.
#[derive(Debug)]
pub struct Blocks {
    reader: SegmentReader,
    directory: Arc<Directory>,
    walk: BlockWalk,
}

impl Blocks {
    pub(crate) fn new(reader: SegmentReader, directory: Arc<Directory>, keys: KeyRange) -> Self {
        let walk = BlockWalk::new(&directory, keys, 0);
        Self { reader, directory, walk }
    }

    fn next_from(&mut self, edge: Edge) -> Option<Result<Block, SegmentError>> {
        self.walk.next_from(edge, &self.reader, &self.directory).transpose()
    }
}

impl Iterator for Blocks {
    type Item = Result<Block, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_from(Edge::First)
    }
}

impl DoubleEndedIterator for Blocks {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_from(Edge::Last)
    }
}
