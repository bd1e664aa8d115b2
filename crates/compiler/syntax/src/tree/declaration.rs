//! Declarations.

use stateplane_diagnostics::Span;

use super::{
    Annotation, Argument, Block, EnumDecl, Expr, Ident, Keyset, Parameter, ParserState, Path,
    StructDecl, Type, TypedefDecl,
};

/// A declaration of the outermost scope.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// `const`.
    Const(ConstDecl),
    /// `extern name { … }`.
    Extern(ExternDecl),
    /// `extern` with a function prototype.
    ExternFunction(ExternFunction),
    /// A function with a body.
    Function(FunctionDecl),
    /// `action`.
    Action(ActionDecl),
    /// `parser` with a body.
    Parser(ParserDecl),
    /// `parser` without a body: a type.
    ParserType(Signature),
    /// `control` with a body.
    Control(ControlDecl),
    /// `control` without a body: a type.
    ControlType(Signature),
    /// `package`.
    Package(Signature),
    /// `header`, `header_union` or `struct`.
    Struct(StructDecl),
    /// `enum`.
    Enum(EnumDecl),
    /// `typedef` or `type`.
    Typedef(TypedefDecl),
    /// `error { … }`; all such declarations add to one type.
    Error(MembersDecl),
    /// `match_kind { … }`; all such declarations add to one type.
    MatchKind(MembersDecl),
    /// An instance.
    Instantiation(Instantiation),
}

/// `const ty name = value;`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub value: Expr,
    /// The whole declaration.
    pub span: Span,
}

/// `ty name;` or `ty name = init;`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
    /// Its first value.
    pub init: Option<Expr>,
    /// The whole declaration.
    pub span: Span,
}

/// `ty(args) name;`, or with `= { … }` an instance that gives bodies to abstract methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Instantiation {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The type of the instance; a stack of it where the name has array dimensions.
    pub ty: Type,
    /// The constructor's arguments.
    pub args: Vec<Argument>,
    /// Its name.
    pub name: Ident,
    /// The functions and instances of its block, `None` where there is no block.
    pub members: Option<Vec<ObjectMember>>,
    /// The whole declaration.
    pub span: Span,
}

/// A declaration in the block of an [`Instantiation`].
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectMember {
    /// The body of an abstract method.
    Function(FunctionDecl),
    /// An instance for the use of these bodies.
    Instantiation(Instantiation),
}

/// Signature of a parser, control or package.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Its type parameters, empty where it is not generic.
    pub type_params: Vec<Ident>,
    /// The parameters of its `apply`, or, of a package, of its constructor.
    pub params: Vec<Parameter>,
    /// From the annotations to the closing parenthesis.
    pub span: Span,
}

/// A parser with a body.
#[derive(Clone, Debug, PartialEq)]
pub struct ParserDecl {
    /// Name and parameters.
    pub signature: Signature,
    /// The parameters of its constructor.
    pub constructor_params: Vec<Parameter>,
    /// Local declarations.
    pub locals: Vec<ParserLocal>,
    /// Its states in order.
    pub states: Vec<ParserState>,
    /// The whole declaration.
    pub span: Span,
}

/// A declaration in a parser.
#[derive(Clone, Debug, PartialEq)]
pub enum ParserLocal {
    /// A constant.
    Const(ConstDecl),
    /// A variable.
    Variable(VariableDecl),
    /// An instance.
    Instantiation(Instantiation),
    /// A value set.
    ValueSet(ValueSetDecl),
}

/// `value_set<element>(size) name;`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSetDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The type of its members.
    pub element: Type,
    /// Number of members that the value set has room for.
    pub size: Expr,
    /// Its name.
    pub name: Ident,
    /// The whole declaration.
    pub span: Span,
}

/// A control with a body.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlDecl {
    /// Name and parameters.
    pub signature: Signature,
    /// The parameters of its constructor.
    pub constructor_params: Vec<Parameter>,
    /// Local declarations.
    pub locals: Vec<ControlLocal>,
    /// The block after `apply`.
    pub body: Block,
    /// The whole declaration.
    pub span: Span,
}

/// A declaration in a control.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlLocal {
    /// A constant.
    Const(ConstDecl),
    /// A variable.
    Variable(VariableDecl),
    /// An instance.
    Instantiation(Instantiation),
    /// An action.
    Action(ActionDecl),
    /// A table.
    Table(TableDecl),
}

/// `action name(params) { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Its parameters; those without direction are the control plane's.
    pub params: Vec<Parameter>,
    /// Statements of the body.
    pub body: Block,
    /// The whole declaration.
    pub span: Span,
}

/// `extern name { … }`. A forward declaration, `extern name;`, leaves no node.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_params: Vec<Ident>,
    /// Its constructors and methods in order.
    pub members: Vec<ExternMember>,
    /// The whole declaration.
    pub span: Span,
}

/// A member of an extern object type.
#[derive(Clone, Debug, PartialEq)]
pub enum ExternMember {
    /// `Name(params);`.
    Constructor(ExternConstructor),
    /// A method.
    Method(ExternMethod),
}

/// A constructor of an extern object type.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternConstructor {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The name of the extern.
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// The whole declaration.
    pub span: Span,
}

/// A method of an extern object type.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternMethod {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// True if instances must give it a body.
    pub is_abstract: bool,
    /// Name, parameters and result.
    pub prototype: Prototype,
    /// The whole declaration.
    pub span: Span,
}

/// `extern` with a function prototype.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternFunction {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Name, parameters and result.
    pub prototype: Prototype,
    /// The whole declaration.
    pub span: Span,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Name, parameters and result.
    pub prototype: Prototype,
    /// Statements of the body.
    pub body: Block,
    /// The whole declaration.
    pub span: Span,
}

/// Prototype of a function or method.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// The type of its result; [`TypeKind::Void`](super::TypeKind::Void) for none. It may
    /// be one of the type parameters.
    pub return_type: Type,
    /// Its name.
    pub name: Ident,
    /// Its type parameters.
    pub type_params: Vec<Ident>,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// From the return type to the closing parenthesis.
    pub span: Span,
}

/// The members that an `error` or `match_kind` declaration adds.
#[derive(Clone, Debug, PartialEq)]
pub struct MembersDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The names added.
    pub members: Vec<Ident>,
    /// The whole declaration.
    pub span: Span,
}

/// `table name { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDecl {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its name.
    pub name: Ident,
    /// Its properties in order.
    pub properties: Vec<TableProperty>,
    /// The whole declaration.
    pub span: Span,
}

/// A property of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableProperty {
    /// Its annotations; always empty for `key` and `actions`.
    pub annotations: Vec<Annotation>,
    /// True if it is `const`, which keeps it from the control plane; never for `key` and `actions`.
    pub is_const: bool,
    /// The property's name, `key` and the like included.
    pub name: Ident,
    /// Its value.
    pub value: TablePropertyValue,
    /// The whole property.
    pub span: Span,
}

/// The value of a table property (specification section 14.2.1).
#[derive(Clone, Debug, PartialEq)]
pub enum TablePropertyValue {
    /// `key = { … }`.
    Key(Vec<KeyElement>),
    /// `actions = { … }`.
    Actions(Vec<ActionRef>),
    /// `entries = { … }`.
    Entries(Vec<TableEntry>),
    /// Any other property, `default_action`, `size` and `implementation` among them.
    Expr(Expr),
}

/// `expr : match_kind;`.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyElement {
    /// Matched expression.
    pub expr: Expr,
    /// Match kind: `exact`, `lpm` and so on.
    pub match_kind: Ident,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The whole element.
    pub span: Span,
}

/// An action in an `actions` list or in a table entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRef {
    /// Its annotations; always empty in a table entry, which has its own.
    pub annotations: Vec<Annotation>,
    /// The action.
    pub path: Path,
    /// Its arguments; `None` where there are no parentheses.
    pub args: Option<Vec<Argument>>,
    /// Path and arguments.
    pub span: Span,
}

/// An entry that the program puts in a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// True if it is `const`, which keeps the control plane from changing it.
    pub is_const: bool,
    /// `priority = n :`; a smaller or larger number wins according to the table's
    /// `largest_priority_wins`.
    pub priority: Option<Expr>,
    /// Values that the entry matches.
    pub keyset: Keyset,
    /// Action of the entry.
    pub action: ActionRef,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// The whole entry.
    pub span: Span,
}

impl Declaration {
    /// Position of the declaration, from its annotations to its end; of a type without a body,
    /// without the final semicolon.
    #[must_use]
    pub const fn span(&self) -> Span {
        match self {
            Self::Const(d) => d.span,
            Self::Extern(d) => d.span,
            Self::ExternFunction(d) => d.span,
            Self::Function(d) => d.span,
            Self::Action(d) => d.span,
            Self::Parser(d) => d.span,
            Self::ParserType(d) | Self::ControlType(d) | Self::Package(d) => d.span,
            Self::Control(d) => d.span,
            Self::Struct(d) => d.span,
            Self::Enum(d) => d.span,
            Self::Typedef(d) => d.span,
            Self::Error(d) | Self::MatchKind(d) => d.span,
            Self::Instantiation(d) => d.span,
        }
    }
}
