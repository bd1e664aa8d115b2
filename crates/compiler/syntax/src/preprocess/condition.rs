//! The integer expressions of `#if` and `#elif`.

use stateplane_diagnostics::{Diagnostic, Span};

use crate::codes;
use crate::token::{Symbol, Token, TokenKind};

/// Maximum nesting of parentheses and prefix operators.
const MAX_DEPTH: u32 = 64;

/// The value of an expression in which macros are expanded and `defined` is resolved. Names
/// that are left count as 0. Arithmetic is of 64 bits and wraps.
pub(super) fn evaluate(tokens: &[Token], directive: Span) -> Result<i64, Box<Diagnostic>> {
    let mut evaluator = Evaluator {
        tokens,
        at: 0,
        directive,
        depth: 0,
    };
    let value = evaluator.conditional(true)?;
    match evaluator.peek() {
        None => Ok(value),
        Some(token) => Err(evaluator.bad(token.span, "this does not continue the condition")),
    }
}

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    directive: Span,
    depth: u32,
}

impl<'a> Evaluator<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, symbol: Symbol) -> bool {
        let found = self.peek().is_some_and(|t| t.is(symbol));
        self.at += usize::from(found);
        found
    }

    fn bad(&self, span: Span, message: &str) -> Box<Diagnostic> {
        Box::new(
            Diagnostic::error(codes::BAD_CONDITION, span, message)
                .with_help("a condition is made of integers, `defined(NAME)` and operators"),
        )
    }

    fn here(&self) -> Span {
        self.peek()
            .or(self.tokens.last())
            .map_or(self.directive, |t| t.span)
    }

    /// Parts that short-circuit or `?:` leaves out are read with `live` false, where a
    /// division by zero is no error.
    fn conditional(&mut self, live: bool) -> Result<i64, Box<Diagnostic>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.bad(self.here(), "the condition is nested too deeply"));
        }
        let condition = self.binary(0, live)?;
        let value = if self.take(Symbol::Question) {
            let then = self.conditional(live && condition != 0)?;
            if !self.take(Symbol::Colon) {
                return Err(self.bad(self.here(), "`:` is missing after `?`"));
            }
            let otherwise = self.conditional(live && condition == 0)?;
            if condition == 0 { otherwise } else { then }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    /// The operator at hand, its binding strength and the number of its tokens.
    fn operator(&self) -> Option<(Symbol, u8, usize)> {
        let token = self.peek()?;
        let TokenKind::Symbol(symbol) = token.kind else {
            return None;
        };
        let next_is_greater = self
            .tokens
            .get(self.at + 1)
            .is_some_and(|t| t.is(Symbol::Greater));
        let strength = match symbol {
            Symbol::Or => 1,
            Symbol::And => 2,
            Symbol::Pipe => 3,
            Symbol::Caret => 4,
            Symbol::Ampersand => 5,
            Symbol::Equal | Symbol::NotEqual => 6,
            Symbol::Greater if token.joint && next_is_greater => return Some((Symbol::Shl, 8, 2)),
            Symbol::Less | Symbol::LessEqual | Symbol::Greater | Symbol::GreaterEqual => 7,
            Symbol::Shl => 8,
            Symbol::Plus | Symbol::Minus => 9,
            Symbol::Star | Symbol::Slash | Symbol::Percent => 10,
            _ => return None,
        };
        Some((symbol, strength, 1))
    }

    fn binary(&mut self, weakest: u8, live: bool) -> Result<i64, Box<Diagnostic>> {
        let mut left = self.unary(live)?;
        while let Some((symbol, strength, length)) = self.operator().filter(|o| o.1 > weakest) {
            let op_span = self.here();
            self.at += length;
            let right_live = live
                && match symbol {
                    Symbol::Or => left == 0,
                    Symbol::And => left != 0,
                    _ => true,
                };
            let right = self.binary(strength, right_live)?;
            left = match symbol {
                Symbol::Or => i64::from(left != 0 || right != 0),
                Symbol::And => i64::from(left != 0 && right != 0),
                Symbol::Pipe => left | right,
                Symbol::Caret => left ^ right,
                Symbol::Ampersand => left & right,
                Symbol::Equal => i64::from(left == right),
                Symbol::NotEqual => i64::from(left != right),
                Symbol::Less => i64::from(left < right),
                Symbol::LessEqual => i64::from(left <= right),
                Symbol::Greater => i64::from(left > right),
                Symbol::GreaterEqual => i64::from(left >= right),
                Symbol::Shl if length == 2 => left.wrapping_shr(right.clamp(0, 63) as u32),
                Symbol::Shl if (0..64).contains(&right) => left.wrapping_shl(right as u32),
                Symbol::Shl => 0,
                Symbol::Plus => left.wrapping_add(right),
                Symbol::Minus => left.wrapping_sub(right),
                Symbol::Star => left.wrapping_mul(right),
                _ if right == 0 && live => {
                    return Err(self.bad(op_span, "the condition divides by zero"));
                }
                _ if right == 0 => 0,
                Symbol::Slash => left.wrapping_div(right),
                _ => left.wrapping_rem(right),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Result<i64, Box<Diagnostic>> {
        let Some(token) = self.peek() else {
            return Err(self.bad(self.here(), "the condition ends where a value is expected"));
        };
        self.at += 1;
        match token.kind {
            TokenKind::Number => number(&token.text)
                .ok_or_else(|| self.bad(token.span, "this is not an integer of 64 bits")),
            TokenKind::Ident | TokenKind::Keyword(_) => Ok(0),
            TokenKind::Symbol(Symbol::LeftParen) => {
                let value = self.conditional(live)?;
                if self.take(Symbol::RightParen) {
                    Ok(value)
                } else {
                    Err(self.bad(self.here(), "`)` is missing"))
                }
            }
            TokenKind::Symbol(
                op @ (Symbol::Not | Symbol::Tilde | Symbol::Minus | Symbol::Plus),
            ) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.bad(token.span, "the condition is nested too deeply"));
                }
                let value = self.unary(live)?;
                self.depth -= 1;
                Ok(match op {
                    Symbol::Not => i64::from(value == 0),
                    Symbol::Tilde => !value,
                    Symbol::Minus => value.wrapping_neg(),
                    _ => value,
                })
            }
            _ => Err(self.bad(token.span, "a value is expected here")),
        }
    }
}

/// An integer in P4's or C's notation.
fn number(text: &str) -> Option<i64> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let digits = text.trim_end_matches(['u', 'l']);
    let (digits, base) = match digits.get(..2) {
        Some("0x") => (&digits[2..], 16),
        Some("0o") => (&digits[2..], 8),
        Some("0b") => (&digits[2..], 2),
        Some("0d") => (&digits[2..], 10),
        _ => (digits, 10),
    };
    i64::from_str_radix(digits, base).ok()
}
