//! Walking the blocks of a measurement, forwards and backwards.

use std::ops::Range;
use std::sync::Arc;

use crate::SegmentError;
use crate::directory::{Block, Chunk, Directory, KeyRange};

use super::SegmentReader;

/// Blocks that can have the wanted rows, in the order of the file, or from its end with `rev()`.
///
/// Reads directories as it goes; after an error it goes on behind what could not be read.
#[derive(Debug)]
pub struct Blocks {
    reader: SegmentReader,
    directory: Arc<Directory>,
    keys: KeyRange,
    /// Where in a chunk the first wanted block probably is.
    near: usize,
    /// Chunks not yet opened from either end.
    chunks: Range<usize>,
    front: Option<OpenChunk>,
    back: Option<OpenChunk>,
}

#[derive(Debug)]
struct OpenChunk {
    chunk: Arc<Chunk>,
    blocks: Range<usize>,
}

impl OpenChunk {
    fn block(&self, index: usize, keys: &KeyRange) -> Option<Block> {
        let inside = self.chunk.blocks[index].time.overlaps(&keys.time);
        inside.then(|| Block { chunk: Arc::clone(&self.chunk), index: index as u32 })
    }

    fn next(&mut self, keys: &KeyRange) -> Option<Block> {
        while let Some(index) = self.blocks.next() {
            if let Some(block) = self.block(index, keys) {
                return Some(block);
            }
        }
        None
    }

    fn next_back(&mut self, keys: &KeyRange) -> Option<Block> {
        while let Some(index) = self.blocks.next_back() {
            if let Some(block) = self.block(index, keys) {
                return Some(block);
            }
        }
        None
    }
}

impl Blocks {
    pub(crate) fn new(reader: SegmentReader, directory: Arc<Directory>, keys: KeyRange) -> Self {
        let chunks = directory.chunks_for(&keys);
        Self { reader, directory, keys, near: 0, chunks, front: None, back: None }
    }

    /// Finds blocks faster that are near a [`Block::place`]: that of the series before.
    #[must_use]
    pub fn near(self, place: usize) -> Self {
        Self { near: place, ..self }
    }

    /// `None` if nothing in the chunk is wanted.
    fn open(&self, index: usize) -> Result<Option<OpenChunk>, SegmentError> {
        if !self.directory.chunks[index].time.overlaps(&self.keys.time) {
            return Ok(None);
        }
        let chunk = self.reader.chunk(&self.directory, index)?;
        let blocks = chunk.blocks_for(&self.keys, self.near);
        Ok(Some(OpenChunk { chunk, blocks }))
    }
}

impl Iterator for Blocks {
    type Item = Result<Block, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(block) = self.front.as_mut().and_then(|open| open.next(&self.keys)) {
                return Some(Ok(block));
            }
            match self.chunks.next().map(|index| self.open(index)) {
                Some(Ok(open)) => self.front = open,
                Some(Err(error)) => return Some(Err(error)),
                None => return self.back.as_mut()?.next(&self.keys).map(Ok),
            }
        }
    }
}

impl DoubleEndedIterator for Blocks {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(block) = self.back.as_mut().and_then(|open| open.next_back(&self.keys)) {
                return Some(Ok(block));
            }
            match self.chunks.next_back().map(|index| self.open(index)) {
                Some(Ok(open)) => self.back = open,
                Some(Err(error)) => return Some(Err(error)),
                None => return self.front.as_mut()?.next_back(&self.keys).map(Ok),
            }
        }
    }
}
