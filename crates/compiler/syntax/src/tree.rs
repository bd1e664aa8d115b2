//! The syntax tree of a P4-16 program (language specification 1.2.5, appendix G).
//!
//! The tree represents the source text, not its meaning: names are not resolved, types not checked,
//! constants not folded. Every node has a [`Span`]. Unreadable text becomes a `Malformed` node,
//! about which the parser has reported an error; walks of the tree pass over such nodes without
//! another report.
//!
//! The tree distinguishes names of types from other names, as the grammar needs it: the parser
//! tracks the type names in scope, so that `E.a` has a [`ExprKind::Type`] as its base where `E`
//! names a type, and a [`ExprKind::Name`] otherwise.

mod declaration;
mod expression;
mod statement;
mod types;

use std::fmt;
use std::sync::Arc;

use stateplane_diagnostics::Span;

pub use declaration::*;
pub use expression::*;
pub use statement::*;
pub use types::*;

/// A whole program, its included files in place of the directives that include them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The declarations of the outermost scope, in order.
    pub declarations: Vec<Declaration>,
}

/// A name as written at one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The name itself.
    pub name: Arc<str>,
    /// Position of the name.
    pub span: Span,
}

impl Ident {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A name to be looked up: `x` from the innermost scope outwards, `.x` in the outermost only
/// (specification section 6.8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// True if it is written with a leading dot.
    pub absolute: bool,
    /// The name.
    pub name: Ident,
    /// The name with its dot.
    pub span: Span,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.absolute { "." } else { "" }, self.name)
    }
}

/// `@name`, `@name(…)`, `@name[…]` or `@pragma name …` (specification section 20).
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    /// The name after the `@`.
    pub name: Ident,
    /// Body of the annotation.
    pub body: AnnotationBody,
    /// From the `@` to the end of the body.
    pub span: Span,
}

/// Body of an annotation, after its name.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationBody {
    /// No body: `@name`.
    Empty,
    /// Any balanced tokens: `@name(…)`, or the rest of the line of `@pragma name …`.
    Unstructured(Vec<AnnotationToken>),
    /// Expressions: `@name[1, x + 2]`.
    Expressions(Vec<Expr>),
    /// Named expressions: `@name[a = 1, b = "x"]`.
    KeyValues(Vec<NamedExpr>),
}

impl Annotation {
    /// The string of a body that is one string, perhaps of several literals joined by `++`, as in
    /// `@name("foo")`, `@name("foo" ++ "bar")` or `@name["foo"]`.
    #[must_use]
    pub fn string(&self) -> Option<Arc<str>> {
        match &self.body {
            AnnotationBody::Unstructured(tokens) => joined_tokens(tokens),
            AnnotationBody::Expressions(exprs) => match exprs.as_slice() {
                [expr] => joined_literals(expr),
                _ => None,
            },
            _ => None,
        }
    }

    /// The numbers of a body that is one or more number literals separated by commas, as in
    /// `@field_list(1, 2)`.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<&NumberLiteral>> {
        match &self.body {
            AnnotationBody::Unstructured(tokens) => tokens
                .iter()
                .enumerate()
                .filter_map(|(i, t)| match &t.kind {
                    AnnotationTokenKind::Number(n) if i % 2 == 0 => Some(Some(n)),
                    AnnotationTokenKind::Symbol if i % 2 == 1 && &*t.text == "," => None,
                    _ => Some(None),
                })
                .collect::<Option<Vec<_>>>(),
            AnnotationBody::Expressions(exprs) => exprs
                .iter()
                .map(|e| match &e.kind {
                    ExprKind::Number(n) => Some(n),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
        .filter(|numbers| !numbers.is_empty())
    }
}

/// One token of an unstructured annotation.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotationToken {
    /// Kind of the token.
    pub kind: AnnotationTokenKind,
    /// The token as written.
    pub text: Arc<str>,
    /// Position of the token.
    pub span: Span,
}

fn joined_tokens(tokens: &[AnnotationToken]) -> Option<Arc<str>> {
    if let [only] = tokens {
        return match &only.kind {
            AnnotationTokenKind::String(text) => Some(text.clone()),
            _ => None,
        };
    }
    let mut text = String::new();
    for (position, token) in tokens.iter().enumerate() {
        match &token.kind {
            AnnotationTokenKind::String(part) if position % 2 == 0 => text.push_str(part),
            AnnotationTokenKind::Symbol if position % 2 == 1 && &*token.text == "++" => {}
            _ => return None,
        }
    }
    (tokens.len() % 2 == 1).then(|| text.into())
}

fn joined_literals(expr: &Expr) -> Option<Arc<str>> {
    match &expr.kind {
        ExprKind::String(text) => Some(text.clone()),
        ExprKind::Binary {
            op: BinaryOp::Concat,
            left,
            right,
            ..
        } => {
            let (left, right) = (joined_literals(left)?, joined_literals(right)?);
            Some(format!("{left}{right}").into())
        }
        _ => None,
    }
}

/// Kind of a token of an unstructured annotation.
#[derive(Clone, Debug, PartialEq)]
pub enum AnnotationTokenKind {
    /// A name or a keyword.
    Word,
    /// A number literal.
    Number(NumberLiteral),
    /// A string literal, its escapes resolved.
    String(Arc<str>),
    /// Any other token.
    Symbol,
}
