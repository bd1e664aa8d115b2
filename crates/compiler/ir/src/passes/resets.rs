//! Variables that are always set before they are read are no longer reset when their
//! callable is entered.

use super::effects::Graph;
use super::liveness::frames;
use crate::{Callee, Program};

pub(super) fn run(program: &mut Program) {
    let graph = Graph::new(program);
    for frame in frames(program, &graph) {
        let live = frame.analyse(program, &graph, false);
        let locals = match frame.callee {
            Callee::Parser(id) => &mut program.parsers[id.index()].locals,
            Callee::Control(id) => &mut program.controls[id.index()].locals,
            Callee::Action(id) => &mut program.actions[id.index()].locals,
            Callee::Function(id) => &mut program.functions[id.index()].locals,
        };
        locals.retain(|var| !frame.private.contains(var) || live.contains(var));
    }
}
