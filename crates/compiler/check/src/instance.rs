//! Instances: extern objects, parsers and controls, each made once for each place that
//! declares it.

use crate::annotation;
use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::scope::{BodyDecl, Entity, Param, Signature};
use crate::specialise::Deferred;
use crate::types::{Bindings, Ty};
use crate::value::{Instance, Value, ValueKind};
use num_bigint::BigInt;
use num_traits::One;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ControlLocal, ExprKind, TypeKind};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Greatest number of parser and control instances of a program. Each instance of a
/// control makes those within it anew, so that few lines can ask for very many.
const MAX_INSTANCES: u32 = 4096;

impl<'a> Checker<'a> {
    /// Declares an instance among the locals of a parser or control.
    pub(crate) fn local_instance(&mut self, decl: &'a tree::Instantiation) {
        let value = self.named_instance(decl);
        self.declare(&decl.name, Entity::Value(value));
    }

    /// Makes the instance of a declaration.
    pub(crate) fn named_instance(&mut self, decl: &'a tree::Instantiation) -> Value {
        let name = self.full_name(&decl.name, &decl.annotations);
        let value = self.construct(
            &decl.ty,
            &decl.args,
            Some(name),
            &decl.annotations,
            decl.name.span,
        );
        let value = Value {
            span: decl.name.span,
            ..value
        };
        match &decl.members {
            Some(members) => self.object_members(&value, members),
            None => self.without_abstract(&value, decl.name.span),
        }
        value
    }

    /// Makes an instance of a type; without a name it has its type's.
    pub(crate) fn construct(
        &mut self,
        ty: &'a tree::Type,
        args: &'a [tree::Argument],
        name: Option<String>,
        annotations: &'a [tree::Annotation],
        span: Span,
    ) -> Value {
        let expected = self.expected.take();
        let (path, type_args) = match &ty.kind {
            TypeKind::Named(path) => (path, [].as_slice()),
            TypeKind::Specialized { base, args } => (base, args.as_slice()),
            TypeKind::Malformed => return Value::poison(span),
            _ => {
                self.not_constructible(ty.span, "this type");
                return Value::poison(span);
            }
        };
        let Some(symbol) = self.lookup(path) else {
            return Value::poison(span);
        };
        let written = type_args;
        // Type arguments that are left open are all inferred.
        let type_args: Vec<Ty> = match written {
            _ if matches!(symbol.entity, Entity::Package(_)) => Vec::new(),
            _ if written
                .iter()
                .any(|arg| matches!(arg.kind, TypeKind::DontCare)) =>
            {
                Vec::new()
            }
            _ => written.iter().map(|arg| self.resolve(arg)).collect(),
        };
        match symbol.entity {
            Entity::Broken => Value::poison(span),
            Entity::Extern(id) => {
                self.extern_instance(id, type_args, args, name, annotations, span)
            }
            Entity::Type(Ty::Extern(..)) if !type_args.is_empty() => {
                self.report(
                    Diagnostic::error(
                        codes::TYPE_ARGUMENT_COUNT,
                        ty.span,
                        format!("`{path}` takes no type arguments"),
                    )
                    .with_secondary(symbol.span, "declared here"),
                );
                Value::poison(span)
            }
            Entity::Type(Ty::Extern(id, args_of_alias)) => {
                self.extern_instance(id, args_of_alias.to_vec(), args, name, annotations, span)
            }
            Entity::Body(body) => {
                self.expected = expected;
                self.instantiate_body(body, type_args, args, name, span)
            }
            Entity::Package(_) if !matches!(self.callable.kind, CallableKind::Constant) => {
                self.report(
                    Diagnostic::error(
                        codes::MISPLACED_INSTANTIATION,
                        span,
                        "a package cannot be instantiated here",
                    )
                    .with_secondary(symbol.span, "declared here")
                    .with_help("packages are instantiated at the top level"),
                );
                Value::poison(span)
            }
            Entity::Package(id) if self.foreign => self.package_instance(id, written, args, span),
            // Only `main` is run, and V1Switch contains no package.
            Entity::Package(_) => Value::poison(span),
            other => {
                let noun = other.noun();
                self.report(
                    Diagnostic::error(
                        codes::NOT_CONSTRUCTIBLE,
                        ty.span,
                        format!("`{path}` is {noun}, of which no instance can be made"),
                    )
                    .with_secondary(symbol.span, "declared here"),
                );
                Value::poison(span)
            }
        }
    }

    pub(crate) fn not_constructible(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::error(
                codes::NOT_CONSTRUCTIBLE,
                span,
                format!("{what} has no constructor"),
            )
            .with_help("instances are made of externs, parsers, controls and packages"),
        );
    }

    /// The arguments of a constructor, in order of its parameters.
    pub(crate) fn constructor_arguments(
        &mut self,
        signature: &Signature<'a>,
        bindings: &Bindings,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<Vec<Value>> {
        let pairs = self.pair_or_report(
            signature.name,
            signature.span,
            &signature.params,
            args,
            span,
        )?;
        let mut values = Vec::new();
        for (param, pair) in signature.params.iter().zip(pairs) {
            let ty = self.types.substitute(&param.ty, bindings);
            let expr = pair
                .and_then(|position| args[position].value.as_ref())
                .or(param.default);
            values.push(match expr {
                Some(expr) => self.constructor_argument(expr, param, &ty),
                None => {
                    self.report(Diagnostic::error(
                        codes::MISPLACED_DONT_CARE,
                        span,
                        format!("the parameter `{}` needs a value", param.name),
                    ));
                    Value::unknown(ty, span)
                }
            });
        }
        Some(values)
    }

    fn constructor_argument(&mut self, expr: &'a tree::Expr, param: &Param<'a>, ty: &Ty) -> Value {
        if let ExprKind::Construct { ty: made, args } = &expr.kind {
            let name = annotation::full_name(&self.callable.name, param.name, &[]);
            let value = self.construct(made, args, Some(name), &[], expr.span);
            self.without_abstract(&value, expr.span);
            return self.object_of(value, ty);
        }
        let what = format!("the constructor argument `{}`", param.name);
        match self.constant(expr, &what) {
            Some(value) => self.object_of(value, ty),
            None => Value::unknown(ty.clone(), expr.span),
        }
    }

    fn object_of(&mut self, value: Value, ty: &Ty) -> Value {
        match (&value.ty, ty) {
            (Ty::Body(..), Ty::Block(block, args)) => {
                let (body, block, args) = (value.ty.clone(), *block, args.clone());
                self.fits_block(&body, block, &args, &[], &mut Bindings::new(), value.span);
                value
            }
            _ => self.coerce(value, ty),
        }
    }

    /// Makes an instance of a parser or control and checks its body.
    pub(crate) fn instantiate_body(
        &mut self,
        body: u32,
        type_args: Vec<Ty>,
        args: &'a [tree::Argument],
        name: Option<String>,
        span: Span,
    ) -> Value {
        let info = self.bodies[body as usize];
        let tree_signature = info.decl.signature();
        let is_parser = matches!(info.decl, BodyDecl::Parser(_));
        let fitting = match self.callable.kind {
            CallableKind::Parser => is_parser,
            CallableKind::Control => !is_parser,
            _ => true,
        };
        if !fitting {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_INSTANTIATION,
                    span,
                    format!("a {} cannot be instantiated here", info.decl.keyword()),
                )
                .with_secondary(tree_signature.name.span, "declared here")
                .with_help("parsers contain parsers, controls contain controls"),
            );
            return Value::poison(span);
        }
        let Some(type_args) = self.body_type_args(body, type_args, args, span) else {
            return Value::poison(span);
        };
        let constructor = self.constructor_signature(body, &type_args);
        let Some(values) = self.constructor_arguments(&constructor, &Bindings::new(), args, span)
        else {
            return Value::unknown(Ty::Body(body, type_args), span);
        };
        let name = name.unwrap_or_else(|| {
            annotation::full_name(
                &self.callable.name,
                tree_signature.name.as_str(),
                &tree_signature.annotations,
            )
        });
        let signature = self.apply_signature(body, &type_args);
        if self.has_static(&signature.params) {
            let deferred = Deferred {
                body,
                type_args,
                constructor: constructor.params,
                values,
                name,
                made: BTreeMap::new(),
            };
            return self.defer(deferred, span);
        }
        let params = constructor.params;
        self.body_instance(body, &type_args, &params, values, name, None, span)
    }

    /// Checks a parser or control that nothing instantiates, with constructor
    /// parameters unknown.
    pub(crate) fn check_uninstantiated(&mut self, body: u32) {
        let info = self.bodies[body as usize];
        let signature = info.decl.signature();
        let type_args: Vec<Ty> = signature
            .type_params
            .iter()
            .map(|param| Ty::Var(self.types.fresh_var(param.as_str())))
            .collect();
        let params = self.constructor_signature(body, &type_args).params;
        let apply = self.apply_signature(body, &type_args).params;
        let statics = self.unknown_statics(&apply);
        let values = params
            .iter()
            .map(|param| Value::unknown(param.ty.clone(), param.span))
            .collect();
        // A name that no other instance can have.
        let name = format!("<{}>", signature.name);
        let (args, span) = (Rc::from(type_args), signature.name.span);
        // Two that no program needs at once may well have one control-plane name.
        let names = std::mem::take(&mut self.made.names);
        self.body_instance(body, &args, &params, values, name, Some(statics), span);
        self.made.names = names;
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one instance")]
    pub(crate) fn body_instance(
        &mut self,
        body: u32,
        type_args: &Rc<[Ty]>,
        constructor_params: &[Param<'a>],
        values: Vec<Value>,
        name: String,
        statics: Option<Vec<Value>>,
        span: Span,
    ) -> Value {
        self.checked.insert(body);
        self.instances += 1;
        if self.instances > MAX_INSTANCES {
            if self.instances == MAX_INSTANCES + 1 {
                self.report(
                    Diagnostic::error(
                        codes::TOO_MANY_INSTANCES,
                        span,
                        format!("more than {MAX_INSTANCES} parsers and controls are instantiated"),
                    )
                    .with_help("apply one instance several times"),
                );
            }
            return Value::unknown(Ty::Body(body, type_args.clone()), span);
        }
        let info = self.bodies[body as usize];
        let kind = self.deeper(span, |checker| {
            checker.at_top(info.order, |checker| {
                checker.scoped(|checker| {
                    checker.declare_type_args(info.decl, type_args);
                    let written = info.decl.constructor_params();
                    for ((ident, param), value) in written
                        .iter()
                        .map(|param| &param.name)
                        .zip(constructor_params)
                        .zip(values)
                    {
                        let value = Value {
                            span: param.span,
                            ..value
                        };
                        checker.declare(ident, Entity::Value(value));
                    }
                    let signature = checker.body_signature(info.decl);
                    checker.statics = statics.unwrap_or_default();
                    match info.decl {
                        BodyDecl::Parser(decl) => checker.parser_instance(decl, signature, name),
                        BodyDecl::Control(decl) => checker.control_instance(decl, signature, name),
                    }
                })
            })
        });
        Value {
            ty: Ty::Body(body, type_args.clone()),
            kind: kind.unwrap_or(ValueKind::Poison),
            span,
        }
    }

    /// The parameters of `apply`, resolved in the present scope, which has the type
    /// parameters.
    pub(crate) fn body_signature(&mut self, decl: BodyDecl<'a>) -> Signature<'a> {
        let written = decl.signature();
        Signature {
            name: written.name.as_str(),
            span: written.name.span,
            vars: Vec::new(),
            params: self.resolve_params(&written.params),
            ret: Ty::Void,
        }
    }

    fn parser_instance(
        &mut self,
        decl: &'a tree::ParserDecl,
        signature: Signature<'a>,
        name: String,
    ) -> ValueKind {
        let callable = Callable::new(CallableKind::Parser, name.clone());
        let ((params, init, (states, start)), callable) = self.in_callable(callable, |checker| {
            let params = checker.bind_params(
                &decl.signature.params,
                &signature.params,
                &name,
                ir::Direction::In,
            );
            let (states, init) = checker.scoped(|checker| {
                let ((), init) = checker.nested(|checker| checker.parser_locals(&decl.locals));
                (checker.states(decl), init)
            });
            (params, init, states)
        });
        self.out.parsers.push(ir::Parser {
            name,
            params,
            locals: callable.locals,
            init,
            states,
            start,
        });
        self.made.parsers.push(Rc::new(signature));
        let id = ir::ParserId(self.out.parsers.len() as u32 - 1);
        self.keep_side_effects(ir::Callee::Parser(id), callable.side_effects);
        ValueKind::Instance(Instance::Parser(id))
    }

    fn control_instance(
        &mut self,
        decl: &'a tree::ControlDecl,
        signature: Signature<'a>,
        name: String,
    ) -> ValueKind {
        let mut callable = Callable::new(CallableKind::Control, name.clone());
        callable.side_effects_allowed =
            annotation::find(&decl.signature.annotations, ir::SIDE_EFFECTS_ALLOWED).is_some();
        let names = decl.locals.iter().map(|local| match local {
            ControlLocal::Const(decl) => &decl.name,
            ControlLocal::Variable(decl) => &decl.name,
            ControlLocal::Instantiation(decl) => &decl.name,
            ControlLocal::Action(decl) => &decl.name,
            ControlLocal::Table(decl) => &decl.name,
        });
        let names = names.map(|name| (name.as_str(), name.span)).collect();
        let outer = std::mem::replace(&mut self.later, names);
        let (params, callable) = self.in_callable(callable, |checker| {
            let params = checker.bind_params(
                &decl.signature.params,
                &signature.params,
                &name,
                ir::Direction::In,
            );
            checker.scoped(|checker| {
                for local in &decl.locals {
                    match local {
                        ControlLocal::Const(decl) => checker.constant_decl(decl),
                        ControlLocal::Variable(decl) => checker.variable(decl, false),
                        ControlLocal::Instantiation(decl) => checker.local_instance(decl),
                        ControlLocal::Action(decl) => checker.action(decl, false),
                        ControlLocal::Table(decl) => checker.table(decl),
                    }
                }
                checker.block(&decl.body);
            });
            params
        });
        self.later = outer;
        self.out.controls.push(ir::Control {
            name,
            params,
            locals: callable.locals,
            body: callable.block,
        });
        self.made.controls.push(Rc::new(signature));
        let id = ir::ControlId(self.out.controls.len() as u32 - 1);
        self.keep_side_effects(ir::Callee::Control(id), callable.side_effects);
        ValueKind::Instance(Instance::Control(id))
    }

    /// A number for a table's property; 1 if it depends on an unknown.
    pub(crate) fn property_int(&mut self, expr: &'a tree::Expr, what: &str) -> BigInt {
        self.constant_int(expr, what).unwrap_or_else(BigInt::one)
    }
}
