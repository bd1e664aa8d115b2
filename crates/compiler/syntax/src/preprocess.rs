//! The preprocessor: directives and macros. The specification (section 6.3) asks for
//! `#define` without parameters and simple conditionals; function-like macros, `#` and `##`
//! and full integer conditions are there as well, because the reference compiler runs a C
//! preprocessor and programs rely on it.
//!
//! It reads tokens, not text, so that every token keeps the span of the file that it is
//! written in. A token from the body of a macro gets the span of the macro's call.

mod condition;
mod directive;
mod expand;

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use stateplane_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

use crate::Options;
use crate::codes;
use crate::lexer::{Interner, Lexer};
use crate::loader::{FileLoader, LoadError};
use crate::token::{Token, TokenKind};

/// Maximum nesting of includes.
const MAX_INCLUDE_DEPTH: usize = 64;
/// Maximum number of files that one program may include, counted with repetition.
const MAX_FILES: usize = 4096;
/// Maximum number of tokens of one program, and of tokens that its macros may yield in between.
const MAX_TOKENS: usize = 4_000_000;

/// A macro.
struct Macro {
    /// The parameters of a function-like macro, the last of them `__VA_ARGS__` where it is
    /// variadic; `None` for an object-like one.
    params: Option<Vec<Arc<str>>>,
    body: Vec<Token>,
    defined_at: Span,
}

impl Macro {
    fn is_variadic(&self) -> bool {
        self.params
            .as_ref()
            .and_then(|p| p.last())
            .is_some_and(|p| &**p == "__VA_ARGS__")
    }

    fn same_meaning(&self, other: &Self) -> bool {
        self.params == other.params
            && self.body.len() == other.body.len()
            && self
                .body
                .iter()
                .zip(&other.body)
                .all(|(a, b)| a.text == b.text)
    }
}

/// The names of the macros that a token comes from, which are not expanded in it again.
#[derive(Clone, Default)]
struct HideSet(Option<Rc<HideNode>>);

struct HideNode {
    name: Arc<str>,
    rest: HideSet,
    /// The number of names from here on.
    len: usize,
}

impl HideSet {
    fn contains(&self, name: &str) -> bool {
        let mut at = self;
        while let Some(node) = &at.0 {
            if &*node.name == name {
                return true;
            }
            at = &node.rest;
        }
        false
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.len)
    }

    fn with(&self, name: &Arc<str>) -> Self {
        let node = HideNode {
            name: Arc::clone(name),
            rest: self.clone(),
            len: self.len() + 1,
        };
        Self(Some(Rc::new(node)))
    }
}

/// A token in the course of expansion.
#[derive(Clone)]
struct Pending {
    token: Token,
    hidden: HideSet,
}

/// A file being read.
struct OpenFile {
    lexer: Lexer,
    path: Arc<str>,
    conditionals: Vec<Conditional>,
}

/// An `#if` whose `#endif` has not come yet.
struct Conditional {
    opened_at: Span,
    /// True if one of its branches has been taken.
    taken: bool,
    /// True if its `#else` has come.
    in_else: bool,
}

pub(crate) struct Preprocessor<'a> {
    loader: &'a dyn FileLoader,
    options: &'a Options,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    interner: Interner,
    macros: FxHashMap<Arc<str>, Rc<Macro>>,
    open: Vec<OpenFile>,
    /// Tokens to be looked at before the next of the innermost open file.
    pending: VecDeque<Pending>,
    /// Tokens that expansion may still yield.
    budget: usize,
    /// Set when the program is too large to go on.
    exhausted: bool,
}

/// All tokens of a program, the last of them [`TokenKind::End`].
pub(crate) fn preprocess(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let (text, failure) = match loader.load(main_file) {
        Ok(text) => (text, None),
        Err(LoadError::NotFound) => (
            "".into(),
            Some((
                codes::FILE_NOT_FOUND,
                format!("there is no file `{main_file}`"),
            )),
        ),
        Err(LoadError::Unreadable(reason)) => {
            let message = format!("cannot read `{main_file}`: {reason}");
            ("".into(), Some((codes::FILE_UNREADABLE, message)))
        }
    };
    let main = sources.add(main_file, text, None);
    let text = sources
        .get(main)
        .map_or_else(|| "".into(), |f| Arc::clone(f.text()));
    if let Some((code, message)) = failure {
        diagnostics.push(Diagnostic::error(code, Span::new(main, 0, 0), message));
    }
    let end = text.len() as u32;
    let mut preprocessor = Preprocessor {
        loader,
        options,
        sources,
        diagnostics,
        interner: Interner::default(),
        macros: FxHashMap::default(),
        open: Vec::new(),
        pending: VecDeque::new(),
        budget: MAX_TOKENS,
        exhausted: false,
    };
    preprocessor.predefine();
    preprocessor.enter(main, main_file.into(), text);
    let mut tokens = Vec::new();
    while let Some(token) = preprocessor.next_expanded() {
        tokens.push(token);
        if tokens.len() >= MAX_TOKENS {
            preprocessor.exhaust(tokens[tokens.len() - 1].span);
        }
        if preprocessor.exhausted {
            break;
        }
    }
    tokens.push(Token {
        kind: TokenKind::End,
        text: "".into(),
        span: Span::new(main, end, end),
        line_start: true,
        space_before: true,
        joint: false,
    });
    tokens
}

impl Preprocessor<'_> {
    /// Reads the definitions that the options give as if they stood in a file.
    fn predefine(&mut self) {
        if self.options.defines.is_empty() {
            return;
        }
        let text: String = self
            .options
            .defines
            .iter()
            .map(|(n, v)| format!("#define {n} {v}\n"))
            .collect();
        let text: Arc<str> = text.into();
        let file = self.sources.add("<options>", Arc::clone(&text), None);
        self.enter(file, "<options>".into(), text);
        while self.next_expanded().is_some() {}
    }

    fn enter(&mut self, file: FileId, path: Arc<str>, text: Arc<str>) {
        self.open.push(OpenFile {
            lexer: Lexer::new(file, text),
            path,
            conditionals: Vec::new(),
        });
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn exhaust(&mut self, span: Span) {
        if !self.exhausted {
            self.exhausted = true;
            self.report(
                Diagnostic::error(
                    codes::EXPANSION_LIMIT,
                    span,
                    format!("the program has more than {MAX_TOKENS} tokens"),
                )
                .with_help("look for macros that multiply themselves"),
            );
        }
    }

    /// The next token of the innermost open file, without directives; files that end are
    /// left. `None` at the end of the outermost.
    fn next_raw(&mut self) -> Option<Token> {
        loop {
            let file = self.open.last_mut()?;
            let (token, complaint) = file.lexer.next(&mut self.interner);
            if let Some(complaint) = complaint {
                self.report(*complaint);
            }
            match token.kind {
                TokenKind::End => self.leave(),
                TokenKind::Symbol(crate::token::Symbol::Hash) if token.line_start => {
                    self.directive(token.span);
                    if self.exhausted {
                        return None;
                    }
                }
                _ => return Some(token),
            }
        }
    }

    /// Leaves the innermost open file.
    fn leave(&mut self) {
        let Some(file) = self.open.pop() else { return };
        for conditional in file.conditionals {
            self.report(
                Diagnostic::error(
                    codes::UNBALANCED_CONDITIONAL,
                    conditional.opened_at,
                    "conditional has no #endif",
                )
                .with_help("add `#endif` to this file"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
