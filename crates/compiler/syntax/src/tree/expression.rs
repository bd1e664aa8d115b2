//! Expressions.

use std::sync::Arc;

use num_bigint::BigInt;
use stateplane_diagnostics::Span;

use super::{Ident, Path, Type};

/// An expression. Parentheses leave no node; they only widen the span.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Kind of the expression.
    pub kind: ExprKind,
    /// Position of the expression.
    pub span: Span,
}

/// The forms of expressions (specification section 8).
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Unreadable; reported by the parser.
    Malformed,
    /// A number literal.
    Number(NumberLiteral),
    /// A string literal, its escapes resolved.
    String(Arc<str>),
    /// `true` or `false`.
    Bool(bool),
    /// `...`, the default value of the type that the context asks for.
    Dots,
    /// `{#}`, an invalid header or header union.
    Invalid,
    /// `this`, inside the methods of an instantiation.
    This,
    /// A name that does not stand for a type.
    Name(Path),
    /// A type as the base of [`ExprKind::Member`]: `E` in `E.a`, `error` in
    /// `error.NoError`, `C<bit<8>>` in `C<bit<8>>.apply(…)`. Nowhere else.
    Type(Box<Type>),
    /// `base.member`.
    Member {
        /// Expression that has the member.
        base: Box<Expr>,
        /// The member.
        member: Ident,
    },
    /// `base[index]`.
    Index {
        /// The stack, tuple or list.
        base: Box<Expr>,
        /// Index of the element.
        index: Box<Expr>,
    },
    /// `base[high:low]`.
    Slice {
        /// Sliced expression.
        base: Box<Expr>,
        /// The highest bit, counted from 0.
        high: Box<Expr>,
        /// The lowest bit.
        low: Box<Expr>,
    },
    /// `base[low+:width]`, a slice whose place is computed.
    PlusSlice {
        /// Sliced expression.
        base: Box<Expr>,
        /// The lowest bit, counted from 0.
        low: Box<Expr>,
        /// Number of bits.
        width: Box<Expr>,
    },
    /// `op operand`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `left op right`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Position of the operator.
        op_span: Span,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `condition ? then : otherwise`.
    Conditional {
        /// The condition.
        condition: Box<Expr>,
        /// The value if it holds.
        then: Box<Expr>,
        /// The value if it does not.
        otherwise: Box<Expr>,
    },
    /// `(ty) operand`.
    Cast {
        /// The type wanted.
        ty: Box<Type>,
        /// Expression that is cast.
        operand: Box<Expr>,
    },
    /// `callee<type_args>(args)`.
    Call {
        /// A function, action, method, or `x.apply`.
        callee: Box<Expr>,
        /// The type arguments; empty where none are written.
        type_args: Vec<Type>,
        /// The arguments in order of writing.
        args: Vec<Argument>,
    },
    /// `ty(args)`, an instance without a name.
    Construct {
        /// The type of the instance: [`TypeKind::Named`](super::TypeKind::Named) or
        /// [`TypeKind::Specialized`](super::TypeKind::Specialized).
        ty: Box<Type>,
        /// The constructor's arguments in order of writing.
        args: Vec<Argument>,
    },
    /// `{a, b}`; also `{}` and, with [`ExprKind::Dots`] as its last element, `{a, ...}`.
    List(Vec<Expr>),
    /// `{a = x, b = y}`, or with `...` at the end the default for the fields not named.
    Struct {
        /// The fields in order of writing; never empty.
        fields: Vec<NamedExpr>,
        /// Position of the final `...`, if there is one.
        rest: Option<Span>,
    },
}

/// A number literal such as `10`, `8w0xFF` or `4s7` (specification section 6.4.3.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberLiteral {
    /// The value as written, never negative, and not cut to the width: a value that does
    /// not fit is for the type checker to judge.
    pub value: BigInt,
    /// The width prefix, `None` for a literal of type `int`.
    pub width: Option<LiteralWidth>,
    /// The base as written: 2, 8, 10 or 16.
    pub base: u32,
}

/// The prefix of a number literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LiteralWidth {
    /// Width in bits. The parser refuses widths above
    /// [`MAX_LITERAL_WIDTH`](crate::MAX_LITERAL_WIDTH); 0 is left to the checker.
    pub bits: u32,
    /// True if the prefix is `s` (type `int<bits>`) and not `w` (type `bit<bits>`).
    pub signed: bool,
}

/// `name = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedExpr {
    /// The name.
    pub name: Ident,
    /// The value.
    pub value: Expr,
    /// The whole pair.
    pub span: Span,
}

/// An argument of a call or construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The parameter it is for, where that is written: `name = value`.
    pub name: Option<Ident>,
    /// The value; `None` for `_`, which stands for an `out` argument that is not wanted.
    pub value: Option<Expr>,
    /// The whole argument.
    pub span: Span,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`.
    Not,
    /// `~`.
    Complement,
    /// `-`.
    Negate,
    /// `+`.
    Plus,
}

impl UnaryOp {
    /// The operator as written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Not => "!",
            Self::Complement => "~",
            Self::Negate => "-",
            Self::Plus => "+",
        }
    }
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `%`.
    Mod,
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `|+|`, saturating.
    AddSat,
    /// `|-|`, saturating.
    SubSat,
    /// `++`, concatenation.
    Concat,
    /// `<<`.
    Shl,
    /// `>>`.
    Shr,
    /// `&`.
    BitAnd,
    /// `^`.
    BitXor,
    /// `|`.
    BitOr,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `&&`.
    And,
    /// `||`.
    Or,
}

impl BinaryOp {
    /// The operator as written.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Add => "+",
            Self::Sub => "-",
            Self::AddSat => "|+|",
            Self::SubSat => "|-|",
            Self::Concat => "++",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::BitAnd => "&",
            Self::BitXor => "^",
            Self::BitOr => "|",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::And => "&&",
            Self::Or => "||",
        }
    }

    /// Precedence of the operator: 1 for `||` to 10 for `*`. All associate to the left
    /// (specification appendix G).
    #[must_use]
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal | Self::NotEqual => 3,
            Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 4,
            Self::BitOr => 5,
            Self::BitXor => 6,
            Self::BitAnd => 7,
            Self::Shl | Self::Shr => 8,
            Self::Add | Self::Sub | Self::AddSat | Self::SubSat | Self::Concat => 9,
            Self::Mul | Self::Div | Self::Mod => 10,
        }
    }
}

/// Keyset of a `select` case or a table entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyset {
    /// One element for each selected or key expression, in order; or one
    /// [`KeysetElementKind::Default`] or [`KeysetElementKind::DontCare`] that stands for all.
    pub elements: Vec<KeysetElement>,
    /// True if the elements are written in parentheses.
    pub is_tuple: bool,
    /// The whole set.
    pub span: Span,
}

/// One element of a [`Keyset`].
#[derive(Clone, Debug, PartialEq)]
pub struct KeysetElement {
    /// Matched values.
    pub kind: KeysetElementKind,
    /// Position of the element.
    pub span: Span,
}

/// The forms of keyset elements (specification section 12.11).
#[derive(Clone, Debug, PartialEq)]
pub enum KeysetElementKind {
    /// The value of an expression, or the members of a value set.
    Value(Expr),
    /// `value &&& mask`.
    Mask {
        /// The bits to be compared with.
        value: Expr,
        /// Bits that are compared.
        mask: Expr,
    },
    /// `low .. high`, both included.
    Range {
        /// The lowest value.
        low: Expr,
        /// The highest value.
        high: Expr,
    },
    /// `default`.
    Default,
    /// `_`.
    DontCare,
}
