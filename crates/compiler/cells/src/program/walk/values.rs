//! Values of expressions, and of places.

use stateplane_ir::{Const, Expr, ExprKind, Place, Projection, Type};

use super::super::store::{Address, path_of};
use super::super::value::Value;
use super::Walk;
use crate::symbols::Symbol;

impl Walk<'_> {
    pub(super) fn assign(&mut self, place: &Place, value: Value) {
        let (at, whole) = path_of(place);
        if whole {
            return self.store.set(at, value);
        }
        // A part of it changes, and nobody knows which: it depends on both.
        let before = self.look(&at);
        let symbol = self.symbols.unknown();
        let sum = Value { symbol, ..before }.with(&value);
        self.store.set(at, sum);
    }

    /// The value at a place with its parts.
    pub(super) fn read(&mut self, place: &Place) -> Value {
        let (at, whole) = path_of(place);
        let base = self.look(&at);
        let parts: Vec<Value> = self.store.within(&at).map(|(_, it)| it.clone()).collect();
        let mut symbol = base.symbol;
        if !parts.is_empty() {
            let mut operands = vec![base.symbol];
            operands.extend(parts.iter().map(|part| part.symbol));
            symbol = self.symbols.operation("parts", operands);
        }
        let sum = parts.iter().fold(base, |sum, part| sum.with(part));
        let mut sum = Value { symbol, ..sum };
        if !whole {
            for step in &place.path[at.1.len()..] {
                let (name, index) = match step {
                    Projection::Field(field) => (format!("field {field}"), None),
                    Projection::Index(index) => ("element".to_owned(), Some(self.value(index))),
                    Projection::Next => ("next".to_owned(), None),
                    Projection::Last => ("last".to_owned(), None),
                    Projection::Slice { hi, lo } => (format!("slice {hi}:{lo}"), None),
                };
                let mut operands = vec![sum.symbol];
                operands.extend(index.as_ref().map(|index| index.symbol));
                let symbol = self.symbols.operation(name, operands);
                sum = Value { symbol, ..sum };
                if let Some(index) = index {
                    sum = sum.with(&index);
                }
            }
        }
        sum
    }

    /// The value of a place as far as it was set as a whole.
    pub(super) fn look(&mut self, at: &Address) -> Value {
        if let Some(value) = self.store.exact(at) {
            return value.clone();
        }
        let (var, path) = at;
        let near = (0..path.len()).rev().find_map(|length| {
            let value = self.store.exact(&(*var, path[..length].to_vec()))?;
            Some((length, value.clone()))
        });
        match near {
            Some((length, value)) => self.part(value, at, length),
            None => {
                let name = last_part(&self.program.vars[var.index()].name).to_owned();
                let name = name + &self.members(at, 0);
                Value::of(self.symbols.input(name))
            }
        }
    }

    /// The part at `at` of the value of its first `length` members.
    pub(super) fn part(&mut self, value: Value, at: &Address, length: usize) -> Value {
        // All of a cleared variable is zero.
        if at.1.len() == length || value.symbol == self.symbols.input("0") {
            return value;
        }
        let members = self.members(at, length);
        let symbol = match self.symbols.name(value.symbol) {
            Some(name) => {
                let name = format!("{name}{members}");
                self.symbols.input(name)
            }
            None => self.symbols.operation(members, vec![value.symbol]),
        };
        Value { symbol, ..value }
    }

    /// Names of the members of a place behind the first `length`, each behind a dot.
    fn members(&self, (var, path): &Address, length: usize) -> String {
        let mut names = String::new();
        let mut ty = Some(self.program.vars[var.index()].ty);
        for (at, field) in path.iter().enumerate() {
            let known = match ty {
                Some(Type::Struct(id) | Type::Header(id) | Type::Union(id)) => {
                    self.program.structs[id.index()].fields.get(*field as usize)
                }
                _ => None,
            };
            if at >= length {
                names.push('.');
                names.push_str(known.map_or("isValid()", |known| &known.name));
            }
            ty = known.map(|known| known.ty);
        }
        names
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Const(constant) => {
                let text = match constant {
                    Const::Bool(value) => u8::from(*value).to_string(),
                    Const::Bits(bits) => bits.to_string(),
                };
                Value::of(self.symbols.input(text))
            }
            ExprKind::Default => self.zero(),
            ExprKind::Read(place) => self.read(place),
            ExprKind::IsValid(place) => {
                let (at, _) = path_of(place);
                self.look(&validity(at))
            }
            ExprKind::LastIndex(place) => {
                let value = self.read(place);
                self.made("lastIndex", 0, vec![value])
            }
            ExprKind::Unary(op, value) => {
                let value = self.value(value);
                let cycles = self.profile.unary(*op);
                self.made(&format!("{op:?}").to_lowercase(), cycles, vec![value])
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(left), self.value(right));
                let fixed = self.symbols.is_constant(right.symbol);
                let cycles = self.profile.binary(*op, fixed);
                self.made(op.sign(), cycles, vec![left, right])
            }
            ExprKind::Cast(value) => {
                let value = self.value(value);
                let width = expr.ty.scalar_width().unwrap_or(0);
                if self.symbols.is_constant(value.symbol) {
                    value
                } else {
                    self.made(&format!("bit<{width}>"), 0, vec![value])
                }
            }
            ExprKind::Slice { value, hi, lo } => {
                let value = self.value(value);
                self.made(&format!("slice {hi}:{lo}"), 0, vec![value])
            }
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.value(condition);
                let values = [self.value(then), self.value(otherwise)];
                self.select(&values, &condition)
            }
            ExprKind::Record(parts) | ExprKind::Array(parts) => {
                let parts = parts.iter().map(|part| self.value(part)).collect();
                self.made("record", 0, parts)
            }
        }
    }

    pub(super) fn select(&mut self, values: &[Value], condition: &Value) -> Value {
        let first = &values[0];
        let same =
            |value: &Value| value.symbol == first.symbol && value.registers == first.registers;
        if values.iter().all(same) {
            return values
                .iter()
                .fold(first.clone(), |sum, value| sum.with(value));
        }
        let mut operands = vec![condition.symbol];
        operands.extend(values.iter().map(|value| value.symbol));
        let symbol = self.symbols.operation("?:", operands);
        let sum = values
            .iter()
            .fold(condition.clone(), |sum, value| sum.with(value));
        let sum = Value { symbol, ..sum };
        sum.after("select", self.profile.select, &self.place)
    }

    /// The value of an operation.
    pub(super) fn made(&mut self, operation: &str, cycles: u32, operands: Vec<Value>) -> Value {
        let symbols: Vec<Symbol> = operands.iter().map(|operand| operand.symbol).collect();
        let symbol = self.symbols.operation(operation, symbols);
        operands
            .iter()
            .fold(Value::of(symbol), |sum, operand| sum.with(operand))
            .after(operation, cycles, &self.place)
    }
}

/// Place of the note of a header's validity: behind its fields.
pub(super) fn validity((var, mut path): Address) -> Address {
    path.push(u32::MAX);
    (var, path)
}

pub(super) fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
