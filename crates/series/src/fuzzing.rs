//! Entry points for fuzzing.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use model::{Budget, DatabaseId, Name, Regex, TagExpr};
use platform::{DiskError, DiskResult, File, PageCache};
use roaring::RoaringTreemap;

use crate::bytes::Reader;
use crate::error::SeriesResult;
use crate::hash::KeyHash;
use crate::index::SeriesIndex;
use crate::manifest::Manifest;
use crate::posting::{Posting, PostingRef, put_inline, put_set, read_inline, read_set};
use crate::run::{Run, RunOpen};

/// Opens arbitrary bytes as a run, checksums aside, and asks everything there is to ask. Whatever
/// the bytes, there is an answer or an error.
pub fn query_run(data: &[u8]) {
    let cache = Arc::new(PageCache::new(1 << 20));
    let how = RunOpen { number: 1, cache: &cache, verify: false };
    // Every error will do; the point is that there is no panic.
    if let Ok(run) = Run::from_file(Arc::new(Bytes(data.to_vec())), how) {
        let _ = query(run);
    }
}

/// Reads `data` as a list of ids of each kind. What is accepted must come back when it is written.
///
/// # Panics
/// When it does not, which is a bug.
pub fn postings(data: &[u8]) {
    if let Ok(set) = read_set(&mut Reader::new(data)) {
        let mut bytes = Vec::new();
        put_set(&set, &mut bytes);
        let again = read_set(&mut Reader::new(&bytes)).expect("BUG: a written set is refused");
        assert_eq!(again, set, "BUG: a set changed");
    }
    let Some((&base, rest)) = data.split_first() else { return };
    let base = u64::from(base);
    let Ok(PostingRef::Inline { count, deltas }) = PostingRef::read(&mut Reader::new(rest)) else {
        return;
    };
    let mut posting = Posting::default();
    if read_inline(count, deltas, base, &mut posting).is_err() {
        return;
    }
    let set = posting.clone().into_set();
    assert_eq!(set.len(), u64::from(count), "BUG: ids were lost");
    let mut bytes = Vec::new();
    if !put_inline(&posting, base, &mut bytes) {
        return;
    }
    let again = PostingRef::read(&mut Reader::new(&bytes));
    let Ok(PostingRef::Inline { count, deltas }) = again else {
        panic!("BUG: a written list is refused")
    };
    read_inline(count, deltas, base, &mut posting).expect("BUG: a written list is refused");
    assert_eq!(posting.into_set(), set, "BUG: a list changed");
}

/// Reads `data`, with the right checksum behind it, as the manifest. What is accepted must come back
/// when it is written.
///
/// # Panics
/// When it does not, which is a bug.
pub fn manifest(data: &[u8]) {
    let mut bytes = data.to_vec();
    bytes.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
    if let Ok(Ok(manifest)) = Manifest::decode(&bytes) {
        let again = Manifest::decode(&manifest.encode());
        assert_eq!(again, Ok(Ok(manifest)), "BUG: a manifest changed");
    }
}

fn query(run: Run) -> SeriesResult<()> {
    for high in (0..=u64::MAX).step_by(1 << 60) {
        let _ = run.find(KeyHash { high, low: 7 });
    }
    let ids: Vec<u64> = run.ids().iter().take(50).collect();
    let mut databases: Vec<DatabaseId> = vec![DatabaseId(1), DatabaseId(2)];
    for id in &ids {
        if let Ok(Some((database, _))) = run.key(*id) {
            databases.push(database);
        }
    }
    let index = SeriesIndex::over_run(run);
    for database in databases {
        let _ = index.cardinality(database, None);
        for measurement in index.measurements(database)? {
            query_measurement(&index, database, &measurement, &ids.iter().copied().collect());
        }
    }
    Ok(())
}

fn query_measurement(
    index: &SeriesIndex,
    database: DatabaseId,
    measurement: &Name,
    ids: &RoaringTreemap,
) {
    let budget = Budget::new("fuzzing", 1 << 20);
    let mut visits = 0;
    let mut go_on = || {
        visits += 1;
        if visits < 1_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut seen = Vec::new();
    let _ = index.for_each_key(database, measurement, None, None, &mut |_, key| {
        seen.push(key.clone());
        go_on()
    });
    let middle = seen.get(seen.len() / 2);
    let _ = index.for_each_key(database, measurement, None, middle, &mut |_, _| go_on());
    let _ = index.for_each_key(database, measurement, Some(ids), None, &mut |_, _| go_on());
    let keys = index.tag_keys(database, measurement, Some(ids)).unwrap_or_default();
    let _ = index.tag_columns(database, measurement, ids, &keys, &budget);
    let any = Regex::new("[0-4]$").expect("BUG: the pattern is right");
    for key in keys.iter().chain([&Name::from("host")]) {
        for after in [None, Some("b")] {
            let visit = &mut |_: &str| go_on();
            let _ = index.for_each_tag_value(database, measurement, key, None, after, visit);
        }
        let _ = index.tag_values(database, measurement, key, Some(ids));
        for expr in [
            TagExpr::Equals(key.clone(), "a".into()),
            TagExpr::Equals(key.clone(), "".into()),
            TagExpr::Matches(key.clone(), any.clone()),
            TagExpr::SameValue(key.clone(), "host".into()),
        ] {
            let _ = index.select(database, measurement, &expr);
        }
        if let Ok(all) = index.select(database, measurement, &TagExpr::True) {
            let _ =
                index.tag_columns(database, measurement, &all, std::slice::from_ref(key), &budget);
        }
    }
}

/// A file that is only ever read.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn refuse(&self, operation: &'static str) -> DiskError {
        let source = io::ErrorKind::Unsupported.into();
        DiskError { operation, path: self.path().to_owned(), offset: None, source }
    }
}

impl File for Bytes {
    fn path(&self) -> &Path {
        Path::new("fuzzed.run")
    }

    fn len(&self) -> DiskResult<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.0.get(start..).and_then(|rest| rest.get(..buf.len()));
        let Some(found) = found else {
            let source = io::ErrorKind::UnexpectedEof.into();
            let path = self.path().to_owned();
            return Err(DiskError { operation: "read", path, offset: Some(offset), source });
        };
        buf.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> DiskResult<()> {
        Err(self.refuse("write"))
    }

    fn set_len(&self, _len: u64) -> DiskResult<()> {
        Err(self.refuse("set length"))
    }

    fn reserve(&self, _len: u64) -> DiskResult<()> {
        Err(self.refuse("reserve"))
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn sync(&self) -> DiskResult<()> {
        Err(self.refuse("sync"))
    }
}

#[cfg(test)]
mod tests;
