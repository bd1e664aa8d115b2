//! Annotations kept from the source (spec §20).

use num_bigint::BigInt;
use std::fmt;

/// Annotation of a struct: packets of a program that has one in its metadata may wait for something
/// outside the switch, and be lost with the switch meanwhile. An extension of P4-16
/// (`docs/programs.md`).
pub const SIDE_EFFECTS_WAIT: &str = "side_effects_wait";

/// Annotation of a control whose author vouches that its side effects are only those of packets
/// that do not wait. An extension of P4-16 (`docs/programs.md`).
pub const SIDE_EFFECTS_ALLOWED: &str = "side_effects_allowed";

/// Annotation of a register whose elements are random when the switch starts. An extension of P4-16
/// (`docs/programs.md`).
pub const DRAWN_AT_START: &str = "drawn_at_start";

/// Annotation of a register whose elements workers lock in units. An extension of P4-16
/// (`docs/programs.md`).
pub const UNIT: &str = "unit";

/// Annotation of an atomic block that names the units it uses. An extension of P4-16
/// (`docs/programs.md`).
pub const USES: &str = "uses";

/// Annotation of an atomic block that is no part of the one around it. An extension of P4-16
/// (`docs/programs.md`).
pub const APART: &str = "apart";

/// Annotation of a register of which a control plane has a view by sync: it is written by way of the
/// view alone. An extension of P4-16 (`docs/programs.md`).
pub const IN_VIEW: &str = "in_view";

/// Annotation of a register whose elements lie in memory beside those of another one, because packets
/// use both with one index. An extension of P4-16 (`docs/programs.md`).
pub const BESIDE: &str = "beside";

/// All annotations by which P4-16 is extended.
pub const EXTENSIONS: [&str; 8] = [
    SIDE_EFFECTS_WAIT,
    SIDE_EFFECTS_ALLOWED,
    DRAWN_AT_START,
    UNIT,
    USES,
    APART,
    IN_VIEW,
    BESIDE,
];

/// An annotation of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Name without the `@`.
    pub name: String,
    /// Body of the annotation.
    pub body: AnnotationBody,
}

/// Body of an annotation, after its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationBody {
    /// No body: `@name`.
    Empty,
    /// `@name(…)`, or the rest of the line of `@pragma name …`.
    Tokens(Vec<AnnotationToken>),
    /// `@name[1, "x"]`, evaluated.
    Values(Vec<AnnotationValue>),
    /// `@name[a = 1, b = "x"]`, evaluated.
    Pairs(Vec<(String, AnnotationValue)>),
}

/// One token of `@name(…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationToken {
    /// A string literal, its escapes resolved.
    String(String),
    /// A number literal: its value, and the text as written.
    Number(BigInt, String),
    /// Any other token, as written.
    Other(String),
}

/// A compile-time value in `@name[…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnnotationValue {
    /// A string.
    String(String),
    /// A number.
    Int(BigInt),
    /// A truth value.
    Bool(bool),
}

impl Annotation {
    /// `@name("text")`.
    #[must_use]
    pub fn text(name: &str, text: &str) -> Annotation {
        Annotation {
            name: name.to_owned(),
            body: AnnotationBody::Tokens(vec![AnnotationToken::String(text.to_owned())]),
        }
    }

    /// The string of a body that is one string alone, with either kind of bracket.
    #[must_use]
    pub fn string(&self) -> Option<&str> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
                [AnnotationToken::String(text)] => Some(text),
                _ => None,
            },
            AnnotationBody::Values(values) => match values.as_slice() {
                [AnnotationValue::String(text)] => Some(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// The number of a body that is one number alone, with either kind of bracket.
    #[must_use]
    pub fn integer(&self) -> Option<&BigInt> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
                [AnnotationToken::Number(value, _)] => Some(value),
                _ => None,
            },
            AnnotationBody::Values(values) => match values.as_slice() {
                [AnnotationValue::Int(value)] => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The word of a body that is one word alone, as in `@match(ternary)`.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        match &self.body {
            AnnotationBody::Tokens(tokens) => match tokens.as_slice() {
                [AnnotationToken::Other(word)] => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    /// The first annotation of that name.
    #[must_use]
    pub fn find<'a>(annotations: &'a [Annotation], name: &str) -> Option<&'a Annotation> {
        annotations
            .iter()
            .find(|annotation| annotation.name == name)
    }
}

impl fmt::Display for AnnotationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnnotationToken::String(text) => write_string(f, text),
            AnnotationToken::Number(_, text) | AnnotationToken::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for AnnotationValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnnotationValue::String(text) => write_string(f, text),
            AnnotationValue::Int(value) => write!(f, "{value}"),
            AnnotationValue::Bool(value) => write!(f, "{value}"),
        }
    }
}

/// P4 source text, tokens separated by a space.
impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name)?;
        match &self.body {
            AnnotationBody::Empty => Ok(()),
            AnnotationBody::Tokens(tokens) => {
                f.write_str("(")?;
                write_list(f, tokens, " ")?;
                f.write_str(")")
            }
            AnnotationBody::Values(values) => {
                f.write_str("[")?;
                write_list(f, values, ", ")?;
                f.write_str("]")
            }
            AnnotationBody::Pairs(pairs) => {
                f.write_str("[")?;
                for (position, (key, value)) in pairs.iter().enumerate() {
                    let separator = if position == 0 { "" } else { ", " };
                    write!(f, "{separator}{key}={value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    separator: &str,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_print_as_source() {
        let number = AnnotationToken::Number(BigInt::from(16), "0x10".to_owned());
        let tokens = Annotation {
            name: "a".to_owned(),
            body: AnnotationBody::Tokens(vec![
                AnnotationToken::Other("x".to_owned()),
                AnnotationToken::Other(",".to_owned()),
                number.clone(),
                AnnotationToken::String("say \"hi\"\\".to_owned()),
            ]),
        };
        assert_eq!(tokens.to_string(), r#"@a(x , 0x10 "say \"hi\"\\")"#);
        assert_eq!(tokens.integer(), None);
        let pairs = Annotation {
            name: "b".to_owned(),
            body: AnnotationBody::Pairs(vec![
                ("k".to_owned(), AnnotationValue::Bool(true)),
                ("l".to_owned(), AnnotationValue::Int(BigInt::from(-3))),
            ]),
        };
        assert_eq!(pairs.to_string(), "@b[k=true, l=-3]");
        let id = Annotation {
            name: "id".to_owned(),
            body: AnnotationBody::Tokens(vec![number]),
        };
        assert_eq!(id.integer(), Some(&BigInt::from(16)));
        assert_eq!(Annotation::text("name", "n").string(), Some("n"));
    }
}
