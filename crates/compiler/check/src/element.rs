//! Elements of stacks and tuples, and slices of numbers.

use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::constant::{self};
use crate::effects::has_effects;
use crate::types::Ty;
use crate::value::{Access, Known, Value, ValueKind};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self};

impl<'a> Checker<'a> {
    pub(crate) fn stack_member(
        &mut self,
        value: Value,
        element: Ty,
        size: u32,
        member: &tree::Ident,
        span: Span,
    ) -> Value {
        let step = match member.as_str() {
            "size" => {
                return Value::known(Ty::Integer, Known::Int(BigInt::from(size)), span);
            }
            "lastIndex" => None,
            "next" => Some(ir::Projection::Next),
            "last" => Some(ir::Projection::Last),
            _ => return self.no_members(&value, member, span),
        };
        if !self.holds_headers(&element) {
            return self.no_members(&value, member, span);
        }
        if !matches!(self.callable.kind, CallableKind::Parser) {
            self.report(
                Diagnostic::error(
                    codes::ONLY_IN_PARSER,
                    member.span,
                    format!("`{member}` of a header stack exists only in parsers"),
                )
                .with_help("use an index"),
            );
            return Value::poison(span);
        }
        let ValueKind::Place(mut place, access) = value.kind else {
            return Value::unknown(element, span);
        };
        match step {
            Some(step) => {
                place.path.push(step);
                Value {
                    ty: element,
                    kind: ValueKind::Place(place, access),
                    span,
                }
            }
            None => Value::expr(
                Ty::Bits(32),
                ir::Expr {
                    kind: ir::ExprKind::LastIndex(place),
                    ty: ir::Type::Bits(32),
                },
                span,
            ),
        }
    }

    pub(crate) fn index(
        &mut self,
        base: &'a tree::Expr,
        index: &'a tree::Expr,
        span: Span,
    ) -> Value {
        let mut value = self.expr(base);
        if has_effects(index)
            && let ValueKind::Place(place, access) = value.kind
        {
            value.kind = ValueKind::Place(self.freeze(place), access);
        }
        let position = self.expr(index);
        if value.is_poison() || position.is_poison() {
            return Value::poison(span);
        }
        match &value.ty {
            Ty::Stack(element, size) => {
                let (element, size) = ((**element).clone(), *size);
                self.stack_element(value, element, size, position, span)
            }
            Ty::Tuple(members) | Ty::List(members) => {
                let members = members.clone();
                let Some(number) = position.as_int() else {
                    self.not_constant(position.span, "the index of a tuple");
                    return Value::poison(span);
                };
                match number.to_usize().filter(|number| *number < members.len()) {
                    Some(number) => self.part(value, number as u32, members[number].clone(), span),
                    None => {
                        self.out_of_bounds(position.span, number, members.len());
                        Value::poison(span)
                    }
                }
            }
            _ => {
                let shown = self.quote(&value.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_INDEXABLE,
                        base.span,
                        format!("a value of type {shown} has no elements"),
                    )
                    .with_help("bits are selected with [high:low]"),
                );
                Value::poison(span)
            }
        }
    }

    pub(crate) fn out_of_bounds(&mut self, span: Span, number: &BigInt, length: usize) {
        self.report(
            Diagnostic::error(
                codes::INDEX_OUT_OF_BOUNDS,
                span,
                format!("the index {number} is out of bounds"),
            )
            .with_help(match length.checked_sub(1) {
                Some(last) => format!("it lies between 0 and {last}"),
                None => "there are no elements".to_owned(),
            }),
        );
    }

    pub(crate) fn stack_element(
        &mut self,
        value: Value,
        element: Ty,
        size: u32,
        position: Value,
        span: Span,
    ) -> Value {
        if let Some(number) = position.as_int()
            && number.to_u32().is_none_or(|number| number >= size)
        {
            let number = number.clone();
            self.out_of_bounds(position.span, &number, size as usize);
            return Value::unknown(element, span);
        }
        let position = match position.ty {
            Ty::Integer => self.coerce(position, &Ty::Bits(32)),
            Ty::Serial(_) => {
                let underlying = self.strip_serial(&position.ty);
                self.coerce(position, &underlying)
            }
            _ => position,
        };
        let position = match position.ty {
            // A negative index becomes one that is out of bounds.
            Ty::Int(width) => {
                let span = position.span;
                self.cast(position, &Ty::Bits(width), span)
            }
            _ => position,
        };
        if !matches!(position.ty, Ty::Bits(_)) {
            let shown = self.quote(&position.ty);
            self.report(
                Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    position.span,
                    format!("the index of a header stack is a number, not {shown}"),
                )
                .with_help("use a `bit<W>` or `int<W>`"),
            );
            return Value::unknown(element, span);
        }
        if let (ValueKind::List(elements), Some(number)) = (&value.kind, position.as_int()) {
            let number = number.to_usize().unwrap_or(0);
            return match elements.get(number) {
                Some(found) => Value {
                    span,
                    ..found.clone()
                },
                None => Value::unknown(element, span),
            };
        }
        let access = match value.kind {
            ValueKind::Place(_, access) => access,
            _ => Access::Temporary,
        };
        let Some(mut place) = self.materialise(value) else {
            return Value::unknown(element, span);
        };
        if let ValueKind::Poison = position.kind {
            return Value {
                ty: element,
                kind: ValueKind::Place(place, access),
                span,
            };
        }
        let position = self.lower(position);
        place.path.push(ir::Projection::Index(Box::new(position)));
        Value {
            ty: element,
            kind: ValueKind::Place(place, access),
            span,
        }
    }

    pub(crate) fn slice_bound(&mut self, bound: &'a tree::Expr) -> Option<u32> {
        self.constant_u32(bound, "a slice bound", 0, 1 << 16)
    }

    /// Bits `high..=low` of a value.
    pub(crate) fn slice(&mut self, value: Value, high: u32, low: u32, span: Span) -> Value {
        let value = self.numeric_operand(value);
        if value.is_poison() {
            return value;
        }
        if high < low {
            self.report(
                Diagnostic::error(
                    codes::INVALID_SLICE,
                    span,
                    format!("the slice [{high}:{low}] has its bounds in the wrong order"),
                )
                .with_help(format!("the higher bit comes first: [{low}:{high}]")),
            );
            return Value::poison(span);
        }
        if value.ty.width().is_some_and(|width| high >= width) || high - low >= 2048 {
            let shown = self.quote(&value.ty);
            self.report(
                Diagnostic::error(
                    codes::INVALID_SLICE,
                    span,
                    format!("bit {high} does not exist in {shown}"),
                )
                .with_secondary(value.span, format!("this is {shown}")),
            );
            return Value::poison(span);
        }
        let width = high - low + 1;
        let ty = Ty::Bits(width);
        match value.kind {
            ValueKind::Const(Known::Int(number)) => {
                Value::known(ty, Known::Int(constant::slice(&number, high, low)), span)
            }
            ValueKind::Place(mut place, access) => {
                let step = match place.path.last() {
                    Some(ir::Projection::Slice { lo, .. }) => {
                        let lo = *lo;
                        place.path.pop();
                        ir::Projection::Slice {
                            hi: high + lo,
                            lo: low + lo,
                        }
                    }
                    _ => ir::Projection::Slice { hi: high, lo: low },
                };
                place.path.push(step);
                Value {
                    ty,
                    kind: ValueKind::Place(place, access),
                    span,
                }
            }
            ValueKind::Expr(expr) => Value::expr(
                ty,
                ir::Expr {
                    kind: ir::ExprKind::Slice {
                        value: Box::new(expr),
                        hi: high,
                        lo: low,
                    },
                    ty: ir::Type::Bits(width),
                },
                span,
            ),
            _ => Value::unknown(ty, span),
        }
    }

    pub(crate) fn plus_slice(
        &mut self,
        base: &'a tree::Expr,
        low: &'a tree::Expr,
        width: &'a tree::Expr,
        span: Span,
    ) -> Value {
        let values = self.sequence(&[base, low]);
        let Some(width) = self.constant_u32(width, "the width of a slice", 1, 2048) else {
            return Value::poison(span);
        };
        let [value, position] = <[Value; 2]>::try_from(values)
            .unwrap_or_else(|_| [Value::poison(span), Value::poison(span)]);
        if let Some(position) = position.as_int() {
            return match position.to_u32().and_then(|low| low.checked_add(width - 1)) {
                Some(high) => self.slice(value, high, high + 1 - width, span),
                None => {
                    self.report(Diagnostic::error(
                        codes::INVALID_SLICE,
                        low.span,
                        format!("the slice starts at bit {position}, which does not exist"),
                    ));
                    Value::poison(span)
                }
            };
        }
        let value = self.as_expr_value(value);
        let shifted = self.shift(tree::BinaryOp::Shr, value, position, span);
        self.slice(shifted, width - 1, 0, span)
    }
}
