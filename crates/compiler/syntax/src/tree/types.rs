//! Types as written.

use stateplane_diagnostics::Span;

use super::{Annotation, Expr, Ident, Path};

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// Kind of the type.
    pub kind: TypeKind,
    /// Position of the type.
    pub span: Span,
}

/// The forms of types (specification section 7).
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// Unreadable; reported by the parser.
    Malformed,
    /// `bool`.
    Bool,
    /// `error`.
    Error,
    /// `match_kind`.
    MatchKind,
    /// `string`.
    String,
    /// `void`; only as a return type or type argument.
    Void,
    /// `_`; only as a type argument.
    DontCare,
    /// `int`, the integers of any size.
    Integer,
    /// `bit<w>`; `bit` alone has no width here and means one bit.
    Bit(Option<Box<Expr>>),
    /// `int<w>`.
    Int(Box<Expr>),
    /// `varbit<w>`.
    Varbit(Box<Expr>),
    /// A type by its name, also a type parameter.
    Named(Path),
    /// A generic type with its arguments: `name<args>`.
    Specialized {
        /// The generic type.
        base: Path,
        /// Its arguments.
        args: Vec<Type>,
    },
    /// `element[size]`.
    Stack {
        /// The type of the elements.
        element: Box<Type>,
        /// Their number.
        size: Box<Expr>,
    },
    /// `tuple<args>`.
    Tuple(Vec<Type>),
    /// `list<element>`.
    List(Box<Type>),
}

/// The direction of a parameter (specification section 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// No direction written.
    None,
    /// `in`.
    In,
    /// `out`.
    Out,
    /// `inout`.
    InOut,
}

/// A parameter of anything that has parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
    /// The value when no argument is given: `= expr`.
    pub default: Option<Expr>,
    /// From the annotations to the default.
    pub span: Span,
}

/// `header`, `header_union` or `struct`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructKind {
    /// `header`.
    Header,
    /// `header_union`.
    HeaderUnion,
    /// `struct`.
    Struct,
}

/// The declaration of a header, header union or struct type.
#[derive(Clone, Debug, PartialEq)]
pub struct StructDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Kind of the declaration: struct, header or header union.
    pub kind: StructKind,
    /// Its name.
    pub name: Ident,
    /// Its type parameters, empty for a type that is not generic.
    pub type_params: Vec<Ident>,
    /// Its fields in order.
    pub fields: Vec<Field>,
    /// The whole declaration.
    pub span: Span,
}

/// A field of a header, header union or struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
    /// The whole field.
    pub span: Span,
}

/// The declaration of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// The type that represents its members: `enum bit<8> E { … }`; `None` for an
    /// enumeration without representation.
    pub underlying: Option<Type>,
    /// Its members in order.
    pub members: Vec<EnumMember>,
    /// The whole declaration.
    pub span: Span,
}

/// A member of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumMember {
    /// Its name.
    pub name: Ident,
    /// Its value, there exactly if the enumeration has an underlying type, unless a
    /// diagnostic was reported.
    pub value: Option<Expr>,
    /// The whole member.
    pub span: Span,
}

/// `typedef` or `type`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedefDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// True if it is `type`, which makes a new type, and not `typedef`, which makes another name
    /// for the same type.
    pub is_new: bool,
    /// The type that gets the name.
    pub target: TypedefTarget,
    /// The name.
    pub name: Ident,
    /// The whole declaration.
    pub span: Span,
}

/// Type that a `typedef` names.
#[derive(Clone, Debug, PartialEq)]
pub enum TypedefTarget {
    /// A type.
    Type(Type),
    /// A header, header union or struct declared in place.
    Struct(Box<StructDecl>),
    /// An enumeration declared in place.
    Enum(Box<EnumDecl>),
}
