//! Values as text.

use num_bigint::{BigInt, BigUint};
use stateplane_interp::Datum;
use stateplane_ir::{Program, Type};

/// A value: numbers below 10 and signed ones decimal, others hexadecimal.
pub(crate) fn text(program: &Program, datum: &Datum) -> String {
    match datum {
        Datum::Scalar(ty, value) => scalar(program, *ty, value),
        Datum::Varbit(length, value) => format!("{length} bits {value:#x}"),
        Datum::Members(members) => format!("{{{}}}", fields(program, members).join(", ")),
        Datum::Invalid => "invalid".to_owned(),
    }
}

/// Each member as `name = value`.
pub(crate) fn fields(program: &Program, members: &[(String, Datum)]) -> Vec<String> {
    let fields = members
        .iter()
        .map(|(name, value)| format!("{name} = {}", text(program, value)));
    fields.collect()
}

fn scalar(program: &Program, ty: Type, value: &BigUint) -> String {
    let position = || usize::try_from(value).unwrap_or(usize::MAX);
    match ty {
        Type::Bool => (*value != BigUint::ZERO).to_string(),
        Type::Error => match program.errors.get(position()) {
            Some(name) => format!("error.{name}"),
            None => format!("error {value}"),
        },
        Type::Enum(id) => match program.enums.get(id.index()) {
            Some(def) => match def.members.get(position()) {
                Some(member) => format!("{}.{member}", def.name),
                None => format!("{} {value}", def.name),
            },
            None => value.to_string(),
        },
        Type::Int(width) if width > 0 && value.bits() == u64::from(width) => {
            (BigInt::from(value.clone()) - (BigInt::from(1) << width)).to_string()
        }
        Type::Int(_) => value.to_string(),
        _ => number(value),
    }
}

/// An unsigned number.
pub(crate) fn number(value: &BigUint) -> String {
    if *value < BigUint::from(10_u32) {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}
