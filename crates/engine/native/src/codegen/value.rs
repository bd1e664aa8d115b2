//! Scalars in registers and in memory: loading and storing words of the storage.

use super::place::Spot;
use super::{Gen, WORD_BYTES, clif};
use crate::plan::Home;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use stateplane_ir::Type;
use stateplane_runtime::bits::word_count;
use stateplane_runtime::storage::parts;

/// A scalar that was computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar {
    /// In a register: of up to 64 bits in one of 64, else in one of 128.
    Register(Value),
    /// Words at an address.
    Memory(Value),
}

impl Gen<'_, '_> {
    /// The scalars that a value of type `ty` consists of: words from its start, and
    /// widths.
    pub(super) fn scalars(&self, ty: Type) -> Vec<(usize, u32)> {
        let leaves = self.plan.storage.layout.leaves(ty);
        leaves.into_iter().flat_map(parts).collect()
    }

    /// Address of a word, `dynamic` bytes behind where it lies.
    pub(super) fn pointer(&mut self, at: usize, dynamic: Option<Value>) -> Value {
        // A holder of the pointer may write there.
        self.mark_dirty(at);
        let (base, offset) = self.address(at);
        let base = match dynamic {
            Some(dynamic) => self.b.ins().iadd(base, dynamic),
            None => base,
        };
        self.b.ins().iadd_imm_s(base, offset as i64)
    }

    /// Loads a scalar of up to 128 bits.
    pub(super) fn load(&mut self, at: usize, dynamic: Option<Value>, width: u32) -> Value {
        if dynamic.is_none() {
            match self.home(at) {
                Some((_, Home::Register)) => {
                    self.used[at] = true;
                    return self.read_register(at, width);
                }
                Some((_, Home::Frame { header, bit })) => {
                    self.deferred.note_memory();
                    let origin = self.b.use_var(self.origins[header as usize]);
                    let bytes = self.plan.headers[header as usize].bytes;
                    return self.load_bits(origin, bit, width, bytes);
                }
                _ => {}
            }
        }
        let (base, offset) = self.address(at);
        let base = match dynamic {
            Some(dynamic) => self.b.ins().iadd(base, dynamic),
            None => base,
        };
        let flags = Self::flags(self.regions.storage);
        self.b.ins().load(clif(width), flags, base, offset as i32)
    }

    /// Stores a scalar of up to 128 bits.
    pub(super) fn store(&mut self, at: usize, dynamic: Option<Value>, width: u32, value: Value) {
        if dynamic.is_none()
            && let Some((_, Home::Register)) = self.home(at)
        {
            if self.in_parser && at < self.plan.storage.packet.end {
                match self.known(value) {
                    Some(known) => drop(self.values.insert(at, known)),
                    None => drop(self.values.remove(&at)),
                }
            }
            return self.write_register(at, width, value);
        }
        self.store_in_memory(at, dynamic, value);
    }

    /// Notes that a word of the packet may be written ([`Plan::dirty`](crate::plan::Plan::dirty)).
    fn mark_dirty(&mut self, at: usize) {
        if self.plan.uses_memory && at < self.plan.storage.packet.end {
            let some = self.number(1);
            let flags = Self::flags(self.regions.storage);
            let offset = (self.plan.dirty() * WORD_BYTES) as i32;
            self.b.ins().store(flags, some, self.packet, offset);
        }
    }

    /// Not 0 if a word of the packet that lives in memory may be.
    pub(super) fn is_dirty(&mut self) -> Value {
        self.deferred.note_memory();
        let flags = Self::flags(self.regions.storage);
        let offset = (self.plan.dirty() * WORD_BYTES) as i32;
        let packet = self.packet;
        self.b.ins().load(types::I64, flags, packet, offset)
    }

    /// Stores a register in its words, also one that does not live there.
    pub(super) fn store_in_memory(&mut self, at: usize, dynamic: Option<Value>, value: Value) {
        if matches!(self.home(at), Some((_, Home::Memory))) {
            self.mark_dirty(at);
        }
        let (base, offset) = self.address(at);
        let base = match dynamic {
            Some(dynamic) => self.b.ins().iadd(base, dynamic),
            None => base,
        };
        let flags = Self::flags(self.regions.storage);
        self.b.ins().store(flags, value, base, offset as i32);
    }

    /// Stores a register as a word of scratch memory.
    pub(super) fn spill(&mut self, value: Value, width: u32, pointer: Value, word: usize) {
        let flags = Self::flags(self.regions.storage);
        let offset = (word * WORD_BYTES) as i32;
        self.b.ins().store(flags, value, pointer, offset);
        if width <= 64 {
            let zero = self.number(0);
            self.b.ins().store(flags, zero, pointer, offset + 8);
        }
    }

    /// Loads a register from scratch memory.
    pub(super) fn unspill(&mut self, width: u32, pointer: Value) -> Value {
        let flags = Self::flags(self.regions.storage);
        self.b.ins().load(clif(width), flags, pointer, 0)
    }

    /// Writes a scalar of any kind to one of the storage.
    pub(super) fn put(&mut self, at: usize, dynamic: Option<Value>, width: u32, value: Scalar) {
        match value {
            Scalar::Register(value) => self.store(at, dynamic, width, value),
            Scalar::Memory(from) => {
                let to = self.pointer(at, dynamic);
                self.copy_words(to, from, word_count(width));
            }
        }
    }

    /// Sets a scalar to zero.
    pub(super) fn put_zero(&mut self, at: usize, dynamic: Option<Value>, width: u32) {
        let memory = matches!(self.home(at), Some((_, Home::Memory))) || dynamic.is_some();
        if memory && (width > 128) {
            let to = self.pointer(at, dynamic);
            self.zero_words(to, word_count(width));
            return;
        }
        if let (None, Some((_, Home::Frame { header, .. }))) = (dynamic, self.home(at)) {
            self.deferred.note_memory();
            let zeros = self.given(std::mem::offset_of!(crate::context::Context, zeros));
            self.b.def_var(self.origins[header as usize], zeros);
            return;
        }
        let zero = self.constant(0, width);
        self.store(at, dynamic, width, zero);
    }

    /// Copies words between variables or scratch memory, which do not overlap unless
    /// they are the same.
    pub(super) fn copy_words(&mut self, to: Value, from: Value, words: usize) {
        if words > 4 {
            let words = self.number(words as u64);
            self.call_engine(
                crate::run::copy_words as *const u8,
                &[to, from, words],
                false,
            );
            return;
        }
        let flags = Self::flags(self.regions.storage);
        let offset = |word: usize| (word * WORD_BYTES) as i32;
        let loaded: Vec<Value> = (0..words)
            .map(|word| self.b.ins().load(types::I128, flags, from, offset(word)))
            .collect();
        for (word, value) in loaded.into_iter().enumerate() {
            self.b.ins().store(flags, value, to, offset(word));
        }
    }

    pub(super) fn zero_words(&mut self, to: Value, words: usize) {
        let words = self.number(words as u64);
        self.call_engine(crate::run::zero_words as *const u8, &[to, words], false);
    }

    /// Sets a value of any type to its default.
    pub(super) fn clear(&mut self, spot: &Spot) {
        if let Some((hi, lo)) = spot.slice {
            let zero = self.zero(hi - lo + 1);
            return self.store_spot(spot, zero);
        }
        let words = self.plan.storage.layout.words(spot.ty);
        let in_memory = spot.dynamic.is_some() || matches!(spot.ty, Type::Stack(_));
        if in_memory && words > 4 {
            let to = self.pointer(spot.at, spot.dynamic);
            return self.zero_words(to, words);
        }
        for (offset, width) in self.scalars(spot.ty) {
            self.put_zero(spot.at + offset, spot.dynamic, width);
        }
    }

    /// Zeros in the place of what lives in registers.
    pub(super) fn clear_registers(&mut self, spot: &Spot) {
        for (offset, width) in self.scalars(spot.ty) {
            let at = spot.at + offset;
            if !matches!(self.home(at), Some((_, Home::Memory)) | None) {
                self.put_zero(at, spot.dynamic, width);
            }
        }
    }

    /// A zero of any width.
    pub(super) fn zero(&mut self, width: u32) -> Scalar {
        if width <= 128 {
            return Scalar::Register(self.constant(0, width));
        }
        let words = word_count(width);
        let pointer = self.scratch(words);
        self.zero_words(pointer, words);
        Scalar::Memory(pointer)
    }

    /// A register of 128 bits from one of a scalar.
    pub(super) fn widened(&mut self, value: Value, width: u32) -> Value {
        if width <= 64 {
            self.b.ins().uextend(types::I128, value)
        } else {
            value
        }
    }

    /// Low bits of a register, in that of a scalar of `width` bits.
    pub(super) fn narrowed(&mut self, value: Value, from: u32, width: u32) -> Value {
        let value = match (from <= 64, width <= 64) {
            (true, false) => self.b.ins().uextend(types::I128, value),
            (false, true) => self.b.ins().ireduce(types::I64, value),
            _ => value,
        };
        if width < from {
            self.masked(value, width)
        } else {
            value
        }
    }

    /// Clears the bits from `width` on.
    pub(super) fn masked(&mut self, value: Value, width: u32) -> Value {
        if width == 64 || width >= 128 {
            return value;
        }
        let part = match width {
            8 => Some(types::I8),
            16 => Some(types::I16),
            32 => Some(types::I32),
            _ => None,
        };
        if let Some(part) = part
            && self.b.func.dfg.value_type(value) == types::I64
        {
            let value = self.b.ins().ireduce(part, value);
            return self.b.ins().uextend(types::I64, value);
        }
        if width < 64 {
            let mask = self.number((1u64 << width) - 1);
            return self.b.ins().band(value, mask);
        }
        let mask = self.constant((1u128 << width) - 1, width);
        self.b.ins().band(value, mask)
    }

    /// Condition that a register is not zero.
    pub(super) fn is_not_zero(&mut self, value: Value) -> Value {
        let zero = match self.b.func.dfg.value_type(value) {
            types::I128 => self.constant(0, 128),
            ty => self.b.ins().iconst(ty, 0),
        };
        self.b.ins().icmp(IntCC::NotEqual, value, zero)
    }

    /// A condition as a scalar of one bit.
    pub(super) fn bit(&mut self, condition: Value) -> Value {
        if let Some(known) = self.known(condition) {
            return self.number(known);
        }
        self.b.ins().uextend(types::I64, condition)
    }
}
