//! Asking for memory before it is needed.

/// Has the cache line in which `value` begins fetched from memory, and does not wait for it: whoever walks along
/// pointers of many things asks for the next of all of them, and then follows the first. Reads nothing; does
/// nothing on processors that have no such instruction here.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction (SSE, which all of these processors have) changes nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
