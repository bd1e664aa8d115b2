//! Loops (spec §11.8).

use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::expr::bits;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Access, Value, ValueKind};
use num_bigint::BigUint;
use num_traits::{Signed, ToPrimitive};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ForCollection};

/// Lower bound of the rounds that loops begin in one run of some statements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// Minimum number of rounds, if the loop runs to its end.
    pub certain: u64,
    /// A statement may leave the loops early, or change variables of the control around.
    pub may_leave: bool,
    /// True if `continue` may skip some of them.
    pub may_skip: bool,
}

/// Watches the body of a loop.
struct Watch {
    around: Rounds,
    /// Writes before it.
    before: usize,
    inside: Rounds,
    /// Variables that the loop writes.
    written: Vec<ir::VarId>,
}

impl Watch {
    fn begin(checker: &mut Checker<'_>) -> Watch {
        Watch {
            around: std::mem::take(&mut checker.callable.rounds),
            before: checker.callable.written.len(),
            inside: Rounds::default(),
            written: Vec::new(),
        }
    }

    fn end(&mut self, checker: &Checker<'_>) {
        self.inside = checker.callable.rounds;
        self.written = checker.callable.written[self.before..].to_vec();
    }
}

/// The numbers in a range of constants.
fn between(first: &Value, last: &Value) -> Option<u64> {
    let count = last.as_int()? - first.as_int()? + 1u32;
    Some(
        count
            .to_u64()
            .unwrap_or(if count.is_negative() { 0 } else { u64::MAX }),
    )
}

/// The variable that a loop counts in, and its rounds, or more than [`ir::LOOP_LIMIT`] of
/// them: if it starts at a constant, is compared with one, and then one is added or
/// subtracted.
fn counted(start: &[ir::Stmt], body: &[ir::Stmt], update: &[ir::Stmt]) -> Option<(ir::VarId, u64)> {
    let [ir::Stmt::Assign(target, next)] = update else {
        return None;
    };
    let var = target.var;
    let of_var = |expr: &ir::Expr| matches!(&expr.kind, ir::ExprKind::Read(place) if *place == ir::Place::var(var));
    let number = |expr: &ir::Expr| match &expr.kind {
        ir::ExprKind::Const(ir::Const::Bits(number)) => number.to_u64(),
        _ => None,
    };
    let ir::Type::Bits(width @ 1..=64) = next.ty else {
        return None;
    };
    let ir::ExprKind::Binary(step, left, right) = &next.kind else {
        return None;
    };
    if !target.path.is_empty() || !of_var(left) {
        return None;
    }
    let by = number(right)?;
    let mask = u64::MAX >> (64 - width);
    let next = |value: u64| match step {
        ir::BinaryOp::Add => Some(value.wrapping_add(by) & mask),
        ir::BinaryOp::Sub => Some(value.wrapping_sub(by) & mask),
        _ => None,
    };
    let Some(ir::Stmt::If { condition, .. }) = body.first() else {
        return None;
    };
    let ir::ExprKind::Unary(ir::UnaryOp::Not, condition) = &condition.kind else {
        return None;
    };
    let ir::ExprKind::Binary(compare, left, right) = &condition.kind else {
        return None;
    };
    if !of_var(left) {
        return None;
    }
    let end = number(right)?;
    let goes_on = |value: u64| match compare {
        ir::BinaryOp::Lt => Some(value < end),
        ir::BinaryOp::Le => Some(value <= end),
        ir::BinaryOp::Gt => Some(value > end),
        ir::BinaryOp::Ge => Some(value >= end),
        ir::BinaryOp::Ne => Some(value != end),
        _ => None,
    };
    let first = start.iter().rev().find_map(|stmt| match stmt {
        ir::Stmt::Assign(place, value) if place.var == var => Some(value),
        _ => None,
    });
    let mut value = number(first?)?;
    let mut rounds = 0;
    while rounds <= u64::from(ir::LOOP_LIMIT) && goes_on(value)? {
        rounds += 1;
        value = next(value)?;
    }
    Some((var, rounds))
}

impl<'a> Checker<'a> {
    /// `break` and `continue`.
    pub(crate) fn leave_round(&mut self, stmt: ir::Stmt, span: Span) {
        if self.callable.loops == 0 {
            self.misplaced(span, "`break` or `continue`", "only loops have them");
        } else {
            self.emit(stmt);
        }
    }

    /// Runs `f`, which makes the rounds of a loop, and returns their statements.
    fn rounds<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> (R, Vec<ir::Stmt>) {
        self.callable.loops += 1;
        let made = self.nested(|checker| checker.scoped(f));
        self.callable.loops -= 1;
        made
    }

    /// `for (init; condition; update) body`.
    pub(crate) fn for_loop(
        &mut self,
        init: &'a [tree::Stmt],
        condition: &'a tree::Expr,
        update: &'a [tree::Stmt],
        body: &'a tree::Stmt,
    ) {
        self.scoped(|checker| {
            let (declared, before) = (checker.out.vars.len(), checker.callable.block.len());
            checker.statements(init);
            let start = checker.callable.block[before..].to_vec();
            let mut watch = Watch::begin(checker);
            let ((), rounds) = checker.rounds(|checker| {
                let condition = checker.condition(condition);
                match condition.as_bool() {
                    Some(true) => {}
                    Some(false) => checker.emit(ir::Stmt::Break),
                    None => {
                        let condition = checker.lower(condition);
                        checker.emit(break_unless(condition));
                    }
                }
                checker.statements(std::slice::from_ref(body));
                watch.end(checker);
            });
            let ((), update) = checker.rounds(|checker| checker.statements(update));
            let count = counted(&start, &rounds, &update).filter(|(var, _)| {
                let own = var.index() >= declared;
                !watch.written.contains(var) && (own || !watch.inside.may_leave)
            });
            checker.bound(count.map(|(_, rounds)| rounds), &watch, condition.span);
            checker.emit(ir::Stmt::Loop {
                body: rounds,
                update,
            });
        });
    }

    /// Notes how many rounds a loop has, if that is known, and refuses too many.
    fn bound(&mut self, rounds: Option<u64>, watch: &Watch, span: Span) {
        let inside = watch.inside;
        self.callable.rounds = watch.around;
        self.callable.rounds.may_leave |= inside.may_leave;
        let Some(rounds) = rounds.filter(|_| !inside.may_leave) else {
            return;
        };
        let within = if inside.may_skip { 0 } else { inside.certain };
        // The last round finds only that the loop is at its end.
        let all = rounds
            .saturating_mul(within.saturating_add(1))
            .saturating_add(1);
        if all <= u64::from(ir::LOOP_LIMIT) {
            let certain = &mut self.callable.rounds.certain;
            *certain = certain.saturating_add(all);
        } else {
            // Loops around it are not refused for the same rounds.
            let nested = if within > 0 { " with those in it" } else { "" };
            self.report(
                Diagnostic::error(
                    codes::LOOP_BOUND,
                    span,
                    format!("this loop{nested} has more rounds than a packet may begin"),
                )
                .with_note(format!(
                    "a packet may begin {} rounds in a parser or control with what it calls, that \
                     at each loop's end included",
                    ir::LOOP_LIMIT
                ))
                .with_help("give it a smaller bound, or spread the work over several packets"),
            );
        }
    }

    /// `for (ty name in collection) body`.
    pub(crate) fn for_in(
        &mut self,
        variable: &'a tree::VariableDecl,
        collection: &'a ForCollection,
        body: &'a tree::Stmt,
    ) {
        let ty = self.resolve(&variable.ty);
        match collection {
            ForCollection::Range { low, high } => self.for_range(variable, &ty, low, high, body),
            ForCollection::Elements(elements) => {
                self.for_elements(variable, &ty, elements, body);
            }
        }
    }

    /// The variable of a loop, which gets `value` at the start of each round.
    fn loop_variable(&mut self, variable: &'a tree::VariableDecl, ty: &Ty, value: Value) {
        let span = variable.name.span;
        let kind = match self.ir_type(ty, variable.ty.span) {
            Some(lowered) if *ty != Ty::Poison => {
                let place = ir::Place::var(self.local(variable.name.as_str(), lowered));
                let value = self.coerce(value, ty);
                let expr = self.lower(value);
                self.emit(ir::Stmt::Assign(place.clone(), expr));
                ValueKind::Place(place, Access::Writable)
            }
            _ => ValueKind::Poison,
        };
        let ty = ty.clone();
        let value = Value { ty, kind, span };
        self.declare(&variable.name, Entity::Value(value));
    }

    /// Both bounds are evaluated once. The loop counts in a variable of its own, which
    /// ends at the upper bound even where that is the type's greatest value.
    fn for_range(
        &mut self,
        variable: &'a tree::VariableDecl,
        ty: &Ty,
        low: &'a tree::Expr,
        high: &'a tree::Expr,
        body: &'a tree::Stmt,
    ) {
        let mut bounds = self.sequence(&[low, high]);
        let (Some(last), Some(first)) = (bounds.pop(), bounds.pop()) else {
            return;
        };
        let bits = matches!(self.strip_serial(ty), Ty::Bits(_) | Ty::Int(_));
        if !bits && *ty != Ty::Poison && !self.types.is_open(ty) {
            let shown = self.quote(ty);
            self.report(
                Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    variable.ty.span,
                    format!("a range has no values of type {shown}"),
                )
                .with_help("use a `bit<W>` or `int<W>`"),
            );
        }
        let first = self.coerce(first, ty);
        let last = self.coerce(last, ty);
        let lowered = bits.then(|| self.ir_type(ty, variable.ty.span)).flatten();
        let Some(lowered) = lowered else {
            self.broken_loop(variable, ty, body);
            return;
        };
        let read = |var: ir::VarId, ty: ir::Type| ir::Expr {
            kind: ir::ExprKind::Read(ir::Place::var(var)),
            ty,
        };
        let compare = |op, left, right| ir::Expr {
            kind: ir::ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty: ir::Type::Bool,
        };
        let known = between(&first, &last);
        let [counter, end] = [first, last].map(|bound| {
            let var = self.temporary(lowered);
            let bound = self.lower(bound);
            self.emit(ir::Stmt::Assign(ir::Place::var(var), bound));
            var
        });
        let more = self.temporary(ir::Type::Bool);
        let mut watch = Watch::begin(self);
        let any = compare(ir::BinaryOp::Le, read(counter, lowered), read(end, lowered));
        self.emit(ir::Stmt::Assign(ir::Place::var(more), any));
        let ((), rounds) = self.rounds(|checker| {
            checker.emit(break_unless(read(more, ir::Type::Bool)));
            let place = ir::Place::var(counter);
            let value = Value {
                ty: ty.clone(),
                kind: ValueKind::Place(place, Access::Temporary),
                span: variable.name.span,
            };
            checker.loop_variable(variable, ty, value);
            checker.statements(std::slice::from_ref(body));
            watch.end(checker);
        });
        self.bound(known, &watch, low.span.to(high.span));
        let one = ir::Expr {
            kind: ir::ExprKind::Const(ir::Const::Bits(BigUint::from(1u32))),
            ty: lowered,
        };
        let next = ir::Expr {
            kind: ir::ExprKind::Binary(
                ir::BinaryOp::Add,
                Box::new(read(counter, lowered)),
                Box::new(one),
            ),
            ty: lowered,
        };
        let unfinished = compare(ir::BinaryOp::Ne, read(counter, lowered), read(end, lowered));
        self.emit(ir::Stmt::Loop {
            body: rounds,
            update: vec![
                ir::Stmt::Assign(ir::Place::var(more), unfinished),
                ir::Stmt::Assign(ir::Place::var(counter), next),
            ],
        });
    }

    fn for_elements(
        &mut self,
        variable: &'a tree::VariableDecl,
        ty: &Ty,
        collection: &'a tree::Expr,
        body: &'a tree::Stmt,
    ) {
        let value = self.expr(collection);
        // Later rounds do not see changes by the body.
        let value = self.settle(value);
        let (count, is_stack) = match (&value.ty, &value.kind) {
            (Ty::Stack(_, size), _) => (*size, true),
            (_, ValueKind::List(elements)) => (elements.len() as u32, false),
            (ty, ValueKind::Poison) if *ty == Ty::Poison || self.types.is_open(ty) => {
                self.broken_loop(variable, &ty.clone(), body);
                return;
            }
            _ => {
                let shown = self.quote(&value.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_INDEXABLE,
                        collection.span,
                        format!("a value of type {shown} has no elements to run over"),
                    )
                    .with_help("use a header stack, a list or a range: low .. high"),
                );
                self.broken_loop(variable, ty, body);
                return;
            }
        };
        let counter = self.temporary(ir::Type::Bits(32));
        let read = ir::Expr {
            kind: ir::ExprKind::Read(ir::Place::var(counter)),
            ty: ir::Type::Bits(32),
        };
        self.emit(ir::Stmt::Assign(ir::Place::var(counter), bits(0, 32)));
        let mut watch = Watch::begin(self);
        let ((), rounds) = self.rounds(|checker| {
            checker.emit(break_unless(ir::Expr {
                kind: ir::ExprKind::Binary(
                    ir::BinaryOp::Lt,
                    Box::new(read.clone()),
                    Box::new(bits(count, 32)),
                ),
                ty: ir::Type::Bool,
            }));
            let span = variable.name.span;
            let element = if is_stack {
                checker.element_at(value, read.clone(), span)
            } else {
                checker.listed_at(value, ty, read.clone(), span)
            };
            checker.loop_variable(variable, ty, element);
            checker.statements(std::slice::from_ref(body));
            watch.end(checker);
        });
        self.bound(Some(u64::from(count)), &watch, collection.span);
        let next = ir::Expr {
            kind: ir::ExprKind::Binary(ir::BinaryOp::Add, Box::new(read), Box::new(bits(1, 32))),
            ty: ir::Type::Bits(32),
        };
        self.emit(ir::Stmt::Loop {
            body: rounds,
            update: vec![ir::Stmt::Assign(ir::Place::var(counter), next)],
        });
    }

    fn element_at(&mut self, stack: Value, index: ir::Expr, span: Span) -> Value {
        let Ty::Stack(element, _) = &stack.ty else {
            return Value::poison(span);
        };
        let ty = (**element).clone();
        let Some(mut place) = self.materialise(stack) else {
            return Value::unknown(ty, span);
        };
        place.path.push(ir::Projection::Index(Box::new(index)));
        let kind = ValueKind::Place(place, Access::Temporary);
        Value { ty, kind, span }
    }

    /// The element of a list that `index` tells, chosen with a `switch`.
    fn listed_at(&mut self, list: Value, ty: &Ty, index: ir::Expr, span: Span) -> Value {
        let ValueKind::List(elements) = list.kind else {
            return Value::poison(span);
        };
        let (place, chosen) = self.temporary_value(ty, span);
        let mut cases = Vec::new();
        for (number, element) in (0u32..).zip(elements) {
            let ((), statements) = self.nested(|checker| {
                let element = checker.coerce(element, ty);
                if let Some(place) = &place {
                    let expr = checker.lower(element);
                    checker.emit(ir::Stmt::Assign(place.clone(), expr));
                }
            });
            cases.push((vec![BigUint::from(number)], statements));
        }
        self.emit(ir::Stmt::Switch {
            value: index,
            cases,
            default: Vec::new(),
        });
        chosen
    }

    /// Checks the body of a loop whose collection has an error.
    fn broken_loop(&mut self, variable: &'a tree::VariableDecl, ty: &Ty, body: &'a tree::Stmt) {
        self.rounds(|checker| {
            let value = Value::unknown(ty.clone(), variable.name.span);
            checker.declare(&variable.name, Entity::Value(value));
            checker.statements(std::slice::from_ref(body));
        });
    }

    /// True if a declaration may be reached again within one run of its callable, so that its
    /// variable has to be reset.
    pub(crate) fn declares_again(&self) -> bool {
        self.callable.loops > 0 || matches!(self.callable.kind, CallableKind::Parser)
    }
}

fn break_unless(condition: ir::Expr) -> ir::Stmt {
    ir::Stmt::If {
        condition: ir::Expr {
            kind: ir::ExprKind::Unary(ir::UnaryOp::Not, Box::new(condition)),
            ty: ir::Type::Bool,
        },
        then: vec![ir::Stmt::Break],
        otherwise: Vec::new(),
    }
}
