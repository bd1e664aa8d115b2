//! Application of tables.

use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Access, Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExprKind};

impl<'a> Checker<'a> {
    /// The table that an expression applies, with the place of the call.
    pub(crate) fn table_application(
        &mut self,
        expr: &'a tree::Expr,
    ) -> Option<(u32, &'a tree::Expr)> {
        let ExprKind::Call { callee, .. } = &expr.kind else {
            return None;
        };
        let ExprKind::Member { base, member } = &callee.kind else {
            return None;
        };
        let ExprKind::Name(path) = &base.kind else {
            return None;
        };
        match self.find(path).map(|symbol| &symbol.entity) {
            Some(Entity::Table(table)) if member.as_str() == "apply" => Some((*table, expr)),
            _ => None,
        }
    }

    /// Emits the application of a table, the side effects of its keys first.
    pub(crate) fn emit_apply(
        &mut self,
        table: u32,
        hit: Option<ir::Place>,
        action_run: Option<ir::Place>,
    ) {
        self.callable.rounds.may_leave = true;
        let prelude = self.made.tables[table as usize].prelude.clone();
        self.callable.block.extend(prelude.iter().cloned());
        self.emit(ir::Stmt::Apply {
            table: ir::TableId(table),
            hit,
            action_run,
        });
    }

    pub(crate) fn may_apply_table(
        &mut self,
        table: u32,
        args: &'a [tree::Argument],
        span: Span,
    ) -> bool {
        if !matches!(self.callable.kind, CallableKind::Control) {
            let declared = self.made.tables[table as usize].span;
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_CALL,
                    span,
                    "a table cannot be applied here",
                )
                .with_secondary(declared, "the table is declared here")
                .with_help("tables are applied in the `apply` block of their control"),
            );
            return false;
        }
        if let Some(arg) = args.first() {
            self.report(Diagnostic::error(
                codes::ARGUMENTS,
                arg.span,
                "`apply` of a table takes no arguments",
            ));
            return false;
        }
        true
    }

    pub(crate) fn apply_table(&mut self, table: u32, args: &'a [tree::Argument], span: Span) {
        if self.may_apply_table(table, args, span) {
            self.emit_apply(table, None, None);
        }
    }

    /// `table.apply().member`.
    pub(crate) fn apply_result(
        &mut self,
        table: u32,
        call: &'a tree::Expr,
        member: &'a tree::Ident,
        span: Span,
    ) -> Value {
        let negate = match member.as_str() {
            "hit" => false,
            "miss" => true,
            "action_run" => {
                self.report(
                    Diagnostic::error(
                        codes::MISPLACED_CALL,
                        span,
                        "`action_run` is only the subject of a `switch`",
                    )
                    .with_help("write switch (t.apply().action_run) { … }"),
                );
                return Value::poison(span);
            }
            _ => {
                self.no_method(
                    "the result of `apply`",
                    member,
                    &["hit", "miss", "action_run"],
                );
                return Value::poison(span);
            }
        };
        let args = match &call.kind {
            ExprKind::Call { args, .. } => args.as_slice(),
            _ => &[],
        };
        if !self.may_apply_table(table, args, call.span) {
            return Value::unknown(Ty::Bool, span);
        }
        let place = ir::Place::var(self.temporary(ir::Type::Bool));
        self.emit_apply(table, Some(place.clone()), None);
        let hit = Value {
            ty: Ty::Bool,
            kind: ValueKind::Place(place, Access::Temporary),
            span,
        };
        if negate { self.not(hit, span) } else { hit }
    }

    /// `table.apply().action_run` as the subject of a `switch`: the place that gets
    /// the position of the action.
    pub(crate) fn apply_action_run(
        &mut self,
        table: u32,
        call: &'a tree::Expr,
    ) -> Option<ir::Place> {
        let args = match &call.kind {
            ExprKind::Call { args, .. } => args.as_slice(),
            _ => &[],
        };
        if !self.may_apply_table(table, args, call.span) {
            return None;
        }
        let place = ir::Place::var(self.temporary(ir::Type::Bits(32)));
        self.emit_apply(table, None, Some(place.clone()));
        Some(place)
    }
}
