//! Follows values through parser and ingress: which branches and indices depend on more than the
//! frame and entries of tables.

use super::super::callables::{Name, body, frame, name};
use super::marks::{Mark, Marks};
use super::{Slicer, Way};
use stateplane_ir::passes::{Part, children, parts};
use stateplane_ir::{
    Arg, Callee, Direction, Op, Place, Projection, Stmt, TableAction, TableId, Type, VarId,
};
use std::collections::BTreeSet;

/// Field of the standard metadata that the clock fills.
const CLOCK: &str = "ingress_global_timestamp";

/// Fields that `mark_to_drop` writes.
const DROPPED: [&str; 2] = ["egress_spec", "mcast_grp"];

/// Statements after which a program is too large.
const MOST_STATEMENTS: u64 = 1 << 20;

/// A run over the ways that a slice with the present choices takes.
struct Follow<'s, 'p> {
    slicer: &'s mut Slicer<'p>,
    marks: Marks,
    /// True if the present statement is reached.
    live: bool,
    /// True in parsers, whose states are followed in no order.
    weak: bool,
    /// Marks where the present callable was left.
    returns: Vec<Marks>,
    statements: u64,
}

impl<'p> Slicer<'p> {
    /// Adds the choices that a slice with the present ones calls for; `None` if the program is too
    /// large.
    pub(super) fn follow(&mut self) -> Option<()> {
        let program = self.program;
        let mut follow = Follow {
            slicer: self,
            marks: Marks::default(),
            live: true,
            weak: true,
            returns: Vec::new(),
            statements: 0,
        };
        let ingress = &program.controls[program.pipeline.ingress.index()];
        let parser = &program.parsers[program.pipeline.parser.index()];
        let pairs = || parser.params.iter().zip(&ingress.params);
        pairs().for_each(|(param, _)| follow.start_clock(param.var));
        follow.parsers();
        for (from, to) in pairs() {
            let (from, to) = (Place::var(from.var), Place::var(to.var));
            follow.copy(&from, &to);
        }
        follow.weak = false;
        follow.reset(&ingress.locals);
        follow.stmts(&ingress.body);
        (follow.statements < MOST_STATEMENTS).then_some(())
    }
}

impl<'p> Follow<'_, 'p> {
    /// Marks the clock, if the variable is the standard metadata.
    fn start_clock(&mut self, var: VarId) {
        if let Some(place) = self.standard(&Place::var(var), CLOCK) {
            self.mark(&place, Mark::UNKNOWN);
        }
    }

    /// A field of the standard metadata.
    fn standard(&self, place: &Place, field: &str) -> Option<Place> {
        let program = self.slicer.program;
        let id = program.pipeline.standard_metadata;
        let fields = &program.structs[id.index()].fields;
        let at = fields.iter().position(|it| it.name == field)?;
        if self.slicer.leaves.spot(place).ty != Type::Struct(id) {
            return None;
        }
        let mut place = place.clone();
        place.path.push(Projection::Field(at as u32));
        Some(place)
    }

    /// Adds a mark to all leaves of a place.
    fn mark(&mut self, place: &Place, mark: Mark) {
        let spot = self.slicer.leaves.spot(place);
        for leaf in spot.union.unwrap_or(spot.leaves) {
            self.marks.add(leaf, mark);
        }
    }

    fn copy(&mut self, from: &Place, to: &Place) {
        let leaves = &self.slicer.leaves;
        let count = leaves.spot(to).leaves.len();
        let marks = self.marks.of_place(from, count, leaves);
        self.marks.write(to, &marks, self.weak, leaves);
    }

    fn reset(&mut self, vars: &[VarId]) {
        if self.weak {
            return;
        }
        for var in vars {
            for leaf in self.slicer.leaves.variable(*var) {
                self.marks.set(leaf, Mark::default());
            }
        }
    }

    fn of(&self, expr: &stateplane_ir::Expr) -> Mark {
        self.marks.of_expr(expr, &self.slicer.leaves)
    }

    /// Follows all states of all parsers until nothing changes.
    fn parsers(&mut self) {
        let program = self.slicer.program;
        loop {
            let before = self.marks.clone();
            for parser in &program.parsers {
                self.stmts(&parser.init);
                for state in &parser.states {
                    self.live = true;
                    self.stmts(&state.body);
                }
            }
            self.live = true;
            if before == self.marks {
                return;
            }
        }
    }

    fn stmts(&mut self, stmts: &'p [Stmt]) {
        for stmt in stmts {
            self.statements += 1;
            if !self.live || self.statements >= MOST_STATEMENTS {
                return;
            }
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'p Stmt) {
        match stmt {
            Stmt::If { condition, .. } => self.branch(stmt, condition),
            Stmt::Switch { value, .. } => self.branch(stmt, value),
            Stmt::Assign(place, value) => {
                let leaves = &self.slicer.leaves;
                let count = leaves.spot(place).leaves.len();
                let marks = self.marks.of_value(value, count, leaves);
                self.marks.write(place, &marks, self.weak, leaves);
            }
            Stmt::Apply { table, .. } => self.apply(stmt, *table),
            Stmt::Call {
                callee,
                args,
                result,
            } => self.call(*callee, args, result.as_ref()),
            Stmt::Op(op) => self.op(op, stmt),
            Stmt::PushFront(place, _) | Stmt::PopFront(place, _) => {
                let all = self.marks.of(self.slicer.leaves.spot(place).leaves);
                self.mark(place, all);
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => self.stmts(body),
            Stmt::Loop { .. } => self.leave_out(stmt),
            Stmt::Return => {
                self.returns.push(self.marks.clone());
                self.live = false;
            }
            Stmt::Exit | Stmt::Break | Stmt::Continue => self.live = false,
            Stmt::At(_) | Stmt::Unlikely | Stmt::SetValid(_) | Stmt::SetInvalid(_) => {}
        }
    }

    /// Follows the ways of a branch, or the one that the slice takes.
    fn branch(&mut self, stmt: &'p Stmt, condition: &stateplane_ir::Expr) {
        if self.of(condition).unknown && !self.weak {
            self.slicer.choices.unknown.insert(stmt);
        }
        match self.slicer.way(stmt) {
            Some(Way::Taken(way)) => return self.stmts(way),
            Some(Way::None) => return self.leave_out(stmt),
            None => {}
        }
        let before = self.marks.clone();
        let mut ends = Vec::new();
        for way in children(stmt) {
            self.marks = before.clone();
            self.live = true;
            self.stmts(way);
            if self.live {
                ends.push(std::mem::take(&mut self.marks));
            }
        }
        self.marks = before;
        self.meet(ends);
    }

    /// Goes on where the ends of several ways meet, if there are any.
    fn meet(&mut self, ends: Vec<Marks>) {
        self.live = !ends.is_empty();
        let mut ends = ends.into_iter();
        if let Some(first) = ends.next() {
            self.marks = first;
            ends.for_each(|end| self.marks.unite(&end));
        }
    }

    fn apply(&mut self, stmt: &'p Stmt, id: TableId) {
        let table = &self.slicer.program.tables[id.index()];
        let keys = table.keys.iter().map(|key| self.of(&key.expr));
        let mark = keys.fold(Mark::default(), Mark::or);
        if mark.unknown {
            self.slicer.choices.unknown.insert(stmt);
        }
        match (self.slicer.is_unknown(stmt), self.slicer.applied(id)) {
            (false, _) => {
                let before = self.marks.clone();
                let mut ends = Vec::new();
                for listed in &table.actions {
                    self.marks = before.clone();
                    self.live = true;
                    self.action(listed, mark);
                    if self.live {
                        ends.push(std::mem::take(&mut self.marks));
                    }
                }
                self.marks = before;
                self.meet(ends);
            }
            (true, Some(listed)) => self.action(listed, Mark::UNKNOWN),
            (true, None) => self.leave_out(stmt),
        }
        if let Stmt::Apply {
            hit, action_run, ..
        } = stmt
        {
            for place in hit.iter().chain(action_run) {
                self.mark(place, mark);
            }
        }
    }

    /// One of a table's actions, whose data have a mark.
    fn action(&mut self, listed: &'p TableAction, data: Mark) {
        let callee = Callee::Action(listed.action);
        let args = self.slicer.args(listed);
        self.give(callee, &args);
        let (params, _) = frame(self.slicer.program, callee);
        for param in params {
            if param.direction == Direction::Data {
                self.mark(&Place::var(param.var), data);
            }
        }
        self.run(callee);
        self.take_back(callee, &args, None);
    }

    fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        self.give(callee, args);
        self.run(callee);
        self.take_back(callee, args, result);
    }

    fn give(&mut self, callee: Callee, args: &[Arg]) {
        let (params, locals) = frame(self.slicer.program, callee);
        for (param, arg) in params.iter().zip(args) {
            let to = Place::var(param.var);
            match arg {
                Arg::In(value) => {
                    let leaves = &self.slicer.leaves;
                    let count = leaves.variable(param.var).len();
                    let marks = self.marks.of_value(value, count, leaves);
                    self.marks.write(&to, &marks, self.weak, leaves);
                }
                Arg::InOut(from) => self.copy(from, &to),
                Arg::Out(_) => self.reset(&[param.var]),
            }
        }
        self.reset(locals);
    }

    /// Follows a callable up to where all that leaves it meets.
    fn run(&mut self, callee: Callee) {
        let returns = std::mem::take(&mut self.returns);
        self.stmts(body(self.slicer.program, callee));
        let mut ends = std::mem::replace(&mut self.returns, returns);
        if self.live {
            ends.push(std::mem::take(&mut self.marks));
        }
        self.meet(ends);
    }

    fn take_back(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        if !self.live {
            return;
        }
        let program = self.slicer.program;
        let (params, _) = frame(program, callee);
        for (param, arg) in params.iter().zip(args) {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                self.copy(&Place::var(param.var), place);
            }
        }
        if let (Callee::Function(id), Some(place)) = (callee, result)
            && let Some(var) = program.functions[id.index()].result
        {
            self.copy(&Place::var(var), place);
        }
    }

    fn op(&mut self, op: &'p Op, stmt: &'p Stmt) {
        if let Some(index) = self.slicer.key(op) {
            let mark = self.of(index);
            if mark.bytes && !mark.unknown {
                // The slice tells the key and ends here.
                self.live = false;
                return;
            }
            self.slicer.choices.refused.insert(op);
        }
        let is_parsed = matches!(
            op,
            Op::Extract { .. } | Op::Lookahead { .. } | Op::Advance { .. } | Op::Verify { .. }
        );
        if !is_parsed && !self.slicer.stays(op) {
            return self.leave_out(stmt);
        }
        // All that it writes depends on all that it reads.
        let mut mark = match op {
            Op::Extract { .. } | Op::Lookahead { .. } => Mark::BYTES,
            _ => Mark::default(),
        };
        parts(stmt, &mut |part| {
            if let Part::Value(value) = part {
                mark = mark.or(self.of(value));
            }
        });
        parts(stmt, &mut |part| {
            if let Part::Result(place) | Part::Update(place) = part {
                self.mark(place, mark);
            }
        });
    }

    /// A statement that the slice leaves out leaves unknown what it would have written.
    fn leave_out(&mut self, stmt: &Stmt) {
        self.write_unknown(stmt, &mut BTreeSet::new());
    }

    fn write_unknown(&mut self, stmt: &Stmt, seen: &mut BTreeSet<Name>) {
        self.statements += 1;
        if self.statements >= MOST_STATEMENTS {
            return;
        }
        let program = self.slicer.program;
        match stmt {
            Stmt::Op(Op::MarkToDrop { standard_metadata }) => {
                for field in DROPPED {
                    if let Some(place) = self.standard(standard_metadata, field) {
                        self.mark(&place, Mark::UNKNOWN);
                    }
                }
            }
            Stmt::Call {
                callee,
                args,
                result,
            } => {
                self.run_unknown(*callee, args, seen);
                if let Some(place) = result {
                    self.mark(place, Mark::UNKNOWN);
                }
            }
            Stmt::Apply { table, .. } => {
                for listed in &program.tables[table.index()].actions {
                    self.run_unknown(Callee::Action(listed.action), &listed.bound, seen);
                }
                self.parts_unknown(stmt);
            }
            _ => self.parts_unknown(stmt),
        }
        for list in children(stmt) {
            for stmt in list {
                self.write_unknown(stmt, seen);
            }
        }
    }

    fn parts_unknown(&mut self, stmt: &Stmt) {
        parts(stmt, &mut |part| {
            if let Part::Result(place) | Part::Update(place) = part {
                self.mark(place, Mark::UNKNOWN);
            }
        });
    }

    /// Marks all that a callable writes as unknown, and the arguments that get it.
    fn run_unknown(&mut self, callee: Callee, args: &[Arg], seen: &mut BTreeSet<Name>) {
        let program = self.slicer.program;
        let (params, _) = frame(program, callee);
        // A parameter keeps no marks but those of what this run writes.
        let before = self.marks.clone();
        let vars: Vec<VarId> = params.iter().map(|param| param.var).collect();
        for var in &vars {
            for leaf in self.slicer.leaves.variable(*var) {
                self.marks.set(leaf, Mark::default());
            }
        }
        if seen.insert(name(callee)) {
            for stmt in body(program, callee) {
                self.write_unknown(stmt, seen);
            }
            seen.remove(&name(callee));
        }
        for (var, arg) in vars.iter().zip(args) {
            match arg {
                Arg::Out(place) => self.mark(place, Mark::UNKNOWN),
                Arg::InOut(place) => {
                    let leaves = &self.slicer.leaves;
                    let count = leaves.spot(place).leaves.len();
                    let marks = self.marks.of_place(&Place::var(*var), count, leaves);
                    self.marks.write(place, &marks, true, leaves);
                }
                Arg::In(_) => {}
            }
        }
        self.marks.unite(&before);
    }
}
