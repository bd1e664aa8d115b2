//! Values of operations on constants.

use crate::{BinaryOp, Const, Type, UnaryOp};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, ToPrimitive, Zero};

fn width(ty: Type) -> u32 {
    ty.scalar_width().unwrap_or(0)
}

/// The greatest unsigned value of a type's width.
pub(super) fn all_ones(ty: Type) -> BigUint {
    (BigUint::one() << width(ty)) - 1_u32
}

/// The number that bits of a type stand for.
fn number(bits: &BigUint, ty: Type) -> BigInt {
    let value = BigInt::from(bits.clone());
    match ty {
        Type::Int(width) if bits.bits() == u64::from(width) && width > 0 => {
            value - (BigInt::one() << width)
        }
        _ => value,
    }
}

/// The bits of a number, modulo 2^W.
fn wrapped(value: &BigInt, ty: Type) -> Option<BigUint> {
    let modulus = BigInt::one() << width(ty);
    let rest = ((value % &modulus) + &modulus) % &modulus;
    rest.to_biguint()
}

/// The bits of the number of a type's range that is nearest.
fn saturated(value: BigInt, ty: Type) -> Option<BigUint> {
    let (least, greatest) = match ty {
        Type::Int(width) => {
            let half = BigInt::one() << width.saturating_sub(1);
            (-half.clone(), half - 1)
        }
        _ => (BigInt::zero(), BigInt::from(all_ones(ty))),
    };
    wrapped(&value.clamp(least, greatest), ty)
}

/// `~` and `-`; `None` for `!`, which has no bits.
pub(super) fn unary(op: UnaryOp, bits: &BigUint, ty: Type) -> Option<BigUint> {
    match op {
        UnaryOp::Not => None,
        UnaryOp::Complement => Some(all_ones(ty) ^ bits),
        UnaryOp::Negate => wrapped(&-number(bits, ty), ty),
    }
}

/// A binary operation on two constants of types `left` and `right`.
pub(super) fn binary(
    op: BinaryOp,
    a: &BigUint,
    b: &BigUint,
    left: Type,
    right: Type,
) -> Option<Const> {
    let (x, y) = (number(a, left), number(b, right));
    let bits = match op {
        BinaryOp::Add => wrapped(&(x + y), left)?,
        BinaryOp::Sub => wrapped(&(x - y), left)?,
        BinaryOp::Mul => wrapped(&(x * y), left)?,
        BinaryOp::Div if b.is_zero() => BigUint::zero(),
        BinaryOp::Div => a / b,
        BinaryOp::Mod if b.is_zero() => BigUint::zero(),
        BinaryOp::Mod => a % b,
        BinaryOp::AddSat => saturated(x + y, left)?,
        BinaryOp::SubSat => saturated(x - y, left)?,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => match amount(b, left) {
            Some(amount) => (a << amount) & all_ones(left),
            None => BigUint::zero(),
        },
        // Past the width the sign is left, which is there at the width too.
        BinaryOp::Shr => wrapped(&(x >> amount(b, left).unwrap_or(width(left))), left)?,
        BinaryOp::Concat => (a << width(right)) | b,
        BinaryOp::Eq => return Some(Const::Bool(a == b)),
        BinaryOp::Ne => return Some(Const::Bool(a != b)),
        BinaryOp::Lt => return Some(Const::Bool(x < y)),
        BinaryOp::Le => return Some(Const::Bool(x <= y)),
        BinaryOp::Gt => return Some(Const::Bool(x > y)),
        BinaryOp::Ge => return Some(Const::Bool(x >= y)),
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr => return None,
    };
    Some(Const::Bits(bits))
}

/// A shift's amount, if it is less than the width.
fn amount(bits: &BigUint, ty: Type) -> Option<u32> {
    bits.to_u32().filter(|amount| *amount < width(ty))
}

/// A constant converted from one type to another.
pub(super) fn cast(value: &Const, from: Type, to: Type) -> Option<Const> {
    match (value, to) {
        (Const::Bool(value), Type::Bits(_) | Type::Int(_)) => {
            Some(Const::Bits(BigUint::from(u32::from(*value))))
        }
        (Const::Bits(bits), Type::Bool) => Some(Const::Bool(bits.is_one())),
        (Const::Bits(bits), Type::Bits(_) | Type::Int(_)) => {
            wrapped(&number(bits, from), to).map(Const::Bits)
        }
        _ => None,
    }
}
