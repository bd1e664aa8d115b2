//! Directives: lines that begin with `#`.

use std::rc::Rc;
use std::sync::Arc;

use stateplane_diagnostics::{Diagnostic, Span, nearest};

use super::{Conditional, MAX_FILES, MAX_INCLUDE_DEPTH, Macro, Preprocessor, condition};
use crate::codes;
use crate::loader::{LoadError, folder, join};
use crate::token::{Symbol, Token, TokenKind};

/// Files of architectures that are not ours, which their programs include.
const ARCHITECTURES: [(&str, &str); 10] = [
    ("psa.p4", "PSA"),
    ("bmv2/psa.p4", "PSA"),
    ("pna.p4", "PNA"),
    ("dpdk/psa.p4", "PSA of DPDK"),
    ("dpdk/pna.p4", "PNA of DPDK"),
    ("tna.p4", "TNA (Tofino)"),
    ("t2na.p4", "T2NA (Tofino 2)"),
    ("ubpf_model.p4", "uBPF"),
    ("ebpf_model.p4", "eBPF"),
    ("xdp_model.p4", "XDP"),
];

impl Preprocessor<'_> {
    /// Carries out the directive whose `#` has just been read.
    pub(super) fn directive(&mut self, hash: Span) {
        if self.at_line_end() {
            return;
        }
        let Some(name) = self.line_token() else {
            return;
        };
        let span = hash.to(name.span);
        match &*name.text {
            "include" => self.include(span),
            "define" => self.define(span),
            "undef" => self.undef(span),
            "if" => {
                let holds = self.condition(span);
                self.open_conditional(span, holds);
            }
            "ifdef" | "ifndef" => {
                let wanted = &*name.text == "ifdef";
                let defined = self
                    .macro_name(span)
                    .is_some_and(|n| self.is_defined(&n.text));
                self.end_of_directive();
                self.open_conditional(span, defined == wanted);
            }
            "elif" | "else" => {
                // Reached from text that was read, so an earlier branch was taken.
                self.else_branch(span, &name.text);
                self.drain_line();
                if self.innermost().is_some() {
                    self.skip_branches();
                }
            }
            "endif" => {
                self.end_of_directive();
                self.close_conditional(span);
            }
            "error" => {
                let (text, text_span) = self.rest_of_line();
                let text = text
                    .strip_prefix('"')
                    .and_then(|t| t.strip_suffix('"'))
                    .unwrap_or(&text);
                self.report(
                    Diagnostic::error(codes::ERROR_DIRECTIVE, span.to(text_span), text)
                        .with_label("asked for here"),
                );
            }
            "pragma" | "warning" | "ident" => self.drain_line(),
            "line" => {
                let (text, text_span) = self.rest_of_line();
                self.renumber(span.to(text_span), &text);
            }
            // Line marker in the output of a preprocessor.
            _ if name.kind == TokenKind::Number => {
                let (text, text_span) = self.rest_of_line();
                let text = format!("{} {text}", name.text);
                self.renumber(span.to(text_span), &text);
            }
            _ => {
                self.drain_line();
                self.report(Diagnostic::warning(
                    codes::UNKNOWN_DIRECTIVE,
                    span,
                    format!("unknown directive `#{}` has no effect", name.text),
                ));
            }
        }
    }

    fn at_line_end(&self) -> bool {
        self.open.last().is_none_or(|f| f.lexer.next_starts_line())
    }

    /// The next token of the directive's line.
    fn line_token(&mut self) -> Option<Token> {
        if self.at_line_end() {
            return None;
        }
        let file = self.open.last_mut()?;
        let (token, complaint) = file.lexer.next(&mut self.interner);
        if let Some(complaint) = complaint {
            self.report(*complaint);
        }
        Some(token)
    }

    fn line_tokens(&mut self) -> Vec<Token> {
        std::iter::from_fn(|| self.line_token()).collect()
    }

    fn rest_of_line(&mut self) -> (String, Span) {
        self.open
            .last_mut()
            .map_or_else(Default::default, |f| f.lexer.rest_of_line())
    }

    fn drain_line(&mut self) {
        self.rest_of_line();
    }

    fn end_of_directive(&mut self) {
        if let Some(extra) = self.line_token() {
            self.report(
                Diagnostic::warning(
                    codes::EXTRA_TEXT,
                    extra.span,
                    "text after the end of the directive has no effect",
                )
                .with_help("make it a comment"),
            );
            self.drain_line();
        }
    }

    fn bad_directive(&mut self, span: Span, message: &str, help: &str) {
        self.report(Diagnostic::error(codes::BAD_DIRECTIVE, span, message).with_help(help));
    }

    fn macro_name(&mut self, directive: Span) -> Option<Token> {
        match self.line_token() {
            Some(token) if token.is_word() => Some(token),
            Some(token) => {
                self.bad_directive(
                    token.span,
                    "a macro's name is expected here",
                    "name a macro",
                );
                self.drain_line();
                None
            }
            None => {
                self.bad_directive(
                    directive,
                    "the directive lacks a macro's name",
                    "name a macro",
                );
                None
            }
        }
    }

    // ---- files

    fn include(&mut self, directive: Span) {
        let (text, text_span) = self.rest_of_line();
        let span = directive.to(text_span);
        let Some((name, quoted)) =
            include_name(&text).or_else(|| self.expanded_include(&text, span))
        else {
            self.bad_directive(
                span,
                "the directive does not name a file",
                "write `#include <file.p4>` or `#include \"file.p4\"`",
            );
            return;
        };
        if self.open.len() > MAX_INCLUDE_DEPTH {
            let chain: Vec<_> = self
                .open
                .iter()
                .rev()
                .take(4)
                .map(|f| f.path.to_string())
                .collect();
            self.report(
                Diagnostic::error(
                    codes::INCLUDE_DEPTH,
                    span,
                    format!("files include each other more than {MAX_INCLUDE_DEPTH} deep"),
                )
                .with_note(format!(
                    "innermost files: {}",
                    chain.join(", included from ")
                ))
                .with_help("guard the file with `#ifndef NAME`, `#define NAME`, … `#endif`"),
            );
            // A file that includes itself twice would be read 2 to the 64th times.
            self.exhausted = true;
            return;
        }
        if self.sources.files().count() >= MAX_FILES {
            self.exhaust(span);
            return;
        }
        let here = self
            .open
            .last()
            .map(|f| folder(&f.path).to_owned())
            .unwrap_or_default();
        let options = self.options;
        let folders = quoted
            .then_some(here.as_str())
            .into_iter()
            .chain(options.include_dirs.iter().map(String::as_str));
        let mut searched = Vec::new();
        for folder in folders.clone() {
            let path = join(folder, &name);
            match self.loader.load(&path) {
                Ok(text) => {
                    let path: Arc<str> = path.into();
                    let file = self.sources.add(Arc::clone(&path), text, Some(span));
                    let text = self
                        .sources
                        .get(file)
                        .map_or_else(|| "".into(), |f| f.text().clone());
                    self.enter(file, path, text);
                    return;
                }
                Err(LoadError::NotFound) => searched.push(path),
                Err(LoadError::Unreadable(reason)) => {
                    let message = format!("cannot read `{path}`: {reason}");
                    self.report(Diagnostic::error(codes::FILE_UNREADABLE, span, message));
                    return;
                }
            }
        }
        let known: Vec<String> = folders.flat_map(|f| self.names_like(f, &name)).collect();
        let other = ARCHITECTURES.iter().find(|(file, _)| *file == name);
        let mut diagnostic = Diagnostic::error(
            codes::FILE_NOT_FOUND,
            span,
            format!("there is no file `{name}` to include"),
        )
        .with_help(match (other, nearest(&name, known.iter().map(String::as_str))) {
            (Some((_, architecture)), _) => format!(
                "the program is for another architecture, {architecture}: Stateplane runs programs \
                 for v1model, which include `v1model.p4`"
            ),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "add the folder that holds it to the include path".to_owned(),
        });
        for path in searched {
            diagnostic = diagnostic.with_note(format!("there is no `{path}`"));
        }
        self.report(diagnostic);
    }

    /// The files beside the one that `name` would be in `folder`, written like `name`.
    fn names_like(&self, folder: &str, name: &str) -> Vec<String> {
        let front = name.rfind('/').map_or("", |at| &name[..=at]);
        let names = self.loader.names(&join(folder, front));
        names.iter().map(|file| format!("{front}{file}")).collect()
    }

    /// The file that an `#include` names through macros.
    fn expanded_include(&mut self, text: &str, span: Span) -> Option<(String, bool)> {
        let text: String = self
            .expand_text(text, span)
            .iter()
            .map(|t| t.text.to_string())
            .collect();
        include_name(&text)
    }

    /// `NUMBER`, or `NUMBER "FILE"`, and perhaps flags: where the following lines come from.
    fn renumber(&mut self, directive: Span, text: &str) {
        let (number, rest) = text
            .trim()
            .split_once(char::is_whitespace)
            .unwrap_or((text.trim(), ""));
        let name = match rest.trim_start().strip_prefix('"') {
            None if rest.trim().is_empty() => Some(None),
            None => None,
            Some(quoted) => quoted.split_once('"').map(|(name, _)| Some(name)),
        };
        match (number.parse(), name) {
            (Ok(line), Some(name)) => self.sources.renumber(directive, line, name),
            _ => self.bad_directive(
                directive,
                "the directive does not say a line",
                "write `#line 12` or `#line 12 \"file.p4\"`",
            ),
        }
    }

    // ---- macros

    fn define(&mut self, directive: Span) {
        let Some(name) = self.macro_name(directive) else {
            return;
        };
        if &*name.text == "defined" {
            self.bad_directive(
                name.span,
                "`defined` cannot be a macro",
                "choose another name",
            );
            return self.drain_line();
        }
        let mut tokens = self.line_tokens();
        let is_function = tokens
            .first()
            .is_some_and(|t| t.is(Symbol::LeftParen) && !t.space_before);
        let mut params = None;
        if is_function {
            let Some(close) = tokens.iter().position(|t| t.is(Symbol::RightParen)) else {
                self.bad_directive(
                    directive.to(name.span),
                    "the macro's parameter list is never closed",
                    "close it with `)` on the same line, or end the line with `\\`",
                );
                return;
            };
            match parameters(&tokens[1..close]) {
                Ok(list) => params = Some(list),
                Err(at) => {
                    self.bad_directive(
                        at.unwrap_or(tokens[close].span),
                        "the macro's parameter list is not well formed",
                        "write distinct names separated by commas",
                    );
                    return;
                }
            }
            tokens.drain(..=close);
        }
        let defined = Macro {
            params,
            body: tokens,
            defined_at: directive.to(name.span),
        };
        if let Some(old) = self
            .macros
            .get(&name.text)
            .filter(|old| !old.same_meaning(&defined))
        {
            let warning = Diagnostic::warning(
                codes::MACRO_REDEFINED,
                defined.defined_at,
                format!("macro `{}` gets another meaning", name.text),
            )
            .with_secondary(old.defined_at, "first defined here")
            .with_help("say `#undef` before, if that is meant");
            self.report(warning);
        }
        self.macros.insert(name.text, Rc::new(defined));
    }

    fn undef(&mut self, directive: Span) {
        if let Some(name) = self.macro_name(directive) {
            self.macros.remove(&name.text);
            self.end_of_directive();
        }
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.macros.contains_key(name) || matches!(name, "__FILE__" | "__LINE__")
    }

    // ---- conditionals

    fn innermost(&mut self) -> Option<&mut Conditional> {
        self.open.last_mut()?.conditionals.last_mut()
    }

    fn open_conditional(&mut self, span: Span, holds: bool) {
        if let Some(file) = self.open.last_mut() {
            file.conditionals.push(Conditional {
                opened_at: span,
                taken: holds,
                in_else: false,
            });
        }
        if !holds {
            self.skip_branches();
        }
    }

    /// Notes an `#else` or `#elif`; `false` where it is out of place.
    fn else_branch(&mut self, span: Span, name: &str) -> bool {
        let Some(conditional) = self.innermost() else {
            self.report(
                Diagnostic::error(
                    codes::UNBALANCED_CONDITIONAL,
                    span,
                    format!("#{name} without #if"),
                )
                .with_help("remove it, or add `#if` before it in this file"),
            );
            return false;
        };
        let late = conditional.in_else;
        conditional.in_else |= name == "else";
        let opened_at = conditional.opened_at;
        if late {
            self.report(
                Diagnostic::error(
                    codes::UNBALANCED_CONDITIONAL,
                    span,
                    format!("#{name} after #else"),
                )
                .with_secondary(opened_at, "of this conditional"),
            );
        }
        !late
    }

    fn close_conditional(&mut self, span: Span) {
        if self
            .open
            .last_mut()
            .and_then(|f| f.conditionals.pop())
            .is_none()
        {
            self.report(
                Diagnostic::error(codes::UNBALANCED_CONDITIONAL, span, "#endif without #if")
                    .with_help("remove it, or add `#if` before it in this file"),
            );
        }
    }

    /// Skips from inside a conditional to the branch of it that is to be read, or past its
    /// `#endif`.
    fn skip_branches(&mut self) {
        let mut nested = 0_u32;
        loop {
            let Some(file) = self.open.last_mut() else {
                return;
            };
            if !file.lexer.skip_to_directive() {
                return;
            }
            if self.at_line_end() {
                continue;
            }
            // Skipped text need not be made of tokens, so the lexer's complaints are not told.
            let Some(file) = self.open.last_mut() else {
                return;
            };
            let (name, _) = file.lexer.next(&mut self.interner);
            match &*name.text {
                "if" | "ifdef" | "ifndef" => nested += 1,
                "endif" if nested > 0 => nested -= 1,
                "endif" => {
                    self.end_of_directive();
                    return self.close_conditional(name.span);
                }
                "elif" if nested == 0 => {
                    let in_place = self.else_branch(name.span, "elif");
                    let taken = self.innermost().is_none_or(|c| c.taken);
                    if in_place && !taken {
                        if self.condition(name.span) {
                            if let Some(conditional) = self.innermost() {
                                conditional.taken = true;
                            }
                            return;
                        }
                    } else {
                        self.drain_line();
                    }
                }
                "else" if nested == 0 => {
                    let in_place = self.else_branch(name.span, "else");
                    self.end_of_directive();
                    let taken = self.innermost().is_none_or(|c| c.taken);
                    if in_place && !taken {
                        if let Some(conditional) = self.innermost() {
                            conditional.taken = true;
                        }
                        return;
                    }
                }
                _ => self.drain_line(),
            }
        }
    }

    /// The value of the condition on the rest of the line; a bad one is reported, and does
    /// not hold.
    fn condition(&mut self, directive: Span) -> bool {
        let tokens = self.line_tokens();
        let tokens = self.resolve_defined(tokens);
        let tokens = self.expand_list(tokens);
        match condition::evaluate(&tokens, directive) {
            Ok(value) => value != 0,
            Err(diagnostic) => {
                self.report(*diagnostic);
                false
            }
        }
    }

    /// Replaces `defined NAME` and `defined(NAME)` by 1 or 0.
    fn resolve_defined(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let (name, length) = match &tokens[at + 1..] {
                [name, ..] if name.is_word() => (Some(name), 2),
                [open, name, close, ..]
                    if open.is(Symbol::LeftParen)
                        && name.is_word()
                        && close.is(Symbol::RightParen) =>
                {
                    (Some(name), 4)
                }
                _ => (None, 1),
            };
            match name {
                Some(name) if &*token.text == "defined" => {
                    let value = if self.is_defined(&name.text) {
                        "1"
                    } else {
                        "0"
                    };
                    out.push(Token {
                        kind: TokenKind::Number,
                        text: self.interner.get(value),
                        span: token.span.to(tokens[at + length - 1].span),
                        ..token.clone()
                    });
                    at += length;
                }
                _ => {
                    out.push(token.clone());
                    at += 1;
                }
            }
        }
        out
    }
}

/// The name in `<name>` or `"name"`, and whether it is in quotes.
fn include_name(text: &str) -> Option<(String, bool)> {
    let (rest, close, quoted) = match text.chars().next()? {
        '<' => (&text[1..], '>', false),
        '"' => (&text[1..], '"', true),
        _ => return None,
    };
    let (name, after) = rest.split_once(close)?;
    (!name.is_empty() && after.trim().is_empty()).then(|| (name.to_owned(), quoted))
}

/// The names in a macro's parameter list; on failure, the offending place.
fn parameters(tokens: &[Token]) -> Result<Vec<Arc<str>>, Option<Span>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    if tokens.is_empty() {
        return Ok(names);
    }
    for (i, part) in tokens.split(|t| t.is(Symbol::Comma)).enumerate() {
        let name: Arc<str> = match part {
            [t] if t.is_word() => Arc::clone(&t.text),
            [t] if t.is(Symbol::Dots)
                && i == tokens.iter().filter(|t| t.is(Symbol::Comma)).count() =>
            {
                "__VA_ARGS__".into()
            }
            [t, ..] => return Err(Some(t.span)),
            [] => return Err(None),
        };
        if names.contains(&name) {
            return Err(part.first().map(|t| t.span));
        }
        names.push(name);
    }
    Ok(names)
}
