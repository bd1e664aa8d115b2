//! Locks of atomic blocks.

#[cfg(test)]
mod tests;

use crate::register::{LockPlacement, Memory};
use stateplane_cells::LockPlan;
use stateplane_ir::MOST_UNITS;
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
    /// For each domain what the engine holds.
    held: Vec<Option<Held>>,
    /// In a block that stands apart the domains that the block around it holds.
    around: Vec<bool>,
    waits: u64,
}

/// What an engine holds of a domain: the offsets of locks in memory, and how many there are. There
/// is none if the block's index is past the end of the arrays.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Held([usize; MOST_UNITS], usize);

/// Offset of a lock that there is not.
const NONE: usize = usize::MAX;

impl Held {
    /// Takes the locks at these offsets, the lowest first and each once; gives how many of them
    /// another engine held.
    fn take_in_order(
        &mut self,
        mut wanted: [usize; MOST_UNITS],
        mut take: impl FnMut(usize) -> bool,
    ) -> u64 {
        wanted.sort_unstable();
        let mut waits = 0;
        for offset in wanted {
            if offset != NONE && self.offsets().last() != Some(&offset) {
                waits += u64::from(take(offset));
                self.0[self.1] = offset;
                self.1 += 1;
            }
        }
        waits
    }

    /// Holds the locks at these offsets: nothing happens if it does already, else it lets go of its
    /// own first, so that it waits for none while it has others. Gives what
    /// [`take_in_order`](Self::take_in_order) does.
    fn change_to(
        &mut self,
        wanted: [usize; MOST_UNITS],
        take: impl FnMut(usize) -> bool,
        release: impl FnMut(usize),
    ) -> u64 {
        let mut wanted_ones = wanted.iter().filter(|offset| **offset != NONE);
        if wanted_ones.all(|offset| self.offsets().contains(offset)) {
            return 0;
        }
        let before = std::mem::take(self);
        before.offsets().iter().copied().for_each(release);
        self.take_in_order(wanted, take)
    }

    fn offsets(&self) -> &[usize] {
        let Held(offsets, count) = self;
        &offsets[..*count]
    }
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
        self.release(|_| true);
    }

    /// Enters a block that is no part of the one around it.
    pub(crate) fn enter_apart(&mut self) {
        self.enter();
        self.around.clear();
        self.around.extend(self.held.iter().map(Option::is_some));
    }

    /// Leaves the block: what it took is free, and what the block around it holds is held on.
    pub(crate) fn leave_apart(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        let around = std::mem::take(&mut self.around);
        self.release(|domain| !around.get(domain).is_some_and(|held| *held));
        self.around = around;
    }

    fn release(&mut self, is_due: impl Fn(usize) -> bool) {
        let Some(shared) = &self.shared else {
            return;
        };
        for (domain, held) in self.held.iter_mut().enumerate() {
            if let Some(given) = held.take_if(|_| is_due(domain)) {
                for offset in given.offsets() {
                    shared.memory.flag(*offset).release();
                }
            }
        }
    }

    /// Takes the locks of units, and lets go of others of the domain. If the block holds all of them,
    /// it keeps what it holds. Their order keeps blocks that need the same two units from waiting for
    /// each other.
    pub(crate) fn lock_units(&mut self, domain: Option<usize>, numbers: &[u64]) {
        let (Some(shared), Some(domain)) = (&self.shared, domain) else {
            return;
        };
        if self.depth == 0 {
            return;
        }
        let placement = shared.placements[domain];
        let mut wanted = [NONE; MOST_UNITS];
        for (wanted, number) in wanted.iter_mut().zip(numbers) {
            *wanted = placement.offset(*number).unwrap_or(NONE);
        }
        self.waits += self.held[domain].get_or_insert_default().change_to(
            wanted,
            |offset| take(shared.memory.flag(offset)),
            |offset| shared.memory.flag(offset).release(),
        );
    }

    /// Takes the lock of a domain for the element at `index`, unless the block holds it.
    pub(crate) fn lock(&mut self, domain: Option<usize>, index: u64) {
        let (Some(shared), Some(domain)) = (&self.shared, domain) else {
            return;
        };
        if self.depth == 0 {
            return;
        }
        let mut wanted = Held::default();
        if let Some(offset) = shared.placements[domain].offset(index) {
            (wanted.0[0], wanted.1) = (offset, 1);
        }
        match self.held[domain] {
            // The plan has one index for each domain in a block.
            Some(held) => debug_assert!(held == wanted, "domain {domain} has two indices"),
            None => {
                if let [offset] = *wanted.offsets()
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
