//! Statements.

use crate::machine::{Flow, Run};
use crate::observe::{Event, Observer};
use crate::place::{Spot, is_narrow};
use crate::wide::is_number;
use num_bigint::BigUint;
use stateplane_ir::{Expr, ExprKind, Place, Stmt, Type};

impl<O: Observer> Run<'_, O> {
    /// Runs statements until one does not go on with the next.
    pub(crate) fn stmts(&mut self, stmts: &[Stmt]) -> Flow {
        for stmt in stmts {
            let flow = self.stmt(stmt);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match stmt {
            Stmt::Assign(place, value) => {
                let watched = self.watch(place);
                let flow = self.assign(place, value);
                if flow == Flow::Next {
                    self.after(watched, Event::Assign);
                }
                flow
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.narrow(condition) == 1;
                if let Some(flow) = self.faulted() {
                    return flow;
                }
                self.tell(|_| Event::Branch(condition, holds));
                self.stmts(if holds { then } else { otherwise })
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => self.switch(value, cases, default),
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => self.apply(*table, hit.as_ref(), action_run.as_ref()),
            Stmt::Call {
                callee,
                args,
                result,
            } => self.call(*callee, args, result.as_ref()),
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) => {
                self.set_validity(place, 1);
                self.faulted().unwrap_or(Flow::Next)
            }
            Stmt::SetInvalid(place) => {
                self.set_validity(place, 0);
                self.faulted().unwrap_or(Flow::Next)
            }
            Stmt::PushFront(place, count) => {
                self.shift_stack(place, |index| index.checked_sub(*count as usize));
                self.move_next(place, |next, size| (next + u128::from(*count)).min(size));
                self.faulted().unwrap_or(Flow::Next)
            }
            Stmt::PopFront(place, count) => {
                self.shift_stack(place, |index| index.checked_add(*count as usize));
                self.move_next(place, |next, _| next.saturating_sub(u128::from(*count)));
                self.faulted().unwrap_or(Flow::Next)
            }
            Stmt::Block(stmts) => self.stmts(stmts),
            Stmt::Atomic(stmts) => {
                self.m.state.enter_atomic();
                let flow = self.inside(stmts);
                self.m.state.leave_atomic();
                flow
            }
            Stmt::Apart(stmts) => {
                self.m.state.enter_apart();
                let flow = self.inside(stmts);
                self.m.state.leave_apart();
                flow
            }
            Stmt::Loop { body, update } => self.rounds(body, update),
            Stmt::Unlikely | Stmt::At(_) => Flow::Next,
            Stmt::Break => Flow::Break,
            Stmt::Continue => Flow::Continue,
            Stmt::Return => Flow::Return,
            Stmt::Exit => {
                self.tell(|_| Event::Exit);
                Flow::Exit
            }
        }
    }

    /// The statements of an atomic block.
    fn inside(&mut self, stmts: &[Stmt]) -> Flow {
        if let Some(units) = &mut self.m.units {
            units.enter();
        }
        let flow = self.stmts(stmts);
        if let Some(units) = &mut self.m.units {
            units.leave();
        }
        flow
    }

    fn rounds(&mut self, body: &[Stmt], update: &[Stmt]) -> Flow {
        loop {
            let Some(left) = self.m.rounds.checked_sub(1) else {
                self.m.gave_up = true;
                return Flow::Exit;
            };
            self.m.rounds = left;
            match self.stmts(body) {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Flow::Next,
                stopped => return stopped,
            }
            match self.stmts(update) {
                Flow::Next => {}
                stopped => return stopped,
            }
        }
    }

    fn assign(&mut self, place: &Place, value: &Expr) -> Flow {
        if is_narrow(value.ty) {
            let number = self.narrow(value);
            let spot = self.spot(place);
            if let Some(flow) = self.faulted() {
                return flow;
            }
            if let Some(spot) = spot {
                self.store_narrow(spot, number);
            }
            return Flow::Next;
        }
        if let ExprKind::Read(source) = &value.kind {
            let from = self.spot(source);
            let to = self.spot(place);
            if let Some(flow) = self.faulted() {
                return flow;
            }
            match (from, to) {
                (Some(from), Some(to)) => self.copy(from, to),
                (None, Some(to)) => self.clear(to),
                (_, None) => {}
            }
            return Flow::Next;
        }
        let base = self.m.stack.len();
        self.push(value);
        let spot = self.spot(place);
        if let Some(flow) = self.faulted() {
            self.m.stack.truncate(base);
            return flow;
        }
        self.pop_into(base, spot);
        Flow::Next
    }

    /// Copies between places of one type, which may overlap.
    pub(crate) fn copy(&mut self, from: Spot, to: Spot) {
        if from.slice.is_none() && to.slice.is_none() {
            let size = self.size(from.ty);
            self.m.words.copy_within(from.at..from.at + size, to.at);
            self.settle_union(to);
        } else {
            let base = self.m.stack.len();
            self.push_spot(from);
            self.pop_into(base, Some(to));
        }
    }

    fn switch(
        &mut self,
        value: &Expr,
        cases: &[(Vec<BigUint>, Vec<Stmt>)],
        default: &[Stmt],
    ) -> Flow {
        let base = self.m.stack.len();
        self.push(value);
        let words = &self.m.stack[base..];
        let chosen = cases
            .iter()
            .find(|(labels, _)| labels.iter().any(|label| is_number(words, label)));
        if self.m.fault.is_none() {
            self.tell(|run| Event::Switch(value, run.datum(value.ty, &run.m.stack[base..])));
        }
        self.m.stack.truncate(base);
        if let Some(flow) = self.faulted() {
            return flow;
        }
        self.stmts(chosen.map_or(default, |(_, stmts)| stmts))
    }

    fn set_validity(&mut self, place: &Place, valid: u128) {
        if let Some(spot) = self.spot(place) {
            self.m.words[spot.at] = valid;
            self.settle_union(spot);
            self.tell(|run| Event::Validity(run.place_name(place), valid == 1));
        }
    }

    /// Gives each element of a stack the one at the position that `from` tells;
    /// those that would come from outside become invalid.
    fn shift_stack(&mut self, place: &Place, from: impl Fn(usize) -> Option<usize>) {
        let Some((at, stride, count)) = self.stack_at(place) else {
            return;
        };
        let base = self.m.stack.len();
        let elements = at + 1..at + 1 + count * stride;
        self.m
            .stack
            .extend_from_slice(&self.m.words[elements.clone()]);
        for index in 0..count {
            let to = elements.start + index * stride;
            match from(index).filter(|source| *source < count) {
                Some(source) => {
                    let source = base + source * stride;
                    let element = &self.m.stack[source..source + stride];
                    self.m.words[to..to + stride].copy_from_slice(element);
                }
                None => self.m.words[to..to + stride].fill(0),
            }
        }
        self.m.stack.truncate(base);
    }

    fn move_next(&mut self, place: &Place, next: impl Fn(u128, u128) -> u128) {
        if let Some((at, _, count)) = self.stack_at(place) {
            self.m.words[at] = next(self.m.words[at], count as u128);
        }
    }

    /// First word of a stack, words of an element, number of elements.
    fn stack_at(&mut self, place: &Place) -> Option<(usize, usize, usize)> {
        let spot = self.spot(place)?;
        let Type::Stack(id) = spot.ty else {
            return None;
        };
        let (_, stride, count) = self.layout().stack(id);
        Some((spot.at, stride, count as usize))
    }
}
