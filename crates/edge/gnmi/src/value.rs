//! Values and their encodings.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::bytes::Bytes;
use stateplane_sync::Told;

use crate::facts::{Facts, GroupFacts, GroupInfo};
use crate::proto::gnmi::{Encoding, TypedValue, typed_value::Value};
use crate::refusal::Refusal;
use crate::schema::Leaf;

/// Encodings that are served.
pub(crate) const ENCODINGS: [Encoding; 3] = [Encoding::Json, Encoding::JsonIetf, Encoding::Proto];

/// The encoding of a request.
///
/// # Errors
///
/// UNIMPLEMENTED for those that are not served.
pub(crate) fn encoding(number: i32) -> Result<Encoding, Refusal> {
    let known = Encoding::try_from(number).ok();
    if let Some(served) = ENCODINGS.into_iter().find(|it| known == Some(*it)) {
        return Ok(served);
    }
    let name = known.map_or(number.to_string(), |it| it.as_str_name().to_owned());
    Err(Refusal::unimplemented(format!(
        "encoding {name} is not supported: JSON, JSON_IETF and PROTO are"
    )))
}

/// Content of a leaf.
#[derive(Clone, Debug)]
pub(crate) enum Scalar {
    U32(u32),
    U64(u64),
    Bool(bool),
    Packed(Arc<Vec<u8>>),
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        match (self, other) {
            (Scalar::U32(one), Scalar::U32(two)) => one == two,
            (Scalar::U64(one), Scalar::U64(two)) => one == two,
            (Scalar::Bool(one), Scalar::Bool(two)) => one == two,
            (Scalar::Packed(one), Scalar::Packed(two)) => Arc::ptr_eq(one, two) || one == two,
            _ => false,
        }
    }
}

/// Values that a message shares with the engine.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Scalar {
    /// Writes the value as JSON; with `ietf` as RFC 7951 has it, where 64 bits are a string.
    pub(crate) fn write_json(&self, ietf: bool, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Scalar::U32(value) => write!(text, "{value}"),
            Scalar::U64(value) if ietf => write!(text, "\"{value}\""),
            Scalar::U64(value) => write!(text, "{value}"),
            Scalar::Bool(value) => write!(text, "{value}"),
            Scalar::Packed(bytes) => {
                text.push('"');
                STANDARD.encode_string(bytes.as_slice(), text);
                text.push('"');
                Ok(())
            }
        };
    }

    /// The value as a message has it.
    pub(crate) fn typed(&self, encoding: Encoding) -> TypedValue {
        if encoding == Encoding::Proto {
            return TypedValue {
                value: Some(match self {
                    Scalar::U32(value) => Value::UintVal(u64::from(*value)),
                    Scalar::U64(value) => Value::UintVal(*value),
                    Scalar::Bool(value) => Value::BoolVal(*value),
                    Scalar::Packed(bytes) => {
                        Value::BytesVal(Bytes::from_owner(Shared(bytes.clone())))
                    }
                }),
            };
        }
        let mut text = String::new();
        self.write_json(encoding == Encoding::JsonIetf, &mut text);
        json(text, encoding)
    }
}

/// JSON text as a message has it.
pub(crate) fn json(text: String, encoding: Encoding) -> TypedValue {
    let text = Bytes::from(text);
    TypedValue {
        value: Some(if encoding == Encoding::JsonIetf {
            Value::JsonIetfVal(text)
        } else {
            Value::JsonVal(text)
        }),
    }
}

/// The content of a leaf of a group's `state`, or of all its values; `None` if it does not exist.
pub(crate) fn of_group(leaf: Leaf, info: &GroupInfo, group: &GroupFacts) -> Option<Scalar> {
    let told = |what: fn(&Told) -> Scalar| group.told.as_ref().map(what);
    match leaf {
        Leaf::Locations => Some(Scalar::U32(info.locations)),
        Leaf::Complete => Some(Scalar::Bool(group.told.is_some())),
        Leaf::Fenced => Some(Scalar::Bool(group.fenced)),
        Leaf::LastWindow => Some(Scalar::U64(group.last_window)),
        Leaf::Bound => group.told.and_then(|told| told.bound).map(Scalar::U64),
        Leaf::AllBut => told(|told| Scalar::U64(told.all_but)),
        Leaf::Within => told(|told| Scalar::U64(told.within)),
        Leaf::Age => told(|told| Scalar::U64(told.age_us)),
        Leaf::Stamp => told(|told| Scalar::U64(told.stamp)),
        Leaf::Generation => told(|told| Scalar::U64(told.generation)),
        Leaf::Incarnation => told(|told| Scalar::U32(told.incarnation)),
        Leaf::Epoch => told(|told| Scalar::U32(told.epoch)),
        Leaf::Sweep => told(|told| Scalar::U32(told.sweep_us)),
        Leaf::ValuesPacked => group.values.clone().map(Scalar::Packed),
        Leaf::Term
        | Leaf::Value
        | Leaf::WindowIncarnation
        | Leaf::WindowEpoch
        | Leaf::WindowValues => None,
    }
}

/// The content of a leaf of a window.
pub(crate) fn of_window(leaf: Leaf, window: &stateplane_host::sync::Window) -> Option<Scalar> {
    match leaf {
        Leaf::WindowIncarnation => Some(Scalar::U32(window.incarnation)),
        Leaf::WindowEpoch => Some(Scalar::U32(window.epoch)),
        Leaf::WindowValues => Some(Scalar::Packed(window.values.clone())),
        _ => None,
    }
}

/// The content of the engine's own leaf.
pub(crate) fn of_engine(leaf: Leaf, facts: &Facts) -> Option<Scalar> {
    (leaf == Leaf::Term).then_some(Scalar::U64(facts.term))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_rfc_7951_or_plain() {
        let text = |scalar: Scalar, encoding| match scalar.typed(encoding).value {
            Some(Value::JsonVal(text) | Value::JsonIetfVal(text)) => {
                String::from_utf8(text.to_vec()).expect("text")
            }
            other => panic!("{other:?}"),
        };
        let large = Scalar::U64(u64::MAX);
        assert_eq!(text(large.clone(), Encoding::Json), "18446744073709551615");
        assert_eq!(
            text(large.clone(), Encoding::JsonIetf),
            "\"18446744073709551615\""
        );
        assert_eq!(text(Scalar::U32(7), Encoding::JsonIetf), "7");
        assert_eq!(text(Scalar::Bool(true), Encoding::JsonIetf), "true");
        let packed = Scalar::Packed(Arc::new(vec![1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(text(packed.clone(), Encoding::Json), "\"AQAAAAAAAAA=\"");
        assert_eq!(
            large.typed(Encoding::Proto).value,
            Some(Value::UintVal(u64::MAX))
        );
        let bytes = packed.typed(Encoding::Proto).value;
        assert_eq!(
            bytes,
            Some(Value::BytesVal(Bytes::from_static(&[
                1, 0, 0, 0, 0, 0, 0, 0
            ])))
        );
    }

    #[test]
    fn other_encodings_are_refused_by_name() {
        assert_eq!(encoding(4), Ok(Encoding::JsonIetf));
        let ascii = encoding(3).expect_err("not served");
        assert_eq!(ascii.status, tonic::Code::Unimplemented);
        assert!(ascii.message.contains("ASCII"));
        assert!(encoding(77).expect_err("none").message.contains("77"));
    }
}
