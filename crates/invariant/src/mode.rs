//! Panic or production.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

static PANICS: AtomicBool = AtomicBool::new(cfg!(debug_assertions));

std::thread_local! {
    static IN_PRODUCTION: Cell<bool> = const { Cell::new(false) };
}

/// Lets broken invariants panic in this process, in release builds too: for simulation and
/// fuzzing.
pub fn panic_in_release() {
    PANICS.store(true, Ordering::Relaxed);
}

/// Runs `test` with the effects of production on this thread.
pub fn in_production<T>(test: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_PRODUCTION.set(self.0);
        }
    }
    let _restore = Restore(IN_PRODUCTION.replace(true));
    test()
}

/// True if a broken invariant panics here.
pub(crate) fn panics() -> bool {
    PANICS.load(Ordering::Relaxed) && !IN_PRODUCTION.get()
}
