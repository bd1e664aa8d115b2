//! Pieces one after the other: where a space stands between.

use super::doc::{Doc, text, trivia};
use super::list;
use super::piece::Kind;
use super::tree::Node;
use crate::token::{Keyword, Symbol, TokenKind};

/// Nodes without binary operators between them.
pub(super) fn words(nodes: &[Node<'_>]) -> Vec<Doc> {
    let mut docs = Vec::new();
    let mut before: Option<usize> = None;
    for (at, node) in nodes.iter().enumerate() {
        if node.is_trivia() {
            docs.push(trivia(node.first()));
            continue;
        }
        if let Some(before) = before
            && space(nodes, before, at)
        {
            docs.push(Doc::Space);
        }
        match node {
            Node::Leaf(piece) => docs.push(text(piece.text)),
            Node::Group(group) => docs.push(list::brackets(group)),
        }
        let own_line =
            matches!(node, Node::Leaf(piece) if piece.kind == Kind::Annotation && piece.ends_line);
        if own_line && at + 1 < nodes.len() {
            docs.push(Doc::Hard { blank: false });
        }
        before = Some(at);
    }
    docs
}

/// True if an operand ends with the node at `at`.
pub(super) fn ends_operand(nodes: &[Node<'_>], at: usize) -> bool {
    match &nodes[at] {
        Node::Group(_) => true,
        node => match node.token() {
            Some(TokenKind::Keyword(keyword)) => !matches!(
                keyword,
                Keyword::Return | Keyword::In | Keyword::Else | Keyword::Transition
            ),
            Some(TokenKind::Ident | TokenKind::Number | TokenKind::String) => true,
            _ => false,
        },
    }
}

/// True if a space stands between two nodes, `before` and `at`.
fn space(nodes: &[Node<'_>], before: usize, at: usize) -> bool {
    let (left, right) = (&nodes[before], &nodes[at]);
    if let Some(Symbol::Comma | Symbol::Semicolon | Symbol::Dot | Symbol::Colon) = right.symbol() {
        return false;
    }
    match left.symbol() {
        Some(Symbol::Comma | Symbol::Semicolon | Symbol::Colon | Symbol::Assign) => return true,
        Some(Symbol::Hash | Symbol::Paste) => return right.first().spaced,
        // Other signs without an operand before them are prefixes.
        Some(_) => return false,
        None => {}
    }
    match right {
        Node::Group(group) if group.open.is(Symbol::LeftBrace) => true,
        Node::Group(group) if group.open.is(Symbol::LeftParen) => {
            matches!(
                left.keyword(),
                Some(
                    Keyword::If
                        | Keyword::For
                        | Keyword::Switch
                        | Keyword::Return
                        | Keyword::In
                        | Keyword::Else
                )
            ) || is_annotation(left)
        }
        Node::Group(_) => is_annotation(left),
        Node::Leaf(_) if matches!(right.symbol(), Some(Symbol::Hash | Symbol::Paste)) => {
            right.first().spaced
        }
        // A cast binds to its operand; what follows a call is a name.
        Node::Leaf(_) => {
            left.group(Symbol::LeftParen).is_none() || before > 0 && ends_operand(nodes, before - 1)
        }
    }
}

fn is_annotation(node: &Node<'_>) -> bool {
    matches!(node, Node::Leaf(piece) if piece.kind == Kind::Annotation)
}
