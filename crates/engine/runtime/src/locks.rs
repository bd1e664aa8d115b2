//! Locks of atomic blocks.

#[cfg(test)]
mod tests;

use crate::register::{LockPlacement, Memory};
use stateplane_cells::LockPlan;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// Rounds of waiting after which a waiter yields its core: the holder may have lost its own.
const SPINS: u32 = 100;

/// A lock cell: 0 if it is free, 1 if an engine holds it.
pub(crate) trait Flag {
    /// Takes the lock if it is free; true if it did.
    fn take(&self) -> bool;
    /// Gives the lock back, behind all that was written under it.
    fn release(&self);
    /// Lets time pass; `rounds` have passed.
    fn pause(&self, rounds: u32);
}

/// Makes an atomic number a [`Flag`]; `$pause` gets the rounds that have passed.
macro_rules! flag {
    ($number:ty, $pause:expr) => {
        impl $crate::locks::Flag for $number {
            fn take(&self) -> bool {
                use std::sync::atomic::Ordering::{Acquire, Relaxed};
                self.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
            }

            fn release(&self) {
                self.store(0, std::sync::atomic::Ordering::Release);
            }

            fn pause(&self, rounds: u32) {
                let pause: fn(u32) = $pause;
                pause(rounds);
            }
        }
    };
}
#[cfg(test)]
use flag;

flag!(AtomicU8, |rounds: u32| match rounds % SPINS {
    0 => std::thread::yield_now(),
    _ => std::hint::spin_loop(),
});

/// Takes a lock, and waits while another has it; true if it waited.
pub(crate) fn take(flag: &impl Flag) -> bool {
    let mut rounds = 0;
    while !flag.take() {
        rounds += 1;
        flag.pause(rounds);
    }
    rounds > 0
}

/// The locks of a program, as one of its engines sees them.
#[derive(Default)]
pub(crate) struct Locks {
    /// `None` in an engine that has no fellows.
    shared: Option<Arc<Shared>>,
    /// Atomic blocks that the engine is in, one within the other.
    depth: u32,
    /// For each domain the lock that the engine holds.
    held: Vec<Option<Held>>,
    waits: u64,
}

/// A lock that an engine holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    /// At this offset in memory.
    At(usize),
    /// The block's index is past the end of the arrays, so there is nothing to lock.
    Nothing,
}

struct Shared {
    plan: LockPlan,
    placements: Vec<LockPlacement>,
    memory: Arc<Memory>,
}

impl Locks {
    pub(crate) fn new(
        plan: LockPlan,
        placements: Vec<LockPlacement>,
        memory: Arc<Memory>,
    ) -> Locks {
        Locks {
            held: vec![None; plan.domains.len()],
            shared: Some(Arc::new(Shared {
                plan,
                placements,
                memory,
            })),
            ..Locks::default()
        }
    }

    /// The same locks, for another engine.
    pub(crate) fn share(&self) -> Locks {
        Locks {
            shared: self.shared.clone(),
            held: vec![None; self.held.len()],
            ..Locks::default()
        }
    }

    pub(crate) fn plan(&self) -> Option<&LockPlan> {
        self.shared.as_ref().map(|shared| &shared.plan)
    }

    /// The memory in which the locks lie.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.shared.as_ref().map(|shared| &*shared.memory)
    }

    /// Locks that another engine held when this one came to them.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// Waits for the lock at `offset` in memory, and takes it.
    pub(crate) fn wait(&mut self, offset: usize) {
        if let Some(shared) = &self.shared {
            self.waits += 1;
            take(shared.memory.flag(offset));
        }
    }

    pub(crate) fn enter(&mut self) {
        self.depth += 1;
    }

    /// Leaves the innermost block; the locks belong to the outermost.
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            return;
        }
        let Some(shared) = &self.shared else {
            return;
        };
        for held in &mut self.held {
            if let Some(Held::At(offset)) = held.take() {
                shared.memory.flag(offset).release();
            }
        }
    }

    /// Takes the lock of a domain for the element at `index`, unless the block holds it.
    pub(crate) fn lock(&mut self, domain: Option<usize>, index: u64) {
        let (Some(shared), Some(domain)) = (&self.shared, domain) else {
            return;
        };
        if self.depth == 0 {
            return;
        }
        let wanted = match shared.placements[domain].offset(index) {
            Some(offset) => Held::At(offset),
            None => Held::Nothing,
        };
        match self.held[domain] {
            // The plan has one index for each domain in a block.
            Some(held) => debug_assert!(held == wanted, "domain {domain} has two indices"),
            None => {
                if let Held::At(offset) = wanted
                    && take(shared.memory.flag(offset))
                {
                    self.waits += 1;
                }
                self.held[domain] = Some(wanted);
            }
        }
    }
}

impl PartialEq for Locks {
    /// States are compared by what they hold.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Locks {}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks")
            .field("depth", &self.depth)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
