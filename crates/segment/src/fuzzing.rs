//! Entry points for fuzz targets: whatever the bytes, nothing here may panic.

use std::sync::Arc;

use model::{Column, FieldType, SeriesId, Values};
use platform::PageCache;

use crate::SegmentReader;
use crate::directory::{Chunk, top};
use crate::format::MeasurementList;
use crate::memory::MemoryFile;
use crate::reader::column::{self, PageShape};
use crate::runs::Runs;
use crate::windows::{WindowIndex, WindowSummaries};

const CACHE_BYTES: usize = 1 << 20;

/// Takes bytes for a segment file, and reads all that can be read of it.
#[doc(hidden)]
pub fn fuzz_file(data: &[u8]) {
    let file = Arc::new(MemoryFile::new("fuzz.seg", data.to_vec()));
    let cache = Arc::new(PageCache::new(CACHE_BYTES));
    if let Ok(reader) = SegmentReader::over(file, cache) {
        drop(reader.verify());
    }
}

/// Takes bytes for each kind of part, as if their checksums were right. The first three bytes choose
/// numbers that a directory would give.
#[doc(hidden)]
pub fn fuzz_parts(data: &[u8]) {
    let Some((&[rows, count, limit], bytes)) = data.split_first_chunk::<3>() else { return };
    let rows = u32::from(rows) + 1;
    let limit = u64::from(limit) * 64;
    drop(MeasurementList::decode(bytes, limit));
    drop(top::decode(bytes, limit));
    let fields = FieldType::ALL.map(|t| (t.name().into(), t)).into_iter().collect();
    drop(Chunk::decode(bytes, fields, limit));
    drop(Runs::decode(bytes, rows, (SeriesId(1), SeriesId(u64::from(count)))));
    let runs = Arc::new(Runs::one(SeriesId(1), rows));
    let index = WindowIndex::decode(bytes, rows, runs).ok();
    for field_type in FieldType::ALL {
        if let Some(index) = &index {
            let starts = (0..index.len()).map(|span| index.start_ns(span));
            assert!(starts.count() > 0, "BUG: an index without spans");
            drop(WindowSummaries::decode(bytes, index, field_type));
        }
        let mut out = Column::new(Values::empty(field_type));
        let count = u32::from(count).clamp(1, rows);
        let shape = PageShape { rows: rows as usize, count: count as usize };
        drop(column::decode(bytes, shape, 0..rows as usize, &mut out));
    }
}
