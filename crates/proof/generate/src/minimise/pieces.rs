//! A text as nested groups of brackets.

use std::ops::Range;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A word, a number, a string, a sign, or a line with a directive.
    Token(String),
    /// Brackets with what is between them.
    Group { open: char, body: Vec<Piece> },
}

/// Signs of more than one character that may not be taken apart, longest first.
const SIGNS: [&str; 27] = [
    "|+|=", "|-|=", "&&&", "...", "{#}", "+:", "|+|", "|-|", "<<=", ">>=", "++", "<<", ">>", "..",
    "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "|=", "&=", "^=", "/=",
];

/// Greatest depth of groups; deeper brackets are plain tokens.
const MAX_DEPTH: usize = 200;

/// Takes a text apart. A closing bracket without an opening one is a token, and an
/// opening one is closed at the end of the text at the latest.
pub(super) fn read(text: &str) -> Vec<Piece> {
    let mut stack: Vec<(char, Vec<Piece>)> = vec![('\0', Vec::new())];
    let mut rest = text;
    let mut at_line_start = true;
    while let Some(next) = rest.chars().next() {
        if next.is_whitespace() {
            at_line_start |= next == '\n';
            rest = &rest[next.len_utf8()..];
            continue;
        }
        let length = if next == '#' && at_line_start {
            rest.find('\n').unwrap_or(rest.len())
        } else {
            token_length(rest, next)
        };
        at_line_start = false;
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if token.starts_with("//") || token.starts_with("/*") {
            continue;
        }
        let closes = stack.last().and_then(|(open, _)| closing(*open)) == Some(next);
        if closing(next).is_some() && length == 1 && stack.len() < MAX_DEPTH {
            stack.push((next, Vec::new()));
        } else if closes && length == 1 && stack.len() > 1 {
            close(&mut stack);
        } else if let Some((_, body)) = stack.last_mut() {
            body.push(Piece::Token(token.to_owned()));
        }
    }
    while stack.len() > 1 {
        close(&mut stack);
    }
    stack.pop().map(|(_, body)| body).unwrap_or_default()
}

fn close(stack: &mut Vec<(char, Vec<Piece>)>) {
    if let Some((open, body)) = stack.pop()
        && let Some((_, outer)) = stack.last_mut()
    {
        outer.push(Piece::Group { open, body });
    }
}

fn closing(open: char) -> Option<char> {
    match open {
        '(' => Some(')'),
        '[' => Some(']'),
        '{' => Some('}'),
        _ => None,
    }
}

fn token_length(rest: &str, next: char) -> usize {
    let span = |end: Option<usize>| end.unwrap_or(rest.len());
    if rest.starts_with("//") {
        return span(rest.find('\n'));
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        return span(comment.find("*/").map(|end| end + 4));
    }
    if next == '"' {
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return span(end.map(|(at, _)| at + 1));
    }
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    if in_word(next) || next == '@' {
        let mut behind = rest.char_indices().skip(1);
        return span(behind.find(|(_, c)| !in_word(*c)).map(|(at, _)| at));
    }
    SIGNS
        .iter()
        .find(|sign| rest.starts_with(**sign))
        .map_or(next.len_utf8(), |sign| sign.len())
}

/// The text of pieces: a line for each item in braces.
pub(super) fn write(pieces: &[Piece]) -> String {
    let mut out = String::new();
    write_into(pieces, 0, true, &mut out);
    out
}

fn write_into(pieces: &[Piece], indent: usize, lines: bool, out: &mut String) {
    for item in items(pieces) {
        if lines {
            out.push_str(&"    ".repeat(indent));
        }
        for piece in &pieces[item] {
            match piece {
                Piece::Token(token) => {
                    if token.starts_with('#') && !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(token);
                    out.push_str(if token.starts_with('#') { "\n" } else { " " });
                }
                Piece::Group { open, body } => {
                    out.push(*open);
                    let braces = *open == '{' && !body.is_empty();
                    if braces {
                        out.push('\n');
                    }
                    write_into(body, indent + 1, braces, out);
                    if braces {
                        out.push_str(&"    ".repeat(indent));
                    }
                    out.extend(closing(*open));
                    out.push(' ');
                }
            }
        }
        if lines {
            while out.ends_with(' ') {
                out.pop();
            }
            out.push('\n');
        }
    }
}

/// The items of a group: each ends with `;` or `,`, or with braces that nothing
/// continues.
pub(super) fn items(group: &[Piece]) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut start = 0;
    for (index, piece) in group.iter().enumerate() {
        let ends = match piece {
            Piece::Token(token) => matches!(token.as_str(), ";" | ",") || token.starts_with('#'),
            Piece::Group { open: '{', .. } => !matches!(
                group.get(index + 1),
                Some(Piece::Token(next)) if matches!(next.as_str(), ";" | "," | "else" | "." | "==" | "!=" | "++")
            ),
            Piece::Group { .. } => false,
        };
        if ends {
            items.push(start..index + 1);
            start = index + 1;
        }
    }
    if start < group.len() {
        items.push(start..group.len());
    }
    items
}

/// The group that `path` leads to, or the whole for an empty path.
pub(super) fn at<'a>(pieces: &'a [Piece], path: &[usize]) -> Option<&'a [Piece]> {
    let Some((first, rest)) = path.split_first() else {
        return Some(pieces);
    };
    match pieces.get(*first)? {
        Piece::Group { body, .. } => at(body, rest),
        Piece::Token(_) => None,
    }
}

/// Mutable piece, see [`at`].
pub(super) fn at_mut<'a>(pieces: &'a mut Vec<Piece>, path: &[usize]) -> Option<&'a mut Vec<Piece>> {
    let Some((first, rest)) = path.split_first() else {
        return Some(pieces);
    };
    match pieces.get_mut(*first)? {
        Piece::Group { body, .. } => at_mut(body, rest),
        Piece::Token(_) => None,
    }
}

fn token(text: &str) -> Piece {
    Piece::Token(text.to_owned())
}

/// Possible replacements of an item, the simplest first: the bodies of its braces; a constant
/// behind its `=`; for each of its parentheses a constant, or a group within. No replacement has
/// more pieces than the item, and of those with as many each is a constant, so that replacing ends.
pub(super) fn simpler(item: &[Piece]) -> Vec<Vec<Piece>> {
    let mut found = Vec::new();
    for piece in item {
        if let Piece::Group { open: '{', body } = piece {
            found.push(body.clone());
        }
    }
    let assigned = item.iter().position(|piece| *piece == token("="));
    if let Some(assigned) = assigned
        && item.last() == Some(&token(";"))
        && item.len() > assigned + 3
    {
        for constant in ["0", "false"] {
            let mut shorter = item[..=assigned].to_vec();
            shorter.extend([token(constant), token(";")]);
            found.push(shorter);
        }
    }
    for (index, piece) in item.iter().enumerate() {
        let Piece::Group { open: '(', body } = piece else {
            continue;
        };
        let mut put = |replacement: Vec<Piece>| {
            let mut changed = item.to_vec();
            changed.splice(index..=index, replacement);
            found.push(changed);
        };
        let is_constant = matches!(body.as_slice(), [Piece::Token(only)]
            if matches!(only.as_str(), "0" | "1" | "true" | "false"));
        if !is_constant && !body.is_empty() {
            for constant in ["0", "false", "1", "true"] {
                put(vec![Piece::Group {
                    open: '(',
                    body: vec![token(constant)],
                }]);
            }
        }
        for inner in body {
            if matches!(inner, Piece::Group { open: '(', .. }) {
                put(vec![inner.clone()]);
            }
        }
    }
    found
}
