//! Values that several engines of one program share.

#![allow(unsafe_code, reason = "threads share it as cores share memory")]

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

/// Values that live as long as some engine has them. A clone is a copy;
/// [`share`](Shared::share) gives the same values to another engine.
///
/// [`get`](Shared::get) and [`get_mut`](Shared::get_mut) are for an engine that holds the
/// lock of the element, or is alone.
pub(crate) struct Shared<T>(Arc<Values<T>>);

struct Values<T>(Box<[UnsafeCell<T>]>);

// SAFETY: an engine with fellows reaches an element only while it holds the element's lock
// (see `Shared`), so that no two threads do so at once.
unsafe impl<T: Send> Send for Values<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Values<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(values: Vec<T>) -> Shared<T> {
        Shared(Arc::new(Values(
            values.into_iter().map(UnsafeCell::new).collect(),
        )))
    }

    /// Handle on the same values, for another engine.
    pub(crate) fn share(&self) -> Shared<T> {
        Shared(self.0.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.0.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let cell = self.0.0.get(index)?;
        // SAFETY: the values live as long as `self`; for writes at the same time see `Shared`.
        Some(unsafe { &*cell.get() })
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let cell = self.0.0.get(index)?;
        // SAFETY: as for `get`; only this element is borrowed, so that a fellow may have another.
        Some(unsafe { &mut *cell.get() })
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<T: Clone> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared::new(self.iter().cloned().collect())
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
