//! Statements.

use super::Lint;
use super::flow::Flow;
use super::layout::Fact;
use super::locals::Kind;
use crate::codes;
use stateplane_diagnostics::Diagnostic;
use stateplane_ir::USES;
use stateplane_syntax::tree::{
    Annotation, AnnotationBody, Block, ConstDecl, Expr, ExprKind, ForCollection, Stmt, StmtKind,
    SwitchCase, VariableDecl,
};

impl<'t> Lint<'t, '_> {
    /// Walks a block in a scope of its own.
    pub(super) fn block(&mut self, block: &'t Block) {
        self.scoped(|lint| lint.statements(&block.statements));
    }

    /// Notes the variables by which a block names units.
    fn mention_units(&mut self, annotations: &[Annotation]) {
        for annotation in annotations.iter().filter(|it| it.name.as_str() == USES) {
            if let AnnotationBody::Unstructured(tokens) = &annotation.body {
                for id in tokens
                    .iter()
                    .filter_map(|it| self.find(&it.text))
                    .collect::<Vec<_>>()
                {
                    self.mention(id);
                }
            }
        }
    }

    /// Walks statements; warns of those that are never reached.
    pub(super) fn statements(&mut self, statements: &'t [Stmt]) {
        let mut was_dead = self.flow.is_dead();
        let mut left: Option<&Stmt> = None;
        for statement in statements {
            let declares = matches!(
                statement.kind,
                StmtKind::Empty | StmtKind::Variable(_) | StmtKind::Const(_)
            );
            if self.flow.is_dead() && !was_dead && !declares {
                was_dead = true;
                let mut diagnostic = Diagnostic::warning(
                    codes::UNREACHABLE_CODE,
                    statement.span,
                    "this is never reached",
                );
                if let Some(left) = left {
                    let leaving = leaving(left);
                    diagnostic = diagnostic.with_secondary(leaving.span, "this always leaves");
                }
                self.report(diagnostic);
            }
            self.statement(statement);
            if left.is_none() && self.flow.is_dead() {
                left = Some(statement);
            }
        }
    }

    fn statement(&mut self, statement: &'t Stmt) {
        match &statement.kind {
            StmtKind::Malformed | StmtKind::Empty => {}
            StmtKind::Assign {
                target, op, value, ..
            } => {
                self.read(value);
                if op.is_some() {
                    self.read(target);
                }
                self.read_around(target);
                let source = match op {
                    None => self.copied(value),
                    Some(_) => None,
                };
                self.write(target, target.span);
                self.copy(source, target, value);
            }
            StmtKind::Call(expr) => self.read(expr),
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                let (yes, no) = self.condition(condition);
                self.flow = yes;
                self.scoped(|lint| lint.statement(then));
                let after = std::mem::replace(&mut self.flow, no);
                if let Some(otherwise) = otherwise {
                    self.scoped(|lint| lint.statement(otherwise));
                }
                self.flow.join(&after);
            }
            StmtKind::Block(block) => {
                self.mention_units(&block.annotations);
                self.block(block);
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.read(value);
                }
                self.at_end(statement.span);
                self.flow = Flow::dead();
            }
            StmtKind::Exit => self.flow = Flow::dead(),
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(statement.kind, StmtKind::Break);
                let flow = std::mem::replace(&mut self.flow, Flow::dead());
                if let Some((out, next)) = self.body.loops.last_mut() {
                    if is_break { out } else { next }.join(&flow);
                }
            }
            StmtKind::Switch { subject, cases } => self.switch(subject, cases),
            StmtKind::For {
                init,
                condition,
                update,
                body,
                ..
            } => self.scoped(|lint| {
                lint.statements(init);
                lint.forget_validity();
                let (yes, no) = lint.condition(condition);
                lint.rounds(yes, body, update, no);
            }),
            StmtKind::ForIn {
                variable,
                collection,
                body,
                ..
            } => self.scoped(|lint| {
                match collection {
                    ForCollection::Elements(expr) => lint.read(expr),
                    ForCollection::Range { low, high } => {
                        lint.read(low);
                        lint.read(high);
                    }
                }
                lint.mention_type(&variable.ty);
                let kind = Kind::Variable;
                let ty = Some(&variable.ty);
                let id = lint.declare(&variable.name, kind, ty, &variable.annotations);
                lint.mention(id);
                lint.fresh(id, true);
                lint.forget_validity();
                let flow = lint.flow.clone();
                lint.rounds(flow.clone(), body, &[], flow);
            }),
            StmtKind::Variable(decl) => self.variable(decl),
            StmtKind::Const(decl) => self.constant(decl),
        }
    }

    /// Walks the body of a loop, and goes on behind it.
    fn rounds(&mut self, round: Flow, body: &'t Stmt, update: &'t [Stmt], mut behind: Flow) {
        self.body.loops.push((Flow::dead(), Flow::dead()));
        self.flow = round;
        self.scoped(|lint| lint.statement(body));
        if let Some((out, next)) = self.body.loops.pop() {
            self.flow.join(&next);
            self.statements(update);
            behind.join(&out);
        }
        self.flow = behind;
    }

    /// Forgets the validity of headers at the start of a loop: changes in a later round count in
    /// its first one too.
    fn forget_validity(&mut self) {
        if self.flow.is_dead() {
            return;
        }
        let mut headers = Flow::default();
        for local in &self.locals {
            local.layout.each(local.base, &mut |fact, kind| {
                if matches!(kind, Fact::Invalid | Fact::Sound) {
                    headers.set(fact, true);
                }
            });
        }
        self.flow.change(&headers, &self.failing);
    }

    fn switch(&mut self, subject: &'t Expr, cases: &'t [SwitchCase]) {
        self.read(subject);
        let before = self.flow.clone();
        let has_default = cases.iter().any(|case| case.label.is_none());
        let mut behind = if has_default {
            Flow::dead()
        } else {
            before.clone()
        };
        for case in cases {
            self.flow.clone_from(&before);
            if let Some(label) = &case.label {
                match &label.kind {
                    ExprKind::Name(path) => self.mention_action(path),
                    _ => self.read(label),
                }
            }
            if let Some(body) = &case.body {
                self.block(body);
                behind.join(&self.flow);
            }
        }
        self.flow = behind;
    }

    /// Walks the declaration of a variable.
    pub(super) fn variable(&mut self, decl: &'t VariableDecl) {
        self.mention_type(&decl.ty);
        if let Some(init) = &decl.init {
            self.read(init);
        }
        let ty = Some(&decl.ty);
        let source = decl.init.as_ref().and_then(|init| self.copied(init));
        let id = self.declare(&decl.name, Kind::Variable, ty, &decl.annotations);
        self.fresh(id, decl.init.is_some());
        if let Some(init) = &decl.init {
            let place = self.whole(id);
            self.copy_to(source, &place, init);
        }
    }

    /// Walks the declaration of a constant.
    pub(super) fn constant(&mut self, decl: &'t ConstDecl) {
        self.mention_type(&decl.ty);
        self.read(&decl.value);
        self.declare(
            &decl.name,
            Kind::Constant,
            Some(&decl.ty),
            &decl.annotations,
        );
    }
}

/// The statement at the end of another from which nothing goes on.
fn leaving(statement: &Stmt) -> &Stmt {
    match &statement.kind {
        StmtKind::Block(block) => block.statements.last().map_or(statement, leaving),
        _ => statement,
    }
}
