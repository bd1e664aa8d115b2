//! Statements.

use crate::annotation;
use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::effects::has_effects;
use crate::expr::is_known;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Access, Known, Value, ValueKind};
use num_bigint::BigUint;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExprKind, StmtKind};
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Checks the statements of a block in a scope of their own.
    pub(crate) fn block(&mut self, block: &'a tree::Block) {
        self.scoped(|checker| checker.statements(&block.statements));
    }

    /// Checks statements in the present scope.
    pub(crate) fn statements(&mut self, statements: &'a [tree::Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a tree::Stmt) {
        self.nesting += 1;
        self.statement_within(statement);
        self.nesting -= 1;
    }

    fn statement_within(&mut self, statement: &'a tree::Stmt) {
        match &statement.kind {
            StmtKind::Return(_) | StmtKind::Exit | StmtKind::Break => {
                self.callable.rounds.may_leave = true;
            }
            StmtKind::Continue => self.callable.rounds.may_skip = true,
            _ => {}
        }
        if self.places {
            let location = self.location(statement.span);
            self.emit(ir::Stmt::At(location));
        }
        match &statement.kind {
            StmtKind::Malformed | StmtKind::Empty => {}
            StmtKind::Assign {
                target,
                op,
                op_span,
                value,
            } => self.assign(target, op.map(|op| (op, *op_span)), value, statement.span),
            StmtKind::Call(expr) => {
                self.expr(expr);
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise.as_deref()),
            StmtKind::Block(block) => self.nested_block(block),
            StmtKind::Return(value) => self.return_statement(value.as_ref(), statement.span),
            StmtKind::Exit => match self.callable.kind {
                CallableKind::Parser => {
                    self.misplaced(statement.span, "`exit`", "use `transition reject`");
                }
                CallableKind::Function(..) => {
                    self.misplaced(statement.span, "`exit`", "use `return`");
                }
                _ => self.emit(ir::Stmt::Exit),
            },
            StmtKind::Break => self.leave_round(ir::Stmt::Break, statement.span),
            StmtKind::Continue => self.leave_round(ir::Stmt::Continue, statement.span),
            StmtKind::Switch { subject, cases } => self.switch(subject, cases, statement.span),
            StmtKind::For {
                annotations: _,
                init,
                condition,
                update,
                body,
            } => self.for_loop(init, condition, update, body),
            StmtKind::ForIn {
                annotations: _,
                variable,
                collection,
                body,
            } => self.for_in(variable, collection, body),
            StmtKind::Variable(decl) => {
                self.shadows_parameter(&decl.name);
                let reset = self.declares_again();
                self.variable(decl, reset);
            }
            StmtKind::Const(decl) => self.constant_decl(decl),
        }
    }

    /// Reports a variable with the name of a parameter of its callable.
    fn shadows_parameter(&mut self, name: &tree::Ident) {
        let mut frames = self.frames.iter().rev();
        let hidden = frames.find_map(|frame| frame.get(name.as_str()));
        if let Some(param) = hidden.map(|symbol| symbol.span)
            && self.callable.params.contains(&param)
        {
            self.report(
                Diagnostic::error(
                    codes::DUPLICATE_NAME,
                    name.span,
                    format!("the variable `{name}` hides the parameter `{name}`"),
                )
                .with_secondary(param, "the parameter")
                .with_help("give the variable another name"),
            );
        }
    }

    pub(crate) fn misplaced(&mut self, span: Span, what: &str, help: &str) {
        self.report(
            Diagnostic::error(
                codes::MISPLACED_STATEMENT,
                span,
                format!("{what} is not possible here"),
            )
            .with_help(help),
        );
    }

    /// Declares a variable; `reset` where its declaration may be reached again within
    /// one run of its callable.
    pub(crate) fn variable(&mut self, decl: &'a tree::VariableDecl, reset: bool) {
        let ty = self.resolve(&decl.ty);
        let init = decl.init.as_ref().map(|init| self.expr_of(init, &ty));
        if ty == Ty::Poison {
            self.declare(&decl.name, Entity::Value(Value::poison(decl.name.span)));
            return;
        }
        let Some(lowered) = self.ir_type(&ty, decl.ty.span) else {
            let value = if self.types.is_open(&ty) {
                Value::unknown(ty, decl.name.span)
            } else {
                Value::poison(decl.name.span)
            };
            self.declare(&decl.name, Entity::Value(value));
            return;
        };
        let var = self.local(decl.name.as_str(), lowered);
        let place = ir::Place::var(var);
        match init {
            Some(value) => {
                let expr = self.lower(value);
                self.emit(ir::Stmt::Assign(place.clone(), expr));
            }
            None if reset => self.emit(ir::Stmt::Assign(
                place.clone(),
                ir::Expr {
                    kind: ir::ExprKind::Default,
                    ty: lowered,
                },
            )),
            None => {}
        }
        let value = Value {
            ty,
            kind: ValueKind::Place(place, Access::Writable),
            span: decl.name.span,
        };
        self.declare(&decl.name, Entity::Value(value));
    }

    /// Declares a constant.
    pub(crate) fn constant_decl(&mut self, decl: &'a tree::ConstDecl) {
        let ty = self.resolve(&decl.ty);
        let value = match self.constant(&decl.value, "the value of a constant") {
            Some(value) => self.coerce(value, &ty),
            None => Value::unknown(ty, decl.name.span),
        };
        self.declare(&decl.name, Entity::Value(value));
    }

    fn assign(
        &mut self,
        target: &'a tree::Expr,
        op: Option<(tree::BinaryOp, Span)>,
        value: &'a tree::Expr,
        span: Span,
    ) {
        let mut left = self.expr(target);
        if has_effects(value)
            && let ValueKind::Place(place, access) = left.kind
        {
            left.kind = ValueKind::Place(self.freeze(place), access);
        }
        let ty = left.ty.clone();
        let right = match op {
            None => {
                if left.is_poison() {
                    self.expr(value);
                    return;
                }
                self.expr_of(value, &ty)
            }
            Some((op, op_span)) => {
                let current = if has_effects(value) {
                    self.settle(left.clone())
                } else {
                    left.clone()
                };
                let operand = self.expr(value);
                let result = self.binary_values(op, op_span, current, operand, span);
                self.coerce(result, &ty)
            }
        };
        let Some(place) = self.writable(left) else {
            return;
        };
        let expr = self.lower(right);
        self.emit(ir::Stmt::Assign(place, expr));
    }

    fn if_statement(
        &mut self,
        condition: &'a tree::Expr,
        then: &'a tree::Stmt,
        otherwise: Option<&'a tree::Stmt>,
    ) {
        let condition = self.condition(condition);
        let likelihoods = [likelihood(then), otherwise.map_or(0, likelihood)];
        let certain = self.callable.rounds.certain;
        let ((), mut then) = self.nested(|checker| checker.scoped(|c| c.statement(then)));
        let ((), mut otherwise) = self.nested(|checker| {
            if let Some(otherwise) = otherwise {
                checker.scoped(|c| c.statement(otherwise));
            }
        });
        self.callable.rounds.certain = certain;
        match condition.as_bool() {
            Some(true) => self.callable.block.extend(then),
            Some(false) => self.callable.block.extend(otherwise),
            None => {
                let condition = self.lower(condition);
                match likelihoods {
                    [first, second] if first < second => then.insert(0, ir::Stmt::Unlikely),
                    [first, second] if first > second => otherwise.insert(0, ir::Stmt::Unlikely),
                    _ => {}
                }
                self.emit(ir::Stmt::If {
                    condition,
                    then,
                    otherwise,
                });
            }
        }
    }

    fn return_statement(&mut self, value: Option<&'a tree::Expr>, span: Span) {
        match (self.callable.kind.clone(), value) {
            (CallableKind::Parser | CallableKind::Constant, _) => {
                self.misplaced(span, "`return`", "use `transition accept`");
            }
            (CallableKind::Function(result, ty), Some(expr)) if ty != Ty::Void => {
                let value = self.expr_of(expr, &ty);
                if let Some(result) = result {
                    let expr = self.lower(value);
                    self.emit(ir::Stmt::Assign(ir::Place::var(result), expr));
                }
                self.emit(ir::Stmt::Return);
            }
            (CallableKind::Function(_, ty), None) if ty != Ty::Void => {
                let shown = self.quote(&ty);
                self.report(
                    Diagnostic::error(codes::RETURN_VALUE, span, "`return` without a value")
                        .with_help(format!("return a value of type {shown}")),
                );
            }
            (_, Some(expr)) => {
                self.expr(expr);
                self.report(
                    Diagnostic::error(
                        codes::RETURN_VALUE,
                        expr.span,
                        "a value is returned where there is no result",
                    )
                    .with_help("write `return;`"),
                );
            }
            (_, None) => self.emit(ir::Stmt::Return),
        }
    }

    fn switch(&mut self, subject: &'a tree::Expr, cases: &'a [tree::SwitchCase], span: Span) {
        if let ExprKind::Member { base, member } = &subject.kind
            && member.as_str() == "action_run"
            && let Some((table, call)) = self.table_application(base)
        {
            let place = self.apply_action_run(table, call);
            return self.switch_action(table, place, cases);
        }
        let value = self.expr(subject);
        let named = matches!(value.ty, Ty::Serial(_)).then(|| self.quote(&value.ty));
        let ty = self.strip_serial(&value.ty);
        let value = Value { ty, ..value };
        if !matches!(
            value.ty,
            Ty::Bits(_) | Ty::Int(_) | Ty::Enum(_) | Ty::Error | Ty::Poison
        ) && !self.types.is_open(&value.ty)
        {
            let shown = self.quote(&value.ty);
            self.report(
                Diagnostic::error(
                    codes::SWITCH_SUBJECT,
                    subject.span,
                    format!("`switch` does not work on {shown}"),
                )
                .with_help("use a `bit<W>`, `int<W>`, enum or error, or `t.apply().action_run`"),
            );
        }
        let ty = value.ty.clone();
        let value = if is_known(&value) {
            value
        } else {
            self.settle(value)
        };
        let labels = |checker: &mut Self, label: &'a tree::Expr| {
            let found = checker.constant(label, "the label of a case")?;
            if let Some(named) = &named
                && found.ty.is_numeric()
            {
                checker.report(
                    Diagnostic::error(
                        codes::SWITCH_LABEL,
                        label.span,
                        format!("a number is compared with a value of type {named}"),
                    )
                    .with_help("name a member of the enum, or cast the subject of the switch"),
                );
                return None;
            }
            let found = if ty == Ty::Poison {
                return None;
            } else {
                checker.coerce(found, &ty)
            };
            match &found.kind {
                ValueKind::Const(known) => match checker.ir_const(known, &found.ty)? {
                    ir::Const::Bits(bits) => Some(bits),
                    ir::Const::Bool(_) => None,
                },
                _ => None,
            }
        };
        let (cases, default) = self.cases(cases, labels);
        if value.is_poison() {
            return;
        }
        if !matches!(value.ty, Ty::Bits(_) | Ty::Int(_) | Ty::Enum(_) | Ty::Error) {
            return;
        }
        let value = Value { span, ..value };
        let value = self.lower(value);
        self.emit(ir::Stmt::Switch {
            value,
            cases,
            default,
        });
    }

    fn switch_action(
        &mut self,
        table: u32,
        place: Option<ir::Place>,
        cases: &'a [tree::SwitchCase],
    ) {
        let labels = |checker: &mut Self, label: &'a tree::Expr| {
            let ExprKind::Name(path) = &label.kind else {
                checker.report(Diagnostic::error(
                    codes::SWITCH_LABEL,
                    label.span,
                    "the label of a `switch` on `action_run` is the name of an action",
                ));
                return None;
            };
            let symbol = checker.lookup(path)?;
            let position = match symbol.entity {
                Entity::Action(action) => {
                    let action = checker.action_here(action, path.span);
                    checker.listed_position(&checker.out.tables[table as usize].actions, action)
                }
                Entity::Broken => return None,
                _ => None,
            };
            if position.is_none() {
                let declared = checker.made.tables[table as usize].span;
                checker.report(
                    Diagnostic::error(
                        codes::SWITCH_LABEL,
                        label.span,
                        format!("`{path}` is not an action of the table"),
                    )
                    .with_secondary(declared, "the table is declared here"),
                );
            }
            position.map(BigUint::from)
        };
        let (cases, default) = self.cases(cases, labels);
        if let Some(place) = place {
            self.emit(ir::Stmt::Switch {
                value: ir::Expr {
                    kind: ir::ExprKind::Read(place),
                    ty: ir::Type::Bits(32),
                },
                cases,
                default,
            });
        }
    }

    /// The cases of a `switch`, those that fall through joined with the next, and its
    /// default.
    #[expect(
        clippy::type_complexity,
        reason = "the two parts of `ir::Stmt::Switch`"
    )]
    fn cases(
        &mut self,
        cases: &'a [tree::SwitchCase],
        mut label_of: impl FnMut(&mut Self, &'a tree::Expr) -> Option<BigUint>,
    ) -> (Vec<(Vec<BigUint>, Vec<ir::Stmt>)>, Vec<ir::Stmt>) {
        let mut lowered = Vec::new();
        let mut default = None;
        let mut labels: Vec<BigUint> = Vec::new();
        let mut falls_to_default = false;
        let mut seen: BTreeMap<BigUint, Span> = BTreeMap::new();
        for case in cases {
            match &case.label {
                Some(label) if default.is_some() || falls_to_default => {
                    self.report(
                        Diagnostic::error(
                            codes::DUPLICATE_CASE,
                            label.span,
                            "a case after `default`",
                        )
                        .with_help("put `default` last"),
                    );
                }
                Some(label) => {
                    if let Some(value) = label_of(self, label) {
                        match seen.get(&value).copied() {
                            Some(previous) => {
                                self.report(
                                    Diagnostic::error(
                                        codes::DUPLICATE_CASE,
                                        label.span,
                                        "this case exists already",
                                    )
                                    .with_secondary(previous, "first given here"),
                                );
                            }
                            None => {
                                seen.insert(value.clone(), label.span);
                                labels.push(value);
                            }
                        }
                    }
                }
                None => {
                    if default.is_some() || falls_to_default {
                        self.report(Diagnostic::error(
                            codes::DUPLICATE_CASE,
                            case.span,
                            "a second `default`",
                        ));
                    }
                    falls_to_default = true;
                }
            }
            let Some(body) = &case.body else { continue };
            let certain = self.callable.rounds.certain;
            let ((), statements) = self.nested(|checker| checker.nested_block(body));
            self.callable.rounds.certain = certain;
            if falls_to_default {
                // Labels that share the default's body need no case of their own.
                labels.clear();
                default = Some(statements);
                falls_to_default = false;
            } else {
                lowered.push((std::mem::take(&mut labels), statements));
            }
        }
        if !labels.is_empty() {
            lowered.push((labels, Vec::new()));
        }
        lowered.retain(|(labels, _)| !labels.is_empty());
        (lowered, default.unwrap_or_default())
    }

    /// A `bool` known at compile time, `fallback` where it cannot be known.
    pub(crate) fn constant_bool(
        &mut self,
        expr: &'a tree::Expr,
        what: &str,
        fallback: bool,
    ) -> bool {
        match self.constant(expr, what) {
            Some(value) => {
                let value = self.coerce(value, &Ty::Bool);
                match value.kind {
                    ValueKind::Const(Known::Bool(flag)) => flag,
                    _ => fallback,
                }
            }
            None => fallback,
        }
    }
}

/// True if every path through the statements ends in `return` or `exit`.
pub(crate) fn always_leaves(statements: &[tree::Stmt]) -> bool {
    statements.iter().any(leaves)
}

fn leaves(statement: &tree::Stmt) -> bool {
    match &statement.kind {
        StmtKind::Return(_) | StmtKind::Exit => true,
        StmtKind::Block(block) => always_leaves(&block.statements),
        StmtKind::If {
            then,
            otherwise: Some(otherwise),
            ..
        } => leaves(then) && leaves(otherwise),
        StmtKind::Switch { cases, .. } => {
            cases.iter().any(|case| case.label.is_none())
                && cases
                    .iter()
                    .filter_map(|case| case.body.as_ref())
                    .all(|body| always_leaves(&body.statements))
        }
        _ => false,
    }
}

/// Likelihood of a branch by its annotation: positive if it is likely, negative if it is unlikely,
/// 0 if it has none.
fn likelihood(branch: &tree::Stmt) -> i8 {
    let StmtKind::Block(block) = &branch.kind else {
        return 0;
    };
    let has = |name| annotation::find(&block.annotations, name).is_some();
    i8::from(has("likely")) - i8::from(has("unlikely"))
}
