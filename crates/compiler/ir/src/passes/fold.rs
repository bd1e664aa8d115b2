//! Operations on constants are computed, and operations that change nothing go.
//!
//! An operand that may end a parser stays where it is computed.

mod evaluate;

use super::walk::{bodies, exprs_mut, may_fault, operands_mut, other_exprs_mut};
use crate::{BinaryOp, Const, Expr, ExprKind, Program, Type, UnaryOp};
use num_bigint::BigUint;
use num_traits::{One, Zero};

pub(super) fn run(program: &mut Program) {
    bodies(program, &mut |body| exprs_mut(body, &mut fold));
    other_exprs_mut(program, &mut fold);
}

/// Folds an expression, its operands first.
fn fold(expr: &mut Expr) {
    operands_mut(expr, &mut fold);
    // Each step makes it smaller.
    while let Some(simpler) = simpler(expr) {
        *expr = simpler;
    }
}

fn constant(expr: &Expr) -> Option<&Const> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value),
        _ => None,
    }
}

fn bits(expr: &Expr) -> Option<&BigUint> {
    match constant(expr) {
        Some(Const::Bits(bits)) => Some(bits),
        _ => None,
    }
}

fn boolean(expr: &Expr) -> Option<bool> {
    match constant(expr) {
        Some(Const::Bool(value)) => Some(*value),
        _ => None,
    }
}

fn of_bool(value: bool) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bool(value)),
        ty: Type::Bool,
    }
}

fn of_bits(value: BigUint, ty: Type) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bits(value)),
        ty,
    }
}

fn of_unary(op: UnaryOp, value: Expr) -> Expr {
    Expr {
        ty: value.ty,
        kind: ExprKind::Unary(op, Box::new(value)),
    }
}

/// An equal expression with fewer operations, if one is known.
fn simpler(expr: &Expr) -> Option<Expr> {
    match &expr.kind {
        ExprKind::Unary(op, value) => unary(*op, value),
        ExprKind::Binary(op, left, right) => match op {
            BinaryOp::LogicalAnd => logical(left, right, true),
            BinaryOp::LogicalOr => logical(left, right, false),
            _ => binary(*op, left, right, expr.ty),
        },
        ExprKind::Cast(value) => {
            if value.ty == expr.ty {
                return Some((**value).clone());
            }
            evaluate::cast(constant(value)?, value.ty, expr.ty).map(|value| Expr {
                kind: ExprKind::Const(value),
                ty: expr.ty,
            })
        }
        ExprKind::Slice { value, hi, lo } => slice(value, *hi, *lo, expr.ty),
        ExprKind::Mux {
            condition,
            then,
            otherwise,
        } => match (boolean(condition), boolean(then), boolean(otherwise)) {
            (Some(true), ..) => Some((**then).clone()),
            (Some(false), ..) => Some((**otherwise).clone()),
            (_, Some(true), Some(false)) => Some((**condition).clone()),
            (_, Some(false), Some(true)) => Some(of_unary(UnaryOp::Not, (**condition).clone())),
            _ => None,
        },
        ExprKind::Default => match expr.ty {
            Type::Bool => Some(of_bool(false)),
            Type::Bits(_) | Type::Int(_) => Some(of_bits(BigUint::zero(), expr.ty)),
            _ => None,
        },
        _ => None,
    }
}

fn unary(op: UnaryOp, value: &Expr) -> Option<Expr> {
    if let Some(value) = boolean(value) {
        return (op == UnaryOp::Not).then(|| of_bool(!value));
    }
    if let Some(bits) = bits(value) {
        return Some(of_bits(evaluate::unary(op, bits, value.ty)?, value.ty));
    }
    match &value.kind {
        ExprKind::Unary(inner, twice) if *inner == op => Some((**twice).clone()),
        ExprKind::Binary(inner, left, right) if op == UnaryOp::Not => Some(Expr {
            kind: ExprKind::Binary(opposite(*inner)?, left.clone(), right.clone()),
            ty: Type::Bool,
        }),
        _ => None,
    }
}

/// The comparison that holds exactly where another does not.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Le => BinaryOp::Gt,
        _ => return None,
    })
}

/// `&&`, whose `neutral` operand is true, or `||`, whose is false.
fn logical(left: &Expr, right: &Expr, neutral: bool) -> Option<Expr> {
    match (boolean(left), boolean(right)) {
        (Some(value), _) if value == neutral => Some(right.clone()),
        (Some(value), _) => Some(of_bool(value)),
        (_, Some(value)) if value == neutral => Some(left.clone()),
        (_, Some(value)) if !may_fault(left) => Some(of_bool(value)),
        _ => None,
    }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr, ty: Type) -> Option<Expr> {
    if let (Some(a), Some(b)) = (constant(left), constant(right)) {
        let value = match (a, b) {
            (Const::Bits(a), Const::Bits(b)) => evaluate::binary(op, a, b, left.ty, right.ty)?,
            (Const::Bool(a), Const::Bool(b)) => match op {
                BinaryOp::Eq => Const::Bool(a == b),
                BinaryOp::Ne => Const::Bool(a != b),
                _ => return None,
            },
            _ => return None,
        };
        let kind = ExprKind::Const(value);
        return Some(Expr { kind, ty });
    }
    if let BinaryOp::Eq | BinaryOp::Ne = op {
        let (value, other) = match (boolean(left), boolean(right)) {
            (Some(value), _) => (value, right),
            (_, Some(value)) => (value, left),
            _ => return None,
        };
        return Some(if value == (op == BinaryOp::Eq) {
            other.clone()
        } else {
            of_unary(UnaryOp::Not, other.clone())
        });
    }
    if let Some(value) = bits(right) {
        let keeps = match op {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::AddSat
            | BinaryOp::SubSat
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => value.is_zero(),
            // One is not one in `int<1>`.
            BinaryOp::Mul | BinaryOp::Div => value.is_one() && matches!(ty, Type::Bits(_)),
            BinaryOp::And => *value == evaluate::all_ones(ty),
            _ => false,
        };
        if keeps {
            return Some(left.clone());
        }
        if is_absorbing(op, value, ty) && !may_fault(left) {
            return Some(right.clone());
        }
    }
    if let Some(value) = bits(left) {
        let keeps = match op {
            BinaryOp::Add | BinaryOp::AddSat | BinaryOp::Or | BinaryOp::Xor => value.is_zero(),
            BinaryOp::Mul => value.is_one() && matches!(ty, Type::Bits(_)),
            BinaryOp::And => *value == evaluate::all_ones(ty),
            _ => false,
        };
        if keeps {
            return Some(right.clone());
        }
        if is_absorbing(op, value, ty) && !may_fault(right) {
            return Some(left.clone());
        }
    }
    None
}

/// True if the operator gives this operand for every other operand.
fn is_absorbing(op: BinaryOp, value: &BigUint, ty: Type) -> bool {
    match op {
        BinaryOp::And | BinaryOp::Mul => value.is_zero(),
        BinaryOp::Or => *value == evaluate::all_ones(ty),
        _ => false,
    }
}

fn slice(value: &Expr, hi: u32, lo: u32, ty: Type) -> Option<Expr> {
    if let Some(bits) = bits(value) {
        let part = (bits >> lo) & evaluate::all_ones(ty);
        return Some(of_bits(part, ty));
    }
    if value.ty == ty {
        return Some(value.clone());
    }
    match &value.kind {
        ExprKind::Slice {
            value,
            hi: _,
            lo: below,
        } => Some(Expr {
            kind: ExprKind::Slice {
                value: value.clone(),
                hi: hi + below,
                lo: lo + below,
            },
            ty,
        }),
        _ => None,
    }
}
