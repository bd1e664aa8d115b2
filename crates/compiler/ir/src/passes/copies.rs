//! Reads of a variable become reads of the place or constant that was assigned to it, or,
//! if it is the only read, the computation itself. The assignment is then often dead.
//!
//! The known facts at each statement are equations `variable = expression`. A write to either side
//! ends one. Where paths join, those equations hold that hold on all of them.

use super::effects::{Graph, called};
use super::walk::{
    Part, PartMut, bodies, children, children_mut, indices, indices_mut, may_fault, operands,
    operands_mut, parts, parts_mut, places,
};
use crate::{
    Callee, Expr, ExprKind, Param, Place, Program, Projection, Stmt, Transition, Type, VarId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Operations in an expression that is moved to where it is used.
const MAX_SIZE: usize = 8;

type Known = BTreeMap<VarId, Expr>;

pub(super) fn run(program: &mut Program) {
    let graph = Graph::new(program);
    let reads = reads(program);
    let types = program.clone();
    let copies = Copies {
        graph: &graph,
        program: &types,
        reads: &reads,
    };
    bodies(program, &mut |body| {
        copies.stmts(body, Known::new());
    });
    for parser in &mut program.parsers {
        for state in &mut parser.states {
            // `return` goes on with the transition.
            if let Transition::Select { keys, .. } = &mut state.transition
                && !returns(&state.body)
                && let Some(known) = copies.stmts(&mut state.body, Known::new())
            {
                keys.iter_mut().for_each(|key| substitute(key, &known));
            }
        }
    }
}

fn returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| {
        matches!(stmt, Stmt::Return) || children(stmt).into_iter().any(|list| returns(list))
    })
}

/// Number of reads of each variable in the text of the program.
fn reads(program: &mut Program) -> Vec<u32> {
    let mut counts = vec![0_u32; program.vars.len()];
    let mut count = |var: VarId| counts[var.index()] += 1;
    for parser in &program.parsers {
        parser.params.iter().for_each(|param| count(param.var));
    }
    for control in &program.controls {
        control.params.iter().for_each(|param| count(param.var));
    }
    for action in &program.actions {
        action.params.iter().for_each(|param| count(param.var));
    }
    for function in &program.functions {
        function.params.iter().for_each(|param| count(param.var));
        // The result is read where there is none.
        function.result.into_iter().for_each(&mut count);
    }
    bodies(program, &mut |body| count_stmts(body, &mut count));
    super::walk::other_exprs_mut(program, &mut |expr| {
        places(expr, &mut |place| count(place.var));
    });
    for table in &program.tables {
        for arg in table.actions.iter().flat_map(|listed| &listed.bound) {
            if let crate::Arg::InOut(place) | crate::Arg::Out(place) = arg {
                count(place.var);
            }
        }
    }
    counts
}

fn count_stmts(stmts: &[Stmt], count: &mut dyn FnMut(VarId)) {
    for stmt in stmts {
        parts(stmt, &mut |part| {
            let mut expr = |expr| places(expr, &mut |place: &Place| count(place.var));
            match part {
                Part::Value(value) => expr(value),
                Part::Result(place) => indices(place, &mut expr),
                Part::Look(place) | Part::Update(place) => {
                    indices(place, &mut expr);
                    count(place.var);
                }
            }
        });
        for list in children(stmt) {
            count_stmts(list, count);
        }
    }
}

struct Copies<'a> {
    graph: &'a Graph,
    /// Types of variables and their members.
    program: &'a Program,
    reads: &'a [u32],
}

impl Copies<'_> {
    /// Rewrites statements; what is known behind them, unless they never go on.
    fn stmts(&self, stmts: &mut [Stmt], mut known: Known) -> Option<Known> {
        for stmt in stmts {
            known = self.stmt(stmt, known)?;
        }
        Some(known)
    }

    fn stmt(&self, stmt: &mut Stmt, mut known: Known) -> Option<Known> {
        if let Stmt::Call { callee, .. } = stmt {
            // Each argument is copied in before the next is computed.
            let written: BTreeSet<VarId> = self.params(*callee).iter().map(|p| p.var).collect();
            known.retain(|_, value| {
                let mut sound = true;
                places(value, &mut |place| sound &= !written.contains(&place.var));
                sound
            });
        }
        parts_mut(stmt, &mut |part| match part {
            PartMut::Value(value) => substitute(value, &known),
            PartMut::Look(place) => {
                indices_mut(place, &mut |index| substitute(index, &known));
                redirect(place, &known);
            }
            PartMut::Result(place) | PartMut::Update(place) => {
                indices_mut(place, &mut |index| substitute(index, &known));
            }
        });
        match stmt {
            Stmt::Return | Stmt::Exit | Stmt::Break | Stmt::Continue => return None,
            Stmt::If { .. }
            | Stmt::Switch { .. }
            | Stmt::Block(_)
            | Stmt::Atomic(_)
            | Stmt::Apart(_) => {
                let ways: Vec<_> = children_mut(stmt)
                    .into_iter()
                    .map(|list| self.stmts(list, known.clone()))
                    .collect();
                return join(ways.into_iter().flatten());
            }
            Stmt::Loop { .. } => {
                self.forget(stmt, &mut known);
                // A round would compute again what was computed once.
                known.retain(|_, value| is_copy(value));
                for list in children_mut(stmt) {
                    self.stmts(list, known.clone());
                }
                return Some(known);
            }
            _ => {}
        }
        self.forget(stmt, &mut known);
        if let Stmt::Assign(place, value) = stmt
            && place.path.is_empty()
            && self.is_kept(place.var, value)
        {
            known.insert(place.var, value.clone());
        }
        Some(known)
    }

    fn params(&self, callee: Callee) -> &[Param] {
        match callee {
            Callee::Action(id) => &self.program.actions[id.index()].params,
            Callee::Function(id) => &self.program.functions[id.index()].params,
            Callee::Control(id) => &self.program.controls[id.index()].params,
            Callee::Parser(id) => &self.program.parsers[id.index()].params,
        }
    }

    /// True if a read of the variable may become the value that is assigned to it.
    fn is_kept(&self, var: VarId, value: &Expr) -> bool {
        let mut of_itself = false;
        places(value, &mut |place| of_itself |= place.var == var);
        if of_itself || may_fault(value) {
            return false;
        }
        match &value.kind {
            _ if is_copy(value) => true,
            ExprKind::Record(_) | ExprKind::Array(_) | ExprKind::Default => false,
            _ => self.reads[var.index()] == 1 && size(value) <= MAX_SIZE,
        }
    }

    /// Ends what a statement makes untrue.
    fn forget(&self, stmt: &Stmt, known: &mut Known) {
        let mut written: BTreeSet<VarId> = BTreeSet::new();
        if let Some(node) = called(stmt) {
            written.extend(&self.graph.effects(node).writes);
        }
        for list in children(stmt) {
            for stmt in list {
                written.extend(self.graph.of_stmt(stmt).writes);
            }
        }
        if matches!(stmt, Stmt::Op(crate::Op::VerifyChecksum { .. })) {
            // It sets `checksum_error`, whichever variable that is in.
            let standard = Type::Struct(self.program.pipeline.standard_metadata);
            let vars = self.program.vars.iter().enumerate();
            let of_type = vars.filter(|(_, var)| var.ty == standard);
            written.extend(of_type.map(|(index, _)| VarId(index as u32)));
        }
        let mut targets: Vec<&Place> = Vec::new();
        parts(stmt, &mut |part| match part {
            Part::Result(place) | Part::Update(place) => targets.push(place),
            Part::Value(_) | Part::Look(_) => {}
        });
        known.retain(|var, value| {
            if written.contains(var) || targets.iter().any(|place| place.var == *var) {
                return false;
            }
            let mut sound = true;
            places(value, &mut |place| {
                let overlaps = |target: &&Place| self.overlap(place, target);
                sound &= !written.contains(&place.var) && !targets.iter().any(overlaps);
            });
            sound
        });
    }

    /// True if a write to one place may change the other.
    fn overlap(&self, one: &Place, other: &Place) -> bool {
        if one.var != other.var {
            return false;
        }
        let mut ty = self.program.vars[one.var.index()].ty;
        for (a, b) in one.path.iter().zip(&other.path) {
            // Members of a union make each other invalid.
            let (Type::Struct(_) | Type::Header(_), Projection::Field(a), Projection::Field(b)) =
                (ty, a, b)
            else {
                return true;
            };
            if a != b {
                return false;
            }
            let step = Projection::Field(*a);
            match self.program.step_type(ty, &step) {
                Some(next) => ty = next,
                None => return true,
            }
        }
        true
    }
}

/// Operations and operands of an expression.
fn size(expr: &Expr) -> usize {
    let mut total = 1;
    operands(expr, &mut |value| total += size(value));
    total
}

/// A constant, or a read of a place that is always the same.
fn is_copy(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Const(_) => true,
        ExprKind::Read(place) => is_fixed(place),
        _ => false,
    }
}

fn is_fixed(place: &Place) -> bool {
    place
        .path
        .iter()
        .all(|step| matches!(step, Projection::Field(_) | Projection::Slice { .. }))
}

/// Facts known on all paths; `None` if there is no path.
fn join(mut ways: impl Iterator<Item = Known>) -> Option<Known> {
    let mut known = ways.next()?;
    for way in ways {
        known.retain(|var, value| way.get(var) == Some(value));
    }
    Some(known)
}

fn substitute(expr: &mut Expr, known: &Known) {
    if let ExprKind::Read(place) = &mut expr.kind {
        if place.path.is_empty()
            && let Some(value) = known.get(&place.var)
        {
            // Known expressions were themselves rewritten when they became known.
            *expr = value.clone();
            return;
        }
        redirect(place, known);
    } else if let ExprKind::IsValid(place) | ExprKind::LastIndex(place) = &mut expr.kind {
        redirect(place, known);
    }
    operands_mut(expr, &mut |value| substitute(value, known));
}

/// Makes a place in a variable one in the place that was copied to it.
fn redirect(place: &mut Place, known: &Known) {
    let Some(Expr {
        kind: ExprKind::Read(source),
        ..
    }) = known.get(&place.var)
    else {
        return;
    };
    let sliced = |place: &Place| matches!(place.path.last(), Some(Projection::Slice { .. }));
    if !is_fixed(source) || sliced(source) {
        return;
    }
    place.var = source.var;
    place.path.splice(0..0, source.path.iter().cloned());
}
