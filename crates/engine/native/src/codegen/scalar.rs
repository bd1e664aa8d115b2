//! Expressions of up to 128 bits, in registers.

use super::place::constant;
use super::value::Scalar;
use super::{Gen, clif};
use crate::plan::REGISTER_BITS;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, Type, UnaryOp};
use stateplane_runtime::bits::{low_word, mask};
use stateplane_runtime::layout::scalar_bits;

/// True if values of a type are computed in a register.
pub(super) fn is_narrow(ty: Type) -> bool {
    match ty {
        Type::Bool | Type::Error | Type::Enum(_) => true,
        Type::Bits(width) | Type::Int(width) => width <= REGISTER_BITS,
        _ => false,
    }
}

pub(super) fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::Int(_))
}

/// True if to compute an expression in any case costs less than a branch.
fn is_cheap(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::Default => true,
        // Only what cannot fail.
        ExprKind::Read(place) | ExprKind::IsValid(place) => place.path.iter().all(|step| {
            matches!(
                step,
                stateplane_ir::Projection::Field(_) | stateplane_ir::Projection::Slice { .. }
            )
        }),
        ExprKind::Cast(value) | ExprKind::Slice { value, .. } | ExprKind::Unary(_, value) => {
            is_narrow(value.ty) && is_cheap(value)
        }
        ExprKind::Binary(op, left, right) => {
            !matches!(
                op,
                BinaryOp::Div | BinaryOp::Mod | BinaryOp::AddSat | BinaryOp::SubSat
            ) && is_narrow(left.ty)
                && is_narrow(right.ty)
                && matches!(
                    (&left.kind, &right.kind),
                    (
                        ExprKind::Const(_) | ExprKind::Read(_),
                        ExprKind::Const(_) | ExprKind::Read(_)
                    )
                )
                && is_cheap(left)
                && is_cheap(right)
        }
        _ => false,
    }
}

impl Gen<'_, '_> {
    /// Ends the block: to `then` if a `bool` is true, else to `otherwise`.
    pub(super) fn branch_on(&mut self, condition: &Expr, then: Block, otherwise: Block) {
        match &condition.kind {
            ExprKind::Binary(BinaryOp::LogicalAnd, left, right) => {
                let middle = self.block();
                self.branch_on(left, middle, otherwise);
                if self.go_on(middle) {
                    self.branch_on(right, then, otherwise);
                }
            }
            ExprKind::Binary(BinaryOp::LogicalOr, left, right) => {
                let middle = self.block();
                self.branch_on(left, then, middle);
                if self.go_on(middle) {
                    self.branch_on(right, then, otherwise);
                }
            }
            ExprKind::Unary(UnaryOp::Not, value) => self.branch_on(value, otherwise, then),
            _ => {
                let condition = self.condition(condition);
                self.branch(condition, then, otherwise);
            }
        }
    }

    /// A `bool` as a condition: not zero if true.
    pub(super) fn condition(&mut self, expr: &Expr) -> Value {
        if let ExprKind::Binary(op, left, right) = &expr.kind
            && is_narrow(left.ty)
            && let Some(code) = comparison(*op, is_signed(left.ty))
        {
            return self.compare(code, left, right);
        }
        self.narrow(expr)
    }

    fn compare(&mut self, code: IntCC, left: &Expr, right: &Expr) -> Value {
        let width = scalar_bits(left.ty);
        let mut a = self.narrow(left);
        let mut b = self.narrow(right);
        let signed = matches!(
            code,
            IntCC::SignedLessThan
                | IntCC::SignedLessThanOrEqual
                | IntCC::SignedGreaterThan
                | IntCC::SignedGreaterThanOrEqual
        );
        if signed {
            a = self.sign_extended(a, width);
            b = self.sign_extended(b, width);
        }
        self.compared(code, a, b)
    }

    /// Copies the sign to the bits above a scalar.
    pub(super) fn sign_extended(&mut self, value: Value, width: u32) -> Value {
        let register = if width <= 64 { 64 } else { 128 };
        if width == register || width == 0 {
            return value;
        }
        let shift = self.number(u64::from(register - width));
        let high = self.b.ins().ishl(value, shift);
        self.b.ins().sshr(high, shift)
    }

    pub(super) fn shifted_left(&mut self, value: Value, by: u32) -> Value {
        if by == 0 || self.known(value) == Some(0) {
            return value;
        }
        if self.b.func.dfg.value_type(value) == types::I128 {
            let (low, high) = self.halves(value);
            let (low, high) = if by >= 64 {
                (self.number(0), self.shifted_left(low, by - 64))
            } else {
                let carried = self.shifted_right(low, 64 - by);
                let high = self.shifted_left(high, by);
                (self.shifted_left(low, by), self.united(high, carried))
            };
            return self.b.ins().iconcat(low, high);
        }
        let by = self.number(u64::from(by));
        self.b.ins().ishl(value, by)
    }

    pub(super) fn shifted_right(&mut self, value: Value, by: u32) -> Value {
        if by == 0 || self.known(value) == Some(0) {
            return value;
        }
        if self.b.func.dfg.value_type(value) == types::I128 {
            let (low, high) = self.halves(value);
            let (low, high) = if by >= 64 {
                (self.shifted_right(high, by - 64), self.number(0))
            } else {
                let carried = self.shifted_left(high, 64 - by);
                let low = self.shifted_right(low, by);
                (self.united(low, carried), self.shifted_right(high, by))
            };
            return self.b.ins().iconcat(low, high);
        }
        let by = self.number(u64::from(by));
        self.b.ins().ushr(value, by)
    }

    /// `width` bits from bit `lo` of a register of a scalar of `whole` bits.
    pub(super) fn slice_of(&mut self, value: Value, whole: u32, lo: u32, width: u32) -> Value {
        if whole > 64 && lo + width <= 64 {
            let (low, _) = self.halves(value);
            return self.slice_of(low, 64, lo, width);
        }
        if whole > 64 && lo >= 64 {
            let (_, high) = self.halves(value);
            return self.slice_of(high, whole - 64, lo - 64, width);
        }
        let moved = self.shifted_right(value, lo);
        let left = whole - lo;
        let moved = self.narrowed_register(moved, whole, width);
        if left > width {
            self.masked(moved, width)
        } else {
            moved
        }
    }

    fn narrowed_register(&mut self, value: Value, from: u32, to: u32) -> Value {
        match (from <= 64, to <= 64) {
            (false, true) => self.b.ins().ireduce(types::I64, value),
            (true, false) => {
                let zero = self.number(0);
                self.b.ins().iconcat(value, zero)
            }
            _ => value,
        }
    }

    /// The value of a scalar of at most 128 bits.
    pub(super) fn narrow(&mut self, expr: &Expr) -> Value {
        let width = scalar_bits(expr.ty);
        match &expr.kind {
            ExprKind::Const(Const::Bool(value)) => self.number(u64::from(*value)),
            ExprKind::Const(Const::Bits(value)) => self.constant(low_word(value), width),
            ExprKind::Read(place) => match self.spot(place) {
                Some(spot) => match self.load_spot(&spot) {
                    Scalar::Register(value) => value,
                    Scalar::Memory(_) => self.constant(0, width),
                },
                None => self.constant(0, width),
            },
            ExprKind::Unary(op, value) => {
                let value = self.narrow(value);
                match op {
                    UnaryOp::Not => self.opposite(value),
                    UnaryOp::Complement => {
                        let all = self.constant(mask(width), width);
                        self.b.ins().bxor(value, all)
                    }
                    UnaryOp::Negate => {
                        let negative = self.b.ins().ineg(value);
                        self.masked(negative, width)
                    }
                }
            }
            ExprKind::Binary(op, left, right) => self.narrow_binary(*op, left, right, width),
            ExprKind::Cast(value) => self.cast(value, width),
            ExprKind::Slice { value, hi: _, lo } => {
                let whole = scalar_bits(value.ty);
                if is_narrow(value.ty) {
                    let value = self.narrow(value);
                    return self.slice_of(value, whole, *lo, width);
                }
                let pointer = self.wide_place(value);
                self.wide_bits(pointer, whole, *lo, width)
            }
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => self.mux(condition, then, otherwise, width),
            ExprKind::IsValid(place) => match self.spot(place) {
                Some(spot) => self.is_valid(&spot),
                None => self.number(0),
            },
            ExprKind::LastIndex(place) => {
                let Some(spot) = self.spot(place) else {
                    return self.number(u64::from(u32::MAX));
                };
                let next = self.load(spot.at, spot.dynamic, 32);
                let last = self.b.ins().iadd_imm_s(next, -1);
                self.masked(last, 32)
            }
            // The others are no scalars, or zero.
            ExprKind::Default | ExprKind::Record(_) | ExprKind::Array(_) => self.constant(0, width),
        }
    }

    fn mux(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr, width: u32) -> Value {
        if is_cheap(then) && is_cheap(otherwise) {
            let condition = self.condition(condition);
            match self.known(condition) {
                Some(0) => return self.narrow(otherwise),
                Some(_) => return self.narrow(then),
                None => {}
            }
            let then = self.narrow(then);
            let otherwise = self.narrow(otherwise);
            return self.b.ins().select(condition, then, otherwise);
        }
        let [yes, no, after] = [(); 3].map(|()| self.block());
        self.b.append_block_param(after, clif(width));
        self.branch_on(condition, yes, no);
        for (block, value) in [(yes, then), (no, otherwise)] {
            self.enter(block);
            let value = self.narrow(value);
            self.b.ins().jump(after, &[value.into()]);
        }
        self.enter(after);
        self.b.block_params(after)[0]
    }

    fn cast(&mut self, value: &Expr, width: u32) -> Value {
        let from = scalar_bits(value.ty);
        if !is_narrow(value.ty) {
            let pointer = self.wide_place(value);
            return self.wide_bits(pointer, from, 0, width);
        }
        let low = self.narrow(value);
        if !is_signed(value.ty) || width <= from {
            return self.narrowed(low, from, width);
        }
        let low = self.sign_extended(low, from);
        let low = if from <= 64 && width > 64 {
            self.b.ins().sextend(types::I128, low)
        } else {
            low
        };
        self.masked(low, width)
    }

    /// The value of a scalar as 64 bits; greater ones become the greatest.
    pub(super) fn index(&mut self, expr: &Expr) -> Value {
        let width = scalar_bits(expr.ty);
        if !is_narrow(expr.ty) {
            let pointer = self.wide_place(expr);
            let width = self.number(u64::from(width));
            return self.call_for(crate::run::wide_index as *const u8, &[pointer, width]);
        }
        let value = self.narrow(expr);
        if width <= 64 {
            return value;
        }
        let (low, high) = self.b.ins().isplit(value);
        let above = self.is_not_zero(high);
        let greatest = self.number(u64::MAX);
        self.b.ins().select(above, greatest, low)
    }

    /// The low 64 bits of a scalar of any width.
    pub(super) fn low(&mut self, expr: &Expr) -> Value {
        let width = scalar_bits(expr.ty);
        if !is_narrow(expr.ty) {
            let pointer = self.wide_place(expr);
            return self.wide_bits(pointer, width, 0, 64);
        }
        let value = self.narrow(expr);
        self.narrowed_register(value, width, 64)
    }

    /// The low 128 bits of a scalar of any width, in a register of 128.
    pub(super) fn low_128(&mut self, expr: &Expr) -> Value {
        let width = scalar_bits(expr.ty);
        if !is_narrow(expr.ty) {
            let pointer = self.wide_place(expr);
            return self.wide_bits(pointer, width, 0, 128);
        }
        let value = self.narrow(expr);
        self.widened(value, width)
    }

    fn narrow_binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, width: u32) -> Value {
        match op {
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr => {
                return self.logical(op, left, right);
            }
            BinaryOp::Shl | BinaryOp::Shr => return self.shift(op, left, right),
            BinaryOp::Eq | BinaryOp::Ne if !is_narrow(left.ty) => {
                let equal = self.equal(left, right);
                if op == BinaryOp::Eq {
                    return equal;
                }
                let one = self.number(1);
                return self.b.ins().bxor(equal, one);
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge if !is_narrow(left.ty) => {
                return self.wide_compare(op, left, right);
            }
            _ => {}
        }
        if let Some(code) = comparison(op, is_signed(left.ty)) {
            let condition = self.compare(code, left, right);
            return self.bit(condition);
        }
        let a = self.narrow(left);
        let b = self.narrow(right);
        match op {
            BinaryOp::Add => {
                let sum = self.b.ins().iadd(a, b);
                self.masked(sum, width)
            }
            BinaryOp::Sub => {
                let difference = self.b.ins().isub(a, b);
                self.masked(difference, width)
            }
            BinaryOp::Mul => {
                let product = self.b.ins().imul(a, b);
                self.masked(product, width)
            }
            BinaryOp::And => self.b.ins().band(a, b),
            BinaryOp::Or => self.b.ins().bor(a, b),
            BinaryOp::Xor => self.b.ins().bxor(a, b),
            BinaryOp::Concat => {
                let low = scalar_bits(right.ty);
                if low == 64 && width > 64 {
                    let (a, _) = match scalar_bits(left.ty) {
                        ..=64 => (a, a),
                        _ => self.halves(a),
                    };
                    return self.b.ins().iconcat(b, a);
                }
                let a = self.narrowed_register(a, scalar_bits(left.ty), width);
                let b = self.narrowed_register(b, low, width);
                if low >= width {
                    return b;
                }
                let high = self.shifted_left(a, low);
                if width <= 64 {
                    return self.b.ins().bor(high, b);
                }
                let (a, b) = (self.halves(high), self.halves(b));
                let low = self.united(a.0, b.0);
                let high = self.united(a.1, b.1);
                self.b.ins().iconcat(low, high)
            }
            BinaryOp::Div | BinaryOp::Mod if width <= 64 => self.divide(op, a, b),
            BinaryOp::AddSat | BinaryOp::SubSat if width < 64 => self.saturate(op, a, b, left.ty),
            _ => self.by_words(op, a, b, left.ty),
        }
    }

    /// An operation that is rare in registers this wide, on words.
    fn by_words(&mut self, op: BinaryOp, a: Value, b: Value, ty: Type) -> Value {
        let width = scalar_bits(ty);
        let [left, right, result] = [(); 3].map(|()| self.scratch(1));
        self.spill(a, width, left, 0);
        self.spill(b, width, right, 0);
        self.wide_operation(op, result, left, right, ty);
        self.unspill(width, result)
    }

    fn divide(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let zero = self.number(0);
        let one = self.number(1);
        let none = self.b.ins().icmp(IntCC::Equal, b, zero);
        let divisor = self.b.ins().select(none, one, b);
        let result = match op {
            BinaryOp::Div => self.b.ins().udiv(a, divisor),
            _ => self.b.ins().urem(a, divisor),
        };
        self.b.ins().select(none, zero, result)
    }

    /// `|+|` and `|-|` below 64 bits.
    fn saturate(&mut self, op: BinaryOp, a: Value, b: Value, ty: Type) -> Value {
        let width = scalar_bits(ty);
        if !is_signed(ty) {
            if op == BinaryOp::AddSat {
                let sum = self.b.ins().iadd(a, b);
                let all = self.number(mask(width) as u64);
                return self.b.ins().umin(sum, all);
            }
            let difference = self.b.ins().isub(a, b);
            let below = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let zero = self.number(0);
            return self.b.ins().select(below, zero, difference);
        }
        let a = self.sign_extended(a, width);
        let b = self.sign_extended(b, width);
        let exact = match op {
            BinaryOp::AddSat => self.b.ins().iadd(a, b),
            _ => self.b.ins().isub(a, b),
        };
        let greatest = (mask(width) >> 1) as i64;
        let highest = self.number(greatest as u64);
        let lowest = self.number((-greatest - 1) as u64);
        let exact = self.b.ins().smin(exact, highest);
        let exact = self.b.ins().smax(exact, lowest);
        self.masked(exact, width)
    }

    fn logical(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Value {
        if is_cheap(right) {
            let a = self.narrow(left);
            let b = self.narrow(right);
            return match op {
                BinaryOp::LogicalAnd => self.both(a, b),
                _ => self.either(a, b),
            };
        }
        let a = self.narrow(left);
        if let Some(known) = self.known(a) {
            let decided = (known != 0) == (op == BinaryOp::LogicalOr);
            return if decided { a } else { self.narrow(right) };
        }
        let [more, after] = [(); 2].map(|()| self.block());
        self.b.append_block_param(after, types::I64);
        let arguments = [a.into()];
        if op == BinaryOp::LogicalAnd {
            self.b.ins().brif(a, more, &[], after, &arguments);
        } else {
            self.b.ins().brif(a, after, &arguments, more, &[]);
        }
        self.enter(more);
        let b = self.narrow(right);
        self.b.ins().jump(after, &[b.into()]);
        self.enter(after);
        self.b.block_params(after)[0]
    }

    fn shift(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Value {
        let width = scalar_bits(left.ty);
        let signed = is_signed(left.ty) && op == BinaryOp::Shr;
        let value = self.narrow(left);
        let value = if signed {
            self.sign_extended(value, width)
        } else {
            value
        };
        let known = constant(right).map(|amount| amount.min(u128::from(width)) as u32);
        let (amount, past) = match known {
            Some(amount) if amount >= width => {
                let last = self.number(u64::from(width.max(1) - 1));
                let yes = self.b.ins().iconst(types::I8, 1);
                (last, Some(yes))
            }
            Some(amount) => (self.number(u64::from(amount)), None),
            None => {
                let amount = self.index(right);
                let limit = self.number(u64::from(width));
                let past = self
                    .b
                    .ins()
                    .icmp(IntCC::UnsignedGreaterThanOrEqual, amount, limit);
                let last = self.number(u64::from(width.max(1) - 1));
                (self.b.ins().umin(amount, last), Some(past))
            }
        };
        let shifted = match op {
            BinaryOp::Shl => self.b.ins().ishl(value, amount),
            _ if signed => self.b.ins().sshr(value, amount),
            _ if width <= 64 && known.is_some() => {
                let by = known.map_or(0, u64::from).min(u64::from(width.max(1) - 1));
                self.moved_right(value, by)
            }
            _ => self.b.ins().ushr(value, amount),
        };
        let shifted = if op == BinaryOp::Shl || signed {
            self.masked(shifted, width)
        } else {
            shifted
        };
        match past {
            // The sign goes on for ever.
            Some(past) if !signed => {
                let zero = self.constant(0, width);
                self.b.ins().select(past, zero, shifted)
            }
            _ => shifted,
        }
    }
}

/// The comparison that an operation is.
fn comparison(op: BinaryOp, signed: bool) -> Option<IntCC> {
    Some(match (op, signed) {
        (BinaryOp::Eq, _) => IntCC::Equal,
        (BinaryOp::Ne, _) => IntCC::NotEqual,
        (BinaryOp::Lt, false) => IntCC::UnsignedLessThan,
        (BinaryOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (BinaryOp::Gt, false) => IntCC::UnsignedGreaterThan,
        (BinaryOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        (BinaryOp::Lt, true) => IntCC::SignedLessThan,
        (BinaryOp::Le, true) => IntCC::SignedLessThanOrEqual,
        (BinaryOp::Gt, true) => IntCC::SignedGreaterThan,
        (BinaryOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        _ => return None,
    })
}
