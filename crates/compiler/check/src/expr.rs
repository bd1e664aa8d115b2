//! Expressions: literals, names, members, elements, slices and aggregates.

use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::constant::{Fault, Repr, fits};
use crate::effects::has_effects;
use crate::scope::Entity;
use crate::types::{StructInfo, StructKind, Ty};
use crate::value::{Access, Known, Value, ValueKind};
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use stateplane_diagnostics::Span;
use stateplane_diagnostics::{Diagnostic, nearest};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExprKind};

impl<'a> Checker<'a> {
    /// Checks an expression; statements for its side effects are appended to the
    /// present block.
    pub(crate) fn expr(&mut self, expr: &'a tree::Expr) -> Value {
        self.nesting += 1;
        let value = self.expr_within(expr);
        self.nesting -= 1;
        value
    }

    fn expr_within(&mut self, expr: &'a tree::Expr) -> Value {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Malformed => Value::poison(span),
            ExprKind::Number(literal) => self.number(literal, span),
            ExprKind::String(text) => Value::known(Ty::Str, Known::Str(text.to_string()), span),
            ExprKind::Bool(flag) => Value::known(Ty::Bool, Known::Bool(*flag), span),
            ExprKind::Dots => Value {
                ty: Ty::Dots,
                kind: ValueKind::Dots,
                span,
            },
            ExprKind::Invalid => Value {
                ty: Ty::Invalid,
                kind: ValueKind::Invalid,
                span,
            },
            ExprKind::This => self.this_object(span),
            ExprKind::Name(path) => self.name(path, span),
            ExprKind::Type(ty) => {
                self.resolve(ty);
                self.report(Diagnostic::error(
                    codes::NOT_A_VALUE,
                    span,
                    "a type stands where a value is needed",
                ));
                Value::poison(span)
            }
            ExprKind::Member { base, member } => self.member(base, member, span),
            ExprKind::Index { base, index } => self.index(base, index, span),
            ExprKind::Slice { base, high, low } => {
                let value = self.expr(base);
                let high = self.slice_bound(high);
                let low = self.slice_bound(low);
                match (high, low) {
                    (Some(high), Some(low)) => self.slice(value, high, low, span),
                    _ => Value::poison(span),
                }
            }
            ExprKind::PlusSlice { base, low, width } => self.plus_slice(base, low, width, span),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, span),
            ExprKind::Binary {
                op,
                op_span,
                left,
                right,
            } => self.binary(*op, *op_span, left, right, span),
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => self.conditional(condition, then, otherwise, span),
            ExprKind::Cast { ty, operand } => {
                let target = self.resolve(ty);
                let value = self.expr(operand);
                self.cast(value, &target, span)
            }
            ExprKind::Call {
                callee,
                type_args,
                args,
            } => self.call(callee, type_args, args, span),
            ExprKind::Construct { .. } => {
                self.report(
                    Diagnostic::error(
                        codes::MISPLACED_INSTANTIATION,
                        span,
                        "an object cannot be made here",
                    )
                    .with_help("declare it among the locals of the parser or control"),
                );
                Value::poison(span)
            }
            ExprKind::List(elements) => {
                let refs: Vec<&'a tree::Expr> = elements.iter().collect();
                let values = self.sequence(&refs);
                let types: Vec<Ty> = values.iter().map(|value| value.ty.clone()).collect();
                Value {
                    ty: Ty::List(types.into()),
                    kind: ValueKind::List(values),
                    span,
                }
            }
            ExprKind::Struct { fields, rest } => self.record(fields, rest.is_some(), span),
        }
    }

    /// Checks expressions that are evaluated from left to right: a value is kept in a
    /// temporary where a later one has side effects.
    pub(crate) fn sequence(&mut self, exprs: &[&'a tree::Expr]) -> Vec<Value> {
        exprs
            .iter()
            .enumerate()
            .map(|(position, expr)| {
                let mut value = self.expr(expr);
                if value.ty == Ty::Void {
                    self.not_a_value(expr.span);
                    value = Value::poison(expr.span);
                }
                if exprs[position + 1..].iter().any(|later| has_effects(later)) {
                    value = self.settle(value);
                }
                value
            })
            .collect()
    }

    fn not_a_value(&mut self, span: Span) {
        self.report(Diagnostic::error(
            codes::NOT_A_VALUE,
            span,
            "this call has no result, but a value is needed",
        ));
    }

    /// Checks an expression that must have a value of the type.
    pub(crate) fn expr_of(&mut self, expr: &'a tree::Expr, ty: &Ty) -> Value {
        let value = self.expr(expr);
        if value.ty == Ty::Void {
            self.not_a_value(expr.span);
            return Value::unknown(ty.clone(), expr.span);
        }
        self.coerce(value, ty)
    }

    fn number(&mut self, literal: &tree::NumberLiteral, span: Span) -> Value {
        let (ty, repr) = match literal.width {
            None => (Ty::Integer, Repr::Integer),
            Some(width) if width.signed => (Ty::Int(width.bits), Repr::Signed(width.bits)),
            Some(width) => (Ty::Bits(width.bits), Repr::Unsigned(width.bits)),
        };
        if literal
            .width
            .is_some_and(|width| width.bits > 2048 || (width.signed && width.bits == 0))
        {
            self.report(
                Diagnostic::error(
                    codes::OUT_OF_RANGE,
                    span,
                    "the literal's width is out of range",
                )
                .with_help("it lies between 1 and 2048"),
            );
            return Value::poison(span);
        }
        let value = repr.wrap(&literal.value);
        if !fits(&literal.value, repr) {
            let shown = self.quote(&ty);
            self.report(
                Diagnostic::warning(
                    codes::VALUE_TRUNCATED,
                    span,
                    format!("{} does not fit {shown} and becomes {value}", literal.value),
                )
                .with_help("write the value that is meant, or a wider type"),
            );
        }
        Value::known(ty, Known::Int(value), span)
    }

    fn name(&mut self, path: &'a tree::Path, span: Span) -> Value {
        if self.find(path).is_none() {
            let kinds = &self.types.match_kinds;
            let kind = kinds
                .iter()
                .position(|(kind, _)| kind == path.name.as_str());
            if let Some(index) = kind.filter(|_| !path.absolute) {
                return Value::known(Ty::MatchKind, Known::Index(index as u32), span);
            }
        }
        let Some(symbol) = self.lookup(path) else {
            return Value::poison(span);
        };
        match symbol.entity {
            Entity::Value(value) => Value { span, ..value },
            Entity::Broken => Value::poison(span),
            other => {
                let noun = other.noun();
                let diagnostic = Diagnostic::error(
                    codes::NOT_A_VALUE,
                    span,
                    format!("`{path}` is {noun}, not a value"),
                )
                .with_secondary(symbol.span, "declared here");
                self.report(match other {
                    Entity::Function(_) | Entity::Action(_) => {
                        diagnostic.with_help(format!("call it: {path}(…)"))
                    }
                    Entity::Table(_) => diagnostic.with_help(format!("apply it: {path}.apply()")),
                    _ => diagnostic,
                });
                Value::poison(span)
            }
        }
    }

    fn member(&mut self, base: &'a tree::Expr, member: &'a tree::Ident, span: Span) -> Value {
        if let ExprKind::Type(ty) = &base.kind {
            let ty = self.resolve(ty);
            return self.type_member(&ty, member, span);
        }
        if let Some((table, call)) = self.table_application(base) {
            return self.apply_result(table, call, member, span);
        }
        let value = self.expr(base);
        self.member_of(value, member, span)
    }

    fn type_member(&mut self, ty: &Ty, member: &tree::Ident, span: Span) -> Value {
        let name = member.as_str();
        let members: Vec<(String, Known)> = match ty {
            Ty::Poison => return Value::poison(span),
            Ty::Error => self.types.declared_errors(),
            Ty::MatchKind => enumerate(self.types.match_kinds.iter().map(|(name, _)| name)),
            Ty::Enum(id) => enumerate(
                self.types.enums[*id as usize]
                    .members
                    .iter()
                    .map(|(name, _)| name),
            ),
            Ty::Serial(id) => self.types.serials[*id as usize]
                .members
                .iter()
                .map(|(name, value)| (name.clone(), Known::Int(value.clone())))
                .collect(),
            _ => {
                let shown = self.quote(ty);
                self.report(Diagnostic::error(
                    codes::UNKNOWN_MEMBER,
                    member.span,
                    format!("the type {shown} has no member `{name}`"),
                ));
                return Value::poison(span);
            }
        };
        if let Some((_, known)) = members.iter().find(|(other, _)| other == name) {
            return Value::known(ty.clone(), known.clone(), span);
        }
        let shown = self.quote(ty);
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_MEMBER,
            member.span,
            format!("{shown} has no member `{name}`"),
        );
        let near = nearest(name, members.iter().map(|(name, _)| name.as_str()));
        self.report(match near {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
        Value::poison(span)
    }

    /// Reports that a struct-like type has no such member.
    pub(crate) fn unknown_member(&mut self, info: &StructInfo, name: &str, span: Span) {
        let diagnostic = Diagnostic::error(
            codes::UNKNOWN_MEMBER,
            span,
            format!(
                "{} `{}` has no field `{name}`",
                info.kind.keyword(),
                info.name
            ),
        )
        .with_secondary(info.span, format!("`{}` is declared here", info.name));
        let methods = ["isValid", "setValid", "setInvalid"];
        let near = nearest(name, info.fields.iter().map(|field| field.name.as_str()));
        self.report(match near {
            Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
            None if info.kind != StructKind::Struct && methods.contains(&name) => {
                diagnostic.with_help(format!("call the method: {name}()"))
            }
            None => diagnostic,
        });
    }

    /// A member of a value.
    pub(crate) fn member_of(&mut self, value: Value, member: &tree::Ident, span: Span) -> Value {
        match &value.ty {
            Ty::Poison => Value::poison(span),
            Ty::Struct(id) => {
                let info = self.types.info(*id).clone();
                match info.position(member.as_str()) {
                    Some(position) => {
                        let ty = info.fields[position].ty.clone();
                        self.part(value, position as u32, ty, span)
                    }
                    None => {
                        self.unknown_member(&info, member.as_str(), member.span);
                        Value::poison(span)
                    }
                }
            }
            Ty::Stack(element, size) => {
                let (element, size) = ((**element).clone(), *size);
                self.stack_member(value, element, size, member, span)
            }
            Ty::Record(..) => match &value.kind {
                ValueKind::Record(members) => {
                    match members.iter().find(|(name, _)| name == member.as_str()) {
                        Some((_, found)) => Value {
                            span,
                            ..found.clone()
                        },
                        None => self.no_members(&value, member, span),
                    }
                }
                _ => Value::poison(span),
            },
            _ => self.no_members(&value, member, span),
        }
    }

    pub(crate) fn no_members(&mut self, value: &Value, member: &tree::Ident, span: Span) -> Value {
        let shown = self.quote(&value.ty);
        self.report(
            Diagnostic::error(
                codes::UNKNOWN_MEMBER,
                member.span,
                format!("a value of type {shown} has no member `{member}`"),
            )
            .with_secondary(value.span, format!("this is {shown}")),
        );
        Value::poison(span)
    }

    /// A member of a struct, header, union or tuple, by position.
    pub(crate) fn part(&mut self, value: Value, position: u32, ty: Ty, span: Span) -> Value {
        match value.kind {
            ValueKind::Place(mut place, access) => {
                place.path.push(ir::Projection::Field(position));
                Value {
                    ty,
                    kind: ValueKind::Place(place, access),
                    span,
                }
            }
            ValueKind::List(elements) => match elements.into_iter().nth(position as usize) {
                Some(element) => Value { span, ..element },
                None => Value::unknown(ty, span),
            },
            ValueKind::Expr(ir::Expr {
                kind: ir::ExprKind::Read(mut place),
                ..
            }) => {
                place.path.push(ir::Projection::Field(position));
                Value {
                    ty,
                    kind: ValueKind::Place(place, Access::Temporary),
                    span,
                }
            }
            ValueKind::Expr(_) => match self.materialise(value) {
                Some(mut place) => {
                    place.path.push(ir::Projection::Field(position));
                    Value {
                        ty,
                        kind: ValueKind::Place(place, Access::Temporary),
                        span,
                    }
                }
                None => Value::unknown(ty, span),
            },
            _ => Value::unknown(ty, span),
        }
    }

    fn record(&mut self, fields: &'a [tree::NamedExpr], rest: bool, span: Span) -> Value {
        let mut seen: Vec<&tree::Ident> = Vec::new();
        for field in fields {
            match seen.iter().find(|other| other.name == field.name.name) {
                Some(previous) => {
                    let previous = previous.span;
                    self.duplicate(&field.name, previous);
                }
                None => seen.push(&field.name),
            }
        }
        let exprs: Vec<&'a tree::Expr> = fields.iter().map(|field| &field.value).collect();
        let values = self.sequence(&exprs);
        let members: Vec<(String, Value)> = fields
            .iter()
            .map(|field| field.name.as_str().to_owned())
            .zip(values)
            .collect();
        let types: Vec<(String, Ty)> = members
            .iter()
            .map(|(name, value)| (name.clone(), value.ty.clone()))
            .collect();
        Value {
            ty: Ty::Record(types.into(), rest),
            kind: ValueKind::Record(members),
            span,
        }
    }

    /// The value of an expression that must be known at compile time.
    pub(crate) fn constant(&mut self, expr: &'a tree::Expr, what: &str) -> Option<Value> {
        let callable = crate::checker::Callable::new(CallableKind::Constant, String::new());
        let (value, _) = self.in_callable(callable, |checker| checker.expr(expr));
        if value.is_poison() {
            return None;
        }
        if !is_known(&value) {
            self.not_constant(expr.span, what);
            return None;
        }
        Some(value)
    }

    /// Reports that something is not known at compile time.
    pub(crate) fn not_constant(&mut self, span: Span, what: &str) {
        self.report(
            Diagnostic::error(
                codes::NOT_CONSTANT,
                span,
                format!("{what} must be known at compile time"),
            )
            .with_label("depends on the packet")
            .with_help("use a literal, a `const` or a constructor parameter"),
        );
    }

    /// A number known at compile time. One that depends on a constructor parameter of
    /// a block that is not instantiated is taken to be 1.
    pub(crate) fn constant_int(&mut self, expr: &'a tree::Expr, what: &str) -> Option<BigInt> {
        let value = self.constant(expr, what)?;
        let value = self.numeric_operand(value);
        match value.kind {
            ValueKind::Const(Known::Int(number)) => Some(number),
            ValueKind::Poison if !value.is_poison() => Some(BigInt::one()),
            _ => None,
        }
    }
}

fn enumerate<'n>(names: impl Iterator<Item = &'n String>) -> Vec<(String, Known)> {
    names
        .enumerate()
        .map(|(index, name)| (name.clone(), Known::Index(index as u32)))
        .collect()
}

/// True if a value is known at compile time, or unknown for a reported reason.
pub(crate) fn is_known(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Const(_)
        | ValueKind::Poison
        | ValueKind::Dots
        | ValueKind::Invalid
        | ValueKind::Instance(_) => true,
        ValueKind::Expr(expr) => expr.kind == ir::ExprKind::Default,
        ValueKind::List(elements) => elements.iter().all(is_known),
        ValueKind::Record(members) => members.iter().all(|(_, member)| is_known(member)),
        ValueKind::Place(..) | ValueKind::Void => false,
    }
}

/// An unsigned constant.
pub(crate) fn bits(value: u32, width: u32) -> ir::Expr {
    ir::Expr {
        kind: ir::ExprKind::Const(ir::Const::Bits(BigUint::from(value))),
        ty: ir::Type::Bits(width),
    }
}

/// The message for a compile-time operation without a value.
pub(crate) fn fault_message(fault: Fault) -> &'static str {
    match fault {
        Fault::DivisionByZero => "division by zero",
        Fault::NegativeDivision => "division of or by a negative number",
        Fault::NegativeShift => "shift by a negative amount",
        Fault::TooLarge => "the result has too many bits",
        Fault::NotApplicable => "the operator does not apply to numbers without a width",
    }
}
