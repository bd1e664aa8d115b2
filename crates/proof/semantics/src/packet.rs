//! Packets as parsers read them (P4-16 1.2.5, §13.8) and deparsers write them (§16).

use crate::machine::{Run, Stop};
use crate::number::Width;
use crate::types::Type;
use crate::value::Value;
use num_bigint::BigInt;
use std::rc::Rc;

/// A packet with a cursor.
#[derive(Debug, Default)]
pub(crate) struct PacketIn {
    data: Vec<u8>,
    /// In bits.
    cursor: usize,
}

impl PacketIn {
    pub(crate) fn new(data: &[u8]) -> PacketIn {
        PacketIn {
            data: data.to_vec(),
            cursor: 0,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes behind the cursor; `None` within a byte.
    pub(crate) fn rest(&self) -> Option<&[u8]> {
        self.cursor
            .is_multiple_of(8)
            .then(|| &self.data[self.cursor / 8..])
    }

    fn check(&self, bits: usize) -> Run<()> {
        if self.data.len() * 8 - self.cursor >= bits {
            return Ok(());
        }
        Err(Stop::Reject(Rc::from("PacketTooShort")))
    }

    pub(crate) fn extract(&mut self, ty: &Type) -> Run<Value> {
        let value = self.lookahead(ty)?;
        self.cursor += ty.bits().unwrap_or(0) as usize;
        Ok(value)
    }

    pub(crate) fn lookahead(&self, ty: &Type) -> Run<Value> {
        let bits = ty.bits();
        let bits = bits.ok_or_else(|| Stop::unsupported("a type that packets do not have"))?;
        self.check(bits as usize)?;
        let mut at = self.cursor;
        Ok(self.take(ty, &mut at))
    }

    pub(crate) fn advance(&mut self, bits: usize) -> Run<()> {
        self.check(bits)?;
        self.cursor += bits;
        Ok(())
    }

    /// The first bit is the most significant one.
    fn number(&self, width: Width, at: &mut usize) -> BigInt {
        let mut number = BigInt::ZERO;
        for bit in (0..u64::from(width.bits)).rev() {
            let byte = self.data[*at / 8];
            number.set_bit(bit, byte >> (7 - *at % 8) & 1 == 1);
            *at += 1;
        }
        width.wrap(&number)
    }

    fn take(&self, ty: &Type, at: &mut usize) -> Value {
        match ty {
            Type::Number(width) => Value::Number(*width, Some(self.number(*width, at))),
            Type::Bool => {
                let bit = self.number(Width::unsigned(1), at);
                Value::Bool(Some(bit != BigInt::ZERO))
            }
            Type::Enum(decl) => {
                let width = decl.underlying.unwrap_or(Width::unsigned(0));
                Value::Enum(decl.clone(), Some(self.number(width, at)))
            }
            Type::Struct(decl) => {
                let fields = decl.fields.iter().map(|(_, ty)| self.take(ty, at));
                let fields = fields.collect();
                if decl.is_header {
                    Value::Header(decl.clone(), Some(true), fields)
                } else {
                    Value::Struct(decl.clone(), fields)
                }
            }
            _ => ty.unknown(),
        }
    }
}

/// Emitted bits; `None` for a bit that is not known.
#[derive(Debug, Default)]
pub(crate) struct PacketOut {
    pub(crate) bits: Vec<Option<bool>>,
}

impl PacketOut {
    pub(crate) fn emit(&mut self, value: &Value) -> Run<()> {
        match value {
            Value::Header(_, None, _) => {
                return Err(Stop::Unknown("whether an emitted header is valid"));
            }
            Value::Header(_, Some(false), _) => {}
            Value::Header(_, Some(true), fields) => {
                fields.iter().try_for_each(|field| self.append(field))?;
            }
            Value::Struct(_, parts) | Value::Stack(_, parts, _) => {
                parts.iter().try_for_each(|part| self.emit(part))?;
            }
            _ => return Err(Stop::unsupported("an emission of such a value")),
        }
        Ok(())
    }

    fn append(&mut self, value: &Value) -> Run<()> {
        match value.clone().plain() {
            Value::Number(width, value) => {
                let bits = value.map(|value| Width::unsigned(width.bits).wrap(&value));
                for bit in (0..u64::from(width.bits)).rev() {
                    self.bits.push(bits.as_ref().map(|bits| bits.bit(bit)));
                }
            }
            Value::Bool(value) => self.bits.push(value),
            Value::Struct(_, fields) => {
                fields.iter().try_for_each(|field| self.append(field))?;
            }
            _ => return Err(Stop::unsupported("a field of such a type")),
        }
        Ok(())
    }
}
