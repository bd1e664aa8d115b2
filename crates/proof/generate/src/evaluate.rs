//! Value of a constant expression of the generator: the operations are those of
//! `stateplane_semantics`, which shares nothing with the checker's or the engines' arithmetic.

use crate::expr::{Binary, Expr, Ty, Unary};
use num_bigint::BigInt;
use num_traits::{One, Zero};
use stateplane_semantics::number::{self, Width};
use stateplane_syntax::tree::BinaryOp;

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
            ty.wrap(&binary(*op, left.ty(), right.ty(), &a, &b)?)
        }
        Expr::Cast(to, operand) => to.wrap(&evaluate(operand)?),
        Expr::Slice(operand, high, low) => number::slice(&evaluate(operand)?, *high, *low),
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

fn width(ty: Ty) -> Option<Width> {
    Some(Width {
        bits: ty.width()?,
        signed: matches!(ty, Ty::Int(_)),
    })
}

fn binary(op: Binary, left: Ty, right: Ty, a: &BigInt, b: &BigInt) -> Option<BigInt> {
    let op = match op {
        Binary::Both => return Some(a & b),
        Binary::Either => return Some(a | b),
        Binary::Concat => {
            return Some(number::concatenate((width(left)?, a), (width(right)?, b)).1);
        }
        Binary::Shl | Binary::Shr => {
            return number::shift(op == Binary::Shl, Some(width(left)?), a, b);
        }
        Binary::Add => BinaryOp::Add,
        Binary::Sub => BinaryOp::Sub,
        Binary::Mul => BinaryOp::Mul,
        Binary::AddSat => BinaryOp::AddSat,
        Binary::SubSat => BinaryOp::SubSat,
        Binary::And => BinaryOp::BitAnd,
        Binary::Or => BinaryOp::BitOr,
        Binary::Xor => BinaryOp::BitXor,
        Binary::Div => BinaryOp::Div,
        Binary::Mod => BinaryOp::Mod,
        Binary::Eq => BinaryOp::Equal,
        Binary::Ne => BinaryOp::NotEqual,
        Binary::Lt => BinaryOp::Less,
        Binary::Le => BinaryOp::LessEqual,
        Binary::Gt => BinaryOp::Greater,
        Binary::Ge => BinaryOp::GreaterEqual,
    };
    match number::compare(op, a, b) {
        Some(value) => Some(BigInt::from(u8::from(value))),
        None => number::arithmetic(op, Some(width(left)?), a, b),
    }
}
