//! Hints at the probable intention of an author who knows other languages, or who forgot a brace.

use stateplane_diagnostics::{Diagnostic, Span, nearest};

use super::Parser;
use crate::codes;
use crate::token::{Keyword, Symbol, TokenKind};

/// Number of tokens that are searched backwards for the beginning of a statement.
const BACKWARD: usize = 100;

impl Parser {
    /// Advice for the place where `wanted` was expected, if there is any.
    pub(super) fn hint(&self, wanted: &str) -> Option<String> {
        let TokenKind::Symbol(found) = self.token().kind else {
            return None;
        };
        match (wanted, found) {
            ("`)`", Symbol::Assign) => Some("compare with `==`".to_owned()),
            ("`=` or a call", Symbol::Equal) => Some("assign with `=`".to_owned()),
            ("`=` or a call", Symbol::Concat) => {
                Some("P4 has no increment: write `… = … + 1`".to_owned())
            }
            ("`=` or a call", Symbol::Minus) if self.ahead(1).is(Symbol::Minus) => {
                Some("P4 has no decrement: write `… = … - 1`".to_owned())
            }
            ("`;`", Symbol::LeftBrace) => {
                let misspelt = self.misspelt_declaration();
                misspelt.or_else(|| self.foreign_statement())
            }
            ("`;`" | "`(`", _) => self.misspelt_declaration(),
            _ => None,
        }
    }

    /// Advice on a declaration whose first word is a misspelt keyword, or `function`.
    fn misspelt_declaration(&self) -> Option<String> {
        let earliest = self.at.saturating_sub(BACKWARD);
        let before = (earliest..self.at).rev().find(|at| {
            matches!(
                self.tokens[*at].kind,
                TokenKind::Symbol(Symbol::Semicolon | Symbol::LeftBrace | Symbol::RightBrace)
            )
        });
        let first = self.tokens.get(before.map_or(earliest, |at| at + 1))?;
        let second = self.tokens.get(before.map_or(earliest, |at| at + 1) + 1)?;
        if !Self::is_name(first) || !Self::is_name(second) {
            return None;
        }
        keyword_meant(&first.text)
    }

    /// Advice on `word (…) {`, which P4 does not have.
    fn foreign_statement(&self) -> Option<String> {
        let mut open = 0_u32;
        let earliest = self.at.saturating_sub(BACKWARD);
        for at in (earliest..self.at).rev() {
            match self.tokens[at].kind {
                TokenKind::Symbol(Symbol::RightParen) => open += 1,
                TokenKind::Symbol(Symbol::LeftParen) => open = open.saturating_sub(1),
                _ if open == 0 => {
                    return match &*self.tokens[at].text {
                        "elif" | "elsif" | "elseif" => Some("write `else if`".to_owned()),
                        "while" | "until" | "loop" => {
                            Some("P4 has no such loop: write `for (…; …; …)`".to_owned())
                        }
                        "foreach" => Some("write `for (… in …)`".to_owned()),
                        word => nearest(word, ["if", "for", "switch"])
                            .filter(|_| word.len() > 2)
                            .map(|near| format!("did you mean `{near}`?")),
                    };
                }
                _ => {}
            }
        }
        None
    }

    /// True if a line begins with a declaration that stands in no braces, so that a brace must be
    /// missing before it.
    pub(super) fn at_outermost(&self) -> bool {
        self.token().line_start
            && matches!(
                self.token().kind,
                TokenKind::Keyword(Keyword::Control | Keyword::Parser | Keyword::Package)
            )
            && Self::is_name(self.ahead(1))
    }

    /// True if a line begins with a declaration that stands among no statements.
    pub(super) fn at_member(&self) -> bool {
        let token = self.token();
        let TokenKind::Keyword(keyword) = token.kind else {
            return false;
        };
        token.line_start
            && match keyword {
                Keyword::Action | Keyword::Table | Keyword::State => Self::is_name(self.ahead(1)),
                Keyword::Apply => self.ahead(1).is(Symbol::LeftBrace),
                _ => false,
            }
    }

    /// Reports that the brace opened at `open` should have been closed before this token.
    pub(super) fn unclosed_here(&mut self, open: Span) {
        let (span, text) = (self.span(), self.token().text.clone());
        self.report(
            Diagnostic::error(
                codes::UNCLOSED,
                span,
                format!("`}}` is missing before this `{text}`"),
            )
            .with_secondary(open, "this `{` is not closed")
            .with_help("add the missing `}`"),
        );
    }
}

/// Words that begin declarations, which a misspelt one may mean.
const DECLARATIONS: [&str; 16] = [
    "action",
    "apply",
    "const",
    "control",
    "enum",
    "extern",
    "header",
    "header_union",
    "package",
    "parser",
    "state",
    "struct",
    "table",
    "transition",
    "typedef",
    "value_set",
];

/// Advice on a name that stands where a declaration begins and is no type: the keyword that it
/// is near to, or the form of a function.
#[must_use]
pub fn keyword_meant(word: &str) -> Option<String> {
    if word == "function" {
        return Some(
            "a function begins with the type of its result: `bit<8> name(…) { … }` or `void …`"
                .to_owned(),
        );
    }
    nearest(word, DECLARATIONS)
        .filter(|_| word.len() > 2)
        .map(|near| format!("did you mean `{near}`?"))
}
