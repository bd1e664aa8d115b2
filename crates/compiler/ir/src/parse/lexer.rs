//! Tokens of the text form.

use super::{ParseError, Result};
use num_bigint::{BigInt, BigUint};
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// Digits of the longest number: more than the widest value has.
const MAX_DIGITS: usize = 4096;

/// Signs, each before those that it begins with.
const SIGNS: [&str; 39] = [
    "&&&", "|+|", "|-|", "->", "=>", "::", "..", "++", "<<", ">>", "==", "!=", "<=", ">=", "&&",
    "||", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", ".", "=", "+", "-", "*", "/", "%", "&",
    "|", "^", "!", "~", "?",
];

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or keyword; `$` is a letter.
    Word(String),
    /// `12` or `0xc`.
    Number(BigUint),
    /// `8w12`.
    Bits(u32, BigUint),
    /// `8s-1`.
    Int(u32, BigInt),
    /// A string literal's content.
    Text(String),
    /// Punctuation, and `#` and `@`.
    Sign(&'static str),
    /// The end of the text.
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Number(_) | Token::Bits(..) | Token::Int(..) => f.write_str("a number"),
            Token::Text(_) => f.write_str("a string"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A token and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) line: u32,
    pub(super) column: u32,
    /// True if the token is the first of its line.
    pub(super) first: bool,
}

struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: u32,
    column: u32,
}

/// Splits a text; the last token is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Lexeme>> {
    let mut lexer = Lexer {
        rest: text.chars().peekable(),
        line: 1,
        column: 1,
    };
    let mut tokens: Vec<Lexeme> = Vec::new();
    loop {
        while lexer.bump_if(char::is_whitespace).is_some() {}
        let (line, column) = (lexer.line, lexer.column);
        let token = lexer.token().map_err(|message| ParseError {
            line,
            column,
            message,
        })?;
        let end = token == Token::End;
        tokens.push(Lexeme {
            token,
            line,
            column,
            first: tokens.last().is_none_or(|last| last.line < line),
        });
        if end {
            return Ok(tokens);
        }
    }
}

impl Lexer<'_> {
    fn bump_if(&mut self, wanted: impl FnOnce(char) -> bool) -> Option<char> {
        let found = self.rest.next_if(|c| wanted(*c))?;
        if found == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
        } else {
            self.column = self.column.saturating_add(1);
        }
        Some(found)
    }

    fn run(&mut self, wanted: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.bump_if(&wanted)).collect()
    }

    fn token(&mut self) -> std::result::Result<Token, String> {
        let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        match self.rest.peek() {
            None => Ok(Token::End),
            Some('"') => self.text(),
            Some('0'..='9') => {
                let digits = self.run(in_word);
                self.number(&digits)
            }
            Some(c) if in_word(*c) => Ok(Token::Word(self.run(in_word))),
            Some('#') => {
                self.bump_if(|_| true);
                Ok(Token::Sign("#"))
            }
            Some('@') => {
                self.bump_if(|_| true);
                Ok(Token::Sign("@"))
            }
            Some(c) => {
                let unknown = format!("unknown character {c:?}");
                let ahead: String = self.rest.clone().take(3).collect();
                let found = SIGNS.iter().find(|sign| ahead.starts_with(**sign));
                let sign = found.ok_or(unknown)?;
                for _ in 0..sign.len() {
                    self.bump_if(|_| true);
                }
                Ok(Token::Sign(sign))
            }
        }
    }

    fn number(&mut self, digits: &str) -> std::result::Result<Token, String> {
        let wrong = || format!("`{digits}` is no number");
        let width = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        if let Some((before, after)) = digits.split_once('w') {
            return Ok(Token::Bits(width(before)?, integer(after)?));
        }
        if let Some((before, after)) = digits.split_once('s') {
            let width = width(before)?;
            if after.is_empty() && self.bump_if(|c| c == '-').is_some() {
                let magnitude = self.run(|c| c.is_ascii_alphanumeric());
                return Ok(Token::Int(width, -BigInt::from(integer(&magnitude)?)));
            }
            return Ok(Token::Int(width, BigInt::from(integer(after)?)));
        }
        Ok(Token::Number(integer(digits)?))
    }

    fn text(&mut self) -> std::result::Result<Token, String> {
        self.bump_if(|_| true);
        let mut text = String::new();
        loop {
            let unclosed = "a string is not closed on its line";
            let c = self.bump_if(|c| c != '\n').ok_or(unclosed)?;
            match c {
                '"' => return Ok(Token::Text(text)),
                '\\' => text.push(self.escape()?),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> std::result::Result<char, String> {
        let wrong = "an escape that is none of a Rust string's";
        Ok(match self.bump_if(|c| c != '\n').ok_or(wrong)? {
            't' => '\t',
            'r' => '\r',
            'n' => '\n',
            '0' => '\0',
            c @ ('\\' | '"' | '\'') => c,
            'u' => {
                self.bump_if(|c| c == '{').ok_or(wrong)?;
                let digits = self.run(|c| c.is_ascii_hexdigit());
                self.bump_if(|c| c == '}').ok_or(wrong)?;
                let code = u32::from_str_radix(&digits, 16).map_err(|_| wrong)?;
                char::from_u32(code).ok_or(wrong)?
            }
            _ => return Err(wrong.to_owned()),
        })
    }
}

/// A decimal or hexadecimal number.
fn integer(text: &str) -> std::result::Result<BigUint, String> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.len() > MAX_DIGITS {
        return Err(format!("a number of more than {MAX_DIGITS} digits"));
    }
    let sound = digits.chars().all(|c| c.is_digit(radix));
    let value = BigUint::parse_bytes(digits.as_bytes(), radix).filter(|_| sound);
    value.ok_or_else(|| format!("`{text}` is no number"))
}
