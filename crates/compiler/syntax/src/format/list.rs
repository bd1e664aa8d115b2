//! Formatting of bracketed lists other than statements and declarations.

use super::doc::{Doc, group, text, trivia};
use super::expression::{expression, label, part};
use super::tree::{Group, Node};
use crate::token::Symbol;

/// A pair of brackets in an expression or a declaration's head.
pub(super) fn brackets(group: &Group<'_>) -> Doc {
    match group.open.text {
        "[" => index(group),
        "<" => angles(group),
        "{" => list(group, true),
        _ => list(group, false),
    }
}

/// An index or a slice.
fn index(brackets: &Group<'_>) -> Doc {
    let body = &brackets.body;
    let mut docs = vec![text("[")];
    match label(body) {
        Some(at) => {
            docs.extend(expression(&body[..at]));
            docs.push(text(":"));
            docs.extend(expression(&body[at + 1..]));
        }
        None => docs.extend(expression(body)),
    }
    docs.push(text("]"));
    group(docs)
}

/// Type arguments.
fn angles(brackets: &Group<'_>) -> Doc {
    let mut docs = vec![text("<")];
    for (index, item) in brackets
        .body
        .split(|node| node.is(Symbol::Comma))
        .enumerate()
    {
        if index > 0 {
            docs.push(text(","));
            docs.push(Doc::Space);
        }
        docs.extend(expression(item));
    }
    docs.push(text(">"));
    group(docs)
}

fn is_separator(node: &Node<'_>) -> bool {
    node.is(Symbol::Comma) || node.is(Symbol::Semicolon)
}

/// Items with separators, on one line or each on its own. A list in braces that begins on a
/// line of its own keeps it.
pub(super) fn list(brackets: &Group<'_>, braces: bool) -> Doc {
    let body = &brackets.body;
    let (open, close) = (brackets.open.text, brackets.close.text);
    let edge = if braces { Doc::Line } else { Doc::SoftLine };
    if body.is_empty() {
        return if braces {
            text(format!("{open} {close}"))
        } else {
            text(format!("{open}{close}"))
        };
    }
    let single = !body
        .iter()
        .any(|node| is_separator(node) || node.is_trivia());
    if single && !braces {
        let mut docs = vec![text(open)];
        docs.extend(part(body));
        docs.push(text(close));
        return Doc::Seq(docs);
    }
    let mut docs = vec![edge.clone()];
    let mut at = 0;
    while at < body.len() {
        let item = body[at..].iter().position(is_separator);
        let end = item.map_or(body.len(), |length| at + length);
        docs.extend(part(&body[at..end]));
        at = end;
        if at == body.len() {
            break;
        }
        docs.push(text(body[at].first().text));
        at += 1;
        // A comment behind a separator speaks of what is before it.
        while let Some(node) = body
            .get(at)
            .filter(|node| node.is_trivia() && node.first().lines == 0)
        {
            docs.push(trivia(node.first()));
            at += 1;
        }
        match body.get(at) {
            Some(next) if braces && next.first().lines > 1 => docs.push(Doc::Hard { blank: true }),
            Some(_) => docs.push(Doc::Line),
            None => {}
        }
    }
    let mut docs = vec![text(open), Doc::Indent(docs), edge, text(close)];
    let opens_line = body[0].first().lines > 0;
    if braces && opens_line {
        docs.insert(1, Doc::Hard { blank: false });
    }
    group(docs)
}
