//! Locks of atomic blocks.
//!
//! The lock that a block holds of each domain is known by two variables: if it is taken, and its
//! cell. Along straight code both are constants or values, so that nothing is asked twice. The
//! cell of a domain of which nothing is locked is one that belongs to the engine alone, which a
//! release may clear without asking.

use super::Gen;
use crate::context::Context;
use crate::run;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::Variable;
use std::mem::offset_of;

/// Locks of the function that is made.
#[derive(Default)]
pub(super) struct Locks {
    /// By domain: 1 if the block holds its lock, else 0; and the lock's cell.
    domains: Vec<(Variable, Variable)>,
    /// Atomic blocks around the present statement, one within the other, with those around the
    /// call of a callable.
    pub(super) depth: u32,
    /// Address of the cell that belongs to the engine alone.
    own: Option<Value>,
}

/// The element of a domain's arrays that a statement uses.
#[derive(Clone, Copy)]
pub(super) enum Index {
    /// Past the end.
    Missing,
    /// This one.
    At(Value),
    /// This one, if the condition holds.
    If(Value, Value),
}

impl Gen<'_, '_> {
    /// Begins a function: no lock is held.
    pub(super) fn start_locks(&mut self) {
        let plan = self.plan;
        let count = plan.locks.as_ref().map_or(0, |it| it.placements.len());
        for _ in 0..count {
            let variables = [(); 2].map(|()| self.b.declare_var(types::I64));
            self.locks.domains.push(variables.into());
        }
        if count > 0 {
            let own = offset_of!(Context, own_lock) as i64;
            self.locks.own = Some(self.b.ins().iadd_imm_s(self.context, own));
            self.hold_nothing();
        }
    }

    fn hold_nothing(&mut self) {
        if let Some(own) = self.locks.own {
            for domain in 0..self.locks.domains.len() {
                self.hold(domain, 0, own);
            }
        }
    }

    fn hold(&mut self, domain: usize, taken: u64, cell: Value) {
        let (is_taken, at) = self.locks.domains[domain];
        self.set_number(is_taken, taken);
        self.b.def_var(at, cell);
    }

    /// Makes statements between which no fellow's atomic blocks come.
    pub(super) fn atomic(&mut self, make: impl FnOnce(&mut Self)) {
        if self.locks.domains.is_empty() {
            return make(self);
        }
        if self.locks.depth == 0 && self.live {
            // So that also behind a loop's head it is known.
            self.hold_nothing();
        }
        self.locks.depth += 1;
        make(self);
        self.leave_blocks(self.locks.depth - 1);
        self.locks.depth -= 1;
    }

    /// Leaves blocks, up to those that are `depth` deep; locks belong to the outermost block.
    pub(super) fn leave_blocks(&mut self, depth: u32) {
        if !self.live || depth > 0 || self.locks.depth == 0 {
            return;
        }
        for domain in 0..self.locks.domains.len() {
            let (is_taken, at) = self.locks.domains[domain];
            let taken = self.b.use_var(is_taken);
            if self.known(taken) == Some(0) {
                continue;
            }
            let cell = self.b.use_var(at);
            self.release(cell);
        }
        self.hold_nothing();
    }

    /// Flags of locks: nothing moves across them, as they are in no region.
    fn lock_flags() -> MemFlagsData {
        MemFlagsData::trusted()
    }

    fn release(&mut self, cell: Value) {
        let free = self.b.ins().iconst(types::I8, 0);
        let flags = Self::lock_flags();
        if cfg!(target_arch = "x86_64") {
            // Stores of this machine become visible in their order.
            self.b.ins().store(flags, free, cell, 0);
        } else {
            self.b.ins().atomic_store(flags, free, cell);
        }
    }

    /// Takes the lock of a domain, unless the block holds it.
    pub(super) fn lock(&mut self, domain: usize, index: Index) {
        if !self.live || self.locks.depth == 0 || self.locks.domains.is_empty() {
            return;
        }
        let (is_taken, _) = self.locks.domains[domain];
        let taken = self.b.use_var(is_taken);
        match self.known(taken) {
            Some(0) => self.take(domain, index),
            Some(_) => {}
            None => {
                let [free, held] = [(); 2].map(|()| self.block());
                self.branch(taken, held, free);
                if self.go_on(free) {
                    self.take(domain, index);
                    self.jump(held);
                }
                self.go_on(held);
                self.set_number(is_taken, 1);
            }
        }
    }

    fn take(&mut self, domain: usize, index: Index) {
        let Some(cell) = self.lock_cell(domain, index) else {
            return;
        };
        let flags = Self::lock_flags();
        let [free, taken] = [0, 1].map(|state| self.b.ins().iconst(types::I8, state));
        let found = self.b.ins().atomic_cas(flags, cell, free, taken);
        let [wait, inside] = [(); 2].map(|()| self.block());
        self.b.set_cold_block(wait);
        self.branch(found, wait, inside);
        self.go_on(wait);
        let context = self.context;
        self.call_engine(run::wait_for_lock as *const u8, &[context, cell], false);
        self.jump(inside);
        self.go_on(inside);
        self.hold(domain, 1, cell);
    }

    /// Address of a lock's cell; `None` if there is nothing to lock.
    fn lock_cell(&mut self, domain: usize, index: Index) -> Option<Value> {
        let plan = self.plan;
        let placement = plan.locks.as_ref()?.placements.get(domain)?;
        let memory = self.given(offset_of!(Context, registers));
        let first = self.b.ins().iadd_imm_s(memory, placement.base as i64);
        if placement.stride == 0 {
            return Some(first);
        }
        let (index, exists) = match index {
            Index::Missing => return None,
            Index::At(index) => (index, None),
            Index::If(exists, index) => (index, Some(exists)),
        };
        let stride = self.number(placement.stride as u64);
        let offset = match self.known(index) {
            Some(index) => self.number(index * placement.stride as u64),
            None => self.b.ins().imul(index, stride),
        };
        let cell = self.b.ins().iadd(first, offset);
        let own = self.locks.own?;
        Some(match exists {
            Some(exists) => self.b.ins().select(exists, cell, own),
            None => cell,
        })
    }
}
