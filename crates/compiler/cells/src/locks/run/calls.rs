//! Tables, and calls of actions, controls and functions.

use super::super::callables::{body, frame};
use super::Run;
use stateplane_ir::{Arg, Callee, Direction, Param, Place, Stmt, TableId, VarId};

impl<'p> Run<'p> {
    pub(super) fn apply(&mut self, id: TableId, results: [&Option<Place>; 2]) {
        let table = &self.program.tables[id.index()];
        for key in &table.keys {
            self.values(&key.expr);
        }
        // An entry's arguments are other ones each time that the table is looked up.
        self.choose(None, table.actions.len(), |run, at| {
            let used = &table.actions[at];
            let action = &run.program.actions[used.action.index()];
            for param in &action.params {
                if param.direction == Direction::Data {
                    run.give_data(&table.name, param.var);
                }
            }
            let args: Vec<&Arg> = used.bound.iter().collect();
            run.invoke((&action.params, &action.locals, &action.body), &args, None);
        });
        if self.live {
            for place in results.into_iter().flatten() {
                self.obscure(place, "?");
            }
        }
    }

    fn give_data(&mut self, table: &str, param: VarId) {
        let var = &self.program.vars[param.index()];
        let last = var.name.rsplit('.').next().unwrap_or(&var.name);
        let data = self.unknown(var.ty, &format!("{table}:{last}"));
        self.give(param, data);
    }

    fn give(&mut self, var: VarId, values: Vec<crate::symbols::Symbol>) {
        let leaves = self.leaves.variable(var);
        if leaves.len() != values.len() {
            return self.forget(leaves);
        }
        for (leaf, value) in leaves.zip(values) {
            self.set(leaf, value);
        }
    }

    pub(super) fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        let args: Vec<&Arg> = args.iter().collect();
        let program = self.program;
        if let Callee::Parser(_) = callee {
            // Parsers call parsers, and no control does.
            for arg in args {
                if let Arg::Out(place) | Arg::InOut(place) = arg {
                    self.obscure(place, "?");
                }
            }
            return;
        }
        let returned = match callee {
            Callee::Function(id) => program.functions[id.index()].result,
            _ => None,
        };
        if let Some(var) = returned {
            self.reset(&[var]);
        }
        let (params, locals) = frame(program, callee);
        let parts = (params, locals, body(program, callee));
        self.invoke(parts, &args, returned.zip(result));
    }

    fn invoke(
        &mut self,
        (params, locals, body): (&'p [Param], &'p [VarId], &'p [Stmt]),
        args: &[&Arg],
        result: Option<(VarId, &Place)>,
    ) {
        let mut given = Vec::new();
        for (param, arg) in params.iter().zip(args) {
            let values = match arg {
                Arg::In(value) => self.values(value),
                Arg::InOut(place) => self.read(place),
                Arg::Out(_) => self.zeros(self.program.vars[param.var.index()].ty),
            };
            given.push((param.var, values));
        }
        for (var, values) in given {
            self.give(var, values);
        }
        self.callable(locals, body);
        if !self.live {
            return;
        }
        let mut taken = Vec::new();
        for (param, arg) in params.iter().zip(args) {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                taken.push((place, self.read(&Place::var(param.var))));
            }
        }
        if let Some((var, place)) = result {
            taken.push((place, self.read(&Place::var(var))));
        }
        for (place, values) in taken {
            self.write(place, values);
        }
    }
}
