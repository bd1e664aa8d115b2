//! Types, places and expressions.

use super::Printer;
use crate::print::expr::number;
use crate::{Const, Expr, ExprKind, Place, Projection, StackId, StructId, Type, UnaryOp};
use num_bigint::BigInt;
use std::fmt::Write as _;

impl Printer<'_> {
    pub(super) fn ty(&self, ty: Type) -> String {
        let named = |id: StructId| self.program.structs[id.index()].name.clone();
        match ty {
            Type::Bool => "bool".to_owned(),
            Type::Bits(width) => format!("bit<{width}>"),
            Type::Int(width) => format!("int<{width}>"),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::Error => "error".to_owned(),
            Type::Enum(id) => self.program.enums[id.index()].name.clone(),
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => named(id),
            Type::Stack(id) => self.stack(id),
        }
    }

    fn stack(&self, id: StackId) -> String {
        let def = &self.program.stacks[id.index()];
        format!("{}[{}]", self.ty(def.element), def.size)
    }

    /// The members that a path names, joined by dots.
    pub(super) fn field_path(&self, from: Type, path: &[u32]) -> String {
        let mut ty = from;
        let mut names = Vec::new();
        for &step in path {
            names.push(self.member(ty, step));
            let step = Projection::Field(step);
            ty = self.program.step_type(ty, &step).unwrap_or(ty);
        }
        names.join(".")
    }

    fn member(&self, ty: Type, field: u32) -> &str {
        match ty {
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                &self.program.structs[id.index()].fields[field as usize].name
            }
            _ => "?",
        }
    }

    pub(super) fn place(&self, place: &Place) -> String {
        let var = &self.program.vars[place.var.index()];
        let mut text = var.name.clone();
        let mut ty = var.ty;
        for step in &place.path {
            // Writing to a string does not fail.
            let _ = match step {
                Projection::Field(field) => write!(text, ".{}", self.member(ty, *field)),
                Projection::Index(index) => write!(text, "[{}]", self.expr(index)),
                Projection::Next => write!(text, ".next"),
                Projection::Last => write!(text, ".last"),
                Projection::Slice { hi, lo } => write!(text, "[{hi}:{lo}]"),
            };
            ty = self.program.step_type(ty, step).unwrap_or(ty);
        }
        text
    }

    pub(super) fn exprs(&self, exprs: &[Expr]) -> String {
        let texts: Vec<String> = exprs.iter().map(|expr| self.expr(expr)).collect();
        texts.join(", ")
    }

    /// An expression that something stands before or behind.
    fn operand(&self, expr: &Expr) -> String {
        match expr.kind {
            ExprKind::Binary(..) | ExprKind::Mux { .. } | ExprKind::Cast(_) => {
                format!("({})", self.expr(expr))
            }
            _ => self.expr(expr),
        }
    }

    pub(super) fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Const(value) => self.constant(value, expr.ty),
            ExprKind::Read(place) => self.place(place),
            ExprKind::Unary(op, operand) => {
                let sign = match op {
                    UnaryOp::Not => "!",
                    UnaryOp::Complement => "~",
                    UnaryOp::Negate => "-",
                };
                format!("{sign}{}", self.operand(operand))
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.operand(left), self.operand(right));
                format!("{left} {} {right}", op.sign())
            }
            ExprKind::Cast(operand) => format!("({}){}", self.ty(expr.ty), self.operand(operand)),
            ExprKind::Slice { value, hi, lo } => format!("{}[{hi}:{lo}]", self.operand(value)),
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => format!(
                "{} ? {} : {}",
                self.operand(condition),
                self.operand(then),
                self.operand(otherwise)
            ),
            ExprKind::Record(members) => {
                format!("({}){{ {} }}", self.ty(expr.ty), self.exprs(members))
            }
            ExprKind::Array(elements) => {
                format!("({}){{ {} }}", self.ty(expr.ty), self.exprs(elements))
            }
            ExprKind::Default => format!("({}){{ ... }}", self.ty(expr.ty)),
            ExprKind::IsValid(place) => format!("{}.isValid()", self.place(place)),
            ExprKind::LastIndex(place) => format!("{}.lastIndex", self.place(place)),
        }
    }

    /// A constant with its width, as P4 has it.
    pub(super) fn constant(&self, value: &Const, ty: Type) -> String {
        let bits = match value {
            Const::Bool(value) => return value.to_string(),
            Const::Bits(bits) => bits,
        };
        let position = usize::try_from(bits).unwrap_or(usize::MAX);
        match ty {
            Type::Bits(width) => format!("{width}w{}", number(bits)),
            Type::Int(width) if width > 0 && bits.bits() == u64::from(width) => {
                let negative = (BigInt::from(1) << width) - BigInt::from(bits.clone());
                format!("-{width}s{negative}")
            }
            Type::Int(width) => format!("{width}s{bits}"),
            Type::Error => match self.program.errors.get(position) {
                Some(name) => format!("error.{name}"),
                None => bits.to_string(),
            },
            Type::Enum(id) => {
                let def = &self.program.enums[id.index()];
                match def.members.get(position) {
                    Some(member) => format!("{}.{member}", def.name),
                    None => bits.to_string(),
                }
            }
            _ => number(bits),
        }
    }
}
