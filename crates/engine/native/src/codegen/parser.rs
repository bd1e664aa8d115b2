//! Parsers: states and transitions.

use super::scalar::is_narrow;
use super::value::Scalar;
use super::{Frame, Gen};
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Switch;
use num_bigint::BigUint;
use stateplane_ir::{Expr, KeySet, ParserId, Target, Transition};
use stateplane_runtime::bits::{low_word, mask, word_count};
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::parser::{MAX_TRANSITIONS, core_error};

/// A key of `select` that is being matched.
struct Key {
    value: Scalar,
    width: u32,
}

impl Gen<'_, '_> {
    /// A parser, whose parameters and locals are in place, from its start state on. The
    /// innermost frame is its own.
    pub(super) fn states(&mut self, id: ParserId) {
        let parser = &self.program().parsers[id.index()];
        let around = self.frame_of();
        let started = self.block();
        self.within(started, &parser.init);
        self.jump(started);
        self.enter(started);
        let mut blocks: Vec<Option<Block>> = vec![None; parser.states.len()];
        let mut waiting = Vec::new();
        let start = self.state_block(parser.start.index(), &mut blocks, &mut waiting);
        self.jump(start);
        while let Some(state) = waiting.pop() {
            let Some(block) = blocks[state] else { continue };
            self.enter_open(block);
            self.count_transition();
            let transition = self.block();
            self.within(transition, &parser.states[state].body);
            self.jump(transition);
            if !self.entered.contains(&transition) {
                continue;
            }
            self.enter(transition);
            self.free_scratch();
            let mut to = |g: &mut Self, target: Target| match target {
                Target::State(next) => {
                    let next = g.state_block(next.index(), &mut blocks, &mut waiting);
                    g.jump(next);
                }
                Target::Accept => g.jump(around.after),
                Target::Reject => g.reject(core_error::NO_ERROR),
            };
            match &parser.states[state].transition {
                Transition::To(target) => {
                    self.check_fault();
                    to(self, *target);
                }
                Transition::Select { keys, cases } => self.select(keys, cases, &mut to),
            }
        }
        self.live = false;
    }

    /// Statements whose `return` leads to `after`.
    fn within(&mut self, after: Block, stmts: &[stateplane_ir::Stmt]) {
        let frame = Frame {
            after,
            ..self.frame_of()
        };
        self.frames.push(frame);
        self.stmts(stmts);
        self.frames.pop();
    }

    fn state_block(
        &mut self,
        state: usize,
        blocks: &mut [Option<Block>],
        waiting: &mut Vec<usize>,
    ) -> Block {
        if let Some(block) = blocks[state] {
            return block;
        }
        let block = self.block();
        blocks[state] = Some(block);
        waiting.push(state);
        block
    }

    fn count_transition(&mut self) {
        if !self.plan.counts_transitions {
            return;
        }
        let count = self.b.use_var(self.transitions);
        let count = self.b.ins().iadd_imm_s(count, 1);
        self.b.def_var(self.transitions, count);
        let limit = self.number(u64::from(MAX_TRANSITIONS));
        let many = self.b.ins().icmp(IntCC::UnsignedGreaterThan, count, limit);
        let [stop, on] = [(); 2].map(|()| self.block());
        self.branch(many, stop, on);
        self.enter(stop);
        self.reject(core_error::PARSER_TIMEOUT);
        self.enter(on);
    }

    pub(super) fn select(
        &mut self,
        keys: &[Expr],
        cases: &[(Vec<KeySet>, Target)],
        to: &mut dyn FnMut(&mut Self, Target),
    ) {
        let mut values = Vec::new();
        for key in keys {
            let width = scalar_bits(key.ty);
            let value = if is_narrow(key.ty) {
                Scalar::Register(self.narrow(key))
            } else {
                Scalar::Memory(self.as_words(key))
            };
            values.push(Key { value, width });
        }
        self.check_fault();
        if self.select_by_table(&values, cases, to) {
            return;
        }
        for (sets, target) in cases {
            let mut condition = None;
            for (index, set) in sets.iter().enumerate() {
                let one = self.is_in(&values, index, set);
                condition = match (condition, one) {
                    (Some(all), Some(one)) => Some(self.b.ins().band(all, one)),
                    (all, one) => all.or(one),
                };
            }
            let Some(condition) = condition else {
                to(self, *target);
                return;
            };
            let [taken, next] = [(); 2].map(|()| self.block());
            let known = self.values.clone();
            self.branch(condition, taken, next);
            if self.go_on(taken) {
                to(self, *target);
                self.values = known;
            }
            if !self.go_on(next) {
                return;
            }
        }
        self.reject(core_error::NO_MATCH);
    }

    /// A `select` of one number by constants.
    fn select_by_table(
        &mut self,
        keys: &[Key],
        cases: &[(Vec<KeySet>, Target)],
        to: &mut dyn FnMut(&mut Self, Target),
    ) -> bool {
        let [
            Key {
                value: Scalar::Register(value),
                width: ..=64,
            },
        ] = keys
        else {
            return false;
        };
        let mut switch = Switch::new();
        let mut blocks = Vec::new();
        let mut seen = Vec::new();
        let mut rest = None;
        for (sets, target) in cases {
            match &sets[0] {
                KeySet::Exact(wanted) => {
                    let wanted = low_word(wanted);
                    if !seen.contains(&wanted) {
                        seen.push(wanted);
                        let block = self.block();
                        switch.set_entry(wanted, block);
                        blocks.push((block, *target));
                    }
                }
                KeySet::Any => {
                    rest = Some(*target);
                    break;
                }
                _ => return false,
            }
        }
        let otherwise = self.block();
        if let Some(value) = self.known(*value) {
            let place = seen.iter().position(|wanted| *wanted == u128::from(value));
            let target = match place {
                Some(place) => Some(blocks[place].1),
                None => rest,
            };
            match target {
                Some(target) => to(self, target),
                None => self.reject(core_error::NO_MATCH),
            }
            return true;
        }
        switch.emit(&mut self.b, *value, otherwise);
        self.live = false;
        let known = self.values.clone();
        for (block, target) in blocks {
            self.enter(block);
            to(self, target);
            self.values.clone_from(&known);
        }
        self.enter(otherwise);
        match rest {
            Some(target) => to(self, target),
            None => self.reject(core_error::NO_MATCH),
        }
        true
    }

    /// Condition that the key at a position is in a set; `None` if every key is.
    fn is_in(&mut self, keys: &[Key], index: usize, set: &KeySet) -> Option<Value> {
        let Key { value, width } = keys[index];
        let below = |length: u32| width.saturating_sub(length);
        match set {
            KeySet::Any => None,
            KeySet::Member { set, field: 0 } => {
                let words: usize = keys[index..].iter().map(|key| word_count(key.width)).sum();
                let pointer = self.scratch(words);
                let mut at = 0;
                for key in &keys[index..] {
                    self.put_words(pointer, at, key.width, key.value);
                    at += word_count(key.width);
                }
                let number = self.number(u64::from(set.0));
                let words = self.number(words as u64);
                let context = self.context;
                let member = self.call_for(
                    run::in_value_set as *const u8,
                    &[context, number, pointer, words],
                );
                Some(self.is_not_zero(member))
            }
            KeySet::Member { .. } => None,
            _ => Some(match (value, set) {
                (Scalar::Register(value), KeySet::Exact(wanted)) => {
                    self.is_constant(value, low_word(wanted), width)
                }
                (Scalar::Register(value), KeySet::Mask(wanted, mask)) => {
                    let mask = low_word(mask);
                    self.is_masked(value, low_word(wanted) & mask, mask, width)
                }
                (Scalar::Register(value), KeySet::Prefix(wanted, length)) => {
                    let mask = mask(width) & !mask(below(*length));
                    self.is_masked(value, low_word(wanted) & mask, mask, width)
                }
                (Scalar::Register(value), KeySet::Range(low, high)) => {
                    let low = self.constant(low_word(low), width);
                    let high = self.constant(low_word(high), width);
                    let above = self
                        .b
                        .ins()
                        .icmp(IntCC::UnsignedGreaterThanOrEqual, value, low);
                    let under = self
                        .b
                        .ins()
                        .icmp(IntCC::UnsignedLessThanOrEqual, value, high);
                    self.b.ins().band(above, under)
                }
                (Scalar::Memory(value), set) => self.is_wide_in(value, width, set),
                (Scalar::Register(_), _) => self.b.ins().iconst(types::I8, 1),
            }),
        }
    }

    fn is_masked(&mut self, value: Value, wanted: u128, mask: u128, width: u32) -> Value {
        let mask = self.constant(mask, width);
        let masked = self.b.ins().band(value, mask);
        self.is_constant(masked, wanted, width)
    }

    fn is_wide_in(&mut self, value: Value, width: u32, set: &KeySet) -> Value {
        let all = (BigUint::from(1u32) << width) - 1u32;
        let (range, low, high) = match set {
            KeySet::Exact(wanted) => (0, wanted.clone(), all),
            KeySet::Mask(wanted, mask) => (0, wanted & mask, mask.clone()),
            KeySet::Prefix(wanted, length) => {
                let rest = width.saturating_sub(*length);
                let mask = (&all >> rest) << rest;
                (0, wanted & &mask, mask)
            }
            KeySet::Range(low, high) => (1, low.clone(), high.clone()),
            KeySet::Any | KeySet::Member { .. } => (0, BigUint::default(), BigUint::default()),
        };
        let low = self.number_words(&low, width);
        let high = self.number_words(&high, width);
        let words = self.number(word_count(width) as u64);
        let range = self.number(range);
        let inside = self.call_for(
            run::wide_within as *const u8,
            &[value, low, high, words, range],
        );
        self.is_not_zero(inside)
    }
}
