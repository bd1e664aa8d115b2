//! Characters to tokens, for one file, without the preprocessor's directives.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use stateplane_diagnostics::{Diagnostic, FileId, Span};

use crate::codes;
use crate::token::{Keyword, Symbol, Token, TokenKind};

/// Bytes of the longest symbol.
const LONGEST_SYMBOL: usize = 4;

/// Gives equal texts one allocation.
#[derive(Default)]
pub(crate) struct Interner(FxHashSet<Arc<str>>);

impl Interner {
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// A place in the text of a file.
#[derive(Clone)]
pub(crate) struct Lexer {
    file: FileId,
    /// Text without the line ends that follow a backslash.
    text: Arc<str>,
    /// Positions of the removed line ends.
    joints: Arc<[Joint]>,
    pos: usize,
    /// True if nothing but white space and comments has been read since the last line end.
    at_line_start: bool,
    /// The span of all tokens, for a text that is pasted together and written nowhere.
    fixed_span: Option<Span>,
}

/// A place where two lines were joined.
struct Joint {
    /// In the joined text.
    at: usize,
    /// Bytes taken out up to here, this joint's included.
    removed: usize,
}

/// Diagnostic of the lexer, besides the token that it returns.
pub(crate) type Complaint = Option<Box<Diagnostic>>;

impl Lexer {
    pub(crate) fn new(file: FileId, text: Arc<str>) -> Self {
        let (text, joints) = join_lines(text);
        Self {
            file,
            text,
            joints: joints.into(),
            pos: 0,
            at_line_start: true,
            fixed_span: None,
        }
    }

    /// A lexer of text that is written nowhere: all its tokens get the same span.
    pub(crate) fn for_pasted(text: Arc<str>, span: Span) -> Self {
        Self {
            file: span.file,
            text,
            joints: Arc::default(),
            pos: 0,
            at_line_start: false,
            fixed_span: Some(span),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    fn span_from(&self, start: usize) -> Span {
        self.fixed_span.unwrap_or_else(|| {
            let end = if self.pos > start {
                self.written_at(self.pos - 1) + 1
            } else {
                self.written_at(start)
            };
            Span::new(self.file, self.written_at(start) as u32, end as u32)
        })
    }

    /// The place in the file of byte `at` of the joined text.
    fn written_at(&self, at: usize) -> usize {
        let before = self.joints.partition_point(|joint| joint.at <= at);
        match before.checked_sub(1) {
            Some(last) => at + self.joints[last].removed,
            None => at,
        }
    }

    /// True if the next token is the first of a line, or there is none.
    pub(crate) fn next_starts_line(&self) -> bool {
        let mut ahead = self.clone();
        ahead.skip_blank();
        ahead.at_line_start || ahead.pos == ahead.text.len()
    }

    /// The rest of the current line, comments removed and ends trimmed, for directives that
    /// take text and not tokens. Reads up to the line end.
    pub(crate) fn rest_of_line(&mut self) -> (String, Span) {
        let start = self.pos;
        let mut out = String::new();
        while let Some(c) = self.rest().chars().next() {
            if c == '\n' {
                break;
            } else if self.rest().starts_with("//") {
                self.pos += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                let body = &self.rest()[2..];
                self.pos += body.find("*/").map_or(body.len() + 2, |at| at + 4);
                out.push(' ');
            } else {
                self.pos += c.len_utf8();
                out.push(c);
            }
        }
        (out.trim().to_owned(), self.span_from(start))
    }

    /// Reads up to the next `#` that begins a line, and past it; `false` at the end of the
    /// text. What lies between need not consist of tokens.
    pub(crate) fn skip_to_directive(&mut self) -> bool {
        loop {
            self.skip_blank();
            let Some(c) = self.rest().chars().next() else {
                return false;
            };
            if c == '#' && self.at_line_start {
                self.pos += 1;
                self.at_line_start = false;
                return true;
            }
            self.at_line_start = false;
            if c == '"' {
                let line = self.rest().find('\n').unwrap_or(self.rest().len());
                let length = string_length(&self.rest()[..line]).unwrap_or(line);
                self.pos += length;
            } else {
                self.pos += c.len_utf8();
            }
        }
    }

    /// Skips white space and comments; says whether there was any.
    fn skip_blank(&mut self) -> (bool, Complaint) {
        let start = self.pos;
        let mut complaint = None;
        loop {
            let rest = self.rest();
            if rest.starts_with('\n') {
                self.pos += 1;
                self.at_line_start = true;
            } else if let Some(c) = rest.chars().next().filter(|c| c.is_whitespace()) {
                self.pos += c.len_utf8();
            } else if self.pos == 0 && rest.starts_with('\u{feff}') {
                self.pos += '\u{feff}'.len_utf8();
            } else if rest.starts_with("//") {
                self.pos += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(body) = rest.strip_prefix("/*") {
                if let Some(end) = body.find("*/") {
                    self.pos += end + 4;
                } else {
                    let open = self.pos;
                    self.pos += 2;
                    let span = self.span_from(open);
                    self.pos = self.text.len();
                    let unclosed = Diagnostic::error(
                        codes::UNTERMINATED_COMMENT,
                        span,
                        "comment is never closed",
                    );
                    complaint = Some(Box::new(unclosed.with_help("close it with `*/`")));
                }
            } else {
                return (self.pos > start, complaint);
            }
        }
    }

    /// The next token; [`TokenKind::End`] at the end of the text, again and again.
    pub(crate) fn next(&mut self, interner: &mut Interner) -> (Token, Complaint) {
        let (space_before, mut complaint) = self.skip_blank();
        let line_start = std::mem::take(&mut self.at_line_start);
        let start = self.pos;
        let (kind, length) = self.classify();
        self.pos += length;
        let span = self.span_from(start);
        match kind {
            TokenKind::String if string_length(&self.text[start..self.pos]).is_none() => {
                let unclosed = Diagnostic::error(
                    codes::UNTERMINATED_STRING,
                    Span::new(span.file, span.start, span.start + 1),
                    "string literal is never closed",
                );
                let help = "close it with `\"`; a quote inside a string is written `\\\"`";
                complaint = Some(Box::new(unclosed.with_help(help)));
            }
            TokenKind::End => self.at_line_start = true,
            _ => {}
        }
        let text = interner.get(&self.text[start..self.pos]);
        let joint = self.rest().chars().next().is_some_and(|c| {
            !c.is_whitespace() && !self.rest().starts_with("//") && !self.rest().starts_with("/*")
        });
        (
            Token {
                kind,
                text,
                span,
                line_start,
                space_before,
                joint,
            },
            complaint,
        )
    }

    /// Kind and length in bytes of the token that begins here.
    fn classify(&self) -> (TokenKind, usize) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return (TokenKind::End, 0);
        };
        let word_length = |text: &str| {
            text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(text.len())
        };
        if first.is_ascii_digit() {
            return (TokenKind::Number, word_length(rest));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let length = word_length(rest);
            let kind =
                Keyword::from_text(&rest[..length]).map_or(TokenKind::Ident, TokenKind::Keyword);
            return (kind, length);
        }
        if first == '"' {
            return (TokenKind::String, string_length(rest).unwrap_or(rest.len()));
        }
        if let Some(after) = rest.strip_prefix("@pragma")
            && word_length(after) == 0
        {
            return (TokenKind::Pragma, "@pragma".len());
        }
        let longest = rest.bytes().take(LONGEST_SYMBOL);
        let length = longest
            .take_while(|byte| byte.is_ascii_punctuation())
            .count();
        for length in (1..=length).rev() {
            if let Some(symbol) = Symbol::from_text(&rest[..length]) {
                return (TokenKind::Symbol(symbol), length);
            }
        }
        (TokenKind::Unknown, first.len_utf8())
    }
}

/// Joins lines that end in a backslash with the next, wherever that is: in a directive, a
/// comment or the middle of a name (as the C preprocessor does, ISO C 5.1.1.2).
fn join_lines(text: Arc<str>) -> (Arc<str>, Vec<Joint>) {
    let mut joints = Vec::new();
    if !text.contains("\\\n") && !text.contains("\\\r\n") {
        return (text, joints);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        joined.push_str(before);
        let length = ["\\\n", "\\\r\n"]
            .iter()
            .find(|end| after.starts_with(**end))
            .map_or(0, |end| end.len());
        if length == 0 {
            joined.push('\\');
            rest = &after[1..];
        } else {
            rest = &after[length..];
            joints.push(Joint {
                at: joined.len(),
                removed: text.len() - rest.len() - joined.len(),
            });
        }
    }
    joined.push_str(rest);
    (joined.into(), joints)
}

/// Length of the string literal at the start of the text, quotes included; `None` where the
/// closing quote is missing. A string may run over several lines (specification 6.4.3.3).
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}
