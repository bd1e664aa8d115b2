//! The parser: recursive descent over the preprocessed tokens, one function for each
//! production of the grammar (specification appendix G).
//!
//! A production that cannot be read reports once and returns [`Failed`]. Statements, local
//! declarations, table properties and declarations catch that and go on behind the next `;`
//! or closing brace, so that one mistake costs one diagnostic.

mod annotation;
mod container;
mod declaration;
mod expression;
mod hint;
mod number;
mod scope;
mod statement;
mod table;
mod types;

pub use hint::keyword_meant;

use rustc_hash::FxHashSet;
use stateplane_diagnostics::{Code, Diagnostic, Diagnostics, Span};

use crate::token::{Keyword, Symbol, Token, TokenKind};
use crate::tree::{Ident, Program};
use crate::{MAX_NESTING, codes};
use scope::Scopes;

/// The production could not be read, and that has been reported.
#[derive(Debug)]
struct Failed;

/// Construct that is read on trial where one token does not tell what it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Attempt {
    /// `(type)` of a cast.
    Cast,
    /// `<types>(` of a call.
    TypeArguments,
    /// `type name` of a variable.
    Variable,
    /// `type name in` of a loop.
    ForIn,
}

type Result<T> = std::result::Result<T, Failed>;

struct Parser {
    /// Never empty; the last token is the end.
    tokens: Vec<Token>,
    at: usize,
    reports: Vec<Diagnostic>,
    /// Token at which the last report was made; a second report there is suppressed.
    reported_at: Option<usize>,
    scopes: Scopes,
    /// The number of productions being read that can contain themselves.
    depth: u32,
    /// The height of the tallest expression or type read since [`Parser::measured`] began.
    height: u32,
    /// True if a `>` here closes something and is not a comparison.
    greater_closes: bool,
    /// Tokens at which an attempt failed; it is not made again, which keeps attempts inside
    /// attempts from multiplying.
    refused: FxHashSet<(usize, Attempt)>,
    /// Set when nesting was too deep; nothing after that is read.
    gave_up: bool,
}

/// Reads a program.
pub(crate) fn program(tokens: Vec<Token>, diagnostics: &mut Diagnostics) -> Program {
    let mut parser = Parser {
        tokens,
        at: 0,
        reports: Vec::new(),
        reported_at: None,
        scopes: Scopes::new(),
        depth: 0,
        height: 0,
        greater_closes: false,
        refused: FxHashSet::default(),
        gave_up: false,
    };
    let tree = parser.program();
    diagnostics.extend(parser.reports);
    tree
}

// ---- the cursor

impl Parser {
    fn last(&self) -> usize {
        self.tokens.len() - 1
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn ahead(&self, distance: usize) -> &Token {
        &self.tokens[(self.at + distance).min(self.last())]
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// The span of the token before this one.
    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// From `start` to the end of the token before this one.
    fn span_from(&self, start: Span) -> Span {
        start.to(self.previous_span())
    }

    fn bump(&mut self) -> Token {
        let token = self.token().clone();
        self.at = (self.at + 1).min(self.last());
        token
    }

    fn at_end(&self) -> bool {
        self.token().kind == TokenKind::End
    }

    fn is(&self, symbol: Symbol) -> bool {
        self.token().is(symbol)
    }

    fn is_keyword(&self, keyword: Keyword) -> bool {
        self.token().kind == TokenKind::Keyword(keyword)
    }

    fn take(&mut self, symbol: Symbol) -> bool {
        let found = self.is(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn take_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.is_keyword(keyword);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, symbol: Symbol) -> Result<Span> {
        if self.is(symbol) {
            Ok(self.bump().span)
        } else {
            self.unexpected(&format!("`{symbol}`"))
        }
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Result<Span> {
        if self.is_keyword(keyword) {
            Ok(self.bump().span)
        } else {
            self.unexpected(&format!("`{keyword}`"))
        }
    }

    /// The `;` that ends something. Where it is missing at the end of a line, that is
    /// reported and reading goes on as if it were there.
    fn expect_semicolon(&mut self) -> Result<()> {
        if self.take(Symbol::Semicolon) {
            return Ok(());
        }
        if !(self.token().line_start || self.is(Symbol::RightBrace)) {
            return self.unexpected("`;`");
        }
        let span = self.previous_span().at_end();
        self.report(
            Diagnostic::error(codes::UNEXPECTED_TOKEN, span, "expected `;`")
                .with_label("`;` is missing here"),
        );
        Ok(())
    }

    /// The symbol that closes what was opened at `open`.
    fn expect_close(&mut self, symbol: Symbol, open: Span) -> Result<Span> {
        if self.at_end() {
            let opened = self
                .tokens
                .iter()
                .find(|t| t.span == open)
                .map(|t| t.text.to_string());
            let span = self.span();
            self.report(
                Diagnostic::error(
                    codes::UNCLOSED,
                    span,
                    format!("the program ends where `{symbol}` is expected"),
                )
                .with_secondary(
                    open,
                    format!(
                        "this `{}` is never closed",
                        opened.as_deref().unwrap_or_default()
                    ),
                ),
            );
            return Err(Failed);
        }
        let outside = self.at_outermost() || self.at_member();
        if outside && symbol == Symbol::RightBrace && !self.is(symbol) {
            self.unclosed_here(open);
            return Ok(self.span().at_start());
        }
        self.expect(symbol)
    }
}

// ---- names

impl Parser {
    /// True if the token may serve as a name.
    fn is_name(token: &Token) -> bool {
        match token.kind {
            TokenKind::Ident => true,
            TokenKind::Keyword(keyword) => keyword.is_contextual(),
            _ => false,
        }
    }

    fn at_name(&self) -> bool {
        Self::is_name(self.token())
    }

    /// Production `name`.
    fn name(&mut self) -> Result<Ident> {
        if self.at_name() {
            let token = self.bump();
            return Ok(Ident {
                name: token.text,
                span: token.span,
            });
        }
        if let TokenKind::Keyword(keyword) = self.token().kind {
            let span = self.span();
            return self.fail(
                Diagnostic::error(
                    codes::UNEXPECTED_TOKEN,
                    span,
                    format!("expected a name, found the keyword `{keyword}`"),
                )
                .with_label("a name is expected here")
                .with_help("choose another name; keywords cannot be names"),
            );
        }
        self.unexpected("a name")
    }

    /// A list in brackets already opened, up to the closing symbol, which is not read.
    /// Elements are separated by commas; where `trailing` is set, the last may have one too.
    fn comma_list<T>(
        &mut self,
        close: Symbol,
        trailing: bool,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut list = Vec::new();
        if self.is(close) {
            return Ok(list);
        }
        loop {
            list.push(element(self)?);
            if !self.take(Symbol::Comma) || (trailing && self.is(close)) {
                return Ok(list);
            }
        }
    }
}

// ---- reports and recovery

impl Parser {
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.gave_up || self.reported_at == Some(self.at) {
            return;
        }
        self.reported_at = Some(self.at);
        self.reports.push(diagnostic);
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Result<T> {
        self.report(diagnostic);
        Err(Failed)
    }

    fn unexpected<T>(&mut self, wanted: &str) -> Result<T> {
        let token = self.token();
        if token.kind == TokenKind::Unknown {
            let message = format!(
                "character '{}' is not part of any P4 token",
                token.text.escape_debug()
            );
            let diagnostic = Diagnostic::error(codes::UNKNOWN_CHARACTER, token.span, message);
            return self.fail(diagnostic);
        }
        let found = match token.kind {
            TokenKind::End => "the end of the program".to_owned(),
            TokenKind::String => "a string".to_owned(),
            TokenKind::Keyword(keyword) => format!("the keyword `{keyword}`"),
            _ => format!("`{}`", token.text),
        };
        let diagnostic = Diagnostic::error(
            codes::UNEXPECTED_TOKEN,
            token.span,
            format!("expected {wanted}, found {found}"),
        )
        .with_label(format!("{wanted} is expected here"));
        let diagnostic = match self.hint(wanted) {
            Some(hint) => diagnostic.with_help(hint),
            None => diagnostic,
        };
        self.fail(diagnostic)
    }

    fn refuse(&mut self, code: Code, span: Span, message: String, help: &str) {
        self.report(Diagnostic::error(code, span, message).with_help(help));
    }

    /// Reads a production that can contain itself.
    fn nested<T>(&mut self, production: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            return self.give_up();
        }
        self.depth += 1;
        let result = production(self);
        self.depth -= 1;
        result
    }

    /// Reads a production and measures its parts without regard to what was read before.
    fn measured<T>(&mut self, production: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::take(&mut self.height);
        let result = production(self);
        self.height = self.height.max(before);
        result
    }

    /// Puts a node on top of all that has been read since measuring began.
    fn grow(&mut self) -> Result<()> {
        self.height += 1;
        if self.height > MAX_NESTING {
            self.give_up()
        } else {
            Ok(())
        }
    }

    fn give_up<T>(&mut self) -> Result<T> {
        let span = self.span();
        self.reported_at = None;
        self.report(
            Diagnostic::error(
                codes::NESTED_TOO_DEEPLY,
                span,
                format!("the program nests more than {MAX_NESTING} constructs here"),
            )
            .with_help("split the construct, for an expression with variables for its parts"),
        );
        self.gave_up = true;
        self.at = self.last();
        Err(Failed)
    }

    /// Reads a production if the text is one; otherwise stays where it is and reports
    /// nothing.
    fn attempt<T>(
        &mut self,
        attempt: Attempt,
        production: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Option<T> {
        let start = self.at;
        if self.refused.contains(&(start, attempt)) {
            return None;
        }
        let (reports, reported_at, depth) = (self.reports.len(), self.reported_at, self.depth);
        let (height, greater_closes) = (self.height, self.greater_closes);
        match production(self) {
            Ok(result) => Some(result),
            Err(Failed) => {
                self.depth = depth;
                self.height = height;
                self.greater_closes = greater_closes;
                if !self.gave_up {
                    self.at = start;
                    self.reports.truncate(reports);
                    self.reported_at = reported_at;
                    self.refused.insert((start, attempt));
                }
                None
            }
        }
    }

    /// Skips the rest of a construct that began at token `start` and could not be read:
    /// behind its `;`, behind its closing brace and what follows that on the line, or up to
    /// the brace that closes what surrounds it.
    fn recover(&mut self, start: usize) {
        let mut braces = 0_u32;
        for token in &self.tokens[start..self.at] {
            match token.kind {
                TokenKind::Symbol(Symbol::LeftBrace) => braces += 1,
                TokenKind::Symbol(Symbol::RightBrace) => braces = braces.saturating_sub(1),
                _ => {}
            }
        }
        while !self.at_end() {
            match self.token().kind {
                TokenKind::Symbol(Symbol::LeftBrace) => braces += 1,
                TokenKind::Symbol(Symbol::RightBrace) if braces == 0 => return,
                TokenKind::Symbol(Symbol::RightBrace) => {
                    braces -= 1;
                    if braces == 0 && self.ahead(1).line_start {
                        self.bump();
                        return;
                    }
                }
                TokenKind::Symbol(Symbol::Semicolon) if braces == 0 => {
                    self.bump();
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Reads a production; if that fails, skips it, closes the scopes that it left open, and
    /// returns `None`. Goes on by at least one token unless at a closing brace.
    fn guarded<T>(&mut self, production: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        let (start, scopes, depth) = (self.at, self.scopes.len(), self.depth);
        let read = production(self).ok();
        if read.is_none() {
            self.scopes.truncate(scopes);
            self.depth = depth;
            self.height = 0;
            self.greater_closes = false;
            self.recover(start);
        }
        if self.at == start && !self.is(Symbol::RightBrace) {
            self.bump();
        }
        read
    }

    /// Reads elements up to a closing brace, which is not read. Those that fail are skipped.
    fn braced_list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T>) -> Vec<T> {
        let mut list = Vec::new();
        while !self.is(Symbol::RightBrace) && !self.at_end() && !self.at_outermost() {
            list.extend(self.guarded(&mut element));
        }
        list
    }
}

#[cfg(test)]
mod tests;
