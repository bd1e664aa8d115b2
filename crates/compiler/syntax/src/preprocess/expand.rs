//! Macro expansion, after the algorithm of D. Prosser that the C standard describes in
//! words: each token knows the macros that it comes from, and is not expanded by them again.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use stateplane_diagnostics::{Diagnostic, Span};

use super::{HideSet, Macro, Pending, Preprocessor};
use crate::codes;
use crate::lexer::Lexer;
use crate::token::{Symbol, Token, TokenKind};

/// Maximum nesting of macro calls in the arguments of macro calls.
const MAX_NESTED_CALLS: usize = 100;

/// Maximum number of macros expanded inside each other.
const MAX_NESTED_MACROS: usize = 500;

/// Source of the tokens of an expansion.
enum Source<'q> {
    /// Pending tokens, then the open files.
    Program,
    /// A list, and nothing after it.
    List(&'q mut VecDeque<Pending>),
}

impl Preprocessor<'_> {
    /// The next token of the program, macros expanded.
    pub(super) fn next_expanded(&mut self) -> Option<Token> {
        self.expand_next(&mut Source::Program, 0)
    }

    /// A list of tokens, macros expanded.
    pub(super) fn expand_list(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let pending = tokens
            .into_iter()
            .map(|token| Pending {
                token,
                hidden: HideSet::default(),
            })
            .collect();
        self.expand_pending(pending, 0)
            .into_iter()
            .map(|p| p.token)
            .collect()
    }

    /// A text, macros expanded.
    pub(super) fn expand_text(&mut self, text: &str, span: Span) -> Vec<Token> {
        let tokens = self.lex_pasted(text, span);
        self.expand_list(tokens)
    }

    fn lex_pasted(&mut self, text: &str, span: Span) -> Vec<Token> {
        let mut lexer = Lexer::for_pasted(text.into(), span);
        let mut tokens = Vec::new();
        loop {
            let (token, complaint) = lexer.next(&mut self.interner);
            if let Some(complaint) = complaint {
                self.report(*complaint);
            }
            if token.kind == TokenKind::End {
                return tokens;
            }
            tokens.push(token);
        }
    }

    fn expand_pending(&mut self, mut list: VecDeque<Pending>, depth: usize) -> Vec<Pending> {
        let mut out = Vec::new();
        let mut source = Source::List(&mut list);
        while let Some(pending) = self.expand_next_pending(&mut source, depth) {
            out.push(pending);
        }
        out
    }

    fn expand_next(&mut self, source: &mut Source<'_>, depth: usize) -> Option<Token> {
        self.expand_next_pending(source, depth).map(|p| p.token)
    }

    fn expand_next_pending(&mut self, source: &mut Source<'_>, depth: usize) -> Option<Pending> {
        loop {
            if self.exhausted {
                return None;
            }
            let pending = self.take(source)?;
            let token = &pending.token;
            if !token.is_word() || pending.hidden.contains(&token.text) {
                return Some(pending);
            }
            let Some(definition) = self.macros.get(&token.text).map(Rc::clone) else {
                return Some(self.expand_builtin(pending));
            };
            if pending.hidden.len() >= MAX_NESTED_MACROS {
                self.exhaust(token.span);
                return None;
            }
            let hidden = pending.hidden.with(&token.text);
            let body = if definition.params.is_none() {
                self.substitute(&definition, &[], token.span, depth)
            } else {
                if !self.call_follows(source) {
                    return Some(pending);
                }
                let Some(args) = self.arguments(source, token, &definition) else {
                    continue;
                };
                if depth >= MAX_NESTED_CALLS {
                    self.exhaust(token.span);
                    return None;
                }
                self.substitute(&definition, &args, token.span, depth)
            };
            if self.budget < body.len() + 1 {
                self.exhaust(token.span);
                return None;
            }
            self.budget -= body.len() + 1;
            let line_start = token.line_start;
            let space_before = token.space_before;
            let queue = match source {
                Source::Program => &mut self.pending,
                Source::List(list) => list,
            };
            for (i, mut new) in body.into_iter().enumerate().rev() {
                new.hidden = union(&new.hidden, &hidden);
                if i == 0 {
                    new.token.line_start = line_start;
                    new.token.space_before = space_before;
                }
                queue.push_front(new);
            }
        }
    }

    fn take(&mut self, source: &mut Source<'_>) -> Option<Pending> {
        match source {
            Source::List(list) => list.pop_front(),
            Source::Program => match self.pending.pop_front() {
                Some(pending) => Some(pending),
                None => self.next_raw().map(|token| Pending {
                    token,
                    hidden: HideSet::default(),
                }),
            },
        }
    }

    fn expand_builtin(&mut self, mut pending: Pending) -> Pending {
        let span = pending.token.span;
        let Some(file) = self.sources.get(span.file) else {
            return pending;
        };
        match &*pending.token.text {
            "__LINE__" => {
                pending.token.kind = TokenKind::Number;
                let line = file.place(span.start).1.line.to_string();
                pending.token.text = self.interner.get(&line);
            }
            "__FILE__" => {
                pending.token.kind = TokenKind::String;
                let quoted = quote(file.place(span.start).0);
                pending.token.text = self.interner.get(&quoted);
            }
            _ => {}
        }
        pending
    }

    /// True if the next token is the `(` of a macro call.
    fn call_follows(&mut self, source: &Source<'_>) -> bool {
        let queue = match source {
            Source::Program => &self.pending,
            Source::List(list) => &**list,
        };
        if let Some(next) = queue.front() {
            return next.token.is(Symbol::LeftParen);
        }
        match source {
            Source::List(_) => false,
            Source::Program => self.open.last().is_some_and(|file| {
                let (token, _) = file.lexer.clone().next(&mut self.interner);
                token.is(Symbol::LeftParen)
            }),
        }
    }

    /// Reads the arguments of a call, parentheses included; `None`, after a report, where
    /// they do not fit the macro.
    fn arguments(
        &mut self,
        source: &mut Source<'_>,
        name: &Token,
        definition: &Macro,
    ) -> Option<Vec<Vec<Pending>>> {
        let wanted = definition.params.as_ref().map_or(0, Vec::len);
        let mut args: Vec<Vec<Pending>> = vec![Vec::new()];
        let mut nesting = 0_u32;
        self.take(source);
        loop {
            let Some(pending) = self.take(source) else {
                self.report(
                    Diagnostic::error(
                        codes::BAD_MACRO_CALL,
                        name.span,
                        format!("the call of macro `{}` is never closed", name.text),
                    )
                    .with_secondary(definition.defined_at, "the macro is defined here"),
                );
                return None;
            };
            match pending.token.kind {
                TokenKind::Symbol(Symbol::RightParen) if nesting == 0 => break,
                TokenKind::Symbol(Symbol::Comma)
                    if nesting == 0 && !(definition.is_variadic() && args.len() == wanted) =>
                {
                    args.push(Vec::new());
                    continue;
                }
                TokenKind::Symbol(Symbol::LeftParen) => nesting += 1,
                TokenKind::Symbol(Symbol::RightParen) => nesting -= 1,
                _ => {}
            }
            if self.budget == 0 {
                self.exhaust(name.span);
                return None;
            }
            self.budget -= 1;
            if let Some(last) = args.last_mut() {
                last.push(pending);
            }
        }
        if wanted == 0 && args.len() == 1 && args[0].is_empty() {
            args.clear();
        }
        if definition.is_variadic() && args.len() + 1 == wanted {
            args.push(Vec::new());
        }
        if args.len() != wanted {
            self.report(
                Diagnostic::error(
                    codes::BAD_MACRO_CALL,
                    name.span,
                    format!(
                        "macro `{}` takes {wanted} arguments, {} are given",
                        name.text,
                        args.len()
                    ),
                )
                .with_secondary(definition.defined_at, "the macro is defined here"),
            );
            return None;
        }
        Some(args)
    }

    /// The body of a macro with the arguments in place of the parameters.
    fn substitute(
        &mut self,
        definition: &Macro,
        args: &[Vec<Pending>],
        call: Span,
        depth: usize,
    ) -> Vec<Pending> {
        let params = definition.params.as_deref().unwrap_or_default();
        let argument = |token: &Token| {
            token
                .is_word()
                .then(|| params.iter().position(|p| *p == token.text))
                .flatten()
        };
        let mut expanded: Vec<Option<Vec<Pending>>> = vec![None; args.len()];
        let mut out: Vec<Pending> = Vec::new();
        let body = &definition.body;
        let mut paste = false;
        let mut left_is_empty = true;
        let mut at = 0;
        while let Some(token) = body.get(at) {
            at += 1;
            if token.is(Symbol::Paste) && at > 1 && at < body.len() {
                paste = true;
                continue;
            }
            let next_is_paste = body.get(at).is_some_and(|t| t.is(Symbol::Paste));
            let mut piece: Vec<Pending> = if let Some(i) = body
                .get(at)
                .filter(|_| token.is(Symbol::Hash) && definition.params.is_some())
                .and_then(argument)
            {
                at += 1;
                let text = quote(&spell(&args[i]));
                vec![Pending {
                    token: Token {
                        kind: TokenKind::String,
                        text: self.interner.get(&text),
                        span: call,
                        ..token.clone()
                    },
                    hidden: HideSet::default(),
                }]
            } else if let Some(i) = argument(token) {
                if paste || next_is_paste {
                    args[i].clone()
                } else {
                    if expanded[i].is_none() {
                        let list = args[i].iter().cloned().collect();
                        expanded[i] = Some(self.expand_pending(list, depth + 1));
                    }
                    expanded[i].clone().unwrap_or_default()
                }
            } else {
                let token = Token {
                    span: call,
                    line_start: false,
                    ..token.clone()
                };
                vec![Pending {
                    token,
                    hidden: HideSet::default(),
                }]
            };
            if std::mem::take(&mut paste) {
                if piece.is_empty() {
                    continue;
                }
                if !left_is_empty && let Some(left) = out.pop() {
                    let right = piece.remove(0);
                    let text = format!("{}{}", left.token.text, right.token.text);
                    let span = left.token.span;
                    let hidden = union(&left.hidden, &right.hidden);
                    let pasted = self.lex_pasted(&text, span);
                    out.extend(pasted.into_iter().map(|token| Pending {
                        token,
                        hidden: hidden.clone(),
                    }));
                    left_is_empty = false;
                } else {
                    left_is_empty = piece.is_empty();
                }
            } else {
                left_is_empty = piece.is_empty();
            }
            if out.len() + piece.len() > self.budget {
                self.exhaust(call);
                return Vec::new();
            }
            out.append(&mut piece);
        }
        out
    }
}

fn union(a: &HideSet, b: &HideSet) -> HideSet {
    if a.len() == 0 {
        return b.clone();
    }
    let mut all = a.clone();
    let mut at = b;
    while let Some(node) = &at.0 {
        if !all.contains(&node.name) {
            all = all.with(&node.name);
        }
        at = &node.rest;
    }
    all
}

fn spell(tokens: &[Pending]) -> String {
    let mut out = String::new();
    for (i, pending) in tokens.iter().enumerate() {
        if i > 0 && pending.token.space_before {
            out.push(' ');
        }
        out.push_str(&pending.token.text);
    }
    out
}

/// The text as a string literal.
fn quote(text: &str) -> Arc<str> {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out.into()
}
