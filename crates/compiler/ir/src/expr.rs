//! Expressions: values without side effects.

use crate::{Type, VarId};
use num_bigint::BigUint;

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Operation and operands.
    pub kind: ExprKind,
    /// Type of its value.
    pub ty: Type,
}

/// Operation of an expression, with its operands.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Const(Const),
    /// The value at a place. Reading a field of an invalid header gives the
    /// field's stored bits; reading past the end of a stack gives the default value.
    Read(Place),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr>),
    /// A binary operation.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Conversion between `bool`, `bit<W>`, `int<W>` (spec §8.11); the target is
    /// the expression's type. `int` sources are sign-extended, others zero-extended.
    Cast(Box<Expr>),
    /// Bits `hi..=lo` of a `bit` or `int` value; the type is `bit<hi-lo+1>`.
    Slice {
        /// The value.
        value: Box<Expr>,
        /// Highest bit.
        hi: u32,
        /// Lowest bit.
        lo: u32,
    },
    /// `condition ? then : otherwise`; only the chosen side is evaluated.
    Mux {
        /// A `bool`.
        condition: Box<Expr>,
        /// Value if true.
        then: Box<Expr>,
        /// Value if false.
        otherwise: Box<Expr>,
    },
    /// A struct value, or a *valid* header value, from its members in order.
    Record(Vec<Expr>),
    /// A stack value from its elements; `next_index` is 0.
    Array(Vec<Expr>),
    /// The type's default value: zero, `false`, first member, invalid header.
    Default,
    /// `place.isValid()` of a header or union.
    IsValid(Place),
    /// `stack.lastIndex` as `bit<32>`.
    LastIndex(Place),
}

/// A constant value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Const {
    /// A `bool`.
    Bool(bool),
    /// A `bit<W>`, `int<W>` (two's complement, below 2^W), `error` or enum index.
    Bits(BigUint),
}

/// Unary operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!` on `bool`.
    Not,
    /// `~` on bits.
    Complement,
    /// `-`, modulo 2^W.
    Negate,
}

/// Binary operations. Operands of arithmetic and comparison have one type; shift
/// amounts are unsigned of any width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+` modulo 2^W.
    Add,
    /// `-` modulo 2^W.
    Sub,
    /// `*` modulo 2^W.
    Mul,
    /// `/`, unsigned; division by zero gives 0.
    Div,
    /// `%`, unsigned; modulo zero gives 0.
    Mod,
    /// `|+|` saturating.
    AddSat,
    /// `|-|` saturating.
    SubSat,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `<<`; amounts of W or more give 0.
    Shl,
    /// `>>`: logical on `bit`, arithmetic on `int`.
    Shr,
    /// `++`: left operand in the high bits, and its signedness (spec §8.8).
    Concat,
    /// `==` on scalars, structs, headers (both invalid, or both valid with equal
    /// fields) and stacks.
    Eq,
    /// `!=`, the negation of [`BinaryOp::Eq`].
    Ne,
    /// `<`, signed on `int`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `&&`, evaluates the right side only if the left is true.
    LogicalAnd,
    /// `||`, evaluates the right side only if the left is false.
    LogicalOr,
}

impl BinaryOp {
    /// The operator as P4 writes it: `|+|`.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::AddSat => "|+|",
            BinaryOp::SubSat => "|-|",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Concat => "++",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::LogicalAnd => "&&",
            BinaryOp::LogicalOr => "||",
        }
    }

    /// Type of the operation on operands that suit it.
    pub fn result_type(self, left: Type, right: Type) -> Type {
        match self {
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::LogicalAnd
            | BinaryOp::LogicalOr => Type::Bool,
            BinaryOp::Concat => {
                let width = |ty: Type| ty.scalar_width().unwrap_or(0);
                let sum = width(left).saturating_add(width(right));
                match left {
                    Type::Int(_) => Type::Int(sum),
                    _ => Type::Bits(sum),
                }
            }
            _ => left,
        }
    }
}

/// A readable and writable place: a variable and a path into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The variable.
    pub var: VarId,
    /// Steps from the variable inwards.
    pub path: Vec<Projection>,
}

impl Place {
    /// The whole variable.
    pub fn var(var: VarId) -> Place {
        Place {
            var,
            path: Vec::new(),
        }
    }
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection {
    /// Member of a struct, header or union, by position.
    Field(u32),
    /// Element of a stack, by an unsigned value. A write past the end is ignored.
    Index(Box<Expr>),
    /// `stack.next`; in a parser past the end is error `StackOutOfBounds`.
    Next,
    /// `stack.last`; on an empty stack in a parser `StackOutOfBounds`.
    Last,
    /// Bits `hi..=lo` of a scalar; only as the last step.
    Slice {
        /// Highest bit.
        hi: u32,
        /// Lowest bit.
        lo: u32,
    },
}
