//! Expressions (P4-16 1.2.5, §8).

use crate::Fault;
use crate::machine::{Machine, Run, Stop};
use crate::number::{self, Width};
use crate::place::Reference;
use crate::types::Type;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::{BinaryOp, Expr, ExprKind};

impl<'p> Machine<'p> {
    /// The value of an expression, with its side effects.
    pub(crate) fn eval(&mut self, expr: &'p Expr) -> Run<Value> {
        Ok(match &expr.kind {
            ExprKind::Number(literal) => match literal.width {
                Some(width) => {
                    let width = Width {
                        bits: width.bits,
                        signed: width.signed,
                    };
                    Value::Number(width, Some(width.wrap(&literal.value)))
                }
                None => Value::Integer(literal.value.clone()),
            },
            ExprKind::Bool(value) => Value::Bool(Some(*value)),
            ExprKind::String(_) => Value::Text,
            ExprKind::Dots => Value::Dots,
            ExprKind::Invalid => Value::NoHeader,
            ExprKind::Name(_)
            | ExprKind::Member { .. }
            | ExprKind::Index { .. }
            | ExprKind::Slice { .. }
            | ExprKind::PlusSlice { .. } => match self.reference(expr)? {
                Reference::Place(place) => self.read(&place),
                Reference::Value(value) => value,
            },
            ExprKind::Unary { op, operand } => {
                let value = self.eval(operand)?;
                Self::unary(*op, value)?
            }
            ExprKind::Binary {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
                ..
            } => {
                // The right operand is evaluated only if it matters (§8.2).
                let decided = self.eval(left)?.truth()? == (*op == BinaryOp::Or);
                if self.is(Fault::NoShortCircuit) {
                    let right = self.eval(right)?;
                    return Ok(if decided {
                        Value::Bool(Some(*op == BinaryOp::Or))
                    } else {
                        right
                    });
                }
                if decided {
                    Value::Bool(Some(*op == BinaryOp::Or))
                } else {
                    self.eval(right)?
                }
            }
            ExprKind::Binary {
                op, left, right, ..
            } => {
                if self.is(Fault::RightOperandFirst) {
                    let right = self.eval(right)?;
                    let left = self.eval(left)?;
                    return self.binary(*op, left, right);
                }
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                self.binary(*op, left, right)?
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                if self.eval(condition)?.truth()? {
                    self.eval(then)?
                } else {
                    self.eval(otherwise)?
                }
            }
            ExprKind::Cast { ty, operand } => {
                let ty = self.ty(ty)?;
                let value = self.eval(operand)?;
                if self.is(Fault::CastsLoseTheSign)
                    && let (Value::Number(from, _), Type::Number(to)) = (&value, &ty)
                {
                    let bits = Width::unsigned(from.bits);
                    let number = value.number().map(|number| to.wrap(&bits.wrap(number)));
                    return Ok(Value::Number(*to, number));
                }
                cast(value, &ty)?
            }
            ExprKind::Call {
                callee,
                type_args,
                args,
            } => self.call(callee, type_args, args)?,
            ExprKind::List(elements) => {
                if self.is(Fault::InitialisersFromTheRight) {
                    let values = elements.iter().rev().map(|element| self.eval(element));
                    let mut values = values.collect::<Run<Vec<_>>>()?;
                    values.reverse();
                    return Ok(Value::List(values));
                }
                let values = elements.iter().map(|element| self.eval(element));
                Value::List(values.collect::<Run<_>>()?)
            }
            ExprKind::Struct { fields, rest } => {
                let mut values = Vec::new();
                for field in fields {
                    values.push((field.name.to_string(), self.eval(&field.value)?));
                }
                if self.is(Fault::NamesOfFieldsAreIgnored) && values.len() > 1 {
                    let (first, last) = (0, values.len() - 1);
                    let name = std::mem::take(&mut values[first].0);
                    values[first].0 = std::mem::replace(&mut values[last].0, name);
                }
                Value::Record(values, rest.is_some())
            }
            ExprKind::Malformed
            | ExprKind::This
            | ExprKind::Type(_)
            | ExprKind::Construct { .. } => return Err(Stop::unsupported("such an expression")),
        })
    }

    /// The value of an operation with two operands, but for `&&` and `||`.
    pub(crate) fn binary(&self, op: BinaryOp, left: Value, right: Value) -> Run<Value> {
        let refused = || Stop::unsupported(format!("such operands of {}", op.symbol()));
        match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                let (left, right) = (left.plain(), right.plain());
                let to_left = op == BinaryOp::Shl;
                let result = |width| {
                    let (left, right) = (left.number()?, right.number()?);
                    number::shift(to_left, width, left, right)
                };
                Ok(match &left {
                    Value::Number(width, _) if self.is(Fault::ShiftsAreLogical) => {
                        let bits = Width::unsigned(width.bits);
                        let result = left.number().zip(right.number()).and_then(|(left, right)| {
                            number::shift(to_left, Some(bits), &bits.wrap(left), right)
                        });
                        Value::Number(*width, result.map(|result| width.wrap(&result)))
                    }
                    Value::Number(width, _) => Value::Number(*width, result(Some(*width))),
                    Value::Integer(_) => Value::Integer(result(None).ok_or_else(refused)?),
                    _ => return Err(refused()),
                })
            }
            BinaryOp::Concat => {
                let (Value::Number(high, one), Value::Number(low, other)) =
                    (left.plain(), right.plain())
                else {
                    return Err(refused());
                };
                let width = Width {
                    bits: high.bits + low.bits,
                    signed: high.signed,
                };
                let joined = one.zip(other).map(|(one, other)| {
                    if self.is(Fault::ConcatenationIsReversed) {
                        let (_, joined) = number::concatenate((low, &other), (high, &one));
                        return width.wrap(&joined);
                    }
                    number::concatenate((high, &one), (low, &other)).1
                });
                Ok(Value::Number(width, joined))
            }
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let (left, right) = alike(left, right)?;
                let equal = left.equals(&right)?;
                let wanted = op == BinaryOp::Equal;
                Ok(Value::Bool(equal.map(|equal| equal == wanted)))
            }
            _ => {
                let (left, right) = alike(left.plain(), right.plain())?;
                let numbers = left.number().zip(right.number());
                match (&left, &right) {
                    (Value::Integer(a), Value::Integer(b)) => {
                        if let Some(truth) = number::compare(op, a, b) {
                            return Ok(Value::Bool(Some(truth)));
                        }
                        let result = number::arithmetic(op, None, a, b).ok_or_else(refused)?;
                        Ok(Value::Integer(result))
                    }
                    (Value::Number(width, _), Value::Number(other, _)) if width == other => {
                        if number::compare(op, &BigInt::ZERO, &BigInt::ZERO).is_some() {
                            if self.is(Fault::ComparisonsLoseTheSign) {
                                let bits = Width::unsigned(width.bits);
                                let truth = numbers.and_then(|(a, b)| {
                                    number::compare(op, &bits.wrap(a), &bits.wrap(b))
                                });
                                return Ok(Value::Bool(truth));
                            }
                            let truth = numbers.and_then(|(a, b)| number::compare(op, a, b));
                            return Ok(Value::Bool(truth));
                        }
                        let op = match op {
                            BinaryOp::AddSat if self.is(Fault::NothingSaturates) => BinaryOp::Add,
                            BinaryOp::SubSat if self.is(Fault::NothingSaturates) => BinaryOp::Sub,
                            op => op,
                        };
                        // Of a division by zero nothing is known.
                        let result =
                            numbers.and_then(|(a, b)| number::arithmetic(op, Some(*width), a, b));
                        Ok(Value::Number(*width, result))
                    }
                    _ => Err(refused()),
                }
            }
        }
    }
}

/// Brings two operands to one type by implicit casts (§8.11.2).
fn alike(left: Value, right: Value) -> Run<(Value, Value)> {
    let open = |value: &Value| {
        matches!(
            value,
            Value::Integer(_) | Value::List(_) | Value::Record(..) | Value::Dots | Value::NoHeader
        )
    };
    match (&left, &right) {
        (Value::Enum(..), Value::Number(..) | Value::Integer(_)) => {
            alike_numbers(left.plain(), right)
        }
        (Value::Number(..) | Value::Integer(_), Value::Enum(..)) => {
            alike_numbers(left, right.plain())
        }
        _ if open(&left) => alike_numbers(left, right),
        _ if open(&right) => alike_numbers(left, right),
        _ => Ok((left, right)),
    }
}

fn alike_numbers(left: Value, right: Value) -> Run<(Value, Value)> {
    match (left.ty(), right.ty()) {
        (None, Some(ty)) => Ok((left.fit(&ty)?, right)),
        (Some(ty), None) => {
            let right = right.fit(&ty)?;
            Ok((left, right))
        }
        _ => Ok((left, right)),
    }
}

/// An explicit cast (§8.11.1).
fn cast(value: Value, ty: &Type) -> Run<Value> {
    let refused = || Stop::unsupported("such a cast");
    Ok(match (value, ty) {
        (Value::Bool(value), Type::Number(width)) => {
            Value::Number(*width, value.map(|value| BigInt::from(u8::from(value))))
        }
        (value @ (Value::Number(..) | Value::Integer(_)), Type::Bool) => {
            Value::Bool(value.number().map(|value| *value != BigInt::ZERO))
        }
        (value, Type::Number(width)) => match value.plain() {
            value @ (Value::Number(..) | Value::Integer(_)) => {
                Value::Number(*width, value.number().map(|value| width.wrap(value)))
            }
            _ => return Err(refused()),
        },
        (value, Type::Integer) => match value.plain() {
            value @ (Value::Number(..) | Value::Integer(_)) => {
                let number = value.number().cloned();
                Value::Integer(number.ok_or(Stop::Unknown("a cast to int"))?)
            }
            _ => return Err(refused()),
        },
        (value @ (Value::Number(..) | Value::Integer(_)), Type::Enum(decl)) => {
            let width = decl.underlying.ok_or_else(refused)?;
            Value::Enum(decl.clone(), value.number().map(|value| width.wrap(value)))
        }
        (value, ty) => value.fit(ty)?,
    })
}
