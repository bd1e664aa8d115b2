//! Constants that are known while code is made: what follows from them is not left to the
//! machine.

use super::Gen;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};

/// Steps of a computation that are looked at for the greatest number.
const MOST_STEPS: u32 = 12;

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

    /// The greatest number that a value of 64 bits can be, as far as follows from how it is computed.
    pub(super) fn most(&self, value: Value) -> u64 {
        self.most_within(value, MOST_STEPS).unwrap_or(u64::MAX)
    }

    fn most_within(&self, value: Value, steps: u32) -> Option<u64> {
        if let Some(known) = self.known(value) {
            return Some(known);
        }
        let dfg = &self.b.func.dfg;
        let value = dfg.resolve_aliases(value);
        let ValueDef::Result(inst, 0) = dfg.value_def(value) else {
            return None;
        };
        let steps = steps.checked_sub(1)?;
        match dfg.insts[inst] {
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => {
                let bits = dfg.value_type(arg).bits();
                let most = (bits < 64).then(|| (1 << bits) - 1)?;
                let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(arg)) else {
                    return Some(most);
                };
                match dfg.insts[inst] {
                    InstructionData::Unary {
                        opcode: Opcode::Ireduce,
                        arg,
                    } if dfg.value_type(arg) == types::I64 => {
                        Some(self.most_within(arg, steps).unwrap_or(most).min(most))
                    }
                    _ => Some(most),
                }
            }
            InstructionData::Load {
                opcode: Opcode::Uload8,
                ..
            } => Some(u64::from(u8::MAX)),
            InstructionData::Binary {
                opcode,
                args: [a, b],
            } => {
                let of = |value| self.most_within(value, steps);
                match opcode {
                    Opcode::Urem => {
                        let most = self.known(b)?.checked_sub(1)?;
                        Some(of(a).unwrap_or(most).min(most))
                    }
                    Opcode::Iadd => of(a)?.checked_add(of(b)?),
                    Opcode::Imul => of(a)?.checked_mul(of(b)?),
                    Opcode::Ishl => of(a)?.checked_mul(1 << self.known(b).filter(|by| *by < 64)?),
                    Opcode::Ushr => {
                        let by = self.known(b).filter(|by| *by < 64)?;
                        Some(of(a).unwrap_or(u64::MAX) >> by)
                    }
                    Opcode::Band => match (of(a), of(b)) {
                        (Some(a), Some(b)) => Some(a.min(b)),
                        (a, b) => a.or(b),
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A value of 64 bits shifted to the right by a number of bits: a product with a power of two, or
    /// another such shift, in one step.
    pub(super) fn moved_right(&mut self, value: Value, by: u64) -> Value {
        let dfg = &self.b.func.dfg;
        if let ValueDef::Result(inst, 0) = dfg.value_def(dfg.resolve_aliases(value))
            && let InstructionData::Binary {
                opcode,
                args: [inner, amount],
            } = dfg.insts[inst]
            && let Some(amount) = self.known(amount)
        {
            let within = match opcode {
                Opcode::Ushr if amount + by < 64 => Some(amount + by),
                Opcode::Imul if amount.is_power_of_two() => {
                    let bits = u64::from(amount.trailing_zeros());
                    let is_whole = self.most(inner).checked_mul(amount).is_some();
                    (is_whole && bits <= by).then(|| by - bits)
                }
                _ => None,
            };
            match within {
                Some(0) => return inner,
                Some(within) => return self.moved_right(inner, within),
                None => {}
            }
        }
        let by = self.number(by);
        self.b.ins().ushr(value, by)
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

    /// The outcome of an unsigned comparison of 64 bits with a constant, if it follows from the greatest number
    /// that the value can be.
    fn follows(&self, code: IntCC, a: Value, b: Value) -> Option<bool> {
        let Some(limit) = self.known(b) else {
            self.known(a)?;
            return self.follows(code.swap_args(), b, a);
        };
        let most = self.most(a);
        match code {
            IntCC::UnsignedLessThan if most < limit => Some(true),
            IntCC::UnsignedLessThanOrEqual if most <= limit => Some(true),
            IntCC::UnsignedGreaterThan if most <= limit => Some(false),
            IntCC::UnsignedGreaterThanOrEqual if most < limit => Some(false),
            _ => None,
        }
    }

    /// A comparison of two registers, as a condition. One of 64 bits whose outcome follows is a constant.
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
        if narrow && let Some(holds) = self.follows(code, a, b) {
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
