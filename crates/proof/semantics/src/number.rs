//! Operations on numbers (P4-16 1.2.5, §8.6 to §8.11), with numbers of any size.

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};
use stateplane_syntax::tree::BinaryOp;

/// `bit<bits>` or, signed, `int<bits>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Width in bits.
    pub bits: u32,
    /// True if it is `int`.
    pub signed: bool,
}

impl Width {
    /// `bit<bits>`.
    #[must_use]
    pub const fn unsigned(bits: u32) -> Width {
        Width {
            bits,
            signed: false,
        }
    }

    /// The value that the lowest bits of a number stand for: modulo 2^W, in two's
    /// complement for `int<W>`.
    #[must_use]
    pub fn wrap(self, value: &BigInt) -> BigInt {
        let modulus = BigInt::one() << self.bits;
        let mut rest = value % &modulus;
        if rest.is_negative() {
            rest += &modulus;
        }
        if self.signed && self.bits > 0 && rest >= (BigInt::one() << (self.bits - 1)) {
            rest -= modulus;
        }
        rest
    }

    /// The nearest number of the type.
    fn clamp(self, value: BigInt) -> BigInt {
        let (low, high) = if self.signed {
            let half = BigInt::one() << self.bits.saturating_sub(1);
            (-half.clone(), half - 1)
        } else {
            (BigInt::zero(), (BigInt::one() << self.bits) - 1)
        };
        value.clamp(low, high)
    }
}

/// Result of a comparison; `None` for other operations.
#[must_use]
pub fn compare(op: BinaryOp, a: &BigInt, b: &BigInt) -> Option<bool> {
    Some(match op {
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::LessEqual => a <= b,
        BinaryOp::Greater => a > b,
        BinaryOp::GreaterEqual => a >= b,
        _ => return None,
    })
}

/// The result of an operation on two numbers of one type, or on numbers of any size where
/// there is no `width`. `None` for division by zero, and for operations that are none of
/// two numbers of one type.
#[must_use]
pub fn arithmetic(op: BinaryOp, width: Option<Width>, a: &BigInt, b: &BigInt) -> Option<BigInt> {
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::AddSat => width?.clamp(a + b),
        BinaryOp::SubSat => width?.clamp(a - b),
        BinaryOp::Div if !b.is_zero() => a / b,
        BinaryOp::Mod if !b.is_zero() => a % b,
        BinaryOp::BitAnd => bitwise(width?, a, b, |a, b| a && b),
        BinaryOp::BitOr => bitwise(width?, a, b, |a, b| a || b),
        BinaryOp::BitXor => bitwise(width?, a, b, |a, b| a != b),
        _ => return None,
    };
    Some(width.map_or_else(|| result.clone(), |width| width.wrap(&result)))
}

/// `value << amount` or `value >> amount`, with a `value` of any size where there is no
/// `width`. A shift by the width or more leaves nothing but the sign.
#[must_use]
pub fn shift(left: bool, width: Option<Width>, value: &BigInt, amount: &BigInt) -> Option<BigInt> {
    let most = width.map_or(1 << 16, |width| width.bits);
    let amount = match u32::try_from(amount) {
        Ok(amount) if amount <= most => amount,
        _ => most,
    };
    let result = if left {
        value * (BigInt::one() << amount)
    } else {
        floor_divide(value, amount)
    };
    Some(width.map_or_else(|| result.clone(), |width| width.wrap(&result)))
}

/// Bits `high` down to `low` of a number in two's complement.
#[must_use]
pub fn slice(value: &BigInt, high: u32, low: u32) -> BigInt {
    Width::unsigned(high - low + 1).wrap(&floor_divide(value, low))
}

/// A number with its bits `high` down to `low` replaced.
#[must_use]
pub fn with_slice(width: Width, value: &BigInt, high: u32, low: u32, bits: &BigInt) -> BigInt {
    let whole = Width::unsigned(width.bits).wrap(value);
    let old = slice(&whole, high, low);
    let new = Width::unsigned(high - low + 1).wrap(bits);
    width.wrap(&(whole + (new - old) * (BigInt::one() << low)))
}

/// Two numbers side by side, the first one above.
#[must_use]
pub fn concatenate(a: (Width, &BigInt), b: (Width, &BigInt)) -> (Width, BigInt) {
    let high = Width::unsigned(a.0.bits).wrap(a.1);
    let low = Width::unsigned(b.0.bits).wrap(b.1);
    let width = Width {
        bits: a.0.bits + b.0.bits,
        signed: a.0.signed,
    };
    (
        width,
        width.wrap(&(high * (BigInt::one() << b.0.bits) + low)),
    )
}

/// The greatest number that is not above `value` / 2^`amount`.
fn floor_divide(value: &BigInt, amount: u32) -> BigInt {
    let divisor = BigInt::one() << amount;
    let quotient = value / &divisor;
    if value.is_negative() && !(value % &divisor).is_zero() {
        quotient - 1
    } else {
        quotient
    }
}

/// Bit by bit, in two's complement.
fn bitwise(width: Width, a: &BigInt, b: &BigInt, op: impl Fn(bool, bool) -> bool) -> BigInt {
    let bits = |value: &BigInt| Width::unsigned(width.bits).wrap(value).into_parts().1;
    let (a, b) = (bits(a), bits(b));
    let mut result = BigInt::zero();
    for bit in 0..u64::from(width.bits) {
        result.set_bit(bit, op(a.bit(bit), b.bit(bit)));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: Width = Width::unsigned(8);
    const INT: Width = Width {
        bits: 8,
        signed: true,
    };

    fn value(op: BinaryOp, width: Width, a: i64, b: i64) -> i64 {
        let (a, b) = (BigInt::from(a), BigInt::from(b));
        let value = match op {
            BinaryOp::Shl => shift(true, Some(width), &a, &b),
            BinaryOp::Shr => shift(false, Some(width), &a, &b),
            _ => arithmetic(op, Some(width), &a, &b),
        };
        i64::try_from(value.unwrap()).unwrap()
    }

    #[test]
    fn examples() {
        assert_eq!(value(BinaryOp::Add, BITS, 255, 2), 1);
        assert_eq!(value(BinaryOp::Sub, BITS, 1, 2), 255);
        assert_eq!(value(BinaryOp::AddSat, BITS, 255, 2), 255);
        assert_eq!(value(BinaryOp::SubSat, BITS, 1, 2), 0);
        assert_eq!(value(BinaryOp::AddSat, INT, 127, 1), 127);
        assert_eq!(value(BinaryOp::SubSat, INT, -128, 1), -128);
        assert_eq!(value(BinaryOp::Mul, INT, -1, -1), 1);
        assert_eq!(value(BinaryOp::BitXor, INT, -16, 15), -1);
        assert_eq!(value(BinaryOp::Shr, BITS, 0x80, 7), 1);
        assert_eq!(value(BinaryOp::Shl, INT, 0x41, 1), -126);
        let shifted = |amount| value(BinaryOp::Shr, INT, -7, amount);
        assert_eq!((shifted(1), shifted(3), shifted(200)), (-4, -1, -1));
    }

    #[test]
    fn slices_and_concatenation() {
        let number = BigInt::from(-2);
        assert_eq!(slice(&number, 3, 0), BigInt::from(14));
        let set = with_slice(BITS, &BigInt::from(0xf0), 5, 2, &BigInt::from(0b0110));
        assert_eq!(set, BigInt::from(0xd8));
        let joined = concatenate((INT, &number), (BITS, &BigInt::from(1)));
        let width = Width {
            bits: 16,
            signed: true,
        };
        assert_eq!(joined, (width, BigInt::from(-511)));
    }
}
