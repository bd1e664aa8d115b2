//! Compile-time arithmetic on numbers of any size (spec §8.5 to §8.8, §18.1).

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};
use stateplane_ir::{BinaryOp, UnaryOp};

/// Representation of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    /// `int`, of any size.
    Integer,
    /// `bit<W>`.
    Unsigned(u32),
    /// `int<W>`.
    Signed(u32),
}

impl Repr {
    /// The value modulo 2^W, in the range of the representation.
    pub(crate) fn wrap(self, value: &BigInt) -> BigInt {
        match self {
            Repr::Integer => value.clone(),
            Repr::Unsigned(width) => floor_mod(value, &(BigInt::one() << width)),
            Repr::Signed(width) => {
                let modulus = BigInt::one() << width;
                let low = floor_mod(value, &modulus);
                if width > 0 && low.bit(u64::from(width) - 1) {
                    low - modulus
                } else {
                    low
                }
            }
        }
    }

    fn clamp(self, value: BigInt) -> BigInt {
        let (least, greatest) = match self {
            Repr::Integer => return value,
            Repr::Unsigned(width) => (BigInt::zero(), (BigInt::one() << width) - 1),
            Repr::Signed(width) => {
                let half = BigInt::one() << width.saturating_sub(1);
                (-half.clone(), half - 1)
            }
        };
        value.clamp(least, greatest)
    }
}

/// Why a compile-time operation has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Division or modulo by zero.
    DivisionByZero,
    /// Division or modulo with a negative operand.
    NegativeDivision,
    /// Shift by a negative amount.
    NegativeShift,
    /// The result would take more memory than any width allows.
    TooLarge,
    /// The operation does not apply to numbers of this representation.
    NotApplicable,
}

/// Bits that an intermediate `int` may have; widths end at 2048.
const MAX_BITS: u64 = 1 << 16;

/// The bits of a value in two's complement of `width` bits.
pub(crate) fn to_bits(value: &BigInt, width: u32) -> BigUint {
    Repr::Unsigned(width)
        .wrap(value)
        .to_biguint()
        .unwrap_or_default()
}

/// True if `value` is in the range of `repr`.
pub(crate) fn fits(value: &BigInt, repr: Repr) -> bool {
    &repr.wrap(value) == value
}

fn floor_mod(value: &BigInt, modulus: &BigInt) -> BigInt {
    let rest = value % modulus;
    if rest.is_negative() {
        rest + modulus
    } else {
        rest
    }
}

/// `-` and `~` of a number.
pub(crate) fn unary(op: UnaryOp, repr: Repr, value: &BigInt) -> Result<BigInt, Fault> {
    match (op, repr) {
        (UnaryOp::Negate, _) => Ok(repr.wrap(&-value)),
        (UnaryOp::Complement, Repr::Unsigned(_) | Repr::Signed(_)) => Ok(repr.wrap(&!value)),
        _ => Err(Fault::NotApplicable),
    }
}

/// Arithmetic on two numbers of one representation. Shifts take `right` as the
/// amount; comparisons are in [`compare`].
pub(crate) fn binary(
    op: BinaryOp,
    repr: Repr,
    left: &BigInt,
    right: &BigInt,
) -> Result<BigInt, Fault> {
    let value = match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => {
            if left.bits() + right.bits() > MAX_BITS {
                return Err(Fault::TooLarge);
            }
            left * right
        }
        BinaryOp::Div | BinaryOp::Mod => {
            if right.is_zero() {
                return Err(Fault::DivisionByZero);
            }
            if left.is_negative() || right.is_negative() {
                return Err(Fault::NegativeDivision);
            }
            if op == BinaryOp::Div {
                left / right
            } else {
                left % right
            }
        }
        BinaryOp::AddSat | BinaryOp::SubSat => {
            if repr == Repr::Integer {
                return Err(Fault::NotApplicable);
            }
            let exact = if op == BinaryOp::AddSat {
                left + right
            } else {
                left - right
            };
            repr.clamp(exact)
        }
        BinaryOp::And => left & right,
        BinaryOp::Or => left | right,
        BinaryOp::Xor => left ^ right,
        BinaryOp::Shl => {
            if right.sign() == Sign::Minus {
                return Err(Fault::NegativeShift);
            }
            match (right.to_u64(), repr) {
                (Some(amount), Repr::Integer) if left.bits() + amount <= MAX_BITS => left << amount,
                (_, Repr::Integer) if left.is_zero() => BigInt::zero(),
                (_, Repr::Integer) => return Err(Fault::TooLarge),
                (Some(amount), Repr::Unsigned(width) | Repr::Signed(width))
                    if amount < u64::from(width) =>
                {
                    left << amount
                }
                _ => BigInt::zero(),
            }
        }
        BinaryOp::Shr => {
            if right.sign() == Sign::Minus {
                return Err(Fault::NegativeShift);
            }
            match right.to_u64() {
                Some(amount) if amount <= MAX_BITS => left >> amount,
                _ if left.is_negative() => -BigInt::one(),
                _ => BigInt::zero(),
            }
        }
        _ => return Err(Fault::NotApplicable),
    };
    Ok(repr.wrap(&value))
}

/// The six comparisons; `None` for another operator.
pub(crate) fn compare(op: BinaryOp, left: &BigInt, right: &BigInt) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => left == right,
        BinaryOp::Ne => left != right,
        BinaryOp::Lt => left < right,
        BinaryOp::Le => left <= right,
        BinaryOp::Gt => left > right,
        BinaryOp::Ge => left >= right,
        _ => return None,
    })
}

/// Bits `hi..=lo` of a value in two's complement.
pub(crate) fn slice(value: &BigInt, hi: u32, lo: u32) -> BigInt {
    Repr::Unsigned(hi - lo + 1).wrap(&(value >> lo))
}

/// `left ++ right` as a non-negative number, where `right` has `right_width` bits.
pub(crate) fn concat(left: &BigInt, left_width: u32, right: &BigInt, right_width: u32) -> BigInt {
    let high = Repr::Unsigned(left_width).wrap(left);
    let low = Repr::Unsigned(right_width).wrap(right);
    (high << right_width) + low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> BigInt {
        BigInt::from(value)
    }

    #[test]
    fn wrapping_follows_the_representation() {
        assert_eq!(Repr::Unsigned(8).wrap(&int(-1)), int(255));
        assert_eq!(Repr::Signed(8).wrap(&int(255)), int(-1));
        assert_eq!(Repr::Signed(8).wrap(&int(128)), int(-128));
        assert_eq!(Repr::Unsigned(0).wrap(&int(5)), int(0));
        assert_eq!(Repr::Integer.wrap(&int(-7)), int(-7));
    }

    #[test]
    fn saturating_operations_stop_at_the_bounds() {
        let unsigned = Repr::Unsigned(8);
        assert_eq!(
            binary(BinaryOp::AddSat, unsigned, &int(200), &int(100)),
            Ok(int(255))
        );
        assert_eq!(
            binary(BinaryOp::SubSat, unsigned, &int(1), &int(2)),
            Ok(int(0))
        );
        assert_eq!(
            binary(BinaryOp::SubSat, Repr::Signed(8), &int(-100), &int(100)),
            Ok(int(-128))
        );
    }

    #[test]
    fn shifts_are_arithmetic_on_signed_numbers() {
        let signed = Repr::Signed(8);
        assert_eq!(
            binary(BinaryOp::Shr, signed, &int(-8), &int(1)),
            Ok(int(-4))
        );
        assert_eq!(
            binary(BinaryOp::Shr, signed, &int(-8), &(BigInt::one() << 80)),
            Ok(int(-1))
        );
        assert_eq!(
            binary(BinaryOp::Shl, Repr::Unsigned(8), &int(1), &int(8)),
            Ok(int(0))
        );
        assert_eq!(
            binary(
                BinaryOp::Shl,
                Repr::Integer,
                &int(1),
                &(BigInt::one() << 40)
            ),
            Err(Fault::TooLarge)
        );
    }

    #[test]
    fn division_refuses_zero_and_negative_operands() {
        let any = Repr::Integer;
        assert_eq!(
            binary(BinaryOp::Div, any, &int(7), &int(0)),
            Err(Fault::DivisionByZero)
        );
        assert_eq!(
            binary(BinaryOp::Mod, any, &int(-7), &int(2)),
            Err(Fault::NegativeDivision)
        );
        assert_eq!(binary(BinaryOp::Div, any, &int(7), &int(2)), Ok(int(3)));
    }

    #[test]
    fn slices_and_concatenation_take_the_bits() {
        assert_eq!(slice(&int(0xabcd), 11, 4), int(0xbc));
        assert_eq!(slice(&int(-1), 3, 0), int(15));
        assert_eq!(concat(&int(-1), 4, &int(2), 8), int(0xf02));
        assert_eq!(to_bits(&int(-2), 4), BigUint::from(14u32));
        assert!(fits(&int(255), Repr::Unsigned(8)));
        assert!(!fits(&int(128), Repr::Signed(8)));
    }
}
