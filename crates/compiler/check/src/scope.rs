//! Names and what they stand for.

use crate::types::{Ty, TypeVar};
use crate::value::Value;
use indexmap::IndexMap;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree;
use std::rc::Rc;

/// Entity that a name denotes.
#[derive(Clone, Debug)]
pub(crate) enum Entity {
    /// A type without open parameters.
    Type(Ty),
    /// A generic struct, header or header union: position in `Types::templates`.
    Template(u32),
    /// An extern object type: position in `Checker::externs`.
    Extern(u32),
    /// A parser or control type: position in `Checker::blocks`.
    Block(u32),
    /// A parser or control with a body: position in `Checker::bodies`.
    Body(u32),
    /// A package type: position in `Checker::packages`.
    Package(u32),
    /// A constant, variable, parameter or instance.
    Value(Value),
    /// A function, extern or not: position in `Checker::functions`.
    Function(u32),
    /// An action: position in `Made::actions`.
    Action(u32),
    /// A table: position in `Made::tables`.
    Table(u32),
    /// A parser value set: position in `Made::value_sets`.
    ValueSet(u32),
    /// A declaration with an error that has been reported.
    Broken,
}

impl Entity {
    /// Noun for the entity in a message, with its article.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Entity::Type(_) | Entity::Template(_) => "a type",
            Entity::Extern(_) => "an extern",
            Entity::Block(_) => "a parser or control type",
            Entity::Body(_) => "a parser or control",
            Entity::Package(_) => "a package",
            Entity::Value(_) => "a value",
            Entity::Function(_) => "a function",
            Entity::Action(_) => "an action",
            Entity::Table(_) => "a table",
            Entity::ValueSet(_) => "a value set",
            Entity::Broken => "a declaration",
        }
    }
}

/// A declared name.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub entity: Entity,
    pub span: Span,
    /// Place in the order of top-level declarations; uses must come later.
    pub order: u32,
}

/// Names of one scope inside a parser, control, action, function or block.
pub(crate) type Frame = IndexMap<String, Symbol>;

/// A parameter of anything.
#[derive(Clone, Debug)]
pub(crate) struct Param<'a> {
    pub name: &'a str,
    pub span: Span,
    pub direction: tree::Direction,
    pub ty: Ty,
    pub default: Option<&'a tree::Expr>,
    pub optional: bool,
}

/// Interface of a callable.
#[derive(Clone, Debug)]
pub(crate) struct Signature<'a> {
    pub name: &'a str,
    pub span: Span,
    pub vars: Vec<TypeVar>,
    pub params: Vec<Param<'a>>,
    pub ret: Ty,
}

/// A function, extern or not.
#[derive(Clone)]
pub(crate) struct FunctionInfo<'a> {
    pub signature: Rc<Signature<'a>>,
    pub body: Option<&'a tree::FunctionDecl>,
    pub order: u32,
}

/// An extern object type.
#[derive(Clone)]
pub(crate) struct ExternInfo<'a> {
    pub decl: &'a tree::ExternDecl,
    pub vars: Vec<TypeVar>,
    pub constructors: Vec<Rc<Signature<'a>>>,
    pub methods: Vec<Rc<Signature<'a>>>,
}

/// A parser or control type, or a package.
#[derive(Clone)]
pub(crate) struct BlockInfo<'a> {
    pub is_parser: bool,
    pub signature: Rc<Signature<'a>>,
}

/// A parser or control with a body.
#[derive(Clone, Copy)]
pub(crate) struct BodyInfo<'a> {
    pub decl: BodyDecl<'a>,
    pub order: u32,
}

/// The declaration of a parser or control.
#[derive(Clone, Copy)]
pub(crate) enum BodyDecl<'a> {
    /// A parser.
    Parser(&'a tree::ParserDecl),
    /// A control.
    Control(&'a tree::ControlDecl),
}

impl<'a> BodyDecl<'a> {
    /// Name and parameters of `apply`.
    pub(crate) fn signature(self) -> &'a tree::Signature {
        match self {
            BodyDecl::Parser(decl) => &decl.signature,
            BodyDecl::Control(decl) => &decl.signature,
        }
    }

    /// Parameters of the constructor.
    pub(crate) fn constructor_params(self) -> &'a [tree::Parameter] {
        match self {
            BodyDecl::Parser(decl) => &decl.constructor_params,
            BodyDecl::Control(decl) => &decl.constructor_params,
        }
    }

    /// `parser` or `control`.
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            BodyDecl::Parser(_) => "parser",
            BodyDecl::Control(_) => "control",
        }
    }
}
