//! Branches on constants, empty branches, and statements behind one that does not go on.

use super::walk::{bodies, lists, may_fault};
use crate::{Const, Expr, ExprKind, Program, Stmt, Type, UnaryOp};
use num_bigint::BigUint;

pub(super) fn run(program: &mut Program) {
    bodies(program, &mut |body| {
        lists(body, &mut |stmts| {
            let old = std::mem::take(stmts);
            for stmt in old {
                choose(stmt, stmts);
                if stmts.last().is_some_and(ends) {
                    break;
                }
            }
        });
    });
}

/// True if the statements after this one are never reached.
fn ends(stmt: &Stmt) -> bool {
    let last = |stmts: &[Stmt]| stmts.last().is_some_and(ends);
    match stmt {
        Stmt::Return | Stmt::Exit | Stmt::Break | Stmt::Continue => true,
        Stmt::If {
            then, otherwise, ..
        } => last(then) && last(otherwise),
        Stmt::Switch { cases, default, .. } => {
            last(default) && cases.iter().all(|(_, stmts)| last(stmts))
        }
        Stmt::Block(stmts) | Stmt::Atomic(stmts) | Stmt::Apart(stmts) => last(stmts),
        _ => false,
    }
}

/// Adds what is left of a statement.
fn choose(stmt: Stmt, out: &mut Vec<Stmt>) {
    match stmt {
        Stmt::If {
            condition,
            then,
            otherwise,
        } => match condition.kind {
            ExprKind::Const(Const::Bool(true)) => out.extend(certain(then)),
            ExprKind::Const(Const::Bool(false)) => out.extend(certain(otherwise)),
            _ if then.iter().chain(&otherwise).all(is_hint) => {
                if may_fault(&condition) {
                    out.push(Stmt::If {
                        condition,
                        then: Vec::new(),
                        otherwise: Vec::new(),
                    });
                }
            }
            _ if then.is_empty() => out.push(Stmt::If {
                condition: negated(condition),
                then: otherwise,
                otherwise: then,
            }),
            _ => out.push(Stmt::If {
                condition,
                then,
                otherwise,
            }),
        },
        Stmt::Switch {
            value,
            mut cases,
            default,
        } => {
            if let Some(label) = label(&value) {
                let chosen = cases
                    .into_iter()
                    .find(|(labels, _)| labels.contains(&label))
                    .map_or(default, |(_, stmts)| stmts);
                out.extend(chosen);
                return;
            }
            if default.is_empty() {
                cases.retain(|(_, stmts)| !stmts.is_empty());
            }
            if cases.is_empty() && !may_fault(&value) {
                out.extend(default);
            } else {
                out.push(Stmt::Switch {
                    value,
                    cases,
                    default,
                });
            }
        }
        other => out.push(other),
    }
}

fn is_hint(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Unlikely)
}

/// The statements of a branch that is always taken, however unlikely it was said to be.
fn certain(branch: Vec<Stmt>) -> impl Iterator<Item = Stmt> {
    branch.into_iter().skip_while(is_hint)
}

/// The label that a constant has.
fn label(value: &Expr) -> Option<BigUint> {
    match &value.kind {
        ExprKind::Const(Const::Bits(bits)) => Some(bits.clone()),
        ExprKind::Const(Const::Bool(value)) => Some(BigUint::from(u32::from(*value))),
        _ => None,
    }
}

fn negated(condition: Expr) -> Expr {
    match condition.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => *inner,
        _ => Expr {
            kind: ExprKind::Unary(UnaryOp::Not, Box::new(condition)),
            ty: Type::Bool,
        },
    }
}
