//! Actions and functions: parameters, bodies, specialisation.

use crate::annotation;
use crate::checker::{ActionInfo, Callable, CallableKind, Checker};
use crate::codes;
use crate::scope::{Entity, Param, Signature};
use crate::side_effect::SideEffect;
use crate::stmt::always_leaves;
use crate::types::Ty;
use crate::value::{Access, Instance, Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, Direction};
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// Declares parameters in the innermost scope and makes their variables. Packets
    /// have none. `data` says what a parameter without direction is.
    pub(crate) fn bind_params(
        &mut self,
        written: &'a [tree::Parameter],
        params: &[Param<'a>],
        owner: &str,
        data: ir::Direction,
    ) -> Vec<ir::Param> {
        let mut statics = std::mem::take(&mut self.statics).into_iter();
        let mut bound = Vec::new();
        for (ident, param) in written.iter().map(|param| &param.name).zip(params) {
            let kind = match &param.ty {
                Ty::Poison => ValueKind::Poison,
                ty if self.is_static(ty) && statics.len() > 0 => {
                    statics.next().map_or(ValueKind::Poison, |value| value.kind)
                }
                Ty::Extern(id, _) => self.object_param(*id, param.span),
                Ty::Block(..) => {
                    self.unsupported(
                        param.span,
                        "a parser or control as a parameter",
                        "hand it over as an argument of the constructor",
                    );
                    ValueKind::Poison
                }
                ty => match self.ir_type(&ty.clone(), param.span) {
                    Some(lowered) => {
                        let var = self.out.var(format!("{owner}.{}", param.name), lowered);
                        let direction = match param.direction {
                            Direction::None => data,
                            Direction::In => ir::Direction::In,
                            Direction::Out => ir::Direction::Out,
                            Direction::InOut => ir::Direction::InOut,
                        };
                        bound.push(ir::Param { var, direction });
                        ValueKind::Place(ir::Place::var(var), access_of(param.direction))
                    }
                    // Of a type parameter: what is made with it is thrown away, but for the
                    // access to it.
                    None if matches!(ty, Ty::Var(_)) => {
                        let var = self
                            .out
                            .var(format!("{owner}.{}", param.name), ir::Type::Bool);
                        ValueKind::Place(ir::Place::var(var), access_of(param.direction))
                    }
                    None => ValueKind::Poison,
                },
            };
            let value = Value {
                ty: param.ty.clone(),
                kind,
                span: param.span,
            };
            // A second parameter of the same name was reported with the signature.
            let taken = self
                .frames
                .last()
                .is_some_and(|frame| frame.contains_key(param.name));
            if !taken {
                self.declare(ident, Entity::Value(value));
                self.callable.params.push(ident.span);
            }
        }
        bound
    }

    fn object_param(&mut self, id: u32, span: Span) -> ValueKind {
        match self.types.extern_names[id as usize].as_str() {
            "packet_in" | "packet_out" => ValueKind::Instance(Instance::Packet),
            name if matches!(self.callable.kind, CallableKind::Action) => {
                self.report(
                    Diagnostic::error(
                        codes::NOT_A_RUNTIME_TYPE,
                        span,
                        format!("an action cannot have a parameter of type `{name}`"),
                    )
                    .with_help("objects are not data: name the object in the action"),
                );
                ValueKind::Poison
            }
            name => {
                let what = format!("an object of type `{name}` as a parameter");
                self.unsupported(
                    span,
                    &what,
                    "hand it over as an argument of the constructor",
                );
                ValueKind::Poison
            }
        }
    }

    /// Declares an action and checks its body.
    pub(crate) fn action(&mut self, decl: &'a tree::ActionDecl, is_global: bool) {
        let id = self.made_action(decl, is_global);
        self.declare(&decl.name, Entity::Action(id.0));
    }

    /// The action to call for a declared one: itself, or, if it writes the standard metadata
    /// without having them, one of its own for those of the present control.
    pub(crate) fn action_here(&mut self, id: u32, span: Span) -> ir::ActionId {
        let declared = ir::ActionId(id);
        let Some((decl, order)) = self.made.actions[id as usize].metadata_user else {
            return declared;
        };
        let Some(metadata) = self.standard_metadata_in_scope(span) else {
            return declared;
        };
        let key = (metadata.var, id);
        if let Some(made) = self.made.metadata_users.get(&key) {
            return *made;
        }
        let outer = self.metadata.replace(metadata);
        let callable = Callable {
            side_effects_allowed: self.callable.side_effects_allowed,
            ..Callable::new(CallableKind::Constant, String::new())
        };
        let (made, _) = self.in_callable(callable, |checker| {
            checker.at_top(order, |checker| checker.made_action(decl, true))
        });
        self.metadata = outer;
        self.made.metadata_users.insert(key, made);
        made
    }

    fn made_action(&mut self, decl: &'a tree::ActionDecl, is_global: bool) -> ir::ActionId {
        let params = self.resolve_params(&decl.params);
        let misplaced = params
            .iter()
            .skip_while(|param| param.direction != Direction::None)
            .find(|param| param.direction != Direction::None);
        if let Some(param) = misplaced {
            self.report(
                Diagnostic::error(
                    codes::INVALID_DIRECTION,
                    param.span,
                    format!(
                        "the parameter `{}` has a direction, but follows one without",
                        param.name
                    ),
                )
                .with_help("parameters without direction, the control plane's, come last"),
            );
        }
        if let Some(param) = params.iter().find(|param| param.optional) {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_ANNOTATION,
                    param.span,
                    "a parameter of an action is not `@optional`",
                )
                .with_help("remove the annotation: an entry gives all data of its action"),
            );
        }
        for param in &params {
            let scalar = !matches!(
                &param.ty,
                Ty::Struct(_) | Ty::Stack(..) | Ty::Tuple(_) | Ty::Varbit(_)
            );
            if param.direction == Direction::None && !scalar && !self.foreign {
                let shown = self.quote(&param.ty);
                self.report(
                    Diagnostic::error(
                        codes::INVALID_DIRECTION,
                        param.span,
                        format!("the data of an action are scalars, not values of type {shown}"),
                    )
                    .with_help("pass its members one by one, or give the parameter a direction"),
                );
            }
        }
        let name = self.full_name(&decl.name, &decl.annotations);
        if !is_global {
            self.claim_action(&name, decl.name.span, &params);
        }
        let mut callable = Callable::new(CallableKind::Action, name.clone());
        callable.side_effects_allowed = self.callable.side_effects_allowed;
        callable.lacks_metadata = is_global && self.metadata.is_none();
        let (bound, callable) = self.in_callable(callable, |checker| {
            checker.scoped(|checker| {
                let bound = checker.bind_params(&decl.params, &params, &name, ir::Direction::Data);
                checker.block(&decl.body);
                bound
            })
        });
        let annotations = self.kept(&decl.annotations);
        self.action_interface(decl, &params);
        self.out.actions.push(ir::Action {
            name,
            params: bound,
            locals: callable.locals,
            body: callable.block,
            annotations,
        });
        self.made.actions.push(Rc::new(ActionInfo {
            signature: Signature {
                name: decl.name.as_str(),
                span: decl.name.span,
                vars: Vec::new(),
                params,
                ret: Ty::Void,
            },
            metadata_user: callable.wants_metadata.then_some((decl, self.order)),
        }));
        let id = ir::ActionId(self.out.actions.len() as u32 - 1);
        self.keep_side_effects(ir::Callee::Action(id), callable.side_effects);
        id
    }

    /// The function of a declaration with type arguments, made at its first use.
    pub(crate) fn function_instance(
        &mut self,
        id: u32,
        type_args: Vec<Ty>,
        statics: Vec<Value>,
    ) -> Option<ir::FunctionId> {
        let key = (id, type_args, Self::static_key(&statics));
        if let Some(found) = self.made.functions.get(&key) {
            return Some(*found);
        }
        let info = self.functions[id as usize].clone();
        let decl = info.body?;
        let shown: Vec<String> = key.1.iter().map(|ty| self.types.show(ty)).collect();
        let name = if shown.is_empty() {
            decl.prototype.name.to_string()
        } else {
            format!("{}<{}>", decl.prototype.name, shown.join(", "))
        };
        let (function, side_effects) = self.deeper(decl.prototype.name.span, |checker| {
            checker.at_top(info.order, |checker| {
                checker.scoped(|checker| checker.function_body(decl, name, &key.1, statics))
            })
        })?;
        self.out.functions.push(function);
        let made = ir::FunctionId(self.out.functions.len() as u32 - 1);
        self.keep_side_effects(ir::Callee::Function(made), side_effects);
        self.made.functions.insert(key, made);
        Some(made)
    }

    fn function_body(
        &mut self,
        decl: &'a tree::FunctionDecl,
        name: String,
        type_args: &[Ty],
        statics: Vec<Value>,
    ) -> (ir::Function, Vec<SideEffect>) {
        for (param, ty) in decl.prototype.type_params.iter().zip(type_args) {
            self.declare(param, Entity::Type(ty.clone()));
        }
        let params = self.resolve_params(&decl.prototype.params);
        let ret = self.resolve(&decl.prototype.return_type);
        let result = match &ret {
            Ty::Void | Ty::Poison => None,
            _ => self
                .ir_type(&ret, decl.prototype.return_type.span)
                .map(|lowered| self.out.var(format!("{name}.$result"), lowered)),
        };
        if !matches!(ret, Ty::Void | Ty::Poison) && !always_leaves(&decl.body.statements) {
            let shown = self.quote(&ret);
            self.report(
                Diagnostic::error(
                    codes::MISSING_RETURN,
                    decl.prototype.name.span,
                    format!("`{}` may end without a result", decl.prototype.name),
                )
                .with_help(format!(
                    "end every path through it with `return` of a {shown}"
                )),
            );
        }
        let kind = CallableKind::Function(result, ret);
        let mut callable = Callable::new(kind, name.clone());
        callable.side_effects_allowed =
            annotation::find(&decl.annotations, ir::SIDE_EFFECTS_ALLOWED).is_some();
        let (params, callable) = self.in_callable(callable, |checker| {
            checker.statics = statics;
            let bound =
                checker.bind_params(&decl.prototype.params, &params, &name, ir::Direction::In);
            checker.block(&decl.body);
            bound
        });
        let function = ir::Function {
            name,
            params,
            locals: callable.locals,
            result,
            body: callable.block,
        };
        (function, callable.side_effects)
    }

    /// The control-plane name of something declared in the present callable.
    pub(crate) fn full_name(&self, name: &tree::Ident, annotations: &[tree::Annotation]) -> String {
        annotation::full_name(&self.callable.name, name.as_str(), annotations)
    }

    /// The annotations as the IR keeps them.
    pub(crate) fn kept(&mut self, annotations: &'a [tree::Annotation]) -> Vec<ir::Annotation> {
        for (position, written) in annotations.iter().enumerate() {
            let earlier = annotations[..position]
                .iter()
                .find(|other| other.name.name == written.name.name);
            if let Some(earlier) = earlier.filter(|earlier| {
                annotation::is_structured(earlier) || annotation::is_structured(written)
            }) {
                self.report(
                    Diagnostic::error(
                        codes::MISPLACED_ANNOTATION,
                        written.span,
                        format!("`@{}` stands twice", written.name),
                    )
                    .with_secondary(earlier.span, "it stands here, too")
                    .with_help("a structured annotation stands once: write all values in one"),
                );
            }
        }
        annotations
            .iter()
            .map(|written| self.kept_annotation(written))
            .collect()
    }

    /// Takes the control-plane name of an action. Actions that have one name and the same data
    /// are one to the control plane; reports if the data differ.
    fn claim_action(&mut self, name: &str, span: Span, params: &[Param<'a>]) {
        let data: Vec<Ty> = params
            .iter()
            .filter(|param| param.direction == Direction::None)
            .map(|param| param.ty.clone())
            .collect();
        match self.made.action_names.get(name) {
            Some((other, previous)) if *other != data => {
                let previous = *previous;
                self.report(
                    Diagnostic::error(
                        codes::DUPLICATE_CONTROL_PLANE_NAME,
                        span,
                        format!(
                            "two actions with different data have the control-plane name `{name}`"
                        ),
                    )
                    .with_secondary(previous, "the other one is declared here")
                    .with_help("give one another name with @name(\"…\")"),
                );
            }
            Some(_) => {}
            None => {
                self.made.action_names.insert(name.to_owned(), (data, span));
            }
        }
    }

    /// Takes a control-plane name; reports if another of its kind has it.
    pub(crate) fn claim_name(&mut self, kind: &'static str, name: &str, span: Span) {
        let key = (kind, name.to_owned());
        match self.made.names.get(&key).copied() {
            Some(previous) => self.report(
                Diagnostic::error(
                    codes::DUPLICATE_CONTROL_PLANE_NAME,
                    span,
                    format!("two {kind}s have the control-plane name `{name}`"),
                )
                .with_secondary(previous, "the other one is declared here")
                .with_help("give one another name with @name(\"…\")"),
            ),
            None => {
                self.made.names.insert(key, span);
            }
        }
    }
}

/// Access to a parameter of a direction.
fn access_of(direction: Direction) -> Access {
    match direction {
        Direction::None => Access::Directionless,
        Direction::In => Access::InParameter,
        Direction::Out | Direction::InOut => Access::Writable,
    }
}
