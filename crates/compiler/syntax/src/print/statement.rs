//! Statements and parser states.

use super::Printer;
use crate::tree::{
    Block, ConstDecl, ForCollection, ParserState, Stmt, StmtKind, TransitionKind, VariableDecl,
};

impl Printer {
    /// A block without a line end.
    pub(super) fn block(&mut self, block: &Block) {
        self.annotations_before(&block.annotations);
        self.braces(|p| block.statements.iter().for_each(|s| p.statement_line(s)));
    }

    fn statement_line(&mut self, statement: &Stmt) {
        self.start_line();
        self.statement(statement);
        self.end_line("");
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Block(block) => return self.block(block),
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.put("if (");
                self.expr(condition);
                self.put(") ");
                // Braces keep an `else` with its `if`.
                let dangling = otherwise.is_some() && matches!(then.kind, StmtKind::If { .. });
                if dangling {
                    self.braces(|p| p.statement_line(then));
                } else {
                    self.statement(then);
                }
                if let Some(otherwise) = otherwise {
                    self.put(" else ");
                    self.statement(otherwise);
                }
                return;
            }
            StmtKind::Switch { subject, cases } => {
                self.put("switch (");
                self.expr(subject);
                self.put(") ");
                return self.braces(|p| {
                    for case in cases {
                        p.start_line();
                        match &case.label {
                            Some(label) => p.expr(label),
                            None => p.put("default"),
                        }
                        p.put(":");
                        if let Some(body) = &case.body {
                            p.put(" ");
                            p.block(body);
                        }
                        p.end_line("");
                    }
                });
            }
            StmtKind::For {
                annotations,
                init,
                condition,
                update,
                body,
            } => {
                self.annotations_before(annotations);
                self.put("for (");
                self.separated(init, Self::simple);
                self.put("; ");
                self.expr(condition);
                self.put("; ");
                self.separated(update, Self::simple);
                self.put(") ");
                return self.statement(body);
            }
            StmtKind::ForIn {
                annotations,
                variable,
                collection,
                body,
            } => {
                self.annotations_before(annotations);
                self.put("for (");
                self.variable(variable);
                self.put(" in ");
                match collection {
                    ForCollection::Elements(list) => self.expr(list),
                    ForCollection::Range { low, high } => {
                        self.expr(low);
                        self.put(" .. ");
                        self.expr(high);
                    }
                }
                self.put(") ");
                return self.statement(body);
            }
            StmtKind::Malformed => self.put("/* malformed */"),
            StmtKind::Empty => {}
            StmtKind::Return(None) => self.put("return"),
            StmtKind::Return(Some(value)) => {
                self.put("return ");
                self.expr(value);
            }
            StmtKind::Exit => self.put("exit"),
            StmtKind::Break => self.put("break"),
            StmtKind::Continue => self.put("continue"),
            StmtKind::Const(declaration) => self.constant(declaration),
            StmtKind::Assign { .. } | StmtKind::Call(_) | StmtKind::Variable(_) => {
                self.simple(statement);
            }
        }
        self.put(";");
    }

    /// Prints a statement that may stand in the head of a `for`, without its semicolon.
    fn simple(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Assign {
                target, op, value, ..
            } => {
                self.expr(target);
                self.put(" ");
                self.put(op.map_or("", |op| op.symbol()));
                self.put("= ");
                self.expr(value);
            }
            StmtKind::Call(call) => self.expr(call),
            StmtKind::Variable(declaration) => self.variable(declaration),
            _ => self.put("/* malformed */"),
        }
    }

    /// A variable declaration without its semicolon.
    pub(super) fn variable(&mut self, declaration: &VariableDecl) {
        self.annotations_before(&declaration.annotations);
        self.ty(&declaration.ty);
        self.put(" ");
        self.put_display(&declaration.name);
        if let Some(init) = &declaration.init {
            self.put(" = ");
            self.expr(init);
        }
    }

    /// A constant declaration without its semicolon.
    pub(super) fn constant(&mut self, declaration: &ConstDecl) {
        self.annotations_before(&declaration.annotations);
        self.put("const ");
        self.ty(&declaration.ty);
        self.put(" ");
        self.put_display(&declaration.name);
        self.put(" = ");
        self.expr(&declaration.value);
    }

    pub(super) fn state(&mut self, state: &ParserState) {
        self.start_line();
        self.annotations_before(&state.annotations);
        self.put("state ");
        self.put_display(&state.name);
        self.put(" ");
        self.braces(|p| {
            state.statements.iter().for_each(|s| p.statement_line(s));
            let Some(transition) = &state.transition else {
                return;
            };
            p.start_line();
            p.put("transition ");
            match &transition.kind {
                TransitionKind::Malformed => p.put("/* malformed */"),
                TransitionKind::Direct(name) => {
                    p.put_display(name);
                    p.put(";");
                }
                TransitionKind::Select { subjects, cases } => {
                    p.put("select (");
                    p.separated(subjects, Self::expr);
                    p.put(") ");
                    p.braces(|p| {
                        for case in cases {
                            p.start_line();
                            p.keyset(&case.keyset);
                            p.put(": ");
                            p.put_display(&case.target);
                            p.end_line(";");
                        }
                    });
                }
            }
            p.end_line("");
        });
        self.end_line("");
    }
}
