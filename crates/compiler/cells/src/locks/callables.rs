//! Callables: names, parameters, statements, and the calls among them.

use stateplane_ir::passes::children;
use stateplane_ir::{Callee, Param, Program, Stmt, VarId};
use std::collections::BTreeSet;

/// Kind and number of a callable.
pub(super) type Name = (u8, u32);

pub(super) fn name(callee: Callee) -> Name {
    match callee {
        Callee::Action(id) => (0, id.0),
        Callee::Function(id) => (1, id.0),
        Callee::Control(id) => (2, id.0),
        Callee::Parser(id) => (3, id.0),
    }
}

/// Parameters and locals.
pub(super) fn frame(program: &Program, callee: Callee) -> (&[Param], &[VarId]) {
    match callee {
        Callee::Action(id) => {
            let action = &program.actions[id.index()];
            (&action.params, &action.locals)
        }
        Callee::Function(id) => {
            let function = &program.functions[id.index()];
            (&function.params, &function.locals)
        }
        Callee::Control(id) => {
            let control = &program.controls[id.index()];
            (&control.params, &control.locals)
        }
        Callee::Parser(id) => {
            let parser = &program.parsers[id.index()];
            (&parser.params, &parser.locals)
        }
    }
}

/// The statements of a callable; none of a parser, which no control calls.
pub(super) fn body(program: &Program, callee: Callee) -> &[Stmt] {
    match callee {
        Callee::Action(id) => &program.actions[id.index()].body,
        Callee::Function(id) => &program.functions[id.index()].body,
        Callee::Control(id) => &program.controls[id.index()].body,
        Callee::Parser(_) => &[],
    }
}

/// Adds all callables that statements call or apply, and those that these call.
pub(super) fn called(program: &Program, stmts: &[Stmt], seen: &mut BTreeSet<Name>) {
    for stmt in stmts {
        let mut add = |callee: Callee| {
            if seen.insert(name(callee)) {
                called(program, body(program, callee), seen);
            }
        };
        match stmt {
            Stmt::Call { callee, .. } => add(*callee),
            Stmt::Apply { table, .. } => {
                let actions = program.tables[table.index()].actions.iter();
                actions.for_each(|it| add(Callee::Action(it.action)));
            }
            _ => {}
        }
        for list in children(stmt) {
            called(program, list, seen);
        }
    }
}
