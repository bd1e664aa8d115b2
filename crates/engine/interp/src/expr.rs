//! Expressions. Scalars of up to 128 bits are computed here without allocation;
//! [`Run::push`] handles all types.

use crate::machine::Run;
use crate::observe::Observer;
use crate::place::is_narrow;
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, Place, Type, UnaryOp};
use stateplane_runtime::bits::{self, mask};
use stateplane_runtime::layout::scalar_bits;

/// A value of `width` bits as a signed number.
fn signed(value: u128, width: u32) -> i128 {
    let shift = bits::WORD - width;
    (value << shift) as i128 >> shift
}

fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::Int(_))
}

impl<O: Observer> Run<'_, O> {
    /// The value of a scalar of at most 128 bits.
    pub(crate) fn narrow(&mut self, expr: &Expr) -> u128 {
        match &expr.kind {
            ExprKind::Const(Const::Bool(value)) => u128::from(*value),
            ExprKind::Const(Const::Bits(value)) => bits::low_word(value),
            ExprKind::Read(place) => self.read_narrow(place),
            ExprKind::Unary(op, value) => {
                let value = self.narrow(value);
                let all = mask(scalar_bits(expr.ty));
                match op {
                    UnaryOp::Not => value ^ 1,
                    UnaryOp::Complement => !value & all,
                    UnaryOp::Negate => value.wrapping_neg() & all,
                }
            }
            ExprKind::Binary(op, left, right) => self.narrow_binary(*op, left, right, expr.ty),
            ExprKind::Cast(value) => {
                let target = mask(scalar_bits(expr.ty));
                let low = self.low(value);
                if is_signed(value.ty) && is_narrow(value.ty) {
                    signed(low, scalar_bits(value.ty)) as u128 & target
                } else {
                    low & target
                }
            }
            ExprKind::Slice { value, hi, lo } => self.slice(value, *hi, *lo),
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                if self.narrow(condition) == 1 {
                    self.narrow(then)
                } else {
                    self.narrow(otherwise)
                }
            }
            ExprKind::IsValid(place) => {
                let spot = self.spot(place);
                u128::from(spot.is_some_and(|spot| self.is_valid(spot)))
            }
            ExprKind::LastIndex(place) => {
                let next = self.spot(place).map_or(0, |spot| self.m.words[spot.at]);
                next.wrapping_sub(1) & mask(32)
            }
            // The others are no scalars, or zero.
            ExprKind::Default | ExprKind::Record(_) | ExprKind::Array(_) => 0,
        }
    }

    /// The low 128 bits of a scalar of any width.
    pub(crate) fn low(&mut self, expr: &Expr) -> u128 {
        if is_narrow(expr.ty) {
            return self.narrow(expr);
        }
        let base = self.m.stack.len();
        self.push(expr);
        let low = self.m.stack.get(base).copied().unwrap_or(0);
        self.m.stack.truncate(base);
        low
    }

    /// The value of a scalar as a `u64`; greater ones become the greatest.
    pub(crate) fn index(&mut self, expr: &Expr) -> u64 {
        let base = self.m.stack.len();
        if is_narrow(expr.ty) {
            return u64::try_from(self.narrow(expr)).unwrap_or(u64::MAX);
        }
        self.push(expr);
        let above = self.m.stack[base + 1..].iter().any(|word| *word != 0);
        let low = u64::try_from(self.m.stack[base]).unwrap_or(u64::MAX);
        self.m.stack.truncate(base);
        if above { u64::MAX } else { low }
    }

    fn read_narrow(&mut self, place: &Place) -> u128 {
        match self.spot(place) {
            Some(spot) => self.load_narrow(spot),
            None => 0,
        }
    }

    /// Bits `hi..=lo` of a scalar, at most 128 of them.
    fn slice(&mut self, value: &Expr, hi: u32, lo: u32) -> u128 {
        if is_narrow(value.ty) {
            return self.narrow(value) >> lo & mask(hi - lo + 1);
        }
        if let ExprKind::Read(place) = &value.kind {
            let Some(spot) = self.spot(place) else {
                return 0;
            };
            if spot.slice.is_none() {
                let end = spot.at + self.size(spot.ty);
                return bits::get_bits(&self.m.words[spot.at..end], lo, hi - lo + 1);
            }
        }
        let base = self.m.stack.len();
        self.push(value);
        let slice = bits::get_bits(&self.m.stack[base..], lo, hi - lo + 1);
        self.m.stack.truncate(base);
        slice
    }

    fn narrow_binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, ty: Type) -> u128 {
        match op {
            BinaryOp::LogicalAnd => {
                return u128::from(self.narrow(left) == 1 && self.narrow(right) == 1);
            }
            BinaryOp::LogicalOr => {
                return u128::from(self.narrow(left) == 1 || self.narrow(right) == 1);
            }
            BinaryOp::Eq | BinaryOp::Ne if !is_narrow(left.ty) => {
                return u128::from(self.equal(left, right) == (op == BinaryOp::Eq));
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge if !is_narrow(left.ty) => {
                return u128::from(self.wide_compare(op, left, right));
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let value = self.narrow(left);
                let amount = self.index(right);
                return shift(op, value, amount, left.ty);
            }
            _ => {}
        }
        let left_value = self.narrow(left);
        let right_value = self.narrow(right);
        let width = scalar_bits(left.ty);
        let (a, b, all) = (left_value, right_value, mask(width));
        let less = |a: u128, b: u128| {
            if is_signed(left.ty) {
                signed(a, width) < signed(b, width)
            } else {
                a < b
            }
        };
        match op {
            BinaryOp::Add => a.wrapping_add(b) & all,
            BinaryOp::Sub => a.wrapping_sub(b) & all,
            BinaryOp::Mul => a.wrapping_mul(b) & all,
            BinaryOp::Div => a.checked_div(b).unwrap_or(0),
            BinaryOp::Mod => a.checked_rem(b).unwrap_or(0),
            BinaryOp::AddSat | BinaryOp::SubSat => saturating(op, a, b, left.ty),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Concat => {
                let low = scalar_bits(right.ty);
                (a.checked_shl(low).unwrap_or(0) | b) & mask(scalar_bits(ty))
            }
            BinaryOp::Eq => u128::from(a == b),
            BinaryOp::Ne => u128::from(a != b),
            BinaryOp::Lt => u128::from(less(a, b)),
            BinaryOp::Ge => u128::from(!less(a, b)),
            BinaryOp::Gt => u128::from(less(b, a)),
            BinaryOp::Le => u128::from(!less(b, a)),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::LogicalAnd | BinaryOp::LogicalOr => 0,
        }
    }

    /// True if two values of one type, other than narrow scalars, are equal.
    fn equal(&mut self, left: &Expr, right: &Expr) -> bool {
        let base = self.m.stack.len();
        self.push(left);
        let middle = self.m.stack.len();
        self.push(right);
        let (left_words, right_words) = self.m.stack[base..].split_at(middle - base);
        let equal = self.equal_words(left.ty, left_words, right_words);
        self.m.stack.truncate(base);
        equal
    }

    fn equal_words(&self, ty: Type, left: &[u128], right: &[u128]) -> bool {
        let members = |id: stateplane_ir::StructId| {
            let fields = &self.program().structs[id.index()].fields;
            fields.iter().enumerate().all(|(index, field)| {
                let at = self.layout().field_offset(ty, index as u32);
                let span = at..at + self.size(field.ty);
                self.equal_words(field.ty, &left[span.clone()], &right[span])
            })
        };
        match ty {
            Type::Struct(id) | Type::Union(id) => members(id),
            Type::Header(id) => left[0] == right[0] && (left[0] == 0 || members(id)),
            Type::Stack(id) => {
                let (element, stride, count) = self.layout().stack(id);
                (0..count as usize).all(|index| {
                    let span = 1 + index * stride..1 + (index + 1) * stride;
                    self.equal_words(element, &left[span.clone()], &right[span])
                })
            }
            _ => left == right,
        }
    }

    /// Pushes the words of a value of any type.
    pub(crate) fn push(&mut self, expr: &Expr) {
        if is_narrow(expr.ty) {
            let value = self.narrow(expr);
            self.m.stack.push(value);
            return;
        }
        match &expr.kind {
            ExprKind::Read(place) => match self.spot(place) {
                Some(spot) => self.push_spot(spot),
                None => self.push_default(expr.ty),
            },
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                if self.narrow(condition) == 1 {
                    self.push(then);
                } else {
                    self.push(otherwise);
                }
            }
            ExprKind::Record(members) => {
                if matches!(expr.ty, Type::Header(_)) {
                    self.m.stack.push(1);
                }
                for member in members {
                    self.push(member);
                }
            }
            ExprKind::Array(elements) => {
                self.m.stack.push(0);
                for element in elements {
                    self.push(element);
                }
            }
            ExprKind::Default => self.push_default(expr.ty),
            _ => self.push_wide(expr),
        }
    }

    fn push_default(&mut self, ty: Type) {
        let end = self.m.stack.len() + self.size(ty);
        self.m.stack.resize(end, 0);
    }
}

/// Shift of a value of at most 128 bits.
fn shift(op: BinaryOp, value: u128, amount: u64, ty: Type) -> u128 {
    let width = scalar_bits(ty);
    let past = amount >= u64::from(width);
    let amount = if past { 0 } else { amount as u32 };
    match (op, past) {
        (BinaryOp::Shl, false) => value << amount & mask(width),
        (BinaryOp::Shl, true) => 0,
        (_, past) if is_signed(ty) => {
            let amount = if past { width - 1 } else { amount };
            (signed(value, width) >> amount) as u128 & mask(width)
        }
        (_, false) => value >> amount,
        (_, true) => 0,
    }
}

/// `|+|` and `|-|` of values of at most 128 bits.
fn saturating(op: BinaryOp, a: u128, b: u128, ty: Type) -> u128 {
    let width = scalar_bits(ty);
    let all = mask(width);
    if !is_signed(ty) {
        return match op {
            BinaryOp::AddSat => a.saturating_add(b).min(all),
            _ => a.saturating_sub(b),
        };
    }
    let (a, b) = (signed(a, width), signed(b, width));
    let exact = match op {
        BinaryOp::AddSat => a.saturating_add(b),
        _ => a.saturating_sub(b),
    };
    let greatest = (all >> 1) as i128;
    exact.clamp(-greatest - 1, greatest) as u128 & all
}
