//! Locks of atomic blocks.

#[cfg(test)]
mod tests;

mod bias;

use crate::register::{LockPlacement, Memory};
use bias::{Crew, Member, Taken};
use stateplane_cells::LockPlan;
use stateplane_ir::MOST_UNITS;
use std::fmt;
use std::sync::Arc;

/// The atomics of [`bias`].
mod atomics {
    pub(super) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence,
    };
}

/// Rounds of waiting after which a waiter yields its core: the holder may have lost its own.
const SPINS: u32 = 100;

/// Lets time pass; `rounds` have passed.
fn pause(rounds: u32) {
    match rounds % SPINS {
        0 => std::thread::yield_now(),
        _ => std::hint::spin_loop(),
    }
}

/// The locks of a program, as one of its engines sees them.
#[derive(Default)]
pub(crate) struct Locks {
    /// `None` in an engine that has no fellows.
    own: Option<Own>,
    /// Atomic blocks that the engine is in, one within the other.
    depth: u32,
    /// For each domain what the engine holds.
    held: Vec<Option<Held>>,
    /// In a block that stands apart the domains that the block around it holds.
    around: Vec<bool>,
    waits: u64,
}

/// An engine's part in the locks that it shares.
struct Own {
    shared: Arc<Shared>,
    member: Member,
}

/// What an engine holds of a domain: the offsets of locks in memory, and how many there are. There
/// is none if the block's index is past the end of the arrays.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Held([usize; MOST_UNITS], usize);

/// Offset of a lock that there is not.
const NONE: usize = usize::MAX;

impl Held {
    /// Takes the locks at these offsets, the lowest first and each once.
    fn take_in_order(&mut self, mut wanted: [usize; MOST_UNITS], mut take: impl FnMut(usize)) {
        wanted.sort_unstable();
        for offset in wanted {
            if offset != NONE && self.offsets().last() != Some(&offset) {
                take(offset);
                self.0[self.1] = offset;
                self.1 += 1;
            }
        }
    }

    /// Lets go of all locks, so that the engine waits for none of those at the offsets `wanted` while it
    /// has others; `None`, and nothing happens, if it has all of them.
    fn let_go_for(&mut self, wanted: &[usize]) -> Option<Held> {
        let mut wanted = wanted.iter().filter(|offset| **offset != NONE);
        let has_all = wanted.all(|offset| self.offsets().contains(offset));
        (!has_all).then(|| std::mem::take(self))
    }

    fn offsets(&self) -> &[usize] {
        let Held(offsets, count) = self;
        &offsets[..*count]
    }
}

/// States of lock cells that an engine compares and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockBytes {
    /// A cell whose lock is biased to the engine: in a burst it has the lock. No cell's, outside of one.
    pub biased: u8,
    /// A cell that the engine releases, unless it took the lock by bias.
    pub released: u8,
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
        let domains = plan.domains.len();
        Locks {
            held: vec![None; domains],
            own: Some(Own {
                shared: Arc::new(Shared {
                    plan,
                    placements,
                    memory,
                }),
                member: Member::new(Crew::new(domains * MOST_UNITS)),
            }),
            ..Locks::default()
        }
    }

    /// The same locks, for another engine.
    pub(crate) fn share(&self) -> Locks {
        Locks {
            own: self.own.as_ref().map(|own| Own {
                shared: own.shared.clone(),
                member: own.member.fellow(),
            }),
            held: vec![None; self.held.len()],
            ..Locks::default()
        }
    }

    pub(crate) fn plan(&self) -> Option<&LockPlan> {
        self.own.as_ref().map(|own| &own.shared.plan)
    }

    /// The memory in which the locks lie.
    pub(crate) fn memory(&self) -> Option<&Memory> {
        self.own.as_ref().map(|own| &*own.shared.memory)
    }

    /// Locks that another engine held, or had to answer for, when this one came to them.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// See [`TargetState::begin_burst`](crate::TargetState::begin_burst).
    pub(crate) fn begin_burst(&mut self) -> LockBytes {
        if let Some(own) = &mut self.own {
            own.member.begin_burst();
        }
        self.bytes()
    }

    /// See [`TargetState::end_burst`](crate::TargetState::end_burst).
    pub(crate) fn end_burst(&mut self) -> LockBytes {
        if let Some(own) = &mut self.own {
            own.member.end_burst();
        }
        self.bytes()
    }

    pub(crate) fn bytes(&self) -> LockBytes {
        let member = self.own.as_ref().map(|own| &own.member);
        LockBytes {
            biased: member.map_or(bias::NOBODY, Member::biased),
            released: member.map_or(bias::FREE, Member::released),
        }
    }

    /// See [`TargetState::answer_fellows`](crate::TargetState::answer_fellows).
    #[inline]
    pub(crate) fn answer(&mut self) {
        if let Some(own) = &mut self.own
            && own.member.is_asked()
        {
            own.member.answer(std::iter::empty());
        }
    }

    /// See [`TargetState::take_lock`](crate::TargetState::take_lock).
    pub(crate) fn take(&mut self, offset: usize, held: &[u64]) -> bool {
        let Some(own) = &mut self.own else {
            return false;
        };
        let taken = own.take(offset, held);
        self.waits += u64::from(taken.waited);
        taken.by_bias
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
        let Some(own) = &self.own else {
            return;
        };
        for (domain, held) in self.held.iter_mut().enumerate() {
            if let Some(given) = held.take_if(|_| is_due(domain)) {
                for offset in given.offsets() {
                    own.member.release(own.shared.memory.flag(*offset));
                }
            }
        }
    }

    /// Takes the locks of units, and lets go of others of the domain. If the block holds all of them,
    /// it keeps what it holds. Their order keeps blocks that need the same two units from waiting for
    /// each other.
    pub(crate) fn lock_units(&mut self, domain: Option<usize>, numbers: &[u64]) {
        let (Some(own), Some(domain)) = (&mut self.own, domain) else {
            return;
        };
        if self.depth == 0 {
            return;
        }
        let placement = own.shared.placements[domain];
        let mut wanted = [NONE; MOST_UNITS];
        for (wanted, number) in wanted.iter_mut().zip(numbers) {
            *wanted = placement.offset(*number).unwrap_or(NONE);
        }
        let held = self.held[domain].get_or_insert_default();
        let Some(before) = held.let_go_for(&wanted) else {
            return;
        };
        for offset in before.offsets() {
            own.member.release(own.shared.memory.flag(*offset));
        }
        held.take_in_order(wanted, |offset| {
            self.waits += u64::from(own.take(offset, &[]).waited);
        });
    }

    /// Takes the lock of a domain for the element at `index`, unless the block holds it.
    pub(crate) fn lock(&mut self, domain: Option<usize>, index: u64) {
        let (Some(own), Some(domain)) = (&mut self.own, domain) else {
            return;
        };
        if self.depth == 0 {
            return;
        }
        let mut wanted = Held::default();
        if let Some(offset) = own.shared.placements[domain].offset(index) {
            (wanted.0[0], wanted.1) = (offset, 1);
        }
        match self.held[domain] {
            // The plan has one index for each domain in a block.
            Some(held) => debug_assert!(held == wanted, "domain {domain} has two indices"),
            None => {
                if let [offset] = *wanted.offsets() {
                    self.waits += u64::from(own.take(offset, &[]).waited);
                }
                self.held[domain] = Some(wanted);
            }
        }
    }
}

impl Own {
    /// Takes the lock at `offset` in memory, while the engine holds the biased locks `held`.
    fn take(&mut self, offset: usize, held: &[u64]) -> Taken {
        let cell = self.shared.memory.flag(offset);
        let lock = std::ptr::from_ref(cell).addr() as u64;
        self.member.take(cell, lock, held, pause)
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
