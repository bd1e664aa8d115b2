//! Operations on the packet's bytes: extract, lookahead, advance.

use super::Gen;
use super::place::Spot;
use super::value::Scalar;
use crate::plan::REGISTER_BITS;
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use stateplane_ir::{Expr, Place, Projection, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::{Leaf, LeafKind};
use stateplane_runtime::parser::core_error;

/// Memory from which fields are read.
struct Source {
    pointer: Value,
    /// Bits before the next field.
    bit: u32,
    /// Bytes that may be read.
    bytes: u32,
    /// Bits of the varbit.
    varbit: Option<Value>,
}

impl Gen<'_, '_> {
    /// Rejects if a condition holds.
    fn reject_if(&mut self, condition: Value, error: u32) {
        let [failed, fine] = [(); 2].map(|()| self.block());
        self.b.set_cold_block(failed);
        self.branch(condition, failed, fine);
        if self.go_on(failed) {
            self.reject(error);
        }
        self.go_on(fine);
    }

    fn bits_left(&mut self) -> Value {
        let bits = self.shifted_left(self.frame_length, 3);
        let cursor = self.b.use_var(self.cursor);
        self.b.ins().isub(bits, cursor)
    }

    /// Rejects if fewer than `bits` are left of the frame.
    fn require(&mut self, bits: Value) {
        let cursor = self.b.use_var(self.cursor);
        if let (Some(cursor), Some(bits)) = (self.known(cursor), self.known(bits))
            && let (0, Some(end)) = ((cursor | bits) % 8, cursor.checked_add(bits))
        {
            let end = self.number(end / 8);
            let short = self
                .b
                .ins()
                .icmp(IntCC::UnsignedLessThan, self.frame_length, end);
            return self.reject_if(short, core_error::PACKET_TOO_SHORT);
        }
        let left = self.bits_left();
        let short = self.b.ins().icmp(IntCC::UnsignedLessThan, left, bits);
        self.reject_if(short, core_error::PACKET_TOO_SHORT);
    }

    /// Pointer to the next bits of the frame; those of a cursor within a byte are moved
    /// to memory first.
    fn here(&mut self, bits: Value) -> Value {
        let cursor = self.b.use_var(self.cursor);
        let byte = match self.known(cursor) {
            Some(cursor) => self.number(cursor >> 3),
            None => self.shifted_right(cursor, 3),
        };
        let aligned = self.sum(self.frame, byte);
        if !self.plan.unaligned {
            return aligned;
        }
        let within = self.masked(cursor, 3);
        let [moved, after] = [(); 2].map(|()| self.block());
        self.b
            .append_block_param(after, cranelift_codegen::ir::types::I64);
        self.b
            .ins()
            .brif(within, moved, &[], after, &[aligned.into()]);
        self.enter(moved);
        let context = self.context;
        let pointer = self.call_for(run::realign as *const u8, &[context, cursor, bits]);
        self.b.ins().jump(after, &[pointer.into()]);
        self.enter(after);
        self.b.block_params(after)[0]
    }

    fn advance_by(&mut self, bits: Value) {
        let cursor = self.b.use_var(self.cursor);
        let cursor = self.sum(cursor, bits);
        self.b.def_var(self.cursor, cursor);
    }

    /// `packet.extract`.
    pub(super) fn extract(&mut self, header: &Place, varbit_size: Option<&Expr>) {
        let size = varbit_size.map(|size| self.index(size));
        let spot = self.spot(header);
        self.check_fault();
        let Some(spot) = spot else {
            return self.reject(core_error::STACK_OUT_OF_BOUNDS);
        };
        if let Some(guard) = spot.guard {
            let [fine, failed] = [(); 2].map(|()| self.block());
            self.branch(guard, fine, failed);
            self.enter(failed);
            self.reject(core_error::STACK_OUT_OF_BOUNDS);
            self.enter(fine);
        }
        let Type::Header(id) = spot.ty else {
            return;
        };
        let leaves = self.plan.storage.layout.header_leaves(id).to_vec();
        let bits = self.plan.storage.layout.header_bits(id);
        let fixed = self.number(u64::from(bits));
        let total = match size {
            None => fixed,
            Some(size) => {
                let greatest = leaves.iter().find(|leaf| leaf.kind == LeafKind::Varbit);
                let greatest = self.number(u64::from(greatest.map_or(0, |leaf| leaf.width)));
                let long = self
                    .b
                    .ins()
                    .icmp(IntCC::UnsignedGreaterThan, size, greatest);
                self.reject_if(long, core_error::HEADER_TOO_SHORT);
                let part = self.masked(size, 3);
                self.reject_if(part, core_error::PARSER_INVALID_ARGUMENT);
                self.b.ins().iadd(fixed, size)
            }
        };
        self.require(total);
        let pointer = self.here(total);
        let mut source = Source {
            pointer,
            bit: 0,
            bytes: bits.div_ceil(8),
            varbit: size,
        };
        if spot.dynamic.is_none()
            && let Some(header) = self.plan.header_at.get(&spot.at)
        {
            self.b.def_var(self.origins[*header as usize], pointer);
        }
        self.read_leaves(&leaves, &spot, 1, &mut source);
        self.advance_by(total);
        let valid = self.number(1);
        self.store(spot.at, spot.dynamic, 1, valid);
        self.settle_union(&spot);
        let next = header
            .path
            .iter()
            .rposition(|step| matches!(step, Projection::Next));
        if let Some(next) = next
            && let Some(stack) = self.spot_of(header.var, &header.path[..next])
        {
            let index = self.load(stack.at, stack.dynamic, 32);
            let index = self.b.ins().iadd_imm_s(index, 1);
            self.store(stack.at, stack.dynamic, 32, index);
        }
    }

    /// Reads leaves, whose words begin `skip` words behind a spot.
    fn read_leaves(&mut self, leaves: &[Leaf], spot: &Spot, skip: usize, source: &mut Source) {
        for leaf in leaves {
            let at = spot.at + skip + leaf.offset;
            match leaf.kind {
                LeafKind::Validity | LeafKind::NextIndex => {}
                LeafKind::Varbit => self.read_varbit(at, leaf.width, spot, source),
                LeafKind::Scalar => {
                    self.read_scalar(at, leaf.width, spot, source);
                    source.bit += leaf.width;
                }
            }
        }
    }

    fn read_scalar(&mut self, at: usize, width: u32, spot: &Spot, source: &Source) {
        let in_frame = matches!(self.home(at), Some((_, crate::plan::Home::Frame { .. })));
        if in_frame && spot.dynamic.is_none() {
            return;
        }
        if width <= REGISTER_BITS {
            let value = self.load_bits(source.pointer, source.bit, width, source.bytes);
            return self.store(at, spot.dynamic, width, value);
        }
        let to = self.pointer(at, spot.dynamic);
        self.read_words(source, width, to);
    }

    /// Reads a wide field to words.
    fn read_words(&mut self, source: &Source, width: u32, to: Value) {
        let bit = self.number(u64::from(source.bit));
        let size = self.number(u64::from(width));
        let words = self.number(word_count(width) as u64);
        self.call_engine(
            run::read_words as *const u8,
            &[source.pointer, bit, size, to, words],
            false,
        );
    }

    fn read_varbit(&mut self, at: usize, width: u32, spot: &Spot, source: &mut Source) {
        let length = match source.varbit {
            Some(length) => length,
            None => self.number(0),
        };
        self.store(at, spot.dynamic, 32, length);
        let bit = self.number(u64::from(source.bit));
        let to = self.pointer(at + 1, spot.dynamic);
        let words = self.number(word_count(width) as u64);
        self.call_engine(
            run::read_words as *const u8,
            &[source.pointer, bit, length, to, words],
            false,
        );
        // The following fields lie this many bytes further on.
        let bytes = self.shifted_right(length, 3);
        source.pointer = self.b.ins().iadd(source.pointer, bytes);
    }

    /// `packet.lookahead`.
    pub(super) fn lookahead(&mut self, result: &Place) {
        let spot = self.spot(result);
        self.check_fault();
        let Some(spot) = spot else {
            return;
        };
        self.guarded(spot.guard, |g| {
            if spot.slice.is_some() {
                return g.look_at_slice(&spot);
            }
            let leaves = g.plan.storage.layout.leaves(spot.ty);
            let bits = g.plan.wire_bits(spot.ty);
            let total = g.number(u64::from(bits));
            g.require(total);
            let mut source = Source {
                pointer: g.here(total),
                bit: 0,
                bytes: bits.div_ceil(8),
                varbit: None,
            };
            g.read_leaves(&leaves, &spot, 0, &mut source);
            if matches!(spot.ty, Type::Header(_)) {
                let valid = g.number(1);
                g.store(spot.at, spot.dynamic, 1, valid);
                g.settle_union(&spot);
            }
        });
    }

    fn look_at_slice(&mut self, spot: &Spot) {
        let width = spot.width();
        let total = self.number(u64::from(width));
        self.require(total);
        let source = Source {
            pointer: self.here(total),
            bit: 0,
            bytes: width.div_ceil(8),
            varbit: None,
        };
        let value = if width <= REGISTER_BITS {
            Scalar::Register(self.load_bits(source.pointer, 0, width, source.bytes))
        } else {
            let to = self.scratch(word_count(width));
            self.read_words(&source, width, to);
            Scalar::Memory(to)
        };
        self.store_spot(spot, value);
    }

    /// `packet.advance`.
    pub(super) fn advance(&mut self, bits: &Expr) {
        let bits = self.index(bits);
        self.check_fault();
        self.require(bits);
        self.advance_by(bits);
    }
}
