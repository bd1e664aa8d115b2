//! Matches of tables and value sets (specification, "Match Format").

use crate::bytes::{self, all_ones};
use crate::pipeline::Field;
use crate::proto::config::match_field::MatchType;
use crate::proto::v1::{self, field_match::FieldMatchType};
use crate::refusal::Refusal;
use num_bigint::BigUint;
use num_traits::Zero;
use prost::Message;
use stateplane_runtime::KeyMatch;

/// Keys in order; a field that is left out matches everything.
pub(crate) fn read(
    fields: &[Field],
    given: &[v1::FieldMatch],
    owner: &str,
) -> Result<Vec<KeyMatch>, Refusal> {
    let mut keys: Vec<Option<KeyMatch>> = vec![None; fields.len()];
    for one in given {
        let Some(at) = fields.iter().position(|field| field.id == one.field_id) else {
            return Err(Refusal::invalid(format!(
                "{owner} has no match field {}",
                one.field_id
            )));
        };
        let key = key(&fields[at], one, owner)?;
        if keys[at].replace(key).is_some() {
            return Err(Refusal::invalid(format!(
                "match field {} of {owner} is given twice",
                one.field_id
            )));
        }
    }
    keys.into_iter()
        .zip(fields)
        .map(|(key, field)| match key {
            Some(key) => Ok(key),
            None if field.kind == MatchType::Exact => Err(Refusal::invalid(format!(
                "match field `{}` of {owner} is exact and must be given",
                field.name
            ))),
            None => Ok(KeyMatch::Any),
        })
        .collect()
}

fn key(field: &Field, given: &v1::FieldMatch, owner: &str) -> Result<KeyMatch, Refusal> {
    let what = || format!("match field `{}` of {owner}", field.name);
    let wrong = |text: &str| Err(Refusal::invalid(format!("{} {text}", what())));
    let number = |bytes: &[u8]| bytes::decode(bytes, &field.form, &what);
    let everything = "matches everything so: leave the field out";
    match (field.kind, &given.field_match_type) {
        (_, None) => wrong("has no match"),
        (MatchType::Exact, Some(FieldMatchType::Exact(exact))) => {
            Ok(KeyMatch::Exact(number(&exact.value)?))
        }
        (MatchType::Optional, Some(FieldMatchType::Optional(optional))) => {
            Ok(KeyMatch::Exact(number(&optional.value)?))
        }
        (MatchType::Lpm, Some(FieldMatchType::Lpm(lpm))) => {
            let value = number(&lpm.value)?;
            let length = u32::try_from(lpm.prefix_len).unwrap_or(u32::MAX);
            if length > field.width {
                return wrong("has a prefix length out of range");
            }
            if length == 0 {
                return wrong(everything);
            }
            let rest = all_ones(field.width - length);
            if !(&value & rest).is_zero() {
                return wrong("has bits set that its prefix leaves out");
            }
            Ok(KeyMatch::Prefix { value, length })
        }
        (MatchType::Ternary, Some(FieldMatchType::Ternary(ternary))) => {
            let (value, mask) = (number(&ternary.value)?, number(&ternary.mask)?);
            if mask.is_zero() {
                return wrong(everything);
            }
            if (&value & &mask) != value {
                return wrong("has bits set that its mask leaves out");
            }
            Ok(KeyMatch::Mask { value, mask })
        }
        (MatchType::Range, Some(FieldMatchType::Range(range))) => {
            let (low, high) = (number(&range.low)?, number(&range.high)?);
            if low > high {
                return wrong("has a range whose ends are exchanged");
            }
            if low.is_zero() && high == all_ones(field.width) {
                return wrong(everything);
            }
            Ok(KeyMatch::Range { low, high })
        }
        (kind, Some(_)) => wrong(&format!("is {}", kind.as_str_name())),
    }
}

/// Matches in order of the fields; those that match everything are left out.
pub(crate) fn write(fields: &[Field], keys: &[KeyMatch]) -> Vec<v1::FieldMatch> {
    use v1::field_match as message;
    let mut matches = Vec::new();
    for (field, key) in fields.iter().zip(keys) {
        let bytes = |value: &BigUint| bytes::encode(value, &field.form);
        let given = match (field.kind, key) {
            (MatchType::Optional, KeyMatch::Exact(value)) => {
                FieldMatchType::Optional(message::Optional {
                    value: bytes(value),
                })
            }
            (_, KeyMatch::Exact(value)) => FieldMatchType::Exact(message::Exact {
                value: bytes(value),
            }),
            (_, KeyMatch::Prefix { length: 0, .. }) | (_, KeyMatch::Any) => continue,
            (_, KeyMatch::Prefix { value, length }) => FieldMatchType::Lpm(message::Lpm {
                value: bytes(value),
                prefix_len: i32::try_from(*length).unwrap_or(i32::MAX),
            }),
            (_, KeyMatch::Mask { mask, .. }) if mask.is_zero() => continue,
            (_, KeyMatch::Mask { value, mask }) => FieldMatchType::Ternary(message::Ternary {
                value: bytes(value),
                mask: bytes(mask),
            }),
            (_, KeyMatch::Range { low, high })
                if low.is_zero() && *high == all_ones(field.width) =>
            {
                continue;
            }
            (_, KeyMatch::Range { low, high }) => FieldMatchType::Range(message::Range {
                low: bytes(low),
                high: bytes(high),
            }),
        };
        matches.push(v1::FieldMatch {
            field_id: field.id,
            field_match_type: Some(given),
        });
    }
    matches
}

/// Bytes that are equal for equal matches, written by [`write`].
pub(crate) fn canonical(matches: &[v1::FieldMatch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for one in matches {
        // A vector grows as needed, so that encoding does not fail.
        let _ = one.encode_length_delimited(&mut bytes);
    }
    bytes
}
