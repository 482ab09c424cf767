//! The allocator of the process, and how it keeps memory that was freed.
//!
//! Requests, flushes and merges take and free megabytes many times a second, each on another thread
//! than the one before. What was freed has to be found again by whoever comes next, or the process grows
//! far beyond what its budgets know of; and it must not go back to the system in between, which clears it
//! before it is used again: a quarter of the processor time of a load.

use std::ffi::c_char;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr::{from_mut, null_mut};

    /// A setting as jemalloc understood it.
    #[allow(unsafe_code)]
    fn setting<T: Copy>(name: &CStr, mut value: T) -> T {
        let mut len = size_of::<T>();
        // SAFETY: the name ends with a zero byte; jemalloc writes no more than `len` bytes, and fails if the
        // option has another size.
        let failed = unsafe {
            tikv_jemalloc_sys::mallctl(
                name.as_ptr(),
                from_mut(&mut value).cast(),
                &raw mut len,
                null_mut(),
                0,
            )
        };
        assert_eq!((failed, len), (0, size_of::<T>()), "{name:?}");
        value
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
}
