//! Scalars of more than 128 bits, by numbers of any size.

use crate::machine::Run;
use crate::observe::Observer;
use num_bigint::{BigInt, BigUint};
use num_traits::Zero;
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, KeySet, Type, UnaryOp};
use stateplane_runtime::bits;
use stateplane_runtime::layout::scalar_bits;

fn modulus(width: u32) -> BigUint {
    BigUint::from(1u32) << width
}

/// A value of a type as a number: signed for `int`.
fn number(value: BigUint, ty: Type) -> BigInt {
    let width = scalar_bits(ty);
    let negative = matches!(ty, Type::Int(_)) && width > 0 && value.bit(u64::from(width) - 1);
    if negative {
        BigInt::from(value) - BigInt::from(modulus(width))
    } else {
        BigInt::from(value)
    }
}

/// A number modulo 2^width.
fn wrapped(value: &BigInt, width: u32) -> BigUint {
    let modulus = BigInt::from(modulus(width));
    let rest = value % &modulus;
    let positive = if rest < BigInt::zero() {
        rest + modulus
    } else {
        rest
    };
    positive.to_biguint().unwrap_or_default()
}

/// The greatest and the least number of a type.
fn bounds(ty: Type) -> (BigInt, BigInt) {
    let width = scalar_bits(ty);
    match ty {
        Type::Int(_) => {
            let half = BigInt::from(modulus(width - 1));
            (-half.clone(), half - 1)
        }
        _ => (BigInt::zero(), BigInt::from(modulus(width)) - 1),
    }
}

impl<O: Observer> Run<'_, O> {
    /// The bits of a scalar of any width.
    pub(crate) fn big(&mut self, expr: &Expr) -> BigUint {
        let base = self.m.stack.len();
        self.push(expr);
        let value = bits::to_biguint(&self.m.stack[base..]);
        self.m.stack.truncate(base);
        value
    }

    pub(crate) fn push_big(&mut self, value: &BigUint, width: u32) {
        let base = self.m.stack.len();
        self.m.stack.resize(base + bits::word_count(width), 0);
        bits::put_biguint(value, width, &mut self.m.stack[base..]);
    }

    /// `<`, `<=`, `>`, `>=` of wide scalars.
    pub(crate) fn wide_compare(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> bool {
        let a = number(self.big(left), left.ty);
        let b = number(self.big(right), right.ty);
        match op {
            BinaryOp::Lt => a < b,
            BinaryOp::Le => a <= b,
            BinaryOp::Gt => a > b,
            _ => a >= b,
        }
    }

    /// Pushes a wide scalar that is computed.
    pub(crate) fn push_wide(&mut self, expr: &Expr) {
        let width = scalar_bits(expr.ty);
        let value = match &expr.kind {
            ExprKind::Const(Const::Bits(value)) => value.clone(),
            ExprKind::Unary(UnaryOp::Complement, value) => modulus(width) - 1u32 - self.big(value),
            ExprKind::Unary(_, value) => wrapped(&-BigInt::from(self.big(value)), width),
            ExprKind::Cast(value) => {
                if matches!(value.ty, Type::Int(_)) {
                    wrapped(&number(self.big(value), value.ty), width)
                } else {
                    self.big(value)
                }
            }
            ExprKind::Slice { value, hi: _, lo } => self.big(value) >> *lo,
            ExprKind::Binary(op, left, right) => self.wide_binary(*op, left, right),
            _ => BigUint::zero(),
        };
        self.push_big(&value, width);
    }

    fn wide_binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> BigUint {
        let ty = left.ty;
        let width = scalar_bits(ty);
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            let value = self.big(left);
            let amount = self.index(right).min(u64::from(width)) as u32;
            return match op {
                BinaryOp::Shl => (value << amount) % modulus(width),
                _ => wrapped(&(number(value, ty) >> amount), width),
            };
        }
        let a = self.big(left);
        let b = self.big(right);
        match op {
            BinaryOp::Add => (a + b) % modulus(width),
            BinaryOp::Sub => (a + modulus(width) - b) % modulus(width),
            BinaryOp::Mul => a * b % modulus(width),
            BinaryOp::Div if b.is_zero() => b,
            BinaryOp::Div => a / b,
            BinaryOp::Mod if b.is_zero() => b,
            BinaryOp::Mod => a % b,
            BinaryOp::AddSat | BinaryOp::SubSat => {
                let (a, b) = (number(a, ty), number(b, ty));
                let exact = if op == BinaryOp::AddSat { a + b } else { a - b };
                let (least, greatest) = bounds(ty);
                wrapped(&exact.clamp(least, greatest), width)
            }
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Concat => (a << scalar_bits(right.ty)) | b,
            // The others give bool.
            _ => BigUint::zero(),
        }
    }
}

/// True if a scalar, given in words, is in a set other than a value set of the control plane; the
/// set's numbers fit its width.
pub(crate) fn is_in(value: &[u128], width: u32, set: &KeySet) -> bool {
    let below = |length: u32| width.saturating_sub(length);
    if let [value] = *value {
        return match set {
            KeySet::Any => true,
            KeySet::Exact(wanted) => value == bits::low_word(wanted),
            KeySet::Mask(wanted, mask) => {
                (value ^ bits::low_word(wanted)) & bits::low_word(mask) == 0
            }
            KeySet::Range(low, high) => {
                (bits::low_word(low)..=bits::low_word(high)).contains(&value)
            }
            KeySet::Prefix(wanted, length) => {
                (value ^ bits::low_word(wanted)) & !bits::mask(below(*length)) == 0
            }
            KeySet::Member { .. } => false,
        };
    }
    let value = bits::to_biguint(value);
    match set {
        KeySet::Any => true,
        KeySet::Exact(wanted) => value == *wanted,
        KeySet::Mask(wanted, mask) => &value & mask == wanted & mask,
        KeySet::Range(low, high) => (low..=high).contains(&&value),
        KeySet::Prefix(wanted, length) => &value >> below(*length) == wanted >> below(*length),
        KeySet::Member { .. } => false,
    }
}

/// True if a scalar, given in words, equals a number that fits its width.
pub(crate) fn is_number(value: &[u128], wanted: &BigUint) -> bool {
    match *value {
        [value] => value == bits::low_word(wanted),
        _ => bits::to_biguint(value) == *wanted,
    }
}
