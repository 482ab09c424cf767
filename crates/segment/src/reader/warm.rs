//! Thawing the tight pages of a segment before anybody reads them in parts.
//!
//! The first looks at a tight page cost more than all later ones (`thaw`). A segment that was just written is in the
//! system's page cache, and mostly somebody is about to ask for it: what is left of the processors then makes its
//! pages ready. Whoever calls this says how much of the page cache that may take; entries nobody asks for are
//! the first to leave it.

use model::{SeriesId, TimeRange};

use super::fields::{TightPage, read_tight, shape};
use super::thaw::{GROUP_PAGES, Groups, is_entropy_coded};
use super::{SegmentReader, times};
use crate::SegmentError;
use crate::directory::Block;
use crate::format::Extent;

/// See [`SegmentReader::warm`].
pub(super) fn warm(
    reader: &SegmentReader,
    bytes_max: usize,
    mut go_on: impl FnMut() -> bool,
) -> Result<(), SegmentError> {
    let mut bytes = 0;
    for measurement in reader.measurements()?.entries() {
        let directory = reader.read_directory(&measurement.directory)?;
        let every = SeriesId(0)..=SeriesId(u64::MAX);
        for block in reader.blocks(&directory, &every, TimeRange::ALL) {
            if bytes >= bytes_max || !go_on() {
                return Ok(());
            }
            bytes += warm_block(reader, &block?)?;
        }
    }
    Ok(())
}

/// Gives the bytes of memory that the thawed pages take.
fn warm_block(reader: &SegmentReader, block: &Block) -> Result<usize, SegmentError> {
    let mut bytes_thawed = times::warm(reader, block)?;
    for first in (0..block.pages().len()).step_by(GROUP_PAGES) {
        let group = &block.pages()[first..block.pages().len().min(first + GROUP_PAGES)];
        let numbers = group.iter().enumerate();
        let numbers: Vec<_> = numbers
            .filter(|(_, page)| block.field_type(page.field as usize).is_numeric())
            .map(|(at, page)| (first + at, page))
            .collect();
        let extents: Vec<Extent> = numbers.iter().map(|(_, page)| page.extent).collect();
        let pages = reader.shared.source.pages(&extents, false)?;
        let mut groups = Groups::new(reader, block);
        let mut tight = Vec::new();
        for ((place, page), bytes) in numbers.into_iter().zip(pages) {
            if is_entropy_coded(&bytes, shape(block, page)) {
                let group = Some(groups.open(place));
                tight.push((TightPage { place, page, bytes, group, thaw: true }, &mut [][..]));
            }
        }
        if !tight.is_empty() {
            // No row is wanted, only the thawed form.
            bytes_thawed += read_tight(&mut groups, tight, std::slice::from_ref(&(0..0)))?;
        }
    }
    Ok(bytes_thawed)
}
