//! Values, and what of them is known.
//!
//! A value that the specification leaves open, of a variable that nothing was written to
//! for one, is carried along as not known, and so is all that is computed from it.

use crate::machine::{Run, Stop};
use crate::number::Width;
use crate::types::{Enum, Struct, Type};
use num_bigint::BigInt;
use std::rc::Rc;

/// A value. `None` stands for what is not known.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(Width, Option<BigInt>),
    Integer(BigInt),
    Bool(Option<bool>),
    Error(Option<Rc<str>>),
    /// The value of a member, or its number where there is no underlying type.
    Enum(Rc<Enum>, Option<BigInt>),
    Struct(Rc<Struct>, Vec<Value>),
    /// The middle one says whether it is valid.
    Header(Rc<Struct>, Option<bool>, Vec<Value>),
    /// Type of the elements, the elements, and `nextIndex`.
    Stack(Rc<Type>, Vec<Value>, usize),
    /// `{a, b}`, before it is known of which type.
    List(Vec<Value>),
    /// `{x = a, y = b}`, the same; and whether `...` is at its end.
    Record(Vec<(String, Value)>, bool),
    /// `...`.
    Dots,
    /// `{#}`.
    NoHeader,
    /// Result of applying a table.
    Applied {
        hit: bool,
        action: String,
    },
    /// The action that a table ran.
    ActionRun(String),
    PacketIn,
    PacketOut,
    Text,
    Void,
}

impl Value {
    /// The number, where there is one.
    pub(crate) fn number(&self) -> Option<&BigInt> {
        match self {
            Value::Number(_, value) => value.as_ref(),
            Value::Integer(value) => Some(value),
            Value::Enum(decl, value) if decl.underlying.is_some() => value.as_ref(),
            _ => None,
        }
    }

    /// The number as an index or amount.
    pub(crate) fn index(&self) -> Run<usize> {
        let number = self.number().ok_or(Stop::Unknown("a number"))?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The truth value.
    pub(crate) fn truth(&self) -> Run<bool> {
        match self {
            Value::Bool(Some(value)) => Ok(*value),
            Value::Bool(None) => Err(Stop::Unknown("a condition")),
            _ => Err(Stop::unsupported("a condition of another type")),
        }
    }

    /// A value with an underlying type as the number that it is (§8.11.2).
    pub(crate) fn plain(self) -> Value {
        match self {
            Value::Enum(decl, value) => match decl.underlying {
                Some(width) => Value::Number(width, value),
                None => Value::Enum(decl, value),
            },
            value => value,
        }
    }

    /// Its type, where it has one.
    pub(crate) fn ty(&self) -> Option<Type> {
        Some(match self {
            Value::Number(width, _) => Type::Number(*width),
            Value::Bool(_) => Type::Bool,
            Value::Error(_) => Type::Error,
            Value::Enum(decl, _) => Type::Enum(decl.clone()),
            Value::Struct(decl, _) | Value::Header(decl, ..) => Type::Struct(decl.clone()),
            Value::Stack(element, elements, _) => Type::Stack(element.clone(), elements.len()),
            _ => return None,
        })
    }

    /// The value as one of a type that it is assigned to, passed as or compared with:
    /// implicit casts (§8.11.2), lists and records as structs, headers and stacks (§8.12,
    /// §8.13, §8.16), default values (§8.26).
    pub(crate) fn fit(self, ty: &Type) -> Run<Value> {
        Ok(match (self, ty) {
            (Value::Integer(value), Type::Number(width)) => {
                Value::Number(*width, Some(width.wrap(&value)))
            }
            (value @ Value::Enum(..), Type::Number(_)) => value.plain(),
            (Value::Dots, ty) => ty.default(),
            (Value::NoHeader, ty) => ty.uninitialised(),
            (Value::List(mut values), Type::Struct(decl)) => {
                let dots = matches!(values.last(), Some(Value::Dots));
                if dots {
                    values.pop();
                }
                if values.len() > decl.fields.len() || !dots && values.len() < decl.fields.len() {
                    return Err(Stop::unsupported("a list of another length"));
                }
                let mut given = values.into_iter();
                let mut fields = Vec::new();
                for (_, ty) in &decl.fields {
                    fields.push(match given.next() {
                        Some(value) => value.fit(ty)?,
                        None => ty.default(),
                    });
                }
                compound(decl, fields)
            }
            (Value::Record(values, rest), Type::Struct(decl)) => {
                let mut fields: Vec<Option<Value>> = decl.fields.iter().map(|_| None).collect();
                for (name, value) in values {
                    let at = decl.field(&name);
                    let at = at.ok_or_else(|| Stop::unsupported("a field that is none"))?;
                    fields[at] = Some(value.fit(&decl.fields[at].1)?);
                }
                let mut all = Vec::new();
                for (field, (_, ty)) in fields.into_iter().zip(&decl.fields) {
                    all.push(match field {
                        Some(value) => value,
                        None if rest => ty.default(),
                        None => return Err(Stop::unsupported("a field without a value")),
                    });
                }
                compound(decl, all)
            }
            (Value::List(mut values), Type::Stack(element, size)) => {
                if matches!(values.last(), Some(Value::Dots)) {
                    values.pop();
                    values.resize_with(*size, || Value::Dots);
                }
                let elements = values.into_iter().map(|value| value.fit(element));
                Value::Stack(element.clone(), elements.collect::<Run<_>>()?, 0)
            }
            (value, _) => value,
        })
    }

    /// Equality of two values; `None` if it is not known.
    pub(crate) fn equals(&self, other: &Value) -> Run<Option<bool>> {
        fn both<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<bool> {
            Some(one? == other?)
        }
        Ok(match (self, other) {
            (Value::Bool(one), Value::Bool(other)) => both(one.as_ref(), other.as_ref()),
            (Value::Error(one), Value::Error(other)) => both(one.as_ref(), other.as_ref()),
            (Value::Enum(_, one), Value::Enum(_, other)) => both(one.as_ref(), other.as_ref()),
            (Value::ActionRun(one), Value::ActionRun(other)) => Some(one == other),
            (Value::Struct(_, one), Value::Struct(_, other))
            | (Value::Stack(_, one, _), Value::Stack(_, other, _)) => all_equal(one, other)?,
            (Value::Header(_, one, fields), Value::Header(_, other, others)) => {
                match (one, other) {
                    (Some(true), Some(true)) => all_equal(fields, others)?,
                    (Some(one), Some(other)) => Some(one == other),
                    _ => None,
                }
            }
            (Value::Number(..) | Value::Integer(_), Value::Number(..) | Value::Integer(_)) => {
                both(self.number(), other.number())
            }
            _ => return Err(Stop::unsupported("a comparison of such values")),
        })
    }
}

/// A struct or, valid, a header with these fields.
fn compound(decl: &Rc<Struct>, fields: Vec<Value>) -> Value {
    if decl.is_header {
        Value::Header(decl.clone(), Some(true), fields)
    } else {
        Value::Struct(decl.clone(), fields)
    }
}

fn all_equal(one: &[Value], other: &[Value]) -> Run<Option<bool>> {
    let mut result = Some(true);
    for (one, other) in one.iter().zip(other) {
        match one.equals(other)? {
            Some(true) => {}
            Some(false) => return Ok(Some(false)),
            None => result = None,
        }
    }
    Ok(result)
}
