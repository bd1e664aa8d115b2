//! Values of all types, as the scalars that they consist of.

use super::Gen;
use super::place::Spot;
use super::scalar::is_narrow;
use super::value::Scalar;
use crate::plan::REGISTER_BITS;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use stateplane_ir::{Expr, ExprKind, StructId, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::scalar_bits;

impl Gen<'_, '_> {
    /// The scalars of a value, in the order of their words. They do not change when
    /// variables are written.
    pub(super) fn flatten(&mut self, expr: &Expr) -> Vec<Scalar> {
        if is_narrow(expr.ty) {
            return vec![Scalar::Register(self.narrow(expr))];
        }
        match &expr.kind {
            ExprKind::Read(place) => match self.spot(place) {
                Some(spot) => self.flatten_spot(&spot),
                None => self.flatten_default(expr.ty),
            },
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => self.flatten_mux(condition, then, otherwise),
            ExprKind::Record(members) => {
                let mut scalars = Vec::new();
                if matches!(expr.ty, Type::Header(_)) {
                    scalars.push(Scalar::Register(self.number(1)));
                }
                for member in members {
                    scalars.extend(self.flatten(member));
                }
                scalars
            }
            ExprKind::Array(elements) => {
                let mut scalars = vec![Scalar::Register(self.number(0))];
                for element in elements {
                    scalars.extend(self.flatten(element));
                }
                scalars
            }
            ExprKind::Default => self.flatten_default(expr.ty),
            _ => vec![Scalar::Memory(self.wide(expr))],
        }
    }

    fn flatten_default(&mut self, ty: Type) -> Vec<Scalar> {
        let scalars = self.scalars(ty);
        let scalars = scalars.into_iter().map(|(_, width)| width);
        scalars.map(|width| self.zero(width)).collect()
    }

    fn flatten_spot(&mut self, spot: &Spot) -> Vec<Scalar> {
        if spot.slice.is_some() {
            return vec![self.load_spot(spot)];
        }
        let mut values = Vec::new();
        for (offset, width) in self.scalars(spot.ty) {
            // A varbit's value reads as a scalar of its greatest width.
            let mut part = Spot::whole(spot.at + offset, Type::Bits(width));
            part.dynamic = spot.dynamic;
            part.guard = spot.guard;
            let memory = matches!(self.home(part.at), Some((_, crate::plan::Home::Memory)));
            let value = if width <= REGISTER_BITS || !memory {
                self.load_spot(&part)
            } else {
                let words = word_count(width);
                let copy = self.scratch(words);
                self.zero_words(copy, words);
                let pointer = self.pointer(part.at, part.dynamic);
                self.guarded(part.guard, |g| g.copy_words(copy, pointer, words));
                Scalar::Memory(copy)
            };
            values.push(value);
        }
        values
    }

    fn flatten_mux(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Vec<Scalar> {
        let scalars = self.scalars(then.ty);
        let [yes, no, after] = [(); 3].map(|()| self.block());
        // Scalars in memory go to memory of the whole expression.
        let places: Vec<Option<Value>> = scalars
            .iter()
            .map(|(_, width)| (*width > REGISTER_BITS).then(|| self.scratch(word_count(*width))))
            .collect();
        for ((_, width), place) in scalars.iter().zip(&places) {
            if place.is_none() {
                self.b.append_block_param(after, super::clif(*width));
            }
        }
        self.branch_on(condition, yes, no);
        for (block, value) in [(yes, then), (no, otherwise)] {
            self.enter(block);
            let values = self.flatten(value);
            let mut arguments = Vec::new();
            for (((_, width), place), value) in scalars.iter().zip(&places).zip(values) {
                match (place, value) {
                    (Some(to), value) => {
                        let from = self.in_memory(value, *width);
                        self.copy_words(*to, from, word_count(*width));
                    }
                    (None, Scalar::Register(value)) => arguments.push(value.into()),
                    (None, Scalar::Memory(from)) => {
                        let value = self.unspill(*width, from);
                        arguments.push(value.into());
                    }
                }
            }
            self.b.ins().jump(after, &arguments);
        }
        self.enter(after);
        let mut params = self.b.block_params(after).to_vec().into_iter();
        places
            .into_iter()
            .map(|place| match place {
                Some(pointer) => Scalar::Memory(pointer),
                None => match params.next() {
                    Some(value) => Scalar::Register(value),
                    None => Scalar::Register(self.context),
                },
            })
            .collect()
    }

    /// Address of a scalar's words.
    pub(super) fn in_memory(&mut self, value: Scalar, width: u32) -> Value {
        match value {
            Scalar::Memory(pointer) => pointer,
            Scalar::Register(value) => {
                let pointer = self.scratch(word_count(width));
                self.spill(value, width.min(128), pointer, 0);
                pointer
            }
        }
    }

    /// The scalar as a register, if it has at most 128 bits.
    pub(super) fn in_register(&mut self, value: Scalar, width: u32) -> Value {
        match value {
            Scalar::Register(value) => value,
            Scalar::Memory(pointer) => self.unspill(width, pointer),
        }
    }

    /// The words of a value of any type, one after the other in scratch memory.
    pub(super) fn words_of(&mut self, expr: &Expr) -> Value {
        let values = self.flatten(expr);
        let words = self.plan.storage.layout.words(expr.ty).max(1);
        let pointer = self.scratch(words);
        for ((offset, width), value) in self.scalars(expr.ty).into_iter().zip(values) {
            self.put_words(pointer, offset, width, value);
        }
        pointer
    }

    /// Writes a scalar to words of scratch memory.
    pub(super) fn put_words(&mut self, pointer: Value, word: usize, width: u32, value: Scalar) {
        match value {
            Scalar::Register(value) => self.spill(value, width, pointer, word),
            Scalar::Memory(from) => {
                let offset = (word * super::WORD_BYTES) as i64;
                let to = self.b.ins().iadd_imm_s(pointer, offset);
                self.copy_words(to, from, word_count(width));
            }
        }
    }

    /// Writes the scalars of a value to a spot.
    pub(super) fn store_all(&mut self, spot: &Spot, values: Vec<Scalar>) {
        if spot.slice.is_some() || is_narrow(spot.ty) {
            if let Some(value) = values.first() {
                self.store_spot(spot, *value);
            }
            return;
        }
        let scalars = self.scalars(spot.ty);
        let spot = spot.clone();
        self.guarded(spot.guard, |g| {
            for ((offset, width), value) in scalars.into_iter().zip(values) {
                g.put(spot.at + offset, spot.dynamic, width, value);
            }
            g.settle_union(&spot);
        });
    }

    /// Copies between places of one type, which may overlap.
    pub(super) fn copy(&mut self, from: &Spot, to: &Spot) {
        if from.at == to.at
            && from.dynamic.is_none()
            && to.dynamic.is_none()
            && from.slice == to.slice
        {
            return;
        }
        let words = self.plan.storage.layout.words(from.ty);
        let stack = matches!(from.ty, Type::Stack(_));
        if stack && from.guard.is_none() && to.guard.is_none() && words > 16 {
            let source = self.pointer(from.at, from.dynamic);
            let target = self.pointer(to.at, to.dynamic);
            return self.copy_words(target, source, words);
        }
        let values = self.flatten_spot(from);
        self.store_all(to, values);
    }

    /// Compares two values of one type, other than narrow scalars; the result is a scalar, 1 if
    /// they are equal.
    pub(super) fn equal(&mut self, left: &Expr, right: &Expr) -> Value {
        let a = self.flatten(left);
        let b = self.flatten(right);
        let scalars = self.scalars(left.ty);
        let mut rest = Compared {
            a: &a,
            b: &b,
            scalars: &scalars,
        };
        self.equal_parts(left.ty, &mut rest)
    }

    fn equal_parts(&mut self, ty: Type, rest: &mut Compared<'_>) -> Value {
        match ty {
            Type::Struct(id) | Type::Union(id) => self.equal_members(id, rest),
            Type::Header(id) => {
                let (a, b, _) = rest.next();
                let (a, b) = (self.in_register(a, 1), self.in_register(b, 1));
                let same = self.b.ins().icmp(IntCC::Equal, a, b);
                let same = self.bit(same);
                let members = self.equal_members(id, rest);
                let one = self.number(1);
                let invalid = self.b.ins().bxor(a, one);
                let either = self.b.ins().bor(invalid, members);
                self.b.ins().band(same, either)
            }
            Type::Stack(id) => {
                let (element, _, count) = self.plan.storage.layout.stack(id);
                rest.next();
                let mut all = self.number(1);
                for _ in 0..count {
                    let equal = self.equal_parts(element, rest);
                    all = self.b.ins().band(all, equal);
                }
                all
            }
            Type::Varbit(_) => {
                let length = self.equal_scalars(rest);
                let value = self.equal_scalars(rest);
                self.b.ins().band(length, value)
            }
            _ => self.equal_scalars(rest),
        }
    }

    fn equal_members(&mut self, id: StructId, rest: &mut Compared<'_>) -> Value {
        let mut all = self.number(1);
        for field in 0..self.program().structs[id.index()].fields.len() {
            let ty = self.program().structs[id.index()].fields[field].ty;
            let equal = self.equal_parts(ty, rest);
            all = self.b.ins().band(all, equal);
        }
        all
    }

    fn equal_scalars(&mut self, rest: &mut Compared<'_>) -> Value {
        let (a, b, width) = rest.next();
        if width <= REGISTER_BITS
            && let (Scalar::Register(a), Scalar::Register(b)) = (a, b)
        {
            let equal = self.b.ins().icmp(IntCC::Equal, a, b);
            return self.bit(equal);
        }
        let a = self.in_memory(a, width);
        let b = self.in_memory(b, width);
        let words = self.number(word_count(width) as u64);
        self.call_for(crate::run::equal_words as *const u8, &[a, b, words])
    }

    /// Address of the words of a scalar of more than 128 bits, where it lies if it is
    /// read from a place that certainly exists.
    pub(super) fn wide_place(&mut self, expr: &Expr) -> Value {
        if let ExprKind::Read(place) = &expr.kind
            && let Some(spot) = self.spot(place)
            && spot.slice.is_none()
            && spot.guard.is_none()
        {
            return self.pointer(spot.at, spot.dynamic);
        }
        let values = self.flatten(expr);
        match values.first() {
            Some(Scalar::Memory(pointer)) => *pointer,
            _ => self.scratch(word_count(scalar_bits(expr.ty))),
        }
    }
}

/// Parts of two values that remain to be compared.
struct Compared<'a> {
    a: &'a [Scalar],
    b: &'a [Scalar],
    scalars: &'a [(usize, u32)],
}

impl Compared<'_> {
    fn next(&mut self) -> (Scalar, Scalar, u32) {
        let next = (self.a[0], self.b[0], self.scalars[0].1);
        self.a = &self.a[1..];
        self.b = &self.b[1..];
        self.scalars = &self.scalars[1..];
        next
    }
}
