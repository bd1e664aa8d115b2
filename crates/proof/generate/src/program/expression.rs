//! Expressions.

use super::features::Feature;
use super::{Block, Callable, Direction, Maker};
use crate::expr::{Binary, Expr, Ty, Unary};
use num_bigint::{BigInt, BigUint};

/// Maximum width of an expression's intermediate values.
const MAX_WIDTH: u32 = 400;

impl Maker {
    /// A width of a field or variable.
    pub(super) fn width(&mut self) -> u32 {
        let widest = if self.has(Feature::Wide) { 12 } else { 8 };
        match self.c.below(widest) {
            0 => 1,
            1 => self.c.between(2, 7),
            2 | 3 => 8,
            4 => self.c.between(9, 15),
            5 => 16,
            6 => 32,
            7 => self.c.between(33, 64),
            8 => self.c.one_of([63, 64, 65]),
            9 => self.c.one_of([127, 128, 129]),
            _ => self.c.between(66, 200),
        }
    }

    /// A type of numbers, or `bool`.
    pub(super) fn data_type(&mut self) -> Ty {
        match self.c.below(10) {
            0 => Ty::Bool,
            1 | 2 if self.has(Feature::Signed) => Ty::Int(self.width().max(2)),
            3 if !self.serials.is_empty() => {
                let number = self.c.below(self.serials.len());
                Ty::Serial(number, self.serials[number])
            }
            _ => Ty::Bits(self.width()),
        }
    }

    /// A type of local variables and parameters.
    pub(super) fn variable_type(&mut self) -> Ty {
        match self.c.below(12) {
            0 if self.enums > 0 => Ty::Enum(self.c.below(self.enums)),
            1 if self.has(Feature::Enum) => Ty::Error,
            _ => self.data_type(),
        }
    }

    /// A constant.
    pub(super) fn constant(&mut self, ty: Ty) -> Expr {
        match ty {
            Ty::Bits(width) | Ty::Int(width) => Expr::number(ty, &self.c.value(width)),
            Ty::Bool => Expr::number(ty, &BigUint::from(self.c.below(2))),
            Ty::Error => {
                let own = self.c.below(self.errors + 3);
                let name = match own.checked_sub(3) {
                    Some(own) => format!("error.Own{own}"),
                    None => {
                        ["error.NoError", "error.PacketTooShort", "error.NoMatch"][own].to_owned()
                    }
                };
                Expr::name(ty, name)
            }
            Ty::Enum(_) | Ty::Serial(..) => Expr::name(ty, format!("{ty}.m{}", self.c.below(3))),
        }
    }

    /// Something of the type that can be read by name.
    pub(super) fn read(&mut self, ty: Ty) -> Option<Expr> {
        let fitting: Vec<usize> = (0..self.scope.len())
            .filter(|index| self.scope[*index].ty == ty)
            .collect();
        let index = *self.c.pick(&fitting)?;
        Some(Expr::name(ty, self.scope[index].text.clone()))
    }

    /// Something that can be read by name, of any type that has a width.
    pub(super) fn read_any(&mut self) -> Option<Expr> {
        let fitting: Vec<usize> = (0..self.scope.len())
            .filter(|index| self.scope[*index].ty.width().is_some())
            .collect();
        let index = *self.c.pick(&fitting)?;
        let place = &self.scope[index];
        Some(Expr::name(place.ty, place.text.clone()))
    }

    /// A field of an element of a stack, at an index computed at run time.
    fn stack_element(&mut self, ty: Ty) -> Option<Expr> {
        let stack = self.c.pick(&self.stacks)?.clone();
        let fields = &self.headers[stack.header].fields;
        let field = fields.iter().find(|(_, field)| *field == ty)?.0.clone();
        let index = self.stack_index()?;
        Some(Expr::name(ty, format!("{}[{index}].{field}", stack.text)))
    }

    /// An index into a stack, perhaps beyond its end: a constant one would be refused.
    pub(super) fn stack_index(&mut self) -> Option<Expr> {
        let width = self.c.between(2, 3);
        let read = self.read_any()?;
        let constant = matches!(&read, Expr::Name { text, .. } if text == super::SETTING);
        (!constant).then(|| cast_to(Ty::Bits(width), read))
    }

    /// An expression of a type with at most `depth` operations above one another.
    pub(super) fn expr(&mut self, ty: Ty, depth: u32) -> Expr {
        if depth == 0 || self.c.chance(25) {
            return self.leaf(ty);
        }
        match ty {
            Ty::Bool => self.condition(depth),
            Ty::Bits(width) | Ty::Int(width) => self.number(ty, width, depth),
            Ty::Serial(_, width) if self.c.chance(40) => {
                Expr::Cast(ty, Box::new(self.expr(Ty::Bits(width), depth - 1)))
            }
            Ty::Serial(..) | Ty::Enum(_) | Ty::Error => match self.c.below(3) {
                0 => self.choose(ty, depth),
                1 => self.call_value(ty).unwrap_or_else(|| self.leaf(ty)),
                _ => self.leaf(ty),
            },
        }
    }

    fn leaf(&mut self, ty: Ty) -> Expr {
        if self.c.chance(70)
            && let Some(read) = self.read(ty)
        {
            return read;
        }
        if self.c.chance(10)
            && self.block != Block::Function
            && let Some(element) = self.stack_element(ty)
        {
            return element;
        }
        if self.c.chance(60)
            && let Ty::Bits(_) | Ty::Int(_) = ty
            && let Some(read) = self.read_any()
        {
            return cast_to(ty, read);
        }
        self.constant(ty)
    }

    fn choose(&mut self, ty: Ty, depth: u32) -> Expr {
        let condition = self.expr(Ty::Bool, depth - 1);
        let then = self.expr(ty, depth - 1);
        let otherwise = self.expr(ty, depth - 1);
        Expr::Choose(Box::new(condition), Box::new(then), Box::new(otherwise))
    }

    fn number(&mut self, ty: Ty, width: u32, depth: u32) -> Expr {
        let deeper = depth - 1;
        match self.c.below(16) {
            0..=5 => {
                let op = self.c.one_of([
                    Binary::Add,
                    Binary::Sub,
                    Binary::Mul,
                    Binary::AddSat,
                    Binary::SubSat,
                    Binary::And,
                    Binary::Or,
                    Binary::Xor,
                ]);
                let left = self.expr(ty, deeper);
                let right = self.operand(ty, deeper);
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
            6 | 7 => {
                let op = self.c.one_of([Binary::Shl, Binary::Shr]);
                let left = self.expr(ty, deeper);
                let amount = self.amount(width, deeper);
                Expr::Binary(op, Box::new(left), Box::new(amount))
            }
            8 => {
                let op = self.c.one_of([Unary::Complement, Unary::Negate]);
                Expr::Unary(op, Box::new(self.expr(ty, deeper)))
            }
            9 => self.choose(ty, depth),
            10 if self.has(Feature::Division) && matches!(ty, Ty::Bits(_)) => {
                let op = self.c.one_of([Binary::Div, Binary::Mod]);
                let left = self.expr(ty, deeper);
                let right = self.divisor(ty);
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
            11 if self.has(Feature::Slice) && matches!(ty, Ty::Bits(_)) => {
                let above = self.c.between(0, (MAX_WIDTH - width).min(40));
                let low = self.c.between(0, above);
                let whole = if self.has(Feature::Signed) && self.c.chance(30) && above > 0 {
                    Ty::Int(width + above)
                } else {
                    Ty::Bits(width + above)
                };
                let operand = self.expr(whole, deeper);
                Expr::Slice(Box::new(operand), low + width - 1, low)
            }
            12 if width > 1 && matches!(ty, Ty::Bits(_)) => {
                let left_width = self.c.between(1, width - 1);
                let left = self.expr(Ty::Bits(left_width), deeper);
                let right = self.expr(Ty::Bits(width - left_width), deeper);
                Expr::Binary(Binary::Concat, Box::new(left), Box::new(right))
            }
            13 | 14 => {
                let from = self.data_type();
                let operand = self.expr(from, deeper);
                cast_to(ty, operand)
            }
            _ => self.call_value(ty).unwrap_or_else(|| self.leaf(ty)),
        }
    }

    /// The right operand of an operation on a type: perhaps a number without a width.
    fn operand(&mut self, ty: Ty, depth: u32) -> Expr {
        if self.c.chance(20)
            && let Ty::Bits(width) | Ty::Int(width) = ty
            && let Expr::Const { ty, value, .. } = Expr::number(ty, &self.c.value(width))
        {
            return Expr::Const {
                ty,
                value,
                plain: true,
            };
        }
        self.expr(ty, depth)
    }

    /// Distance by which a number of a width is shifted.
    fn amount(&mut self, width: u32, depth: u32) -> Expr {
        match self.c.below(3) {
            0 => Expr::Const {
                ty: Ty::Bits(32),
                value: BigInt::from(self.c.between(0, width - 1)),
                plain: true,
            },
            1 => {
                let amount = self.c.one_of([1, 4, 8, 32, 130]);
                self.expr(Ty::Bits(amount), depth)
            }
            _ => Expr::number(
                Ty::Bits(8),
                &BigUint::from(self.c.between(0, width.min(255))),
            ),
        }
    }

    /// Something to divide by: a constant other than zero, or a name, since a constant
    /// expression of value zero would be refused.
    fn divisor(&mut self, ty: Ty) -> Expr {
        if self.c.chance(50)
            && let Some(read) = self.read(ty)
        {
            return read;
        }
        let width = ty.width().unwrap_or(1);
        Expr::number(ty, &self.c.value(width).max(BigUint::from(1u32)))
    }

    fn condition(&mut self, depth: u32) -> Expr {
        let deeper = depth - 1;
        match self.c.below(12) {
            0..=3 => {
                let ty = match self.data_type() {
                    Ty::Bool | Ty::Serial(..) => Ty::Bits(8),
                    ty => ty,
                };
                let op = self
                    .c
                    .one_of([Binary::Lt, Binary::Le, Binary::Gt, Binary::Ge]);
                let left = self.expr(ty, deeper);
                let right = self.operand(ty, deeper);
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
            4..=6 => {
                let ty = self.variable_type();
                let op = self.c.one_of([Binary::Eq, Binary::Ne]);
                let left = self.expr(ty, deeper);
                let right = self.operand(ty, deeper);
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
            7 | 8 => {
                let op = self.c.one_of([Binary::Both, Binary::Either]);
                let left = self.expr(Ty::Bool, deeper);
                let right = self.expr(Ty::Bool, deeper);
                Expr::Binary(op, Box::new(left), Box::new(right))
            }
            9 => Expr::Unary(Unary::Not, Box::new(self.expr(Ty::Bool, deeper))),
            10 => match self.header_comparison() {
                Some(comparison) => comparison,
                None => self.leaf(Ty::Bool),
            },
            _ => match self.c.pick(&self.header_places) {
                Some(header) => Expr::name(Ty::Bool, format!("{}.isValid()", header.text)),
                None => self.leaf(Ty::Bool),
            },
        }
    }

    fn header_comparison(&mut self) -> Option<Expr> {
        let one = self.c.pick(&self.header_places)?.clone();
        let others: Vec<String> = self
            .header_places
            .iter()
            .filter(|other| other.header == one.header)
            .map(|other| other.text.clone())
            .collect();
        let other = self.c.pick(&others)?;
        let sign = ["==", "!="][self.c.below(2)];
        Some(Expr::name(
            Ty::Bool,
            format!("({} {sign} {other})", one.text),
        ))
    }

    /// A call of a function that gives a value of the type.
    fn call_value(&mut self, ty: Ty) -> Option<Expr> {
        if !self.calls {
            return None;
        }
        let functions: Vec<Callable> = self
            .functions
            .iter()
            .filter(|function| function.result == Some(ty))
            .cloned()
            .collect();
        let function = self.c.pick(&functions)?.clone();
        let args = self.arguments(&function)?;
        Some(Expr::name(ty, format!("{}({args})", function.name)))
    }

    /// Arguments for a call; `None` if nothing in scope can be written for one that
    /// has to be.
    pub(super) fn arguments(&mut self, callable: &Callable) -> Option<String> {
        let mut args = Vec::new();
        for (direction, ty) in &callable.params {
            args.push(match direction {
                Direction::In | Direction::Data => self.expr(*ty, 2).to_string(),
                Direction::Out | Direction::InOut => self.writable(*ty)?,
            });
        }
        Some(args.join(", "))
    }

    /// Something of the type that can be written.
    pub(super) fn writable(&mut self, ty: Ty) -> Option<String> {
        let fitting: Vec<&str> = self
            .scope
            .iter()
            .filter(|place| place.ty == ty && place.writable)
            .map(|place| place.text.as_str())
            .collect();
        self.c.pick(&fitting).map(|text| (*text).to_owned())
    }

    /// Something that can be written, with its type.
    pub(super) fn writable_any(&mut self) -> Option<(String, Ty)> {
        let fitting: Vec<usize> = (0..self.scope.len())
            .filter(|index| self.scope[*index].writable)
            .collect();
        let index = *self.c.pick(&fitting)?;
        let place = &self.scope[index];
        Some((place.text.clone(), place.ty))
    }
}

/// Conversions from a value's type to a type of numbers: one step may change the
/// width or the sign, but not both.
pub(super) fn cast_to(to: Ty, value: Expr) -> Expr {
    let from = value.ty();
    if from == to {
        return value;
    }
    let step = |to, value| Expr::Cast(to, Box::new(value));
    match (from, to) {
        (Ty::Bool, Ty::Bits(1)) | (Ty::Bits(1), Ty::Bool) => step(to, value),
        (Ty::Bool, _) => cast_to(to, step(Ty::Bits(1), value)),
        (_, Ty::Bool) => step(to, cast_to(Ty::Bits(1), value)),
        (Ty::Serial(_, width), _) => cast_to(to, step(Ty::Bits(width), value)),
        (Ty::Bits(from), Ty::Int(width)) if from != width => step(to, step(Ty::Bits(width), value)),
        (Ty::Int(from), Ty::Bits(width)) if from != width => step(to, step(Ty::Int(width), value)),
        _ => step(to, value),
    }
}
