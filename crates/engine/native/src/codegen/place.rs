//! Places: where a variable's part lies, as far as that is known when code is made.

use super::value::Scalar;
use super::{Gen, WORD_BYTES};
use crate::plan::REGISTER_BITS;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use stateplane_ir::{Expr, ExprKind, Place, Projection, Type, VarId};
use stateplane_runtime::bits::{low_word, word_count};
use stateplane_runtime::layout::scalar_bits;

/// Position of a place.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// Its first word.
    pub(super) at: usize,
    /// Bytes to go on from there, computed from indices.
    pub(super) dynamic: Option<Value>,
    /// A condition that holds if the place exists: no index is past the end.
    pub(super) guard: Option<Value>,
    /// Type of what lies there; of a slice, of what it is cut from.
    pub(super) ty: Type,
    /// Highest and lowest bit of a slice.
    pub(super) slice: Option<(u32, u32)>,
    /// The union that a header is a member of: its first word and type.
    union: Option<(usize, Type)>,
}

impl Spot {
    pub(super) fn whole(at: usize, ty: Type) -> Spot {
        Spot {
            at,
            dynamic: None,
            guard: None,
            ty,
            slice: None,
            union: None,
        }
    }

    fn part(&self, at: usize, ty: Type) -> Spot {
        Spot {
            at,
            ty,
            union: None,
            ..self.clone()
        }
    }

    /// Width of the scalar that lies there, or of the slice.
    pub(super) fn width(&self) -> u32 {
        match self.slice {
            Some((hi, lo)) => hi - lo + 1,
            None => scalar_bits(self.ty),
        }
    }
}

impl Gen<'_, '_> {
    pub(super) fn variable(&self, var: VarId) -> Spot {
        let ty = self.program().vars[var.index()].ty;
        Spot::whole(self.bases[var.index()], ty)
    }

    /// Finds a place. `None` if it certainly lies past the end of a stack; where that
    /// depends, the spot has a guard. For `next` and `last` past the end in a parser
    /// the fault is noted.
    pub(super) fn spot(&mut self, place: &Place) -> Option<Spot> {
        self.spot_of(place.var, &place.path)
    }

    pub(super) fn spot_of(&mut self, var: VarId, path: &[Projection]) -> Option<Spot> {
        let mut spot = self.variable(var);
        for step in path {
            spot = match step {
                Projection::Field(field) => {
                    let (Type::Struct(id) | Type::Header(id) | Type::Union(id)) = spot.ty else {
                        return None;
                    };
                    let offset = self.plan.storage.layout.field_offset(spot.ty, *field);
                    let ty = self.program().structs[id.index()].fields[*field as usize].ty;
                    let mut part = spot.part(spot.at + offset, ty);
                    if matches!(spot.ty, Type::Union(_)) {
                        part.union = Some((spot.at, spot.ty));
                    }
                    part
                }
                Projection::Slice { hi, lo } => Spot {
                    slice: Some((*hi, *lo)),
                    ..spot
                },
                Projection::Index(_) | Projection::Next | Projection::Last => {
                    self.element(spot, step)?
                }
            };
        }
        Some(spot)
    }

    fn element(&mut self, stack: Spot, step: &Projection) -> Option<Spot> {
        let Type::Stack(id) = stack.ty else {
            return None;
        };
        let (ty, stride, count) = self.plan.storage.layout.stack(id);
        let first = stack.at + 1;
        if let Projection::Index(index) = step
            && let Some(index) = constant(index)
        {
            let index = usize::try_from(index).ok()?;
            return (index < count as usize).then(|| stack.part(first + index * stride, ty));
        }
        let index = match step {
            Projection::Index(index) => self.index(index),
            Projection::Next => self.load(stack.at, stack.dynamic, 32),
            _ => {
                let next = self.load(stack.at, stack.dynamic, 32);
                self.b.ins().iadd_imm_s(next, -1)
            }
        };
        let count = self.number(u64::from(count));
        let exists = self.b.ins().icmp(IntCC::UnsignedLessThan, index, count);
        if self.in_parser && !matches!(step, Projection::Index(_)) {
            let missing = self
                .b
                .ins()
                .icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
            let missing = self.bit(missing);
            let fault = self.b.use_var(self.fault);
            let fault = self.b.ins().bor(fault, missing);
            self.b.def_var(self.fault, fault);
        }
        let zero = self.number(0);
        let index = self.b.ins().select(exists, index, zero);
        let bytes = self.number((stride * WORD_BYTES) as u64);
        let offset = self.b.ins().imul(index, bytes);
        let mut spot = stack.part(first, ty);
        spot.dynamic = Some(match stack.dynamic {
            Some(dynamic) => self.b.ins().iadd(dynamic, offset),
            None => offset,
        });
        spot.guard = Some(match stack.guard {
            Some(guard) => self.b.ins().band(guard, exists),
            None => exists,
        });
        Some(spot)
    }

    /// Reads the scalar at a spot; zero where there is none.
    pub(super) fn load_spot(&mut self, spot: &Spot) -> Scalar {
        let whole = scalar_bits(spot.ty);
        let width = spot.width();
        if whole <= REGISTER_BITS {
            let value = self.load(spot.at, spot.dynamic, whole);
            let value = match spot.slice {
                Some((_, lo)) => self.slice_of(value, whole, lo, width),
                None => value,
            };
            return Scalar::Register(self.or_zero(spot.guard, value, width));
        }
        let pointer = self.pointer(spot.at, spot.dynamic);
        if spot.slice.is_some_and(|_| width <= REGISTER_BITS) {
            let lo = spot.slice.map_or(0, |(_, lo)| lo);
            let value = self.wide_bits(pointer, whole, lo, width);
            return Scalar::Register(self.or_zero(spot.guard, value, width));
        }
        // The value that is read must not change when the place is written.
        let words = word_count(width);
        let copy = self.scratch(words);
        self.zero_words(copy, words);
        self.guarded(spot.guard, |g| match spot.slice {
            Some((_, lo)) => g.wide_slice(copy, width, pointer, whole, lo),
            None => g.copy_words(copy, pointer, words),
        });
        Scalar::Memory(copy)
    }

    fn or_zero(&mut self, guard: Option<Value>, value: Value, width: u32) -> Value {
        let Some(guard) = guard else {
            return value;
        };
        let zero = self.constant(0, width);
        self.b.ins().select(guard, value, zero)
    }

    /// Writes the scalar at a spot.
    pub(super) fn store_spot(&mut self, spot: &Spot, value: Scalar) {
        let whole = scalar_bits(spot.ty);
        let spot = spot.clone();
        self.guarded(spot.guard, |g| match (spot.slice, value) {
            (None, value) => g.put(spot.at, spot.dynamic, whole, value),
            (Some((hi, lo)), Scalar::Register(value)) if whole <= REGISTER_BITS => {
                let width = hi - lo + 1;
                let old = g.load(spot.at, spot.dynamic, whole);
                let hole = !(stateplane_runtime::bits::mask(width) << lo)
                    & stateplane_runtime::bits::mask(whole);
                let hole = g.constant(hole, whole);
                let kept = g.b.ins().band(old, hole);
                let value = g.narrowed(value, width, whole);
                let moved = g.shifted_left(value, lo);
                let value = g.b.ins().bor(kept, moved);
                g.store(spot.at, spot.dynamic, whole, value);
            }
            (Some((hi, lo)), value) => {
                let width = hi - lo + 1;
                let pointer = g.pointer(spot.at, spot.dynamic);
                let from = g.in_memory(value, width);
                let words = [lo, width, whole].map(|number| g.number(u64::from(number)));
                let [lo, width, whole] = words;
                g.call_engine(
                    crate::run::set_slice as *const u8,
                    &[pointer, whole, lo, width, from],
                    false,
                );
            }
        });
    }

    /// After a header became what its validity says: if it is valid and a member of a
    /// union, no other member is.
    pub(super) fn settle_union(&mut self, spot: &Spot) {
        let Some((start, union)) = spot.union else {
            return;
        };
        let Type::Union(id) = union else {
            return;
        };
        let valid = self.load(spot.at, spot.dynamic, 1);
        for member in 0..self.program().structs[id.index()].fields.len() as u32 {
            let at = start + self.plan.storage.layout.field_offset(union, member);
            if at != spot.at {
                let old = self.load(at, spot.dynamic, 1);
                let zero = self.number(0);
                let new = self.b.ins().select(valid, zero, old);
                self.store(at, spot.dynamic, 1, new);
            }
        }
    }

    /// `isValid()`, as a scalar.
    pub(super) fn is_valid(&mut self, spot: &Spot) -> Value {
        let valid = match spot.ty {
            Type::Union(id) => {
                let mut any = self.number(0);
                for member in 0..self.program().structs[id.index()].fields.len() as u32 {
                    let offset = self.plan.storage.layout.field_offset(spot.ty, member);
                    let valid = self.load(spot.at + offset, spot.dynamic, 1);
                    any = self.either(any, valid);
                }
                any
            }
            _ => self.load(spot.at, spot.dynamic, 1),
        };
        self.or_zero(spot.guard, valid, 1)
    }

    /// Writes a number, given as a register of 64 bits, modulo the place's width.
    pub(super) fn store_number(&mut self, place: &Place, value: Value) {
        if let Some(spot) = self.spot(place) {
            self.store_number_at(&spot, value, 64);
        }
    }

    /// Writes a number, given as a register of a scalar of `from` bits, modulo the
    /// spot's width.
    pub(super) fn store_number_at(&mut self, spot: &Spot, value: Value, from: u32) {
        let width = spot.width();
        let value = if width <= REGISTER_BITS {
            Scalar::Register(self.narrowed(value, from, width))
        } else {
            let words = word_count(width);
            let pointer = self.scratch(words);
            self.zero_words(pointer, words);
            self.spill(value, from, pointer, 0);
            Scalar::Memory(pointer)
        };
        self.store_spot(spot, value);
    }
}

/// The number of a constant expression.
pub(super) fn constant(expr: &Expr) -> Option<u128> {
    match &expr.kind {
        ExprKind::Const(stateplane_ir::Const::Bits(value)) if value.bits() <= 128 => {
            Some(low_word(value))
        }
        ExprKind::Const(stateplane_ir::Const::Bool(value)) => Some(u128::from(*value)),
        _ => None,
    }
}
