//! Places: what l-values stand for, once evaluated (P4-16 1.2.5, §6.7).

use crate::Fault;
use crate::machine::{Machine, Run, Stop};
use crate::number::{self, Width};
use crate::types::Type;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::{Expr, ExprKind, TypeKind};
use std::rc::Rc;

/// A part of a variable. Indices in it are numbers: later side effects do not move it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    frame: usize,
    slot: usize,
    steps: Vec<Step>,
    pub(crate) ty: Type,
}

#[derive(Clone, Debug)]
enum Step {
    Field(usize),
    Element(usize),
    /// An element that a stack does not have (§8.18).
    Outside,
    /// An element of which it is not known which one it is.
    Unknown,
    /// A number of bits from the lowest one upwards.
    Bits {
        low: u32,
        count: u32,
    },
}

/// Meaning of an expression: a place, or only a value.
pub(crate) enum Reference {
    Place(Place),
    Value(Value),
}

impl<'p> Machine<'p> {
    /// Evaluates an expression as far as its place.
    pub(crate) fn reference(&mut self, expr: &'p Expr) -> Run<Reference> {
        match &expr.kind {
            ExprKind::Name(path) => {
                let name = path.name.as_str();
                if !path.absolute
                    && let Some((frame, slot)) = self.find_variable(name)
                {
                    let ty = self.frames[frame].variables[slot].ty.clone();
                    return Ok(Reference::Place(Place {
                        frame,
                        slot,
                        steps: Vec::new(),
                        ty,
                    }));
                }
                match self.constant(name) {
                    Some(value) => Ok(Reference::Value(value.clone())),
                    None => Err(Stop::unsupported(format!("the name {name}"))),
                }
            }
            ExprKind::Member { base, member } => {
                if let ExprKind::Type(ty) = &base.kind {
                    return self.member_of_type(&ty.kind, member.as_str());
                }
                match self.reference(base)? {
                    Reference::Place(place) => self.member(place, member.as_str()),
                    Reference::Value(value) => member_value(value, member.as_str()),
                }
            }
            ExprKind::Index { base, index } => {
                let base = self.reference(base)?;
                let index = self.eval(index)?;
                let index = index.number().cloned();
                match base {
                    Reference::Place(place) => element(place, index),
                    Reference::Value(Value::Stack(ty, elements, _)) => {
                        let index = index.and_then(|index| usize::try_from(&index).ok());
                        let found = index.and_then(|index| elements.get(index).cloned());
                        Ok(Reference::Value(found.unwrap_or_else(|| ty.unknown())))
                    }
                    Reference::Value(_) => Err(Stop::unsupported("an index into such a value")),
                }
            }
            ExprKind::Slice { base, high, low } => {
                let base = self.reference(base)?;
                let (high, low) = (self.count(high)?, self.count(low)?);
                if high < low {
                    return Err(Stop::unsupported("such a slice"));
                }
                bits_of(base, low, high - low + 1)
            }
            ExprKind::PlusSlice { base, low, width } => {
                let base = self.reference(base)?;
                let low = self.eval(low)?;
                let low = low.index()?.min(1 << 20) as u32;
                let count = self.count(width)?;
                bits_of(base, low, count)
            }
            _ => Ok(Reference::Value(self.eval(expr)?)),
        }
    }

    /// The place of an expression that can be assigned to.
    pub(crate) fn place(&mut self, expr: &'p Expr) -> Run<Place> {
        match self.reference(expr)? {
            Reference::Place(place) => Ok(place),
            Reference::Value(_) => Err(Stop::unsupported("an assignment to a value")),
        }
    }

    fn member_of_type(&self, ty: &TypeKind, member: &str) -> Run<Reference> {
        match ty {
            TypeKind::Error => Ok(Reference::Value(Value::Error(Some(Rc::from(member))))),
            TypeKind::Named(path) => match self.types.get(path.name.as_str()) {
                Some(Type::Enum(decl)) => {
                    let value = decl.members.iter().find(|(name, _)| name == member);
                    let value = value.ok_or_else(|| Stop::unsupported("a member that is none"))?;
                    let value = Value::Enum(decl.clone(), Some(value.1.clone()));
                    Ok(Reference::Value(value))
                }
                // Enumerations of the architecture are not evaluated.
                _ => Err(Stop::unsupported("a member of such a type")),
            },
            _ => Err(Stop::unsupported("a member of such a type")),
        }
    }

    fn member(&mut self, mut place: Place, member: &str) -> Run<Reference> {
        match place.ty.clone() {
            Type::Struct(decl) => {
                let field = decl.field(member);
                let field = field.ok_or_else(|| Stop::unsupported("a field that is none"))?;
                place.steps.push(Step::Field(field));
                place.ty = decl.fields[field].1.clone();
                Ok(Reference::Place(place))
            }
            Type::Stack(_, size) => {
                if member == "size" {
                    let size = Some(BigInt::from(size));
                    return Ok(Reference::Value(Value::Number(Width::unsigned(32), size)));
                }
                let Value::Stack(_, _, next) = self.read(&place) else {
                    return Err(Stop::unsupported("a stack that is none"));
                };
                let outside = || Stop::Reject(Rc::from("StackOutOfBounds"));
                match member {
                    "next" if next < size => element(place, Some(BigInt::from(next))),
                    "last" if next > 0 && next <= size => {
                        element(place, Some(BigInt::from(next - 1)))
                    }
                    "next" | "last" => Err(outside()),
                    "lastIndex" => {
                        let index = next.checked_sub(1).map(BigInt::from);
                        Ok(Reference::Value(Value::Number(Width::unsigned(32), index)))
                    }
                    _ => Err(Stop::unsupported("such a member of a stack")),
                }
            }
            _ => member_value(self.read(&place), member),
        }
    }

    /// The value at a place.
    pub(crate) fn read(&self, place: &Place) -> Value {
        let variable = &self.frames[place.frame].variables[place.slot];
        get(&variable.value, &place.steps, &place.ty)
    }

    /// Puts a value at a place. What is invalid or outside stays as it is (§8.25).
    pub(crate) fn write(&mut self, place: &Place, value: Value) -> Run<()> {
        if self.is(Fault::InvalidFieldsAreWritten)
            && let Some((Step::Field(_), steps)) = place.steps.split_last()
        {
            let variable = &mut self.frames[place.frame].variables[place.slot];
            if let Some(Value::Header(_, valid, _)) = find(&mut variable.value, steps) {
                *valid = Some(true);
            }
        }
        let variable = &mut self.frames[place.frame].variables[place.slot];
        set(&mut variable.value, &place.steps, value)
    }
}

fn member_value(value: Value, member: &str) -> Run<Reference> {
    let field = |decl: &crate::types::Struct| {
        let field = decl.field(member);
        field.ok_or_else(|| Stop::unsupported("a field that is none"))
    };
    Ok(Reference::Value(match value {
        Value::Struct(decl, mut fields) => fields.swap_remove(field(&decl)?),
        Value::Header(decl, valid, mut fields) => {
            let field = field(&decl)?;
            match valid {
                Some(true) => fields.swap_remove(field),
                _ => decl.fields[field].1.unknown(),
            }
        }
        Value::Stack(_, elements, _) if member == "size" => {
            let size = Some(BigInt::from(elements.len()));
            Value::Number(Width::unsigned(32), size)
        }
        Value::Applied { hit, action } => match member {
            "hit" => Value::Bool(Some(hit)),
            "miss" => Value::Bool(Some(!hit)),
            "action_run" => Value::ActionRun(action),
            _ => return Err(Stop::unsupported("such a result of a table")),
        },
        _ => return Err(Stop::unsupported("a member of such a value")),
    }))
}

fn element(mut place: Place, index: Option<BigInt>) -> Run<Reference> {
    let Type::Stack(ty, size) = place.ty else {
        return Err(Stop::unsupported("an index into such a value"));
    };
    place.steps.push(match index {
        None => Step::Unknown,
        Some(index) => match usize::try_from(&index) {
            Ok(index) if index < size => Step::Element(index),
            _ => Step::Outside,
        },
    });
    place.ty = (*ty).clone();
    Ok(Reference::Place(place))
}

fn bits_of(base: Reference, low: u32, count: u32) -> Run<Reference> {
    let ty = Type::Number(Width::unsigned(count));
    match base {
        Reference::Place(mut place) => {
            place.steps.push(Step::Bits { low, count });
            place.ty = ty;
            Ok(Reference::Place(place))
        }
        Reference::Value(Value::Integer(value)) => {
            let value = number::slice(&value, low + count - 1, low);
            Ok(Reference::Value(Value::Number(
                Width::unsigned(count),
                Some(value),
            )))
        }
        Reference::Value(value) => {
            let steps = [Step::Bits { low, count }];
            Ok(Reference::Value(get(&value.plain(), &steps, &ty)))
        }
    }
}

fn get(value: &Value, steps: &[Step], ty: &Type) -> Value {
    let Some((step, rest)) = steps.split_first() else {
        return value.clone();
    };
    match (step, value) {
        (Step::Field(field), Value::Struct(_, fields))
        | (Step::Field(field), Value::Header(_, Some(true), fields)) => {
            get(&fields[*field], rest, ty)
        }
        (Step::Element(index), Value::Stack(_, elements, _)) => get(&elements[*index], rest, ty),
        (Step::Bits { low, count }, value) => {
            let plain = match value {
                Value::Enum(..) => value.clone().plain(),
                _ => value.clone(),
            };
            let Value::Number(width, value) = plain else {
                return ty.unknown();
            };
            let slice = value.map(|value| {
                let bits = Width::unsigned(width.bits).wrap(&value);
                number::slice(&bits, low + count - 1, *low)
            });
            let slice = Value::Number(Width::unsigned(*count), slice);
            get(&slice, rest, ty)
        }
        _ => ty.unknown(),
    }
}

/// The part of a value that is no part of a number.
fn find<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    match (step, value) {
        (Step::Field(field), Value::Struct(_, fields) | Value::Header(_, _, fields)) => {
            find(&mut fields[*field], rest)
        }
        (Step::Element(index), Value::Stack(_, elements, _)) => find(&mut elements[*index], rest),
        _ => None,
    }
}

fn set(value: &mut Value, steps: &[Step], new: Value) -> Run<()> {
    let Some((step, rest)) = steps.split_first() else {
        *value = new;
        return Ok(());
    };
    match (step, value) {
        (Step::Field(field), Value::Struct(_, fields))
        | (Step::Field(field), Value::Header(_, Some(true), fields)) => {
            set(&mut fields[*field], rest, new)
        }
        // A header that is not valid, or perhaps not: nothing that is known changes.
        (Step::Field(_), Value::Header(..)) | (Step::Outside, _) => Ok(()),
        (Step::Element(index), Value::Stack(_, elements, _)) => {
            set(&mut elements[*index], rest, new)
        }
        (Step::Unknown, _) => Err(Stop::Unknown("the index of an assignment")),
        (Step::Bits { low, count }, Value::Number(width, value)) => {
            let old = value.take();
            let mut part = Value::Number(
                Width::unsigned(*count),
                old.as_ref().map(|old| {
                    let bits = Width::unsigned(width.bits).wrap(old);
                    number::slice(&bits, low + count - 1, *low)
                }),
            );
            set(&mut part, rest, new)?;
            let high = (low + count - 1).min(width.bits.saturating_sub(1));
            *value = match (old, part.number()) {
                (old, _) if *low >= width.bits => old,
                (Some(old), Some(part)) => Some(number::with_slice(*width, &old, high, *low, part)),
                // All its bits are new.
                (None, Some(part)) if *low == 0 && *count >= width.bits => Some(width.wrap(part)),
                _ => None,
            };
            Ok(())
        }
        _ => Err(Stop::unsupported("such an assignment")),
    }
}
