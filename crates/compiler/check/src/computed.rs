//! Key sets of `select` that depend on the packet (spec §8.14): each is a condition, which is one
//! more key.

use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::effects::has_effects;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Value, ValueKind};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir as ir;
use stateplane_syntax::tree::{BinaryOp, Expr, ExprKind, Keyset, KeysetElement, KeysetElementKind};

impl<'a> Checker<'a> {
    /// True if an element of the case depends on the packet.
    pub(crate) fn has_computed(&self, keyset: &Keyset) -> bool {
        keyset
            .elements
            .iter()
            .any(|element| self.is_computed(element))
    }

    /// True if the element depends on the packet. Only in parsers: entries are constant.
    pub(crate) fn is_computed(&self, element: &KeysetElement) -> bool {
        if !matches!(self.callable.kind, CallableKind::Parser) {
            return false;
        }
        match &element.kind {
            KeysetElementKind::Default | KeysetElementKind::DontCare => false,
            KeysetElementKind::Value(value) => self.varies(value),
            KeysetElementKind::Mask { value, mask } => self.varies(value) || self.varies(mask),
            KeysetElementKind::Range { low, high } => self.varies(low) || self.varies(high),
        }
    }

    /// True if the expression reads something that is not known at compile time.
    fn varies(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Malformed
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Bool(_)
            | ExprKind::Dots
            | ExprKind::Invalid
            | ExprKind::This
            | ExprKind::Construct { .. }
            | ExprKind::Type(_) => false,
            ExprKind::Name(path) => matches!(
                self.find(path).map(|symbol| &symbol.entity),
                Some(Entity::Value(Value {
                    kind: ValueKind::Place(..) | ValueKind::Expr(_),
                    ..
                }))
            ),
            ExprKind::Member { base, .. } => self.varies(base),
            ExprKind::Index { base, index } => self.varies(base) || self.varies(index),
            ExprKind::Slice { base, .. } => self.varies(base),
            ExprKind::PlusSlice { base, low, .. } => self.varies(base) || self.varies(low),
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => {
                self.varies(operand)
            }
            ExprKind::Binary { left, right, .. } => self.varies(left) || self.varies(right),
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => self.varies(condition) || self.varies(then) || self.varies(otherwise),
            ExprKind::Call { callee, .. } => has_effects(expr) || self.varies(callee),
            ExprKind::List(elements) => elements.iter().any(|element| self.varies(element)),
            ExprKind::Struct { fields, .. } => fields.iter().any(|field| self.varies(&field.value)),
        }
    }

    /// The condition that the elements of a case which depend on the packet hold the keys;
    /// `None` if no element does.
    pub(crate) fn computed_sets(&mut self, keyset: &'a Keyset, keys: &[Value]) -> Option<ir::Expr> {
        if keyset.elements.len() != keys.len() {
            // Its number of elements is reported, or it has a value set.
            return None;
        }
        let mut all: Option<Value> = None;
        for (element, key) in keyset.elements.iter().zip(keys) {
            if !self.is_computed(element) {
                continue;
            }
            let holds = self.computed(element, key.clone());
            all = Some(match all {
                None => holds,
                Some(before) => {
                    let span = element.span;
                    self.binary_expr(ir::BinaryOp::LogicalAnd, before, holds, Ty::Bool, span)
                }
            });
        }
        all.filter(|all| !matches!(all.kind, ValueKind::Poison))
            .map(|all| self.lower(all))
    }

    fn computed(&mut self, element: &'a KeysetElement, key: Value) -> Value {
        let span = element.span;
        match &element.kind {
            KeysetElementKind::Value(expr) => match self.operand(expr, &key) {
                Some(value) => self.compared(BinaryOp::Equal, key, value, span),
                None => Value::unknown(Ty::Bool, span),
            },
            KeysetElementKind::Mask { value, mask } => {
                let (value, mask) = (self.operand(value, &key), self.operand(mask, &key));
                let (Some(value), Some(mask)) = (value, mask) else {
                    return Value::unknown(Ty::Bool, span);
                };
                let and = BinaryOp::BitAnd;
                let found = self.binary_values(and, span, key, mask.clone(), span);
                let wanted = self.binary_values(and, span, value, mask, span);
                self.compared(BinaryOp::Equal, found, wanted, span)
            }
            KeysetElementKind::Range { low, high } => {
                let (low, high) = (self.operand(low, &key), self.operand(high, &key));
                let (Some(low), Some(high)) = (low, high) else {
                    return Value::unknown(Ty::Bool, span);
                };
                let above = self.compared(BinaryOp::LessEqual, low, key.clone(), span);
                let below = self.compared(BinaryOp::LessEqual, key, high, span);
                self.binary_expr(ir::BinaryOp::LogicalAnd, above, below, Ty::Bool, span)
            }
            KeysetElementKind::Default | KeysetElementKind::DontCare => {
                Value::unknown(Ty::Bool, span)
            }
        }
    }

    /// An operand of a set for a key, in the key's type.
    fn operand(&mut self, expr: &'a Expr, key: &Value) -> Option<Value> {
        if has_effects(expr) {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_CALL,
                    expr.span,
                    "a set of values to match cannot have calls in it",
                )
                .with_help("call it before, and write its result"),
            );
            return None;
        }
        if let ExprKind::List(_) = expr.kind {
            self.unsupported(
                expr.span,
                "a list that depends on the packet",
                "select on the members of the key one by one",
            );
            return None;
        }
        let value = self.expr(expr);
        (!value.is_poison()).then(|| self.coerce(value, &key.ty))
    }

    fn compared(&mut self, op: BinaryOp, left: Value, right: Value, span: Span) -> Value {
        self.binary_values(op, span, left, right, span)
    }
}
