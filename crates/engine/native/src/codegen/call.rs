//! Calls: copying in, running, copying out; or the callable in place of its call.

use super::place::Spot;
use super::{Frame, Gen};
use crate::plan::{Binding, fixed_place, params};
use cranelift_codegen::ir::{Block, InstBuilder};
use cranelift_frontend::{Switch, Variable};
use stateplane_ir::{Arg, Callee, Direction, Param, Place, Stmt, VarId};

/// A callable that is made once.
pub(super) struct Shared {
    callee: Callee,
    in_parser: bool,
    /// True if an atomic block is around the call.
    in_block: bool,
    entry: Block,
    /// Number of the call.
    caller: Variable,
    /// Exit blocks of each call.
    callers: Vec<Frame>,
    /// Exit blocks of the call itself, once its code is made.
    ends: Option<Frame>,
}

impl Gen<'_, '_> {
    /// Sets variables to their defaults.
    pub(super) fn reset(&mut self, vars: &[VarId]) {
        for var in vars {
            let spot = self.variable(*var);
            self.clear(&spot);
        }
    }

    fn locals(&self, callee: Callee) -> Vec<VarId> {
        let program = self.program();
        match callee {
            Callee::Action(id) => program.actions[id.index()].locals.clone(),
            Callee::Function(id) => {
                let function = &program.functions[id.index()];
                let locals = function.locals.iter().copied();
                locals.chain(function.result).collect()
            }
            Callee::Control(id) => program.controls[id.index()].locals.clone(),
            Callee::Parser(id) => program.parsers[id.index()].locals.clone(),
        }
    }

    /// Gives a parameter its argument; the place to copy out to is appended.
    pub(super) fn copy_in(&mut self, param: Param, arg: &Arg, out: &mut Vec<(Spot, Spot)>) {
        let inside = self.variable(param.var);
        if !self.live {
            if let Arg::InOut(place) | Arg::Out(place) = arg {
                out.extend(self.spot(place).map(|outside| (inside, outside)));
            }
            return;
        }
        match arg {
            Arg::In(value) => {
                let values = self.flatten(value);
                self.store_all(&inside, values);
            }
            Arg::InOut(place) => match self.spot(place) {
                Some(outside) => {
                    self.copy(&outside, &inside);
                    out.push((inside, outside));
                }
                None => self.clear(&inside),
            },
            Arg::Out(place) => {
                let outside = self.spot(place);
                self.clear(&inside);
                if let Some(outside) = outside {
                    out.push((inside, outside));
                }
            }
        }
    }

    fn copy_out(&mut self, out: &[(Spot, Spot)]) {
        for (inside, outside) in out {
            self.copy(inside, outside);
        }
    }

    /// Runs a callable with arguments.
    pub(super) fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        let program = self.program();
        let params = params(program, callee);
        let plan = self.plan;
        let bindings = plan.calls.bindings(program, callee, params, args, |place| {
            fixed_place(program, &plan.storage, &self.bases, place)
        });
        let mut out = Vec::new();
        let mut references = Vec::new();
        for ((param, arg), binding) in params.iter().zip(args).zip(bindings) {
            match binding {
                Binding::Copy => self.copy_in(*param, arg, &mut out),
                Binding::Reference(at) => references.push((*param, arg, at)),
            }
        }
        self.check_fault();
        let mut saved = Vec::new();
        for (param, arg, at) in references {
            saved.push((param.var, self.bases[param.var.index()]));
            self.bases[param.var.index()] = at;
            if self.live && matches!(arg, Arg::Out(_)) {
                let spot = self.variable(param.var);
                self.clear(&spot);
            }
        }
        self.run_callable(callee, &out);
        // What the result is copied from belongs to the callable.
        let value = match callee {
            Callee::Function(id) => program.functions[id.index()].result,
            _ => None,
        };
        let value = value.map(|var| self.variable(var));
        for (var, base) in saved.into_iter().rev() {
            self.bases[var.index()] = base;
        }
        if let (true, Some(place), Some(value)) = (self.live, result, value)
            && let Some(spot) = self.spot(place)
        {
            self.copy(&value, &spot);
        }
    }

    /// Runs an action of a table, whose action data are in place.
    pub(super) fn run_action(&mut self, id: stateplane_ir::ActionId, bound: &[Arg]) {
        let action = &self.program().actions[id.index()];
        let directed = action.params.iter();
        let directed = directed.filter(|param| param.direction != Direction::Data);
        let mut out = Vec::new();
        for (param, arg) in directed.zip(bound) {
            self.copy_in(*param, arg, &mut out);
        }
        self.run_callable(Callee::Action(id), &out);
    }

    /// Runs a callable whose parameters are in place, and copies out however it ends.
    fn run_callable(&mut self, callee: Callee, out: &[(Spot, Spot)]) {
        if !self.is_reached() {
            return;
        }
        let around = self.frame_of();
        let after = self.block();
        let depth = self.locks.depth;
        let inner = if out.is_empty() {
            Frame {
                after,
                depth,
                ..around
            }
        } else {
            Frame {
                after,
                exit: self.block(),
                reject: self.block(),
                depth,
            }
        };
        if self.inlines(callee) {
            if self.live {
                self.reset(&self.locals(callee));
            }
            let loops = std::mem::take(&mut self.loops);
            self.frames.push(inner);
            self.body(callee);
            self.frames.pop();
            self.loops = loops;
            self.jump(after);
        } else {
            self.call_shared(callee, inner);
        }
        if !out.is_empty() {
            for (block, onwards) in [(inner.exit, around.exit), (inner.reject, around.reject)] {
                if self.entered.contains(&block) {
                    self.enter(block);
                    self.copy_out(out);
                    self.jump(onwards);
                }
            }
        }
        if self.go_on(after) {
            self.copy_out(out);
        }
    }

    /// The statements of a callable.
    fn body(&mut self, callee: Callee) {
        let program = self.program();
        let stmts = match callee {
            Callee::Action(id) => &program.actions[id.index()].body,
            Callee::Function(id) => &program.functions[id.index()].body,
            Callee::Control(id) => &program.controls[id.index()].body,
            Callee::Parser(id) => return self.states(id),
        };
        // A return at the end leads past nothing.
        match stmts.as_slice() {
            [stmts @ .., Stmt::Return] | stmts => self.stmts(stmts),
        }
    }

    /// Jumps to a callable that is made once.
    fn call_shared(&mut self, callee: Callee, ends: Frame) {
        let (in_parser, in_block) = (self.in_parser, self.locks.depth > 0);
        let known = self.shared.iter().position(|shared| {
            shared.callee == callee && shared.in_parser == in_parser && shared.in_block == in_block
        });
        let index = known.unwrap_or_else(|| {
            let entry = self.block();
            let caller = self.b.declare_var(cranelift_codegen::ir::types::I32);
            self.shared.push(Shared {
                callee,
                in_parser,
                in_block,
                entry,
                caller,
                callers: Vec::new(),
                ends: None,
            });
            self.shared.len() - 1
        });
        let shared = &mut self.shared[index];
        let number = shared.callers.len() as i64;
        shared.callers.push(ends);
        let (caller, entry) = (shared.caller, shared.entry);
        let number = self
            .b
            .ins()
            .iconst(cranelift_codegen::ir::types::I32, number);
        self.b.def_var(caller, number);
        self.jump(entry);
        self.entered.extend([ends.after, ends.exit, ends.reject]);
    }

    /// Makes the callables that are made once, after the code that calls them.
    pub(super) fn finish_shared(&mut self) {
        let mut made = 0;
        while made < self.shared.len() {
            let (callee, entry) = (self.shared[made].callee, self.shared[made].entry);
            self.in_parser = self.shared[made].in_parser;
            self.locks.depth = u32::from(self.shared[made].in_block);
            let ends = Frame {
                after: self.block(),
                exit: self.block(),
                reject: self.block(),
                depth: self.locks.depth,
            };
            self.shared[made].ends = Some(ends);
            self.enter(entry);
            self.free_scratch();
            self.reset(&self.locals(callee));
            self.frames.push(ends);
            self.body(callee);
            self.frames.pop();
            self.jump(ends.after);
            made += 1;
        }
        for shared in std::mem::take(&mut self.shared) {
            let Some(ends) = shared.ends else { continue };
            for end in [ends.after, ends.exit, ends.reject] {
                if !self.entered.contains(&end) {
                    continue;
                }
                let onwards = |frame: &Frame| match end {
                    end if end == ends.after => frame.after,
                    end if end == ends.exit => frame.exit,
                    _ => frame.reject,
                };
                self.enter(end);
                let caller = self.b.use_var(shared.caller);
                let mut switch = Switch::new();
                for (number, frame) in shared.callers.iter().enumerate() {
                    switch.set_entry(number as u128, onwards(frame));
                }
                let first = onwards(&shared.callers[0]);
                switch.emit(&mut self.b, caller, first);
                self.live = false;
            }
        }
    }
}
