//! Lookups in tables: of hashes and tries in place, of all others by a call.

use super::Gen;
use super::bits::BitString;
use crate::context::Context;
use crate::run;
use crate::table::exact::HASH_FACTOR;
use crate::table::prefixes::{NODE, Strides, UNIT_BITS};
use crate::table::{Inline, View, inline};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, types};
use stateplane_ir::TableId;
use std::mem::{offset_of, size_of};

impl Gen<'_, '_> {
    /// Address of the engine's view of a table.
    pub(super) fn view(&mut self, id: TableId) -> Value {
        let tables = self.given(offset_of!(Context, tables));
        let view = (id.index() * size_of::<View>()) as i64;
        self.b.ins().iadd_imm_s(tables, view)
    }

    /// Field of the engine's view of a table, which does not change during a run.
    fn view_field(&mut self, view: Value, offset: usize) -> Value {
        let flags = Self::lasting(self.regions.context);
        self.b.ins().load(types::I64, flags, view, offset as i32)
    }

    /// The record for a key.
    pub(super) fn look_up(&mut self, id: TableId, view: Value, key: &BitString) -> Value {
        if key.width == 0 {
            return self.view_field(view, offset_of!(View, default));
        }
        let words = self.key_words(key);
        let program = self.program();
        match inline(program, &program.tables[id.index()]) {
            Some(Inline::Exact { record }) => self.find_exact(view, &words, record),
            Some(Inline::Prefixes { strides, record }) => {
                self.find_prefix(view, words[0], strides, record)
            }
            None => self.call_look_up(view, &words),
        }
    }

    fn call_look_up(&mut self, view: Value, words: &[Value]) -> Value {
        match *words {
            [one] => self.call_for(run::look_up_1 as *const u8, &[view, one]),
            [one, two] => self.call_for(run::look_up_2 as *const u8, &[view, one, two]),
            _ => {
                let pointer = self.scratch(words.len().div_ceil(2));
                let flags = Self::flags(self.regions.storage);
                for (index, word) in words.iter().enumerate() {
                    self.b.ins().store(flags, *word, pointer, index as i32 * 8);
                }
                self.call_for(run::look_up as *const u8, &[view, pointer])
            }
        }
    }

    /// Hash of words, equal to that of `table::exact`.
    fn hash_words(&mut self, start: Value, words: &[Value]) -> Value {
        let mut hash = start;
        let factor = self.number(HASH_FACTOR);
        for word in words {
            let mixed = self.b.ins().bxor(hash, *word);
            let low = self.b.ins().imul(mixed, factor);
            let high = self.b.ins().umulhi(mixed, factor);
            hash = self.b.ins().bxor(low, high);
        }
        hash
    }

    /// Linear probing of slots with a record, and behind it the words of its key.
    fn find_exact(&mut self, view: Value, words: &[Value], record: usize) -> Value {
        let slots = self.view_field(view, offset_of!(View, slots));
        let mask = self.view_field(view, offset_of!(View, mask));
        let start = self.view_field(view, offset_of!(View, start));
        let hash = self.hash_words(start, words);
        let first = self.b.ins().band(hash, mask);
        let [probe, other, next, missing, found] = [(); 5].map(|()| self.block());
        self.b.append_block_param(probe, types::I64);
        self.b.append_block_param(found, types::I64);
        self.b.ins().jump(probe, &[BlockArg::Value(first)]);
        self.enter_open(probe);
        let number = self.b.block_params(probe)[0];
        let stride = (record + words.len() * 8) as i64;
        let stride = self.number(stride as u64);
        let offset = self.b.ins().imul(number, stride);
        let slot = self.b.ins().iadd(slots, offset);
        let flags = Self::flags(self.regions.state);
        let head = self.b.ins().load(types::I64, flags, slot, 0);
        let mut differs = None;
        for (index, word) in words.iter().enumerate() {
            let at = (record + index * 8) as i32;
            let kept = self.b.ins().load(types::I64, flags, slot, at);
            let differing = self.b.ins().bxor(kept, *word);
            differs = Some(match differs {
                Some(others) => self.b.ins().bor(others, differing),
                None => differing,
            });
        }
        let differs = match differs {
            Some(differs) => differs,
            None => self.number(0),
        };
        let entry = self.shifted_right(head, 32);
        // A free slot has the number 0.
        self.branch(differs, other, next);
        self.enter(next);
        self.b
            .ins()
            .brif(entry, found, &[BlockArg::Value(slot)], missing, &[]);
        self.enter(other);
        let following = self.block();
        self.branch(entry, following, missing);
        self.enter(following);
        let one = self.b.ins().iadd_imm_s(number, 1);
        let again = self.b.ins().band(one, mask);
        self.b.ins().jump(probe, &[BlockArg::Value(again)]);
        self.b.seal_block(probe);
        self.enter(missing);
        let default = self.view_field(view, offset_of!(View, default));
        self.b.ins().jump(found, &[BlockArg::Value(default)]);
        self.enter(found);
        self.b.block_params(found)[0]
    }

    /// Lookup in a trie, node by node; the maximum depth is known.
    fn find_prefix(&mut self, view: Value, key: Value, strides: Strides, record: usize) -> Value {
        let slots = self.view_field(view, offset_of!(View, slots));
        let default = self.view_field(view, offset_of!(View, default));
        let flags = Self::flags(self.regions.state);
        let Strides { width, first } = strides;
        let bits = |g: &mut Self, from: u32, size: u32| {
            let end = from + size;
            let moved = if end <= width {
                g.shifted_right(key, width - end)
            } else {
                g.shifted_left(key, end - width)
            };
            if from == 0 {
                moved
            } else {
                g.masked(moved, size)
            }
        };
        let found = self.block();
        self.b.append_block_param(found, types::I32);
        let index = bits(self, 0, first);
        let offset = self.shifted_left(index, 2);
        let at = self.b.ins().iadd(slots, offset);
        let mut slot = self.b.ins().load(types::I32, flags, at, 0);
        let nodes = (1i32 << first) * 4;
        let mut from = first;
        while from < width {
            // The highest bit tells nodes from records.
            let is_node = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, slot, 0);
            let inner = self.block();
            self.b
                .ins()
                .brif(is_node, inner, &[], found, &[BlockArg::Value(slot)]);
            self.enter(inner);
            let slot_64 = self.b.ins().uextend(types::I64, slot);
            let number = self.masked(slot_64, NODE.trailing_zeros());
            let start = self.shifted_left(number, UNIT_BITS + 2);
            let size = strides.size(from);
            let index = bits(self, from, size);
            let offset = self.shifted_left(index, 2);
            let node = self.b.ins().iadd(slots, start);
            let at = self.b.ins().iadd(node, offset);
            slot = self.b.ins().load(types::I32, flags, at, nodes);
            from += size;
        }
        self.b.ins().jump(found, &[BlockArg::Value(slot)]);
        self.enter(found);
        let number = self.b.block_params(found)[0];
        let number = self.b.ins().uextend(types::I64, number);
        let size = self.number(record as u64);
        let offset = self.b.ins().imul(number, size);
        self.b.ins().iadd(default, offset)
    }
}
