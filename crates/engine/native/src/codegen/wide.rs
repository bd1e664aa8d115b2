//! Scalars of more than 128 bits, as words in memory.

use super::Gen;
use super::scalar::{is_narrow, is_signed};
use super::value::Scalar;
use crate::run::{self, WideOp};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use num_bigint::BigUint;
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, Type, UnaryOp};
use stateplane_runtime::bits::{put_biguint, word_count};
use stateplane_runtime::layout::scalar_bits;

impl Gen<'_, '_> {
    fn numbers<const N: usize>(&mut self, numbers: [u32; N]) -> [Value; N] {
        numbers.map(|number| self.number(u64::from(number)))
    }

    /// Address of the words of a scalar of any width.
    pub(super) fn as_words(&mut self, expr: &Expr) -> Value {
        if is_narrow(expr.ty) {
            let value = self.narrow(expr);
            return self.in_memory(Scalar::Register(value), scalar_bits(expr.ty));
        }
        self.wide_place(expr)
    }

    /// The words of a number.
    pub(super) fn number_words(&mut self, value: &BigUint, width: u32) -> Value {
        let mut words = vec![0u128; word_count(width)];
        put_biguint(value, width, &mut words);
        let pointer = self.scratch(words.len());
        for (index, word) in words.into_iter().enumerate() {
            let word = self.constant(word, 128);
            self.spill(word, 128, pointer, index);
        }
        pointer
    }

    /// Computes a wide scalar, which is not just read.
    pub(super) fn wide(&mut self, expr: &Expr) -> Value {
        let width = scalar_bits(expr.ty);
        match &expr.kind {
            ExprKind::Const(Const::Bits(value)) => self.number_words(value, width),
            ExprKind::Unary(op, value) => {
                let value = self.as_words(value);
                let result = self.scratch(word_count(width));
                let op = match op {
                    UnaryOp::Complement => WideOp::Complement,
                    _ => WideOp::Negate,
                };
                self.wide_call(op, result, value, value, width, width);
                result
            }
            ExprKind::Cast(value) => {
                let from = scalar_bits(value.ty);
                let op = if is_signed(value.ty) {
                    WideOp::SignExtend
                } else {
                    WideOp::Resize
                };
                let value = self.as_words(value);
                let result = self.scratch(word_count(width));
                self.wide_call(op, result, value, value, width, from);
                result
            }
            ExprKind::Slice { value, hi: _, lo } => {
                let whole = scalar_bits(value.ty);
                let value = self.as_words(value);
                let result = self.scratch(word_count(width));
                self.wide_slice(result, width, value, whole, *lo);
                result
            }
            ExprKind::Binary(BinaryOp::Concat, left, right) => {
                let low = scalar_bits(right.ty);
                let a = self.as_words(left);
                let b = self.as_words(right);
                let result = self.scratch(word_count(width));
                // `a` and `b` have widths of their own.
                let [wide, low_width] = self.numbers([width, low]);
                let high_width = self.number(u64::from(scalar_bits(left.ty)));
                self.call_engine(
                    run::wide_concat as *const u8,
                    &[result, a, b, wide, high_width, low_width],
                    false,
                );
                result
            }
            ExprKind::Binary(op @ (BinaryOp::Shl | BinaryOp::Shr), left, right) => {
                let value = self.as_words(left);
                let amount = self.index(right);
                let result = self.scratch(word_count(width));
                let op = match (op, is_signed(left.ty)) {
                    (BinaryOp::Shl, _) => WideOp::ShiftLeft,
                    (_, false) => WideOp::ShiftRight,
                    (_, true) => WideOp::ShiftRightSigned,
                };
                let [op, width] = self.numbers([op as u32, width]);
                self.call_engine(
                    run::wide_shift as *const u8,
                    &[op, result, value, width, amount],
                    false,
                );
                result
            }
            ExprKind::Binary(op, left, right) => {
                let a = self.as_words(left);
                let b = self.as_words(right);
                let result = self.scratch(word_count(width));
                self.wide_operation(*op, result, a, b, left.ty);
                result
            }
            _ => {
                let words = word_count(width);
                let pointer = self.scratch(words);
                self.zero_words(pointer, words);
                pointer
            }
        }
    }

    fn wide_call(&mut self, op: WideOp, result: Value, a: Value, b: Value, width: u32, from: u32) {
        let [op, width, from] = self.numbers([op as u32, width, from]);
        self.call_engine(
            run::wide_operation as *const u8,
            &[op, result, a, b, width, from],
            false,
        );
    }

    /// An operation whose operands and result have one type, on words.
    pub(super) fn wide_operation(
        &mut self,
        op: BinaryOp,
        result: Value,
        a: Value,
        b: Value,
        ty: Type,
    ) {
        let width = scalar_bits(ty);
        let op = match (op, is_signed(ty)) {
            (BinaryOp::Add, _) => WideOp::Add,
            (BinaryOp::Sub, _) => WideOp::Sub,
            (BinaryOp::Mul, _) => WideOp::Mul,
            (BinaryOp::Div, _) => WideOp::Div,
            (BinaryOp::Mod, _) => WideOp::Mod,
            (BinaryOp::AddSat, false) => WideOp::AddSat,
            (BinaryOp::AddSat, true) => WideOp::AddSatSigned,
            (BinaryOp::SubSat, false) => WideOp::SubSat,
            (BinaryOp::SubSat, true) => WideOp::SubSatSigned,
            (BinaryOp::And, _) => WideOp::And,
            (BinaryOp::Or, _) => WideOp::Or,
            _ => WideOp::Xor,
        };
        self.wide_call(op, result, a, b, width, width);
    }

    /// `<`, `<=`, `>`, `>=` of wide scalars, as a scalar.
    pub(super) fn wide_compare(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Value {
        let width = scalar_bits(left.ty);
        let signed = u32::from(is_signed(left.ty));
        let a = self.as_words(left);
        let b = self.as_words(right);
        // a < b; a > b is b < a, and the others are the negations.
        let (a, b, negated) = match op {
            BinaryOp::Lt => (a, b, false),
            BinaryOp::Gt => (b, a, false),
            BinaryOp::Le => (b, a, true),
            _ => (a, b, true),
        };
        let [width, signed] = self.numbers([width, signed]);
        let less = self.call_for(run::wide_less as *const u8, &[a, b, width, signed]);
        if !negated {
            return less;
        }
        let one = self.number(1);
        self.b.ins().bxor(less, one)
    }

    /// Writes `width` bits from bit `lo` of words to others.
    pub(super) fn wide_slice(&mut self, to: Value, width: u32, from: Value, whole: u32, lo: u32) {
        let [width, whole, lo] = self.numbers([width, whole, lo]);
        self.call_engine(
            run::wide_slice as *const u8,
            &[to, width, from, whole, lo],
            false,
        );
    }

    /// At most 128 bits from bit `lo` of a scalar of `whole` bits in memory.
    pub(super) fn wide_bits(&mut self, from: Value, whole: u32, lo: u32, width: u32) -> Value {
        if width > 64 {
            let low = self.wide_bits(from, whole, lo, 64);
            let high = self.wide_bits(from, whole, lo + 64, width - 64);
            return self.b.ins().iconcat(low, high);
        }
        let size = word_count(whole) as u32 * 128;
        if lo >= size {
            return self.number(0);
        }
        // Words are little-endian numbers of 64 bits one after the other.
        let flags = Self::flags(self.regions.storage);
        let (index, shift) = (lo / 64, lo % 64);
        let load = |g: &mut Self, index: u32| {
            let offset = (index * 8) as i32;
            g.b.ins().load(types::I64, flags, from, offset)
        };
        let mut value = load(self, index);
        value = self.shifted_right(value, shift);
        if shift != 0 && shift + width > 64 && (index + 1) * 64 < size {
            let next = load(self, index + 1);
            let next = self.shifted_left(next, 64 - shift);
            value = self.b.ins().bor(value, next);
        }
        self.masked(value, width)
    }
}
