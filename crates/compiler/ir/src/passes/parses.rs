//! Parsers that do nothing but parse.

use super::walk::children;
use crate::{Callee, Op, Program, Stmt};

/// True if a program's parsers leave nothing behind but headers and metadata: one may run over again.
pub fn parses_only(program: &Program) -> bool {
    fn parses(stmts: &[Stmt]) -> bool {
        stmts.iter().all(|stmt| match stmt {
            Stmt::Op(op) => matches!(
                op,
                Op::Extract { .. }
                    | Op::Lookahead { .. }
                    | Op::Advance { .. }
                    | Op::PacketLength { .. }
                    | Op::Verify { .. }
            ),
            Stmt::Call { callee, .. } => matches!(callee, Callee::Parser(_)),
            Stmt::Apply { .. } | Stmt::Loop { .. } => false,
            _ => children(stmt).into_iter().all(|list| parses(list)),
        })
    }
    program.parsers.iter().all(|parser| {
        let mut states = parser.states.iter();
        parses(&parser.init) && states.all(|state| parses(&state.body))
    })
}
