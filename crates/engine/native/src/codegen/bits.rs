//! Strings of bits: fields as they stand in a packet, in the data of a hash, in a key.

use super::Gen;
use super::value::Scalar;
use crate::plan::{Home, REGISTER_BITS};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use stateplane_ir::{Expr, ExprKind, Type};
use stateplane_runtime::layout::scalar_bits;
use std::ops::Range;

/// Source of a part's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The low bits of a register.
    Register(Value),
    /// Words in memory.
    Words(Value),
    /// The frame, from this bit behind the pointer on, with this many readable bytes.
    Frame {
        pointer: Value,
        bit: u32,
        bytes: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Part {
    source: Source,
    width: u32,
}

/// Bits one after the other, the most significant of each part first.
#[derive(Clone, Debug, Default)]
pub(super) struct BitString {
    parts: Vec<Part>,
    /// Bits of all parts.
    pub(super) width: u32,
}

/// Bytes of a [`BitString`] that are known while code is made.
pub(super) struct Constants {
    /// The bits of constants, zeros in the place of all others and behind the last.
    pub(super) bytes: Vec<u8>,
    /// True of a byte in which a bit is no constant.
    pub(super) others: Vec<bool>,
}

impl BitString {
    fn push(&mut self, source: Source, width: u32) {
        if width == 0 {
            return;
        }
        self.width += width;
        if let Source::Frame { pointer, bit, .. } = source
            && let Some(last) = self.parts.last_mut()
            && let Source::Frame {
                pointer: same,
                bit: from,
                ..
            } = last.source
            && same == pointer
            && from + last.width == bit
        {
            last.width += width;
            return;
        }
        self.parts.push(Part { source, width });
    }

    pub(super) fn push_scalar(&mut self, value: Scalar, width: u32) {
        match value {
            Scalar::Register(value) => self.push(Source::Register(value), width),
            Scalar::Memory(pointer) => self.push(Source::Words(pointer), width),
        }
    }
}

impl Gen<'_, '_> {
    /// Appends a scalar that lies at a fixed word.
    pub(super) fn push_word(&mut self, string: &mut BitString, at: usize, width: u32) {
        if let Some((_, Home::Frame { header, bit })) = self.home(at) {
            let pointer = self.b.use_var(self.origins[header as usize]);
            let bytes = self.plan.headers[header as usize].bytes;
            return string.push(
                Source::Frame {
                    pointer,
                    bit,
                    bytes,
                },
                width,
            );
        }
        if width <= REGISTER_BITS {
            let value = self.load(at, None, width);
            return string.push(Source::Register(value), width);
        }
        let pointer = self.pointer(at, None);
        string.push(Source::Words(pointer), width);
    }

    /// Appends a scalar that is computed; of a varbit, `false` and nothing.
    pub(super) fn push_expr(&mut self, string: &mut BitString, expr: &Expr) -> bool {
        if matches!(expr.ty, Type::Varbit(_)) {
            return false;
        }
        let width = scalar_bits(expr.ty);
        if let ExprKind::Read(place) = &expr.kind
            && let Some(spot) = self.spot(place)
            && spot.dynamic.is_none()
            && spot.slice.is_none()
        {
            self.push_word(string, spot.at, width);
            return true;
        }
        let values = self.flatten(expr);
        if let Some(value) = values.first() {
            string.push_scalar(*value, width);
        }
        true
    }

    /// A string with zeros in the place of constants, and these.
    pub(super) fn without_constants(&mut self, string: &BitString) -> (BitString, Constants) {
        let length = (string.width as usize).div_ceil(8);
        let mut constants = Constants {
            bytes: vec![0; length],
            others: vec![false; length],
        };
        let mut varying = string.clone();
        let mut start = 0;
        for part in &mut varying.parts {
            let known = match part.source {
                Source::Register(value) if part.width <= 64 => self.known(value),
                _ => None,
            };
            for at in 0..part.width {
                let (byte, bit) = (((start + at) / 8) as usize, 7 - (start + at) % 8);
                match known {
                    Some(known) => {
                        let value = known >> (part.width - 1 - at) & 1;
                        constants.bytes[byte] |= (value as u8) << bit;
                    }
                    None => constants.others[byte] = true,
                }
            }
            if known.is_some() {
                part.source = Source::Register(self.number(0));
            }
            start += part.width;
        }
        (varying, constants)
    }

    /// At most 64 bits from bit `from` of a string on.
    pub(super) fn gather(&mut self, string: &BitString, from: u32, width: u32) -> Value {
        let mut value = None;
        let mut start = 0;
        for part in &string.parts {
            let end = start + part.width;
            let (first, last) = (start.max(from), end.min(from + width));
            let is_zero = match part.source {
                Source::Register(value) => self.known(value) == Some(0),
                Source::Words(_) | Source::Frame { .. } => false,
            };
            if first < last && !is_zero {
                let bits = self.part_bits(part, first - start, last - first);
                let bits = self.shifted_left(bits, from + width - last);
                value = Some(match value {
                    Some(value) => self.b.ins().bor(value, bits),
                    None => bits,
                });
            }
            start = end;
        }
        match value {
            Some(value) => value,
            None => self.number(0),
        }
    }

    /// At most 64 bits of a part, behind its first `skip`.
    fn part_bits(&mut self, part: &Part, skip: u32, width: u32) -> Value {
        let lo = part.width - skip - width;
        match part.source {
            Source::Register(value) => {
                let wide = self.b.func.dfg.value_type(value) == types::I128;
                let value = if wide && (lo >= 64 || lo + width <= 64) {
                    let (low, high) = self.halves(value);
                    let half = if lo >= 64 { high } else { low };
                    self.shifted_right(half, lo % 64)
                } else {
                    let value = self.shifted_right(value, lo);
                    if wide {
                        self.b.ins().ireduce(types::I64, value)
                    } else {
                        value
                    }
                };
                if skip > 0 {
                    self.masked(value, width)
                } else {
                    value
                }
            }
            Source::Words(pointer) => self.wide_bits(pointer, part.width, lo, width),
            Source::Frame {
                pointer,
                bit,
                bytes,
            } => self.load_bits(pointer, bit + skip, width, bytes),
        }
    }

    /// Reads a field of at most 128 bits from bit `bit` behind a pointer into a packet,
    /// where `bytes` may be read.
    pub(super) fn load_bits(&mut self, pointer: Value, bit: u32, width: u32, bytes: u32) -> Value {
        if width > 64 {
            let high = self.load_bits(pointer, bit, width - 64, bytes);
            let low = self.load_bits(pointer, bit + width - 64, 64, bytes);
            return self.b.ins().iconcat(low, high);
        }
        if width == 0 {
            return self.number(0);
        }
        let (first, end) = (bit / 8, (bit + width).div_ceil(8));
        let size = (end - first).next_power_of_two();
        if size > 8 || size > bytes {
            // Too long for one load, or the header is shorter than the load.
            let low = (width / 2).max(1);
            let a = self.load_bits(pointer, bit, width - low, bytes);
            let b = self.load_bits(pointer, bit + width - low, low, bytes);
            let a = self.shifted_left(a, low);
            return self.b.ins().bor(a, b);
        }
        let at = first.min(bytes - size);
        let flags = if self.plan.reads_at_leisure {
            Self::lasting(self.regions.frame)
        } else {
            Self::flags(self.regions.frame)
        };
        let offset = at as i32;
        let ty = match size {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            _ => types::I64,
        };
        // An `uload8` is one instruction, but stays where it is, used or not.
        let value = if size == 1 && !self.plan.reads_at_leisure {
            self.b.ins().uload8(types::I64, flags, pointer, offset)
        } else {
            self.b.ins().load(ty, flags, pointer, offset)
        };
        let value = if size > 1 {
            self.b.ins().bswap(value)
        } else {
            value
        };
        let value = if self.b.func.dfg.value_type(value) == types::I64 {
            value
        } else {
            self.b.ins().uextend(types::I64, value)
        };
        let behind = (at + size) * 8 - (bit + width);
        let value = self.shifted_right(value, behind);
        if width + behind < size * 8 {
            self.masked(value, width)
        } else {
            value
        }
    }

    /// Writes bits of a string, from the beginning of a byte on, to where they belong
    /// behind a pointer.
    pub(super) fn store_bits(
        &mut self,
        string: &BitString,
        range: Range<u32>,
        flags: MemFlagsData,
        pointer: Value,
    ) {
        let mut bit = range.start;
        while bit < range.end {
            let left = range.end - bit;
            let width = match left {
                64.. => 64,
                32.. => 32,
                16.. => 16,
                _ => 8.min(left),
            };
            let value = self.gather(string, bit, width);
            // Bits that are missing at the end are zero.
            let value = self.shifted_left(value, width.next_multiple_of(8) - width);
            let ty = match width {
                64 => types::I64,
                32 => types::I32,
                16 => types::I16,
                _ => types::I8,
            };
            let value = if width < 64 {
                self.b.ins().ireduce(ty, value)
            } else {
                value
            };
            let value = if width > 8 {
                self.b.ins().bswap(value)
            } else {
                value
            };
            let at = (bit / 8) as i32;
            self.b.ins().store(flags, value, pointer, at);
            bit += width;
        }
    }
}
