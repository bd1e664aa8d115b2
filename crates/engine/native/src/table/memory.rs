//! Large tables and the machine's caches.

#![allow(unsafe_code, reason = "tells the machine how memory will be used")]

/// Memory from this size on is worth pages of 2 MiB.
const LARGE: usize = 4 << 20;

/// Asks for huge pages under large memory: a lookup in it otherwise misses the
/// translation's cache besides the data's.
pub(crate) fn prefer_huge_pages<T>(memory: *const T, bytes: usize) {
    if bytes < LARGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let start = memory.addr();
        let aligned = start.next_multiple_of(4096);
        let length = bytes.saturating_sub(aligned - start);
        // SAFETY: whole pages within a live allocation; the advice does not change what
        // they hold. Where it is not taken, all works as before.
        unsafe {
            libc::madvise(aligned as *mut libc::c_void, length, libc::MADV_HUGEPAGE);
        }
    }
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for all lines of `items`.
#[inline]
pub(crate) fn prefetch_all<T>(items: &[T]) {
    let step = (LINE / size_of::<T>().max(1)).max(1);
    items.iter().step_by(step).for_each(prefetch);
}

/// Asks for a line of the cache.
#[inline]
pub(crate) fn prefetch<T>(word: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: a prefetch has no effect but on the cache.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}
