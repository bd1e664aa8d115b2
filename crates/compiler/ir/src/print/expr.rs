//! Text of types, places and expressions.

use super::{Printer, names};
use crate::{Const, Expr, ExprKind, Place, Projection, StackId, StructId, Type, UnaryOp, VarId};
use num_bigint::{BigInt, BigUint};
use std::fmt::Write;

impl Printer<'_> {
    pub(super) fn ty(&self, ty: Type) -> String {
        let named =
            |word: &str, id: StructId| format!("{word} {}", self.names.structs.of(id.index()));
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Bits(width) => format!("bit<{width}>"),
            Type::Int(width) => format!("int<{width}>"),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::Error => "error".to_owned(),
            Type::Enum(id) => format!("enum {}", self.names.enums.of(id.index())),
            Type::Struct(id) => named("struct", id),
            Type::Header(id) => named("header", id),
            Type::Union(id) => named("header_union", id),
            Type::Stack(id) => self.stack(id),
        }
    }

    /// A stack by its definition; by its position where that does not tell it from others,
    /// or is no definition (a stack of stacks, which could be a cycle).
    fn stack(&self, id: StackId) -> String {
        let stacks = &self.program.stacks;
        match stacks.get(id.index()) {
            Some(def)
                if !matches!(def.element, Type::Stack(_))
                    && stacks.iter().filter(|other| *other == def).count() == 1 =>
            {
                format!("{}[{}]", self.ty(def.element), def.size)
            }
            Some(_) => format!("stack {}", id.0),
            None => format!("stack ?{}", id.0),
        }
    }

    pub(super) fn var(&self, var: VarId) -> String {
        self.names.vars.of(var.index())
    }

    pub(super) fn var_type(&self, var: VarId) -> Option<Type> {
        self.program.vars.get(var.index()).map(|var| var.ty)
    }

    /// Name and type of a member.
    fn field(&self, of: Option<Type>, field: u32) -> (String, Option<Type>) {
        let Some(Type::Struct(id) | Type::Header(id) | Type::Union(id)) = of else {
            return (format!("?{field}"), None);
        };
        let (field, id) = (field as usize, id.index());
        let def = self.program.structs.get(id);
        match def.and_then(|def| def.fields.get(field)) {
            Some(def) => (self.names.fields[id].of(field), Some(def.ty)),
            None => (format!("?{field}"), None),
        }
    }

    /// A path of members, joined by dots; a dot alone if it has none.
    pub(super) fn field_path(&self, from: Type, path: &[u32]) -> String {
        let mut ty = Some(from);
        let mut names = Vec::with_capacity(path.len());
        for &step in path {
            let (name, next) = self.field(ty, step);
            names.push(name);
            ty = next;
        }
        if names.is_empty() {
            ".".to_owned()
        } else {
            names.join(".")
        }
    }

    pub(super) fn place(&self, place: &Place) -> String {
        let mut text = self.var(place.var);
        let mut ty = self.var_type(place.var);
        for step in &place.path {
            let element = match ty {
                Some(Type::Stack(id)) => self.program.stacks.get(id.index()).map(|def| def.element),
                _ => None,
            };
            // Writing to a string does not fail.
            let _ = match step {
                Projection::Field(field) => {
                    let (name, next) = self.field(ty, *field);
                    ty = next;
                    write!(text, ".{name}")
                }
                Projection::Index(index) => {
                    ty = element;
                    write!(text, "[{}]", self.expr(index))
                }
                Projection::Next => {
                    ty = element;
                    write!(text, ".next")
                }
                Projection::Last => {
                    ty = element;
                    write!(text, ".last")
                }
                Projection::Slice { hi, lo } => {
                    ty = None;
                    write!(text, "[{hi}:{lo}]")
                }
            };
        }
        text
    }

    pub(super) fn exprs(&self, exprs: &[Expr]) -> String {
        let texts: Vec<String> = exprs.iter().map(|expr| self.expr(expr)).collect();
        texts.join(", ")
    }

    pub(super) fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Const(value) => self.constant(value, Some(expr.ty)),
            ExprKind::Read(place) => self.place(place),
            ExprKind::Unary(op, operand) => {
                let sign = match op {
                    UnaryOp::Not => "!",
                    UnaryOp::Complement => "~",
                    UnaryOp::Negate => "-",
                };
                format!("{sign}({})", self.expr(operand))
            }
            ExprKind::Binary(op, left, right) => {
                format!("({} {} {})", self.expr(left), op.sign(), self.expr(right))
            }
            ExprKind::Cast(operand) => format!("({})({})", self.ty(expr.ty), self.expr(operand)),
            ExprKind::Slice { value, hi, lo } => format!("({})[{hi}:{lo}]", self.expr(value)),
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => format!(
                "({} ? {} : {})",
                self.expr(condition),
                self.expr(then),
                self.expr(otherwise)
            ),
            ExprKind::Record(members) => {
                format!("{} {{{}}}", self.ty(expr.ty), self.exprs(members))
            }
            ExprKind::Array(elements) => format!("{} [{}]", self.ty(expr.ty), self.exprs(elements)),
            ExprKind::Default => format!("default({})", self.ty(expr.ty)),
            ExprKind::IsValid(place) => format!("{}.isValid()", self.place(place)),
            ExprKind::LastIndex(place) => format!("{}.lastIndex", self.place(place)),
        }
    }

    /// A constant of a type; one whose type is unknown or does not suit it is bare.
    pub(super) fn constant(&self, value: &Const, ty: Option<Type>) -> String {
        let bits = match value {
            Const::Bool(value) => return value.to_string(),
            Const::Bits(bits) => bits,
        };
        let member = |names: &[String]| {
            usize::try_from(bits)
                .ok()
                .and_then(|index| names.get(index))
                .map_or_else(|| format!("?{bits}"), |name| names::member(name))
        };
        match ty {
            Some(Type::Bits(width)) => format!("{width}w{}", number(bits)),
            Some(Type::Int(width)) => {
                let negative = width > 0 && bits.bits() == u64::from(width);
                let signed = BigInt::from(bits.clone())
                    - if negative {
                        BigInt::from(1) << width
                    } else {
                        BigInt::ZERO
                    };
                format!("{width}s{signed}")
            }
            Some(Type::Error) => format!("error::{}", member(&self.program.errors)),
            Some(Type::Enum(id)) => format!(
                "{}::{}",
                self.names.enums.of(id.index()),
                match self.program.enums.get(id.index()) {
                    Some(def) => member(&def.members),
                    None => format!("?{bits}"),
                }
            ),
            _ => number(bits),
        }
    }
}

/// A number, hexadecimal from 10 on.
pub(crate) fn number(value: &BigUint) -> String {
    if *value < BigUint::from(10u32) {
        value.to_string()
    } else {
        format!("{value:#x}")
    }
}
