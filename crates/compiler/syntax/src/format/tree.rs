//! Pieces nested by their brackets.

use super::Obstacle;
use super::piece::{Kind, Piece};
use crate::MAX_NESTING;
use crate::token::{Keyword, Symbol, TokenKind};

/// A piece, or what stands in a pair of brackets.
#[derive(Clone, Debug)]
pub(super) enum Node<'t> {
    Leaf(Piece<'t>),
    Group(Group<'t>),
}

/// A pair of brackets, which may be `<` and `>` around type arguments, and what they hold.
#[derive(Clone, Debug)]
pub(super) struct Group<'t> {
    pub(super) open: Piece<'t>,
    pub(super) body: Vec<Node<'t>>,
    pub(super) close: Piece<'t>,
}

impl<'t> Node<'t> {
    /// The piece that it begins with.
    pub(super) fn first(&self) -> &Piece<'t> {
        match self {
            Node::Leaf(piece) => piece,
            Node::Group(group) => &group.open,
        }
    }

    pub(super) fn is(&self, symbol: Symbol) -> bool {
        matches!(self, Node::Leaf(piece) if piece.is(symbol))
    }

    pub(super) fn keyword(&self) -> Option<Keyword> {
        match self {
            Node::Leaf(Piece {
                kind: Kind::Token(TokenKind::Keyword(keyword)),
                ..
            }) => Some(*keyword),
            _ => None,
        }
    }

    pub(super) fn is_word(&self) -> bool {
        matches!(self.token(), Some(TokenKind::Ident | TokenKind::Keyword(_)))
    }

    pub(super) fn token(&self) -> Option<TokenKind> {
        match self {
            Node::Leaf(Piece {
                kind: Kind::Token(kind),
                ..
            }) => Some(*kind),
            _ => None,
        }
    }

    pub(super) fn symbol(&self) -> Option<Symbol> {
        match self.token() {
            Some(TokenKind::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    pub(super) fn group(&self, open: Symbol) -> Option<&Group<'t>> {
        match self {
            Node::Group(group) if group.open.is(open) => Some(group),
            _ => None,
        }
    }

    /// True if it is no token: a comment, a directive or the like.
    pub(super) fn is_trivia(&self) -> bool {
        matches!(self, Node::Leaf(piece) if !matches!(piece.kind, Kind::Token(_) | Kind::Annotation))
    }
}

/// Nests the pieces of a text.
pub(super) fn nodes<'t>(text: &'t str, pieces: &[Piece<'t>]) -> Result<Vec<Node<'t>>, Obstacle> {
    let mut stack: Vec<(Piece<'t>, Vec<Node<'t>>)> = Vec::new();
    let mut nodes = Vec::new();
    let quoting: Vec<&str> = pieces.iter().filter_map(quoting_macro).collect();
    let mut raw = cut(pieces).into_iter().peekable();
    let mut at = 0;
    while at < pieces.len() {
        let piece = pieces[at];
        if let Some(range) = raw.next_if(|range| range.start == at) {
            at = range.end;
            nodes.push(Node::Leaf(joined(text, &pieces[range], Kind::Raw)));
            continue;
        }
        if quoting.contains(&piece.text)
            && let Some(end) = call_end(pieces, at + 1)
        {
            nodes.push(Node::Leaf(joined(text, &pieces[at..end], piece.kind)));
            at = end;
            continue;
        }
        if let Some(end) = annotation_end(pieces, at) {
            nodes.push(Node::Leaf(joined(text, &pieces[at..end], Kind::Annotation)));
            at = end;
            continue;
        }
        at += 1;
        match bracket(&piece) {
            Some(true) => {
                if stack.len() >= MAX_NESTING as usize {
                    let message = "brackets are nested too deeply";
                    return Err(Obstacle {
                        at: piece.at,
                        message,
                    });
                }
                stack.push((piece, std::mem::take(&mut nodes)));
            }
            Some(false) => {
                let Some((open, around)) = stack.pop().filter(|(open, _)| pair(open, &piece))
                else {
                    let message = "a closing bracket has no opening one";
                    return Err(Obstacle {
                        at: piece.at,
                        message,
                    });
                };
                let body = angles(std::mem::replace(&mut nodes, around));
                nodes.push(Node::Group(Group {
                    open,
                    body,
                    close: piece,
                }));
            }
            None => nodes.push(Node::Leaf(piece)),
        }
    }
    match stack.pop() {
        None => Ok(angles(nodes)),
        Some((open, _)) => Err(Obstacle {
            at: open.at,
            message: "an opening bracket has no closing one",
        }),
    }
}

/// True if a piece is an opening or a closing bracket.
fn bracket(piece: &Piece<'_>) -> Option<bool> {
    match piece.kind {
        Kind::Token(TokenKind::Symbol(
            Symbol::LeftParen | Symbol::LeftBracket | Symbol::LeftBrace,
        )) => Some(true),
        Kind::Token(TokenKind::Symbol(
            Symbol::RightParen | Symbol::RightBracket | Symbol::RightBrace,
        )) => Some(false),
        _ => None,
    }
}

fn pair(open: &Piece<'_>, close: &Piece<'_>) -> bool {
    matches!(
        (open.text, close.text),
        ("(", ")") | ("[", "]") | ("{", "}")
    )
}

/// Several pieces with all that stands between them, as one.
fn joined<'t>(text: &'t str, pieces: &[Piece<'t>], kind: Kind) -> Piece<'t> {
    let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
    Piece {
        kind,
        text: &text[first.at..last.end()],
        ends_line: last.ends_line,
        ..first
    }
}

/// The piece after an annotation that begins at `at`, with the body in its brackets.
fn annotation_end(pieces: &[Piece<'_>], at: usize) -> Option<usize> {
    if !pieces[at].is(Symbol::At) {
        return None;
    }
    let body = at + 2;
    match pieces.get(body) {
        Some(open) if bracket(open) == Some(true) && open.text != "{" => call_end(pieces, body),
        _ => Some(body.min(pieces.len())),
    }
}

/// The piece after the brackets that open at `at`, if there are such and no directive is
/// in them.
fn call_end(pieces: &[Piece<'_>], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, piece) in pieces.get(at..)?.iter().enumerate() {
        match bracket(piece) {
            Some(true) => depth += 1,
            Some(false) => depth = depth.saturating_sub(1),
            None if piece.kind == Kind::Directive => return None,
            None => {}
        }
        if depth == 0 {
            return (offset > 0).then_some(at + offset + 1);
        }
    }
    None
}

/// The name of a macro that a directive defines and that makes a string of an argument, in
/// which white space then counts.
fn quoting_macro<'t>(piece: &Piece<'t>) -> Option<&'t str> {
    if piece.directive() != Some("define") {
        return None;
    }
    let (_, definition) = piece.text.split_once("define")?;
    let (name, rest) = definition.trim_start().split_once('(')?;
    let quotes = rest.replace("##", "").contains('#');
    (quotes && !name.contains(char::is_whitespace)).then_some(name)
}

/// A conditional that is open.
struct Conditional {
    /// Nesting of brackets where it begins.
    depth: usize,
    /// Nesting where its first branch ends.
    after: Option<usize>,
    /// Start of the declaration that the token stands in or before.
    declaration: usize,
    /// Conditionals around that declaration.
    around: usize,
}

/// The declarations in which a branch of a conditional opens brackets that it does not
/// close, or closes some that it did not open.
fn cut(pieces: &[Piece<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    let mut open: Vec<Conditional> = Vec::new();
    let (mut depth, mut declaration, mut around) = (0_usize, 0, 0);
    // The start of what is cut, and the conditionals around it.
    let mut damaged: Option<(usize, usize)> = None;
    for (at, piece) in pieces.iter().enumerate() {
        let directive = piece.directive();
        match directive {
            Some("if" | "ifdef" | "ifndef") => open.push(Conditional {
                depth,
                after: None,
                declaration,
                around,
            }),
            Some("else" | "elif" | "endif") => {
                if let Some(last) = open.last_mut() {
                    if depth != last.depth && damaged.is_none() {
                        damaged = Some((last.declaration, last.around));
                    }
                    let after = *last.after.get_or_insert(depth);
                    depth = last.depth;
                    if directive == Some("endif") {
                        depth = after;
                        open.pop();
                    }
                }
            }
            _ => match bracket(piece) {
                Some(true) => depth += 1,
                Some(false) => {
                    depth = depth.saturating_sub(1);
                    if let Some(last) = open.last()
                        && depth < last.depth
                        && damaged.is_none()
                    {
                        damaged = Some((last.declaration, last.around));
                    }
                }
                None => {}
            },
        }
        let ends = piece.is(Symbol::Semicolon) || piece.is(Symbol::RightBrace);
        let between = declaration == at && piece.kind == Kind::Directive;
        if depth == 0 && (ends || between || damaged.is_some() && directive == Some("endif")) {
            match damaged {
                Some((start, outside)) if open.len() <= outside => {
                    ranges.push(start..at + 1);
                    damaged = None;
                }
                _ => {}
            }
            if damaged.is_none() {
                declaration = at + 1;
                around = open.len();
            }
        }
    }
    if let Some((start, _)) = damaged {
        ranges.push(start..pieces.len());
    }
    ranges
}

/// Makes groups of the angle brackets around type arguments.
fn angles(nodes: Vec<Node<'_>>) -> Vec<Node<'_>> {
    if !nodes.iter().any(|node| node.is(Symbol::Less)) {
        return nodes;
    }
    let mut out: Vec<Node<'_>> = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        if let Some(end) = angle_end(&nodes, at) {
            out.push(angle(&nodes, at, end));
            at = end + 1;
        } else {
            out.push(nodes[at].clone());
            at += 1;
        }
    }
    out
}

/// The group of the angle brackets at `at` and `end`.
fn angle<'t>(nodes: &[Node<'t>], at: usize, end: usize) -> Node<'t> {
    Node::Group(Group {
        open: *nodes[at].first(),
        body: angles(nodes[at + 1..end].to_vec()),
        close: *nodes[end].first(),
    })
}

/// End of the type arguments that begin with the `<` at `at`, if they do.
fn angle_end(nodes: &[Node<'_>], at: usize) -> Option<usize> {
    if !nodes[at].is(Symbol::Less) {
        return None;
    }
    let name = nodes[..at].iter().rfind(|node| !node.is_trivia())?;
    let of_type = matches!(
        name.keyword(),
        Some(
            Keyword::Bit
                | Keyword::Int
                | Keyword::Varbit
                | Keyword::Tuple
                | Keyword::List
                | Keyword::ValueSet
        )
    );
    if !name.is_word() {
        return None;
    }
    let spaced = |at: usize| nodes.get(at).is_some_and(|node| node.first().spaced);
    // A comparison has spaces around `<`.
    if !of_type && spaced(at) && spaced(at + 1) {
        return None;
    }
    let mut end = at + 1;
    loop {
        let node = nodes.get(end)?;
        match node {
            _ if node.is(Symbol::Greater) => break,
            _ if node.is(Symbol::Less) => end = angle_end(nodes, end)?,
            _ if node.is_word() || node.is(Symbol::Comma) || node.is(Symbol::Dot) => {}
            Node::Leaf(_) if node.token() == Some(TokenKind::Number) => {}
            Node::Group(group) if !group.open.is(Symbol::LeftBrace) => {}
            Node::Leaf(_) if of_type && node.symbol().is_some_and(is_arithmetic) => {}
            _ => return None,
        }
        end += 1;
    }
    let follows = nodes[end + 1..].iter().find(|node| !node.is_trivia());
    let sound = of_type
        || follows.is_none_or(|next| {
            next.is_word()
                || matches!(next, Node::Group(_))
                || [
                    Symbol::Greater,
                    Symbol::Comma,
                    Symbol::Dot,
                    Symbol::Semicolon,
                ]
                .iter()
                .any(|symbol| next.is(*symbol))
        });
    sound.then_some(end)
}

/// Operators in a width, `bit<W + 1>`, as a macro may leave it.
fn is_arithmetic(symbol: Symbol) -> bool {
    matches!(
        symbol,
        Symbol::Plus | Symbol::Minus | Symbol::Star | Symbol::Slash
    )
}
