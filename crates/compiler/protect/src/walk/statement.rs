//! Statements.

use super::scope::{Binding, Scope};
use super::{DEEPEST, MOST_STEPS, Walk};
use crate::origin::{Leaf, Value, either, leaf, made, unknown};
use stateplane_syntax::tree::{
    ActionDecl, Argument, ControlDecl, ControlLocal, Direction, Expr, ExprKind, ForCollection,
    Parameter, Stmt, StmtKind, TableDecl, TablePropertyValue,
};
use std::rc::Rc;

impl<'t> Walk<'t> {
    /// Walks the body of a control whose parameters are bound in `scope`.
    pub(super) fn control(&mut self, control: &'t ControlDecl, scope: &Rc<Scope<'t>>) {
        for local in &control.locals {
            match local {
                ControlLocal::Const(constant) => {
                    let value = self.eval(&constant.value, scope);
                    scope.bind(&constant.name, Binding::Value(value));
                }
                ControlLocal::Variable(variable) => {
                    let value = variable.init.as_ref().map(|init| self.eval(init, scope));
                    let way = scope.variable(&variable.name);
                    if let Some(value) = value {
                        self.set(&way, value, variable.span);
                    }
                }
                ControlLocal::Instantiation(instance) => {
                    let binding = self.declared.instance(instance);
                    scope.bind(&instance.name, binding);
                }
                ControlLocal::Action(action) => scope.bind(&action.name, Binding::Action(action)),
                ControlLocal::Table(table) => scope.bind(&table.name, Binding::Table(table)),
            }
        }
        let before = self.dead;
        self.statements(&control.body.statements, scope);
        // `return` ends the control alone; what it left behind counts.
        self.dead = before;
    }

    /// Binds parameters to arguments; what has no argument gets `missing`.
    pub(super) fn bind_params(
        &mut self,
        params: &'t [Parameter],
        args: &'t [Argument],
        from: &Rc<Scope<'t>>,
        into: &Rc<Scope<'t>>,
        missing: &Value,
    ) {
        for (at, param) in params.iter().enumerate() {
            let named = args.iter().find(|arg| {
                arg.name
                    .as_ref()
                    .is_some_and(|name| name.name == param.name.name)
            });
            let arg = named.or_else(|| args.get(at).filter(|arg| arg.name.is_none()));
            let Some(value) = arg.and_then(|arg| arg.value.as_ref()) else {
                into.bind(&param.name, Binding::Value(missing.clone()));
                continue;
            };
            let binding = match self.way(value, from) {
                Some(way) if param.direction != Direction::None => Binding::Way(way),
                _ => Binding::Value(self.eval(value, from)),
            };
            into.bind(&param.name, binding);
        }
    }

    pub(super) fn statements(&mut self, statements: &'t [Stmt], scope: &Rc<Scope<'t>>) {
        for statement in statements {
            self.walk(statement, scope);
        }
    }

    fn inner(&mut self, scope: &Rc<Scope<'t>>) -> Rc<Scope<'t>> {
        Scope::new(self.fresh("block"), Some(Rc::clone(scope)))
    }

    fn walk(&mut self, statement: &'t Stmt, scope: &Rc<Scope<'t>>) {
        if self.dead {
            return;
        }
        self.steps += 1;
        if self.steps > MOST_STEPS || self.depth > DEEPEST {
            self.found.exhausted = true;
            return;
        }
        self.statement = None;
        match &statement.kind {
            StmtKind::Malformed | StmtKind::Empty => {}
            StmtKind::Assign {
                target, op, value, ..
            } => self.assign(target, op.is_some(), value, scope),
            StmtKind::Call(call) => {
                self.statement = Some(statement.span);
                self.eval(call, scope);
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.eval(condition, scope);
                let before = self.env.clone();
                let inner = self.inner(scope);
                self.walk(then, &inner);
                let (env, dead) = (std::mem::replace(&mut self.env, before), self.dead);
                self.dead = false;
                if let Some(otherwise) = otherwise {
                    let inner = self.inner(scope);
                    self.walk(otherwise, &inner);
                }
                self.join(env, dead);
            }
            StmtKind::Block(block) => {
                let inner = self.inner(scope);
                self.statements(&block.statements, &inner);
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.eval(value, scope);
                }
                self.dead = true;
            }
            StmtKind::Exit => {
                let exit = "exit".to_owned();
                self.found.effects.insert(statement.span, exit);
                self.dead = true;
            }
            StmtKind::Break | StmtKind::Continue => {}
            StmtKind::Switch { subject, cases } => {
                self.eval(subject, scope);
                let before = self.env.clone();
                let mut joined = (before.clone(), false);
                for case in cases {
                    let Some(body) = &case.body else { continue };
                    self.env = before.clone();
                    self.dead = false;
                    let inner = self.inner(scope);
                    self.statements(&body.statements, &inner);
                    self.join(joined.0, joined.1);
                    joined = (std::mem::take(&mut self.env), self.dead);
                }
                (self.env, self.dead) = joined;
            }
            StmtKind::For {
                init,
                condition,
                update,
                body,
                ..
            } => {
                let inner = self.inner(scope);
                self.statements(init, &inner);
                let again = std::slice::from_ref(&**body);
                self.repeated(|walk| {
                    walk.eval(condition, &inner);
                    walk.statements(again, &inner);
                    walk.statements(update, &inner);
                });
            }
            StmtKind::ForIn {
                variable,
                collection,
                body,
                ..
            } => {
                let inner = self.inner(scope);
                let way = inner.variable(&variable.name);
                match collection {
                    ForCollection::Elements(of) => {
                        self.eval(of, scope);
                    }
                    ForCollection::Range { low, high } => {
                        self.eval(low, scope);
                        self.eval(high, scope);
                    }
                }
                let rounds = unknown("the variable of a loop");
                self.set(&way, rounds, variable.span);
                let again = std::slice::from_ref(&**body);
                self.repeated(|walk| walk.statements(again, &inner));
            }
            StmtKind::Variable(variable) => {
                let value = variable.init.as_ref().map(|init| self.eval(init, scope));
                let way = scope.variable(&variable.name);
                self.set(&way, value.unwrap_or_default(), variable.span);
            }
            StmtKind::Const(constant) => {
                let value = self.eval(&constant.value, scope);
                scope.bind(&constant.name, Binding::Value(value));
            }
        }
    }

    /// Walks the round of a loop twice: what the first wrote is unknown to the second.
    fn repeated(&mut self, round: impl Fn(&mut Self)) {
        let before = self.env.clone();
        round(self);
        let changed: Vec<String> = self
            .env
            .iter()
            .filter(|(way, value)| before.get(*way) != Some(value))
            .map(|(way, _)| way.clone())
            .collect();
        self.dead = false;
        self.env = before.clone();
        for way in changed {
            self.env.insert(way, unknown("what a loop computes"));
        }
        round(self);
        self.join(before, false);
    }

    fn assign(&mut self, target: &'t Expr, compound: bool, value: &'t Expr, scope: &Rc<Scope<'t>>) {
        let mut value = self.eval(value, scope);
        let (place, part) = match &target.kind {
            ExprKind::Slice { base, .. } | ExprKind::PlusSlice { base, .. } => (&**base, true),
            _ => (target, false),
        };
        let Some(way) = self.way(place, scope) else {
            return;
        };
        if compound || part {
            let old = self.get(&way);
            value = made(&["(", ";", ")"], &[old, value]);
        }
        self.set(&way, value, target.span);
    }

    /// Runs an action; its parameters without arguments come from `entry`.
    pub(super) fn action(
        &mut self,
        action: &'t ActionDecl,
        args: &'t [Argument],
        from: &Rc<Scope<'t>>,
        entry: &Value,
    ) {
        let outer = match from.find(action.name.as_str()) {
            Some(Binding::Action(_)) => Rc::clone(from),
            _ => self.declared.globals(),
        };
        let free = matches!(
            self.declared.globals().find(action.name.as_str()),
            Some(Binding::Action(global)) if std::ptr::eq(global, action)
        );
        let prefix = self.fresh(action.name.as_str());
        let scope = Scope::new(prefix, Some(outer));
        self.bind_params(&action.params, args, from, &scope, entry);
        let was_free = std::mem::replace(&mut self.in_free_action, free);
        self.depth += 1;
        self.statements(&action.body.statements, &scope);
        self.depth -= 1;
        self.in_free_action = was_free;
        self.dead = false;
    }

    /// Looks a packet up in a table: any of its actions may run.
    pub(super) fn table(&mut self, table: &'t TableDecl, scope: &Rc<Scope<'t>>) {
        for property in &table.properties {
            if let TablePropertyValue::Key(elements) = &property.value {
                for element in elements {
                    self.eval(&element.expr, scope);
                }
            }
        }
        let before = self.env.clone();
        let mut joined = (before.clone(), false);
        let entry = leaf(Leaf::Entry(table.name.to_string()));
        for property in &table.properties {
            let TablePropertyValue::Actions(actions) = &property.value else {
                continue;
            };
            for listed in actions {
                let Some(Binding::Action(action)) = scope.find(listed.path.name.as_str()) else {
                    continue;
                };
                self.env = before.clone();
                self.dead = false;
                let args = listed.args.as_deref().unwrap_or_default();
                self.action(action, args, scope, &entry);
                self.join(joined.0, joined.1);
                joined = (std::mem::take(&mut self.env), self.dead);
            }
        }
        (self.env, self.dead) = joined;
    }

    /// The union of the values of all arguments.
    pub(super) fn arguments(&mut self, args: &'t [Argument], scope: &Rc<Scope<'t>>) -> Value {
        let mut all = Value::new();
        for arg in args {
            if let Some(value) = &arg.value {
                let value = self.eval(value, scope);
                all = either(all, &value);
            }
        }
        all
    }
}
