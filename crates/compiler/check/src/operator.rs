//! Operators (spec §8.5 to §8.10).

use crate::checker::Checker;
use crate::codes;
use crate::constant;
use crate::convert::repr;
use crate::expr::fault_message;
use crate::types::Ty;
use crate::value::{Known, Value, ValueKind};
use num_traits::Signed;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree;

impl<'a> Checker<'a> {
    /// The underlying type of an enum that has one; the type itself otherwise.
    pub(crate) fn strip_serial(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::Serial(id) => self.types.serials[*id as usize].underlying.clone(),
            _ => ty.clone(),
        }
    }

    /// The operand of an operator on numbers: enums with underlying type become
    /// numbers, anything but a number is reported.
    pub(crate) fn numeric_operand(&mut self, value: Value) -> Value {
        let ty = self.strip_serial(&value.ty);
        if ty.is_numeric() || ty == Ty::Poison {
            return Value { ty, ..value };
        }
        let shown = self.quote(&ty);
        let diagnostic = Diagnostic::error(
            codes::NOT_A_NUMBER,
            value.span,
            format!("a number is needed here, not {shown}"),
        )
        .with_label(format!("this is {shown}"));
        self.report(match &ty {
            Ty::Newtype(id) => {
                let underlying = self.types.newtypes[*id as usize].underlying.clone();
                let name = self.types.show(&underlying);
                diagnostic.with_help(format!("cast it to its underlying type: ({name}) …"))
            }
            Ty::Bool => diagnostic.with_help("cast it: (bit<1>) …"),
            _ => diagnostic,
        });
        Value::poison(value.span)
    }

    fn boolean_operand(&mut self, value: Value) -> Value {
        if value.ty == Ty::Bool || value.is_poison() {
            return Value {
                ty: Ty::Bool,
                ..value
            };
        }
        let shown = self.quote(&value.ty);
        let diagnostic = Diagnostic::error(
            codes::NOT_A_BOOL,
            value.span,
            format!("a `bool` is needed here, not {shown}"),
        )
        .with_label(format!("this is {shown}"));
        self.report(if value.ty.is_numeric() {
            diagnostic.with_help("compare it: … != 0")
        } else {
            diagnostic
        });
        Value::unknown(Ty::Bool, value.span)
    }

    /// Checks a condition.
    pub(crate) fn condition(&mut self, expr: &'a tree::Expr) -> Value {
        let value = self.expr(expr);
        self.boolean_operand(value)
    }

    /// `op operand`.
    pub(crate) fn unary(
        &mut self,
        op: tree::UnaryOp,
        operand: &'a tree::Expr,
        span: Span,
    ) -> Value {
        let value = self.expr(operand);
        let op = match op {
            tree::UnaryOp::Not => {
                let value = self.boolean_operand(value);
                return self.not(value, span);
            }
            tree::UnaryOp::Plus => {
                let value = self.numeric_operand(value);
                return Value {
                    span,
                    ..self.as_expr_value(value)
                };
            }
            tree::UnaryOp::Complement => ir::UnaryOp::Complement,
            tree::UnaryOp::Negate => ir::UnaryOp::Negate,
        };
        let value = self.numeric_operand(value);
        let (Some(repr), false) = (repr(&value.ty), value.is_poison()) else {
            return Value::poison(span);
        };
        if let Some(number) = value.as_int() {
            return match constant::unary(op, repr, number) {
                Ok(result) => Value::known(value.ty, Known::Int(result), span),
                Err(fault) => self.fault(fault, span),
            };
        }
        self.unary_expr(op, value, span)
    }

    fn unary_expr(&mut self, op: ir::UnaryOp, value: Value, span: Span) -> Value {
        if matches!(value.kind, ValueKind::Poison) {
            return Value { span, ..value };
        }
        let ty = value.ty.clone();
        let inner = self.lower(value);
        let lowered = inner.ty;
        Value::expr(
            ty,
            ir::Expr {
                kind: ir::ExprKind::Unary(op, Box::new(inner)),
                ty: lowered,
            },
            span,
        )
    }

    /// `!value` of a `bool`.
    pub(crate) fn not(&mut self, value: Value, span: Span) -> Value {
        match value.as_bool() {
            Some(flag) => Value::known(Ty::Bool, Known::Bool(!flag), span),
            None => self.unary_expr(ir::UnaryOp::Not, value, span),
        }
    }

    fn fault(&mut self, fault: constant::Fault, span: Span) -> Value {
        self.report(Diagnostic::error(
            codes::INVALID_CONSTANT,
            span,
            fault_message(fault),
        ));
        Value::poison(span)
    }

    /// `left op right`.
    pub(crate) fn binary(
        &mut self,
        op: tree::BinaryOp,
        op_span: Span,
        left: &'a tree::Expr,
        right: &'a tree::Expr,
        span: Span,
    ) -> Value {
        if matches!(op, tree::BinaryOp::And | tree::BinaryOp::Or) {
            return self.short_circuit(op, left, right, span);
        }
        let values = self.sequence(&[left, right]);
        let Ok([left, right]) = <[Value; 2]>::try_from(values) else {
            return Value::poison(span);
        };
        self.binary_values(op, op_span, left, right, span)
    }

    /// `left op right` of two values, where `op` is not `&&` or `||`.
    pub(crate) fn binary_values(
        &mut self,
        op: tree::BinaryOp,
        op_span: Span,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        if left.is_poison() || right.is_poison() {
            return match op {
                tree::BinaryOp::Equal
                | tree::BinaryOp::NotEqual
                | tree::BinaryOp::Less
                | tree::BinaryOp::LessEqual
                | tree::BinaryOp::Greater
                | tree::BinaryOp::GreaterEqual => Value::unknown(Ty::Bool, span),
                _ => Value::poison(span),
            };
        }
        match op {
            tree::BinaryOp::Shl | tree::BinaryOp::Shr => self.shift(op, left, right, span),
            tree::BinaryOp::Concat => self.concat(left, right, span),
            tree::BinaryOp::Equal | tree::BinaryOp::NotEqual => {
                self.equality(op, op_span, left, right, span)
            }
            _ => self.arithmetic(op, op_span, left, right, span),
        }
    }

    fn arithmetic(
        &mut self,
        op: tree::BinaryOp,
        op_span: Span,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        let left = self.numeric_operand(left);
        let right = self.numeric_operand(right);
        if left.is_poison() || right.is_poison() {
            return Value::poison(span);
        }
        let divides = matches!(op, tree::BinaryOp::Div | tree::BinaryOp::Mod);
        if divides && right.as_int().is_some_and(Signed::is_negative) {
            return self.fault(constant::Fault::NegativeDivision, span);
        }
        let Some((left, right)) = self.same_width(left, right, op.symbol(), op_span) else {
            return Value::poison(span);
        };
        let ty = left.ty.clone();
        if divides && matches!(ty, Ty::Int(_)) {
            let shown = self.quote(&ty);
            self.report(
                Diagnostic::error(
                    codes::OPERATOR_NOT_DEFINED,
                    op_span,
                    format!("`{}` is not defined on {shown}", op.symbol()),
                )
                .with_help("division is for unsigned numbers: cast to `bit<W>`"),
            );
            return Value::poison(span);
        }
        let Some((lowered, is_comparison)) = lower_op(op) else {
            return Value::poison(span);
        };
        if divides && right.as_int().is_some_and(num_traits::Zero::is_zero) {
            return self.fault(constant::Fault::DivisionByZero, span);
        }
        if let (Some(a), Some(b), Some(repr)) = (left.as_int(), right.as_int(), repr(&ty)) {
            if is_comparison {
                let result = constant::compare(lowered, a, b).unwrap_or_default();
                return Value::known(Ty::Bool, Known::Bool(result), span);
            }
            return match constant::binary(lowered, repr, a, b) {
                Ok(result) => Value::known(ty, Known::Int(result), span),
                Err(fault) => self.fault(fault, span),
            };
        }
        if is_comparison {
            self.doubt_comparison(lowered, &left, &right, span);
        }
        let result = if is_comparison { Ty::Bool } else { ty };
        self.binary_expr(lowered, left, right, result, span)
    }

    pub(crate) fn binary_expr(
        &mut self,
        op: ir::BinaryOp,
        left: Value,
        right: Value,
        ty: Ty,
        span: Span,
    ) -> Value {
        if matches!(left.kind, ValueKind::Poison) || matches!(right.kind, ValueKind::Poison) {
            return Value::unknown(ty, span);
        }
        let Some(lowered) = self.ir_type(&ty, span) else {
            return Value::unknown(ty, span);
        };
        let left = self.lower(left);
        let right = self.lower(right);
        Value::expr(
            ty,
            ir::Expr {
                kind: ir::ExprKind::Binary(op, Box::new(left), Box::new(right)),
                ty: lowered,
            },
            span,
        )
    }

    /// Brings two numbers to one type: an `int` takes the type of the other.
    fn same_width(
        &mut self,
        left: Value,
        right: Value,
        symbol: &str,
        op_span: Span,
    ) -> Option<(Value, Value)> {
        match (&left.ty, &right.ty) {
            (a, b) if a == b => Some((left, right)),
            (Ty::Integer, ty) => {
                let ty = ty.clone();
                Some((self.coerce(left, &ty), right))
            }
            (ty, Ty::Integer) => {
                let ty = ty.clone();
                Some((left, self.coerce(right, &ty)))
            }
            _ => {
                self.operand_types(&left, &right, symbol, op_span);
                None
            }
        }
    }

    fn operand_types(&mut self, left: &Value, right: &Value, symbol: &str, op_span: Span) {
        let (a, b) = (self.quote(&left.ty), self.quote(&right.ty));
        let diagnostic = Diagnostic::error(
            codes::OPERAND_TYPES,
            op_span,
            format!("the operands of `{symbol}` have different types"),
        )
        .with_secondary(left.span, format!("this is {a}"))
        .with_secondary(right.span, format!("this is {b}"));
        let castable = self.castable(&right.ty, &left.ty);
        self.report(if castable {
            diagnostic.with_help(format!(
                "cast one of them, for example the right one: ({}) …",
                self.types.show(&left.ty)
            ))
        } else {
            diagnostic
        });
    }

    fn equality(
        &mut self,
        op: tree::BinaryOp,
        op_span: Span,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        let Some((left, right)) = self.same_type(left, right, op.symbol(), op_span) else {
            return Value::unknown(Ty::Bool, span);
        };
        if let Ty::Var(_) = left.ty {
            let shown = self.quote(&left.ty);
            self.report(
                Diagnostic::error(
                    codes::OPERATOR_NOT_DEFINED,
                    op_span,
                    format!("values of the type parameter {shown} cannot be compared"),
                )
                .with_help("not every type that it may stand for has `==`"),
            );
            return Value::unknown(Ty::Bool, span);
        }
        let comparable = !matches!(
            left.ty,
            Ty::Void | Ty::Extern(..) | Ty::Block(..) | Ty::List(_) | Ty::Record(..)
        );
        if !comparable {
            let shown = self.quote(&left.ty);
            self.report(Diagnostic::error(
                codes::OPERATOR_NOT_DEFINED,
                op_span,
                format!("values of type {shown} cannot be compared"),
            ));
            return Value::unknown(Ty::Bool, span);
        }
        let negate = op == tree::BinaryOp::NotEqual;
        if let Some(equal) = known_equal(&left, &right) {
            return Value::known(Ty::Bool, Known::Bool(equal != negate), span);
        }
        let lowered = if negate {
            ir::BinaryOp::Ne
        } else {
            ir::BinaryOp::Eq
        };
        self.binary_expr(lowered, left, right, Ty::Bool, span)
    }

    /// Brings two values to one type if one converts implicitly to the other's.
    pub(crate) fn same_type(
        &mut self,
        left: Value,
        right: Value,
        symbol: &str,
        op_span: Span,
    ) -> Option<(Value, Value)> {
        if left.ty == right.ty {
            return Some((left, right));
        }
        let is_open = |ty: &Ty| {
            matches!(
                ty,
                Ty::Integer | Ty::List(_) | Ty::Record(..) | Ty::Dots | Ty::Invalid
            )
        };
        let (a, b) = (self.strip_serial(&left.ty), self.strip_serial(&right.ty));
        if is_open(&right.ty) && !is_open(&left.ty) {
            let target = if right.ty == Ty::Integer {
                a
            } else {
                left.ty.clone()
            };
            let left = Value {
                ty: target.clone(),
                ..left
            };
            let right = self.coerce(right, &target);
            return Some((left, right));
        }
        if is_open(&left.ty) && !is_open(&right.ty) {
            let target = if left.ty == Ty::Integer {
                b
            } else {
                right.ty.clone()
            };
            let right = Value {
                ty: target.clone(),
                ..right
            };
            let left = self.coerce(left, &target);
            return Some((left, right));
        }
        if a == b {
            return Some((Value { ty: a, ..left }, Value { ty: b, ..right }));
        }
        self.operand_types(&left, &right, symbol, op_span);
        None
    }

    /// `left << right` and `left >> right`.
    pub(crate) fn shift(
        &mut self,
        op: tree::BinaryOp,
        left: Value,
        right: Value,
        span: Span,
    ) -> Value {
        let left = self.numeric_operand(left);
        let right = self.numeric_operand(right);
        if left.is_poison() || right.is_poison() {
            return Value::poison(span);
        }
        let lowered = if op == tree::BinaryOp::Shl {
            ir::BinaryOp::Shl
        } else {
            ir::BinaryOp::Shr
        };
        let ty = left.ty.clone();
        // A constant is judged by its value.
        let right = match right.as_int() {
            Some(_) if matches!(right.ty, Ty::Int(_)) => Value {
                ty: Ty::Integer,
                ..right
            },
            _ => right,
        };
        if matches!(right.ty, Ty::Int(_)) {
            let shown = self.quote(&right.ty);
            self.report(
                Diagnostic::error(
                    codes::OPERATOR_NOT_DEFINED,
                    right.span,
                    format!("the amount of a shift is unsigned, not {shown}"),
                )
                .with_help("cast it to `bit<W>`"),
            );
            return Value::unknown(ty, span);
        }
        if let (Some(a), Some(b), Some(repr)) = (left.as_int(), right.as_int(), repr(&ty)) {
            return match constant::binary(lowered, repr, a, b) {
                Ok(result) => Value::known(ty, Known::Int(result), span),
                Err(fault) => self.fault(fault, span),
            };
        }
        if ty == Ty::Integer {
            self.report(
                Diagnostic::error(
                    codes::UNKNOWN_WIDTH,
                    left.span,
                    "the width of the shifted number is not known",
                )
                .with_help("give it a width, for example 32w1"),
            );
            return Value::poison(span);
        }
        self.doubt_shift(&ty, right.as_int(), span);
        let right = match right.as_int() {
            Some(amount) if amount.is_negative() => {
                return self.fault(constant::Fault::NegativeShift, right.span);
            }
            Some(amount) if right.ty == Ty::Integer => {
                let width = (amount.bits() as u32).clamp(1, 2048);
                self.coerce(right, &Ty::Bits(width.max(8)))
            }
            _ => right,
        };
        self.binary_expr(lowered, left, right, ty, span)
    }

    fn concat(&mut self, left: Value, right: Value, span: Span) -> Value {
        if let (ValueKind::Const(Known::Str(first)), ValueKind::Const(Known::Str(second))) =
            (&left.kind, &right.kind)
        {
            let text = format!("{first}{second}");
            return Value::known(Ty::Str, Known::Str(text), span);
        }
        let left = self.numeric_operand(left);
        let right = self.numeric_operand(right);
        if left.is_poison() || right.is_poison() {
            return Value::poison(span);
        }
        let (Some(a), Some(b)) = (left.ty.width(), right.ty.width()) else {
            let open = if left.ty == Ty::Integer {
                &left
            } else {
                &right
            };
            let open = open.span;
            self.report(
                Diagnostic::error(
                    codes::UNKNOWN_WIDTH,
                    open,
                    "the width of this operand of `++` is not known",
                )
                .with_help("give it a width, for example 8w0"),
            );
            return Value::poison(span);
        };
        if a + b > 2048 {
            self.report(Diagnostic::error(
                codes::OUT_OF_RANGE,
                span,
                format!("the result has {} bits, more than 2048", a + b),
            ));
            return Value::poison(span);
        }
        let ty = match left.ty {
            Ty::Int(_) => Ty::Int(a + b),
            _ => Ty::Bits(a + b),
        };
        if let (Some(x), Some(y), Some(repr)) = (left.as_int(), right.as_int(), repr(&ty)) {
            let joined = repr.wrap(&constant::concat(x, a, y, b));
            return Value::known(ty, Known::Int(joined), span);
        }
        self.binary_expr(ir::BinaryOp::Concat, left, right, ty, span)
    }
}

/// The IR operator, and whether it is a comparison.
fn lower_op(op: tree::BinaryOp) -> Option<(ir::BinaryOp, bool)> {
    Some(match op {
        tree::BinaryOp::Mul => (ir::BinaryOp::Mul, false),
        tree::BinaryOp::Div => (ir::BinaryOp::Div, false),
        tree::BinaryOp::Mod => (ir::BinaryOp::Mod, false),
        tree::BinaryOp::Add => (ir::BinaryOp::Add, false),
        tree::BinaryOp::Sub => (ir::BinaryOp::Sub, false),
        tree::BinaryOp::AddSat => (ir::BinaryOp::AddSat, false),
        tree::BinaryOp::SubSat => (ir::BinaryOp::SubSat, false),
        tree::BinaryOp::BitAnd => (ir::BinaryOp::And, false),
        tree::BinaryOp::BitOr => (ir::BinaryOp::Or, false),
        tree::BinaryOp::BitXor => (ir::BinaryOp::Xor, false),
        tree::BinaryOp::Less => (ir::BinaryOp::Lt, true),
        tree::BinaryOp::LessEqual => (ir::BinaryOp::Le, true),
        tree::BinaryOp::Greater => (ir::BinaryOp::Gt, true),
        tree::BinaryOp::GreaterEqual => (ir::BinaryOp::Ge, true),
        tree::BinaryOp::Concat
        | tree::BinaryOp::Shl
        | tree::BinaryOp::Shr
        | tree::BinaryOp::Equal
        | tree::BinaryOp::NotEqual
        | tree::BinaryOp::And
        | tree::BinaryOp::Or => return None,
    })
}

/// True if two compile-time values of one type are equal; `None` if either depends on the packet.
fn known_equal(left: &Value, right: &Value) -> Option<bool> {
    match (&left.kind, &right.kind) {
        (ValueKind::Const(left), ValueKind::Const(right)) => Some(left == right),
        (ValueKind::List(left), ValueKind::List(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .try_fold(true, |equal, (left, right)| {
                Some(known_equal(left, right)? && equal)
            }),
        _ => None,
    }
}
