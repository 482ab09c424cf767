//! The allocator of the process, and how it keeps memory that was freed.
//!
//! Requests, flushes and merges take and free megabytes many times a second, each on another thread
//! than the one before. What was freed has to be found again by whoever comes next, or the process grows
//! far beyond what its budgets know of; and it must not go back to the system in between, which clears it
//! before it is used again: a quarter of the processor time of a load.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_char};
use std::ptr::{from_mut, null_mut};

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Clearing = Clearing;

/// jemalloc, but that memory which has to be zero is cleared by hand.
///
/// jemalloc itself gives large pieces that were in use before back to the system and takes them again, page by
/// page, each cleared then: 1 to 4 us for 4 KiB on virtual machines, which clearing takes a tenth of.
struct Clearing;

// SAFETY: all calls go to an allocator that keeps the contract, unchanged; `alloc_zeroed` is the trait's own, which
// calls `alloc` and clears.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Clearing {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised; all memory is from there.
        unsafe { Jemalloc.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promised; all memory is from there.
        unsafe { Jemalloc.realloc(memory, layout, bytes) }
    }
}

/// Settings of jemalloc, in its notation (jemalloc(3), "TUNING"); `_RJEM_MALLOC_CONF` in the environment beats them.
///
/// - One arena a processor, not four: fewer places in which freed memory waits for its threads. (Arenas bound
///   to processors, `percpu_arena`, are no better and complain on stderr where only some may be used.)
/// - Each thread keeps what it freed up to 1 MiB a piece, so that pages and batches rarely take a lock.
/// - Larger pieces (answers of megabytes) are kept like all others, not given back at once.
/// - What nobody takes again for ten seconds goes back, also while nothing happens.
const SETTINGS: &[u8] = b"narenas_ratio:1,lg_tcache_max:20,oversize_threshold:0,\
    dirty_decay_ms:10000,muzzy_decay_ms:0,background_thread:true\0";

/// A pointer to text that ends with a zero byte and lives as long as the process.
#[repr(transparent)]
struct StaticText(*const c_char);

// SAFETY: what it points to is constant.
#[allow(unsafe_code)]
unsafe impl Sync for StaticText {}

/// jemalloc reads this pointer before the first allocation.
// SAFETY: jemalloc declares the symbol as a pointer to constant text, weakly, for programs to define it.
#[allow(unsafe_code)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: StaticText = StaticText(SETTINGS.as_ptr().cast());

/// Sets what jemalloc cannot be told before it begins. To be called first in the process.
///
/// The first arena, half of them on two processors, is made before `oversize_threshold` counts, and would give back at
/// once whatever joins to 8 MiB and more: a memtable that was flushed, say, which the next one takes again page by page.
pub(crate) fn settle() {
    let threshold = exchange(c"opt.oversize_threshold", 0_usize, None);
    if threshold == 0 {
        exchange(c"arena.0.oversize_threshold", 0, Some(usize::MAX));
    }
}

/// A value of jemalloc's by its name, which takes another then, if there is one. `value` has its type.
///
/// # Panics
/// If jemalloc has no such value, or of another size.
#[allow(unsafe_code)]
fn exchange<T: Copy>(name: &CStr, mut value: T, mut new: Option<T>) -> T {
    let mut len = size_of::<T>();
    let (new, new_len) =
        new.as_mut().map_or((null_mut(), 0), |new| (from_mut(new).cast(), size_of::<T>()));
    // SAFETY: the name ends with a zero byte; jemalloc writes no more than `len` bytes, reads no more than `new_len`,
    // and fails if the value has another size.
    let failed = unsafe {
        let value = from_mut(&mut value).cast();
        tikv_jemalloc_sys::mallctl(name.as_ptr(), value, &raw mut len, new, new_len)
    };
    assert_eq!((failed, len), (0, size_of::<T>()), "BUG: jemalloc has no such {name:?}");
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting as jemalloc understood it.
    fn setting<T: Copy>(name: &CStr, value: T) -> T {
        exchange(name, value, None)
    }

    /// Pages that this thread has touched for the first time since they came from the system.
    #[cfg(target_os = "linux")]
    fn page_faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // Behind the name, which may have spaces: state is the first field, minor faults the eighth.
        let fields = stat.rsplit_once(')').unwrap().1;
        fields.split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn zeros_do_not_come_from_the_system_each_time() {
        const LEN: usize = 3 << 20;
        const ROUNDS: u64 = 50;
        let take = || {
            let mut bytes = std::hint::black_box(vec![0u8; LEN]);
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(7);
            std::hint::black_box(bytes);
        };
        take();
        let before = page_faults();
        (0..ROUNDS).for_each(|_| take());
        // Some memory may come and go with what other tests do meanwhile.
        let pages = ROUNDS * (LEN as u64 / 4096);
        assert!(page_faults() - before < pages / 4, "of {pages} pages");
    }

    /// An unknown setting is ignored by jemalloc, as is the text if nobody links it.
    #[test]
    fn jemalloc_has_read_the_settings() {
        if std::env::var_os("_RJEM_MALLOC_CONF").is_some() {
            return;
        }
        let processors = rustix::thread::sched_getaffinity(None).unwrap().count();
        assert_eq!(setting(c"opt.narenas", 0u32) as usize, processors as usize);
        assert_eq!(setting(c"opt.tcache_max", 0usize), 1 << 20);
        assert_eq!(setting(c"opt.oversize_threshold", 1usize), 0);
        assert_eq!(setting(c"opt.dirty_decay_ms", 0isize), 10_000);
        assert_eq!(setting(c"opt.muzzy_decay_ms", 1isize), 0);
        assert!(setting(c"opt.background_thread", false));
    }

    #[test]
    fn no_arena_gives_large_pieces_back_at_once() {
        settle();
        assert!(setting(c"arena.0.oversize_threshold", 0_usize) > 1 << 40);
        // Made with its first thread.
        std::thread::spawn(|| drop(std::hint::black_box(vec![1u8; 100]))).join().unwrap();
        if setting(c"arenas.narenas", 0u32) > 1 {
            assert!(setting(c"arena.1.oversize_threshold", 0_usize) > 1 << 40);
        }
    }
}
