//! Hashes and checksums.

use super::Gen;
use super::bits::BitString;
use super::place::constant;
use super::scalar::is_narrow;
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use stateplane_ir::{Expr, HashAlgorithm, Place, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::hash;
use stateplane_runtime::layout::scalar_bits;

impl Gen<'_, '_> {
    /// The bytes of values, from the least address on: pointer and number. `None` if
    /// their lengths are not known; then they are collected in the engine.
    fn data_bytes(&mut self, data: &[Expr]) -> Option<(Value, Value)> {
        let mut string = BitString::default();
        for value in data {
            if !self.push_expr(&mut string, value) {
                return None;
            }
        }
        let words = (string.width as usize).div_ceil(128).max(1);
        let pointer = self.scratch(words);
        let flags = Self::flags(self.regions.storage);
        self.store_bits(&string, 0..string.width, flags, pointer);
        let bytes = self.number(u64::from(string.width.div_ceil(8)));
        Some((pointer, bytes))
    }

    /// Collects the bits of values in the engine, and returns pointer and number of the
    /// bytes.
    fn collect(&mut self, data: &[Expr]) -> (Value, Value) {
        let context = self.context;
        self.call_engine(run::collect_nothing as *const u8, &[context], false);
        for value in data {
            let values = self.flatten(value);
            let (length, words) = match (value.ty, values.as_slice()) {
                (Type::Varbit(width), [length, value]) => {
                    let length = self.in_register(*length, 32);
                    let greatest = self.number(u64::from(width));
                    let length = self.b.ins().umin(length, greatest);
                    (length, self.in_memory(*value, width))
                }
                (ty, [value, ..]) => {
                    let width = scalar_bits(ty);
                    let length = self.number(u64::from(width));
                    (length, self.in_memory(*value, width))
                }
                (_, []) => continue,
            };
            let count = match value.ty {
                Type::Varbit(width) => word_count(width),
                ty => word_count(scalar_bits(ty)),
            };
            let count = self.number(count as u64);
            let context = self.context;
            self.call_engine(
                run::collect as *const u8,
                &[context, words, count, length],
                false,
            );
        }
        let context = self.context;
        let pointer = self.call_for(run::collected as *const u8, &[context]);
        let bytes = self.call_for(run::collected_bytes as *const u8, &[context]);
        (pointer, bytes)
    }

    /// An algorithm over values and perhaps the rest of the frame, as a register of 64
    /// bits.
    pub(super) fn algorithm(
        &mut self,
        algorithm: HashAlgorithm,
        data: &[Expr],
        with_payload: bool,
    ) -> Value {
        if algorithm == HashAlgorithm::Csum16
            && let Some(sum) = self.inline_checksum(data, with_payload)
        {
            return sum;
        }
        if !with_payload && let Some(crc) = self.inline_crc(algorithm, data) {
            return crc;
        }
        let (pointer, bytes) = match self.data_bytes(data) {
            Some(data) => data,
            None => self.collect(data),
        };
        let number = self.number(algorithm as u64);
        let payload = self.number(u64::from(with_payload));
        let rest = self.b.use_var(self.rest);
        let context = self.context;
        self.call_for(
            run::hash as *const u8,
            &[context, number, pointer, bytes, payload, rest],
        )
    }

    pub(super) fn checksum(
        &mut self,
        algorithm: HashAlgorithm,
        data: &[Expr],
        with_payload: bool,
    ) -> Value {
        self.algorithm(algorithm, data, with_payload)
    }

    /// A CRC of few bytes: one look into a table for each.
    fn inline_crc(&mut self, algorithm: HashAlgorithm, data: &[Expr]) -> Option<Value> {
        if !matches!(algorithm, HashAlgorithm::Crc32 | HashAlgorithm::Crc16) {
            return None;
        }
        let mut string = BitString::default();
        for value in data {
            if !self.push_expr(&mut string, value) {
                return None;
            }
        }
        let length = (string.width as usize).div_ceil(8);
        if length == 0 || length > hash::CRC_BYTES {
            return None;
        }
        // A CRC of data is that of their constants, with what the other bytes add to it by XOR: hashes that
        // differ in constants alone share their looks into tables.
        let (varying, constants) = self.without_constants(&string);
        let (of_constants, size) = match algorithm {
            HashAlgorithm::Crc32 => (u64::from(hash::crc32(&constants.bytes)), 4),
            _ => (u64::from(hash::crc16(&constants.bytes)), 2),
        };
        // Of tables of constants: a hash costs something only where it is used.
        let flags = Self::lasting(self.regions.state);
        let Some(first) = constants.others.iter().position(|varies| *varies) else {
            return Some(self.number(of_constants));
        };
        // Eight bytes at a time, with zeros behind the last.
        let words: Vec<Value> = (first..length)
            .step_by(8)
            .map(|byte| {
                let from = byte as u32 * 8;
                let width = (string.width - from).min(64);
                let word = self.gather(&varying, from, width);
                self.shifted_left(word, 64 - width)
            })
            .collect();
        let mut sum = None;
        for byte in (first..length).rev().filter(|byte| constants.others[*byte]) {
            let (word, place) = (words[(byte - first) / 8], (byte - first) % 8);
            let moved = self.shifted_right(word, 56 - place as u32 * 8);
            let value = self.masked(moved, 8);
            let following = length - 1 - byte;
            let table = match size {
                4 => hash::crc32_table_of(following).as_ptr().addr(),
                _ => hash::crc16_table_of(following).as_ptr().addr(),
            };
            let table = self.number(table as u64);
            let offset = self.b.ins().imul_imm_s(value, size);
            let place = self.b.ins().iadd(table, offset);
            // A plain load is made only where the hash is used.
            let ty = match size {
                4 => types::I32,
                _ => types::I16,
            };
            let adds = self.b.ins().load(ty, flags, place, 0);
            let adds = self.b.ins().uextend(types::I64, adds);
            sum = Some(match sum {
                Some(sum) => self.b.ins().bxor(sum, adds),
                None => adds,
            });
        }
        let of_constants = self.number(of_constants);
        Some(match sum {
            Some(sum) => self.b.ins().bxor(sum, of_constants),
            None => of_constants,
        })
    }

    /// RFC 1071 over values whose lengths are known.
    fn inline_checksum(&mut self, data: &[Expr], with_payload: bool) -> Option<Value> {
        let mut string = BitString::default();
        for value in data {
            if !self.push_expr(&mut string, value) {
                return None;
            }
        }
        let mut sum = self.number(0);
        let mut at = 0;
        while at < string.width {
            let width = (string.width - at).min(64);
            let value = self.gather(&string, at, width);
            let value = self.shifted_left(value, width.next_multiple_of(16) - width);
            if width > 48 {
                let high = self.shifted_right(value, 32);
                let low = self.masked(value, 32);
                sum = self.b.ins().iadd(sum, high);
                sum = self.b.ins().iadd(sum, low);
            } else {
                sum = self.b.ins().iadd(sum, value);
            }
            at += width;
        }
        if with_payload {
            let odd = self.number(u64::from(string.width.div_ceil(8) % 2));
            let rest = self.b.use_var(self.rest);
            let context = self.context;
            let payload = self.call_for(run::sum_of_rest as *const u8, &[context, rest, odd]);
            sum = self.b.ins().iadd(sum, payload);
        }
        // Both halves added to each other, with the carry around the end: of 64 bits,
        // then of 32.
        let turned = self.b.ins().rotl_imm_u(sum, 32);
        let sum = self.b.ins().iadd(sum, turned);
        let sum = self.shifted_right(sum, 32);
        let sum = self.b.ins().ireduce(types::I32, sum);
        let turned = self.b.ins().rotl_imm_u(sum, 16);
        let sum = self.b.ins().iadd(sum, turned);
        let sum = self.b.ins().bnot(sum);
        let sum = self.b.ins().ushr_imm_u(sum, 16);
        Some(self.b.ins().uextend(types::I64, sum))
    }

    /// base + hash mod max, modulo the result's width.
    pub(super) fn hash(
        &mut self,
        result: &Place,
        algorithm: HashAlgorithm,
        base: &Expr,
        data: &[Expr],
        max: &Expr,
    ) {
        // Bits that the result does not hold are not needed.
        let short = self
            .program()
            .place_type(result)
            .is_some_and(|ty| is_narrow(ty) && scalar_bits(ty) <= 64);
        let base_value = if short {
            self.low(base)
        } else {
            self.low_128(base)
        };
        let max_value = if is_narrow(max.ty) && scalar_bits(max.ty) <= 64 {
            Some(self.narrow(max))
        } else {
            None
        };
        let max_words = match max_value {
            Some(_) => None,
            None => Some(self.as_words(max)),
        };
        let value = self.algorithm(algorithm, data, false);
        let offset = match (max_value, constant(max)) {
            (Some(_), Some(0)) => self.number(0),
            (Some(max), Some(_)) => self.b.ins().urem(value, max),
            (Some(max), None) => {
                let zero = self.number(0);
                let one = self.number(1);
                let none = self.b.ins().icmp(IntCC::Equal, max, zero);
                let divisor = self.b.ins().select(none, one, max);
                self.b.ins().urem(value, divisor)
            }
            (None, _) => {
                let pointer = max_words.unwrap_or(self.context);
                let words = self.number(word_count(scalar_bits(max.ty)) as u64);
                self.call_for(run::remainder as *const u8, &[value, pointer, words])
            }
        };
        let offset = if short {
            offset
        } else {
            self.widened(offset, 64)
        };
        let sum = self.b.ins().iadd(base_value, offset);
        if let Some(spot) = self.spot(result) {
            self.store_number_at(&spot, sum, if short { 64 } else { 128 });
        }
    }
}
