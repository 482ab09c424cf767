//! The allocator of the process, and how long it keeps memory that was freed.
//!
//! Requests, flushes and merges free and take megabytes many times a second. Memory that goes back to
//! the system in between has to be cleared by the kernel before it is used again: a quarter of the
//! processor time of a load, with mimalloc's second of patience. Memory that nobody takes again goes
//! back all the same, later.

/// Milliseconds that freed memory is kept for the next who needs some. `MIMALLOC_PURGE_DELAY` in the
/// environment beats it.
const PURGE_DELAY_MS: std::ffi::c_long = 10_000;

/// `mi_option_purge_delay` of mimalloc 2 and 3 (`mimalloc.h`), which the bindings do not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sets the allocator up. To be called before threads are started that need it so.
#[allow(unsafe_code)]
pub(crate) fn set_up() {
    // SAFETY: the option exists in every version that the bindings build, and takes any number. It is
    // one word that threads read now and then: whoever does so meanwhile finds the old or the new number.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the option is this crate's word alone: what the bindings build must agree.
    #[test]
    #[allow(unsafe_code)]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads an option that exists.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert!(
            std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() || [10, 1000].contains(&delay())
        );
        set_up();
        assert!(std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() || delay() == PURGE_DELAY_MS);
    }
}
