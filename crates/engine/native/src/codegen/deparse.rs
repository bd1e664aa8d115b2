//! `packet.emit`: valid headers to bytes.

use super::Gen;
use super::bits::BitString;
use super::place::Spot;
use crate::context::Context;
use crate::plan::{Home, REGISTER_BITS};
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use stateplane_ir::{Place, StructId, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::{Leaf, LeafKind};
use std::mem::offset_of;

impl Gen<'_, '_> {
    /// `packet.emit`.
    pub(super) fn emit(&mut self, value: &Place) {
        if let Some(spot) = self.spot(value) {
            self.guarded(spot.guard, |g| g.emit_part(spot.ty, &spot));
        }
    }

    fn emit_part(&mut self, ty: Type, spot: &Spot) {
        let part = |offset: usize, ty: Type| {
            let mut part = Spot::whole(spot.at + offset, ty);
            part.dynamic = spot.dynamic;
            part
        };
        match ty {
            Type::Header(id) => {
                let valid = self.load(spot.at, spot.dynamic, 1);
                let [emitted, after] = [(); 2].map(|()| self.block());
                self.branch(valid, emitted, after);
                if self.go_on(emitted) {
                    self.free_scratch();
                    self.emit_header(id, spot);
                    self.jump(after);
                }
                self.go_on(after);
            }
            Type::Struct(id) | Type::Union(id) => {
                for field in 0..self.program().structs[id.index()].fields.len() {
                    let offset = self.plan.storage.layout.field_offset(ty, field as u32);
                    let ty = self.program().structs[id.index()].fields[field].ty;
                    self.emit_part(ty, &part(offset, ty));
                }
            }
            Type::Stack(id) => {
                let (element, stride, count) = self.plan.storage.layout.stack(id);
                let [dirty, after] = [(); 2].map(|()| self.block());
                if spot.at < self.plan.storage.packet.end {
                    // One look for all its headers, which few packets have.
                    let is_dirty = self.is_dirty();
                    self.branch(is_dirty, dirty, after);
                } else {
                    self.jump(dirty);
                }
                if self.go_on(dirty) {
                    for index in 0..count as usize {
                        self.emit_part(element, &part(1 + index * stride, element));
                    }
                    self.jump(after);
                }
                self.go_on(after);
            }
            _ => {}
        }
    }

    fn emit_header(&mut self, id: StructId, spot: &Spot) {
        let leaves = self.plan.storage.layout.header_leaves(id).to_vec();
        if let Some(origin) = self.unmoved(spot) {
            return self.emit_changes(&leaves, spot, origin);
        }
        let mut string = BitString::default();
        for leaf in leaves {
            let at = spot.at + 1 + leaf.offset;
            match leaf.kind {
                LeafKind::Validity | LeafKind::NextIndex => {}
                LeafKind::Scalar if spot.dynamic.is_none() => {
                    self.push_word(&mut string, at, leaf.width);
                }
                LeafKind::Scalar => {
                    let scalar = if leaf.width <= REGISTER_BITS {
                        let value = self.load(at, spot.dynamic, leaf.width);
                        super::value::Scalar::Register(value)
                    } else {
                        super::value::Scalar::Memory(self.pointer(at, spot.dynamic))
                    };
                    string.push_scalar(scalar, leaf.width);
                }
                LeafKind::Varbit => {
                    self.emit_string(&std::mem::take(&mut string));
                    self.emit_varbit(at, leaf.width, spot);
                }
            }
        }
        self.emit_string(&string);
    }

    /// Offset from which a header was read, if it may still have that offset in the output, which
    /// begins as a copy of the frame.
    fn unmoved(&mut self, spot: &Spot) -> Option<Value> {
        if !self.plan.emits_plainly || spot.dynamic.is_some() {
            return None;
        }
        let header = *self.plan.header_at.get(&spot.at)? as usize;
        let end = self.room + self.plan.headers[header].bytes as usize;
        (end <= run::COPIED).then(|| self.b.use_var(self.origins[header]))
    }

    /// Emits a header that was read from the frame at `origin`: where it still has its
    /// place, only what may have changed is written.
    fn emit_changes(&mut self, leaves: &[Leaf], spot: &Spot, origin: Value) {
        let mut string = BitString::default();
        let mut changed: Vec<(u32, u32)> = Vec::new();
        for leaf in leaves {
            let (at, start) = (spot.at + 1 + leaf.offset, string.width);
            self.push_word(&mut string, at, leaf.width);
            if matches!(self.home(at), Some((_, Home::Frame { .. }))) {
                continue;
            }
            // Whole bytes.
            let (start, end) = (start / 8 * 8, string.width.next_multiple_of(8));
            match changed.last_mut() {
                Some((_, last)) if *last >= start => *last = end,
                _ => changed.push((start, end)),
            }
        }
        let out = self.b.use_var(self.out);
        let emitted = self.b.use_var(self.emitted);
        let pointer = self.sum(out, emitted);
        let bytes = string.width / 8;
        self.room += bytes as usize;
        let place = self.sum(self.frame, emitted);
        let same = match (self.known_place(origin), self.known_place(place)) {
            (Some(origin), Some(place)) => self.number(u64::from(origin == place)),
            _ => self.b.ins().icmp(IntCC::Equal, origin, place),
        };
        let [patched, written, after] = [(); 3].map(|()| self.block());
        self.branch(same, patched, written);
        let flags = Self::flags(self.regions.out);
        if self.go_on(patched) {
            for (start, end) in changed {
                self.store_bits(&string, start..end, flags, pointer);
            }
            self.jump(after);
        }
        if self.go_on(written) {
            self.store_bits(&string, 0..string.width, flags, pointer);
            self.jump(after);
        }
        self.go_on(after);
        let bytes = self.number(u64::from(bytes));
        let emitted = self.sum(emitted, bytes);
        self.b.def_var(self.emitted, emitted);
    }

    /// Position of the next output byte, with room for `bytes` bytes.
    fn out(&mut self, bytes: Value) -> Value {
        let emitted = self.b.use_var(self.emitted);
        let context = self.context;
        self.call_for(run::reserve as *const u8, &[context, emitted, bytes])
    }

    fn emit_string(&mut self, string: &BitString) {
        if string.width == 0 {
            return;
        }
        if self.plan.emits_bits {
            let mut at = 0;
            while at < string.width {
                let width = (string.width - at).min(64);
                let value = self.gather(string, at, width);
                let width_value = self.number(u64::from(width));
                let context = self.context;
                self.call_engine(
                    run::emit_bits as *const u8,
                    &[context, value, width_value],
                    false,
                );
                at += width;
            }
            return;
        }
        let bytes = self.number(u64::from(string.width / 8));
        let pointer = if self.plan.emits_often {
            self.out(bytes)
        } else {
            self.room += (string.width / 8) as usize;
            let out = if self.plan.emits_plainly {
                self.b.use_var(self.out)
            } else {
                self.context_field(offset_of!(Context, out))
            };
            let emitted = self.b.use_var(self.emitted);
            self.sum(out, emitted)
        };
        let flags = Self::flags(self.regions.out);
        self.store_bits(string, 0..string.width, flags, pointer);
        let emitted = self.b.use_var(self.emitted);
        let emitted = self.sum(emitted, bytes);
        self.b.def_var(self.emitted, emitted);
    }

    fn emit_varbit(&mut self, at: usize, width: u32, spot: &Spot) {
        let length = self.load(at, spot.dynamic, 32);
        let greatest = self.number(u64::from(width));
        let length = self.b.ins().umin(length, greatest);
        let from = self.pointer(at + 1, spot.dynamic);
        let words = self.number(word_count(width) as u64);
        let context = self.context;
        if self.plan.emits_bits {
            self.call_engine(
                run::emit_words as *const u8,
                &[context, from, words, length],
                false,
            );
            return;
        }
        let bytes = self.shifted_right(length, 3);
        let pointer = self.out(bytes);
        self.call_engine(
            run::write_words as *const u8,
            &[pointer, from, words, length],
            false,
        );
        let emitted = self.b.use_var(self.emitted);
        let emitted = self.b.ins().iadd(emitted, bytes);
        self.b.def_var(self.emitted, emitted);
    }
}
