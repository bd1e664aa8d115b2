//! Every operator, at narrow and wide widths, against numbers of any size.

use super::{evaluate, number};
use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, ToPrimitive, Zero};
use proptest::prelude::*;
use stateplane_ir::builder::{big_bits, binary, bits, boolean, cast, int, mux, slice, unary};
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, Type, UnaryOp};

fn modulus(width: u32) -> BigInt {
    BigInt::from(1) << width
}

fn wrap(value: BigInt, width: u32) -> BigUint {
    let rest = value % modulus(width);
    let positive = if rest.is_negative() {
        rest + modulus(width)
    } else {
        rest
    };
    positive.to_biguint().unwrap()
}

/// The number that bits of a type stand for.
fn meaning(value: &BigUint, ty: Type) -> BigInt {
    match ty {
        Type::Int(width) if value.bit(u64::from(width) - 1) => {
            BigInt::from(value.clone()) - modulus(width)
        }
        _ => BigInt::from(value.clone()),
    }
}

/// The specification's result of an operator, by numbers of any size.
fn expected(op: BinaryOp, a: &BigUint, b: &BigUint, ty: Type, amount: &BigUint) -> BigUint {
    let width = ty.scalar_width().unwrap();
    let (x, y) = (meaning(a, ty), meaning(b, ty));
    let truth = |value: bool| BigUint::from(u32::from(value));
    let clamp = |value: BigInt| {
        let (least, greatest) = match ty {
            Type::Int(_) => (-modulus(width - 1), modulus(width - 1) - 1),
            _ => (BigInt::zero(), modulus(width) - 1),
        };
        wrap(value.max(least).min(greatest), width)
    };
    match op {
        BinaryOp::Add => wrap(x + y, width),
        BinaryOp::Sub => wrap(x - y, width),
        BinaryOp::Mul => wrap(x * y, width),
        BinaryOp::Div => {
            if b.is_zero() {
                BigUint::zero()
            } else {
                a / b
            }
        }
        BinaryOp::Mod => {
            if b.is_zero() {
                BigUint::zero()
            } else {
                a % b
            }
        }
        BinaryOp::AddSat => clamp(x + y),
        BinaryOp::SubSat => clamp(x - y),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => match amount.to_u32().filter(|amount| *amount < width) {
            Some(amount) => wrap(x << amount, width),
            None => BigUint::zero(),
        },
        BinaryOp::Shr => {
            // Division rounds to minus infinity, which is the arithmetic shift.
            let amount = amount.to_u32().unwrap_or(u32::MAX).min(4096);
            let divisor = modulus(amount);
            let quotient = if x.is_negative() {
                -((-x + &divisor - BigInt::from(1)) / divisor)
            } else {
                x / divisor
            };
            wrap(quotient, width)
        }
        BinaryOp::Concat => (a << width) | b,
        BinaryOp::Eq => truth(x == y),
        BinaryOp::Ne => truth(x != y),
        BinaryOp::Lt => truth(x < y),
        BinaryOp::Le => truth(x <= y),
        BinaryOp::Gt => truth(x > y),
        BinaryOp::Ge => truth(x >= y),
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr => unreachable!("on bool only"),
    }
}

const OPERATORS: [BinaryOp; 19] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::AddSat,
    BinaryOp::SubSat,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Concat,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
];

fn constant(value: &BigUint, ty: Type) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bits(value.clone())),
        ty,
    }
}

fn scalar_type() -> impl Strategy<Value = Type> {
    let width = prop_oneof![
        1u32..=130,
        prop::sample::select(vec![8, 64, 127, 128, 129, 255, 256, 257, 1000])
    ];
    (width, any::<bool>()).prop_map(|(width, signed)| {
        if signed {
            Type::Int(width)
        } else {
            Type::Bits(width)
        }
    })
}

/// Random bits, often near the ends of the range.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 128),
        prop::collection::vec(any::<u8>(), 1),
        any::<u8>().prop_map(|low| {
            let mut bytes = vec![0xff; 128];
            bytes[0] = low;
            bytes
        }),
    ]
}

fn fit(bytes: &[u8], ty: Type) -> BigUint {
    wrap(
        BigInt::from(BigUint::from_bytes_le(bytes)),
        ty.scalar_width().unwrap(),
    )
}

proptest! {
    #[test]
    fn operators(ty in scalar_type(), left in pattern(), right in pattern(), amount in 0u32..300) {
        let (a, b) = (fit(&left, ty), fit(&right, ty));
        for op in OPERATORS {
            let amount_value = BigUint::from(amount);
            let second = match op {
                BinaryOp::Shl | BinaryOp::Shr => bits(16, u128::from(amount)),
                _ => constant(&b, ty),
            };
            let expr = binary(op, constant(&a, ty), second);
            prop_assert_eq!(
                evaluate(expr),
                expected(op, &a, &b, ty, &amount_value),
                "{:?} of {:?}", op, ty
            );
        }
    }

    #[test]
    fn unary_operators(ty in scalar_type(), value in pattern()) {
        let a = fit(&value, ty);
        let width = ty.scalar_width().unwrap();
        let negated = evaluate(unary(UnaryOp::Negate, constant(&a, ty)));
        prop_assert_eq!(negated, wrap(-BigInt::from(a.clone()), width));
        let complement = evaluate(unary(UnaryOp::Complement, constant(&a, ty)));
        prop_assert_eq!(complement, wrap(-BigInt::from(a) - 1, width));
    }

    #[test]
    fn casts(from in scalar_type(), to in scalar_type(), value in pattern()) {
        let a = fit(&value, from);
        let result = evaluate(cast(to, constant(&a, from)));
        prop_assert_eq!(result, wrap(meaning(&a, from), to.scalar_width().unwrap()));
    }

    #[test]
    fn slices(ty in scalar_type(), value in pattern(), first in 0u32..1000, second in 0u32..1000) {
        let width = ty.scalar_width().unwrap();
        let (first, second) = (first % width, second % width);
        let (lo, hi) = (first.min(second), first.max(second));
        let a = fit(&value, ty);
        let result = evaluate(slice(constant(&a, ty), hi, lo));
        prop_assert_eq!(result, wrap(BigInt::from(a >> lo), hi - lo + 1));
    }
}

#[test]
fn shifts_by_any_amount() {
    let huge = || big_bits(200, BigUint::from(1u32) << 199u32);
    assert_eq!(number(binary(BinaryOp::Shl, bits(8, 1), huge())), 0);
    assert_eq!(number(binary(BinaryOp::Shr, bits(8, 255), huge())), 0);
    assert_eq!(number(binary(BinaryOp::Shr, int(8, -128), huge())), 255);
    assert_eq!(number(binary(BinaryOp::Shr, int(8, -128), bits(8, 1))), 192);
    assert_eq!(number(binary(BinaryOp::Shl, bits(8, 255), bits(4, 8))), 0);
    assert_eq!(
        number(binary(BinaryOp::Shl, bits(128, 3), bits(8, 127))),
        1 << 127
    );
}

#[test]
fn no_bits_at_all() {
    assert_eq!(number(binary(BinaryOp::Add, bits(0, 0), bits(0, 0))), 0);
    assert_eq!(number(binary(BinaryOp::Shl, bits(0, 0), bits(8, 1))), 0);
    assert_eq!(
        number(binary(BinaryOp::Concat, bits(0, 0), bits(128, 5))),
        5
    );
    assert_eq!(
        number(binary(BinaryOp::Concat, bits(128, 5), bits(0, 0))),
        5
    );
}

#[test]
fn logic() {
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        let both = binary(BinaryOp::LogicalAnd, boolean(a), boolean(b));
        let either = binary(BinaryOp::LogicalOr, boolean(a), boolean(b));
        assert_eq!(number(both), u128::from(a && b));
        assert_eq!(number(either), u128::from(a || b));
        let equal = binary(BinaryOp::Eq, boolean(a), boolean(b));
        assert_eq!(number(equal), u128::from(a == b));
    }
    assert_eq!(number(unary(UnaryOp::Not, boolean(true))), 0);
    assert_eq!(number(unary(UnaryOp::Not, boolean(false))), 1);
}

#[test]
fn casts_of_bool() {
    assert_eq!(number(cast(Type::Bool, bits(1, 1))), 1);
    assert_eq!(number(cast(Type::Bits(1), boolean(true))), 1);
}

#[test]
fn choices() {
    assert_eq!(number(mux(boolean(true), bits(8, 1), bits(8, 2))), 1);
    assert_eq!(number(mux(boolean(false), bits(8, 1), bits(8, 2))), 2);
    let wide = |value: u32| big_bits(300, BigUint::from(value) << 290u32);
    let chosen = evaluate(mux(boolean(false), wide(1), wide(2)));
    assert_eq!(chosen, BigUint::from(2u32) << 290u32);
}

#[test]
fn defaults() {
    for ty in [Type::Bool, Type::Bits(8), Type::Error, Type::Bits(500)] {
        let expr = Expr {
            kind: ExprKind::Default,
            ty,
        };
        assert_eq!(evaluate(expr), BigUint::zero());
    }
}
