//! Parsers, controls, packages and actions.

use stateplane_diagnostics::{Diagnostic, Span};

use super::statement::Place;
use super::{Failed, Parser, Result};
use crate::codes;
use crate::token::{Keyword, Symbol, TokenKind};
use crate::tree::{
    ActionDecl, Annotation, Block, ControlDecl, ControlLocal, Declaration, Ident, Parameter,
    ParserDecl, ParserLocal, ParserState, SelectCase, Signature, Transition, TransitionKind,
    ValueSetDecl,
};

/// Item of a parser.
enum ParserItem {
    Local(ParserLocal),
    State(ParserState),
}

/// Item of a control.
enum ControlItem {
    Local(ControlLocal),
    Apply(Block),
}

impl Parser {
    /// Production `parserTypeDeclaration`, `controlTypeDeclaration` or
    /// `packageTypeDeclaration` behind its annotations. Opens a scope with the parameters,
    /// which the caller closes.
    fn signature(&mut self, annotations: Vec<Annotation>) -> Result<Signature> {
        let start = Self::start_of(&annotations, self.span());
        self.bump();
        let name = self.name()?;
        self.scopes.declare_type(&name.name);
        self.scopes.push();
        let type_params = self.type_parameters()?;
        let params = self.parameters()?;
        Ok(Signature {
            annotations,
            name,
            type_params,
            params,
            span: self.span_from(start),
        })
    }

    /// Production `packageTypeDeclaration` with its semicolon.
    pub(super) fn package(&mut self, annotations: Vec<Annotation>) -> Result<Declaration> {
        let signature = self.signature(annotations)?;
        self.scopes.pop();
        self.expect_semicolon()?;
        Ok(Declaration::Package(signature))
    }

    /// Production `optConstructorParameters`.
    fn constructor_parameters(&mut self) -> Result<Vec<Parameter>> {
        if self.is(Symbol::LeftParen) {
            self.parameters()
        } else {
            Ok(Vec::new())
        }
    }

    // ---- parsers

    /// Production `parserDeclaration`, or `parserTypeDeclaration` with its semicolon.
    pub(super) fn parser_declaration(
        &mut self,
        annotations: Vec<Annotation>,
    ) -> Result<Declaration> {
        let before = self.reports.len();
        let signature = self.signature(annotations)?;
        if self.take(Symbol::Semicolon) {
            self.scopes.pop();
            return Ok(Declaration::ParserType(signature));
        }
        let constructor_params = self.constructor_parameters()?;
        let open = self.expect(Symbol::LeftBrace)?;
        let (mut locals, mut states) = (Vec::new(), Vec::new());
        for item in self.braced_list(Self::parser_item) {
            match item {
                ParserItem::Local(local) => locals.push(local),
                ParserItem::State(state) => states.push(state),
            }
        }
        self.expect_close(Symbol::RightBrace, open)?;
        self.scopes.pop();
        if states.is_empty() {
            self.missing_part(
                before,
                &signature.name,
                "parser",
                "states",
                "add `state start { … }`",
            );
        }
        let span = self.span_from(signature.span);
        let declaration = ParserDecl {
            signature,
            constructor_params,
            locals,
            states,
            span,
        };
        Ok(Declaration::Parser(declaration))
    }

    /// Reports that a declaration lacks a part, unless something has been reported since
    /// there were `before` reports: the part may have been skipped.
    fn missing_part(&mut self, before: usize, name: &Ident, kind: &str, part: &str, help: &str) {
        if self.reports.len() > before {
            return;
        }
        self.reported_at = None;
        self.report(
            Diagnostic::error(
                codes::MISSING_PART,
                name.span,
                format!("{kind} `{name}` has no {part}"),
            )
            .with_help(help),
        );
    }

    /// Production `parserLocalElement` or `parserState`.
    fn parser_item(&mut self) -> Result<ParserItem> {
        let annotations = self.annotations()?;
        match self.token().kind {
            TokenKind::Keyword(Keyword::State) if !self.ahead(1).is(Symbol::LeftParen) => {
                return self.state(annotations).map(ParserItem::State);
            }
            TokenKind::Keyword(Keyword::Const) => {
                return self
                    .constant(annotations)
                    .map(|d| ParserItem::Local(ParserLocal::Const(d)));
            }
            TokenKind::Keyword(Keyword::ValueSet) => {
                return self
                    .value_set(annotations)
                    .map(|d| ParserItem::Local(ParserLocal::ValueSet(d)));
            }
            TokenKind::Keyword(keyword @ (Keyword::Table | Keyword::Action | Keyword::Apply)) => {
                return self.cannot_contain("parser", keyword);
            }
            _ => {}
        }
        if self.at_variable() {
            return self
                .variable(annotations)
                .map(|d| ParserItem::Local(ParserLocal::Variable(d)));
        }
        if !self.at_type(0) && !self.at_name() {
            return self.unexpected("a state or a declaration");
        }
        self.instance(annotations)
            .map(|d| ParserItem::Local(ParserLocal::Instantiation(d)))
    }

    fn cannot_contain<T>(&mut self, container: &str, keyword: Keyword) -> Result<T> {
        let span = self.span();
        self.refuse(
            codes::MISPLACED,
            span,
            format!("a {container} cannot contain `{keyword}` here"),
            "look for a missing closing brace before it",
        );
        Err(Failed)
    }

    /// Production `parserState` behind its annotations.
    fn state(&mut self, annotations: Vec<Annotation>) -> Result<ParserState> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::State)?;
        let name = self.name()?;
        let open = self.expect(Symbol::LeftBrace)?;
        self.scopes.push();
        let statements = self.statements(Place::State);
        let transition = if self.is_keyword(Keyword::Transition) {
            let start = self.span();
            let read = self.guarded(Self::transition);
            Some(read.unwrap_or_else(|| Transition {
                kind: TransitionKind::Malformed,
                span: self.span_from(start),
            }))
        } else {
            None
        };
        self.scopes.pop();
        if transition.is_some() && !self.is(Symbol::RightBrace) && !self.at_end() {
            let span = self.span();
            self.report(
                Diagnostic::error(
                    codes::UNEXPECTED_TOKEN,
                    span,
                    "a state ends with its transition; nothing can follow it",
                )
                .with_help("move this before `transition`, or close the state"),
            );
            let _skipped: Vec<()> = self.braced_list(|_| Err(Failed));
        }
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(ParserState {
            annotations,
            name,
            statements,
            transition,
            span: self.span_from(start),
        })
    }

    /// Production `transitionStatement`.
    fn transition(&mut self) -> Result<Transition> {
        let start = self.expect_keyword(Keyword::Transition)?;
        let kind = if self.is_keyword(Keyword::Select) {
            self.select()?
        } else {
            let name = self.name()?;
            self.expect_semicolon()?;
            TransitionKind::Direct(name)
        };
        Ok(Transition {
            kind,
            span: self.span_from(start),
        })
    }

    /// Production `selectExpression`.
    fn select(&mut self) -> Result<TransitionKind> {
        self.expect_keyword(Keyword::Select)?;
        let open = self.expect(Symbol::LeftParen)?;
        let subjects = self.comma_list(Symbol::RightParen, false, Self::open_expression)?;
        self.expect_close(Symbol::RightParen, open)?;
        let open = self.expect(Symbol::LeftBrace)?;
        let cases = self.braced_list(Self::select_case);
        self.expect_close(Symbol::RightBrace, open)?;
        Ok(TransitionKind::Select { subjects, cases })
    }

    /// Production `selectCase`.
    fn select_case(&mut self) -> Result<SelectCase> {
        let keyset = self.keyset()?;
        self.expect(Symbol::Colon)?;
        let target = self.name()?;
        self.expect_semicolon()?;
        let span = self.span_from(keyset.span);
        Ok(SelectCase {
            keyset,
            target,
            span,
        })
    }

    /// Production `valueSetDeclaration` behind its annotations.
    fn value_set(&mut self, annotations: Vec<Annotation>) -> Result<ValueSetDecl> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::ValueSet)?;
        self.expect(Symbol::Less)?;
        let element = self.type_ref()?;
        self.expect(Symbol::Greater)?;
        let open = self.expect(Symbol::LeftParen)?;
        let size = self.open_expression()?;
        self.expect_close(Symbol::RightParen, open)?;
        let name = self.name()?;
        self.expect_semicolon()?;
        self.scopes.declare_value(&name.name);
        Ok(ValueSetDecl {
            annotations,
            element,
            size,
            name,
            span: self.span_from(start),
        })
    }

    // ---- controls

    /// Production `controlDeclaration`, or `controlTypeDeclaration` with its semicolon.
    pub(super) fn control_declaration(
        &mut self,
        annotations: Vec<Annotation>,
    ) -> Result<Declaration> {
        let before = self.reports.len();
        let signature = self.signature(annotations)?;
        if self.take(Symbol::Semicolon) {
            self.scopes.pop();
            return Ok(Declaration::ControlType(signature));
        }
        let constructor_params = self.constructor_parameters()?;
        let open = self.expect(Symbol::LeftBrace)?;
        let mut locals = Vec::new();
        let mut body: Option<Block> = None;
        for item in self.braced_list(Self::control_item) {
            let (span, late) = match item {
                ControlItem::Local(local) => {
                    let span = local_span(&local);
                    locals.push(local);
                    (span, "this declaration")
                }
                ControlItem::Apply(block) if body.is_none() => {
                    body = Some(block);
                    continue;
                }
                ControlItem::Apply(block) => (block.span, "this second `apply`"),
            };
            if let Some(body) = &body {
                let diagnostic = Diagnostic::error(
                    codes::MISPLACED,
                    span,
                    "nothing can follow the `apply` block of a control",
                )
                .with_label(format!("{late} does"))
                .with_secondary(body.span, "the `apply` block")
                .with_help("move it before the `apply` block");
                self.reported_at = None;
                self.report(diagnostic);
            }
        }
        self.expect_close(Symbol::RightBrace, open)?;
        self.scopes.pop();
        let span = self.span_from(signature.span);
        let body = body.unwrap_or_else(|| {
            self.missing_part(
                before,
                &signature.name,
                "control",
                "`apply` block",
                "add `apply { … }`",
            );
            Block {
                annotations: Vec::new(),
                statements: Vec::new(),
                span: span.at_end(),
            }
        });
        let declaration = ControlDecl {
            signature,
            constructor_params,
            locals,
            body,
            span,
        };
        Ok(Declaration::Control(declaration))
    }

    /// Production `controlLocalDeclaration`, or `apply` and production `controlBody`.
    fn control_item(&mut self) -> Result<ControlItem> {
        let annotations = self.annotations()?;
        let kind = self.token().kind;
        let local = match kind {
            TokenKind::Keyword(Keyword::Apply)
                if matches!(
                    self.ahead(1).kind,
                    TokenKind::Symbol(Symbol::LeftBrace | Symbol::At)
                ) =>
            {
                self.bump();
                return self.block().map(ControlItem::Apply);
            }
            TokenKind::Keyword(Keyword::Const) => ControlLocal::Const(self.constant(annotations)?),
            TokenKind::Keyword(Keyword::Action) => ControlLocal::Action(self.action(annotations)?),
            TokenKind::Keyword(Keyword::Table) => ControlLocal::Table(self.table(annotations)?),
            TokenKind::Keyword(keyword @ (Keyword::State | Keyword::ValueSet))
                if self.ahead(1).kind == TokenKind::Ident || self.ahead(1).is(Symbol::Less) =>
            {
                return self.cannot_contain("control", keyword);
            }
            _ if self.at_variable() => ControlLocal::Variable(self.variable(annotations)?),
            _ if !self.at_type(0) && !self.at_name() => {
                return self.unexpected("a declaration or `apply`");
            }
            _ => ControlLocal::Instantiation(self.instance(annotations)?),
        };
        Ok(ControlItem::Local(local))
    }

    /// Production `actionDeclaration` behind its annotations.
    pub(super) fn action(&mut self, annotations: Vec<Annotation>) -> Result<ActionDecl> {
        let start = Self::start_of(&annotations, self.span());
        self.expect_keyword(Keyword::Action)?;
        let name = self.name()?;
        self.scopes.declare_value(&name.name);
        self.scopes.push();
        let params = self.parameters()?;
        let body = self.block()?;
        self.scopes.pop();
        Ok(ActionDecl {
            annotations,
            name,
            params,
            body,
            span: self.span_from(start),
        })
    }
}

fn local_span(local: &ControlLocal) -> Span {
    match local {
        ControlLocal::Const(d) => d.span,
        ControlLocal::Variable(d) => d.span,
        ControlLocal::Instantiation(d) => d.span,
        ControlLocal::Action(d) => d.span,
        ControlLocal::Table(d) => d.span,
    }
}
