//! Parsers, controls, actions and functions that nothing calls go, and then the variables
//! that nothing names. What is left is numbered anew.

use super::effects::Graph;
use super::walk::{PartMut, bodies, children_mut, indices_mut, operands_mut, parts_mut};
use crate::graph::Node;
use crate::{
    ActionId, Arg, Callee, ControlId, Expr, ExprKind, FunctionId, Param, ParserId, Place, Program,
    Stmt, TableId, Transition, VarId,
};

pub(super) fn run(program: &mut Program) {
    callables(program);
    variables(program);
}

/// New positions of what is kept.
struct Renumbering(Vec<Option<u32>>);

impl Renumbering {
    fn of(kept: impl Iterator<Item = bool>) -> Renumbering {
        let mut next = 0;
        let number = |keep: bool| {
            keep.then(|| {
                next += 1;
                next - 1
            })
        };
        Renumbering(kept.map(number).collect())
    }

    fn changes(&self) -> bool {
        self.0.iter().any(Option::is_none)
    }

    fn apply(&self, id: &mut u32) {
        if let Some(Some(new)) = self.0.get(*id as usize) {
            *id = *new;
        }
    }

    /// Drops what is not kept.
    fn retain<T>(&self, items: &mut Vec<T>) {
        let mut at = 0;
        items.retain(|_| {
            at += 1;
            self.0[at - 1].is_some()
        });
    }
}

fn callables(program: &mut Program) {
    let graph = Graph::new(program);
    let mut reached = graph.reached(None);
    // Entries may name the actions of tables, applied or not.
    for table in 0..program.tables.len() as u32 {
        graph.reach(Node::Table(TableId(table)), &mut reached);
    }
    let kept = |callee: Callee| reached[graph.vertex(Node::Call(callee))];
    let ids = |count: usize| 0..count as u32;
    let parsers = ids(program.parsers.len()).map(|id| kept(Callee::Parser(ParserId(id))));
    let parsers = Renumbering::of(parsers);
    let controls = ids(program.controls.len()).map(|id| kept(Callee::Control(ControlId(id))));
    let controls = Renumbering::of(controls);
    let actions = ids(program.actions.len()).map(|id| kept(Callee::Action(ActionId(id))));
    let actions = Renumbering::of(actions);
    let functions = ids(program.functions.len()).map(|id| kept(Callee::Function(FunctionId(id))));
    let functions = Renumbering::of(functions);
    if ![&parsers, &controls, &actions, &functions]
        .iter()
        .any(|kind| kind.changes())
    {
        return;
    }
    parsers.retain(&mut program.parsers);
    controls.retain(&mut program.controls);
    actions.retain(&mut program.actions);
    functions.retain(&mut program.functions);
    let pipeline = &mut program.pipeline;
    parsers.apply(&mut pipeline.parser.0);
    for block in [
        &mut pipeline.verify_checksum,
        &mut pipeline.ingress,
        &mut pipeline.egress,
        &mut pipeline.compute_checksum,
        &mut pipeline.deparser,
    ] {
        controls.apply(&mut block.0);
    }
    for listed in program
        .tables
        .iter_mut()
        .flat_map(|table| &mut table.actions)
    {
        actions.apply(&mut listed.action.0);
    }
    bodies(program, &mut |body| {
        calls(body, &mut |callee| match callee {
            Callee::Parser(id) => parsers.apply(&mut id.0),
            Callee::Control(id) => controls.apply(&mut id.0),
            Callee::Action(id) => actions.apply(&mut id.0),
            Callee::Function(id) => functions.apply(&mut id.0),
        });
    });
}

fn calls(stmts: &mut [Stmt], see: &mut dyn FnMut(&mut Callee)) {
    for stmt in stmts {
        if let Stmt::Call { callee, .. } = stmt {
            see(callee);
        }
        for list in children_mut(stmt) {
            calls(list, see);
        }
    }
}

fn variables(program: &mut Program) {
    let mut named = vec![false; program.vars.len()];
    each_var(program, &mut |var| named[var.index()] = true);
    let renumbering = Renumbering::of(named.into_iter());
    if !renumbering.changes() {
        return;
    }
    for_locals(program, &mut |locals| {
        locals.retain(|var| renumbering.0[var.index()].is_some());
        locals
            .iter_mut()
            .for_each(|var| renumbering.apply(&mut var.0));
    });
    each_var(program, &mut |var| renumbering.apply(&mut var.0));
    renumbering.retain(&mut program.vars);
}

fn for_locals(program: &mut Program, see: &mut dyn FnMut(&mut Vec<VarId>)) {
    let parsers = program.parsers.iter_mut().map(|e| &mut e.locals);
    let controls = program.controls.iter_mut().map(|e| &mut e.locals);
    let actions = program.actions.iter_mut().map(|e| &mut e.locals);
    let functions = program.functions.iter_mut().map(|e| &mut e.locals);
    let all = parsers.chain(controls).chain(actions).chain(functions);
    all.for_each(see);
}

/// Visits all names of variables but those in lists of locals.
fn each_var(program: &mut Program, see: &mut dyn FnMut(&mut VarId)) {
    let params = |params: &mut Vec<Param>, see: &mut dyn FnMut(&mut VarId)| {
        params.iter_mut().for_each(|param| see(&mut param.var));
    };
    for parser in &mut program.parsers {
        params(&mut parser.params, see);
        for state in &mut parser.states {
            if let Transition::Select { keys, .. } = &mut state.transition {
                keys.iter_mut().for_each(|key| in_expr(key, see));
            }
        }
    }
    for control in &mut program.controls {
        params(&mut control.params, see);
    }
    for action in &mut program.actions {
        params(&mut action.params, see);
    }
    for function in &mut program.functions {
        params(&mut function.params, see);
        function.result.iter_mut().for_each(&mut *see);
    }
    for table in &mut program.tables {
        for key in &mut table.keys {
            in_expr(&mut key.expr, see);
        }
        for arg in table
            .actions
            .iter_mut()
            .flat_map(|listed| &mut listed.bound)
        {
            match arg {
                Arg::In(value) => in_expr(value, see),
                Arg::Out(place) | Arg::InOut(place) => in_place(place, see),
            }
        }
    }
    bodies(program, &mut |body| in_stmts(body, see));
}

fn in_stmts(stmts: &mut [Stmt], see: &mut dyn FnMut(&mut VarId)) {
    for stmt in stmts {
        parts_mut(stmt, &mut |part| match part {
            PartMut::Value(value) => in_expr(value, see),
            PartMut::Look(place) | PartMut::Result(place) | PartMut::Update(place) => {
                in_place(place, see);
            }
        });
        for list in children_mut(stmt) {
            in_stmts(list, see);
        }
    }
}

fn in_expr(expr: &mut Expr, see: &mut dyn FnMut(&mut VarId)) {
    if let ExprKind::Read(place) | ExprKind::IsValid(place) | ExprKind::LastIndex(place) =
        &mut expr.kind
    {
        see(&mut place.var);
    }
    operands_mut(expr, &mut |value| in_expr(value, see));
}

fn in_place(place: &mut Place, see: &mut dyn FnMut(&mut VarId)) {
    see(&mut place.var);
    indices_mut(place, &mut |index| in_expr(index, see));
}
