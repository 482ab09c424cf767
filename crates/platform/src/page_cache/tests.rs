use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::shard::ENTRY_OVERHEAD_BYTES;
use super::*;
use crate::disk::DiskResult;

/// A file whose bytes follow from their offsets, but for one that cannot be read, and that counts reads.
#[derive(Debug)]
struct Pattern {
    len: u64,
    bad: Option<u64>,
    reads: AtomicU64,
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes_at(offset: u64, len: u32) -> Vec<u8> {
    (offset..offset + u64::from(len)).map(byte_at).collect()
}

fn range_at(offset: u64, len: u32) -> PageRange {
    PageRange { offset, len, crc32c: crc32c::crc32c(&bytes_at(offset, len)) }
}

impl File for Pattern {
    fn path(&self) -> &Path {
        Path::new("pattern")
    }
    fn len(&self) -> DiskResult<u64> {
        Ok(self.len)
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> DiskResult<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let end = offset + buf.len() as u64;
        if end > self.len || self.bad.is_some_and(|bad| (offset..end).contains(&bad)) {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            let path = self.path().to_owned();
            return Err(DiskError { operation: "read", path, offset: Some(offset), source });
        }
        buf.copy_from_slice(&bytes_at(offset, buf.len() as u32));
        Ok(())
    }
    fn write_at(&self, _: &[u8], _: u64) -> DiskResult<()> {
        unreachable!()
    }
    fn set_len(&self, _: u64) -> DiskResult<()> {
        unreachable!()
    }
    fn reserve(&self, _: u64) -> DiskResult<()> {
        unreachable!()
    }
    fn start_writeback(&self, _: u64, _: u64) {}
    fn sync(&self) -> DiskResult<()> {
        unreachable!()
    }
}

fn pattern() -> (Arc<Pattern>, CacheFile) {
    pattern_with(None)
}

fn pattern_with(bad: Option<u64>) -> (Arc<Pattern>, CacheFile) {
    let file = Arc::new(Pattern { len: 1 << 30, bad, reads: AtomicU64::new(0) });
    (Arc::clone(&file), CacheFile::new(file))
}

fn get(cache: &PageCache, file: &CacheFile, offset: u64, len: u32) -> Arc<Page> {
    let expected = bytes_at(offset, len);
    let page = cache.get_or_read(file, &range_at(offset, len), true).unwrap();
    assert_eq!(**page, expected[..]);
    page
}

fn is_cached(cache: &PageCache, file: &CacheFile, offset: u64) -> bool {
    let before = cache.stats().hits;
    cache.get_or_read(file, &range_at(offset, 100), false).unwrap();
    cache.stats().hits > before
}

#[test]
fn a_page_is_read_once_and_files_are_apart() {
    let cache = PageCache::new(1 << 20);
    let ((disk, file), (_, other)) = (pattern(), pattern());
    let first = get(&cache, &file, 100, 1000);
    let again = get(&cache, &file.clone(), 100, 1000);
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(disk.reads.load(Ordering::Relaxed), 1);
    assert!(!Arc::ptr_eq(&first, &get(&cache, &other, 100, 1000)));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (1, 2, 2));
    assert_eq!(stats.bytes_used, 2 * (1000 + ENTRY_OVERHEAD_BYTES as u64));

    // Another length at the same offset is another request, answered right.
    get(&cache, &file, 100, 500);
    get(&cache, &file, 100, 1000);

    cache.remove_file(file.id());
    assert_eq!(cache.stats().entries, 1);
    get(&cache, &file, 100, 1000);
    assert_eq!(disk.reads.load(Ordering::Relaxed), 3);
}

#[test]
fn wrong_bytes_and_disk_failures_are_told_and_not_kept() {
    let cache = PageCache::new(1 << 20);
    let (_, file) = pattern();
    let crc = range_at(8, 16).crc32c;
    match cache.get_or_read(&file, &PageRange { crc32c: crc ^ 1, ..range_at(8, 16) }, true) {
        Err(PageError::Checksum { path, offset: 8, len: 16, expected, found }) => {
            assert_eq!((expected, found), (crc ^ 1, crc));
            assert_eq!(path, Path::new("pattern"));
        }
        other => panic!("{other:?}"),
    }
    let beyond = cache.get_or_read(&file, &range_at(1 << 30, 16), true);
    assert!(matches!(beyond, Err(PageError::Disk(_))), "{beyond:?}");
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn pages_that_lie_close_are_read_at_once_in_any_order() {
    let cache = PageCache::new(1 << 20);
    let (disk, file) = pattern();
    let reads = || disk.reads.swap(0, Ordering::Relaxed);
    let get_all = |ranges: &[(u64, u32)], keep: bool| {
        let ranges: Vec<_> = ranges.iter().map(|(at, len)| range_at(*at, *len)).collect();
        let pages = cache.get_or_read_all(&file, &ranges, keep).unwrap();
        assert_eq!(pages.len(), ranges.len());
        for (page, range) in pages.iter().zip(&ranges) {
            assert_eq!(***page, bytes_at(range.offset, range.len)[..]);
        }
        reads()
    };
    assert_eq!(get_all(&[], true), 0);
    assert_eq!(get_all(&[(5000, 700), (100, 50), (150, 1000), (5700, 1)], false), 1);
    assert_eq!(cache.stats().entries, 0);
    // Gaps of 8 KiB are read along, longer ones are not.
    assert_eq!(get_all(&[(0, 100), (100 + 8192, 100)], false), 1);
    assert_eq!(get_all(&[(0, 100), (101 + 8192, 100)], false), 2);
    // Nor runs of more than 256 KiB, and a longer page is read alone.
    assert_eq!(get_all(&[(0, 100_000), (100_000, 100_000), (200_000, 100_000)], false), 2);
    assert_eq!(get_all(&[(0, 10), (10, 300_000), (300_010, 10)], false), 3);
    // What is there is not read again, but may lie in a gap.
    get(&cache, &file, 2000, 500);
    assert_eq!(reads(), 1);
    assert_eq!(get_all(&[(2500, 500), (2000, 500), (1500, 500)], true), 1);
    assert_eq!(get_all(&[(1500, 500), (2000, 500), (2500, 500)], false), 0);
    assert_eq!(cache.stats().entries, 3);
}

#[test]
fn what_lies_between_pages_keeps_none_from_being_read() {
    let cache = PageCache::new(1 << 20);
    let (disk, file) = pattern_with(Some(1500));
    let ranges = [range_at(0, 1000), range_at(1000, 500), range_at(1501, 100)];
    let pages = cache.get_or_read_all(&file, &ranges, true).unwrap();
    assert!(pages.iter().zip(&ranges).all(|(p, r)| ***p == bytes_at(r.offset, r.len)[..]));
    assert_eq!(disk.reads.load(Ordering::Relaxed), 4);
    let failed = cache.get_or_read_all(&file, &[range_at(0, 1000), range_at(1400, 200)], true);
    match failed {
        Err(PageError::Disk(error)) => assert_eq!(error.offset, Some(1400)),
        other => panic!("{other:?}"),
    }
    let wrong = PageRange { crc32c: 7, ..ranges[1] };
    match cache.get_or_read_all(&CacheFile::new(disk), &[ranges[0], wrong, ranges[2]], true) {
        Err(PageError::Checksum { offset: 1000, len: 500, expected: 7, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn objects_share_the_bound_and_are_made_once() {
    let cache = PageCache::new(100_000);
    let make = |text: &str| {
        cache.get_or_insert_with(7, 0, 1, 50_000, || Ok::<_, &str>(text.to_owned())).unwrap()
    };
    assert_eq!(*make("first"), "first");
    assert_eq!(*make("second"), "first");
    let number = cache.get_or_insert_with(7, 0, 2, 40_000, || Ok::<u32, &str>(5));
    assert_eq!(number.as_deref(), Ok(&5));
    let failed = cache.get_or_insert_with(7, 8, 2, 10, || Err::<u32, &str>("no"));
    assert_eq!(failed, Err("no"));
    assert_eq!(cache.stats().entries, 2);
    let (_, file) = pattern();
    get(&cache, &file, 0, 30_000);
    assert!(cache.stats().bytes_used <= 100_000);
    assert_eq!(cache.stats().evictions, 1);
    cache.remove_file(7);
    assert!(cache.stats().entries <= 1);
}

#[test]
fn an_object_that_grows_takes_the_place_of_others() {
    let cache = PageCache::with_shards(10_000, 1);
    let make = |offset| {
        cache.get_or_insert_with(7, offset, 1, 3000, || Ok::<u64, ()>(offset)).expect("cannot fail")
    };
    let (first, second) = (make(1), make(2));
    let used = cache.stats().bytes_used;
    cache.grow(7, 2, 1, &second, 1000);
    assert_eq!(cache.stats().bytes_used, used + 1000);
    // Another object than the one the cache holds there, and one it never held.
    cache.grow(7, 2, 1, &first, 1000);
    cache.grow(7, 3, 1, &first, 1000);
    assert_eq!(cache.stats().bytes_used, used + 1000);
    cache.grow(7, 2, 1, &second, 4000);
    assert_eq!((cache.stats().entries, cache.stats().evictions), (1, 1));
    cache.grow(7, 2, 1, &second, 4000);
    assert_eq!((cache.stats().entries, cache.stats().bytes_used), (0, 0));
}

#[test]
fn an_entry_larger_than_the_cache_is_not_kept() {
    let cache = PageCache::new(1000);
    let (_, file) = pattern();
    get(&cache, &file, 0, 900);
    assert_eq!(cache.stats().entries, 0);
    get(&PageCache::new(0), &file, 0, 900);
}

#[test]
fn a_scan_does_not_wipe_what_is_hot() {
    let cache = PageCache::with_shards(200 * (100 + ENTRY_OVERHEAD_BYTES), 1);
    let (_, file) = pattern();
    let hot = || (0..100u64).map(|i| i * 100);
    for _ in 0..4 {
        hot().for_each(|offset| drop(get(&cache, &file, offset, 100)));
    }
    // Twice in a row each, as a scan that reads a page's head and then the page does.
    for i in 1000..20_000u64 {
        get(&cache, &file, i * 100, 100);
        get(&cache, &file, i * 100, 100);
    }
    let kept = hot().filter(|&offset| is_cached(&cache, &file, offset)).count();
    assert_eq!(kept, 100);
    // But what is not asked for any more makes room for what is.
    for _ in 0..20 {
        for i in 30_000..30_180u64 {
            get(&cache, &file, i * 100, 100);
        }
    }
    let fresh = (30_000..30_180u64).filter(|i| is_cached(&cache, &file, i * 100)).count();
    assert!(fresh > 150, "{fresh}");
}

#[test]
fn an_uncached_read_leaves_no_trace() {
    let cache = PageCache::new(1 << 20);
    let (disk, file) = pattern();
    let read = || cache.get_or_read(&file, &range_at(0, 100), false).unwrap();
    read();
    read();
    assert_eq!((cache.stats().entries, disk.reads.load(Ordering::Relaxed)), (0, 2));
    get(&cache, &file, 0, 100);
    read();
    assert_eq!(disk.reads.load(Ordering::Relaxed), 3);
}

#[test]
fn threads_get_the_right_bytes_while_files_come_and_go() {
    let cache = PageCache::with_shards(64 << 10, 4);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut state = thread + 1;
                let (_, mut file) = pattern();
                for round in 0..4000 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let offset = (state >> 33) % 50 * 1000;
                    get(cache, &file, offset, 1000);
                    let shared = cache
                        .get_or_insert_with(u64::MAX, offset, 0, 500, || Ok::<u64, ()>(offset));
                    assert_eq!(shared.as_deref(), Ok(&offset));
                    if round % 500 == 499 {
                        cache.remove_file(file.id());
                        file = pattern().1;
                    }
                }
                cache.remove_file(file.id());
            });
        }
    });
    cache.remove_file(u64::MAX);
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.bytes_used), (0, 0));
    assert_eq!(stats.hits + stats.misses, 4 * 4000 * 2);
    cache.shards.iter().for_each(|shard| shard.0.lock().check());
}

#[derive(Clone, Debug)]
enum Step {
    Get {
        file: usize,
        page: u64,
    },
    /// An object that takes more once it is there.
    Object {
        file: usize,
        page: u64,
        cost: usize,
        more: usize,
    },
    Remove {
        file: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..3usize, 0..40u64).prop_map(|(file, page)| Step::Get { file, page }),
        5 => (0..3usize, 0..40u64, 0..3000usize, 0..3000usize)
            .prop_map(|(file, page, cost, more)| Step::Object { file, page, cost, more }),
        1 => (0..3usize).prop_map(|file| Step::Remove { file }),
    ]
}

proptest! {
    #[test]
    fn the_bound_holds_and_answers_are_right(
        capacity in 0..20_000usize,
        shards in 0..3u32,
        steps in proptest::collection::vec(step(), 1..400),
    ) {
        let shards = 1 << shards;
        let cache = PageCache::with_shards(capacity, shards);
        let files: Vec<_> = (0..3).map(|_| pattern().1).collect();
        let mut kept = HashMap::new();
        for step in steps {
            let before = cache.stats().evictions;
            match step {
                Step::Get { file, page } => {
                    get(&cache, &files[file], page * 700, 50 + page as u32 * 30);
                }
                Step::Object { file, page, cost, more } => {
                    let mut again = false;
                    let id = files[file].id();
                    let object = cache.get_or_insert_with(id, page * 700, 9, cost, || {
                        again = true;
                        Ok::<_, ()>((file, page))
                    });
                    prop_assert_eq!(object.as_deref(), Ok(&(file, page)));
                    // Kept while nothing is evicted; surely gone if never kept or removed.
                    match kept.get(&(file, page)) {
                        Some(evictions) if *evictions == before => prop_assert!(!again),
                        Some(_) => {}
                        None => prop_assert!(again),
                    }
                    if again && cost + ENTRY_OVERHEAD_BYTES > capacity / shards {
                        kept.remove(&(file, page));
                    } else {
                        kept.insert((file, page), cache.stats().evictions);
                    }
                    // May evict the object itself.
                    if let Ok(object) = &object {
                        cache.grow(id, page * 700, 9, object, more);
                    }
                }
                Step::Remove { file } => {
                    cache.remove_file(files[file].id());
                    kept.retain(|(of, _), _| *of != file);
                }
            }
            cache.shards.iter().for_each(|shard| shard.0.lock().check());
            prop_assert!(cache.stats().bytes_used <= capacity as u64);
        }
    }
}
