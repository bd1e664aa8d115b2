//! Conversions between types, and from values to IR expressions.

use crate::checker::Checker;
use crate::codes;
use crate::constant::{Repr, fits, to_bits};
use crate::types::{StructKind, Ty};
use crate::value::{Known, Value, ValueKind};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Zero};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;

/// Representation of numbers of a type.
pub(crate) fn repr(ty: &Ty) -> Option<Repr> {
    match ty {
        Ty::Integer => Some(Repr::Integer),
        Ty::Bits(width) => Some(Repr::Unsigned(*width)),
        Ty::Int(width) => Some(Repr::Signed(*width)),
        _ => None,
    }
}

impl Checker<'_> {
    /// Converts implicitly (spec §8.11.2) or reports that this is not possible.
    pub(crate) fn coerce(&mut self, value: Value, target: &Ty) -> Value {
        let span = value.span;
        if value.ty == *target {
            return value;
        }
        if value.is_poison() || *target == Ty::Poison {
            return Value::unknown(target.clone(), span);
        }
        match self.convert(value, target) {
            Ok(converted) => converted,
            Err(value) => {
                self.mismatch(&value.ty, target, span);
                Value::unknown(target.clone(), span)
            }
        }
    }

    fn mismatch(&mut self, found: &Ty, wanted: &Ty, span: Span) {
        let (found_text, wanted_text) = (self.quote(found), self.quote(wanted));
        let diagnostic = Diagnostic::error(
            codes::TYPE_MISMATCH,
            span,
            format!("expected {wanted_text}, found {found_text}"),
        )
        .with_label(format!("this is {found_text}"));
        self.report(if self.castable(found, wanted) {
            diagnostic.with_help(format!(
                "write the cast if it is meant: ({}) …",
                self.types.show(wanted)
            ))
        } else {
            diagnostic
        });
    }

    fn convert(&mut self, value: Value, target: &Ty) -> Result<Value, Value> {
        let span = value.span;
        match (&value.ty, target) {
            (Ty::Integer, Ty::Bits(_) | Ty::Int(_)) => Ok(self.sized(value, target)),
            // A number without a width is of no type that a new one could be mixed up with.
            (Ty::Integer, Ty::Newtype(id))
                if matches!(value.kind, ValueKind::Const(_))
                    && self.underlying_width(target).is_some() =>
            {
                let underlying = self.types.newtypes[*id as usize].underlying.clone();
                let converted = self.convert(value, &underlying)?;
                Ok(Value {
                    ty: target.clone(),
                    ..converted
                })
            }
            (Ty::Serial(id), Ty::Bits(_) | Ty::Int(_))
                if self.types.serials[*id as usize].underlying == *target =>
            {
                Ok(Value {
                    ty: target.clone(),
                    ..value
                })
            }
            // What is known loses nothing without its width.
            (Ty::Bits(_) | Ty::Int(_), Ty::Integer)
                if matches!(value.kind, ValueKind::Const(_)) =>
            {
                Ok(Value {
                    ty: Ty::Integer,
                    ..value
                })
            }
            (Ty::Dots, _) => Ok(self.default_value(target, span)),
            (Ty::Invalid, Ty::Struct(id)) if self.types.info(*id).kind != StructKind::Struct => {
                self.default_expr(target, span).ok_or_else(|| value.clone())
            }
            (Ty::List(_), _) => self.convert_list(value, target),
            (Ty::Record(..), Ty::Struct(_)) => self.convert_record(value, target),
            (Ty::Tuple(found), Ty::Tuple(wanted)) if found.len() == wanted.len() => {
                // A constant tuple of `int` members has values that convert one by one.
                match &value.kind {
                    ValueKind::List(_) => self.convert_list(value, target),
                    _ => Err(value),
                }
            }
            _ => Err(value),
        }
    }

    /// Gives a width to a compile-time `int`; warns if the value does not fit.
    fn sized(&mut self, value: Value, target: &Ty) -> Value {
        let (Some(number), Some(repr)) = (value.as_int(), repr(target)) else {
            return Value::unknown(target.clone(), value.span);
        };
        let wrapped = repr.wrap(number);
        if !fits(number, repr) {
            let shown = self.quote(target);
            self.report(
                Diagnostic::warning(
                    codes::VALUE_TRUNCATED,
                    value.span,
                    format!("{number} does not fit {shown} and becomes {wrapped}"),
                )
                .with_help("write the value that is meant, or a wider type"),
            );
        }
        Value::known(target.clone(), Known::Int(wrapped), value.span)
    }

    fn convert_list(&mut self, value: Value, target: &Ty) -> Result<Value, Value> {
        let span = value.span;
        let wanted: Vec<Ty> = match target {
            Ty::Struct(id) if self.types.info(*id).kind != StructKind::Union => self
                .types
                .info(*id)
                .fields
                .iter()
                .map(|field| field.ty.clone())
                .collect(),
            Ty::Tuple(members) | Ty::List(members) => members.to_vec(),
            Ty::Stack(element, size) => vec![(**element).clone(); *size as usize],
            Ty::ListOf(element) => match &value.kind {
                ValueKind::List(elements) => vec![(**element).clone(); elements.len()],
                _ => Vec::new(),
            },
            _ => return Err(value),
        };
        let ValueKind::List(mut elements) = value.kind else {
            return Ok(Value::unknown(target.clone(), span));
        };
        let dots = elements
            .last()
            .filter(|last| last.ty == Ty::Dots)
            .map(|last| last.span);
        if let Some(dots) = dots {
            elements.pop();
            while elements.len() < wanted.len() {
                elements.push(Value {
                    ty: Ty::Dots,
                    kind: ValueKind::Dots,
                    span: dots,
                });
            }
        }
        if elements.len() != wanted.len() {
            let shown = self.quote(target);
            let count = elements.len();
            self.report(
                Diagnostic::error(
                    codes::ELEMENT_COUNT,
                    span,
                    format!(
                        "{shown} has {} members, but {count} values are given",
                        wanted.len()
                    ),
                )
                .with_help("give one value for each member, or end the list with `...`"),
            );
            return Ok(Value::unknown(target.clone(), span));
        }
        let elements = elements
            .into_iter()
            .zip(&wanted)
            .map(|(element, ty)| self.coerce(element, ty))
            .collect();
        Ok(Value {
            ty: target.clone(),
            kind: ValueKind::List(elements),
            span,
        })
    }

    fn convert_record(&mut self, value: Value, target: &Ty) -> Result<Value, Value> {
        let span = value.span;
        let Ty::Struct(id) = target else {
            return Err(value);
        };
        let info = self.types.info(*id).clone();
        if info.kind == StructKind::Union {
            return Err(value);
        }
        let Ty::Record(_, dots) = value.ty else {
            return Err(value);
        };
        let ValueKind::Record(given) = value.kind else {
            return Ok(Value::unknown(target.clone(), span));
        };
        for (name, member) in &given {
            if info.position(name).is_none() {
                self.unknown_member(&info, name, member.span);
            }
        }
        let mut missing = Vec::new();
        let mut elements = Vec::new();
        for field in info.fields.iter() {
            let found = given.iter().find(|(name, _)| *name == field.name);
            elements.push(match found {
                Some((_, member)) => self.coerce(member.clone(), &field.ty),
                None => {
                    if !dots {
                        missing.push(format!("`{}`", field.name));
                    }
                    self.default_value(&field.ty, span)
                }
            });
        }
        if !missing.is_empty() {
            self.report(
                Diagnostic::error(
                    codes::MISSING_FIELD,
                    span,
                    format!("no value is given for {}", missing.join(", ")),
                )
                .with_secondary(info.span, format!("`{}` is declared here", info.name))
                .with_help("add them, or `...` for their default values"),
            );
        }
        Ok(Value {
            ty: target.clone(),
            kind: ValueKind::List(elements),
            span,
        })
    }

    /// Value that `...` denotes.
    pub(crate) fn default_value(&mut self, ty: &Ty, span: Span) -> Value {
        let known = match ty {
            Ty::Bool => Known::Bool(false),
            Ty::Bits(_) | Ty::Int(_) | Ty::Integer | Ty::Serial(_) => Known::Int(BigInt::zero()),
            Ty::Newtype(id) => {
                let underlying = self.types.newtypes[*id as usize].underlying.clone();
                return Value {
                    ty: ty.clone(),
                    ..self.default_value(&underlying, span)
                };
            }
            Ty::Error | Ty::Enum(_) => Known::Index(0),
            Ty::Str => Known::Str(String::new()),
            _ => {
                return match self.default_expr(ty, span) {
                    Some(value) => value,
                    None => {
                        self.ir_type(ty, span);
                        Value::unknown(ty.clone(), span)
                    }
                };
            }
        };
        Value::known(ty.clone(), known, span)
    }

    fn default_expr(&mut self, ty: &Ty, span: Span) -> Option<Value> {
        let lowered = self.out.ty(&self.types, ty)?;
        let expr = ir::Expr {
            kind: ir::ExprKind::Default,
            ty: lowered,
        };
        Some(Value::expr(ty.clone(), expr, span))
    }

    /// True if an explicit cast is legal (spec §8.11.1).
    pub(crate) fn castable(&self, from: &Ty, to: &Ty) -> bool {
        match (from, to) {
            _ if from == to => true,
            (Ty::Bits(1), Ty::Bool) | (Ty::Bool, Ty::Bits(1)) => true,
            (Ty::Bits(a), Ty::Int(b)) | (Ty::Int(a), Ty::Bits(b)) => a == b,
            (Ty::Bits(_), Ty::Bits(_)) | (Ty::Int(_), Ty::Int(_)) => true,
            (Ty::Integer, Ty::Bool | Ty::Bits(_) | Ty::Int(_)) => true,
            (Ty::Bits(_) | Ty::Int(_), Ty::Integer) => true,
            (Ty::Newtype(id), Ty::Newtype(other)) => {
                let left = &self.types.newtypes[*id as usize].underlying;
                let right = &self.types.newtypes[*other as usize].underlying;
                left == to || right == from
            }
            (Ty::Newtype(id), other) | (other, Ty::Newtype(id)) => {
                let underlying = &self.types.newtypes[*id as usize].underlying;
                underlying == other
                    || *other == Ty::Integer && self.underlying_width(underlying).is_some()
            }
            (Ty::Serial(id), _) => self.castable(&self.types.serials[*id as usize].underlying, to),
            (_, Ty::Serial(id)) => {
                self.castable(from, &self.types.serials[*id as usize].underlying)
            }
            _ => false,
        }
    }

    /// Converts explicitly, or reports that this is not possible.
    pub(crate) fn cast(&mut self, value: Value, target: &Ty, span: Span) -> Value {
        let value = Value { span, ..value };
        if value.is_poison() || *target == Ty::Poison {
            return Value::unknown(target.clone(), span);
        }
        if value.ty == *target {
            return match value.kind {
                // A cast is a value, not a place.
                ValueKind::Place(..) => self.as_expr_value(value),
                _ => value,
            };
        }
        if matches!(
            value.ty,
            Ty::List(_) | Ty::Record(..) | Ty::Dots | Ty::Invalid | Ty::Tuple(_)
        ) {
            return self.coerce(value, target);
        }
        if !self.castable(&value.ty, target) {
            self.illegal_cast(&value.ty, target, span);
            return Value::unknown(target.clone(), span);
        }
        match &value.kind {
            ValueKind::Const(Known::Int(number)) => self.cast_number(number.clone(), target, span),
            ValueKind::Const(Known::Bool(flag)) => {
                self.cast_number(BigInt::from(u8::from(*flag)), target, span)
            }
            ValueKind::Poison => Value::unknown(target.clone(), span),
            _ => match self.ir_type(target, span) {
                Some(lowered) => {
                    let inner = self.lower(value);
                    let expr = if inner.ty == lowered {
                        inner
                    } else {
                        ir::Expr {
                            kind: ir::ExprKind::Cast(Box::new(inner)),
                            ty: lowered,
                        }
                    };
                    Value::expr(target.clone(), expr, span)
                }
                None => Value::unknown(target.clone(), span),
            },
        }
    }

    fn cast_number(&mut self, number: BigInt, target: &Ty, span: Span) -> Value {
        let mut innermost = target.clone();
        loop {
            innermost = match innermost {
                Ty::Newtype(id) => self.types.newtypes[id as usize].underlying.clone(),
                Ty::Serial(id) => self.types.serials[id as usize].underlying.clone(),
                _ => break,
            };
        }
        let known = match (&innermost, repr(&innermost)) {
            (Ty::Bool, _) => {
                if !number.is_zero() && !number.is_one() {
                    self.report(
                        Diagnostic::error(
                            codes::INVALID_CAST,
                            span,
                            format!("{number} cannot be cast to `bool`"),
                        )
                        .with_help("only 0 and 1 can"),
                    );
                }
                Known::Bool(!number.is_zero())
            }
            (_, Some(repr)) => Known::Int(repr.wrap(&number)),
            _ => return Value::unknown(target.clone(), span),
        };
        Value::known(target.clone(), known, span)
    }

    fn illegal_cast(&mut self, from: &Ty, to: &Ty, span: Span) {
        let (from_text, to_text) = (self.quote(from), self.quote(to));
        let diagnostic = Diagnostic::error(
            codes::INVALID_CAST,
            span,
            format!("{from_text} cannot be cast to {to_text}"),
        );
        let help = match (from, to) {
            (Ty::Bits(_), Ty::Int(to)) => {
                Some(format!("change the width first: (int<{to}>)(bit<{to}>) …"))
            }
            (Ty::Int(_), Ty::Bits(to)) => {
                Some(format!("change the width first: (bit<{to}>)(int<{to}>) …"))
            }
            (Ty::Bits(_), Ty::Bool) => Some("compare with 0: … != 0".to_owned()),
            (Ty::Bool, Ty::Bits(to)) => Some(format!("write (bit<{to}>)(bit<1>) …")),
            _ => None,
        };
        self.report(match help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        });
    }

    /// The IR constant of a known scalar.
    pub(crate) fn ir_const(&self, known: &Known, ty: &Ty) -> Option<ir::Const> {
        Some(match known {
            Known::Bool(flag) => ir::Const::Bool(*flag),
            Known::Index(index) => ir::Const::Bits(BigUint::from(*index)),
            Known::Int(number) => ir::Const::Bits(to_bits(number, self.underlying_width(ty)?)),
            Known::Str(_) => return None,
        })
    }

    /// Width of the bits behind a type.
    pub(crate) fn underlying_width(&self, ty: &Ty) -> Option<u32> {
        match ty {
            Ty::Newtype(id) => self.underlying_width(&self.types.newtypes[*id as usize].underlying),
            Ty::Serial(id) => self.underlying_width(&self.types.serials[*id as usize].underlying),
            _ => ty.width(),
        }
    }

    /// The IR expression of a value. Reports a value of a type without values while
    /// packets are processed; what cannot be lowered becomes a default, and the
    /// program is refused.
    pub(crate) fn lower(&mut self, value: Value) -> ir::Expr {
        let span = value.span;
        let lowered = match value.ty {
            // Its absence of a type was reported where it came from.
            Ty::Poison => None,
            _ => self.ir_type(&value.ty, span),
        };
        let Some(ty) = lowered else {
            return ir::Expr {
                kind: ir::ExprKind::Default,
                ty: ir::Type::Bool,
            };
        };
        let kind = match value.kind {
            ValueKind::Const(known) => match self.ir_const(&known, &value.ty) {
                Some(constant) => ir::ExprKind::Const(constant),
                None => ir::ExprKind::Default,
            },
            ValueKind::Place(place, _) => ir::ExprKind::Read(place),
            ValueKind::Expr(expr) => return expr,
            ValueKind::List(elements) => {
                let elements = elements
                    .into_iter()
                    .map(|element| self.lower(element))
                    .collect();
                match ty {
                    ir::Type::Stack(_) => ir::ExprKind::Array(elements),
                    _ => ir::ExprKind::Record(elements),
                }
            }
            ValueKind::Poison
            | ValueKind::Record(_)
            | ValueKind::Dots
            | ValueKind::Invalid
            | ValueKind::Instance(_)
            | ValueKind::Void => ir::ExprKind::Default,
        };
        ir::Expr { kind, ty }
    }

    /// The value as an expression: a place is read.
    pub(crate) fn as_expr_value(&mut self, value: Value) -> Value {
        match &value.kind {
            ValueKind::Place(..) => {
                let (ty, span) = (value.ty.clone(), value.span);
                Value::expr(ty, self.lower(value), span)
            }
            _ => value,
        }
    }

    /// The same value, kept from later side effects in a temporary if need be.
    pub(crate) fn settle(&mut self, value: Value) -> Value {
        match value.kind {
            ValueKind::Place(..) | ValueKind::Expr(_) => {
                let (ty, span) = (value.ty.clone(), value.span);
                let (place, settled) = self.temporary_value(&ty, span);
                if let Some(place) = place {
                    let expr = self.lower(value);
                    self.emit(ir::Stmt::Assign(place, expr));
                }
                settled
            }
            ValueKind::List(elements) => Value {
                kind: ValueKind::List(
                    elements
                        .into_iter()
                        .map(|element| self.settle(element))
                        .collect(),
                ),
                ..value
            },
            ValueKind::Record(members) => Value {
                kind: ValueKind::Record(
                    members
                        .into_iter()
                        .map(|(name, member)| (name, self.settle(member)))
                        .collect(),
                ),
                ..value
            },
            _ => value,
        }
    }

    /// The same place with its indices protected from later side effects.
    pub(crate) fn freeze(&mut self, place: ir::Place) -> ir::Place {
        let path = place
            .path
            .into_iter()
            .map(|step| match step {
                ir::Projection::Index(index) if !matches!(index.kind, ir::ExprKind::Const(_)) => {
                    let ty = index.ty;
                    let kept = ir::Place::var(self.temporary(ty));
                    self.emit(ir::Stmt::Assign(kept.clone(), *index));
                    ir::Projection::Index(Box::new(ir::Expr {
                        kind: ir::ExprKind::Read(kept),
                        ty,
                    }))
                }
                other => other,
            })
            .collect();
        ir::Place {
            var: place.var,
            path,
        }
    }

    /// A place that holds the value: its own, or a temporary.
    pub(crate) fn materialise(&mut self, value: Value) -> Option<ir::Place> {
        match value.kind {
            ValueKind::Place(place, _) => Some(place),
            ValueKind::Poison => None,
            _ => {
                let (place, _) = self.temporary_value(&value.ty.clone(), value.span);
                let place = place?;
                let expr = self.lower(value);
                self.emit(ir::Stmt::Assign(place.clone(), expr));
                Some(place)
            }
        }
    }
}
