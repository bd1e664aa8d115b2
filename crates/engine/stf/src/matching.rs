//! Notation of scripts for the keys of entries.

use crate::{Cause, parse::number};
use num_bigint::BigUint;
use stateplane_ir::MatchKind;
use stateplane_runtime::{KeyInfo, KeyMatch, parse_value};

/// Value of one key in a script. What it asks for depends on the key's match kind and width; see
/// [`Matching::for_key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matching {
    /// `_`
    Any,
    /// A value.
    Value {
        /// The value.
        value: BigUint,
        /// Bits of the digits as written, of numbers with `0x`, `0o` and `0b`.
        bits: Option<u32>,
    },
    /// Digits, and `*` for those that do not count.
    Stars {
        /// The value, 0 where a `*` is.
        value: BigUint,
        /// 1 where a digit is.
        mask: BigUint,
    },
    /// `VALUE/LENGTH`
    Prefix {
        /// The value.
        value: BigUint,
        /// Number of its high bits that count.
        length: u32,
    },
    /// `VALUE&&&MASK`
    Mask {
        /// The value.
        value: BigUint,
        /// Bits that are compared.
        mask: BigUint,
    },
    /// `LOW..HIGH`
    Range {
        /// The least.
        low: BigUint,
        /// The greatest.
        high: BigUint,
    },
}

impl Matching {
    /// Reads what is written for a key.
    ///
    /// # Errors
    ///
    /// [`Cause::Number`], or one about a value.
    pub fn parse(text: &str) -> Result<Matching, Cause> {
        if text == "_" {
            Ok(Matching::Any)
        } else if let Some((value, mask)) = text.split_once("&&&") {
            Ok(Matching::Mask {
                value: parse_value(value)?,
                mask: parse_value(mask)?,
            })
        } else if let Some((low, high)) = text.split_once("..") {
            Ok(Matching::Range {
                low: parse_value(low)?,
                high: parse_value(high)?,
            })
        } else if let Some((value, length)) = text.split_once('/') {
            Ok(Matching::Prefix {
                value: parse_value(value)?,
                length: number(length, "prefix length")?,
            })
        } else if text.contains('*') {
            stars(text)
        } else {
            let bits = digit_bits(text).map(|bits| bits * (text.len() as u32 - 2));
            Ok(Matching::Value {
                value: parse_value(text)?,
                bits,
            })
        }
    }

    /// Condition on `key`. As p4c's runner has it, digits that are not written do not count where
    /// the key is ternary (`0x6` fits 0x16 too), and a prefix is as long as the digits that are no
    /// `*`. Bits outside a mask or prefix are cleared.
    pub fn for_key(&self, key: &KeyInfo) -> KeyMatch {
        let ones = |count: u32| (BigUint::from(1u32) << count.min(key.width)) - 1u32;
        let prefix = |value: &BigUint, length: u32| {
            if length > key.width {
                // The table tells what is wrong.
                let value = value.clone();
                return KeyMatch::Prefix { value, length };
            }
            let mask = ones(length) << (key.width - length);
            KeyMatch::Prefix {
                value: value & mask,
                length,
            }
        };
        let mask = |value: &BigUint, mask: &BigUint| KeyMatch::Mask {
            value: value & mask,
            mask: mask.clone(),
        };
        match (self, key.kind) {
            (Matching::Any, _) => KeyMatch::Any,
            (Matching::Value { value, bits }, MatchKind::Ternary) => match bits {
                Some(bits) if *bits < key.width => mask(value, &ones(*bits)),
                _ => KeyMatch::Exact(value.clone()),
            },
            (Matching::Value { value, .. }, _) => KeyMatch::Exact(value.clone()),
            (Matching::Stars { mask: none, .. }, _) if none.bits() == 0 => KeyMatch::Any,
            (Matching::Stars { value, mask }, MatchKind::Lpm) => {
                prefix(value, mask.count_ones() as u32)
            }
            (Matching::Prefix { value, length }, _) => prefix(value, *length),
            (Matching::Mask { value, mask }, MatchKind::Lpm)
                if ones(mask.count_ones() as u32)
                    << key.width.saturating_sub(mask.count_ones() as u32)
                    == *mask =>
            {
                prefix(value, mask.count_ones() as u32)
            }
            (Matching::Mask { value, mask: bits } | Matching::Stars { value, mask: bits }, _) => {
                mask(value, bits)
            }
            (Matching::Range { low, high }, _) => KeyMatch::Range {
                low: low.clone(),
                high: high.clone(),
            },
        }
    }

    /// Condition on a key that is not named: any value, if its match kind allows it, else 0.
    pub(crate) fn unnamed(key: &KeyInfo) -> KeyMatch {
        match key.kind {
            MatchKind::Exact => KeyMatch::Exact(BigUint::default()),
            _ => KeyMatch::Any,
        }
    }
}

/// Bits of a digit, by what the number begins with.
fn digit_bits(text: &str) -> Option<u32> {
    match text.get(..2)? {
        "0x" | "0X" => Some(4),
        "0o" | "0O" => Some(3),
        "0b" | "0B" => Some(1),
        _ => None,
    }
}

/// `0x1*` and `0b1*`: digits and stars.
fn stars(text: &str) -> Result<Matching, Cause> {
    if text == "*" {
        return Ok(Matching::Any);
    }
    let Some(bits) = digit_bits(text) else {
        return Err(Cause::Number {
            text: text.to_owned(),
            what: "match; write 0x, 0o or 0b and digits",
        });
    };
    let (prefix, digits) = text.split_at(2);
    let all = match bits {
        4 => 'f',
        3 => '7',
        _ => '1',
    };
    let value = parse_value(&format!("{prefix}{}", digits.replace('*', "0")))?;
    let digits = digits.chars().filter(|digit| *digit != '_');
    let mask: String = digits
        .map(|digit| if digit == '*' { '0' } else { all })
        .collect();
    Ok(Matching::Stars {
        value,
        mask: parse_value(&format!("{prefix}{mask}"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_ir::builder::{Builder, bits};
    use stateplane_runtime::TargetState;

    /// Condition of `text` on a 16-bit key.
    fn asked(kind: MatchKind, text: &str) -> String {
        let mut b = Builder::new();
        let nothing = b.structure("nothing", &[]);
        b.pipeline(nothing, nothing);
        let none = b.action("none", &[], vec![]);
        b.table("t", vec![(kind, bits(16, 0))], &[none]);
        let state = TargetState::new(&b.finish().unwrap(), 0).unwrap();
        let matching = Matching::parse(text).unwrap_or_else(|error| panic!("{error}"));
        matching.for_key(&state.tables()[0].keys()[0]).to_string()
    }

    #[test]
    fn what_is_written_depends_on_the_key() {
        use MatchKind::{Exact, Lpm, Optional, Range, Ternary};
        for (kind, text, wanted) in [
            (Exact, "0x6", "0x6"),
            (Ternary, "0x6", "0x6 &&& 0xf"),
            (Ternary, "0x0006", "0x6"),
            (Ternary, "6", "0x6"),
            (Ternary, "0b01*1", "0x5 &&& 0xd"),
            (Ternary, "0o7*", "0x38 &&& 0x38"),
            (Ternary, "0x12*4", "0x1204 &&& 0xff0f"),
            (Ternary, "0x1234&&&0xff00", "0x1200 &&& 0xff00"),
            (Ternary, "0x****", "_"),
            (Optional, "*", "_"),
            (Optional, "0x**", "_"),
            (Lpm, "0x12**", "0x1200/8"),
            (Lpm, "0x1234", "0x1234"),
            (Lpm, "0x1234/4", "0x1000/4"),
            (Lpm, "0x1234&&&0xff00", "0x1200/8"),
            (Lpm, "0x1234&&&0xff", "0x34 &&& 0xff"),
            (Lpm, "0x****", "_"),
            (Lpm, "1/17", "0x1/17"),
            (Range, "1..0x10", "0x1..0x10"),
            (Range, "_", "_"),
        ] {
            assert_eq!(asked(kind, text), wanted, "{kind:?} {text}");
        }
    }
}
