//! Warnings about operations and cases that are legal but do nothing.

use crate::checker::Checker;
use crate::codes;
use crate::types::Ty;
use crate::value::Value;
use num_bigint::BigInt;
use num_traits::{One, Zero};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{BinaryOp, KeySet};
use std::collections::BTreeMap;

/// The cases of a `select`, or the entries of a table, so far.
#[derive(Default)]
pub(crate) struct Cases {
    seen: BTreeMap<Vec<KeySet>, Span>,
    all: Option<Span>,
}

impl Cases {
    /// Takes one more, and gives the place of an earlier one that leaves it nothing.
    pub(crate) fn take(&mut self, sets: &[KeySet], span: Span) -> Option<Span> {
        if self.all.is_some() {
            return self.all;
        }
        if sets.iter().all(|set| *set == KeySet::Any) {
            self.all = Some(span);
            return None;
        }
        let earlier = self.seen.get(sets).copied();
        if earlier.is_none() {
            self.seen.insert(sets.to_vec(), span);
        }
        earlier
    }
}

impl Checker<'_> {
    /// Warns of a case or entry behind one that takes all that it would.
    pub(crate) fn unreachable_case(&mut self, what: &str, span: Span, earlier: Span) {
        self.report(
            Diagnostic::warning(
                codes::UNREACHABLE_CASE,
                span,
                format!("this {what} can never match"),
            )
            .with_secondary(earlier, "this one takes all that it would")
            .with_help("remove it, or put it before the other"),
        );
    }

    /// Warns of a shift by the width of the shifted number or more.
    pub(crate) fn doubt_shift(&mut self, left: &Ty, amount: Option<&BigInt>, span: Span) {
        let (Some(width), Some(amount)) = (left.width(), amount) else {
            return;
        };
        if *amount < BigInt::from(width) {
            return;
        }
        let shown = self.quote(left);
        self.report(
            Diagnostic::warning(
                codes::SHIFT_PAST_WIDTH,
                span,
                format!("shifting a number of type {shown} by {amount} moves every bit out"),
            )
            .with_help("to make it wider, cast it before the shift"),
        );
    }

    /// Warns of a comparison whose result is the same for every number of the type.
    pub(crate) fn doubt_comparison(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) {
        let (op, bound) = match (left.as_int(), right.as_int()) {
            (None, Some(bound)) => (op, bound),
            (Some(bound), None) => (mirrored(op), bound),
            _ => return,
        };
        let Some((least, greatest)) = range(&left.ty) else {
            return;
        };
        let always = match op {
            BinaryOp::Lt if *bound <= least => false,
            BinaryOp::Lt if *bound > greatest => true,
            BinaryOp::Le if *bound < least => false,
            BinaryOp::Le if *bound >= greatest => true,
            BinaryOp::Gt if *bound >= greatest => false,
            BinaryOp::Gt if *bound < least => true,
            BinaryOp::Ge if *bound > greatest => false,
            BinaryOp::Ge if *bound <= least => true,
            _ => return,
        };
        let shown = self.quote(&left.ty);
        self.report(
            Diagnostic::warning(
                codes::CONSTANT_COMPARISON,
                span,
                format!("this comparison is always {always}"),
            )
            .with_note(format!(
                "numbers of type {shown} lie between {least} and {greatest}"
            )),
        );
    }
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        other => other,
    }
}

/// The least and the greatest number of a type.
fn range(ty: &Ty) -> Option<(BigInt, BigInt)> {
    let one = BigInt::one();
    match ty {
        Ty::Bits(width) => Some((BigInt::zero(), (&one << *width) - &one)),
        Ty::Int(width) => {
            let half = &one << width.saturating_sub(1);
            Some((-&half, half - one))
        }
        _ => None,
    }
}
