//! Arguments: which parameter each is for, inference of type arguments, conversion.

use crate::checker::Checker;
use crate::codes;
use crate::effects::argument_has_effects;
use crate::scope::{Param, Signature};
use crate::types::{Bindings, Ty};
use crate::value::{Access, Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, Direction};

/// An argument, converted to its parameter's type.
#[derive(Clone, Debug)]
pub(crate) enum Passed {
    /// Of an `in` or directionless parameter.
    In(Value),
    /// Of an `out` parameter; `None` where its place could not be made.
    Out(Option<ir::Place>),
    /// Of an `inout` parameter.
    InOut(Option<ir::Place>),
    /// Of an `inout` parameter, before a later argument with side effects: the value that
    /// the place had in its turn, and the place.
    Kept(Value, Option<ir::Place>),
    /// No argument for an optional parameter.
    Absent(Ty),
}

/// The arguments of a call.
pub(crate) struct CallArguments {
    /// Passed arguments, in order of the parameters.
    pub passed: Vec<Passed>,
    /// Positions of the parameters that are given arguments, in order of the arguments.
    pub order: Vec<usize>,
    /// Values of type parameters.
    pub bindings: Bindings,
}

/// An argument in the IR.
#[derive(Clone, Debug)]
pub(crate) struct IrArg {
    /// Position of its parameter.
    pub position: usize,
    pub arg: ir::Arg,
    /// The value that an `inout` argument is copied in from; `None`: its place.
    pub kept: Option<ir::Expr>,
}

impl<'a> Checker<'a> {
    /// Argument of each parameter. `Err` says why they do not fit.
    pub(crate) fn pair(
        params: &[Param<'a>],
        args: &'a [tree::Argument],
    ) -> Result<Vec<Option<usize>>, (Option<Span>, String)> {
        let mut pairs = vec![None; params.len()];
        for (position, arg) in args.iter().enumerate() {
            let slot = match &arg.name {
                None if position < params.len() => position,
                None => {
                    return Err((
                        Some(arg.span),
                        format!(
                            "{} arguments are given, but there are {} parameters",
                            args.len(),
                            params.len()
                        ),
                    ));
                }
                Some(name) => match params.iter().position(|param| param.name == name.as_str()) {
                    Some(slot) => slot,
                    None => {
                        return Err((
                            Some(name.span),
                            format!("there is no parameter called `{name}`"),
                        ));
                    }
                },
            };
            if pairs[slot].is_some() {
                return Err((
                    Some(arg.span),
                    format!("the parameter `{}` gets two arguments", params[slot].name),
                ));
            }
            pairs[slot] = Some(position);
        }
        let missing = params
            .iter()
            .zip(&pairs)
            .find(|(param, pair)| pair.is_none() && param.default.is_none() && !param.optional);
        match missing {
            Some((param, _)) => Err((
                None,
                format!("the parameter `{}` gets no argument", param.name),
            )),
            None => Ok(pairs),
        }
    }

    /// Pairs arguments with parameters, or reports.
    pub(crate) fn pair_or_report(
        &mut self,
        name: &str,
        declared: Span,
        params: &[Param<'a>],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<Vec<Option<usize>>> {
        match Self::pair(params, args) {
            Ok(pairs) => Some(pairs),
            Err((place, why)) => {
                self.report(
                    Diagnostic::error(codes::ARGUMENTS, place.unwrap_or(span), why)
                        .with_secondary(declared, format!("`{name}` is declared here")),
                );
                None
            }
        }
    }

    /// Checks the arguments of a call in the order of writing.
    pub(crate) fn arguments(
        &mut self,
        signature: &Signature<'a>,
        known: Bindings,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<CallArguments> {
        let pairs = self.pair_or_report(
            signature.name,
            signature.span,
            &signature.params,
            args,
            span,
        )?;
        let (mut values, mut kept) = self.evaluate_arguments(signature, &pairs, args);
        // What is written is not inferred.
        let written = known.clone();
        let mut bindings = known;
        for (position, param) in signature.params.iter().enumerate() {
            let Some(value) = &values[position] else {
                continue;
            };
            let pattern = self.types.substitute(&param.ty, &written);
            let unified = self
                .types
                .unify(&pattern, &value.ty, &signature.vars, &mut bindings);
            if let Err((first, second)) = unified {
                let (first, second) = (self.quote(&first), self.quote(&second));
                let place = value.span;
                self.report(
                    Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        place,
                        format!("expected {first}, found {second}"),
                    )
                    .with_note(format!(
                        "an earlier argument of `{}` fixes the type {first}",
                        signature.name
                    )),
                );
                return None;
            }
        }
        for binding in bindings.values_mut() {
            *binding = closed(binding);
        }
        let mut passed = Vec::with_capacity(signature.params.len());
        for (position, param) in signature.params.iter().enumerate() {
            let ty = self.types.substitute(&param.ty, &bindings);
            let given = pairs[position].map(|position| args[position].span);
            passed.push(match values[position].take() {
                Some(value) => match (self.pass(param, value, &ty), kept[position].take()) {
                    (Passed::InOut(place), Some(kept)) => Passed::Kept(kept, place),
                    (passed, _) => passed,
                },
                None if given.is_some() => self.discard(param, &ty, given.unwrap_or(span)),
                None => Passed::Absent(ty),
            });
        }
        let mut order: Vec<usize> = (0..pairs.len()).filter(|i| pairs[*i].is_some()).collect();
        order.sort_by_key(|position| pairs[*position]);
        Some(CallArguments {
            passed,
            order,
            bindings,
        })
    }

    /// The arguments' values, for each parameter. Beside them those that `inout` arguments
    /// had before later ones with side effects (spec §6.8).
    fn evaluate_arguments(
        &mut self,
        signature: &Signature<'a>,
        pairs: &[Option<usize>],
        args: &'a [tree::Argument],
    ) -> (Vec<Option<Value>>, Vec<Option<Value>>) {
        let mut values: Vec<Option<Value>> = vec![None; pairs.len()];
        let mut kept: Vec<Option<Value>> = vec![None; pairs.len()];
        for (position, arg) in args.iter().enumerate() {
            let Some(slot) = pairs.iter().position(|pair| *pair == Some(position)) else {
                continue;
            };
            let Some(expr) = &arg.value else {
                continue;
            };
            let mut value = self.expr(expr);
            if value.ty == Ty::Void {
                self.report(Diagnostic::error(
                    codes::NOT_A_VALUE,
                    expr.span,
                    "this call has no result, but a value is needed",
                ));
                value = Value::poison(expr.span);
            }
            let direction = signature.params[slot].direction;
            let by_place = matches!(direction, Direction::Out | Direction::InOut);
            let changes = args[position + 1..].iter().any(argument_has_effects);
            value = match value.kind {
                ValueKind::Place(place, access) if by_place => Value {
                    kind: ValueKind::Place(self.freeze(place), access),
                    ..value
                },
                _ if changes => self.settle(value),
                _ => value,
            };
            if changes && direction == Direction::InOut {
                kept[slot] = Some(self.settle(value.clone()));
            }
            values[slot] = Some(value);
        }
        for (slot, param) in signature.params.iter().enumerate() {
            if let (None, None, Some(default)) = (pairs[slot], &values[slot], param.default) {
                let order = self.order;
                values[slot] = self.at_top(order, |checker| {
                    checker.constant(default, "a default argument")
                });
            }
        }
        (values, kept)
    }

    fn pass(&mut self, param: &Param<'a>, value: Value, ty: &Ty) -> Passed {
        match param.direction {
            Direction::None | Direction::In => Passed::In(self.coerce(value, ty)),
            Direction::Out | Direction::InOut => {
                let span = value.span;
                let place = if value.is_poison() || *ty == Ty::Poison {
                    None
                } else if value.ty != *ty {
                    let (found, wanted) = (self.quote(&value.ty), self.quote(ty));
                    self.report(
                        Diagnostic::error(
                            codes::TYPE_MISMATCH,
                            span,
                            format!("expected {wanted}, found {found}"),
                        )
                        .with_secondary(
                            param.span,
                            format!("the parameter `{}` is written to", param.name),
                        )
                        .with_note("an argument that is written to must have exactly this type"),
                    );
                    None
                } else {
                    self.writable(value)
                };
                if param.direction == Direction::Out {
                    Passed::Out(place)
                } else {
                    Passed::InOut(place)
                }
            }
        }
    }

    fn discard(&mut self, param: &Param<'a>, ty: &Ty, span: Span) -> Passed {
        if param.direction != Direction::Out {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_DONT_CARE,
                    span,
                    format!("the parameter `{}` needs a value", param.name),
                )
                .with_help("`_` stands only for `out` arguments"),
            );
            return Passed::Absent(ty.clone());
        }
        let place = self
            .ir_type(ty, span)
            .map(|lowered| ir::Place::var(self.temporary(lowered)));
        Passed::Out(place)
    }

    /// The place of a value that is written to; reports if it cannot be.
    pub(crate) fn writable(&mut self, value: Value) -> Option<ir::Place> {
        let is_object = matches!(value.ty, Ty::Extern(..) | Ty::Block(..) | Ty::Body(..));
        let (why, help) = match value.kind {
            _ if is_object => (
                "an object cannot be changed as a whole",
                "call its methods, or use a variable",
            ),
            ValueKind::Place(place, Access::Writable) => {
                self.callable.written.push(place.var);
                return Some(place);
            }
            ValueKind::Poison => return None,
            ValueKind::Place(_, Access::InParameter) => (
                "an `in` parameter cannot be changed",
                "declare it `inout`, or copy it to a variable",
            ),
            ValueKind::Place(_, Access::Directionless) => (
                "a parameter without direction cannot be changed",
                "copy it to a variable",
            ),
            ValueKind::Const(_) | ValueKind::List(_) => {
                ("a constant cannot be changed", "use a variable")
            }
            _ => (
                "this is a value, not a place that can be written",
                "use a variable, a field, an element of a stack or a slice of these",
            ),
        };
        self.report(Diagnostic::error(codes::NOT_WRITABLE, value.span, why).with_help(help));
        None
    }

    /// The IR arguments of a call of something with a body, with the values that
    /// [`Passed::Kept`] ones had, and their positions among the parameters.
    pub(crate) fn ir_args(
        &mut self,
        params: &[Param<'a>],
        passed: Vec<Passed>,
        span: Span,
    ) -> Vec<IrArg> {
        let mut lowered = Vec::new();
        for (position, (param, passed)) in params.iter().zip(passed).enumerate() {
            let mut kept = None;
            let arg = match passed {
                Passed::In(value)
                    if matches!(value.ty, Ty::Extern(..)) || self.is_static(&param.ty) =>
                {
                    continue;
                }
                Passed::In(value) => Some(ir::Arg::In(self.lower(value))),
                Passed::Out(place) => place.map(ir::Arg::Out),
                Passed::InOut(place) => place.map(ir::Arg::InOut),
                Passed::Kept(value, place) => {
                    kept = Some(self.lower(value));
                    place.map(ir::Arg::InOut)
                }
                Passed::Absent(ty) => match (param.direction, self.ir_type(&ty, span)) {
                    (Direction::None | Direction::In, Some(_)) => {
                        let value = self.default_value(&ty, span);
                        Some(ir::Arg::In(self.lower(value)))
                    }
                    (direction, Some(lowered)) => {
                        let place = ir::Place::var(self.temporary(lowered));
                        Some(if direction == Direction::Out {
                            ir::Arg::Out(place)
                        } else {
                            ir::Arg::InOut(place)
                        })
                    }
                    (_, None) => None,
                },
            };
            lowered.extend(arg.map(|arg| IrArg {
                position,
                arg,
                kept,
            }));
        }
        lowered
    }
}

/// The type that an inferred one becomes: the type of a list is a tuple.
pub(crate) fn closed(ty: &Ty) -> Ty {
    match ty {
        Ty::List(members) => {
            let members: Vec<Ty> = members.iter().map(closed).collect();
            Ty::Tuple(members.into())
        }
        _ => ty.clone(),
    }
}
