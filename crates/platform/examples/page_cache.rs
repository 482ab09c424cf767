//! Measures hits of the page cache, alone and from several threads.
//!
//! `cargo run --release -p platform --example page_cache`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use platform::{CacheFile, Disk, FaultConfig, PageCache, PageRange, SimDisk};

const PAGES: u64 = 1024;
const PAGE_BYTES: usize = 4096;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = SimDisk::new(1, FaultConfig::default());
    disk.create_dir_all(Path::new("/d"))?;
    let file = disk.create(Path::new("/d/pages"))?;
    let bytes = vec![1; PAGE_BYTES];
    for page in 0..PAGES {
        file.write_at(&bytes, page * PAGE_BYTES as u64)?;
    }
    let (file, crc) = (CacheFile::new(file), crc32c::crc32c(&bytes));
    let get = |cache: &PageCache, page: u64| {
        let offset = page % PAGES * PAGE_BYTES as u64;
        let range = PageRange { offset, len: PAGE_BYTES as u32, crc32c: crc };
        cache.get_or_read(&file, &range, true).map(Arc::into_inner)
    };
    let cache = PageCache::new(256 << 20);
    for page in 0..PAGES {
        get(&cache, page)?;
    }
    for threads in [1, 2, 4] {
        let rounds = 2_000_000u64;
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (cache, get) = (&cache, &get);
                    scope.spawn(move || {
                        for round in 0..rounds {
                            let page = (round + thread * 77).wrapping_mul(0x9e37_79b9) >> 7;
                            get(cache, page).expect("BUG: a page cannot be read");
                        }
                    });
                }
            });
            best = best.min(begun.elapsed());
        }
        let ns = best.as_nanos() as f64 / rounds as f64;
        println!("{threads} threads: {ns:.1} ns a hit and thread");
    }
    let small = PageCache::new(64 * PAGE_BYTES);
    let begun = Instant::now();
    for page in 0..PAGES * 100 {
        get(&small, page)?;
    }
    let ns = begun.elapsed().as_nanos() as f64 / (PAGES * 100) as f64;
    println!("a miss of {PAGE_BYTES} bytes with an eviction, memory disk: {ns:.0} ns");
    println!("{:?}", cache.stats());
    Ok(())
}
