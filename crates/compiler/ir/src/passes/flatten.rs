//! Blocks become part of the statements around them: variables have static storage, so a
//! block is no scope.

use super::walk::{bodies, lists};
use crate::{Program, Stmt};

pub(super) fn run(program: &mut Program) {
    bodies(program, &mut |body| {
        lists(body, &mut |stmts| {
            if stmts.iter().any(is_open) {
                let old = std::mem::take(stmts);
                for stmt in old {
                    match stmt {
                        Stmt::Block(inner) => stmts.extend(inner),
                        Stmt::Atomic(inner) | Stmt::Apart(inner) if inner.is_empty() => {}
                        other => stmts.push(other),
                    }
                }
            }
        });
    });
}

fn is_open(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Block(_) => true,
        Stmt::Atomic(inner) | Stmt::Apart(inner) => inner.is_empty(),
        _ => false,
    }
}
