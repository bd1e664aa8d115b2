//! Shared that several engines of one program share.

#![allow(unsafe_code, reason = "threads share it as cores share memory")]

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rounds of waiting after which a waiter yields its core: the thread inside may have lost its own.
const SPINS: u32 = 100;

/// Values that live as long as some engine has them. A clone is a copy;
/// [`share`](Shared::share) gives the same values to another engine.
///
/// [`get`](Shared::get) and [`get_mut`](Shared::get_mut) are for an engine that is inside
/// the program's [`Gate`], or alone.
pub(crate) struct Shared<T>(Arc<Values<T>>);

struct Values<T>(UnsafeCell<Box<[T]>>);

// SAFETY: an engine with fellows reaches the values only while it is inside the gate (see
// `Shared`), so that no two threads do so at once.
unsafe impl<T: Send> Send for Values<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Values<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(values: Vec<T>) -> Shared<T> {
        Shared(Arc::new(Values(UnsafeCell::new(values.into_boxed_slice()))))
    }

    /// Handle on the same values, for another engine.
    pub(crate) fn share(&self) -> Shared<T> {
        Shared(self.0.clone())
    }

    pub(crate) fn get(&self) -> &[T] {
        // SAFETY: the values live as long as `self`; for writes at the same time see `Shared`.
        unsafe { &*self.0.0.get() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `get`.
        unsafe { &mut *self.0.0.get() }
    }
}

impl<T: Clone> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared::new(self.get().to_vec())
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Gate that admits one engine at a time to the atomic blocks of a program. An engine alone passes
/// without it.
#[derive(Default)]
pub(crate) struct Gate {
    taken: Option<Arc<AtomicBool>>,
    /// Atomic blocks that the engine is in, one within the other.
    depth: u32,
}

impl Gate {
    /// Handle on the same gate, for another engine.
    pub(crate) fn share(&mut self) -> Gate {
        let taken = self.taken.get_or_insert_with(Arc::default);
        Gate {
            taken: Some(taken.clone()),
            depth: 0,
        }
    }

    /// Enters an atomic block.
    pub(crate) fn enter(&mut self) {
        self.depth += 1;
        let Some(taken) = self.taken.as_ref().filter(|_| self.depth == 1) else {
            return;
        };
        let mut spins = 0;
        while taken
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            spins += 1;
            match spins % SPINS {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Leaves the innermost atomic block.
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.open();
        }
    }

    /// Leaves all atomic blocks.
    pub(crate) fn leave_all(&mut self) {
        if self.depth > 0 {
            self.depth = 0;
            self.open();
        }
    }

    fn open(&self) {
        if let Some(taken) = &self.taken {
            taken.store(false, Ordering::Release);
        }
    }
}

impl PartialEq for Gate {
    /// States are compared by what they hold.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Gate {}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}
