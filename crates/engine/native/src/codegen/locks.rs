//! Locks of atomic blocks.
//!
//! The lock that a block holds of each domain is known by two variables: if it is taken, and its
//! cell; of units there are several cells. Along straight code both are constants or values, so that
//! nothing is asked twice. The cell of a domain of which nothing is locked is one that belongs to the
//! engine alone, which a release may clear without asking; so is that of a lock which is biased to the
//! engine (see the runtime's locks). Which locks are held, biased or not, stands in memory for fellows
//! that ask.

use super::Gen;
use crate::context::Context;
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::Variable;
use stateplane_ir::MOST_UNITS;
use std::mem::offset_of;

/// Locks of the function that is made.
#[derive(Default)]
pub(super) struct Locks {
    domains: Vec<Domain>,
    /// Atomic blocks around the present statement, one within the other, with those around the
    /// call of a callable.
    pub(super) depth: u32,
    /// Address of the cell that belongs to the engine alone.
    own: Option<Value>,
}

/// The locks of a domain that the present block holds.
struct Domain {
    /// 1 if the block holds it, else 0.
    taken: Variable,
    /// The cells of its locks that are to be released.
    cells: Vec<Variable>,
    /// Bytes before the first place of its locks among those of all that are held.
    place: i32,
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
        let mut place = 0;
        for domain in 0..count {
            let mut variable = || self.b.declare_var(types::I64);
            let taken = variable();
            let cells: Vec<Variable> = (0..plan.locks_at_once(domain))
                .map(|_| variable())
                .collect();
            let next = place + 8 * cells.len() as i32;
            self.locks.domains.push(Domain {
                taken,
                cells,
                place,
            });
            place = next;
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
                self.hold(domain, 0, &[own]);
            }
        }
    }

    /// Notes what is held; the last of `cells` stands for all that are missing.
    fn hold(&mut self, domain: usize, taken: u64, cells: &[Value]) {
        self.set_number(self.locks.domains[domain].taken, taken);
        let last = cells.last().copied();
        let cells = cells
            .iter()
            .copied()
            .chain(std::iter::repeat_n(last, MOST_UNITS).flatten());
        for (at, cell) in self.locks.domains[domain].cells.iter().zip(cells) {
            self.b.def_var(*at, cell);
        }
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

    /// Makes statements of a block that is no part of the one around it. Nothing leaves them.
    pub(super) fn apart(&mut self, make: impl FnOnce(&mut Self)) {
        if self.locks.domains.is_empty() || self.locks.depth == 0 || !self.live {
            return self.atomic(make);
        }
        let around: Vec<(Value, Vec<Value>)> = (0..self.locks.domains.len())
            .map(|domain| self.lock_held(domain))
            .collect();
        make(self);
        if !self.live {
            return;
        }
        for (domain, (before, cells_before)) in around.into_iter().enumerate() {
            let (taken, cells) = self.lock_held(domain);
            let resolve = |value| self.b.func.dfg.resolve_aliases(value);
            if resolve(taken) == resolve(before) || self.known(before) == Some(1) {
                continue;
            }
            for (at, cell) in cells.into_iter().enumerate() {
                // What the block around it holds, it keeps.
                let is_kept = self.known(before).is_none().then_some(before);
                let cell = match (is_kept, self.locks.own) {
                    (Some(kept), Some(own)) => self.b.ins().select(kept, own, cell),
                    _ => cell,
                };
                self.release(cell);
                self.leave_place(domain, at, is_kept);
            }
            let domain = &self.locks.domains[domain];
            self.b.def_var(domain.taken, before);
            for (at, cell) in domain.cells.iter().zip(cells_before) {
                self.b.def_var(*at, cell);
            }
        }
    }

    /// What is held of a domain: if it is, and the cells.
    fn lock_held(&mut self, domain: usize) -> (Value, Vec<Value>) {
        let Domain { taken, cells, .. } = &self.locks.domains[domain];
        let taken = self.b.use_var(*taken);
        (taken, cells.iter().map(|at| self.b.use_var(*at)).collect())
    }

    /// Leaves blocks, up to those that are `depth` deep; locks belong to the outermost block.
    pub(super) fn leave_blocks(&mut self, depth: u32) {
        if !self.live || depth > 0 || self.locks.depth == 0 {
            return;
        }
        for domain in 0..self.locks.domains.len() {
            let (taken, cells) = self.lock_held(domain);
            if self.known(taken) == Some(0) {
                continue;
            }
            for (at, cell) in cells.into_iter().enumerate() {
                self.release(cell);
                self.leave_place(domain, at, None);
            }
        }
        self.hold_nothing();
    }

    /// Flags of locks: nothing moves across them, as they are in no region.
    fn lock_flags() -> MemFlagsData {
        MemFlagsData::trusted()
    }

    /// The lock that is held at a place of a domain.
    fn place_of(&mut self, domain: usize, at: usize) -> Value {
        let (places, offset) = self.place(domain, at);
        let flags = Self::lock_flags();
        self.b.ins().load(types::I64, flags, places, offset)
    }

    /// Notes the lock that is held, or about to be taken, at a place of a domain.
    fn hold_place(&mut self, domain: usize, at: usize, lock: Value) {
        let (places, offset) = self.place(domain, at);
        let flags = Self::lock_flags();
        self.b.ins().store(flags, lock, places, offset);
    }

    /// Notes that no lock is held at a place, unless the block around this one holds it.
    fn leave_place(&mut self, domain: usize, at: usize, is_kept: Option<Value>) {
        let none = self.number(0);
        let lock = match is_kept {
            None => none,
            Some(is_kept) => {
                let held = self.place_of(domain, at);
                self.b.ins().select(is_kept, held, none)
            }
        };
        self.hold_place(domain, at, lock);
    }

    /// A place of a domain: address of all places, and bytes from there.
    fn place(&mut self, domain: usize, at: usize) -> (Value, i32) {
        let places = self.given(offset_of!(Context, held_locks));
        (places, self.locks.domains[domain].place + 8 * at as i32)
    }

    fn release(&mut self, cell: Value) {
        let flags = Self::lock_flags();
        let offset = offset_of!(Context, released) as i32;
        let free = self.b.ins().load(types::I8, flags, self.context, offset);
        if cfg!(target_arch = "x86_64") {
            // Stores of this machine become visible in their order.
            self.b.ins().store(flags, free, cell, 0);
        } else {
            self.b.ins().atomic_store(flags, free, cell);
        }
    }

    /// Takes the lock of a domain, unless the block holds it.
    pub(super) fn lock(&mut self, domain: usize, index: Index) {
        self.unless_held(domain, |g| {
            if let Some(cell) = g.lock_cell(domain, index) {
                let cell = g.take(domain, 0, cell);
                g.hold(domain, 1, &[cell]);
            }
        });
    }

    /// Takes the locks of units of a domain: the lower one first, so that blocks that need the same
    /// two units do not wait for each other. If the block holds others, it lets go of these first, so
    /// that it waits for none while it has one; if it holds all of them, nothing happens.
    pub(super) fn lock_units(&mut self, domain: usize, numbers: Vec<Value>) {
        let placements = self.plan.locks.as_ref().map(|it| &it.placements);
        let Some(&placement) = placements.and_then(|it| it.get(domain)) else {
            return;
        };
        let Some(own) = self.locks.own.filter(|_| self.live && self.locks.depth > 0) else {
            return;
        };
        let is_whole = placement.stride == 0;
        if is_whole {
            return self.lock(domain, Index::Missing);
        }
        let mut cells = Vec::new();
        for number in numbers {
            let count = self.number(placement.length);
            let exists = self.b.ins().icmp(IntCC::UnsignedLessThan, number, count);
            let index = Index::If(exists, number);
            cells.extend(self.lock_cell(domain, index));
        }
        cells.truncate(self.locks.domains[domain].cells.len());
        self.sort(&mut cells);
        let (taken, held) = self.lock_held(domain);
        let taken = self.known(taken);
        if taken == Some(0) {
            return self.take_units(domain, cells);
        }
        // Locks in bias are known by their places alone.
        let places: Vec<Value> = (0..held.len())
            .map(|at| self.place_of(domain, at))
            .collect();
        let mut has_all = self.b.ins().iconst(types::I8, 1);
        for &cell in &cells {
            let mut has = self.compared(IntCC::Equal, cell, own);
            for &place in &places {
                let is_this = self.compared(IntCC::Equal, cell, place);
                has = self.either(has, is_this);
            }
            has_all = self.both(has_all, has);
        }
        let [change, kept] = [(); 2].map(|()| self.block());
        if taken.is_some() {
            self.b.set_cold_block(change);
        }
        self.branch(has_all, kept, change);
        if self.go_on(change) {
            for (at, cell) in held.into_iter().enumerate() {
                self.release(cell);
                self.leave_place(domain, at, None);
            }
            self.take_units(domain, cells);
            self.jump(kept);
        }
        self.go_on(kept);
        self.set_number(self.locks.domains[domain].taken, 1);
    }

    /// Takes the locks in these cells, of which the block holds none.
    fn take_units(&mut self, domain: usize, mut cells: Vec<Value>) {
        for (at, cell) in cells.iter_mut().enumerate() {
            *cell = self.take(domain, at, *cell);
        }
        // The engine's own cell stands for those that this block does not need.
        cells.extend(self.locks.own);
        self.hold(domain, 1, &cells);
    }

    /// Orders addresses, the lowest first, and puts the engine's own cell in place of what is there
    /// twice.
    fn sort(&mut self, cells: &mut [Value]) {
        for end in (1..cells.len()).rev() {
            for at in 0..end {
                let (one, two) = (cells[at], cells[at + 1]);
                let wrong = self.b.ins().icmp(IntCC::UnsignedGreaterThan, one, two);
                cells[at] = self.b.ins().select(wrong, two, one);
                cells[at + 1] = self.b.ins().select(wrong, one, two);
            }
        }
        let Some(own) = self.locks.own else {
            return;
        };
        for at in (1..cells.len()).rev() {
            let again = self.b.ins().icmp(IntCC::Equal, cells[at - 1], cells[at]);
            cells[at] = self.b.ins().select(again, own, cells[at]);
        }
    }

    /// Makes what takes locks of a domain, where the block holds none of it.
    fn unless_held(&mut self, domain: usize, take: impl FnOnce(&mut Self)) {
        if !self.live || self.locks.depth == 0 || self.locks.domains.is_empty() {
            return;
        }
        let is_taken = self.locks.domains[domain].taken;
        let taken = self.b.use_var(is_taken);
        match self.known(taken) {
            Some(0) => take(self),
            Some(_) => {}
            None => {
                let [free, held] = [(); 2].map(|()| self.block());
                self.branch(taken, held, free);
                if self.go_on(free) {
                    take(self);
                    self.jump(held);
                }
                self.go_on(held);
                self.set_number(is_taken, 1);
            }
        }
    }

    /// Takes a lock by its cell, for a place of its domain; gives the cell that is to be released.
    fn take(&mut self, domain: usize, at: usize, cell: Value) -> Value {
        self.hold_place(domain, at, cell);
        let flags = Self::lock_flags();
        let state = self.b.ins().load(types::I8, flags, cell, 0);
        let offset = offset_of!(Context, biased) as i32;
        let biased = self.b.ins().load(types::I8, flags, self.context, offset);
        let is_biased = self.b.ins().icmp(IntCC::Equal, state, biased);
        let released = self.b.declare_var(types::I64);
        self.b.def_var(released, self.locks.own.unwrap_or(cell));
        let [exchange, inside] = [(); 2].map(|()| self.block());
        self.b.set_cold_block(exchange);
        self.branch(is_biased, inside, exchange);
        self.go_on(exchange);
        let context = self.context;
        let taken = self.call_for(run::take_lock as *const u8, &[context, cell]);
        self.b.def_var(released, taken);
        self.jump(inside);
        self.go_on(inside);
        self.b.use_var(released)
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
