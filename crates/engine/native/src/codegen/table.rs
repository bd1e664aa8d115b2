//! `table.apply()`: the key, the lookup, the action.

use super::Gen;
use super::bits::BitString;
use crate::plan::fixed_place;
use crate::run;
use crate::table::{Shape, View};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Switch;
use stateplane_ir::{Direction, Expr, ExprKind, MatchKind, Place, TableId};
use stateplane_runtime::layout::scalar_bits;
use std::mem::offset_of;

impl Gen<'_, '_> {
    /// Looks a table up and runs the action that it names.
    pub(super) fn apply(&mut self, id: TableId, hit: Option<&Place>, action_run: Option<&Place>) {
        let program = self.program();
        let def = &program.tables[id.index()];
        let mut key = BitString::default();
        let matched = def.keys.iter();
        for part in matched.filter(|part| part.match_kind != MatchKind::Selector) {
            self.push_expr(&mut key, &part.expr);
        }
        self.check_fault();
        let view = self.view(id);
        let record = self.look_up(id, view, &key);
        let flags = Self::flags(self.regions.state);
        let head = self.b.ins().load(types::I64, flags, record, 0);
        let found = self.shifted_right(head, 32);
        if def.direct_counter.is_some() || def.direct_meter.is_some() || def.support_timeout {
            let context = self.context;
            let table = self.number(u64::from(id.0));
            let meter = def
                .direct_meter
                .map_or(u64::MAX, |meter| u64::from(meter.0));
            let meter = self.number(meter);
            self.call_engine(
                run::note_hit as *const u8,
                &[context, table, found, meter],
                false,
            );
        }
        let (record, head) = match def.implementation {
            Some(profile) => self.held(id, profile, view, found),
            None => (record, head),
        };
        let shape = Shape::of(program, def);
        let after = self.block();
        let action = self.masked(head, 32);
        let blocks: Vec<Block> = def.actions.iter().map(|_| self.block()).collect();
        match blocks.as_slice() {
            [only] if def.implementation.is_none() => self.jump(*only),
            [first, ..] => {
                // Nothing is run where the group of an entry is empty.
                let (otherwise, known) = match def.implementation {
                    Some(_) => (after, 0),
                    None => (*first, 1),
                };
                let mut switch = Switch::new();
                for (position, block) in blocks.iter().enumerate().skip(known) {
                    switch.set_entry(position as u128, *block);
                }
                switch.emit(&mut self.b, action, otherwise);
                self.entered.insert(otherwise);
                self.live = false;
            }
            [] => self.jump(after),
        }
        for (position, block) in blocks.into_iter().enumerate() {
            self.enter(block);
            self.free_scratch();
            self.load_data(id, position, record, &shape);
            let listed = &def.actions[position];
            self.run_action(listed.action, &listed.bound);
            self.jump(after);
        }
        if !self.entered.contains(&after) {
            return;
        }
        self.enter(after);
        if let Some(place) = hit {
            let zero = self.number(0);
            let hit = self.b.ins().icmp(IntCC::NotEqual, found, zero);
            let hit = self.bit(hit);
            self.store_number(place, hit);
        }
        if let Some(place) = action_run {
            self.store_number(place, action);
        }
    }

    /// The words of a key, from the least significant on.
    pub(super) fn key_words(&mut self, key: &BitString) -> Vec<Value> {
        let mut words = Vec::new();
        let mut end = key.width;
        while end > 0 {
            let width = end.min(64);
            end -= width;
            words.push(self.gather(key, end, width));
        }
        words
    }

    /// Announces the lookups in large tables whose keys are fields of the packet as it
    /// came.
    pub(super) fn announce_lookups(&mut self) {
        let program = self.program();
        for (number, def) in program.tables.iter().enumerate() {
            let mut width = 0;
            let known = def.keys.iter().all(|key| {
                width += scalar_bits(key.expr.ty);
                let kind = matches!(key.match_kind, MatchKind::Exact | MatchKind::Lpm);
                kind && self.is_of_headers(&key.expr)
            });
            if !known || width == 0 || width > 128 {
                continue;
            }
            let view = self.view(TableId(number as u32));
            let flags = Self::flags(self.regions.context);
            let at = offset_of!(View, large) as i32;
            let large = self.b.ins().load(types::I64, flags, view, at);
            let [then, after] = [(); 2].map(|()| self.block());
            self.branch(large, then, after);
            self.enter(then);
            let mut key = BitString::default();
            for part in &def.keys {
                self.push_expr(&mut key, &part.expr);
            }
            match *self.key_words(&key) {
                [one] => self.call_engine(run::announce_1 as *const u8, &[view, one], false),
                [one, two] => {
                    self.call_engine(run::announce_2 as *const u8, &[view, one, two], false)
                }
                _ => None,
            };
            self.jump(after);
            self.enter(after);
        }
    }

    /// True if an expression is a field of the packet's headers.
    fn is_of_headers(&self, expr: &Expr) -> bool {
        let ExprKind::Read(place) = &expr.kind else {
            return false;
        };
        let program = self.program();
        // Where calls are replaced, parameters of inner controls are not known here; those
        // of the pipeline's blocks are.
        fixed_place(program, &self.plan.storage, &self.bases, place)
            .is_some_and(|(at, _)| at < self.plan.storage.metadata.start)
    }

    /// Gives an action its data from a record.
    fn load_data(&mut self, id: TableId, position: usize, record: Value, shape: &Shape) {
        let program = self.program();
        let listed = &program.tables[id.index()].actions[position];
        let action = &program.actions[listed.action.index()];
        let data = action.params.iter();
        let data = data.filter(|param| param.direction == Direction::Data);
        for (param, offset) in data.zip(&shape.data[position]) {
            let spot = self.variable(param.var);
            let width = scalar_bits(spot.ty);
            let flags = match program.tables[id.index()].implementation {
                // The record is put together for each packet.
                Some(_) => Self::flags(self.regions.state),
                None => Self::lasting(self.regions.state),
            };
            if width <= 128 {
                let ty = super::clif(width);
                let value = self.b.ins().load(ty, flags, record, *offset as i32);
                self.store(spot.at, None, width, value);
            } else {
                let from = self.b.ins().iadd_imm_s(record, *offset as i64);
                let to = self.pointer(spot.at, None);
                let words = stateplane_runtime::bits::word_count(width);
                let words = self.number(words as u64);
                self.call_engine(run::copy_words as *const u8, &[to, from, words], false);
            }
        }
    }
}
