//! Number and string literals.

use std::sync::Arc;

use num_bigint::BigInt;
use stateplane_diagnostics::Diagnostic;

use super::Parser;
use crate::token::Token;
use crate::tree::{LiteralWidth, NumberLiteral};
use crate::{MAX_LITERAL_WIDTH, codes};

/// No literal of [`MAX_LITERAL_WIDTH`] bits needs more characters, its digits grouped by
/// underscores in any sensible way.
const MAX_LENGTH: usize = 3 * MAX_LITERAL_WIDTH as usize;

impl Parser {
    /// The value of a number token; a bad one is reported, and is 0.
    pub(super) fn number(&mut self, token: &Token) -> NumberLiteral {
        let zero = NumberLiteral {
            value: BigInt::ZERO,
            width: None,
            base: 10,
        };
        if token.text.len() > MAX_LENGTH {
            self.too_wide(token);
            return zero;
        }
        let Some(literal) = literal(&token.text) else {
            let at = self.reported_at.take();
            self.report(
                Diagnostic::error(
                    codes::BAD_NUMBER,
                    token.span,
                    format!("`{}` is not a number", token.text),
                )
                .with_help(
                    "a number is decimal digits, or `0x`, `0o` or `0b` and digits, with a \
                     prefix such as `8w` or `8s` for its width; names begin with a letter",
                ),
            );
            self.reported_at = at;
            return zero;
        };
        if literal.width.is_some_and(|w| w.bits > MAX_LITERAL_WIDTH)
            || literal.value.bits() > u64::from(MAX_LITERAL_WIDTH)
        {
            self.too_wide(token);
            return zero;
        }
        literal
    }

    fn too_wide(&mut self, token: &Token) {
        let at = self.reported_at.take();
        self.report(Diagnostic::error(
            codes::LITERAL_TOO_WIDE,
            token.span,
            format!("number literal is wider than {MAX_LITERAL_WIDTH} bits"),
        ));
        self.reported_at = at;
    }
}

/// A number literal of well-formed text. A width that is out of all range is given as
/// `u32::MAX`.
pub(super) fn literal(text: &str) -> Option<NumberLiteral> {
    let (width, rest) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) if at > 0 && matches!(text.as_bytes()[at], b'w' | b's') => {
            let bits = text[..at].parse().unwrap_or(u32::MAX);
            let signed = text.as_bytes()[at] == b's';
            (Some(LiteralWidth { bits, signed }), &text[at + 1..])
        }
        _ => (None, text),
    };
    let (base, digits) = match rest.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &rest[2..]),
        [b'0', b'd' | b'D', ..] => (10, &rest[2..]),
        [b'0', b'o' | b'O', ..] => (8, &rest[2..]),
        [b'0', b'b' | b'B', ..] => (2, &rest[2..]),
        _ => (10, rest),
    };
    let digits = digits.replace('_', "");
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let value = BigInt::parse_bytes(digits.as_bytes(), base)?;
    Some(NumberLiteral { value, width, base })
}

/// The characters of a string literal given with its quotes. `\"`, `\\`, `\n`, `\r` and `\t`
/// stand for what they stand for in C; any other backslash stands for itself.
pub(super) fn string(text: &str) -> Arc<str> {
    let inner = text.strip_prefix('"').unwrap_or(text);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(c @ ('"' | '\\')) => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => out.push('\\'),
            },
            _ => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_value_width_and_base() {
        let read = |text| {
            let n = literal(text)?;
            Some((
                i64::try_from(&n.value).ok()?,
                n.width.map(|w| (w.bits, w.signed)),
                n.base,
            ))
        };
        assert_eq!(read("0"), Some((0, None, 10)));
        assert_eq!(read("1_000"), Some((1000, None, 10)));
        assert_eq!(read("0xFf"), Some((255, None, 16)));
        assert_eq!(read("0B1_1"), Some((3, None, 2)));
        assert_eq!(read("0o17"), Some((15, None, 8)));
        assert_eq!(read("0d19"), Some((19, None, 10)));
        assert_eq!(read("8w0xFF"), Some((255, Some((8, false)), 16)));
        assert_eq!(read("4s7"), Some((7, Some((4, true)), 10)));
        assert_eq!(read("4w99"), Some((99, Some((4, false)), 10)));
        assert_eq!(
            read("99999999999w1"),
            Some((1, Some((u32::MAX, false)), 10))
        );
        for bad in [
            "0x", "8w", "0b12", "12ab", "8w0x", "0o8", "8z1", "1__x", "0x_",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn strings_lose_quotes_and_escapes() {
        assert_eq!(&*string(r#""a\"b\\c\nd\q""#), "a\"b\\c\nd\\q");
        assert_eq!(&*string("\"open"), "open");
        assert_eq!(&*string("\"open\\"), "open\\");
    }
}
