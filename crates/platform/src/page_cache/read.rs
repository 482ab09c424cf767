//! Reading pages from the disk: those that lie side by side at once, since a call of the operating
//! system takes as long as copying several pages.
//!
//! Invariants
//! - What lies between the pages asked for is of no consequence: it is not looked at, and a disk that
//!   cannot read it does not keep the pages from being read.

use std::cell::RefCell;

use super::{CacheFile, Page, PageError, PageRange};

/// Bytes between two pages that are read along: about what a call of its own costs.
const GAP_BYTES_MAX: u64 = 8 << 10;
/// Most bytes read at once, other than of a single page, and held on to by a thread for the next time.
const RUN_BYTES_MAX: u64 = 256 << 10;

thread_local! {
    /// What was read last: pages get memory of their own, which need not be cleared before.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads one page.
pub(super) fn read(file: &CacheFile, range: &PageRange) -> Result<Page, PageError> {
    if u64::from(range.len) > RUN_BYTES_MAX {
        let mut bytes = vec![0; range.len as usize].into_boxed_slice();
        file.file.read_at(&mut bytes, range.offset)?;
        return verified(file, range, bytes);
    }
    BUFFER.with_borrow_mut(|buffer| {
        let bytes = grown(buffer, range.len as usize);
        file.file.read_at(bytes, range.offset)?;
        verified(file, range, (&*bytes).into())
    })
}

/// Reads pages, ascending by where they begin.
pub(super) fn read_all(file: &CacheFile, ranges: &[PageRange]) -> Result<Vec<Page>, PageError> {
    let mut pages = Vec::with_capacity(ranges.len());
    let mut rest = ranges;
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(run_len(rest));
        if run.len() == 1 || !read_run(file, run, &mut pages)? {
            for range in run {
                pages.push(read(file, range)?);
            }
        }
        rest = behind;
    }
    Ok(pages)
}

/// How many of the ranges, the first on, are read at once.
fn run_len(ranges: &[PageRange]) -> usize {
    let start = ranges[0].offset;
    let joins = |pair: &&[PageRange]| {
        let gap = pair[1].offset.checked_sub(pair[0].end());
        gap.is_some_and(|gap| gap <= GAP_BYTES_MAX) && pair[1].end() - start <= RUN_BYTES_MAX
    };
    1 + ranges.windows(2).take_while(joins).count()
}

/// Reads the pages of a run with one call. `false`: the disk failed, perhaps between them.
fn read_run(file: &CacheFile, run: &[PageRange], pages: &mut Vec<Page>) -> Result<bool, PageError> {
    let (start, end) = (run[0].offset, run[run.len() - 1].end());
    BUFFER.with_borrow_mut(|buffer| {
        let bytes = grown(buffer, (end - start) as usize);
        if file.file.read_at(bytes, start).is_err() {
            return Ok(false);
        }
        for range in run {
            let from = (range.offset - start) as usize;
            let page = bytes[from..from + range.len as usize].into();
            pages.push(verified(file, range, page)?);
        }
        Ok(true)
    })
}

fn grown(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

fn verified(file: &CacheFile, range: &PageRange, bytes: Box<[u8]>) -> Result<Page, PageError> {
    let found = crc32c::crc32c(&bytes);
    let PageRange { offset, len, crc32c: expected } = *range;
    if found != expected {
        let path = file.file.path().to_owned();
        return Err(PageError::Checksum { path, offset, len, expected, found });
    }
    Ok(Page { bytes })
}
