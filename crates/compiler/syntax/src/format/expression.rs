//! Expressions, and what stands around the `=` or the `:` of an item.

use super::doc::{Doc, group, text};
use super::spacing::{ends_operand, words};
use super::tree::Node;
use crate::token::{Keyword, Symbol};

/// A part of an item: an assignment, something with a label, or an expression.
pub(super) fn part(nodes: &[Node<'_>]) -> Vec<Doc> {
    let assigns = |node: &Node<'_>| node.symbol().is_some_and(is_assignment);
    if let Some(at) = nodes.iter().position(assigns) {
        let mut docs = expression(&nodes[..at]);
        if at > 0 {
            docs.push(Doc::Space);
        }
        docs.push(text(nodes[at].first().text));
        let value = expression(&nodes[at + 1..]);
        if value.iter().any(Doc::can_break) {
            docs.push(Doc::Space);
            docs.extend(value);
        } else {
            let value = vec![Doc::Line, Doc::Seq(value)];
            docs.push(group(vec![Doc::Indent(value)]));
        }
        return docs;
    }
    if let Some(at) = label(nodes) {
        let mut docs = expression(&nodes[..at]);
        docs.push(text(":"));
        docs.push(Doc::Space);
        docs.extend(part(&nodes[at + 1..]));
        return docs;
    }
    expression(nodes)
}

/// The `:` that belongs to no `?`.
pub(super) fn label(nodes: &[Node<'_>]) -> Option<usize> {
    let mut open = 0_usize;
    nodes.iter().position(|node| match node.symbol() {
        Some(Symbol::Question) => {
            open += 1;
            false
        }
        Some(Symbol::Colon) if open > 0 => {
            open -= 1;
            false
        }
        Some(Symbol::Colon) => true,
        _ => false,
    })
}

fn is_assignment(symbol: Symbol) -> bool {
    matches!(
        symbol,
        Symbol::Assign
            | Symbol::ShlAssign
            | Symbol::ShrAssign
            | Symbol::AddSatAssign
            | Symbol::SubSatAssign
            | Symbol::AddAssign
            | Symbol::SubAssign
            | Symbol::MulAssign
            | Symbol::DivAssign
            | Symbol::ModAssign
            | Symbol::AndAssign
            | Symbol::OrAssign
            | Symbol::XorAssign
    )
}

/// Precedence of an operator; lines are broken first at operators of low precedence.
fn precedence(symbol: Symbol) -> Option<u32> {
    Some(match symbol {
        Symbol::Mask | Symbol::DotDot => 0,
        Symbol::Question | Symbol::Colon => 1,
        Symbol::Or => LOGICAL_OR,
        Symbol::And => LOGICAL_AND,
        Symbol::Equal | Symbol::NotEqual => 4,
        Symbol::Less | Symbol::Greater | Symbol::LessEqual | Symbol::GreaterEqual => 5,
        Symbol::Pipe => 6,
        Symbol::Caret => 7,
        Symbol::Ampersand => 8,
        Symbol::Shl => SHIFT,
        Symbol::Concat
        | Symbol::Plus
        | Symbol::Minus
        | Symbol::AddSat
        | Symbol::SubSat
        | Symbol::PlusColon => 10,
        Symbol::Star | Symbol::Slash | Symbol::Percent => 11,
        _ => return None,
    })
}

const LOGICAL_OR: u32 = 2;
const LOGICAL_AND: u32 = 3;
const SHIFT: u32 = 9;

/// A binary operator: the nodes that it consists of, two for `>>`.
struct Operator {
    at: usize,
    nodes: usize,
    precedence: u32,
}

fn operators(nodes: &[Node<'_>]) -> Vec<Operator> {
    let mut operators = Vec::new();
    let mut operand = false;
    let mut at = 0;
    while at < nodes.len() {
        if nodes[at].is_trivia() {
            at += 1;
            continue;
        }
        let found = nodes[at].symbol().and_then(precedence).filter(|_| operand);
        let Some(mut precedence) = found else {
            operand = ends_operand(nodes, at);
            at += 1;
            continue;
        };
        let next = nodes.get(at + 1);
        let shift = nodes[at].is(Symbol::Greater)
            && next.is_some_and(|next| next.is(Symbol::Greater) && !next.first().spaced);
        let length = 1 + usize::from(shift);
        if shift {
            precedence = SHIFT;
        }
        operators.push(Operator {
            at,
            nodes: length,
            precedence,
        });
        operand = false;
        at += length;
    }
    operators
}

/// An expression, with line ends before its operators where it does not fit.
pub(super) fn expression(nodes: &[Node<'_>]) -> Vec<Doc> {
    if let Some(first) = nodes.first()
        && nodes.len() > 1
        && matches!(first.keyword(), Some(Keyword::Return | Keyword::Transition))
    {
        let mut docs = vec![text(first.first().text), Doc::Space];
        docs.extend(expression(&nodes[1..]));
        return docs;
    }
    let mut operators = operators(nodes);
    let Some(least) = operators.iter().map(|operator| operator.precedence).min() else {
        return words(nodes);
    };
    operators.retain(|operator| operator.precedence == least);
    let mut docs = expression(&nodes[..operators[0].at]);
    let mut rest = Vec::new();
    for (index, operator) in operators.iter().enumerate() {
        let start = operator.at + operator.nodes;
        let end = operators.get(index + 1).map_or(nodes.len(), |next| next.at);
        let signs = nodes[operator.at..start]
            .iter()
            .map(|node| node.first().text);
        let mut part = vec![Doc::Line, text(signs.collect::<String>()), Doc::Space];
        part.extend(expression(&nodes[start..end]));
        rest.push(part);
    }
    // Conditions get a line each; sums and the like are filled up.
    if least > LOGICAL_AND {
        let parts = rest.into_iter().map(group).collect();
        docs.push(Doc::Indent(parts));
        return docs;
    }
    docs.push(Doc::Indent(rest.into_iter().flatten().collect()));
    vec![group(docs)]
}
