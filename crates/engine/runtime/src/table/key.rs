//! Keys of entries: what the control plane writes, and words to compare with.

use crate::bits::{self, WORD};
use crate::error::StateError;
use crate::value::push_checked;
use num_bigint::BigUint;
use stateplane_ir::{KeySet, MatchKind};
use std::fmt;

/// Condition of an entry on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// One value.
    Exact(BigUint),
    /// All values that begin with the high `length` bits of `value`.
    Prefix {
        /// The bits; those behind the prefix are zero.
        value: BigUint,
        /// Number of leading bits that are compared.
        length: u32,
    },
    /// All values that equal `value` where `mask` is one.
    Mask {
        /// The bits; zero where the mask is.
        value: BigUint,
        /// Bits that are compared.
        mask: BigUint,
    },
    /// All values from `low` to `high`, both included, unsigned.
    Range {
        /// The least.
        low: BigUint,
        /// The greatest.
        high: BigUint,
    },
    /// Every value.
    Any,
}

impl KeyMatch {
    fn describe(&self) -> &'static str {
        match self {
            KeyMatch::Exact(_) => "one value",
            KeyMatch::Prefix { .. } => "a prefix",
            KeyMatch::Mask { .. } => "a value and a mask",
            KeyMatch::Range { .. } => "a range",
            KeyMatch::Any => "any value",
        }
    }

    /// A key set of the source; bits that a mask or prefix leaves out are cleared.
    pub(crate) fn from_key_set(set: &KeySet, width: u32) -> KeyMatch {
        match set {
            KeySet::Any => KeyMatch::Any,
            KeySet::Exact(value) => KeyMatch::Exact(value.clone()),
            KeySet::Mask(value, mask) => KeyMatch::Mask {
                value: value & mask,
                mask: mask.clone(),
            },
            KeySet::Range(low, high) => KeyMatch::Range {
                low: low.clone(),
                high: high.clone(),
            },
            KeySet::Prefix(value, length) => KeyMatch::Prefix {
                value: value & prefix_mask(*length, width),
                length: *length,
            },
            // Entries of tables have none: rule 8 of the verifier.
            KeySet::Member { .. } => KeyMatch::Any,
        }
    }
}

impl fmt::Display for KeyMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyMatch::Exact(value) => write!(f, "{value:#x}"),
            KeyMatch::Prefix { value, length } => write!(f, "{value:#x}/{length}"),
            KeyMatch::Mask { value, mask } => write!(f, "{value:#x} &&& {mask:#x}"),
            KeyMatch::Range { low, high } => write!(f, "{low:#x}..{high:#x}"),
            KeyMatch::Any => f.write_str("_"),
        }
    }
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Control-plane name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Match kind of the key.
    pub kind: MatchKind,
    /// First of its words among those of all keys.
    pub(crate) offset: usize,
}

impl KeyInfo {
    /// A key whose words begin at `offset` among those of all keys.
    pub(crate) fn new(name: String, width: u32, kind: MatchKind, offset: usize) -> KeyInfo {
        KeyInfo {
            name,
            width,
            kind,
            offset,
        }
    }

    pub(crate) fn end(&self) -> usize {
        self.offset + bits::word_count(self.width)
    }

    /// The key for messages; `owner` is the table or value set that has it.
    fn place(&self, owner: &str) -> String {
        if self.name.is_empty() {
            return format!("the key of {owner}");
        }
        format!("key `{}` of {owner}", self.name)
    }

    /// The one form that is stored for `given`, or why there is none.
    pub(crate) fn normalise(&self, owner: &str, given: &KeyMatch) -> Result<KeyMatch, StateError> {
        let place = || self.place(owner);
        let all_ones = || prefix_mask(self.width, self.width);
        let normal = match (self.kind, given) {
            (MatchKind::Exact | MatchKind::Optional, KeyMatch::Exact(_))
            | (MatchKind::Optional, KeyMatch::Any)
            | (MatchKind::Lpm, KeyMatch::Prefix { .. })
            | (MatchKind::Ternary, KeyMatch::Mask { .. })
            | (MatchKind::Range, KeyMatch::Range { .. }) => given.clone(),
            (MatchKind::Lpm, KeyMatch::Exact(value)) => KeyMatch::Prefix {
                value: value.clone(),
                length: self.width,
            },
            (MatchKind::Lpm, KeyMatch::Any) => KeyMatch::Prefix {
                value: BigUint::default(),
                length: 0,
            },
            (MatchKind::Ternary, KeyMatch::Exact(value)) => KeyMatch::Mask {
                value: value.clone(),
                mask: all_ones(),
            },
            (MatchKind::Ternary, KeyMatch::Prefix { value, length }) if *length <= self.width => {
                KeyMatch::Mask {
                    value: value.clone(),
                    mask: prefix_mask(*length, self.width),
                }
            }
            (MatchKind::Ternary, KeyMatch::Any) => KeyMatch::Mask {
                value: BigUint::default(),
                mask: BigUint::default(),
            },
            (MatchKind::Range, KeyMatch::Exact(value)) => KeyMatch::Range {
                low: value.clone(),
                high: value.clone(),
            },
            (MatchKind::Range, KeyMatch::Any) => KeyMatch::Range {
                low: BigUint::default(),
                high: all_ones(),
            },
            _ => {
                let (expected, wanted) = expectation(self.kind);
                return Err(StateError::KeyKind {
                    place: place(),
                    expected,
                    wanted,
                    given: given.describe(),
                });
            }
        };
        match &normal {
            KeyMatch::Prefix { length, .. } if *length > self.width => {
                Err(StateError::PrefixLength {
                    length: *length,
                    place: place(),
                    width: self.width,
                })
            }
            KeyMatch::Prefix { value, length }
                if value & prefix_mask(*length, self.width) != *value =>
            {
                Err(outside_mask(place(), value, self.width))
            }
            KeyMatch::Mask { value, mask } if value & mask != *value => {
                Err(outside_mask(place(), value, self.width))
            }
            KeyMatch::Range { low, high } if low > high => Err(StateError::EmptyRange {
                place: place(),
                low: format!("{low:#x}"),
                high: format!("{high:#x}"),
            }),
            _ => Ok(normal),
        }
    }

    /// Appends the two bounds that [`KeyInfo::matches`] compares with: value and
    /// mask, or the ends of a range.
    pub(crate) fn bounds(
        &self,
        owner: &str,
        normal: &KeyMatch,
        low: &mut Vec<u128>,
        high: &mut Vec<u128>,
    ) -> Result<(), StateError> {
        let (first, second) = match normal {
            KeyMatch::Exact(value) => (value.clone(), prefix_mask(self.width, self.width)),
            KeyMatch::Prefix { value, length } => (value.clone(), prefix_mask(*length, self.width)),
            KeyMatch::Mask { value, mask } => (value.clone(), mask.clone()),
            KeyMatch::Range { low, high } => (low.clone(), high.clone()),
            KeyMatch::Any => (BigUint::default(), BigUint::default()),
        };
        let place = || self.place(owner);
        push_checked(&first, self.width, place, low)?;
        push_checked(&second, self.width, place, high)
    }

    /// True if the words of a looked-up key lie within an entry's bounds.
    pub(crate) fn matches(&self, key: &[u128], low: &[u128], high: &[u128]) -> bool {
        let span = self.offset..self.end();
        let (key, low, high) = (&key[span.clone()], &low[span.clone()], &high[span]);
        if self.kind == MatchKind::Range {
            key.iter().rev().ge(low.iter().rev()) && key.iter().rev().le(high.iter().rev())
        } else {
            key.iter()
                .zip(high)
                .zip(low)
                .all(|((key, mask), value)| key & mask == *value)
        }
    }

    /// Clears the bits of this key behind its first `length` ones.
    pub(crate) fn keep_prefix(&self, key: &mut [u128], length: u32) {
        let clear = self.width.saturating_sub(length);
        for (index, word) in key[self.offset..self.end()].iter_mut().enumerate() {
            let below = clear.saturating_sub(index as u32 * WORD).min(WORD);
            *word &= !bits::mask(below);
        }
    }
}

fn outside_mask(place: String, value: &BigUint, width: u32) -> StateError {
    if value.bits() > u64::from(width) {
        StateError::TooWide {
            value: format!("{value:#x}"),
            place,
            width,
        }
    } else {
        StateError::OutsideMask {
            place,
            value: format!("{value:#x}"),
        }
    }
}

/// `width` bits of which the first `length` are one.
fn prefix_mask(length: u32, width: u32) -> BigUint {
    let ones = (BigUint::from(1u32) << length.min(width)) - 1u32;
    ones << width.saturating_sub(length)
}

/// Name of a match kind, and the accepted notations of its keys.
fn expectation(kind: MatchKind) -> (&'static str, &'static str) {
    match kind {
        MatchKind::Exact => ("exact", "one value"),
        MatchKind::Lpm => ("lpm", "a prefix"),
        MatchKind::Ternary => ("ternary", "a value and a mask"),
        MatchKind::Range => ("range", "a range"),
        MatchKind::Optional => ("optional", "one value or any value"),
        MatchKind::Selector => ("selector", "nothing"),
    }
}
