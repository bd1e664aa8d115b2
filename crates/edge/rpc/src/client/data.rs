//! Values of registers as people write and read them.

use super::names::{Wrong, pick};
use super::value::{self, Style};
use crate::proto::config::{self, p4_data_type_spec::TypeSpec};
use crate::proto::v1::{self, p4_data::Data};
use num_bigint::BigUint;

/// A value for a person: a text, or parts with their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A number, an address, a member of an enum.
    Text(String),
    /// Members of a struct by name, or of a tuple by position.
    Parts(Vec<(String, Shown)>),
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shown::Text(text) => f.write_str(text),
            Shown::Parts(parts) => {
                for (at, (name, part)) in parts.iter().enumerate() {
                    let before = if at == 0 { "" } else { " " };
                    match part {
                        Shown::Text(text) => write!(f, "{before}{name}={text}")?,
                        Shown::Parts(_) => write!(f, "{before}{name}={{{part}}}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

fn members<'a>(
    spec: &'a config::P4DataTypeSpec,
    types: Option<&'a config::P4TypeInfo>,
) -> Vec<(&'a str, Option<&'a config::P4DataTypeSpec>)> {
    match &spec.type_spec {
        Some(TypeSpec::Struct(name)) => types
            .and_then(|types| types.structs.get(&name.name))
            .map(|spec| {
                let members = spec.members.iter();
                members
                    .map(|member| (member.name.as_str(), member.type_spec.as_ref()))
                    .collect()
            })
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Shows a value called `name`; `types` know the names of its members.
#[must_use]
pub fn show(
    data: &v1::P4Data,
    name: &str,
    spec: Option<&config::P4DataTypeSpec>,
    types: Option<&config::P4TypeInfo>,
) -> Shown {
    let number = |bytes: &[u8]| {
        let width = spec.map_or(0, bit_width);
        let style = Style::of(name, width, &[]);
        Shown::Text(value::show(&BigUint::from_bytes_be(bytes), style))
    };
    match &data.data {
        Some(Data::Bitstring(bytes) | Data::EnumValue(bytes)) => number(bytes),
        Some(Data::Bool(value)) => Shown::Text(value.to_string()),
        Some(Data::Enum(text) | Data::Error(text)) => Shown::Text(text.clone()),
        Some(Data::Struct(given) | Data::Tuple(given)) => {
            let known = spec.map_or_else(Vec::new, |spec| members(spec, types));
            let parts = given.members.iter().enumerate().map(|(at, member)| {
                let (name, spec) = match known.get(at) {
                    Some((name, spec)) => ((*name).to_owned(), *spec),
                    None => (at.to_string(), None),
                };
                let shown = show(member, &name, spec, types);
                (name, shown)
            });
            Shown::Parts(parts.collect())
        }
        _ => Shown::Text("?".to_owned()),
    }
}

fn bit_width(spec: &config::P4DataTypeSpec) -> u32 {
    match &spec.type_spec {
        Some(TypeSpec::Bitstring(bits)) => crate::data::bit_width(bits),
        _ => 0,
    }
}

/// Reads a value of a type: one word for a scalar, `MEMBER=VALUE` for each member of a struct.
///
/// # Errors
///
/// Returns the expected form.
pub fn read(
    words: &[String],
    spec: &config::P4DataTypeSpec,
    types: Option<&config::P4TypeInfo>,
) -> Result<v1::P4Data, Wrong> {
    let known = members(spec, types);
    if known.is_empty() {
        return match words {
            [word] => scalar(word, spec),
            _ => Err("give one value".to_owned()),
        };
    }
    let names = known.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let mut given = vec![None; known.len()];
    for word in words {
        let Some((name, text)) = word.split_once('=') else {
            return Err(format!(
                "{word:?} is no MEMBER=VALUE; the members are: {}",
                names.join(", ")
            ));
        };
        let places = names.iter().enumerate().map(|(at, name)| (*name, at));
        let at = pick(places, name, "member")?;
        let spec = known[at].1.cloned().unwrap_or_default();
        given[at] = Some(scalar(text, &spec)?);
    }
    let members = given.into_iter().zip(&names).map(|(member, name)| {
        member.ok_or_else(|| format!("the member {name} is missing: {name}=VALUE"))
    });
    Ok(v1::P4Data {
        data: Some(Data::Struct(v1::P4StructLike {
            members: members.collect::<Result<_, _>>()?,
        })),
    })
}

fn scalar(text: &str, spec: &config::P4DataTypeSpec) -> Result<v1::P4Data, Wrong> {
    let data = match &spec.type_spec {
        Some(TypeSpec::Bool(_)) => Data::Bool(
            text.parse()
                .map_err(|_| format!("{text:?} is neither true nor false"))?,
        ),
        Some(TypeSpec::Enum(_)) => Data::Enum(text.to_owned()),
        Some(TypeSpec::Error(_)) => Data::Error(text.to_owned()),
        Some(TypeSpec::SerializableEnum(_)) => Data::EnumValue(value::bytes(&value::read(text)?)),
        Some(TypeSpec::Struct(_) | TypeSpec::Tuple(_)) => {
            return Err("a value within a value cannot be written here: use P4Runtime".to_owned());
        }
        _ => Data::Bitstring(value::bytes(&value::read(text)?)),
    };
    Ok(v1::P4Data { data: Some(data) })
}
