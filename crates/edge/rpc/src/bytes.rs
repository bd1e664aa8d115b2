//! Bit strings of P4Runtime (specification, "Bytestrings").

use crate::names::Names;
use crate::refusal::Refusal;
use num_bigint::BigUint;
use num_traits::Zero;
use stateplane_p4info::proto as config;
use stateplane_runtime::Port;
use std::collections::BTreeMap;
use tonic::Code;

/// Bytes of the longest value: more than the widest field has, leading zeros included.
const MAX_BYTES: usize = 1024;

/// Notation of a field's values.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// A number of this width in bits, big-endian.
    Bits(u32),
    /// Text, of a type translated to `string`.
    Text(Names),
}

/// The forms of fields by their types.
pub(crate) struct Forms {
    names: BTreeMap<String, Names>,
}

impl Forms {
    /// The forms of `types`; texts that are names of `ports` stand for these.
    pub(crate) fn new(types: Option<&config::P4TypeInfo>, ports: &BTreeMap<Port, String>) -> Forms {
        use config::{p4_new_type_spec::Representation, p4_new_type_translation::SdnType};
        let is_text = |spec: &config::P4NewTypeSpec| {
            matches!(
                spec.representation.as_ref(),
                Some(Representation::TranslatedType(
                    config::P4NewTypeTranslation {
                        sdn_type: Some(SdnType::SdnString(_)),
                        ..
                    }
                ))
            )
        };
        let types = types.into_iter().flat_map(|types| &types.new_types);
        let texts = types.filter(|(_, spec)| is_text(spec));
        Forms {
            names: texts
                .map(|(name, _)| (name.clone(), Names::new(ports)))
                .collect(),
        }
    }

    /// The form of a field of that width and type.
    pub(crate) fn of(&self, bitwidth: i32, type_name: Option<&config::P4NamedType>) -> Form {
        match type_name.and_then(|name| self.names.get(&name.name)) {
            Some(names) => Form::Text(names.clone()),
            None => Form::Bits(u32::try_from(bitwidth).unwrap_or(0)),
        }
    }

    /// The texts of each type.
    pub(crate) fn into_names(self) -> BTreeMap<String, Names> {
        self.names
    }
}

/// Reads a value; `what` names its place for the message.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for an empty string or a text that stands for nothing,
/// `OUT_OF_RANGE` for a number of more bits.
pub(crate) fn decode(
    bytes: &[u8],
    form: &Form,
    what: &dyn Fn() -> String,
) -> Result<BigUint, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::invalid(format!(
            "{} has no value: zero is one byte 0",
            what()
        )));
    }
    if bytes.len() > MAX_BYTES {
        return Err(Refusal::new(
            Code::OutOfRange,
            format!(
                "{} has {} bytes, at most {MAX_BYTES} fit",
                what(),
                bytes.len()
            ),
        ));
    }
    match form {
        Form::Bits(width) => {
            let value = BigUint::from_bytes_be(bytes);
            // Fields of types without a width take any number that the target takes.
            if *width > 0 && value.bits() > u64::from(*width) {
                return Err(Refusal::new(
                    Code::OutOfRange,
                    format!("{value:#x} does not fit {}, which has {width} bits", what()),
                ));
            }
            Ok(value)
        }
        Form::Text(names) => names.number(bytes).map_err(|refusal| {
            Refusal::new(refusal.code, format!("{}: {}", what(), refusal.message))
        }),
    }
}

/// Writes a value in its shortest form, which the specification calls canonical.
#[must_use]
pub(crate) fn encode(value: &BigUint, form: &Form) -> Vec<u8> {
    match form {
        Form::Bits(_) if value.is_zero() => vec![0],
        Form::Bits(_) => value.to_bytes_be(),
        Form::Text(names) => names.text(value).into_bytes(),
    }
}

/// All ones of that width.
pub(crate) fn all_ones(width: u32) -> BigUint {
    (BigUint::from(1u32) << width) - 1u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], form: Form) -> Result<BigUint, Code> {
        decode(bytes, &form, &|| "x".to_owned()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn leading_zeros_are_read_and_not_written() {
        assert_eq!(read(&[0, 0, 5], Form::Bits(9)), Ok(5u32.into()));
        assert_eq!(read(&[1, 0xff], Form::Bits(9)), Ok(511u32.into()));
        assert_eq!(read(&[2, 0], Form::Bits(9)), Err(Code::OutOfRange));
        assert_eq!(read(&[], Form::Bits(9)), Err(Code::InvalidArgument));
        assert_eq!(encode(&0u32.into(), &Form::Bits(32)), [0]);
        assert_eq!(encode(&258u32.into(), &Form::Bits(32)), [1, 2]);
        let text = Form::Text(Names::default());
        assert_eq!(read(b"17", text.clone()), Ok(17u32.into()));
        assert_eq!(read(&[0xff], text.clone()), Err(Code::InvalidArgument));
        assert_eq!(encode(&17u32.into(), &text), b"17");
    }
}
