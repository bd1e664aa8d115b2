//! Tables, and calls of actions, controls and functions.

use stateplane_ir::{
    Action, ActionId, Arg, Callee, Direction, Expr, ExprKind, Param, Place, Stmt, TableId, VarId,
};

use super::super::store::path_of;
use super::super::value::Value;
use super::values::last_part;
use super::{Flow, Walk};

impl Walk<'_> {
    pub(super) fn apply(&mut self, id: TableId, results: [&Option<Place>; 2]) {
        let table = &self.program.tables[id.index()];
        let keys: Vec<Value> = table.keys.iter().map(|key| self.value(&key.expr)).collect();
        let symbols = keys.iter().map(|key| key.symbol).collect();
        let symbol = self
            .symbols
            .operation(format!("lookup {}", table.name), symbols);
        let found = keys
            .iter()
            .fold(Value::of(symbol), |sum, key| sum.with(key))
            .after("lookup", self.profile.lookup, &self.place);
        for place in results.into_iter().flatten() {
            self.assign(place, found.clone());
        }
        self.choose(&found, table.actions.len(), |walk, at| {
            let used = &table.actions[at];
            let action = &walk.program.actions[used.action.index()];
            walk.bind_data(&table.name, action, &found);
            let args: Vec<&Arg> = used.bound.iter().collect();
            walk.invoke(action_parts(action), &args, None);
            Flow::Next
        });
    }

    /// Action data come from the entry that was found.
    fn bind_data(&mut self, table: &str, action: &Action, found: &Value) {
        for param in &action.params {
            if param.direction == Direction::Data {
                let name = &self.program.vars[param.var.index()].name;
                let name = format!("{table}:{}", last_part(name));
                let symbol = self.symbols.input(name);
                let data = Value {
                    symbol,
                    ..found.clone()
                };
                self.store.set((param.var, Vec::new()), data);
            }
        }
    }

    pub(super) fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        let args: Vec<&Arg> = args.iter().collect();
        let program = self.program;
        match callee {
            Callee::Action(id) => {
                let action: &Action = &program.actions[ActionId::index(id)];
                self.invoke(action_parts(action), &args, None);
            }
            Callee::Control(id) => {
                let control = &program.controls[id.index()];
                self.invoke(
                    (&control.params, &control.locals, &control.body),
                    &args,
                    None,
                );
            }
            Callee::Function(id) => {
                let function = &program.functions[id.index()];
                let value = function.result.zip(result);
                self.invoke(
                    (&function.params, &function.locals, &function.body),
                    &args,
                    value,
                );
            }
            // Sub-parsers touch no register.
            Callee::Parser(_) => {}
        }
    }

    fn invoke(
        &mut self,
        (params, locals, body): (&[Param], &[VarId], &[Stmt]),
        args: &[&Arg],
        result: Option<(VarId, &Place)>,
    ) {
        for (param, arg) in params.iter().zip(args) {
            let value = match arg {
                Arg::In(Expr {
                    kind: ExprKind::Read(place),
                    ..
                }) if path_of(place).1 => {
                    self.copy(place, param.var);
                    continue;
                }
                Arg::In(value) => self.value(value),
                Arg::Out(_) => self.zero(),
                Arg::InOut(place) => {
                    self.copy(place, param.var);
                    continue;
                }
            };
            self.store.set((param.var, Vec::new()), value);
        }
        self.callable(locals, body);
        for (param, arg) in params.iter().zip(args) {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                self.copy_out(param.var, place);
            }
        }
        if let Some((var, place)) = result {
            self.copy_out(var, place);
        }
    }

    /// A parameter gets a place with all its parts.
    fn copy(&mut self, place: &Place, to: VarId) {
        let (at, whole) = path_of(place);
        let value = self.look(&at);
        let parts: Vec<(Vec<u32>, Value)> = self
            .store
            .within(&at)
            .map(|((_, path), value)| (path[at.1.len()..].to_vec(), value.clone()))
            .collect();
        self.store.set((to, Vec::new()), value);
        for (path, value) in parts.into_iter().filter(|_| whole) {
            self.store.set((to, path), value);
        }
    }

    fn copy_out(&mut self, from: VarId, place: &Place) {
        let (at, whole) = path_of(place);
        let value = self.look(&(from, Vec::new()));
        if !whole {
            return self.assign(place, value);
        }
        let parts: Vec<(Vec<u32>, Value)> = self
            .store
            .within(&(from, Vec::new()))
            .map(|((_, path), value)| ([at.1.as_slice(), path].concat(), value.clone()))
            .collect();
        self.store.set(at.clone(), value);
        for (path, value) in parts {
            self.store.set((at.0, path), value);
        }
    }
}

fn action_parts(action: &Action) -> (&[Param], &[VarId], &[Stmt]) {
    (&action.params, &action.locals, &action.body)
}
