//! Expressions of generated programs, with their types.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, Zero};
use std::fmt;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// `bit<W>`.
    Bits(u32),
    /// `int<W>`.
    Int(u32),
    /// `bool`.
    Bool,
    /// `error`.
    Error,
    /// The enum of this number, `e0_t`, …
    Enum(usize),
    /// The enum of this number with an underlying `bit<W>`, `s0_t`, …
    Serial(usize, u32),
}

impl Ty {
    /// Bits of a value in a header; `None` for types that headers do not have.
    pub fn width(self) -> Option<u32> {
        match self {
            Ty::Bits(width) | Ty::Int(width) | Ty::Serial(_, width) => Some(width),
            Ty::Bool => Some(1),
            Ty::Error | Ty::Enum(_) => None,
        }
    }

    /// The value that a number of enough bits stands for: modulo 2^W, in two's
    /// complement for `int<W>`.
    pub fn wrap(self, value: &BigInt) -> BigInt {
        let Some(width) = self.width() else {
            return value.clone();
        };
        let modulus = BigInt::one() << width;
        let mut rest = value % &modulus;
        if rest.is_negative() {
            rest += &modulus;
        }
        if matches!(self, Ty::Int(_)) && rest >= (BigInt::one() << (width - 1)) {
            rest -= modulus;
        }
        rest
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Bits(width) => write!(f, "bit<{width}>"),
            Ty::Int(width) => write!(f, "int<{width}>"),
            Ty::Bool => f.write_str("bool"),
            Ty::Error => f.write_str("error"),
            Ty::Enum(number) => write!(f, "e{number}_t"),
            Ty::Serial(number, _) => write!(f, "s{number}_t"),
        }
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `!`.
    Not,
    /// `~`.
    Complement,
    /// `-`.
    Negate,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as their signs are read")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    AddSat,
    SubSat,
    And,
    Or,
    Xor,
    Div,
    Mod,
    Shl,
    Shr,
    Concat,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Both,
    Either,
}

impl Binary {
    /// The sign.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::AddSat => "|+|",
            Binary::SubSat => "|-|",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::Div => "/",
            Binary::Mod => "%",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Concat => "++",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Both => "&&",
            Binary::Either => "||",
        }
    }
}

/// An expression. It prints as P4, with parentheses around each operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number or truth value, as `bit<W>`, `int<W>` or `bool` have it. A plain one
    /// is written without a width, where the other operand gives the type.
    Const {
        /// Its type.
        ty: Ty,
        /// The value; 0 and 1 of `bool`.
        value: BigInt,
        /// True if it is written without a width.
        plain: bool,
    },
    /// Any other expression with a value, as source text.
    Name {
        /// Its type.
        ty: Ty,
        /// The text.
        text: String,
    },
    /// An operation.
    Unary(Unary, Box<Expr>),
    /// An operation.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// A conversion.
    Cast(Ty, Box<Expr>),
    /// Bits from `.1` down to `.2`.
    Slice(Box<Expr>, u32, u32),
    /// `condition ? then : otherwise`.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// A number.
    pub fn number(ty: Ty, bits: &BigUint) -> Expr {
        Expr::Const {
            ty,
            value: ty.wrap(&BigInt::from_biguint(Sign::Plus, bits.clone())),
            plain: false,
        }
    }

    /// Expression from source text.
    pub fn name(ty: Ty, text: impl Into<String>) -> Expr {
        Expr::Name {
            ty,
            text: text.into(),
        }
    }

    /// Its type.
    pub fn ty(&self) -> Ty {
        match self {
            Expr::Const { ty, .. } | Expr::Name { ty, .. } | Expr::Cast(ty, _) => *ty,
            Expr::Unary(_, operand) => operand.ty(),
            Expr::Binary(op, left, right) => match op {
                Binary::Concat => {
                    Ty::Bits(left.ty().width().unwrap_or(0) + right.ty().width().unwrap_or(0))
                }
                Binary::Eq
                | Binary::Ne
                | Binary::Lt
                | Binary::Le
                | Binary::Gt
                | Binary::Ge
                | Binary::Both
                | Binary::Either => Ty::Bool,
                _ => left.ty(),
            },
            Expr::Slice(_, high, low) => Ty::Bits(high - low + 1),
            Expr::Choose(_, then, _) => then.ty(),
        }
    }

    /// Calls `with` on each constant that is written with its type.
    pub fn for_each_constant(&mut self, with: &mut impl FnMut(&mut Expr)) {
        match self {
            Expr::Const { plain: false, .. } => with(self),
            Expr::Const { .. } | Expr::Name { .. } => {}
            Expr::Unary(_, operand) | Expr::Cast(_, operand) | Expr::Slice(operand, ..) => {
                operand.for_each_constant(with);
            }
            Expr::Binary(_, left, right) => {
                left.for_each_constant(with);
                right.for_each_constant(with);
            }
            Expr::Choose(condition, then, otherwise) => {
                condition.for_each_constant(with);
                then.for_each_constant(with);
                otherwise.for_each_constant(with);
            }
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Const {
                ty: Ty::Bool,
                value,
                ..
            } => write!(f, "{}", !value.is_zero()),
            Expr::Const {
                value, plain: true, ..
            } if value.is_negative() => write!(f, "({value})"),
            Expr::Const {
                value, plain: true, ..
            } => write!(f, "{value}"),
            Expr::Const { ty, value, .. } => {
                let width = ty.width().unwrap_or(0);
                if value.is_negative() {
                    let bits = Ty::Bits(width).wrap(value);
                    write!(f, "((int<{width}>){width}w{bits:#x})")
                } else if matches!(ty, Ty::Int(_)) {
                    write!(f, "{width}s{value}")
                } else {
                    write!(f, "{width}w{value:#x}")
                }
            }
            Expr::Name { text, .. } => f.write_str(text),
            Expr::Unary(op, operand) => {
                let sign = match op {
                    Unary::Not => "!",
                    Unary::Complement => "~",
                    Unary::Negate => "-",
                };
                write!(f, "({sign}{operand})")
            }
            Expr::Binary(op, left, right) => write!(f, "({left} {} {right})", op.sign()),
            Expr::Cast(ty, operand) => write!(f, "(({ty}){operand})"),
            Expr::Slice(operand, high, low) => match **operand {
                // A slice is written behind a name or behind parentheses.
                Expr::Const { .. } => write!(f, "({operand})[{high}:{low}]"),
                _ => write!(f, "{operand}[{high}:{low}]"),
            },
            Expr::Choose(condition, then, otherwise) => {
                write!(f, "({condition} ? {then} : {otherwise})")
            }
        }
    }
}
