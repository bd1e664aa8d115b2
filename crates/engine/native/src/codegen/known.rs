//! Constants that are known while code is made: what follows from them is not left to the
//! machine.

use super::Gen;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};

impl Gen<'_, '_> {
    /// The number that a value of at most 64 bits certainly has.
    pub(super) fn known(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value)) else {
            return None;
        };
        match dfg.insts[inst] {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => Some(imm.bits() as u64),
            _ => None,
        }
    }

    /// The bytes that a value certainly lies behind the frame's start.
    pub(super) fn known_place(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        let value = dfg.resolve_aliases(value);
        if value == self.frame {
            return Some(0);
        }
        let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
            return None;
        };
        match dfg.insts[inst] {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [base, offset],
            } if base == self.frame => self.known(offset),
            _ => None,
        }
    }

    /// Both halves of a register of 128 bits, the lower one first.
    pub(super) fn halves(&mut self, value: Value) -> (Value, Value) {
        let dfg = &self.b.func.dfg;
        if let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value))
            && let InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args: [low, high],
            } = dfg.insts[inst]
        {
            return (low, high);
        }
        self.b.ins().isplit(value)
    }

    /// The sum of two values of 64 bits.
    pub(super) fn sum(&mut self, a: Value, b: Value) -> Value {
        match (self.known(a), self.known(b)) {
            (Some(a), Some(b)) => self.number(a.wrapping_add(b)),
            (_, Some(0)) => a,
            (Some(0), _) => b,
            _ => self.b.ins().iadd(a, b),
        }
    }

    /// Both of two scalars of one bit.
    pub(super) fn both(&mut self, a: Value, b: Value) -> Value {
        match (self.known(a), self.known(b)) {
            (Some(0), _) | (_, Some(1)) => a,
            (_, Some(0)) | (Some(1), _) => b,
            _ => self.b.ins().band(a, b),
        }
    }

    /// Either of two scalars of one bit.
    pub(super) fn either(&mut self, a: Value, b: Value) -> Value {
        match (self.known(a), self.known(b)) {
            (Some(1), _) | (_, Some(0)) => a,
            (_, Some(1)) | (Some(0), _) => b,
            _ => self.b.ins().bor(a, b),
        }
    }

    /// The bits of two values of 64 bits.
    pub(super) fn united(&mut self, a: Value, b: Value) -> Value {
        match (self.known(a), self.known(b)) {
            (_, Some(0)) => a,
            (Some(0), _) => b,
            _ => self.b.ins().bor(a, b),
        }
    }

    /// The opposite of a scalar of one bit.
    pub(super) fn opposite(&mut self, value: Value) -> Value {
        match self.known(value) {
            Some(known) => self.number(known ^ 1),
            None => {
                let one = self.number(1);
                self.b.ins().bxor(value, one)
            }
        }
    }

    /// A comparison of two registers, as a condition. Of two constants of 64 bits it is one.
    pub(super) fn compared(&mut self, code: IntCC, a: Value, b: Value) -> Value {
        let narrow = self.b.func.dfg.value_type(a) == types::I64;
        if let (true, Some(x), Some(y)) = (narrow, self.known(a), self.known(b)) {
            let (signed_x, signed_y) = (x as i64, y as i64);
            let holds = match code {
                IntCC::Equal => x == y,
                IntCC::NotEqual => x != y,
                IntCC::UnsignedLessThan => x < y,
                IntCC::UnsignedLessThanOrEqual => x <= y,
                IntCC::UnsignedGreaterThan => x > y,
                IntCC::UnsignedGreaterThanOrEqual => x >= y,
                IntCC::SignedLessThan => signed_x < signed_y,
                IntCC::SignedLessThanOrEqual => signed_x <= signed_y,
                IntCC::SignedGreaterThan => signed_x > signed_y,
                IntCC::SignedGreaterThanOrEqual => signed_x >= signed_y,
            };
            return self.b.ins().iconst(types::I8, i64::from(holds));
        }
        self.b.ins().icmp(code, a, b)
    }

    /// Goes on in a block as [`enter`](Self::enter) does if anything jumps there; whether
    /// anything does.
    pub(super) fn go_on(&mut self, block: Block) -> bool {
        let entered = self.entered.contains(&block);
        if entered {
            self.enter(block);
        } else {
            self.live = false;
        }
        entered
    }
}
