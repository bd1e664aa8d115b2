//! Calls.

use super::scope::{Binding, Scope};
use super::{Access, DEEPEST, Walk};
use crate::origin::{Leaf, Value, constant, leaf, made, unknown};
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{Argument, ControlDecl, Expr, ExprKind};
use std::rc::Rc;

/// Extern functions that have an effect besides their arguments: they copy, resend or cut packets,
/// or send to the control plane.
pub(crate) const EFFECTS: [&str; 9] = [
    "clone",
    "clone3",
    "clone_preserving_field_list",
    "resubmit",
    "resubmit_preserving_field_list",
    "recirculate",
    "recirculate_preserving_field_list",
    "digest",
    "truncate",
];

/// The argument for a parameter, by name or place.
fn argument<'t>(args: &'t [Argument], name: &str, at: usize) -> Option<&'t Expr> {
    let named = args
        .iter()
        .find(|arg| arg.name.as_ref().is_some_and(|own| own.as_str() == name));
    let arg = named.or_else(|| args.get(at).filter(|arg| arg.name.is_none()))?;
    arg.value.as_ref()
}

impl<'t> Walk<'t> {
    pub(super) fn call(
        &mut self,
        callee: &'t Expr,
        args: &'t [Argument],
        span: Span,
        scope: &Rc<Scope<'t>>,
    ) -> Value {
        let statement = self.statement.take();
        match &callee.kind {
            ExprKind::Member { base, member } => {
                self.method(base, member.as_str(), args, (span, statement), scope)
            }
            ExprKind::Name(path) => match scope.find(path.name.as_str()) {
                Some(Binding::Action(action)) => {
                    let missing = unknown("an argument");
                    self.action(action, args, scope, &missing);
                    Value::new()
                }
                _ => self.function(path.name.as_str(), args, span, scope),
            },
            _ => self.arguments(args, scope),
        }
    }

    fn method(
        &mut self,
        base: &'t Expr,
        method: &str,
        args: &'t [Argument],
        at: (Span, Option<Span>),
        scope: &Rc<Scope<'t>>,
    ) -> Value {
        let (span, _) = at;
        if let ExprKind::Type(ty) = &base.kind
            && method == "apply"
            && let Some(control) =
                super::scope::type_name(ty).and_then(|name| self.declared.control(name))
        {
            self.apply(control, args, span, scope);
            return Value::new();
        }
        if let ExprKind::Name(path) = &base.kind {
            match scope.find(path.name.as_str()) {
                Some(Binding::Register(register)) => {
                    return self.register(register, method, args, at, scope);
                }
                Some(Binding::Table(table)) if method == "apply" => {
                    self.table(table, scope);
                    return unknown(&format!("whether table `{}` had an entry", table.name));
                }
                Some(Binding::Control(control)) if method == "apply" => {
                    self.apply(control, args, span, scope);
                    return Value::new();
                }
                Some(Binding::Other | Binding::Table(_) | Binding::Control(_)) => {
                    return self.extern_method(method, args, scope);
                }
                _ => {}
            }
        }
        let Some(way) = self.way(base, scope) else {
            return self.extern_method(method, args, scope);
        };
        match method {
            "isValid" => {
                let read = format!("{way}.$valid$");
                self.found.reads.entry(read).or_insert(span);
                return unknown(&format!("whether `{way}` is there"));
            }
            "setValid" => {
                self.found.restructures = true;
                self.found.validated.entry(way.clone()).or_insert(span);
            }
            "setInvalid" | "push_front" | "pop_front" => self.found.restructures = true,
            "emit" => {
                for arg in args {
                    if let Some(way) = arg.value.as_ref().and_then(|v| self.way(v, scope)) {
                        self.found.emitted.push(way);
                    }
                }
            }
            _ => {}
        }
        self.arguments(args, scope);
        Value::new()
    }

    /// Any method of an extern: what it may write is unknown afterwards.
    fn extern_method(
        &mut self,
        method: &str,
        args: &'t [Argument],
        scope: &Rc<Scope<'t>>,
    ) -> Value {
        self.arguments(args, scope);
        for arg in args {
            if let Some(value) = &arg.value {
                let what = unknown(&format!("what `{method}` gives"));
                self.spoil(value, scope, what);
            }
        }
        unknown(&format!("what `{method}` gives"))
    }

    fn register(
        &mut self,
        register: Span,
        method: &str,
        args: &'t [Argument],
        (span, statement): (Span, Option<Span>),
        scope: &Rc<Scope<'t>>,
    ) -> Value {
        let writes = method == "write";
        let (index, operand) = if writes {
            (argument(args, "index", 0), argument(args, "value", 1))
        } else {
            (argument(args, "index", 1), argument(args, "result", 0))
        };
        let (Some(index), Some(operand)) = (index, operand) else {
            return self.arguments(args, scope);
        };
        let Some(name) = self.replicated.get(&register) else {
            self.found.local.push((register, writes));
            self.eval(index, scope);
            if writes {
                self.eval(operand, scope);
            } else {
                let held = Leaf::State(self.text(register));
                self.spoil(operand, scope, leaf(held));
            }
            return Value::new();
        };
        let name = name.clone();
        let at = self.eval(index, scope);
        let value = if writes {
            self.eval(operand, scope)
        } else {
            Value::new()
        };
        for (control, call) in &self.stack {
            self.found.on_the_way.insert(control.clone());
            self.found.applies.extend(*call);
        }
        self.found.accesses.push(Access {
            register,
            writes,
            index: at,
            index_span: index.span,
            operand: operand.span,
            value,
            statement,
            span,
            in_free_action: self.in_free_action,
        });
        if !writes {
            self.spoil(operand, scope, leaf(Leaf::State(name)));
        }
        Value::new()
    }

    fn apply(
        &mut self,
        control: &'t ControlDecl,
        args: &'t [Argument],
        span: Span,
        scope: &Rc<Scope<'t>>,
    ) {
        if self.depth >= DEEPEST {
            self.found.exhausted = true;
            return;
        }
        let name = control.signature.name.to_string();
        let prefix = self.fresh(&name);
        let inner = Scope::new(prefix, Some(self.declared.globals()));
        let missing = unknown("an argument");
        self.bind_params(&control.signature.params, args, scope, &inner, &missing);
        self.depth += 1;
        self.stack.push((name, Some(span)));
        self.control(control, &inner);
        self.stack.pop();
        self.depth -= 1;
    }

    fn function(
        &mut self,
        name: &str,
        args: &'t [Argument],
        span: Span,
        scope: &Rc<Scope<'t>>,
    ) -> Value {
        if EFFECTS.contains(&name) {
            self.found.effects.insert(span, name.to_owned());
        }
        match name {
            "hash" => {
                let algorithm = argument(args, "algo", 1).map(|algo| self.text(algo.span));
                let algorithm = algorithm.unwrap_or_default();
                let mut value = |name, at| match argument(args, name, at) {
                    Some(arg) => self.eval(arg, scope),
                    None => Value::new(),
                };
                let values = [value("base", 2), value("data", 3), value("max", 4)];
                let hashed = if algorithm.ends_with(".random") {
                    unknown("a random number")
                } else {
                    made(&[&format!("hash({algorithm};"), ";", ";", ")"], &values)
                };
                if let Some(result) = argument(args, "result", 0) {
                    self.spoil(result, scope, hashed);
                }
                Value::new()
            }
            "random" => {
                if let Some(result) = argument(args, "result", 0) {
                    self.spoil(result, scope, unknown("a random number"));
                }
                Value::new()
            }
            "mark_to_drop" => {
                let first = args.first().and_then(|arg| arg.value.as_ref());
                if let Some(way) = first.and_then(|metadata| self.way(metadata, scope)) {
                    let dropped = constant("511");
                    self.set(&format!("{way}.egress_spec"), dropped, span);
                    let none = constant("0");
                    self.set(&format!("{way}.mcast_grp"), none, span);
                }
                Value::new()
            }
            _ => {
                let value = self.arguments(args, scope);
                match value.len() {
                    0 | 1 => made(&[&format!("{name}("), ")"], &[value]),
                    _ => unknown(&format!("what `{name}` gives")),
                }
            }
        }
    }
}
