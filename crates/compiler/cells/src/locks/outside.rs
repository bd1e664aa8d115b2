//! Uses of arrays as the text of a program has them, followed or not.

use super::arrays::Arrays;
use super::callables::{Name, body, name};
use super::state::Set;
use stateplane_ir::passes::each_op;
use stateplane_ir::{Callee, Op, Program, Stmt, TableId};
use std::collections::BTreeSet;

/// Numbers of the arrays that a program uses, those of meters behind those of registers.
#[derive(Default)]
pub(super) struct Used {
    /// In atomic blocks, or in what is called.
    pub blocks: Set,
    /// In those of parsers, or in what these call.
    pub parsers: Set,
}

/// The arrays that need a domain, and more.
pub(super) fn used(program: &Program, arrays: &Arrays) -> Used {
    let mut used = Used::default();
    let mut all = Search::new(program, arrays);
    for control in &program.controls {
        all.stmts(&control.body, false);
    }
    for action in &program.actions {
        all.stmts(&action.body, false);
    }
    for function in &program.functions {
        all.stmts(&function.body, false);
    }
    used.blocks = all.atomic;
    let mut parsers = Search::new(program, arrays);
    for parser in &program.parsers {
        parsers.stmts(&parser.init, false);
        for state in &parser.states {
            parsers.stmts(&state.body, false);
        }
    }
    used.blocks.unite(&parsers.atomic);
    used.parsers = parsers.atomic;
    used
}

/// For each register whether some statement writes it.
pub(super) fn written(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.registers.len()];
    each_op(program, &mut |op| {
        if let Op::RegisterWrite { register, .. } = op {
            written[register.index()] = true;
        }
    });
    written
}

/// Uses in atomic blocks, with all that these call.
struct Search<'p> {
    program: &'p Program,
    arrays: &'p Arrays,
    atomic: Set,
    seen: BTreeSet<Name>,
}

impl<'p> Search<'p> {
    fn new(program: &'p Program, arrays: &'p Arrays) -> Search<'p> {
        Search {
            program,
            arrays,
            atomic: Set::default(),
            seen: BTreeSet::new(),
        }
    }

    fn stmts(&mut self, stmts: &'p [Stmt], inside: bool) {
        for stmt in stmts {
            self.stmt(stmt, inside);
        }
    }

    fn stmt(&mut self, stmt: &'p Stmt, inside: bool) {
        match stmt {
            Stmt::Op(op) if inside => match op {
                Op::RegisterRead { register, .. } | Op::RegisterWrite { register, .. }
                    if self.arrays.change(register.index()) =>
                {
                    self.atomic.add(register.index());
                }
                Op::MeterExecute { meter, .. } => {
                    self.atomic
                        .add(self.program.registers.len() + meter.index());
                }
                _ => {}
            },
            Stmt::Apply { table, .. } if inside => self.table(*table),
            Stmt::Call { callee, .. } if inside => self.callee(*callee),
            Stmt::If {
                then, otherwise, ..
            } => {
                self.stmts(then, inside);
                self.stmts(otherwise, inside);
            }
            Stmt::Switch { cases, default, .. } => {
                for (_, body) in cases {
                    self.stmts(body, inside);
                }
                self.stmts(default, inside);
            }
            Stmt::Loop { body, update } => {
                self.stmts(body, inside);
                self.stmts(update, inside);
            }
            Stmt::Block(body) => self.stmts(body, inside),
            Stmt::Atomic(body) | Stmt::Apart(body) => self.stmts(body, true),
            _ => {}
        }
    }

    fn table(&mut self, table: TableId) {
        for used in &self.program.tables[table.index()].actions {
            self.callee(Callee::Action(used.action));
        }
    }

    fn callee(&mut self, callee: Callee) {
        // All parsers are looked at.
        if self.seen.insert(name(callee)) {
            self.stmts(body(self.program, callee), true);
        }
    }
}
