//! Instances: extern objects, parsers and controls, each made once for each place that
//! declares it.

use crate::annotation;
use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::scope::{BodyDecl, Entity, Param, Signature};
use crate::types::{Bindings, Ty, TypeVar};
use crate::value::{Instance, Known, Value, ValueKind};
use num_bigint::BigInt;
use num_traits::{One, ToPrimitive};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ControlLocal, ExprKind, TypeKind};
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
        if decl.members.is_some() {
            self.unsupported(
                decl.span,
                "an extern with abstract methods",
                "v1model has none",
            );
            return Value::poison(decl.name.span);
        }
        let name = self.full_name(&decl.name, &decl.annotations);
        let value = self.construct(
            &decl.ty,
            &decl.args,
            Some(name),
            &decl.annotations,
            decl.name.span,
        );
        Value {
            span: decl.name.span,
            ..value
        }
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
        let type_args: Vec<Ty> = type_args.iter().map(|arg| self.resolve(arg)).collect();
        match symbol.entity {
            Entity::Broken => Value::poison(span),
            Entity::Extern(id) => {
                self.extern_instance(id, type_args, args, name, annotations, span)
            }
            Entity::Type(Ty::Extern(id, args_of_alias)) => {
                self.extern_instance(id, args_of_alias.to_vec(), args, name, annotations, span)
            }
            Entity::Body(body) => self.instantiate_body(body, args, name, span),
            Entity::Package(_) => {
                self.unsupported(
                    span,
                    "a package within another",
                    "instantiate V1Switch as `main`",
                );
                Value::poison(span)
            }
            other => {
                let noun = other.noun();
                self.report(
                    Diagnostic::error(
                        codes::NOT_CONSTRUCTIBLE,
                        ty.span,
                        format!("`{path}` is a {noun}, of which no instance can be made"),
                    )
                    .with_secondary(symbol.span, "declared here"),
                );
                Value::poison(span)
            }
        }
    }

    fn not_constructible(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::error(
                codes::NOT_CONSTRUCTIBLE,
                span,
                format!("{what} has no constructor"),
            )
            .with_help("instances are made of externs, parsers, controls and packages"),
        );
    }

    fn extern_instance(
        &mut self,
        id: u32,
        type_args: Vec<Ty>,
        args: &'a [tree::Argument],
        name: Option<String>,
        annotations: &'a [tree::Annotation],
        span: Span,
    ) -> Value {
        let info = self.externs[id as usize].clone();
        let extern_name = info.decl.name.as_str();
        if type_args.len() != info.vars.len() {
            self.report(
                Diagnostic::error(
                    codes::TYPE_ARGUMENT_COUNT,
                    span,
                    format!(
                        "`{extern_name}` takes {} type arguments, not {}",
                        info.vars.len(),
                        type_args.len()
                    ),
                )
                .with_secondary(info.decl.name.span, "declared here"),
            );
            return Value::poison(span);
        }
        if type_args.contains(&Ty::Poison) {
            return Value::poison(span);
        }
        let candidates: Vec<(u32, Rc<Signature<'a>>)> =
            (0u32..).zip(info.constructors.iter().cloned()).collect();
        if candidates.is_empty() {
            self.not_constructible(span, &format!("`{extern_name}`"));
            return Value::poison(span);
        }
        let ty = Ty::Extern(id, type_args.clone().into());
        let bindings: Bindings = info
            .vars
            .iter()
            .copied()
            .zip(type_args.iter().cloned())
            .collect();
        let Some(chosen) = self.choose(extern_name, candidates, args, span) else {
            return Value::unknown(ty, span);
        };
        let constructor = info.constructors[chosen as usize].clone();
        let Some(values) = self.constructor_arguments(&constructor, &bindings, args, span) else {
            return Value::unknown(ty, span);
        };
        let name =
            name.unwrap_or_else(|| annotation::full_name(&self.callable.name, extern_name, &[]));
        let kind = self.extern_object(
            extern_name,
            &type_args,
            &values,
            name,
            annotations,
            info.decl.name.span,
            span,
        );
        Value { ty, kind, span }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one instantiation")]
    fn extern_object(
        &mut self,
        extern_name: &str,
        type_args: &[Ty],
        values: &[Value],
        name: String,
        annotations: &'a [tree::Annotation],
        declared: Span,
        span: Span,
    ) -> ValueKind {
        let size = |position: usize| {
            values
                .get(position)
                .map_or(Some(1), |value| match &value.kind {
                    ValueKind::Const(Known::Int(number)) => number.to_u64(),
                    _ => Some(1),
                })
                .unwrap_or(1)
        };
        let member = |checker: &Self, position: usize| {
            values
                .get(position)
                .and_then(|value| match (&value.ty, &value.kind) {
                    (Ty::Enum(id), ValueKind::Const(Known::Index(index))) => checker.types.enums
                        [*id as usize]
                        .members
                        .get(*index as usize)
                        .map(|(name, _)| name.clone()),
                    _ => None,
                })
                .unwrap_or_default()
        };
        let counted = |kind: &str| match kind {
            "bytes" => ir::CounterKind::Bytes,
            "packets_and_bytes" => ir::CounterKind::PacketsAndBytes,
            _ => ir::CounterKind::Packets,
        };
        match extern_name {
            "register" => {
                let Some(element) = type_args.first() else {
                    return ValueKind::Poison;
                };
                let Some(lowered) = self.ir_type(element, span) else {
                    return ValueKind::Poison;
                };
                self.claim_name("register", &name, span);
                let annotations = self.kept(annotations);
                self.out.registers.push(ir::Register {
                    name,
                    element: lowered,
                    size: size(0),
                    annotations,
                });
                let id = ir::RegisterId(self.out.registers.len() as u32 - 1);
                ValueKind::Instance(Instance::Register(id))
            }
            "counter" | "direct_counter" => {
                self.claim_name("counter", &name, span);
                let direct = extern_name == "direct_counter";
                let kind = counted(&member(self, usize::from(!direct)));
                self.out.counters.push(ir::Counter {
                    name,
                    kind,
                    size: if direct { 0 } else { size(0) },
                    table: None,
                });
                let id = ir::CounterId(self.out.counters.len() as u32 - 1);
                ValueKind::Instance(if direct {
                    Instance::DirectCounter(id)
                } else {
                    Instance::Counter(id)
                })
            }
            "meter" | "direct_meter" => {
                self.claim_name("meter", &name, span);
                let direct = extern_name == "direct_meter";
                let bytes = member(self, usize::from(!direct)) == "bytes";
                self.out.meters.push(ir::Meter {
                    name,
                    bytes,
                    size: if direct { 0 } else { size(0) },
                    table: None,
                });
                let id = ir::MeterId(self.out.meters.len() as u32 - 1);
                ValueKind::Instance(if direct {
                    Instance::DirectMeter(id)
                } else {
                    Instance::Meter(id)
                })
            }
            "action_profile" | "action_selector" => {
                self.unsupported(
                    span,
                    &format!("`{extern_name}`"),
                    "give the table's entries their actions directly",
                );
                ValueKind::Poison
            }
            "Checksum16" => {
                self.unsupported(
                    span,
                    "the deprecated `Checksum16`",
                    "use `verify_checksum` and `update_checksum`",
                );
                ValueKind::Poison
            }
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::UNKNOWN_EXTERN,
                        span,
                        format!("the extern `{extern_name}` is not one of v1model's"),
                    )
                    .with_secondary(declared, "declared here"),
                );
                ValueKind::Poison
            }
        }
    }

    /// The arguments of a constructor, in order of its parameters.
    fn constructor_arguments(
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
            (Ty::Body(body), Ty::Block(block, args)) => {
                let (body, block, args) = (*body, *block, args.clone());
                self.fits_block(body, block, &args, &[], &mut Bindings::new(), value.span);
                value
            }
            _ => self.coerce(value, ty),
        }
    }

    /// Makes an instance of a parser or control and checks its body.
    pub(crate) fn instantiate_body(
        &mut self,
        body: u32,
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
        let constructor = self.at_top(info.order, |checker| Signature {
            name: tree_signature.name.as_str(),
            span: tree_signature.name.span,
            vars: Vec::new(),
            params: checker.resolve_params(info.decl.constructor_params()),
            ret: Ty::Void,
        });
        let Some(values) = self.constructor_arguments(&constructor, &Bindings::new(), args, span)
        else {
            return Value::unknown(Ty::Body(body), span);
        };
        let name = name.unwrap_or_else(|| {
            annotation::full_name(
                &self.callable.name,
                tree_signature.name.as_str(),
                &tree_signature.annotations,
            )
        });
        self.body_instance(body, &constructor.params, values, name, span)
    }

    /// Checks a parser or control that nothing instantiates, with constructor
    /// parameters unknown. What is made is thrown away.
    pub(crate) fn check_uninstantiated(&mut self, body: u32) {
        let out = self.out.clone();
        let made = self.made.clone();
        let info = self.bodies[body as usize];
        let signature = info.decl.signature();
        let params = self.at_top(info.order, |checker| {
            checker.resolve_params(info.decl.constructor_params())
        });
        let values = params
            .iter()
            .map(|param| Value::unknown(param.ty.clone(), param.span))
            .collect();
        // A name that no other instance can have.
        let name = format!("<{}>", signature.name);
        self.body_instance(body, &params, values, name, signature.name.span);
        self.out = out;
        self.made = made;
    }

    fn body_instance(
        &mut self,
        body: u32,
        constructor_params: &[Param<'a>],
        values: Vec<Value>,
        name: String,
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
            return Value::unknown(Ty::Body(body), span);
        }
        let info = self.bodies[body as usize];
        let kind = self.deeper(span, |checker| {
            checker.at_top(info.order, |checker| {
                checker.scoped(|checker| {
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
                    match info.decl {
                        BodyDecl::Parser(decl) => checker.parser_instance(decl, signature, name),
                        BodyDecl::Control(decl) => checker.control_instance(decl, signature, name),
                    }
                })
            })
        });
        Value {
            ty: Ty::Body(body),
            kind: kind.unwrap_or(ValueKind::Poison),
            span,
        }
    }

    /// The parameters of `apply`, resolved in the present scope.
    pub(crate) fn body_signature(&mut self, decl: BodyDecl<'a>) -> Signature<'a> {
        let written = decl.signature();
        if let Some(first) = written.type_params.first() {
            self.unsupported(
                first.span,
                &format!("a generic {} with a body", decl.keyword()),
                "write it for the types that it is used with",
            );
        }
        let vars: Vec<TypeVar> = self.declare_type_params(&written.type_params);
        Signature {
            name: written.name.as_str(),
            span: written.name.span,
            vars,
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
        ValueKind::Instance(Instance::Parser(id))
    }

    fn control_instance(
        &mut self,
        decl: &'a tree::ControlDecl,
        signature: Signature<'a>,
        name: String,
    ) -> ValueKind {
        let callable = Callable::new(CallableKind::Control, name.clone());
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
        self.out.controls.push(ir::Control {
            name,
            params,
            locals: callable.locals,
            body: callable.block,
        });
        self.made.controls.push(Rc::new(signature));
        let id = ir::ControlId(self.out.controls.len() as u32 - 1);
        ValueKind::Instance(Instance::Control(id))
    }

    /// Whether the parameters of a parser or control are those of a parser or control
    /// type; finds the type's type arguments. Reports if not.
    pub(crate) fn fits_block(
        &mut self,
        body: u32,
        block: u32,
        args: &[Ty],
        vars: &[TypeVar],
        bindings: &mut Bindings,
        span: Span,
    ) -> bool {
        let info = self.bodies[body as usize];
        let signature = self.at_top(info.order, |checker| {
            checker.scoped(|checker| checker.body_signature(info.decl))
        });
        let wanted = self.blocks[block as usize].clone();
        let open: Bindings = wanted
            .signature
            .vars
            .iter()
            .copied()
            .zip(args.iter().cloned())
            .collect();
        let is_parser = matches!(info.decl, BodyDecl::Parser(_));
        if is_parser != wanted.is_parser {
            self.report(
                Diagnostic::error(
                    codes::BLOCK_PARAMETERS,
                    span,
                    format!(
                        "a {} stands where a `{}` is needed",
                        info.decl.keyword(),
                        wanted.signature.name
                    ),
                )
                .with_secondary(signature.span, "declared here"),
            );
            return false;
        }
        if signature.params.len() != wanted.signature.params.len() {
            self.report(
                Diagnostic::error(
                    codes::BLOCK_PARAMETERS,
                    span,
                    format!(
                        "`{}` has {} parameters, but a `{}` has {}",
                        signature.name,
                        signature.params.len(),
                        wanted.signature.name,
                        wanted.signature.params.len()
                    ),
                )
                .with_secondary(signature.span, "declared here")
                .with_secondary(wanted.signature.span, "the type is declared here"),
            );
            return false;
        }
        let mut fits = true;
        for (found, wanted_param) in signature.params.iter().zip(&wanted.signature.params) {
            let pattern = self.types.substitute(&wanted_param.ty, &open);
            let unified = self.types.unify(&pattern, &found.ty, vars, bindings);
            let expected = self.types.substitute(&pattern, bindings);
            let same = unified.is_ok() && expected == found.ty;
            let known = found.ty != Ty::Poison && expected != Ty::Poison;
            if found.direction != wanted_param.direction || (known && !same) {
                let expected = match unified {
                    Err((first, _)) => self.types.show(&first),
                    Ok(()) => self.types.show(&expected),
                };
                let direction = direction_word(wanted_param.direction);
                self.report(
                    Diagnostic::error(
                        codes::BLOCK_PARAMETERS,
                        found.span,
                        format!(
                            "the parameter `{}` of `{}` must be `{direction}{expected}`",
                            found.name, signature.name
                        ),
                    )
                    .with_secondary(
                        wanted_param.span,
                        format!("so says `{}`", wanted.signature.name),
                    )
                    .with_secondary(span, "instantiated here"),
                );
                fits = false;
            }
        }
        fits
    }

    /// A number for a table's property; 1 if it depends on an unknown.
    pub(crate) fn property_int(&mut self, expr: &'a tree::Expr, what: &str) -> BigInt {
        self.constant_int(expr, what).unwrap_or_else(BigInt::one)
    }
}

fn direction_word(direction: tree::Direction) -> &'static str {
    match direction {
        tree::Direction::None => "",
        tree::Direction::In => "in ",
        tree::Direction::Out => "out ",
        tree::Direction::InOut => "inout ",
    }
}
