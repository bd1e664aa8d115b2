//! Description of a program for the control plane, beyond what its packets need: types of the
//! source, names of parameters, annotations. P4Info is made of this and of the
//! [`Program`](crate::Program).

use crate::{ActionId, Annotation, CounterId, MeterId, RegisterId, TableId, ValueSetId};
use num_bigint::BigInt;
use std::collections::BTreeMap;

/// The control plane's view of a program. What a map lacks has no annotations and no
/// types but those of the IR.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// Types with names that the others refer to.
    pub types: Vec<NamedType>,
    /// Annotations of `main`.
    pub package: Vec<Annotation>,
    /// Actions.
    pub actions: BTreeMap<ActionId, ActionInterface>,
    /// Tables.
    pub tables: BTreeMap<TableId, TableInterface>,
    /// Registers.
    pub registers: BTreeMap<RegisterId, RegisterInterface>,
    /// Annotations of counters.
    pub counters: BTreeMap<CounterId, Vec<Annotation>>,
    /// Annotations of meters.
    pub meters: BTreeMap<MeterId, Vec<Annotation>>,
    /// Type of the members of value sets.
    pub value_sets: BTreeMap<ValueSetId, DataType>,
    /// Messages that `digest` sends, one for each type, in order of first use.
    pub digests: Vec<DigestInterface>,
    /// Headers with `@controller_header`, in order of declaration.
    pub controller_headers: Vec<NamedTypeId>,
}

/// Position in [`Interface::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedTypeId(pub u32);

/// A type of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    /// `bool`.
    Bool,
    /// `bit<W>`.
    Bits(u32),
    /// `int<W>`.
    Int(u32),
    /// `varbit<W>`: the greatest width.
    Varbit(u32),
    /// `error`.
    Error,
    /// A type with a name.
    Named(NamedTypeId),
    /// A header stack or stack of header unions.
    Stack(NamedTypeId, u32),
    /// A tuple.
    Tuple(Vec<DataType>),
}

/// A type with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedType {
    /// The control-plane name: `@name`, or the source's.
    pub name: String,
    /// Kind of the type.
    pub kind: NamedTypeKind,
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
}

/// Kind of a named type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedTypeKind {
    /// A struct.
    Struct(Vec<MemberType>),
    /// A header; structs in it are members of their own.
    Header(Vec<MemberType>),
    /// A header union.
    Union(Vec<MemberType>),
    /// An enum without underlying type: its members.
    Enum(Vec<String>),
    /// An enum with underlying type.
    Serial {
        /// `bit<W>` or `int<W>`.
        underlying: DataType,
        /// Names and values.
        members: Vec<(String, BigInt)>,
    },
    /// `type`.
    New {
        /// Underlying type; may be another `type`.
        underlying: DataType,
    },
}

/// A member of a struct, header or header union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberType {
    /// The source's name.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// An action's data, the parameters without direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionInterface {
    /// Action data in order; names are the control plane's (`@name`, or the source's).
    pub params: Vec<MemberType>,
}

/// Description of a table for the control plane, beside the IR's [`Table`](crate::Table).
#[derive(Clone, Debug, PartialEq)]
pub struct TableInterface {
    /// Type and annotations of each key.
    pub keys: Vec<(DataType, Vec<Annotation>)>,
    /// Actions as listed, with the annotations of the list; an action that is only the
    /// implicit default comes last.
    pub action_refs: Vec<(ActionId, Vec<Annotation>)>,
    /// `size` as written; `None` if it is not.
    pub size: Option<u64>,
}

/// Description of a register for the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterInterface {
    /// Element type as written.
    pub element: DataType,
    /// Annotations.
    pub annotations: Vec<Annotation>,
}

/// A message to the control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestInterface {
    /// Control-plane name: that of the type, `digest_N` if the type has none. The IR's
    /// [`Op::Digest`](crate::Op::Digest) has the same.
    pub name: String,
    /// Type of the data.
    pub ty: DataType,
}
