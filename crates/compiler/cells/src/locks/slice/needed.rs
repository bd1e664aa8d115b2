//! Statements that a slice needs to compute its key: those that write what is read on the way to it.

use super::super::callables::{Name, body, frame, name};
use super::super::leaves::{Leaf, Leaves};
use super::super::state::Set;
use stateplane_ir::passes::{Part, children, children_mut, parts, places};
use stateplane_ir::{
    ActionId, Arg, Callee, ControlId, Expr, ExprKind, FunctionId, Op, Place, Program, Stmt, TableId,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// Takes out of a slice all statements that it does not need. `leaves` are those of the program
/// that was sliced: the variables are alike.
pub(super) fn keep_needed(slice: &mut Program, leaves: &Leaves<'_>) {
    let whole = slice.clone();
    let mut needs = Needs {
        program: &whole,
        leaves,
        needed: Set::default(),
        callees: BTreeSet::new(),
        changes: true,
    };
    while std::mem::take(&mut needs.changes) {
        needs.round();
    }
    let bodies = slice.controls.iter_mut().map(|it| &mut it.body);
    let bodies = bodies.chain(slice.actions.iter_mut().map(|it| &mut it.body));
    let bodies = bodies.chain(slice.functions.iter_mut().map(|it| &mut it.body));
    bodies.for_each(|body| needs.prune(body));
}

struct Needs<'a> {
    program: &'a Program,
    leaves: &'a Leaves<'a>,
    /// Leaves of which some value is read on the way to a key.
    needed: Set,
    /// Callables with a statement that is needed.
    callees: BTreeSet<Name>,
    changes: bool,
}

impl Needs<'_> {
    fn round(&mut self) {
        let program = self.program;
        let controls = (0..program.controls.len() as u32).map(|id| Callee::Control(ControlId(id)));
        let actions = (0..program.actions.len() as u32).map(|id| Callee::Action(ActionId(id)));
        let functions =
            (0..program.functions.len() as u32).map(|id| Callee::Function(FunctionId(id)));
        for callee in controls.chain(actions).chain(functions) {
            let needed = self.stmts(body(program, callee));
            if needed && self.callees.insert(name(callee)) {
                self.changes = true;
            }
        }
    }

    fn prune(&mut self, stmts: &mut Vec<Stmt>) {
        stmts.retain(|stmt| self.stmt(stmt));
        for stmt in stmts {
            for list in children_mut(stmt) {
                self.prune(list);
            }
        }
    }

    fn is_needed(&self, place: &Place) -> bool {
        let spot = self.leaves.spot(place);
        let mut leaves = spot.union.unwrap_or(spot.leaves);
        leaves.any(|leaf| self.needed.has(leaf))
    }

    fn need_leaves(&mut self, leaves: Range<Leaf>) {
        for leaf in leaves {
            if !self.needed.has(leaf) {
                self.needed.add(leaf);
                self.changes = true;
            }
        }
    }

    fn need_place(&mut self, place: &Place) {
        self.need_leaves(self.leaves.spot(place).leaves);
    }

    fn need(&mut self, value: &Expr) {
        places(value, &mut |place| self.need_place(place));
    }

    /// Needs those leaves of `from` that are written to needed leaves of `to`.
    fn need_copied(&mut self, to: Range<Leaf>, from: Range<Leaf>) {
        if to.len() == from.len() {
            for (to, from) in to.zip(from) {
                if self.needed.has(to) {
                    self.need_leaves(from..from + 1);
                }
            }
        } else if { to }.any(|leaf| self.needed.has(leaf)) {
            self.need_leaves(from);
        }
    }

    /// As [`need_copied`](Self::need_copied), of a value.
    fn need_value(&mut self, to: Range<Leaf>, value: &Expr) {
        match &value.kind {
            ExprKind::Read(place) => {
                let from = self.leaves.spot(place);
                self.need_copied(to, from.leaves);
                // The place may have indices.
                if !from.exact {
                    self.need(value);
                }
            }
            _ => {
                if { to }.any(|leaf| self.needed.has(leaf)) {
                    self.need(value);
                }
            }
        }
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        let mut needed = false;
        for stmt in stmts {
            needed |= self.stmt(stmt);
        }
        needed
    }

    /// True if a statement is needed; what it reads is then needed too.
    fn stmt(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Assign(place, value) => {
                let needed = self.is_needed(place);
                if needed {
                    let spot = self.leaves.spot(place);
                    self.need_value(spot.union.unwrap_or(spot.leaves), value);
                    self.need_indices(place);
                }
                needed
            }
            Stmt::If { condition, .. } => self.branch(stmt, condition),
            Stmt::Switch { value, .. } => self.branch(stmt, value),
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => self.apply(*table, [hit, action_run]),
            Stmt::Call {
                callee,
                args,
                result,
            } => self.call(*callee, args, result.as_ref()),
            Stmt::Op(op) => {
                let mut needed = matches!(op, Op::Clone { .. });
                parts(stmt, &mut |part| {
                    if let Part::Result(place) | Part::Update(place) = part {
                        needed |= self.is_needed(place);
                    }
                });
                if needed {
                    parts(stmt, &mut |part| {
                        if let Part::Value(value) = part {
                            self.need(value);
                        }
                    });
                }
                needed
            }
            Stmt::SetValid(place)
            | Stmt::SetInvalid(place)
            | Stmt::PushFront(place, _)
            | Stmt::PopFront(place, _) => self.is_needed(place),
            Stmt::Block(_) | Stmt::Atomic(_) | Stmt::Apart(_) | Stmt::Loop { .. } => {
                let mut needed = false;
                for list in children(stmt) {
                    needed |= self.stmts(list);
                }
                needed
            }
            Stmt::Break | Stmt::Continue | Stmt::Return | Stmt::Exit => true,
            Stmt::At(_) | Stmt::Unlikely => false,
        }
    }

    fn need_indices(&mut self, place: &Place) {
        let read = Expr {
            kind: ExprKind::Read(place.clone()),
            ty: self.leaves.spot(place).ty,
        };
        if !self.leaves.spot(place).exact {
            self.need(&read);
        }
    }

    fn branch(&mut self, stmt: &Stmt, condition: &Expr) -> bool {
        let mut needed = false;
        for way in children(stmt) {
            needed |= self.stmts(way);
        }
        if needed {
            self.need(condition);
        }
        needed
    }

    fn apply(&mut self, table: TableId, results: [&Option<Place>; 2]) -> bool {
        let program = self.program;
        let table = &program.tables[table.index()];
        let mut results = results.into_iter().flatten();
        let mut needed = results.any(|place| self.is_needed(place));
        for listed in &table.actions {
            needed |= self.call(Callee::Action(listed.action), &listed.bound, None);
        }
        if needed {
            for key in &table.keys {
                self.need(&key.expr);
            }
        }
        needed
    }

    fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) -> bool {
        let program = self.program;
        let (params, _) = frame(program, callee);
        if let (Callee::Function(id), Some(place)) = (callee, result)
            && let Some(var) = program.functions[id.index()].result
        {
            self.need_copied(self.leaves.spot(place).leaves, self.leaves.variable(var));
        }
        for (param, arg) in params.iter().zip(args) {
            let leaves = self.leaves.variable(param.var);
            match arg {
                Arg::In(value) => self.need_value(leaves, value),
                Arg::Out(place) => {
                    self.need_copied(self.leaves.spot(place).leaves, leaves);
                }
                Arg::InOut(place) => {
                    let there = self.leaves.spot(place).leaves;
                    self.need_copied(there.clone(), leaves.clone());
                    self.need_copied(leaves, there);
                }
            }
        }
        self.callees.contains(&name(callee))
    }
}
