//! Declarations and statements: what stands in a file or in a block, one after the other.

use super::doc::{Doc, group, text, trivia};
use super::expression::{label, part};
use super::list::list;
use super::piece::Kind;
use super::spacing::ends_operand;
use super::tree::{Group, Node};
use crate::token::{Keyword, Symbol, TokenKind};

/// A whole file.
pub(super) fn file(nodes: &[Node<'_>]) -> Vec<Doc> {
    Items { nodes, at: 0 }.all()
}

/// Condition under which a block on one line stays there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// The block of an `if`: not.
    Never,
    /// With one item.
    One,
    /// With any number, as the properties of a table.
    Any,
}

/// A block of statements or declarations in braces.
fn block(braces: &Group<'_>, join: Join) -> Doc {
    let body = &braces.body;
    if body.is_empty() {
        return text("{ }");
    }
    let mut items = Items { nodes: body, at: 0 };
    if join != Join::Never && on_one_line(braces) {
        let mut docs = Vec::new();
        while items.at < body.len() {
            docs.push(Doc::Line);
            docs.extend(items.item());
            if join == Join::One {
                break;
            }
        }
        if items.at == body.len() {
            return group(vec![text("{"), Doc::Indent(docs), Doc::Line, text("}")]);
        }
        items.at = 0;
    }
    let docs = items.all();
    Doc::Group {
        docs: vec![
            text("{"),
            Doc::Indent(docs),
            Doc::Hard { blank: false },
            text("}"),
        ],
        broken: true,
    }
}

/// True if braces and all in them stand on one line, with no comment and no block of its own.
fn on_one_line(braces: &Group<'_>) -> bool {
    braces.close.lines == 0
        && braces.body.iter().all(|node| {
            let inside = match node {
                Node::Leaf(_) => true,
                Node::Group(group) if group.open.text == "{" => group.body.is_empty(),
                Node::Group(group) => on_one_line(group),
            };
            inside && !node.is_trivia() && node.first().lines == 0
        })
}

struct Items<'n, 't> {
    nodes: &'n [Node<'t>],
    at: usize,
}

impl<'n, 't> Items<'n, 't> {
    fn node(&self) -> Option<&'n Node<'t>> {
        self.nodes.get(self.at)
    }

    fn all(mut self) -> Vec<Doc> {
        let mut docs = Vec::new();
        // Whether the next item stands behind a comment on its line.
        let mut joins = false;
        while let Some(node) = self.node() {
            let piece = node.first();
            let trails = self.at == 0 && node.is_trivia() && piece.lines == 0;
            if !trails && !joins {
                docs.push(Doc::Hard {
                    blank: piece.lines > 1 && self.at > 0,
                });
            }
            if node.is_trivia() {
                docs.push(trivia(piece));
                self.at += 1;
                joins = piece.kind == Kind::BlockComment && !piece.ends_line;
            } else {
                docs.extend(self.item());
                self.trailing_comments(&mut docs);
                joins = false;
            }
        }
        docs
    }

    /// Comments on the line of what is before them.
    fn trailing_comments(&mut self, docs: &mut Vec<Doc>) {
        while let Some(Node::Leaf(piece)) = self.node()
            && piece.is_comment()
            && piece.lines == 0
        {
            docs.push(trivia(piece));
            self.at += 1;
        }
    }

    /// One declaration, statement, table property or case.
    fn item(&mut self) -> Vec<Doc> {
        let mut docs = Vec::new();
        self.annotations(&mut docs);
        match self.node().and_then(Node::keyword) {
            Some(Keyword::If) => self.conditional(&mut docs),
            Some(Keyword::For) => self.for_loop(&mut docs),
            _ => self.plain(&mut docs),
        }
        docs
    }

    fn annotations(&mut self, docs: &mut Vec<Doc>) {
        while let Some(Node::Leaf(piece)) = self.node()
            && (piece.kind == Kind::Annotation || piece.is_comment())
        {
            if piece.is_comment() {
                docs.push(trivia(piece));
            } else {
                docs.push(text(piece.text));
                docs.push(if piece.ends_line {
                    Doc::Hard { blank: false }
                } else {
                    Doc::Space
                });
            }
            self.at += 1;
        }
    }

    /// An item that is no `if` or `for`.
    fn plain(&mut self, docs: &mut Vec<Doc>) {
        let mut start = self.at;
        let names = matches!(
            self.node().and_then(Node::keyword),
            Some(Keyword::Enum | Keyword::Error | Keyword::MatchKind)
        );
        let first = start;
        while let Some(node) = self.node() {
            if node.is(Symbol::Semicolon) {
                docs.extend(part(&self.nodes[start..self.at]));
                docs.push(text(";"));
                self.at += 1;
                return;
            }
            if let Some(braces) = node.group(Symbol::LeftBrace) {
                let body = self.is_block(first, braces);
                let join = match self.nodes[first..self.at].last() {
                    Some(last) if last.is(Symbol::Assign) => Join::Any,
                    _ => Join::One,
                };
                if body || names && self.begins_braces(start) {
                    docs.extend(part(&self.nodes[start..self.at]));
                    if self.at > first {
                        docs.push(Doc::Space);
                    }
                    docs.push(if names {
                        list(braces, true)
                    } else {
                        block(braces, join)
                    });
                    self.at += 1;
                    if self.node().is_some_and(|next| next.is(Symbol::Semicolon)) {
                        docs.push(text(";"));
                        self.at += 1;
                    }
                    return;
                }
                self.at += 1;
                if self.begins_line() {
                    docs.extend(part(&self.nodes[start..self.at]));
                    return;
                }
                continue;
            }
            self.at += 1;
            let read = &self.nodes[start..self.at];
            let is_label = node.is(Symbol::Colon) && label(read) == Some(read.len() - 1);
            let next = self.node();
            if is_label && next.is_some_and(|next| next.group(Symbol::LeftBrace).is_some()) {
                docs.extend(part(read));
                start = self.at;
                continue;
            }
            let label_alone = is_label && next.is_none_or(|next| next.first().lines > 0);
            if label_alone || is_macro_call(read) && self.begins_line() {
                docs.extend(part(read));
                return;
            }
        }
        docs.extend(part(&self.nodes[start..self.at]));
    }

    /// True if the next node is a word or annotation on a line of its own.
    fn begins_line(&self) -> bool {
        self.node().is_some_and(|next| {
            let starts = next.is_word()
                || matches!(next, Node::Leaf(piece) if piece.kind == Kind::Annotation);
            starts && next.first().lines > 0
        })
    }

    /// True if the names of an enum follow what was read since `start`: no initialiser.
    fn begins_braces(&self, start: usize) -> bool {
        !self.nodes[start..self.at]
            .iter()
            .any(|node| node.is(Symbol::Assign))
    }

    /// True if braces hold statements or declarations rather than values.
    fn is_block(&self, first: usize, braces: &Group<'_>) -> bool {
        if braces.body.iter().any(|node| node.is(Symbol::Semicolon)) {
            return true;
        }
        let before = &self.nodes[first..self.at];
        let Some(last) = before.iter().rposition(|node| !node.is_trivia()) else {
            return true;
        };
        match &before[last] {
            Node::Leaf(_) if before[last].is(Symbol::Colon) => label(before) == Some(last),
            Node::Leaf(_) => {
                ends_operand(before, last) || before[last].keyword() == Some(Keyword::Else)
            }
            // A cast has nothing to be called before it.
            Node::Group(_) => last > 0 && ends_operand(before, last - 1),
        }
    }

    /// `if`, with its `else`.
    fn conditional(&mut self, docs: &mut Vec<Doc>) {
        let start = self.at;
        self.at += 1;
        self.condition();
        docs.extend(part(&self.nodes[start..self.at]));
        let braces = self.body(docs);
        let mut ahead = self.at;
        while self.nodes.get(ahead).is_some_and(Node::is_trivia) {
            ahead += 1;
        }
        if self.nodes.get(ahead).and_then(Node::keyword) != Some(Keyword::Else) {
            return;
        }
        docs.push(if braces && ahead == self.at {
            Doc::Space
        } else {
            Doc::Hard { blank: false }
        });
        // A comment on the line of the brace stays there.
        if self.nodes[self.at].first().lines == 0 && ahead > self.at {
            docs.pop();
        }
        for node in &self.nodes[self.at..ahead] {
            docs.push(trivia(node.first()));
        }
        if ahead > self.at {
            docs.push(Doc::Hard { blank: false });
        }
        docs.push(text("else"));
        self.at = ahead + 1;
        if self.node().and_then(Node::keyword) == Some(Keyword::If) {
            docs.push(Doc::Space);
            self.conditional(docs);
        } else {
            self.body(docs);
        }
    }

    fn for_loop(&mut self, docs: &mut Vec<Doc>) {
        let start = self.at;
        self.at += 1;
        self.condition();
        docs.extend(part(&self.nodes[start..self.at]));
        self.body(docs);
    }

    /// Takes what stands in parentheses after `if` or `for`.
    fn condition(&mut self) {
        while self.node().is_some_and(Node::is_trivia) {
            self.at += 1;
        }
        if self
            .node()
            .is_some_and(|node| node.group(Symbol::LeftParen).is_some())
        {
            self.at += 1;
        }
    }

    /// The statement after a condition; says whether it stands in braces.
    fn body(&mut self, docs: &mut Vec<Doc>) -> bool {
        while let Some(node) = self.node().filter(|node| node.is_trivia()) {
            docs.push(trivia(node.first()));
            self.at += 1;
        }
        let hints = self.nodes[self.at..]
            .iter()
            .take_while(|node| matches!(node, Node::Leaf(piece) if piece.kind == Kind::Annotation));
        let behind = self.at + hints.clone().count();
        let braces = self
            .nodes
            .get(behind)
            .map(|node| node.group(Symbol::LeftBrace));
        if let Some(Some(_)) = braces {
            for hint in hints {
                docs.extend([Doc::Space, text(hint.first().text)]);
            }
            self.at = behind;
        }
        match self.node() {
            None => false,
            Some(node) if node.is(Symbol::Semicolon) => {
                docs.push(text(";"));
                self.at += 1;
                false
            }
            Some(node) => match node.group(Symbol::LeftBrace) {
                Some(braces) => {
                    docs.push(Doc::Space);
                    docs.push(block(braces, Join::Never));
                    self.at += 1;
                    true
                }
                None => {
                    let mut inside = vec![Doc::Hard { blank: false }];
                    inside.extend(self.item());
                    docs.push(Doc::Indent(inside));
                    false
                }
            },
        }
    }
}

/// A word that may be a macro, or a word and its arguments, alone.
fn is_macro_call(read: &[Node<'_>]) -> bool {
    match read {
        [name] => name.token() == Some(TokenKind::Ident),
        [name, arguments] => {
            name.token() == Some(TokenKind::Ident) && arguments.group(Symbol::LeftParen).is_some()
        }
        _ => false,
    }
}
