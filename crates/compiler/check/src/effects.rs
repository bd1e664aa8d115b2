//! Detection of expressions that may change something.

use stateplane_syntax::tree::{Argument, Expr, ExprKind};

/// Methods that only look.
const PURE: [&str; 6] = [
    "isValid",
    "length",
    "minSizeInBits",
    "minSizeInBytes",
    "maxSizeInBits",
    "maxSizeInBytes",
];

/// True if evaluating the expression may have a side effect. Every call but of the methods that
/// only look is taken to have one.
#[must_use]
pub fn has_effects(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Malformed
        | ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::Bool(_)
        | ExprKind::Dots
        | ExprKind::Invalid
        | ExprKind::This
        | ExprKind::Name(_)
        | ExprKind::Type(_) => false,
        ExprKind::Member { base, .. } => has_effects(base),
        ExprKind::Index { base, index } => has_effects(base) || has_effects(index),
        ExprKind::Slice { base, .. } => has_effects(base),
        ExprKind::PlusSlice { base, low, .. } => has_effects(base) || has_effects(low),
        ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => has_effects(operand),
        ExprKind::Binary { left, right, .. } => has_effects(left) || has_effects(right),
        ExprKind::Conditional {
            condition,
            then,
            otherwise,
        } => has_effects(condition) || has_effects(then) || has_effects(otherwise),
        ExprKind::Call { callee, args, .. } => match &callee.kind {
            ExprKind::Member { base, member } if PURE.contains(&member.as_str()) => {
                has_effects(base) || args.iter().any(argument_has_effects)
            }
            _ => true,
        },
        ExprKind::Construct { .. } => true,
        ExprKind::List(elements) => elements.iter().any(has_effects),
        ExprKind::Struct { fields, .. } => fields.iter().any(|field| has_effects(&field.value)),
    }
}

/// True if evaluating the argument may have a side effect.
pub(crate) fn argument_has_effects(argument: &Argument) -> bool {
    argument.value.as_ref().is_some_and(has_effects)
}
