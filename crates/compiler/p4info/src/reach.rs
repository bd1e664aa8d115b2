//! Objects that packets can reach: the control plane sees no other tables and actions.

use stateplane_ir::{
    ActionId, Callee, ControlId, FunctionId, Op, ParserId, Program, Stmt, TableId,
};
use std::collections::BTreeSet;

/// Objects that packets can reach.
#[derive(Default)]
pub(crate) struct Reached {
    /// Tables applied.
    pub(crate) tables: BTreeSet<TableId>,
    /// Actions of these tables, and those that controls call directly; one called by
    /// other actions alone is part of them.
    pub(crate) actions: BTreeSet<ActionId>,
    /// Actions of these tables: others have no data for the control plane to give.
    pub(crate) in_tables: BTreeSet<ActionId>,
    /// Names of digests sent.
    pub(crate) digests: BTreeSet<String>,
    controls: BTreeSet<ControlId>,
    parsers: BTreeSet<ParserId>,
    functions: BTreeSet<FunctionId>,
    /// Actions whose statements have been visited.
    bodies: BTreeSet<ActionId>,
}

impl Reached {
    /// Objects that the pipeline of a program reaches.
    pub(crate) fn of(program: &Program) -> Reached {
        let mut reached = Reached::default();
        let pipeline = &program.pipeline;
        reached.parser(program, pipeline.parser);
        for control in [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ] {
            reached.control(program, control);
        }
        reached
    }

    /// Adds a control of the pipeline.
    pub(crate) fn control(&mut self, program: &Program, id: ControlId) {
        if self.controls.insert(id) {
            self.statements(program, &program.controls[id.index()].body, true);
        }
    }

    fn parser(&mut self, program: &Program, id: ParserId) {
        if self.parsers.insert(id) {
            let parser = &program.parsers[id.index()];
            self.statements(program, &parser.init, false);
            for state in &parser.states {
                self.statements(program, &state.body, false);
            }
        }
    }

    fn action(&mut self, program: &Program, id: ActionId) {
        if self.bodies.insert(id) {
            self.statements(program, &program.actions[id.index()].body, false);
        }
    }

    fn table(&mut self, program: &Program, id: TableId) {
        if self.tables.insert(id) {
            for listed in &program.tables[id.index()].actions {
                self.actions.insert(listed.action);
                self.in_tables.insert(listed.action);
                self.action(program, listed.action);
            }
        }
    }

    fn statements(&mut self, program: &Program, statements: &[Stmt], in_control: bool) {
        for statement in statements {
            match statement {
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.statements(program, then, in_control);
                    self.statements(program, otherwise, in_control);
                }
                Stmt::Switch { cases, default, .. } => {
                    for (_, body) in cases {
                        self.statements(program, body, in_control);
                    }
                    self.statements(program, default, in_control);
                }
                Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => {
                    self.statements(program, body, in_control);
                }
                Stmt::Loop { body, update } => {
                    self.statements(program, body, in_control);
                    self.statements(program, update, in_control);
                }
                Stmt::Apply { table, .. } => self.table(program, *table),
                Stmt::Call { callee, .. } => match callee {
                    Callee::Action(id) => {
                        let action = &program.actions[id.index()];
                        if action.is_introduced() {
                            self.statements(program, &action.body, in_control);
                            continue;
                        }
                        if in_control {
                            self.actions.insert(*id);
                        }
                        self.action(program, *id);
                    }
                    Callee::Function(id) => {
                        if self.functions.insert(*id) {
                            let body = &program.functions[id.index()].body;
                            self.statements(program, body, false);
                        }
                    }
                    Callee::Control(id) => self.control(program, *id),
                    Callee::Parser(id) => self.parser(program, *id),
                },
                Stmt::Op(Op::Digest { name, .. }) => {
                    self.digests.insert(name.clone());
                }
                _ => {}
            }
        }
    }
}
