//! Statements.

use super::place::constant;
use super::scalar::is_narrow;
use super::{Frame, Gen};
use crate::context::ended;
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::Switch;
use num_bigint::BigUint;
use stateplane_ir::{Expr, ExprKind, Place, Stmt, Type};
use stateplane_runtime::bits::{low_word, word_count};
use stateplane_runtime::layout::scalar_bits;

impl Gen<'_, '_> {
    /// Statements in order, up to one after which none is reached.
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for (position, stmt) in stmts.iter().enumerate() {
            if !self.live && !self.may_be_joined() {
                return;
            }
            self.at_statement(&stmts[position..], |g| {
                g.free_scratch();
                g.stmt_or_defer(stmt);
            });
        }
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => self.assign(place, value),
            Stmt::If {
                condition,
                then,
                otherwise,
            } => self.conditional(condition, then, otherwise),
            Stmt::Switch {
                value,
                cases,
                default,
            } => self.closed(|g| g.switch(value, cases, default)),
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => self.closed(|g| g.apply(*table, hit.as_ref(), action_run.as_ref())),
            Stmt::Call {
                callee,
                args,
                result,
            } if self.can_be_left(args) => self.call(*callee, args, result.as_ref()),
            Stmt::Call {
                callee,
                args,
                result,
            } => self.closed(|g| g.call(*callee, args, result.as_ref())),
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) => self.set_validity(place, 1),
            Stmt::SetInvalid(place) => self.set_validity(place, 0),
            Stmt::PushFront(place, count) => self.shift_stack(place, i64::from(*count)),
            Stmt::PopFront(place, count) => self.shift_stack(place, -i64::from(*count)),
            Stmt::Block(stmts) => self.stmts(stmts),
            Stmt::Atomic(stmts) => self.atomic(|g| g.stmts(stmts)),
            Stmt::Apart(stmts) => self.apart(|g| g.stmts(stmts)),
            Stmt::Loop { body, update } => self.closed(|g| g.rounds(body, update)),
            Stmt::Unlikely => self.unlikely(),
            Stmt::At(_) => {}
            Stmt::Break => {
                self.note_skip(true);
                if let Some((end, _, depth)) = self.loops.last().copied() {
                    self.leave_blocks(depth);
                    self.jump(end);
                }
            }
            Stmt::Continue => {
                self.note_skip(true);
                if let Some((_, next, depth)) = self.loops.last().copied() {
                    self.leave_blocks(depth);
                    self.jump(next);
                }
            }
            Stmt::Return => {
                self.note_skip(true);
                let Frame { after, depth, .. } = self.frame_of();
                self.leave_blocks(depth);
                self.jump(after);
            }
            Stmt::Exit => {
                self.note_skip(false);
                let exit = self.frame_of().exit;
                self.leave_blocks(0);
                self.jump(exit);
            }
        }
    }

    fn assign(&mut self, place: &Place, value: &Expr) {
        if let ExprKind::Read(source) = &value.kind
            && !is_narrow(value.ty)
        {
            let from = self.spot(source);
            let to = self.spot(place);
            self.check_fault();
            match (from, to) {
                (Some(from), Some(to)) => self.copy(&from, &to),
                (None, Some(to)) => {
                    let to = to.clone();
                    self.guarded(to.guard, |g| g.clear(&to));
                }
                (_, None) => {}
            }
            return;
        }
        let values = self.flatten(value);
        let spot = self.spot(place);
        self.check_fault();
        if let Some(spot) = spot {
            self.store_all(&spot, values);
        }
    }

    fn conditional(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let [yes, no, after] = [(); 3].map(|()| self.block());
        if !self.live {
            // Ways join in the branches alone.
        } else if self.in_parser && self.plan.parser_faults {
            let condition = self.condition(condition);
            self.check_fault();
            self.branch(condition, yes, no);
        } else {
            self.branch_on(condition, yes, no);
        }
        let certain = self.entered.contains(&yes) != self.entered.contains(&no);
        let before = self.values.clone();
        let opened = self.deferred.opened();
        let mut goes_on = Vec::new();
        let mut common: Option<super::paths::Known> = None;
        for (block, holds) in [(yes, true), (no, false)] {
            let (stmts, other) = if holds {
                (then, otherwise)
            } else {
                (otherwise, then)
            };
            if self.go_on(block) {
                self.learn(condition, holds, other);
            }
            self.values.clone_from(&before);
            let stmts = if certain { self.certain(stmts) } else { stmts };
            self.in_branch(holds, |g| g.stmts(stmts));
            let open = self.deferred.reopen(&opened);
            if self.live {
                goes_on.push(open);
                common = Some(match common {
                    Some(mut common) => {
                        common.retain(|at, value| self.values.get(at) == Some(value));
                        common
                    }
                    None => self.values.clone(),
                });
            }
            self.jump(after);
        }
        self.values = common.unwrap_or_default();
        self.deferred.join(opened, goes_on);
        self.go_on(after);
    }

    fn switch(&mut self, value: &Expr, cases: &[(Vec<BigUint>, Vec<Stmt>)], default: &[Stmt]) {
        let after = self.block();
        let blocks: Vec<Block> = cases.iter().map(|_| self.block()).collect();
        let otherwise = self.block();
        let width = scalar_bits(value.ty);
        if is_narrow(value.ty) && width <= 64 {
            let value = self.narrow(value);
            self.check_fault();
            let mut switch = Switch::new();
            for ((labels, _), block) in cases.iter().zip(&blocks) {
                for label in labels {
                    switch.set_entry(low_word(label), *block);
                }
            }
            switch.emit(&mut self.b, value, otherwise);
            self.live = false;
        } else {
            let pointer = self.as_words(value);
            self.check_fault();
            for ((labels, _), block) in cases.iter().zip(&blocks) {
                for label in labels {
                    let wanted = self.number_words(label, width);
                    let words = self.number(word_count(width) as u64);
                    let same =
                        self.call_for(run::equal_words as *const u8, &[pointer, wanted, words]);
                    let next = self.block();
                    self.branch(same, *block, next);
                    self.enter(next);
                }
            }
            self.jump(otherwise);
        }
        let bodies = cases.iter().map(|(_, stmts)| stmts.as_slice());
        let blocks = blocks.into_iter().chain([otherwise]);
        for (block, stmts) in blocks.zip(bodies.chain([default])) {
            self.enter(block);
            self.stmts(stmts);
            self.jump(after);
        }
        self.go_on(after);
    }

    fn rounds(&mut self, body: &[Stmt], update: &[Stmt]) {
        let [head, round, next, after, beyond] = [(); 5].map(|()| self.block());
        self.jump(head);
        self.enter_open(head);
        let left = self.b.use_var(self.rounds);
        self.b.set_cold_block(beyond);
        self.branch(left, round, beyond);
        self.enter(beyond);
        self.leave_blocks(0);
        self.end(ended::GIVEN_UP);
        self.enter(round);
        let fewer = self.b.ins().iadd_imm_s(left, -1);
        self.b.def_var(self.rounds, fewer);
        self.loops.push((after, next, self.locks.depth));
        self.stmts(body);
        self.loops.pop();
        self.jump(next);
        if self.entered.contains(&next) {
            self.enter(next);
            self.stmts(update);
            self.jump(head);
        }
        if self.plan.calls.inline_all {
            self.b.seal_block(head);
        }
        self.go_on(after);
    }

    fn set_validity(&mut self, place: &Place, valid: u64) {
        if let Some(spot) = self.spot(place) {
            self.guarded(spot.guard, |g| {
                let valid = g.number(valid);
                g.store(spot.at, spot.dynamic, 1, valid);
                g.settle_union(&spot);
            });
        }
        self.check_fault();
    }

    /// `push_front` of `by` elements, or with a negative number `pop_front`.
    fn shift_stack(&mut self, place: &Place, by: i64) {
        if let Some(spot) = self.spot(place)
            && let Type::Stack(id) = spot.ty
        {
            let (_, stride, count) = self.plan.storage.layout.stack(id);
            self.guarded(spot.guard, |g| {
                let pointer = g.pointer(spot.at, spot.dynamic);
                let stride = g.number(stride as u64);
                let count = g.number(u64::from(count));
                let by = g.number(by as u64);
                g.call_engine(
                    run::shift_stack as *const u8,
                    &[pointer, stride, count, by],
                    false,
                );
            });
        }
        self.check_fault();
    }

    /// Condition that a register equals one of the numbers that a key set names.
    pub(super) fn is_constant(&mut self, value: Value, wanted: u128, width: u32) -> Value {
        let wanted = self.constant(wanted, width);
        self.b.ins().icmp(IntCC::Equal, value, wanted)
    }

    /// `index` as an offset in bytes of elements of so many bytes, and a condition that
    /// holds if it is below `size`.
    pub(super) fn scaled(&mut self, index: &Expr, bytes: u64, size: u64) -> Element {
        if let Some(index) = constant(index) {
            return match u64::try_from(index).ok().filter(|index| *index < size) {
                Some(index) => Element::At(self.number(index * bytes)),
                None => Element::Missing,
            };
        }
        let index = self.index(index);
        if size == 0 {
            return Element::Missing;
        }
        if self.most(index) < size {
            let bytes = self.number(bytes);
            return Element::At(self.b.ins().imul(index, bytes));
        }
        let size = self.number(size);
        let exists = self.b.ins().icmp(IntCC::UnsignedLessThan, index, size);
        let zero = self.number(0);
        let index = self.b.ins().select(exists, index, zero);
        let bytes = self.number(bytes);
        Element::If(exists, self.b.ins().imul(index, bytes))
    }
}

/// An element of an array.
pub(super) enum Element {
    /// Past the end.
    Missing,
    /// At this offset in bytes.
    At(Value),
    /// There, or if the condition does not hold, missing.
    If(Value, Value),
}
