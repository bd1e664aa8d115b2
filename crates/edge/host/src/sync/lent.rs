//! A value that one thread works on, and at which others look while that thread waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// A value that its owner lends for as long as it waits for something else. Threads look at it one
/// at a time. One that finds it with its owner is let in the next time that it is lent, before the
/// owner has it back; looks that begin when the owner wants it back wait for the next time, so that
/// neither side keeps the other out.
pub(super) struct Lent<T> {
    state: Mutex<State<T>>,
    /// It was lent or has ended, or all that waited for it have come to look.
    changed: Condvar,
    /// The owner wants it back. It is set without the lock, which a thread that looks again and again
    /// would hardly let go of.
    wanted: AtomicBool,
}

struct State<T> {
    /// There while it is lent.
    value: Option<T>,
    /// How often it was lent.
    turn: u64,
    /// Threads that wait for the next turn.
    waiting: usize,
    /// Threads that waited for this turn and have not come to look.
    owed: usize,
    has_ended: bool,
}

impl<T> Lent<T> {
    /// A value that is with its owner.
    pub(super) fn new() -> Lent<T> {
        Lent {
            state: Mutex::new(State {
                value: None,
                turn: 0,
                waiting: 0,
                owed: 0,
                has_ended: false,
            }),
            changed: Condvar::new(),
            wanted: AtomicBool::new(false),
        }
    }

    /// Lends `value` while `meanwhile` runs, and gives it back with the outcome. It waits for looks
    /// that have begun, and for those of threads that waited for it to be lent.
    pub(super) fn lend<R>(&self, value: T, meanwhile: impl FnOnce() -> R) -> (T, R) {
        let mut state = self.lock();
        state.value = Some(value);
        state.turn += 1;
        state.owed = std::mem::take(&mut state.waiting);
        self.wanted.store(false, Ordering::Relaxed);
        if state.owed > 0 {
            self.changed.notify_all();
        }
        drop(state);
        let outcome = meanwhile();
        self.wanted.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        loop {
            if state.owed == 0
                && let Some(value) = state.value.take()
            {
                return (value, outcome);
            }
            let changed = self.changed.wait(state);
            state = changed.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets `look` see the value, once it is lent; `None` if it will not be any more. The owner gets
    /// it back when `look` has ended.
    pub(super) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let mut state = self.lock();
        if state.value.is_none() || self.wanted.load(Ordering::Relaxed) {
            let turn = state.turn;
            state.waiting += 1;
            let waits = |state: &mut State<T>| state.turn == turn && !state.has_ended;
            let changed = self.changed.wait_while(state, waits);
            state = changed.unwrap_or_else(PoisonError::into_inner);
            if state.turn > turn {
                // The lock holds the owner off until the look has ended, by a panic too.
                state.owed -= 1;
                if state.owed == 0 {
                    self.changed.notify_all();
                }
            }
        }
        state.value.as_ref().map(look)
    }

    /// Lets `work` have the value if it is lent at this moment and nobody looks at it; `None` if not.
    pub(super) fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if self.wanted.load(Ordering::Relaxed) {
            return None;
        }
        state.value.as_mut().map(work)
    }

    /// It is not lent any more: who waits for it, or begins to, gets `None`.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// A look that panics changes nothing, and leaves the value as good as it was.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
