//! Entry points for fuzz targets: whatever the bytes, nothing here may panic.

use std::sync::Arc;

use codec::Effort;
use model::{Column, FieldType, SeriesId, Values};
use platform::PageCache;

use crate::SegmentReader;
use crate::directory::{Chunk, top};
use crate::format::MeasurementList;
use crate::memory::MemoryFile;
use crate::reader::column::{self, PageShape};
use crate::runs::Runs;
use crate::windows::{WindowIndex, WindowPlan, WindowSummaries};

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
    if let Ok(index) = WindowIndex::decode(bytes, rows, Arc::clone(&runs)) {
        let starts = (0..index.len()).map(|span| index.start_ns(span));
        assert!(starts.count() > 0, "BUG: an index without spans");
    }
    let index = index_of(rows, runs, u32::from(count));
    for field_type in FieldType::ALL {
        drop(WindowSummaries::decode(bytes, &index, field_type));
        let mut out = Column::new(Values::empty(field_type));
        let count = u32::from(count).clamp(1, rows);
        let shape = PageShape { rows: rows as usize, count: count as usize };
        drop(column::decode(bytes, shape, 0..rows as usize, &mut out));
    }
}

/// Spans of so many rows each, at least one; the last has the rest.
fn index_of(rows: u32, runs: Arc<Runs>, rows_per_span: u32) -> WindowIndex {
    let mut plan = WindowPlan { window_ns: 1000, ..WindowPlan::default() };
    for start in (0..rows).step_by(rows_per_span.max(1) as usize) {
        plan.windows.push(i64::from(start));
        plan.ends.push((start + rows_per_span.max(1)).min(rows));
    }
    let mut bytes = Vec::new();
    plan.encode(Effort::Fast, &mut bytes);
    WindowIndex::decode(&bytes, rows, runs).expect("BUG: an index that cannot be read")
}
