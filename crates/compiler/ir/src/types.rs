//! Types after resolution.

use crate::{Annotation, EnumId, StackId, StructId};

/// A resolved type. Small and `Copy`; names and members are in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool`.
    Bool,
    /// `bit<W>`, 0 ≤ W ≤ 2048.
    Bits(u32),
    /// `int<W>`, two's complement, 1 ≤ W ≤ 2048.
    Int(u32),
    /// `varbit<W>`: at most W bits, with a length of its own.
    Varbit(u32),
    /// `error`: an index into [`Program::errors`](crate::Program::errors).
    Error,
    /// An enum without underlying type: an index into its members.
    Enum(EnumId),
    /// A struct or tuple.
    Struct(StructId),
    /// A header: fields and a validity bit.
    Header(StructId),
    /// A header union: at most one member is valid.
    Union(StructId),
    /// A header stack.
    Stack(StackId),
}

impl Type {
    /// Width in bits of `bool`, `bit<W>` and `int<W>`; `None` for the others.
    pub fn scalar_width(self) -> Option<u32> {
        match self {
            Type::Bool => Some(1),
            Type::Bits(width) | Type::Int(width) => Some(width),
            _ => None,
        }
    }
}

/// Members of a struct, header or header union, in order of declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructDef {
    /// The source's name; tuples and specialised generics get a readable one.
    pub name: String,
    /// Members.
    pub fields: Vec<FieldDef>,
    /// Annotations kept from the source.
    pub annotations: Vec<Annotation>,
}

/// One member of a struct, header or header union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDef {
    /// The source's name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Annotations kept from the source, `@field_list` among them.
    pub annotations: Vec<Annotation>,
}

/// A header stack type, or an array type: an array has a `nextIndex` too, but nothing
/// moves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackDef {
    /// [`Type::Header`] or [`Type::Union`]; of an array a scalar or a [`Type::Struct`].
    pub element: Type,
    /// Number of elements, at least 1.
    pub size: u32,
}

/// An enum without underlying type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumDef {
    /// The source's name.
    pub name: String,
    /// Member names; a value is an index into them.
    pub members: Vec<String>,
}
