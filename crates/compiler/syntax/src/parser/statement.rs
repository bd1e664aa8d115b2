//! Statements.

use stateplane_diagnostics::{Diagnostic, Span};

use super::{Attempt, Parser, Result};
use crate::codes;
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{
    Annotation, BinaryOp, Block, ConstDecl, Expr, ExprKind, ForCollection, Stmt, StmtKind,
    SwitchCase, VariableDecl,
};

/// Surroundings of a run of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// An action, function or control.
    Body,
    /// A parser state.
    State,
}

impl Parser {
    /// Production `blockStatement`, from the annotations on.
    pub(super) fn block(&mut self) -> Result<Block> {
        let annotations = self.annotations()?;
        self.block_after(annotations, Place::Body)
    }

    /// Production `blockStatement` or `parserBlockStatement` behind its annotations.
    pub(super) fn block_after(
        &mut self,
        annotations: Vec<Annotation>,
        place: Place,
    ) -> Result<Block> {
        let open = self.expect(Symbol::LeftBrace)?;
        let start = Self::start_of(&annotations, open);
        self.scopes.push();
        let statements = self.statements(place);
        self.scopes.pop();
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(Block {
            annotations,
            statements,
            span: self.span_from(start),
        })
    }

    /// Statements up to a closing brace or `transition`. One that cannot be read leaves a
    /// [`StmtKind::Malformed`].
    pub(super) fn statements(&mut self, place: Place) -> Vec<Stmt> {
        let mut list = Vec::new();
        let ends = |p: &Self| {
            p.is(Symbol::RightBrace)
                || p.at_end()
                || p.at_outermost()
                || p.at_member()
                || (place == Place::State && p.is_keyword(Keyword::Transition))
        };
        while !ends(self) {
            let start = self.span();
            let read = self.guarded(|p| p.nested(|p| p.statement_or_declaration(place)));
            list.push(read.unwrap_or_else(|| Stmt {
                kind: StmtKind::Malformed,
                span: self.span_from(start),
            }));
        }
        list
    }

    /// Production `statementOrDeclaration` or `parserStatement`.
    fn statement_or_declaration(&mut self, place: Place) -> Result<Stmt> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        if self.is_keyword(Keyword::Const) {
            let declaration = self.constant(annotations)?;
            let span = declaration.span;
            return Ok(Stmt {
                kind: StmtKind::Const(declaration),
                span,
            });
        }
        if self.at_variable() {
            let declaration = self.variable(annotations)?;
            let span = declaration.span;
            return Ok(Stmt {
                kind: StmtKind::Variable(declaration),
                span,
            });
        }
        self.statement_after(annotations, start, place)
    }

    /// Production `statement`.
    fn statement(&mut self, place: Place) -> Result<Stmt> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        self.nested(|p| p.statement_after(annotations, start, place))
    }

    fn statement_after(
        &mut self,
        annotations: Vec<Annotation>,
        start: Span,
        place: Place,
    ) -> Result<Stmt> {
        let keyword_span = self.span();
        let TokenKind::Keyword(keyword) = self.token().kind else {
            if self.is(Symbol::LeftBrace) {
                let block = self.block_after(annotations, place)?;
                let span = block.span;
                return Ok(Stmt {
                    kind: StmtKind::Block(block),
                    span,
                });
            }
            self.refuse_annotations(&annotations);
            if self.take(Symbol::Semicolon) {
                return Ok(Stmt {
                    kind: StmtKind::Empty,
                    span: self.span_from(start),
                });
            }
            return self.simple_statement(true);
        };
        if place == Place::State
            && matches!(
                keyword,
                Keyword::Return
                    | Keyword::Exit
                    | Keyword::Break
                    | Keyword::Continue
                    | Keyword::Switch
                    | Keyword::For
            )
        {
            self.refuse(
                codes::MISPLACED,
                keyword_span,
                format!("a parser state cannot have a `{keyword}` statement"),
                "leave the state with `transition`",
            );
            return Err(super::Failed);
        }
        if keyword == Keyword::For {
            return self.for_statement(annotations, start);
        }
        self.refuse_annotations(&annotations);
        let kind = match keyword {
            Keyword::If => self.conditional_statement(place)?,
            Keyword::Switch => self.switch_statement()?,
            Keyword::Return => {
                self.bump();
                let value = if self.is(Symbol::Semicolon) {
                    None
                } else {
                    Some(self.expression()?)
                };
                self.expect_semicolon()?;
                StmtKind::Return(value)
            }
            Keyword::Exit => self.keyword_statement(StmtKind::Exit)?,
            Keyword::Break => self.keyword_statement(StmtKind::Break)?,
            Keyword::Continue => self.keyword_statement(StmtKind::Continue)?,
            Keyword::Else => {
                self.refuse(
                    codes::UNEXPECTED_TOKEN,
                    keyword_span,
                    "`else` without `if`".to_owned(),
                    "put `else` right behind the statement of its `if`",
                );
                return Err(super::Failed);
            }
            Keyword::Table | Keyword::Action | Keyword::State | Keyword::Transition
                if !keyword.is_contextual() || Self::is_name(self.ahead(1)) =>
            {
                self.refuse(
                    codes::MISPLACED,
                    keyword_span,
                    format!("`{keyword}` cannot stand among statements"),
                    "close the surrounding block before it",
                );
                return Err(super::Failed);
            }
            _ => return self.simple_statement(true),
        };
        Ok(Stmt {
            kind,
            span: self.span_from(start),
        })
    }

    fn keyword_statement(&mut self, kind: StmtKind) -> Result<StmtKind> {
        self.bump();
        self.expect_semicolon()?;
        Ok(kind)
    }

    fn refuse_annotations(&mut self, annotations: &[Annotation]) {
        if let Some(first) = annotations.first() {
            self.refuse(
                codes::MISPLACED,
                first.span,
                "this statement cannot have annotations".to_owned(),
                "annotate a block around it: `@name { … }`",
            );
        }
    }

    /// Production `conditionalStatement`.
    fn conditional_statement(&mut self, place: Place) -> Result<StmtKind> {
        self.expect_keyword(Keyword::If)?;
        let condition = self.parenthesised()?;
        let then = Box::new(self.statement(place)?);
        let otherwise = if self.take_keyword(Keyword::Else) {
            Some(Box::new(self.statement(place)?))
        } else {
            None
        };
        Ok(StmtKind::If {
            condition,
            then,
            otherwise,
        })
    }

    fn parenthesised(&mut self) -> Result<Expr> {
        let open = self.expect(Symbol::LeftParen)?;
        let expr = self.open_expression()?;
        self.expect_close(Symbol::RightParen, open)?;
        Ok(expr)
    }

    /// Production `switchStatement`.
    fn switch_statement(&mut self) -> Result<StmtKind> {
        self.expect_keyword(Keyword::Switch)?;
        let subject = self.parenthesised()?;
        let open = self.expect(Symbol::LeftBrace)?;
        let cases = self.braced_list(Self::switch_case);
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(StmtKind::Switch { subject, cases })
    }

    /// Production `switchCase`.
    fn switch_case(&mut self) -> Result<SwitchCase> {
        let start = self.span();
        let label = if self.take_keyword(Keyword::Default) {
            None
        } else if self.is(Symbol::LeftBrace) {
            return self.unexpected("`default`, an expression or the name of an action");
        } else {
            Some(self.expression()?)
        };
        self.expect(Symbol::Colon)?;
        let has_body = matches!(
            self.token().kind,
            TokenKind::Symbol(Symbol::LeftBrace | Symbol::At)
        );
        let body = if has_body { Some(self.block()?) } else { None };
        Ok(SwitchCase {
            label,
            body,
            span: self.span_from(start),
        })
    }

    /// Production `forStatement` behind its annotations.
    fn for_statement(&mut self, annotations: Vec<Annotation>, start: Span) -> Result<Stmt> {
        self.expect_keyword(Keyword::For)?;
        let open = self.expect(Symbol::LeftParen)?;
        self.scopes.push();
        let kind = match self.attempt(Attempt::ForIn, Self::for_in_head) {
            Some(variable) => {
                let first = self.expression()?;
                let collection = if self.take(Symbol::DotDot) {
                    ForCollection::Range {
                        low: first,
                        high: self.expression()?,
                    }
                } else {
                    ForCollection::Elements(first)
                };
                self.expect_close(Symbol::RightParen, open)?;
                let body = Box::new(self.statement(Place::Body)?);
                StmtKind::ForIn {
                    annotations,
                    variable,
                    collection,
                    body,
                }
            }
            None => {
                let init = self.comma_list(Symbol::Semicolon, false, Self::for_init)?;
                self.expect(Symbol::Semicolon)?;
                let condition = self.expression()?;
                self.expect(Symbol::Semicolon)?;
                let update =
                    self.comma_list(Symbol::RightParen, false, |p| p.simple_statement(false))?;
                self.expect_close(Symbol::RightParen, open)?;
                let body = Box::new(self.statement(Place::Body)?);
                StmtKind::For {
                    annotations,
                    init,
                    condition,
                    update,
                    body,
                }
            }
        };
        self.scopes.pop();
        Ok(Stmt {
            kind,
            span: self.span_from(start),
        })
    }

    /// `annotations type name in`.
    fn for_in_head(&mut self) -> Result<VariableDecl> {
        let annotations = self.annotations()?;
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_ref()?;
        let name = self.name()?;
        let span = self.span_from(start);
        self.expect_keyword(Keyword::In)?;
        self.scopes.declare_value(&name.name);
        Ok(VariableDecl {
            annotations,
            ty,
            name,
            init: None,
            span,
        })
    }

    /// Production `declOrAssignmentOrMethodCallStatement`.
    fn for_init(&mut self) -> Result<Stmt> {
        let annotations = self.annotations()?;
        if self.at_variable() {
            let declaration = self.variable_without_semicolon(annotations)?;
            let span = declaration.span;
            return Ok(Stmt {
                kind: StmtKind::Variable(declaration),
                span,
            });
        }
        self.refuse_annotations(&annotations);
        self.simple_statement(false)
    }

    /// Production `assignmentOrMethodCallStatement`, with or without its semicolon.
    fn simple_statement(&mut self, semicolon: bool) -> Result<Stmt> {
        let start = self.span();
        let target = self.lvalue()?;
        let op_span = self.span();
        let kind = match self.assignment_operator() {
            Some(op) => StmtKind::Assign {
                target,
                op,
                op_span,
                value: self.expression()?,
            },
            None if matches!(target.kind, ExprKind::Call { .. }) => {
                self.refuse_call_of_call(&target)?;
                StmtKind::Call(target)
            }
            None if matches!(target.kind, ExprKind::Construct { .. }) && self.at_name() => {
                self.refuse(
                    codes::MISPLACED,
                    target.span,
                    "an instance cannot be declared among statements".to_owned(),
                    "declare it in the control or parser, before `apply` or the states",
                );
                return Err(super::Failed);
            }
            None => return self.unexpected("`=` or a call"),
        };
        if semicolon {
            self.expect_semicolon()?;
        }
        Ok(Stmt {
            kind,
            span: self.span_from(start),
        })
    }

    /// A call that is a statement cannot be made on what another call returns.
    fn refuse_call_of_call(&mut self, call: &Expr) -> Result<()> {
        let ExprKind::Call { callee, .. } = &call.kind else {
            return Ok(());
        };
        let mut at = callee;
        loop {
            at = match &at.kind {
                ExprKind::Member { base, .. }
                | ExprKind::Index { base, .. }
                | ExprKind::Slice { base, .. }
                | ExprKind::PlusSlice { base, .. } => base,
                ExprKind::Call { .. } | ExprKind::Construct { .. } => {
                    let diagnostic = Diagnostic::error(
                        codes::UNEXPECTED_TOKEN,
                        at.span,
                        "a statement cannot call what another call returns",
                    )
                    .with_help("make the first call by itself, or use it in an expression");
                    return self.fail(diagnostic);
                }
                _ => return Ok(()),
            };
        }
    }

    /// The left side of an assignment, or a call. Whether it can be assigned to is for the
    /// checker to say, so any operand is read here.
    fn lvalue(&mut self) -> Result<Expr> {
        let begins = self.at_name()
            || self.at_type(0)
            || self.is_keyword(Keyword::This)
            || self.is(Symbol::LeftParen)
            || self.is(Symbol::Dot);
        if !begins {
            return self.unexpected("a statement");
        }
        self.nested(|p| p.measured(Self::postfix))
    }

    /// `=` or a compound assignment.
    fn assignment_operator(&mut self) -> Option<Option<BinaryOp>> {
        let TokenKind::Symbol(symbol) = self.token().kind else {
            return None;
        };
        let op = match symbol {
            Symbol::Assign => None,
            Symbol::AddAssign => Some(BinaryOp::Add),
            Symbol::SubAssign => Some(BinaryOp::Sub),
            Symbol::AddSatAssign => Some(BinaryOp::AddSat),
            Symbol::SubSatAssign => Some(BinaryOp::SubSat),
            Symbol::MulAssign => Some(BinaryOp::Mul),
            Symbol::DivAssign => Some(BinaryOp::Div),
            Symbol::ModAssign => Some(BinaryOp::Mod),
            Symbol::ShlAssign => Some(BinaryOp::Shl),
            Symbol::ShrAssign => Some(BinaryOp::Shr),
            Symbol::AndAssign => Some(BinaryOp::BitAnd),
            Symbol::OrAssign => Some(BinaryOp::BitOr),
            Symbol::XorAssign => Some(BinaryOp::BitXor),
            _ => return None,
        };
        self.bump();
        Some(op)
    }
}

// ---- variables and constants

impl Parser {
    /// True if a variable declaration begins here: a type and then a name.
    pub(super) fn at_variable(&mut self) -> bool {
        if matches!(self.token().kind, TokenKind::Keyword(k) if k != Keyword::Error)
            && self.at_type(0)
        {
            return true;
        }
        if self.at_type(0) {
            let start = self.at;
            let after = self.attempt(Attempt::Variable, |p| {
                p.type_ref()?;
                Ok(p.at_name())
            });
            self.at = start;
            return after.unwrap_or(false);
        }
        // A type that is not declared: the checker will say so.
        self.token().kind == TokenKind::Ident && self.ahead(1).kind == TokenKind::Ident
    }

    /// Production `variableDeclaration` behind its annotations.
    pub(super) fn variable(&mut self, annotations: Vec<Annotation>) -> Result<VariableDecl> {
        let mut declaration = self.variable_without_semicolon(annotations)?;
        self.expect_semicolon()?;
        declaration.span = self.span_from(declaration.span);
        Ok(declaration)
    }

    fn variable_without_semicolon(&mut self, annotations: Vec<Annotation>) -> Result<VariableDecl> {
        let start = Self::start_of(&annotations, self.span());
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        let init = if self.take(Symbol::Assign) {
            Some(self.expression()?)
        } else {
            None
        };
        self.scopes.declare_value(&name.name);
        Ok(VariableDecl {
            annotations,
            ty,
            name,
            init,
            span: self.span_from(start),
        })
    }

    /// Production `constantDeclaration` behind its annotations.
    pub(super) fn constant(&mut self, annotations: Vec<Annotation>) -> Result<ConstDecl> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::Const)?;
        let ty = self.type_ref()?;
        let (ty, name) = self.declarator(ty)?;
        self.expect(Symbol::Assign)?;
        let value = self.expression()?;
        self.expect_semicolon()?;
        self.scopes.declare_value(&name.name);
        Ok(ConstDecl {
            annotations,
            ty,
            name,
            value,
            span: self.span_from(start),
        })
    }
}
