//! Tokens, comments and directives of a file, in order.

use stateplane_diagnostics::FileId;

use super::Obstacle;
use crate::lexer::{Interner, Lexer};
use crate::token::{Symbol, Token, TokenKind};

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Token(TokenKind),
    /// `// …`
    LineComment,
    /// `/* … */`
    BlockComment,
    /// A directive with its continuation lines.
    Directive,
    /// `@pragma` and the rest of its line.
    Pragma,
    /// An annotation.
    Annotation,
    /// Text to be left as it is, from the start of a line.
    Raw,
}

/// A part of the text that is not white space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// Offset of its first byte.
    pub(super) at: usize,
    /// Line ends between the piece before and this.
    pub(super) lines: usize,
    /// True if white space or a comment precedes it.
    pub(super) spaced: bool,
    /// True if the next piece is on another line.
    pub(super) ends_line: bool,
}

impl Piece<'_> {
    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    pub(super) fn is(&self, symbol: Symbol) -> bool {
        self.kind == Kind::Token(TokenKind::Symbol(symbol))
    }

    pub(super) fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    /// The word after `#` of a directive.
    pub(super) fn directive(&self) -> Option<&str> {
        let rest = self
            .text
            .strip_prefix('#')
            .filter(|_| self.kind == Kind::Directive)?;
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic());
        Some(&rest[..end.unwrap_or(rest.len())])
    }
}

/// Splits a text.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Obstacle> {
    let mut lexer = Lexer::new(FileId::default(), text.into());
    let mut interner = Interner::default();
    let mut pieces = Vec::new();
    let mut annotation = InAnnotation::default();
    let mut end = 0;
    loop {
        let (token, complaint) = lexer.next(&mut interner);
        if let Some(complaint) = complaint {
            let at = complaint.primary.span.start as usize;
            let message = "a string or comment is never closed";
            return Err(Obstacle { at, message });
        }
        let start = token.span.start as usize;
        comments(text, end, start, &mut pieces)?;
        annotation.pass(&token);
        if token.kind == TokenKind::End {
            break;
        }
        let is_directive = token.is(Symbol::Hash) && token.line_start;
        let (kind, stop) = if is_directive || token.kind == TokenKind::Pragma {
            let kind = if is_directive {
                Kind::Directive
            } else {
                Kind::Pragma
            };
            (kind, lexer.rest_of_line().1.end as usize)
        } else if token.kind == TokenKind::Unknown && !annotation.is_open() {
            let message = "a character is not part of any P4 token";
            return Err(Obstacle { at: start, message });
        } else {
            (Kind::Token(token.kind), token.span.end as usize)
        };
        push(text, end, kind, start..stop, &mut pieces);
        end = stop;
    }
    for at in 1..pieces.len() {
        pieces[at - 1].ends_line = pieces[at].lines > 0;
    }
    if let Some(last) = pieces.last_mut() {
        last.ends_line = true;
    }
    Ok(pieces)
}

/// The comments in what lies between two tokens.
fn comments<'t>(
    text: &'t str,
    mut from: usize,
    to: usize,
    pieces: &mut Vec<Piece<'t>>,
) -> Result<(), Obstacle> {
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        let (kind, length) = if rest.starts_with("//") {
            (Kind::LineComment, line_length(rest))
        } else if let Some(body) = rest.strip_prefix("/*") {
            let length = body.find("*/").map_or(rest.len(), |end| end + 4);
            (Kind::BlockComment, length)
        } else if rest.starts_with("\\\n") {
            at += 2;
            continue;
        } else {
            let c = rest.chars().next().unwrap_or(' ');
            if !c.is_whitespace() && c != '\u{feff}' {
                let message = "a comment is cut by a backslash at the end of a line";
                return Err(Obstacle { at, message });
            }
            at += c.len_utf8();
            continue;
        };
        push(text, from, kind, at..at + length, pieces);
        at += length;
        from = at;
    }
    Ok(())
}

/// Length of a line, with those that a backslash joins to it.
fn line_length(text: &str) -> usize {
    let mut ends = text.match_indices('\n').map(|(end, _)| end);
    let end = ends.find(|end| !text[..*end].ends_with('\\'));
    end.unwrap_or(text.len())
}

fn push<'t>(
    text: &'t str,
    end: usize,
    kind: Kind,
    range: std::ops::Range<usize>,
    pieces: &mut Vec<Piece<'t>>,
) {
    let last_end = pieces.last().map_or(0, Piece::end).max(end);
    let gap = &text[last_end..range.start];
    pieces.push(Piece {
        kind,
        at: range.start,
        text: text[range].trim_end(),
        lines: gap.matches('\n').count(),
        spaced: !gap.is_empty(),
        ends_line: false,
    });
}

/// True if two texts differ in nothing but layout.
pub(super) fn same(before: &[Piece<'_>], after: &[Piece<'_>]) -> bool {
    let joined = |pieces: &[Piece<'_>], at: usize| {
        pieces[at].is(Symbol::Greater)
            && pieces
                .get(at + 1)
                .is_some_and(|next| next.is(Symbol::Greater) && !next.spaced)
    };
    let equal = |at: usize| {
        let (a, b) = (&before[at], &after[at]);
        let text = match a.kind {
            Kind::Token(_) => a.text == b.text,
            // Lines of a comment move with the first.
            _ => a
                .text
                .lines()
                .map(str::trim)
                .eq(b.text.lines().map(str::trim)),
        };
        // `>>` shifts only if nothing stands between.
        a.kind == b.kind && text && (!joined(before, at) || joined(after, at))
    };
    before.len() == after.len() && (0..before.len()).all(equal)
}

/// Place in an annotation `@name(…)`, whose parentheses hold any characters.
#[derive(Default)]
struct InAnnotation {
    /// Tokens of `@name` passed.
    head: u32,
    /// Open parentheses of its body.
    open: u32,
}

impl InAnnotation {
    fn is_open(&self) -> bool {
        self.open > 0
    }

    fn pass(&mut self, token: &Token) {
        if self.open > 0 {
            self.open += u32::from(token.is(Symbol::LeftParen));
            self.open -= u32::from(token.is(Symbol::RightParen));
            return;
        }
        self.open = u32::from(self.head == 2 && token.is(Symbol::LeftParen));
        self.head = match self.head {
            _ if token.is(Symbol::At) => 1,
            1 => 2,
            _ => 0,
        };
    }
}
