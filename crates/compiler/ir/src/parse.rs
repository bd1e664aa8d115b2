//! The text form of a program, back to the program.
//!
//! [`parse`] reads exactly what `Display` prints; white space is free, but each
//! declaration begins a line. What it gives has all its names resolved, and no rule of
//! the [verifier](crate::verify()) checked but those that the text cannot break: pass it
//! to the verifier before you run it. Declarations come in any order of kinds; positions
//! of entities are those within their kind.
//!
//! The grammar: `'…'` stands for itself, `[…]` is optional, `{…}` repeats, `list(x)` is
//! `x`s with commas between, possibly none.
//!
//! ```text
//! program     = { declaration }
//! declaration = 'pipeline' '{' 'parser' name 'verify_checksum' name 'ingress' name
//!                 'egress' name 'compute_checksum' name 'deparser' name
//!                 'headers' ':' type 'metadata' ':' type 'standard_metadata' ':' type '}'
//!             | 'field_list' integer '{' list(members) '}'
//!             | 'error' '{' list(member) '}'
//!             | 'enum' name '{' list(member) '}'
//!             | 'fields' name notes '{' { member ':' type notes } '}'
//!             | 'stack' integer ':' type '[' integer ']'
//!             | 'var' name ':' type
//!             | 'register' name ':' type '[' integer ']' notes
//!             | 'counter' name ':' ('packets' | 'bytes' | 'packets_and_bytes') extent
//!             | 'meter' name ':' ('packets' | 'bytes') extent
//!             | 'value_set' name '[' integer ']' notes
//!                 '{' { string match_kind integer } '}'
//!             | 'action_profile' name '[' integer ']' [ 'selector' algorithm integer ] notes
//!             | 'function' name params [ '->' var ] body
//!             | 'action' name params notes body
//!             | 'control' name params body
//!             | 'parser' name params '{' [ locals ] [ 'init' block ] 'start' name
//!                 { 'state' name '{' { statement } transition '}' } '}'
//!             | 'table' name notes '{' { property } '}'
//! extent      = '[' integer ']' | [ '[' integer ']' ] 'of' name
//! params      = '(' list(('in' | 'out' | 'inout' | 'data') var) ')'
//! body        = '{' [ locals ] { statement } '}'
//! locals      = 'locals' list(var)
//! block       = '{' { statement } '}'
//! transition  = 'goto' target
//!             | 'select' '(' list(expr) ')' '{' { '(' list(set) ')' '=>' target } '}'
//! target      = 'accept' | 'reject' | name
//! property    = 'key' string match_kind expr
//!             | 'action' name '(' list(arg) ')' [ 'defaultonly' ] [ 'tableonly' ]
//!             | [ 'const' ] 'default' call
//!             | [ 'const' ] 'entry' 'priority' integer '(' list(set) ')' '=>' call
//!             | 'const' 'entries' | 'size' integer | 'support_timeout'
//!             | 'direct_counter' name | 'direct_meter' name | 'implementation' name
//! call        = name [ '[' integer ']' ] '(' list(constant) ')'
//! set         = '_' | integer | integer '&&&' integer | integer '..' integer
//!             | integer '/' integer | 'in' name '[' integer ']'
//!
//! statement   = place '=' expr
//!             | 'if' expr block [ 'else' block ]
//!             | 'switch' expr '{' { 'case' list(integer) block } [ 'default' block ] '}'
//!             | 'apply' name [ 'hit' '->' place ] [ 'action_run' '->' place ]
//!             | 'call' ('action' | 'function' | 'control' | 'parser') name
//!                 '(' list(arg) ')' [ '->' place ]
//!             | place '.' ('setValid' | 'setInvalid') '(' ')'
//!             | place '.' ('push_front' | 'pop_front') '(' integer ')'
//!             | ('block' | 'atomic') block | 'loop' block [ 'update' block ]
//!             | 'break' | 'continue' | 'return' | 'exit' | operation
//! arg         = 'in' expr | 'out' place | 'inout' place
//! operation   = 'extract' [ '(' 'varbit' expr ')' ] '->' place
//!             | 'lookahead' '->' place | 'packet_length' '->' place
//!             | 'advance' '(' expr ')' | 'emit' '(' place ')'
//!             | 'verify' '(' expr ',' expr ')'
//!             | 'register_read' name '[' expr ']' '->' place
//!             | 'register_write' name '[' expr ']' '=' expr
//!             | 'counter_count' name '[' expr ']' | 'direct_counter_count' name
//!             | 'meter_execute' name '[' expr ']' '->' place
//!             | 'direct_meter_read' name '->' place
//!             | 'hash' algorithm '(' 'base' expr ',' 'max' expr ',' data ')' '->' place
//!             | 'random' '(' expr ',' expr ')' '->' place
//!             | 'verify_checksum' checksum '==' expr | 'update_checksum' checksum '->' place
//!             | 'mark_to_drop' '(' place ')' | 'truncate' '(' expr ')'
//!             | 'clone' ('i2e' | 'e2e') '(' 'session' expr [ ',' 'field_list' expr ] ')'
//!             | ('resubmit' | 'recirculate') '(' 'field_list' expr ')'
//!             | 'digest' string '(' expr ')' | 'assert' '(' expr ')' 'at' string
//!             | 'log' string '(' list(expr) ')'
//! checksum    = algorithm '(' 'if' expr ',' data [ ',' 'payload' ] ')'
//! data        = '{' list(expr) '}'
//!
//! expr        = constant | place | ('!' | '~' | '-') '(' expr ')'
//!             | '(' expr operator expr ')' | '(' expr '?' expr ':' expr ')'
//!             | '(' type ')' '(' expr ')' | '(' expr ')' '[' integer ':' integer ']'
//!             | type '{' list(expr) '}' | type '[' list(expr) ']'
//!             | 'default' '(' type ')' | place '.' 'isValid' '(' ')' | place '.' 'lastIndex'
//! constant    = 'true' | 'false' | bits | int | ('error' | name) '::' member
//! place       = var { '.' (member | 'next' | 'last') | '[' expr ']' }
//!                 [ '[' integer ':' integer ']' ]
//! type        = 'bool' | 'error' | ('bit' | 'int' | 'varbit') '<' integer '>'
//!             | 'enum' name | 'struct' name
//!             | ('header' | 'header_union') name [ '[' integer ']' ] | 'stack' integer
//! members     = '.' | member { '.' member }
//!
//! notes       = { '@' path [ '(' { token } ')' | '[' list(value) ']' | '[' list(pair) ']' ] }
//! token       = string | integer ':' string | '.' string
//! value       = string | [ '-' ] integer | 'true' | 'false'
//! pair        = member '=' value
//! var         = name
//! name        = (path | string) [ '#' integer ]
//! member      = (identifier | string) [ '#' integer ]
//! path        = identifier { '.' identifier }
//! integer     = decimal digits | '0x' hexadecimal digits
//! bits        = width 'w' integer
//! int         = width 's' [ '-' ] integer
//! ```
//!
//! A `string` is a Rust string literal. A `token` is a string literal of the source, a
//! number literal (its value, and how it is written), or any other token. A name that is no `path`, or a
//! [reserved word](crate::print::names::RESERVED), is a string. `#` and a position tell
//! apart entities of one name, and mark a variable whose name another goes on from at a
//! dot, so that no place can be read in two ways.

mod annotation;
mod declaration;
mod expr;
mod header;
mod lexer;
mod stmt;
mod symbols;
#[cfg(test)]
mod tests;

use crate::Program;
use lexer::{Lexeme, Token};
use std::fmt;
use symbols::Symbols;

/// Nesting at which the parser gives up, which is beyond what the verifier accepts.
const MAX_DEPTH: u32 = 600;

/// Why a text is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: u32,
    /// Character of the line, from 1.
    pub column: u32,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

type Result<T> = std::result::Result<T, ParseError>;

/// Reads a program from its text form.
///
/// # Errors
///
/// The first place at which the text does not follow the grammar, or names what does not
/// exist.
pub fn parse(text: &str) -> Result<Program> {
    let tokens = lexer::tokens(text)?;
    let items = header::items(&tokens)?;
    let (program, symbols) = header::declare(&tokens, &items)?;
    declaration::bodies(&tokens, &items, program, &symbols)
}

/// A parser at a token, with what the text has declared.
struct Parser<'a> {
    tokens: &'a [Lexeme],
    at: usize,
    depth: u32,
    /// Types, variables, and the names of all else.
    program: &'a Program,
    symbols: &'a Symbols,
}

impl<'a> Parser<'a> {
    fn new(
        tokens: &'a [Lexeme],
        at: usize,
        program: &'a Program,
        symbols: &'a Symbols,
    ) -> Parser<'a> {
        Parser {
            tokens,
            at,
            depth: 0,
            program,
            symbols,
        }
    }

    /// The token `ahead` of the next one. The last token is [`Token::End`].
    fn look(&self, ahead: usize) -> &'a Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)].token
    }

    fn peek(&self) -> &'a Token {
        self.look(0)
    }

    fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn error_at<T>(&self, at: usize, message: impl Into<String>) -> Result<T> {
        let last = self.tokens.len() - 1;
        let lexeme = &self.tokens[at.min(last)];
        Err(ParseError {
            line: lexeme.line,
            column: lexeme.column,
            message: message.into(),
        })
    }

    /// An error at the next token.
    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        self.error_at(self.at, message)
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        self.error(format!("expected {what}, found {}", self.peek()))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    /// Takes a sign if it comes next.
    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) {
            Ok(())
        } else {
            self.expected(&format!("`{sign}`"))
        }
    }

    /// The word that comes next and is not the start of a path.
    fn keyword(&self) -> Option<&'a str> {
        match (self.peek(), self.look(1)) {
            (_, Token::Sign("." | "#")) => None,
            (Token::Word(word), _) => Some(word),
            _ => None,
        }
    }

    /// Takes a keyword if it comes next.
    fn take_word(&mut self, word: &str) -> bool {
        let found = self.keyword() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if self.take_word(word) {
            Ok(())
        } else {
            self.expected(&format!("`{word}`"))
        }
    }

    /// The one of `choices` that the next word is.
    fn one_of<T: Copy>(
        &mut self,
        what: &str,
        choices: &[T],
        text: fn(T) -> &'static str,
    ) -> Result<T> {
        let found = match self.peek() {
            Token::Word(word) => choices
                .iter()
                .find(|choice| text(**choice) == word.as_str()),
            _ => None,
        };
        match found {
            Some(choice) => {
                self.at += 1;
                Ok(*choice)
            }
            None => self.expected(what),
        }
    }

    fn string(&mut self) -> Result<String> {
        match self.peek() {
            Token::Text(text) => {
                self.at += 1;
                Ok(text.clone())
            }
            _ => self.expected("a string"),
        }
    }

    /// Items with commas between, up to `end`, which is taken.
    fn list<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.take(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(end) {
                return Ok(items);
            }
            if !self.take(",") {
                return self.expected(&format!("`,` or `{end}`"));
            }
        }
    }

    /// Runs `inside` one level deeper.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return self.error(format!("nested deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }
}
