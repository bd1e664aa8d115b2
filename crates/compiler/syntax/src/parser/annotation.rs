//! Annotations.

use stateplane_diagnostics::Span;

use super::number::string;
use super::{Parser, Result};
use crate::token::{Symbol, TokenKind};
use crate::tree::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Ident, NamedExpr,
};

impl Parser {
    /// Production `optAnnotations`.
    pub(super) fn annotations(&mut self) -> Result<Vec<Annotation>> {
        let mut list = Vec::new();
        loop {
            match self.token().kind {
                TokenKind::Symbol(Symbol::At) => list.push(self.annotation()?),
                TokenKind::Pragma => list.push(self.pragma()?),
                _ => return Ok(list),
            }
        }
    }

    /// Production `annotation`, other than a pragma.
    fn annotation(&mut self) -> Result<Annotation> {
        let start = self.expect(Symbol::At)?;
        let name = self.annotation_name()?;
        let open = self.span();
        let body = if self.take(Symbol::LeftParen) {
            let tokens = self.annotation_tokens();
            self.expect_close(Symbol::RightParen, open)?;
            AnnotationBody::Unstructured(tokens)
        } else if self.take(Symbol::LeftBracket) {
            let body = self.structured_body()?;
            self.expect_close(Symbol::RightBracket, open)?;
            body
        } else {
            AnnotationBody::Empty
        };
        Ok(Annotation {
            name,
            body,
            span: self.span_from(start),
        })
    }

    /// `@pragma` and the rest of its line.
    fn pragma(&mut self) -> Result<Annotation> {
        let start = self.bump().span;
        let name = self.annotation_name()?;
        let mut tokens = Vec::new();
        while !self.at_end() && !self.token().line_start {
            tokens.push(self.annotation_token());
        }
        let body = if tokens.is_empty() {
            AnnotationBody::Empty
        } else {
            AnnotationBody::Unstructured(tokens)
        };
        Ok(Annotation {
            name,
            body,
            span: self.span_from(start),
        })
    }

    /// Production `annotationName`: any word, keywords included.
    fn annotation_name(&mut self) -> Result<Ident> {
        if !self.token().is_word() {
            return self.unexpected("the name of an annotation");
        }
        let token = self.bump();
        Ok(Ident {
            name: token.text,
            span: token.span,
        })
    }

    /// Production `annotationBody`: tokens up to the parenthesis that closes the body.
    fn annotation_tokens(&mut self) -> Vec<AnnotationToken> {
        let mut tokens = Vec::new();
        let mut nesting = 0_u32;
        while !self.at_end() {
            if self.is(Symbol::LeftParen) {
                nesting += 1;
            } else if self.is(Symbol::RightParen) {
                if nesting == 0 {
                    break;
                }
                nesting -= 1;
            }
            tokens.push(self.annotation_token());
        }
        tokens
    }

    fn annotation_token(&mut self) -> AnnotationToken {
        let token = self.bump();
        let kind = match token.kind {
            TokenKind::Ident | TokenKind::Keyword(_) => AnnotationTokenKind::Word,
            TokenKind::Number => AnnotationTokenKind::Number(self.number(&token)),
            TokenKind::String => AnnotationTokenKind::String(string(&token.text)),
            _ => AnnotationTokenKind::Symbol,
        };
        AnnotationToken {
            kind,
            text: token.text,
            span: token.span,
        }
    }

    fn structured_body(&mut self) -> Result<AnnotationBody> {
        if self.at_named_expr() {
            let pairs = self.comma_list(Symbol::RightBracket, true, Self::named_expr)?;
            return Ok(AnnotationBody::KeyValues(pairs));
        }
        let list = self.comma_list(Symbol::RightBracket, true, Self::expression)?;
        Ok(AnnotationBody::Expressions(list))
    }

    /// True if a production `kvPair` begins here.
    pub(super) fn at_named_expr(&self) -> bool {
        self.at_name() && self.ahead(1).is(Symbol::Assign)
    }

    /// Production `kvPair`.
    pub(super) fn named_expr(&mut self) -> Result<NamedExpr> {
        let name = self.name()?;
        self.expect(Symbol::Assign)?;
        let value = self.expression()?;
        let span = self.span_from(name.span);
        Ok(NamedExpr { name, value, span })
    }

    /// Start of a construct with these annotations, the rest of which starts at `span`.
    pub(super) fn start_of(annotations: &[Annotation], span: Span) -> Span {
        annotations.first().map_or(span, |a| a.span)
    }
}
