//! Rules 3 and 4: expressions and places.

use super::{Verifier, index_or_scalar_width, is_number};
use crate::{BinaryOp, Expr, ExprKind, Place, Projection, Type, UnaryOp};

impl Verifier<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        self.nested(|this| this.expr_kind(expr));
    }

    /// An expression of a given type.
    pub(super) fn expr_of(&mut self, rule: u8, what: &str, wanted: Type, expr: &Expr) {
        self.expr(expr);
        self.expect_type(rule, what, wanted, expr.ty);
    }

    /// An expression of some `bit` or `int` type.
    pub(super) fn number(&mut self, rule: u8, what: &str, expr: &Expr) {
        self.expr(expr);
        if !is_number(expr.ty) {
            self.fail(rule, format!("{what} is {:?}, no number", expr.ty));
        }
    }

    /// An expression of some scalar type.
    pub(super) fn scalar(&mut self, rule: u8, what: &str, expr: &Expr) {
        self.expr(expr);
        if index_or_scalar_width(expr.ty).is_none() {
            self.fail(rule, format!("{what} is {:?}, no scalar", expr.ty));
        }
    }

    fn expr_kind(&mut self, expr: &Expr) {
        let ty = expr.ty;
        if !self.known(ty) {
            self.fail(1, format!("{ty:?} does not exist"));
            return;
        }
        match &expr.kind {
            ExprKind::Const(value) => self.constant(3, value, ty),
            ExprKind::Read(place) => {
                if let Some(found) = self.place(place) {
                    self.expect_type(3, "a read", ty, found);
                }
            }
            ExprKind::Unary(op, value) => {
                self.expr_of(3, "an operand", ty, value);
                let fits = match op {
                    UnaryOp::Not => ty == Type::Bool,
                    UnaryOp::Complement | UnaryOp::Negate => is_number(ty),
                };
                if !fits {
                    self.fail(3, format!("{op:?} of {ty:?}"));
                }
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, ty),
            ExprKind::Cast(value) => {
                self.expr(value);
                let fits = match (value.ty, ty) {
                    (Type::Bool, target) => target.scalar_width() == Some(1),
                    (source, Type::Bool) => source.scalar_width() == Some(1),
                    (source, target) => is_number(source) && is_number(target),
                };
                if !fits {
                    self.fail(3, format!("a cast from {:?} to {ty:?}", value.ty));
                }
            }
            ExprKind::Slice { value, hi, lo } => {
                self.number(3, "a sliced value", value);
                let width = value.ty.scalar_width().unwrap_or(0);
                if lo > hi || *hi >= width {
                    self.fail(3, format!("[{hi}:{lo}] of {width} bits"));
                } else {
                    self.expect_type(3, "a slice", Type::Bits(hi - lo + 1), ty);
                }
            }
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                self.expr_of(3, "a condition", Type::Bool, condition);
                self.expr_of(3, "a choice", ty, then);
                self.expr_of(3, "a choice", ty, otherwise);
            }
            ExprKind::Record(members) => {
                let (Type::Struct(id) | Type::Header(id)) = ty else {
                    self.fail(3, format!("a record of type {ty:?}"));
                    return;
                };
                let fields = &self.program.structs[id.index()].fields;
                if fields.len() != members.len() {
                    self.fail(3, "a record with another number of members");
                }
                for (field, member) in fields.iter().zip(members) {
                    self.expr_of(3, "a member", field.ty, member);
                }
            }
            ExprKind::Array(elements) => {
                let Type::Stack(id) = ty else {
                    self.fail(3, format!("an array of type {ty:?}"));
                    return;
                };
                let def = &self.program.stacks[id.index()];
                if def.size as usize != elements.len() {
                    self.fail(3, "an array with another number of elements");
                }
                for element in elements {
                    self.expr_of(3, "an element", def.element, element);
                }
            }
            ExprKind::Default => {}
            ExprKind::IsValid(place) => {
                self.expect_type(3, "isValid", Type::Bool, ty);
                if let Some(found) = self.place(place)
                    && !matches!(found, Type::Header(_) | Type::Union(_))
                {
                    self.fail(3, format!("isValid of {found:?}"));
                }
            }
            ExprKind::LastIndex(place) => {
                self.expect_type(3, "lastIndex", Type::Bits(32), ty);
                if let Some(found) = self.place(place)
                    && !matches!(found, Type::Stack(_))
                {
                    self.fail(3, format!("lastIndex of {found:?}"));
                }
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, ty: Type) {
        self.expr(left);
        self.expr(right);
        let same = left.ty == right.ty;
        let fits = match op {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Mod
            | BinaryOp::AddSat
            | BinaryOp::SubSat
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor => same && is_number(left.ty) && ty == left.ty,
            BinaryOp::Shl | BinaryOp::Shr => {
                is_number(left.ty) && ty == left.ty && matches!(right.ty, Type::Bits(_))
            }
            BinaryOp::Concat => {
                is_number(left.ty) && is_number(right.ty) && ty == op.result_type(left.ty, right.ty)
            }
            BinaryOp::Eq | BinaryOp::Ne => same && ty == Type::Bool,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                same && is_number(left.ty) && ty == Type::Bool
            }
            BinaryOp::LogicalAnd | BinaryOp::LogicalOr => {
                same && left.ty == Type::Bool && ty == Type::Bool
            }
        };
        if !fits {
            self.fail(
                3,
                format!("{op:?} of {:?} and {:?} gives {ty:?}", left.ty, right.ty),
            );
        }
    }

    fn known(&self, ty: Type) -> bool {
        match ty {
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                id.index() < self.program.structs.len()
            }
            Type::Stack(id) => id.index() < self.program.stacks.len(),
            Type::Enum(id) => id.index() < self.program.enums.len(),
            Type::Bits(width) => width <= super::MAX_WIDTH,
            Type::Varbit(width) => width <= super::MAX_VARBIT_WIDTH,
            Type::Int(width) => (1..=super::MAX_WIDTH).contains(&width),
            Type::Bool | Type::Error => true,
        }
    }

    /// Checks a place and gives its type, if it has one.
    pub(super) fn place(&mut self, place: &Place) -> Option<Type> {
        let mut ty = self.var_type(place.var)?;
        for (index, step) in place.path.iter().enumerate() {
            match step {
                Projection::Index(value) => {
                    self.expr(value);
                    if !matches!(value.ty, Type::Bits(_)) {
                        self.fail(4, format!("an index is {:?}", value.ty));
                    }
                }
                Projection::Slice { .. } if index + 1 != place.path.len() => {
                    self.fail(4, "a slice is not the last step");
                }
                _ => {}
            }
            match self.program.step_type(ty, step) {
                Some(next) => ty = next,
                None => {
                    self.fail(4, format!("{ty:?} has no {step:?}"));
                    return None;
                }
            }
        }
        Some(ty)
    }
}
