//! Values as the control plane writes them.

use crate::bits;
use crate::error::StateError;
use core::net::{Ipv4Addr, Ipv6Addr};
use num_bigint::BigUint;
use stateplane_ir::{Program, Type};

/// Accepted notations of a value.
const EXPECTED: &str = "a number (10, 0x0a, 0b1010), an IPv4, IPv6 or MAC address, true or false";

/// A register's element or a digest's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A scalar, in two's complement if it is signed.
    Bits(BigUint),
    /// The members of a struct in order.
    Struct(Vec<Value>),
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Bits(BigUint::from(value))
    }
}

/// Shape of an element's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A scalar with this width in bits.
    Bits(u32),
    /// Members with their names.
    Struct(Vec<(String, Shape)>),
}

impl Shape {
    /// The shape of a scalar or of a struct of such; `None` for other types.
    pub fn of(program: &Program, ty: Type) -> Option<Shape> {
        Shape::within(program, ty, crate::layout::MAX_DEPTH)
    }

    fn within(program: &Program, ty: Type, depth: u32) -> Option<Shape> {
        match ty {
            Type::Struct(id) => {
                let depth = depth.checked_sub(1)?;
                let members = program.structs.get(id.index())?.fields.iter();
                let shapes = members
                    .map(|field| {
                        Some((field.name.clone(), Shape::within(program, field.ty, depth)?))
                    })
                    .collect::<Option<_>>()?;
                Some(Shape::Struct(shapes))
            }
            Type::Header(_) | Type::Union(_) | Type::Stack(_) | Type::Varbit(_) => None,
            scalar => Some(Shape::Bits(crate::layout::scalar_bits(scalar))),
        }
    }

    /// Words that a value takes.
    pub fn words(&self) -> usize {
        match self {
            Shape::Bits(width) => bits::word_count(*width),
            Shape::Struct(members) => members.iter().map(|(_, shape)| shape.words()).sum(),
        }
    }

    /// The value that `words` hold.
    pub fn value(&self, words: &[u128]) -> Value {
        match self {
            Shape::Bits(_) => Value::Bits(bits::to_biguint(words)),
            Shape::Struct(members) => {
                let mut rest = words;
                Value::Struct(
                    members
                        .iter()
                        .map(|(_, shape)| {
                            let (member, behind) = rest.split_at(shape.words());
                            rest = behind;
                            shape.value(member)
                        })
                        .collect(),
                )
            }
        }
    }

    /// Checks a value and appends its words. `place` names the register, or the
    /// member of it.
    ///
    /// # Errors
    ///
    /// [`StateError::TooWide`] and [`StateError::Shape`]; some words may have been
    /// appended by then.
    pub fn words_of(
        &self,
        value: &Value,
        place: &str,
        words: &mut Vec<u128>,
    ) -> Result<(), StateError> {
        match (self, value) {
            (Shape::Bits(width), Value::Bits(value)) => {
                push_checked(value, *width, || place.to_owned(), words)
            }
            (Shape::Struct(members), Value::Struct(values)) if members.len() == values.len() => {
                for ((name, shape), value) in members.iter().zip(values) {
                    shape.words_of(value, &format!("{place}.{name}"), words)?;
                }
                Ok(())
            }
            (Shape::Bits(width), _) => Err(StateError::Shape {
                place: place.to_owned(),
                expected: format!("a value of {width} bits"),
                wanted: "one number",
            }),
            (Shape::Struct(members), _) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                Err(StateError::Shape {
                    place: place.to_owned(),
                    expected: format!("a struct of {}", names.join(", ")),
                    wanted: "one value for each member",
                })
            }
        }
    }
}

/// Appends the words of `value`, which has to fit `width` bits.
pub(crate) fn push_checked(
    value: &BigUint,
    width: u32,
    place: impl Fn() -> String,
    words: &mut Vec<u128>,
) -> Result<(), StateError> {
    if value.bits() > u64::from(width) {
        return Err(StateError::TooWide {
            value: format!("{value:#x}"),
            place: place(),
            width,
        });
    }
    let start = words.len();
    words.resize(start + bits::word_count(width), 0);
    bits::put_biguint(value, width, &mut words[start..]);
    Ok(())
}

/// Reads a value as people write it: a decimal, `0x`, `0o` or `0b` number, with `_`
/// between digits; `true` or `false`; an IPv4, IPv6 or MAC address.
///
/// # Errors
///
/// [`StateError::Text`] if it is none of these or has more than 2048 bits.
pub fn parse_value(text: &str) -> Result<BigUint, StateError> {
    parse(text.trim()).ok_or_else(|| StateError::Text {
        text: text.chars().take(80).collect(),
        expected: EXPECTED,
    })
}

fn parse(text: &str) -> Option<BigUint> {
    /// Enough for 2048 bits in any base, and short enough to convert at once.
    const LONGEST: usize = 4096;
    match text {
        "true" => return Some(BigUint::from(1u32)),
        "false" => return Some(BigUint::default()),
        _ if text.len() > LONGEST => return None,
        _ => {}
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(BigUint::from(u32::from(address)));
    }
    if let Some(mac) = mac(text) {
        return Some(BigUint::from(mac));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(BigUint::from(u128::from(address)));
    }
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        Some("0b" | "0B") => (&text[2..], 2),
        Some("0o" | "0O") => (&text[2..], 8),
        _ => (text, 10),
    };
    let plain: String = digits
        .chars()
        .filter(|character| *character != '_')
        .collect();
    if plain.is_empty() || !plain.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = BigUint::parse_bytes(plain.as_bytes(), radix)?;
    (value.bits() <= 2048).then_some(value)
}

fn mac(text: &str) -> Option<u64> {
    let mut value = 0;
    let mut count = 0;
    for part in text.split([':', '-']) {
        if part.len() != 2 || !part.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        value = value << 8 | u64::from_str_radix(part, 16).ok()?;
        count += 1;
        if count > 6 {
            return None;
        }
    }
    (count == 6).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> u128 {
        bits::low_word(&parse_value(text).expect(text))
    }

    #[test]
    fn texts_of_values() {
        assert_eq!(number("10"), 10);
        assert_eq!(number(" 0x0a "), 10);
        assert_eq!(number("0b1010"), 10);
        assert_eq!(number("1_000"), 1000);
        assert_eq!(number("true"), 1);
        assert_eq!(number("10.0.0.1"), 0x0a00_0001);
        assert_eq!(number("02:00:00:00:00:0a"), 0x0200_0000_000a);
        assert_eq!(number("::1"), 1);
        assert_eq!(number("fe80::1"), 0xfe80 << 112 | 1);
        for text in [
            "",
            "0x",
            "ten",
            "-1",
            "1.2.3",
            "0xg",
            "_",
            "10.0.0.256",
            "1 2",
        ] {
            assert_eq!(parse_value(text).unwrap_err().code(), "TG019", "{text}");
        }
    }

    #[test]
    fn shapes_of_structs() {
        let shape = Shape::Struct(vec![
            ("address".to_owned(), Shape::Bits(32)),
            ("wide".to_owned(), Shape::Bits(200)),
        ]);
        let value = Value::Struct(vec![
            Value::from(7),
            Value::Bits(BigUint::from(1u32) << 199u32),
        ]);
        let mut words = Vec::new();
        shape.words_of(&value, "r", &mut words).unwrap();
        assert_eq!(words, [7, 0, 1 << 71]);
        assert_eq!(shape.value(&words), value);

        let wide = Value::Struct(vec![Value::from(1 << 32), Value::from(0)]);
        let error = shape.words_of(&wide, "r", &mut Vec::new()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "0x100000000 does not fit r.address, which has 32 bits"
        );
        let error = shape.words_of(&Value::from(1), "r", &mut Vec::new());
        assert_eq!(error.unwrap_err().code(), "TG018");
        let error = Shape::Bits(8).words_of(&value, "r", &mut Vec::new());
        assert_eq!(error.unwrap_err().code(), "TG018");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_value(&text);
        }

        #[test]
        fn numbers_round_trip(value in any::<u128>()) {
            prop_assert_eq!(number(&value.to_string()), value);
            prop_assert_eq!(number(&format!("{value:#x}")), value);
        }
    }
}
