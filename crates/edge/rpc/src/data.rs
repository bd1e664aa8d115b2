//! `P4Data` of registers and digests, by the types of P4Info.

use crate::bytes::{self, Form};
use crate::proto::config::{self, p4_data_type_spec::TypeSpec};
use crate::proto::v1::{self, p4_data::Data};
use crate::refusal::Refusal;
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use stateplane_runtime::Value;

/// Types within types; the compiler refuses more.
const MAX_DEPTH: u32 = 64;

pub(crate) fn bit_width(spec: &config::P4BitstringLikeTypeSpec) -> u32 {
    use config::p4_bitstring_like_type_spec::TypeSpec as Bits;
    let width = match &spec.type_spec {
        Some(Bits::Bit(bit)) => bit.bitwidth,
        Some(Bits::Int(int)) => int.bitwidth,
        Some(Bits::Varbit(varbit)) => varbit.max_bitwidth,
        None => 0,
    };
    u32::try_from(width).unwrap_or(0)
}

/// A type with its names resolved.
enum Resolved<'a> {
    Bits(u32),
    /// An enum's underlying type.
    EnumValue(u32),
    Bool,
    Enum(Vec<&'a str>),
    Error(&'a [String]),
    Struct(Vec<&'a config::P4DataTypeSpec>),
    Tuple(&'a [config::P4DataTypeSpec]),
    Unknown,
}

fn resolve<'a>(
    spec: &'a config::P4DataTypeSpec,
    types: Option<&'a config::P4TypeInfo>,
    depth: u32,
) -> Resolved<'a> {
    let found = match &spec.type_spec {
        Some(TypeSpec::Bitstring(bits)) => Some(Resolved::Bits(bit_width(bits))),
        Some(TypeSpec::Bool(_)) => Some(Resolved::Bool),
        Some(TypeSpec::Tuple(tuple)) => Some(Resolved::Tuple(&tuple.members)),
        Some(TypeSpec::Struct(name)) => {
            types
                .and_then(|types| types.structs.get(&name.name))
                .map(|spec| {
                    let members = spec.members.iter();
                    Resolved::Struct(
                        members
                            .filter_map(|member| member.type_spec.as_ref())
                            .collect(),
                    )
                })
        }
        Some(TypeSpec::Enum(name)) => types
            .and_then(|types| types.enums.get(&name.name))
            .map(|spec| Resolved::Enum(spec.members.iter().map(|it| it.name.as_str()).collect())),
        Some(TypeSpec::Error(_)) => types
            .and_then(|types| types.error.as_ref())
            .map(|spec| Resolved::Error(&spec.members)),
        Some(TypeSpec::SerializableEnum(name)) => types
            .and_then(|types| types.serializable_enums.get(&name.name))
            .map(|spec| {
                let width = spec.underlying_type.as_ref().map_or(0, |it| it.bitwidth);
                Resolved::EnumValue(u32::try_from(width).unwrap_or(0))
            }),
        Some(TypeSpec::NewType(name)) => types
            .and_then(|types| types.new_types.get(&name.name))
            .and_then(|spec| spec.representation.as_ref())
            .map(|representation| {
                use config::p4_new_type_spec::Representation;
                use config::p4_new_type_translation::SdnType;
                match representation {
                    Representation::OriginalType(spec) if depth < MAX_DEPTH => {
                        resolve(spec, types, depth + 1)
                    }
                    Representation::TranslatedType(translated) => match translated.sdn_type {
                        Some(SdnType::SdnBitwidth(width)) => {
                            Resolved::Bits(u32::try_from(width).unwrap_or(0))
                        }
                        _ => Resolved::Bits(0),
                    },
                    Representation::OriginalType(_) => Resolved::Unknown,
                }
            }),
        _ => None,
    };
    found.unwrap_or(Resolved::Unknown)
}

/// The message of a value.
pub(crate) fn write(
    value: &Value,
    spec: &config::P4DataTypeSpec,
    types: Option<&config::P4TypeInfo>,
) -> v1::P4Data {
    let data = match (resolve(spec, types, 0), value) {
        (Resolved::Bits(width), Value::Bits(bits)) => {
            Data::Bitstring(bytes::encode(bits, &Form::Bits(width)))
        }
        (Resolved::EnumValue(width), Value::Bits(bits)) => {
            Data::EnumValue(bytes::encode(bits, &Form::Bits(width)))
        }
        (Resolved::Bool, Value::Bits(bits)) => Data::Bool(!bits.is_zero()),
        (Resolved::Enum(members), Value::Bits(bits)) => {
            let name = bits.to_usize().and_then(|at| members.get(at).copied());
            Data::Enum(name.unwrap_or_default().to_owned())
        }
        (Resolved::Error(members), Value::Bits(bits)) => {
            let name = bits.to_usize().and_then(|at| members.get(at));
            Data::Error(name.cloned().unwrap_or_default())
        }
        (Resolved::Struct(specs), Value::Struct(values)) => Data::Struct(v1::P4StructLike {
            members: specs
                .into_iter()
                .zip(values)
                .map(|(spec, value)| write(value, spec, types))
                .collect(),
        }),
        (Resolved::Tuple(specs), Value::Struct(values)) => Data::Tuple(v1::P4StructLike {
            members: specs
                .iter()
                .zip(values)
                .map(|(spec, value)| write(value, spec, types))
                .collect(),
        }),
        // The P4Info was checked against the program; what is left has no type in it.
        (_, Value::Bits(bits)) => Data::Bitstring(bytes::encode(bits, &Form::Bits(0))),
        (_, Value::Struct(values)) => {
            let spec = config::P4DataTypeSpec::default();
            Data::Struct(v1::P4StructLike {
                members: values.iter().map(|it| write(it, &spec, types)).collect(),
            })
        }
    };
    v1::P4Data { data: Some(data) }
}

/// The value of a message.
///
/// # Errors
///
/// `INVALID_ARGUMENT` if it is not of the type.
pub(crate) fn read(
    data: &v1::P4Data,
    spec: &config::P4DataTypeSpec,
    types: Option<&config::P4TypeInfo>,
    what: &str,
) -> Result<Value, Refusal> {
    let wrong = |expected: &str| {
        Err(Refusal::invalid(format!(
            "the data of {what} are {expected} in the P4Info"
        )))
    };
    // The specification has INVALID_ARGUMENT for all data of another format.
    let bits = |bytes: &[u8], width| {
        bytes::decode(bytes, &Form::Bits(width), &|| what.to_owned())
            .map(Value::Bits)
            .map_err(|refusal| Refusal::invalid(refusal.message))
    };
    let position = |found: Option<usize>| match found {
        Some(at) => Ok(Value::Bits(BigUint::from(at))),
        None => Err(Refusal::invalid(format!("{what} has no such member"))),
    };
    match (resolve(spec, types, 0), &data.data) {
        (Resolved::Bits(width), Some(Data::Bitstring(bytes)))
        | (Resolved::EnumValue(width), Some(Data::EnumValue(bytes))) => bits(bytes, width),
        (Resolved::Bits(width), _) => wrong(&format!("a bit string of {width} bits")),
        (Resolved::EnumValue(width), _) => wrong(&format!("an enum's value of {width} bits")),
        (Resolved::Bool, Some(Data::Bool(value))) => Ok(Value::from(u64::from(*value))),
        (Resolved::Bool, _) => wrong("a bool"),
        (Resolved::Enum(members), Some(Data::Enum(name))) => {
            position(members.iter().position(|member| member == name))
        }
        (Resolved::Enum(_), _) => wrong("a member of an enum"),
        (Resolved::Error(members), Some(Data::Error(name))) => {
            position(members.iter().position(|member| member == name))
        }
        (Resolved::Error(_), _) => wrong("an error"),
        (Resolved::Struct(specs), Some(Data::Struct(given))) => {
            members(&given.members, specs.into_iter(), types, what)
        }
        (Resolved::Struct(_), _) => wrong("a struct"),
        (Resolved::Tuple(specs), Some(Data::Tuple(given))) => {
            members(&given.members, specs.iter(), types, what)
        }
        (Resolved::Tuple(_), _) => wrong("a tuple"),
        (Resolved::Unknown, _) => wrong("of a type that is not there"),
    }
}

fn members<'a>(
    given: &[v1::P4Data],
    specs: impl ExactSizeIterator<Item = &'a config::P4DataTypeSpec>,
    types: Option<&config::P4TypeInfo>,
    what: &str,
) -> Result<Value, Refusal> {
    if given.len() != specs.len() {
        return Err(Refusal::invalid(format!(
            "the data of {what} have {} members, not {}",
            specs.len(),
            given.len()
        )));
    }
    let values = specs
        .zip(given)
        .map(|(spec, data)| read(data, spec, types, what))
        .collect::<Result<_, _>>()?;
    Ok(Value::Struct(values))
}
