//! Types, and the values that they begin with (P4-16 1.2.5, §7).

use crate::machine::{Machine, Run, Stop};
use crate::number::Width;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::{EnumDecl, Parameter, StructDecl, StructKind, TypeKind};
use stateplane_syntax::tree::{Type as Written, TypedefDecl, TypedefTarget};
use std::rc::Rc;

/// A type.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Number(Width),
    Integer,
    Bool,
    Error,
    Enum(Rc<Enum>),
    Struct(Rc<Struct>),
    Stack(Rc<Type>, usize),
    Void,
    /// A packet, a string: what is passed and never changed.
    Other,
}

/// An enumeration.
#[derive(Debug)]
pub(crate) struct Enum {
    /// Names, with their values where the enumeration has an underlying type.
    pub(crate) members: Vec<(String, BigInt)>,
    pub(crate) underlying: Option<Width>,
}

/// A header or struct.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) is_header: bool,
    pub(crate) fields: Vec<(String, Type)>,
}

impl Struct {
    pub(crate) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(field, _)| field == name)
    }
}

impl Type {
    /// Bits of a value in a packet; `None` of types that packets do not have.
    pub(crate) fn bits(&self) -> Option<u32> {
        Some(match self {
            Type::Number(width) => width.bits,
            Type::Bool => 1,
            Type::Enum(decl) => decl.underlying?.bits,
            Type::Struct(decl) => {
                let bits = decl.fields.iter().map(|(_, ty)| ty.bits());
                bits.sum::<Option<u32>>()?
            }
            _ => return None,
        })
    }

    /// Initial value of a variable without initialiser and of an `out` parameter (§6.8, §11.2):
    /// headers are invalid, all else is not known.
    pub(crate) fn uninitialised(&self) -> Value {
        match self {
            Type::Number(width) => Value::Number(*width, None),
            Type::Integer | Type::Void | Type::Other => Value::Void,
            Type::Bool => Value::Bool(None),
            Type::Error => Value::Error(None),
            Type::Enum(decl) => Value::Enum(decl.clone(), None),
            Type::Struct(decl) => {
                let fields = decl.fields.iter().map(|(_, ty)| ty.uninitialised());
                let fields = fields.collect();
                if decl.is_header {
                    Value::Header(decl.clone(), Some(false), fields)
                } else {
                    Value::Struct(decl.clone(), fields)
                }
            }
            Type::Stack(element, size) => {
                let elements = (0..*size).map(|_| element.uninitialised());
                Value::Stack(element.clone(), elements.collect(), 0)
            }
        }
    }

    /// Value of a stack's element outside its bounds: not even its validity is known.
    pub(crate) fn unknown(&self) -> Value {
        match self.uninitialised() {
            Value::Header(decl, _, fields) => Value::Header(decl, None, fields),
            Value::Struct(decl, _) => {
                let fields = decl.fields.iter().map(|(_, ty)| ty.unknown()).collect();
                Value::Struct(decl, fields)
            }
            Value::Stack(element, elements, next) => {
                let elements = elements.iter().map(|_| element.unknown()).collect();
                Value::Stack(element, elements, next)
            }
            value => value,
        }
    }

    /// The default value (§7.3).
    pub(crate) fn default(&self) -> Value {
        match self {
            Type::Number(width) => Value::Number(*width, Some(BigInt::ZERO)),
            Type::Integer => Value::Integer(BigInt::ZERO),
            Type::Bool => Value::Bool(Some(false)),
            Type::Error => Value::Error(Some("NoError".into())),
            Type::Enum(decl) => match decl.underlying {
                Some(_) => Value::Enum(decl.clone(), Some(BigInt::ZERO)),
                None => {
                    let first = decl.members.first();
                    Value::Enum(decl.clone(), first.map(|(_, value)| value.clone()))
                }
            },
            Type::Struct(decl) if !decl.is_header => {
                let fields = decl.fields.iter().map(|(_, ty)| ty.default()).collect();
                Value::Struct(decl.clone(), fields)
            }
            _ => self.uninitialised(),
        }
    }
}

impl<'p> Machine<'p> {
    /// The type of a parameter.
    pub(crate) fn parameter_type(&mut self, parameter: &'p Parameter) -> Run<Type> {
        self.ty(&parameter.ty)
    }

    /// The type that is written.
    pub(crate) fn ty(&mut self, written: &'p Written) -> Run<Type> {
        Ok(match &written.kind {
            TypeKind::Bool => Type::Bool,
            TypeKind::Error => Type::Error,
            TypeKind::Void => Type::Void,
            TypeKind::String => Type::Other,
            TypeKind::Integer => Type::Integer,
            TypeKind::Bit(None) => Type::Number(Width::unsigned(1)),
            TypeKind::Bit(Some(width)) => {
                let bits = self.count(width)?;
                Type::Number(Width::unsigned(bits))
            }
            TypeKind::Int(width) => {
                let bits = self.count(width)?;
                Type::Number(Width { bits, signed: true })
            }
            TypeKind::Named(path) => match self.types.get(path.name.as_str()) {
                Some(ty) => ty.clone(),
                None => return Err(Stop::unsupported(format!("the type {path}"))),
            },
            TypeKind::Stack { element, size } => {
                let element = self.ty(element)?;
                let size = self.count(size)?;
                Type::Stack(Rc::new(element), size as usize)
            }
            _ => return Err(Stop::unsupported("a type of another form")),
        })
    }

    pub(crate) fn declare_struct(&mut self, decl: &'p StructDecl) -> Run<Type> {
        if decl.kind == StructKind::HeaderUnion || !decl.type_params.is_empty() {
            return Err(Stop::unsupported("header unions and generic structs"));
        }
        let mut fields = Vec::new();
        for field in &decl.fields {
            fields.push((field.name.to_string(), self.ty(&field.ty)?));
        }
        Ok(Type::Struct(Rc::new(Struct {
            is_header: decl.kind == StructKind::Header,
            fields,
        })))
    }

    pub(crate) fn declare_enum(&mut self, decl: &'p EnumDecl) -> Run<Type> {
        let underlying = match &decl.underlying {
            Some(ty) => match self.ty(ty)? {
                Type::Number(width) => Some(width),
                _ => return Err(Stop::unsupported("an enumeration of no numbers")),
            },
            None => None,
        };
        let mut members = Vec::new();
        for (number, member) in decl.members.iter().enumerate() {
            let value = match (&member.value, underlying) {
                (Some(value), Some(width)) => {
                    let value = self.eval(value)?;
                    let value = value.fit(&Type::Number(width))?;
                    value.number().cloned().ok_or(Stop::Unknown("a member"))?
                }
                _ => BigInt::from(number),
            };
            members.push((member.name.to_string(), value));
        }
        Ok(Type::Enum(Rc::new(Enum {
            members,
            underlying,
        })))
    }

    pub(crate) fn declare_typedef(&mut self, decl: &'p TypedefDecl) -> Run<Type> {
        match &decl.target {
            TypedefTarget::Type(ty) => self.ty(ty),
            TypedefTarget::Struct(decl) => self.declare_struct(decl),
            TypedefTarget::Enum(decl) => self.declare_enum(decl),
        }
    }
}
