//! Words of the packet that other statements than `extract` write.

use super::calls::fixed_place;
use super::{Binding, Plan};
use stateplane_ir::{ActionId, Arg, Callee, Direction, Op, Param, Place, Program, Stmt, TableId};

/// Calls `see` for the places that a statement itself writes; of `extract` and of what
/// changes validity alone, none.
pub(crate) fn each_written<'p>(stmt: &'p Stmt, see: &mut dyn FnMut(&'p Place)) {
    match stmt {
        Stmt::Assign(place, _) => see(place),
        Stmt::Apply {
            hit, action_run, ..
        } => hit.iter().chain(action_run).for_each(see),
        Stmt::Call { args, result, .. } => {
            for arg in args {
                if let Arg::Out(place) | Arg::InOut(place) = arg {
                    see(place);
                }
            }
            result.iter().for_each(see);
        }
        Stmt::Op(op) => match op {
            Op::Lookahead { result }
            | Op::PacketLength { result }
            | Op::RegisterRead { result, .. }
            | Op::MeterExecute { result, .. }
            | Op::DirectMeterRead { result, .. }
            | Op::Hash { result, .. }
            | Op::Random { result, .. } => see(result),
            Op::UpdateChecksum { checksum, .. } => see(checksum),
            Op::MarkToDrop { standard_metadata } => see(standard_metadata),
            _ => {}
        },
        Stmt::PushFront(place, _) | Stmt::PopFront(place, _) => see(place),
        _ => {}
    }
}

/// Words that are written by other means than `extract` and being reset.
pub(super) fn written(plan: &Plan) -> Vec<bool> {
    let mut walk = Walk {
        plan,
        bases: plan.storage.bases.clone(),
        written: vec![false; plan.storage.words],
        seen: Vec::new(),
    };
    let program = &plan.program;
    let pipeline = &program.pipeline;
    walk.body(Callee::Parser(pipeline.parser));
    for control in [
        pipeline.verify_checksum,
        pipeline.ingress,
        pipeline.egress,
        pipeline.compute_checksum,
        pipeline.deparser,
    ] {
        walk.body(Callee::Control(control));
    }
    walk.written
}

struct Walk<'a> {
    plan: &'a Plan,
    bases: Vec<usize>,
    written: Vec<bool>,
    /// Callables that were looked at and look the same from everywhere.
    seen: Vec<Callee>,
}

impl<'a> Walk<'a> {
    fn program(&self) -> &'a Program {
        &self.plan.program
    }

    fn resolve(&self, place: &Place) -> Option<(usize, usize)> {
        fixed_place(self.program(), &self.plan.storage, &self.bases, place)
    }

    /// Notes a write to the longest fixed part of a place.
    fn write(&mut self, place: &Place) {
        let mut part = place.clone();
        while self.resolve(&part).is_none() && part.path.pop().is_some() {}
        if let Some((start, end)) = self.resolve(&part) {
            self.written[start..end].fill(true);
        }
    }

    fn body(&mut self, callee: Callee) {
        let program = self.program();
        if !self.plan.calls.inline_all {
            if self.seen.contains(&callee) {
                return;
            }
            self.seen.push(callee);
        }
        match callee {
            Callee::Action(id) => self.stmts(&program.actions[id.index()].body),
            Callee::Function(id) => self.stmts(&program.functions[id.index()].body),
            Callee::Control(id) => self.stmts(&program.controls[id.index()].body),
            Callee::Parser(id) => {
                let parser = &program.parsers[id.index()];
                self.stmts(&parser.init);
                for state in &parser.states {
                    self.stmts(&state.body);
                }
            }
        }
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        let mut inner: Vec<&Stmt> = Vec::new();
        super::each_within(stmts, &mut |stmt| inner.push(stmt));
        for stmt in inner {
            match stmt {
                Stmt::Call {
                    callee,
                    args,
                    result,
                } => {
                    self.call(*callee, args);
                    result.iter().for_each(|place| self.write(place));
                }
                Stmt::Apply {
                    table,
                    hit,
                    action_run,
                } => {
                    self.apply(*table);
                    hit.iter()
                        .chain(action_run)
                        .for_each(|place| self.write(place));
                }
                other => {
                    let mut places = Vec::new();
                    each_written(other, &mut |place| places.push(place));
                    for place in places {
                        self.write(place);
                    }
                }
            }
        }
    }

    fn apply(&mut self, table: TableId) {
        for listed in &self.program().tables[table.index()].actions {
            self.action(listed.action, &listed.bound);
        }
    }

    fn action(&mut self, id: ActionId, bound: &'a [Arg]) {
        for arg in bound {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                self.write(place);
            }
        }
        let action = &self.program().actions[id.index()];
        let directed = action.params.iter();
        let directed = directed.filter(|param| param.direction != Direction::Data);
        for param in directed {
            self.write(&Place::var(param.var));
        }
        self.body(Callee::Action(id));
    }

    fn call(&mut self, callee: Callee, args: &'a [Arg]) {
        let params = params(self.program(), callee);
        let calls = &self.plan.calls;
        let bindings = calls.bindings(self.program(), callee, params, args, |place| {
            self.resolve(place)
        });
        let mut saved = Vec::new();
        for ((param, arg), binding) in params.iter().zip(args).zip(bindings) {
            match binding {
                Binding::Reference(at) => {
                    saved.push((param.var, self.bases[param.var.index()]));
                    self.bases[param.var.index()] = at;
                }
                Binding::Copy => {
                    self.write(&Place::var(param.var));
                    if let Arg::Out(place) | Arg::InOut(place) = arg {
                        self.write(place);
                    }
                }
            }
        }
        self.body(callee);
        for (var, base) in saved.into_iter().rev() {
            self.bases[var.index()] = base;
        }
    }
}

/// Parameters of a callable.
pub(crate) fn params(program: &Program, callee: Callee) -> &[Param] {
    match callee {
        Callee::Action(id) => &program.actions[id.index()].params,
        Callee::Function(id) => &program.functions[id.index()].params,
        Callee::Control(id) => &program.controls[id.index()].params,
        Callee::Parser(id) => &program.parsers[id.index()].params,
    }
}
