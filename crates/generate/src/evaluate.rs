//! What a constant expression is worth, straight from the specification's sections on
//! operations (P4-16 1.2.5, §8.5 to §8.11), with numbers of any size. It shares nothing
//! with the checker's or the engines' arithmetic.

use crate::expr::{Binary, Expr, Ty, Unary};
use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

/// The value: in the range of its type for numbers, 0 or 1 of a `bool`. `None` for
/// names, and for division by zero.
pub fn evaluate(expr: &Expr) -> Option<BigInt> {
    let ty = expr.ty();
    Some(match expr {
        Expr::Const { value, .. } => value.clone(),
        Expr::Name { .. } => return None,
        Expr::Unary(op, operand) => {
            let value = evaluate(operand)?;
            ty.wrap(&match op {
                Unary::Not => BigInt::one() - value,
                Unary::Complement => -value - 1,
                Unary::Negate => -value,
            })
        }
        Expr::Binary(op, left, right) => {
            let (a, b) = (evaluate(left)?, evaluate(right)?);
            match truth(*op, &a, &b) {
                Some(value) => BigInt::from(u8::from(value)),
                None => ty.wrap(&number(*op, left.ty(), right.ty(), a, b)?),
            }
        }
        Expr::Cast(to, operand) => to.wrap(&evaluate(operand)?),
        Expr::Slice(operand, _, low) => {
            let width = operand.ty().width()?;
            let bits = Ty::Bits(width).wrap(&evaluate(operand)?);
            ty.wrap(&floor_divide(&bits, *low))
        }
        Expr::Choose(condition, then, otherwise) => {
            // Both sides have to have a value, whichever is taken.
            let (then, otherwise) = (evaluate(then)?, evaluate(otherwise)?);
            if evaluate(condition)?.is_zero() {
                otherwise
            } else {
                then
            }
        }
    })
}

fn truth(op: Binary, a: &BigInt, b: &BigInt) -> Option<bool> {
    Some(match op {
        Binary::Eq => a == b,
        Binary::Ne => a != b,
        Binary::Lt => a < b,
        Binary::Le => a <= b,
        Binary::Gt => a > b,
        Binary::Ge => a >= b,
        Binary::Both => !a.is_zero() && !b.is_zero(),
        Binary::Either => !a.is_zero() || !b.is_zero(),
        _ => return None,
    })
}

/// The mathematical result, not yet brought into the type's range.
fn number(op: Binary, left: Ty, right: Ty, a: BigInt, b: BigInt) -> Option<BigInt> {
    Some(match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::AddSat => clamp(left, a + b)?,
        Binary::SubSat => clamp(left, a - b)?,
        Binary::Div if !b.is_zero() => a / b,
        Binary::Mod if !b.is_zero() => a % b,
        Binary::And => bitwise(left, &a, &b, |a, b| a && b)?,
        Binary::Or => bitwise(left, &a, &b, |a, b| a || b)?,
        Binary::Xor => bitwise(left, &a, &b, |a, b| a != b)?,
        Binary::Concat => {
            let high = Ty::Bits(left.width()?).wrap(&a);
            let low = Ty::Bits(right.width()?).wrap(&b);
            high * (BigInt::one() << right.width()?) + low
        }
        // A shift by the width or more leaves nothing but the sign.
        Binary::Shl | Binary::Shr => {
            let width = left.width()?;
            let amount = match u32::try_from(&b) {
                Ok(amount) if amount <= width => amount,
                _ => width,
            };
            match op {
                Binary::Shl => a * (BigInt::one() << amount),
                _ => floor_divide(&a, amount),
            }
        }
        _ => return None,
    })
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

fn clamp(ty: Ty, value: BigInt) -> Option<BigInt> {
    let width = ty.width()?;
    let (low, high) = match ty {
        Ty::Int(_) => (
            -(BigInt::one() << (width - 1)),
            (BigInt::one() << (width - 1)) - 1,
        ),
        _ => (BigInt::zero(), (BigInt::one() << width) - 1),
    };
    Some(value.clamp(low, high))
}

/// Bit by bit, in two's complement.
fn bitwise(ty: Ty, a: &BigInt, b: &BigInt, op: impl Fn(bool, bool) -> bool) -> Option<BigInt> {
    let width = ty.width()?;
    let bits = |value: &BigInt| Ty::Bits(width).wrap(value);
    let (mut a, mut b) = (bits(a), bits(b));
    let (mut result, mut place) = (BigInt::zero(), BigInt::one());
    for _ in 0..width {
        let odd = |value: &BigInt| !BigInt::is_zero(&(value % 2));
        if op(odd(&a), odd(&b)) {
            result += &place;
        }
        a /= 2;
        b /= 2;
        place *= 2;
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;

    fn value(op: Binary, ty: Ty, a: u32, b: u32) -> i64 {
        let number = |bits: u32| Box::new(Expr::number(ty, &BigUint::from(bits)));
        let value = evaluate(&Expr::Binary(op, number(a), number(b))).unwrap();
        i64::try_from(value).unwrap()
    }

    #[test]
    fn examples() {
        let (bits, int) = (Ty::Bits(8), Ty::Int(8));
        assert_eq!(value(Binary::Add, bits, 255, 2), 1);
        assert_eq!(value(Binary::AddSat, bits, 255, 2), 255);
        assert_eq!(value(Binary::SubSat, bits, 1, 2), 0);
        assert_eq!(value(Binary::AddSat, int, 127, 1), 127);
        assert_eq!(value(Binary::SubSat, int, 128, 1), -128);
        assert_eq!(value(Binary::Mul, int, 255, 255), 1);
        assert_eq!(value(Binary::Xor, int, 0xf0, 0x0f), -1);
        assert_eq!(value(Binary::Shr, bits, 0x80, 7), 1);
        assert_eq!(value(Binary::Concat, bits, 1, 2), 0x102);
        let shift = |amount: u32| {
            let left = Box::new(Expr::number(int, &BigUint::from(0xf9u32)));
            let right = Box::new(Expr::number(bits, &BigUint::from(amount)));
            i64::try_from(evaluate(&Expr::Binary(Binary::Shr, left, right)).unwrap()).unwrap()
        };
        assert_eq!((shift(1), shift(3), shift(200)), (-4, -1, -1));
    }
}
