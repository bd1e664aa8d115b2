//! Values of expressions, and places that get them.

use super::Run;
use crate::locks::leaves::Leaf;
use crate::locks::state::UNTOUCHED;
use crate::symbols::{Node, Symbol};
use stateplane_ir::{BinaryOp, Const, Expr, ExprKind, Place, Type, UnaryOp};

impl Run<'_> {
    /// The symbol of an operation. A choice between equal values is none.
    pub(super) fn operation(&mut self, name: &str, operands: Vec<Symbol>) -> Symbol {
        match operands[..] {
            [_, one, two] if name == "?:" && one == two => one,
            _ => self.symbols.operation(name, operands),
        }
    }

    /// A leaf's value, of which a state has `value`.
    pub(super) fn leaf_in(&mut self, value: Symbol, leaf: Leaf) -> Symbol {
        if value != UNTOUCHED {
            return value;
        }
        let name = self.leaves.name(leaf);
        self.symbols.make(Node::Named(leaf as u32, name))
    }

    fn get(&mut self, leaf: Leaf) -> Symbol {
        let value = self.leaf_in(self.state.leaves[leaf], leaf);
        self.state.leaves[leaf] = value;
        value
    }

    fn number(&mut self, ty: Type, text: &str) -> Symbol {
        self.symbols.make(Node::Constant(ty, text.to_owned()))
    }

    /// The default value of a type.
    pub(super) fn zeros(&mut self, ty: Type) -> Vec<Symbol> {
        let types = self.leaves.types(ty);
        types.into_iter().map(|ty| self.number(ty, "0")).collect()
    }

    /// Values of which nothing is known.
    pub(super) fn unknown(&mut self, ty: Type, name: &str) -> Vec<Symbol> {
        (0..self.leaves.of(ty)).map(|_| self.fresh(name)).collect()
    }

    pub(super) fn read(&mut self, place: &Place) -> Vec<Symbol> {
        let spot = self.leaves.spot(place);
        if !spot.exact {
            let ty = self.program.place_type(place).unwrap_or(spot.ty);
            return self.unknown(ty, "?");
        }
        if let Some((hi, lo)) = spot.slice {
            let whole = self.get(spot.leaves.start);
            return vec![self.operation(&format!("slice {hi}:{lo}"), vec![whole])];
        }
        spot.leaves.map(|leaf| self.get(leaf)).collect()
    }

    pub(super) fn write(&mut self, place: &Place, values: Vec<Symbol>) {
        let spot = self.leaves.spot(place);
        let fits = spot.slice.is_some() || values.len() == spot.leaves.len();
        if let Some(union) = spot.union {
            self.forget(union);
        }
        if !spot.exact || !fits {
            return self.forget(spot.leaves);
        }
        if let Some((hi, lo)) = spot.slice {
            let before = self.get(spot.leaves.start);
            let name = format!("with {hi}:{lo}");
            let after = self.operation(&name, [vec![before], values].concat());
            return self.set(spot.leaves.start, after);
        }
        for (leaf, value) in spot.leaves.zip(values) {
            self.set(leaf, value);
        }
    }

    /// The place gets something of which nothing is known.
    pub(super) fn obscure(&mut self, place: &Place, name: &str) {
        let ty = self.program.place_type(place);
        let values = self.unknown(ty.unwrap_or(Type::Bool), name);
        self.write(place, values);
    }

    pub(super) fn set_validity(&mut self, place: &Place, valid: &str) {
        let spot = self.leaves.spot(place);
        if let Some(union) = spot.union {
            return self.forget(union);
        }
        if !spot.exact || !matches!(spot.ty, Type::Header(_)) {
            return self.forget(spot.leaves);
        }
        let valid = self.number(Type::Bool, valid);
        self.set(spot.leaves.start, valid);
    }

    /// The value of an expression without parts.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Symbol {
        let values = self.values(expr);
        match values[..] {
            [value] => value,
            _ => self.fresh("?"),
        }
    }

    /// The values of an expression's leaves.
    pub(super) fn values(&mut self, expr: &Expr) -> Vec<Symbol> {
        let value = match &expr.kind {
            ExprKind::Const(Const::Bool(value)) => {
                self.number(expr.ty, if *value { "1" } else { "0" })
            }
            ExprKind::Const(Const::Bits(bits)) => self.number(expr.ty, &bits.to_string()),
            ExprKind::Default => return self.zeros(expr.ty),
            ExprKind::Read(place) => return self.read(place),
            ExprKind::IsValid(place) => {
                let spot = self.leaves.spot(place);
                match spot.ty {
                    Type::Header(_) if spot.exact => self.get(spot.leaves.start),
                    _ => self.fresh("?"),
                }
            }
            ExprKind::LastIndex(_) => self.fresh("lastIndex"),
            ExprKind::Unary(op, value) => {
                let value = self.scalar(value);
                let name = match op {
                    UnaryOp::Not => "not",
                    UnaryOp::Complement => "complement",
                    UnaryOp::Negate => "negate",
                };
                self.operation(name, vec![value])
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ExprKind::Cast(value) => {
                let value = self.scalar(value);
                self.operation(&type_name(expr.ty), vec![value])
            }
            ExprKind::Slice { value, hi, lo } => {
                let value = self.scalar(value);
                self.operation(&format!("slice {hi}:{lo}"), vec![value])
            }
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.scalar(condition);
                let (then, otherwise) = (self.values(then), self.values(otherwise));
                let pairs = then.into_iter().zip(otherwise);
                let chosen = pairs
                    .map(|(one, two)| self.operation("?:", vec![condition, one, two]))
                    .collect();
                return self.fitting(expr.ty, chosen);
            }
            ExprKind::Record(parts) | ExprKind::Array(parts) => return self.parts(expr.ty, parts),
        };
        vec![value]
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Symbol {
        let operands = [self.values(left), self.values(right)].concat();
        self.operation(op.sign(), operands)
    }

    fn parts(&mut self, ty: Type, parts: &[Expr]) -> Vec<Symbol> {
        let mut values = match ty {
            Type::Header(_) => vec![self.number(Type::Bool, "1")],
            // Which element comes next is not followed.
            Type::Stack(_) => vec![self.fresh("?")],
            _ => Vec::new(),
        };
        for part in parts {
            values.extend(self.values(part));
        }
        self.fitting(ty, values)
    }

    /// `values`, if a value of the type has as many leaves.
    fn fitting(&mut self, ty: Type, values: Vec<Symbol>) -> Vec<Symbol> {
        if values.len() == self.leaves.of(ty) {
            values
        } else {
            self.unknown(ty, "?")
        }
    }
}

/// The type of a cast, on which its value depends.
fn type_name(ty: Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Bits(width) => format!("bit<{width}>"),
        Type::Int(width) => format!("int<{width}>"),
        other => format!("{other:?}"),
    }
}
