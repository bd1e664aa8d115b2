//! Expressions of which only a part is evaluated: `&&`, `||` and `?:`.

use crate::checker::Checker;
use crate::codes;
use crate::effects::has_effects;
use crate::expr::is_known;
use crate::types::Ty;
use crate::value::{Access, Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree;

impl<'a> Checker<'a> {
    pub(crate) fn short_circuit(
        &mut self,
        op: tree::BinaryOp,
        left: &'a tree::Expr,
        right: &'a tree::Expr,
        span: Span,
    ) -> Value {
        let left = self.condition(left);
        let effects = has_effects(right);
        let ends = op == tree::BinaryOp::Or;
        let (right, statements) = self.nested(|checker| checker.condition(right));
        if let Some(flag) = left.as_bool() {
            if flag == ends {
                return Value { span, ..left };
            }
            self.callable.block.extend(statements);
            return Value {
                span,
                ..self.as_expr_value(right)
            };
        }
        if !effects || statements.is_empty() {
            self.callable.block.extend(statements);
            if let Some(flag) = right.as_bool() {
                return if flag == ends {
                    Value { span, ..right }
                } else {
                    Value {
                        span,
                        ..self.as_expr_value(left)
                    }
                };
            }
            let lowered = if ends {
                ir::BinaryOp::LogicalOr
            } else {
                ir::BinaryOp::LogicalAnd
            };
            return self.binary_expr(lowered, left, right, Ty::Bool, span);
        }
        let result = ir::Place::var(self.temporary(ir::Type::Bool));
        let left = self.lower(left);
        self.emit(ir::Stmt::Assign(result.clone(), left));
        let right = self.lower(right);
        let mut evaluated = statements;
        evaluated.push(ir::Stmt::Assign(result.clone(), right));
        let read = ir::Expr {
            kind: ir::ExprKind::Read(result.clone()),
            ty: ir::Type::Bool,
        };
        let (then, otherwise) = if ends {
            (Vec::new(), evaluated)
        } else {
            (evaluated, Vec::new())
        };
        self.emit(ir::Stmt::If {
            condition: read,
            then,
            otherwise,
        });
        Value {
            ty: Ty::Bool,
            kind: ValueKind::Place(result, Access::Temporary),
            span,
        }
    }

    /// `condition ? then : otherwise`.
    pub(crate) fn conditional(
        &mut self,
        condition: &'a tree::Expr,
        then: &'a tree::Expr,
        otherwise: &'a tree::Expr,
        span: Span,
    ) -> Value {
        let condition = self.condition(condition);
        let (then, then_statements) = self.nested(|checker| checker.expr(then));
        let (otherwise, otherwise_statements) = self.nested(|checker| checker.expr(otherwise));
        if then.is_poison() || otherwise.is_poison() {
            return Value::poison(span);
        }
        let Some((then, otherwise)) = self.same_type(then, otherwise, "?:", span) else {
            return Value::poison(span);
        };
        let ty = then.ty.clone();
        if let Some(flag) = condition.as_bool() {
            let (chosen, statements) = if flag {
                (then, then_statements)
            } else {
                (otherwise, otherwise_statements)
            };
            self.callable.block.extend(statements);
            return Value {
                span,
                ..self.as_expr_value(chosen)
            };
        }
        if ty == Ty::Integer {
            self.report(
                Diagnostic::error(
                    codes::UNKNOWN_WIDTH,
                    span,
                    "the width of both alternatives is not known",
                )
                .with_help("give one of them a width, for example 8w0"),
            );
            return Value::poison(span);
        }
        let Some(lowered) = self.ir_type(&ty, span) else {
            return Value::unknown(ty, span);
        };
        let unknown =
            matches!(condition.kind, ValueKind::Poison) && is_known(&then) && is_known(&otherwise);
        if unknown {
            return Value::unknown(ty, span);
        }
        let condition = self.lower(condition);
        if then_statements.is_empty() && otherwise_statements.is_empty() {
            let then = self.lower(then);
            let otherwise = self.lower(otherwise);
            return Value::expr(
                ty,
                ir::Expr {
                    kind: ir::ExprKind::Mux {
                        condition: Box::new(condition),
                        then: Box::new(then),
                        otherwise: Box::new(otherwise),
                    },
                    ty: lowered,
                },
                span,
            );
        }
        let result = ir::Place::var(self.temporary(lowered));
        let mut side = |statements: Vec<ir::Stmt>, value: Value| {
            let mut statements = statements;
            let expr = self.lower(value);
            statements.push(ir::Stmt::Assign(result.clone(), expr));
            statements
        };
        let then = side(then_statements, then);
        let otherwise = side(otherwise_statements, otherwise);
        self.emit(ir::Stmt::If {
            condition,
            then,
            otherwise,
        });
        Value {
            ty,
            kind: ValueKind::Place(result, Access::Temporary),
            span,
        }
    }
}
