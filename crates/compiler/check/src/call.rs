//! Calls: functions, actions, methods and `apply`.

use crate::arguments::CallArguments;
use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::scope::{Entity, FunctionInfo, Signature};
use crate::types::{Bindings, Ty};
use crate::value::{Instance, Value, ValueKind};
use stateplane_diagnostics::Span;
use stateplane_diagnostics::{Diagnostic, nearest};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExprKind, TypeKind};
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// The value of a call without result.
    pub(crate) fn void(&self, span: Span) -> Value {
        Value {
            ty: Ty::Void,
            kind: ValueKind::Void,
            span,
        }
    }

    /// Checks a call.
    pub(crate) fn call(
        &mut self,
        callee: &'a tree::Expr,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        match &callee.kind {
            ExprKind::Malformed => Value::poison(span),
            ExprKind::Name(path) => self.call_name(path, type_args, args, span),
            ExprKind::Member { base, member } => {
                self.call_member(base, member, type_args, args, span)
            }
            _ => {
                self.report(Diagnostic::error(
                    codes::NOT_CALLABLE,
                    callee.span,
                    "this cannot be called",
                ));
                Value::poison(span)
            }
        }
    }

    fn call_name(
        &mut self,
        path: &'a tree::Path,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let Some(symbol) = self.lookup(path) else {
            self.check_loose(args);
            return Value::poison(span);
        };
        match symbol.entity {
            Entity::Function(_) => {
                let candidates: Vec<(u32, Rc<Signature<'a>>)> = self
                    .overloads(path.name.as_str())
                    .into_iter()
                    .map(|id| (id, self.functions[id as usize].signature.clone()))
                    .collect();
                match self.choose(path.name.as_str(), candidates, args, span) {
                    Some(id) => self.call_function(id, type_args, args, span),
                    None => {
                        self.check_loose(args);
                        Value::poison(span)
                    }
                }
            }
            Entity::Action(id) => {
                if let Some(first) = type_args.first() {
                    self.report(Diagnostic::error(
                        codes::TYPE_ARGUMENT_COUNT,
                        first.span,
                        format!("the action `{path}` takes no type arguments"),
                    ));
                }
                self.call_action(id, args, span)
            }
            Entity::Broken => {
                self.check_loose(args);
                Value::poison(span)
            }
            Entity::Value(value) if value.is_poison() => Value::poison(span),
            other => {
                let noun = other.noun();
                let diagnostic = Diagnostic::error(
                    codes::NOT_CALLABLE,
                    path.span,
                    format!("`{path}` is {noun} and cannot be called"),
                )
                .with_secondary(symbol.span, "declared here");
                let applicable = matches!(
                    other,
                    Entity::Table(_)
                        | Entity::Value(Value {
                            kind: ValueKind::Instance(Instance::Control(_) | Instance::Parser(_)),
                            ..
                        })
                );
                self.report(if applicable {
                    diagnostic.with_help(format!("apply it: {path}.apply(…)"))
                } else {
                    diagnostic
                });
                Value::poison(span)
            }
        }
    }

    /// Checks arguments whose callee is not known, for their own errors.
    fn check_loose(&mut self, args: &'a [tree::Argument]) {
        for arg in args {
            if let Some(expr) = &arg.value {
                self.expr(expr);
            }
        }
    }

    /// Chooses among functions or methods of one name by number and names of arguments.
    pub(crate) fn choose(
        &mut self,
        name: &str,
        candidates: Vec<(u32, Rc<Signature<'a>>)>,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<u32> {
        if let [(only, _)] = candidates.as_slice() {
            return Some(*only);
        }
        let mut fitting = candidates
            .iter()
            .filter(|(_, signature)| Self::pair(&signature.params, args).is_ok());
        if let Some((id, first)) = fitting.next() {
            if let Some((_, second)) = fitting.next() {
                self.report(
                    Diagnostic::error(
                        codes::ARGUMENTS,
                        span,
                        format!("several variants of `{name}` take these arguments"),
                    )
                    .with_secondary(first.span, "this one")
                    .with_secondary(second.span, "and this one")
                    .with_help("name the arguments: parameter = value"),
                );
            }
            return Some(*id);
        }
        let mut diagnostic = Diagnostic::error(
            codes::ARGUMENTS,
            span,
            format!(
                "no variant of `{name}` takes these {} arguments",
                args.len()
            ),
        );
        for (_, signature) in &candidates {
            diagnostic = diagnostic.with_secondary(
                signature.span,
                format!("this one takes {}", signature.params.len()),
            );
        }
        self.report(diagnostic);
        None
    }

    /// Values of type parameters from written type arguments.
    pub(crate) fn written_bindings(
        &mut self,
        signature: &Signature<'a>,
        type_args: &'a [tree::Type],
        span: Span,
    ) -> Option<Bindings> {
        let mut bindings = Bindings::new();
        if type_args.is_empty() {
            return Some(bindings);
        }
        if type_args.len() != signature.vars.len() {
            self.report(
                Diagnostic::error(
                    codes::TYPE_ARGUMENT_COUNT,
                    span,
                    format!(
                        "`{}` takes {} type arguments, not {}",
                        signature.name,
                        signature.vars.len(),
                        type_args.len()
                    ),
                )
                .with_secondary(signature.span, "declared here"),
            );
            return None;
        }
        for (var, ty) in signature.vars.iter().zip(type_args) {
            if !matches!(ty.kind, TypeKind::DontCare) {
                let resolved = self.resolve(ty);
                if resolved == Ty::Poison {
                    return None;
                }
                bindings.insert(*var, resolved);
            }
        }
        Some(bindings)
    }

    /// Checks that all type parameters have a value; reports one without, unless an argument that
    /// would give it was reported already.
    pub(crate) fn all_bound(
        &mut self,
        signature: &Signature<'a>,
        bindings: &Bindings,
        span: Span,
    ) -> bool {
        let open = signature
            .vars
            .iter()
            .find(|var| !bindings.contains_key(var));
        if let Some(var) = open {
            let name = self.types.var_names[var.0 as usize].clone();
            self.report(
                Diagnostic::error(
                    codes::CANNOT_INFER,
                    span,
                    format!(
                        "the type `{name}` of `{}` cannot be inferred",
                        signature.name
                    ),
                )
                .with_help(format!("write it: {}<…>(…)", signature.name)),
            );
            return false;
        }
        !signature.vars.iter().any(|var| bindings[var] == Ty::Poison)
    }

    fn call_function(
        &mut self,
        id: u32,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let info = self.functions[id as usize].clone();
        let signature = info.signature.clone();
        let Some(known) = self.written_bindings(&signature, type_args, span) else {
            self.check_loose(args);
            return Value::poison(span);
        };
        let Some(arguments) = self.arguments(&signature, known, args, span) else {
            return Value::poison(span);
        };
        if !self.all_bound(&signature, &arguments.bindings, span) {
            return Value::poison(span);
        }
        let ret = self.types.substitute(&signature.ret, &arguments.bindings);
        match info.body {
            None => self.extern_function(&signature, arguments, ret, span),
            Some(_) => self.call_body(id, &info, arguments, ret, span),
        }
    }

    fn call_body(
        &mut self,
        id: u32,
        info: &FunctionInfo<'a>,
        arguments: CallArguments,
        ret: Ty,
        span: Span,
    ) -> Value {
        if matches!(self.callable.kind, CallableKind::Constant) {
            // The result is not a constant, which the caller reports.
            return self.temporary_value(&ret, span).1;
        }
        let type_args: Vec<Ty> = info
            .signature
            .vars
            .iter()
            .map(|var| arguments.bindings[var].clone())
            .collect();
        let Some(statics) = self.static_arguments(&info.signature.params, &arguments, span) else {
            return self.temporary_result(ret, span);
        };
        let function = self.function_instance(id, type_args, statics);
        let (result, value) = match ret {
            Ty::Void => (None, self.void(span)),
            _ => self.temporary_value(&ret, span),
        };
        if let Some(function) = function {
            let callee = ir::Callee::Function(function);
            self.emit_call(callee, &info.signature.params, arguments, result, span);
        }
        value
    }

    fn call_action(&mut self, id: u32, args: &'a [tree::Argument], span: Span) -> Value {
        let info = self.made.actions[id as usize].clone();
        if !matches!(
            self.callable.kind,
            CallableKind::Control | CallableKind::Action
        ) {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_CALL,
                    span,
                    format!("the action `{}` cannot be called here", info.signature.name),
                )
                .with_secondary(info.signature.span, "declared here")
                .with_help("only controls and other actions call actions"),
            );
            return Value::poison(span);
        }
        let Some(arguments) = self.arguments(&info.signature, Bindings::new(), args, span) else {
            return self.void(span);
        };
        let callee = ir::Callee::Action(self.action_here(id, span));
        self.emit_call(callee, &info.signature.params, arguments, None, span);
        self.void(span)
    }

    fn call_member(
        &mut self,
        base: &'a tree::Expr,
        member: &'a tree::Ident,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let name = member.as_str();
        match &base.kind {
            ExprKind::Type(ty) => return self.call_on_type(ty, member, args, span),
            ExprKind::Name(path) => {
                let table = match self.find(path).map(|symbol| &symbol.entity) {
                    Some(Entity::Table(table)) => Some(*table),
                    _ => None,
                };
                if let Some(table) = table {
                    if name == "apply" {
                        self.apply_table(table, args, span);
                        return self.void(span);
                    }
                    self.no_method("a table", member, &["apply"]);
                    return Value::poison(span);
                }
            }
            _ => {}
        }
        let value = self.expr(base);
        match (&value.ty, &value.kind) {
            (Ty::Poison, _) => {
                self.check_loose(args);
                Value::poison(span)
            }
            (
                _,
                ValueKind::Instance(
                    Instance::Control(_) | Instance::Parser(_) | Instance::Deferred(_),
                ),
            ) => {
                if name == "apply" {
                    self.apply_instance(&value, args, span)
                } else {
                    self.no_method("a parser or control", member, &["apply"]);
                    Value::poison(span)
                }
            }
            (Ty::Extern(id, class_args), _) => {
                let (id, class_args) = (*id, class_args.clone());
                self.call_method(value, id, &class_args, member, type_args, args, span)
            }
            (Ty::Block(..) | Ty::Body(..), _) => {
                // A constructor parameter of a block that is not instantiated, or an
                // instance beyond the limits.
                self.check_loose(args);
                self.void(span)
            }
            _ => self.call_builtin(value, member, args, span),
        }
    }

    /// Reports that there is no such method.
    pub(crate) fn no_method(&mut self, what: &str, member: &tree::Ident, known: &[&str]) {
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_METHOD,
            member.span,
            format!("{what} has no method `{member}`"),
        );
        let near = nearest(member.as_str(), known.iter().copied());
        self.report(match (near, known) {
            (Some(near), _) => diagnostic.with_help(format!("did you mean `{near}`?")),
            (None, [only]) => diagnostic.with_help(format!("it has only `{only}`")),
            (None, _) => diagnostic,
        });
    }

    fn call_on_type(
        &mut self,
        ty: &'a tree::Type,
        member: &'a tree::Ident,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let (path, type_args) = match &ty.kind {
            TypeKind::Named(path) => (Some(path), [].as_slice()),
            TypeKind::Specialized { base, args } => (Some(base), args.as_slice()),
            _ => (None, [].as_slice()),
        };
        if let Some(path) = path {
            let body = match self.find(path).map(|symbol| &symbol.entity) {
                Some(Entity::Body(body)) => Some(*body),
                _ => None,
            };
            if let Some(body) = body {
                if member.as_str() != "apply" {
                    self.no_method("a parser or control", member, &["apply"]);
                    return Value::poison(span);
                }
                let type_args = type_args.iter().map(|arg| self.resolve(arg)).collect();
                let instance = self.direct_instance(body, type_args, span);
                return self.apply_instance(&instance, args, span);
            }
        }
        let resolved = self.resolve(ty);
        if resolved == Ty::Poison {
            return Value::poison(span);
        }
        self.size_method(&resolved, member, span)
    }

    /// The instance of a parser or control that is applied by its type's name.
    fn direct_instance(&mut self, body: u32, type_args: Vec<Ty>, span: Span) -> Value {
        let key = (body, type_args);
        if let Some(found) = self.callable.direct.get(&key) {
            return found.clone();
        }
        let value = self.instantiate_body(body, key.1.clone(), &[], None, span);
        self.callable.direct.insert(key, value.clone());
        value
    }

    fn apply_instance(
        &mut self,
        instance: &Value,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        if let (ValueKind::Instance(Instance::Deferred(id)), Ty::Body(body, type_args)) =
            (&instance.kind, &instance.ty)
        {
            let (id, type_args) = (*id, type_args.clone());
            let signature = self.apply_signature(*body, &type_args);
            let Some(arguments) = self.arguments(&signature, Bindings::new(), args, span) else {
                return self.void(span);
            };
            let Some(statics) = self.static_arguments(&signature.params, &arguments, span) else {
                return self.void(span);
            };
            let made = self.specialised(id, statics, span);
            return self.apply_made(&made, arguments, span);
        }
        let signature = match instance.kind {
            ValueKind::Instance(Instance::Control(id)) => self.made.controls[id.index()].clone(),
            ValueKind::Instance(Instance::Parser(id)) => self.made.parsers[id.index()].clone(),
            _ => {
                self.check_loose(args);
                return self.void(span);
            }
        };
        match self.arguments(&signature, Bindings::new(), args, span) {
            Some(arguments) => self.apply_made(instance, arguments, span),
            None => self.void(span),
        }
    }

    /// Applies a parser or control to arguments.
    fn apply_made(&mut self, instance: &Value, arguments: CallArguments, span: Span) -> Value {
        let (signature, callee, keyword, allowed) = match instance.kind {
            ValueKind::Instance(Instance::Control(id)) => (
                self.made.controls[id.index()].clone(),
                ir::Callee::Control(id),
                "control",
                matches!(self.callable.kind, CallableKind::Control),
            ),
            ValueKind::Instance(Instance::Parser(id)) => (
                self.made.parsers[id.index()].clone(),
                ir::Callee::Parser(id),
                "parser",
                matches!(self.callable.kind, CallableKind::Parser),
            ),
            _ => return self.void(span),
        };
        if !allowed {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_CALL,
                    span,
                    format!("a {keyword} cannot be applied here"),
                )
                .with_secondary(signature.span, "declared here")
                .with_help(format!(
                    "a {keyword} is applied in the body of another {keyword}"
                )),
            );
            return self.void(span);
        }
        self.emit_call(callee, &signature.params, arguments, None, span);
        self.void(span)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one call expression"
    )]
    fn call_method(
        &mut self,
        object: Value,
        id: u32,
        class_args: &[Ty],
        member: &'a tree::Ident,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let info = self.externs[id as usize].clone();
        let candidates: Vec<(u32, Rc<Signature<'a>>)> = (0u32..)
            .zip(&info.methods)
            .filter(|(_, method)| method.name == member.as_str())
            .map(|(position, method)| (position, method.clone()))
            .collect();
        if candidates.is_empty() {
            let names: Vec<&str> = info.methods.iter().map(|method| method.name).collect();
            self.no_method(&format!("the extern `{}`", info.decl.name), member, &names);
            self.check_loose(args);
            return Value::poison(span);
        }
        let Some(chosen) = self.choose(member.as_str(), candidates, args, span) else {
            self.check_loose(args);
            return Value::poison(span);
        };
        let class: Bindings = info
            .vars
            .iter()
            .copied()
            .zip(class_args.iter().cloned())
            .collect();
        let method = info.methods[chosen as usize].clone();
        let signature = Signature {
            params: method
                .params
                .iter()
                .map(|param| {
                    let mut param = param.clone();
                    param.ty = self.types.substitute(&param.ty, &class);
                    param
                })
                .collect(),
            ret: self.types.substitute(&method.ret, &class),
            vars: method.vars.clone(),
            ..*method
        };
        let Some(known) = self.written_bindings(&signature, type_args, span) else {
            self.check_loose(args);
            return Value::poison(span);
        };
        let Some(arguments) = self.arguments(&signature, known, args, span) else {
            return Value::poison(span);
        };
        if !self.all_bound(&signature, &arguments.bindings, span) {
            return Value::poison(span);
        }
        let ret = self.types.substitute(&signature.ret, &arguments.bindings);
        let extern_name = info.decl.name.as_str();
        self.extern_method(extern_name, &object, &signature, arguments, ret, span)
    }
}
