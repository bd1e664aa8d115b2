//! IR to machine code.
//!
//! A program becomes three functions: `ingress` (parser, checksums, ingress and, where
//! nothing comes between, egress), `egress`, and `parse` if packets are cloned in
//! ingress. Calls are replaced by what they call; scalars become values of registers
//! wherever their place is known when code is made. For a frame that came by a port, what
//! follows the parser is made anew for each of the parser's ends, as far as a budget goes
//! ([`paths`]).

mod bits;
mod block;
mod call;
mod deferred;
mod deparse;
mod expr;
mod hash;
mod known;
mod locks;
mod lookup;
mod ops;
mod packet;
mod parser;
mod paths;
mod place;
mod profile;
mod rare;
mod scalar;
mod stmt;
mod table;
mod value;
mod wide;

pub(crate) use block::{Code, Function, Kept, compile};

use crate::context::Context;
use crate::plan::{Home, Plan};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, AliasRegion, AliasRegionData, Block, InstBuilder, MemFlagsData, Signature,
    StackSlotData, StackSlotKind, Type as Clif, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, Variable};
use rustc_hash::{FxHashMap, FxHashSet};
use stateplane_ir::{Callee, Program};
use std::mem::offset_of;

/// Bytes of a word of storage.
const WORD_BYTES: usize = 16;

/// Exit blocks of a callable's body.
#[derive(Clone, Copy)]
struct Frame {
    /// Behind the callable.
    after: Block,
    /// To the end of the architecture's block.
    exit: Block,
    /// To the end of the parser, with an error in [`Gen::error`].
    reject: Block,
    /// Atomic blocks around the callable, one within the other.
    depth: u32,
}

/// Disjoint kinds of memory: frames, variables and intermediate values, the context, state that
/// outlives a packet, and deparsed bytes.
#[derive(Clone, Copy)]
struct Regions {
    frame: AliasRegion,
    storage: AliasRegion,
    context: AliasRegion,
    state: AliasRegion,
    out: AliasRegion,
}

/// Makes one function.
struct Gen<'a, 'f> {
    b: FunctionBuilder<'f>,
    plan: &'a Plan,
    /// First word of each variable, which a parameter bound to its argument's place
    /// shares with that.
    bases: Vec<usize>,
    /// The register of each word that has one, and that of the upper half of a wide one.
    registers: Vec<Option<(Variable, Variable)>>,
    /// Constants that were made, in the entry block.
    numbers: FxHashMap<u64, Value>,
    entry: Block,
    /// Words whose values were asked for.
    used: Vec<bool>,
    /// Offset in memory of each header of [`Plan::headers`].
    origins: Vec<Variable>,
    call_convention: CallConv,
    context: Value,
    packet: Value,
    locals: Value,
    frame: Value,
    frame_length: Value,
    /// Bit of the frame that the parser reads next.
    cursor: Variable,
    transitions: Variable,
    rounds: Variable,
    /// True if an expression met the end of a stack in the parser.
    fault: Variable,
    /// Number of the parser error.
    error: Variable,
    /// Bytes emitted.
    emitted: Variable,
    /// Address of the emitted bytes, if their number has a known limit.
    out: Variable,
    requests: Variable,
    /// First byte that was not parsed.
    rest: Variable,
    in_parser: bool,
    /// True if nothing is counted.
    quiet: bool,
    /// True if it is known that the frame came by a port and goes on at once ([`Context::fresh`]).
    fresh: bool,
    /// In the parser, what is known of the packet's words.
    values: paths::Known,
    /// True if the current block goes on.
    live: bool,
    frames: Vec<Frame>,
    /// Blocks to which `break` and `continue` of the innermost loop jump, and the atomic blocks
    /// around it.
    loops: Vec<(Block, Block, u32)>,
    scratch: Vec<Scratch>,
    regions: Regions,
    /// Bytes that are emitted at most without asking for room.
    room: usize,
    /// Callables that are made once, and from where they are called.
    shared: Vec<call::Shared>,
    locks: locks::Locks,
    /// Places that few packets come to.
    rare: rare::Rare,
    deferred: deferred::Deferred,
    /// Of an earlier pass, if there was one.
    costs: Option<paths::Costs>,
    measured: paths::Costs,
    /// True if few packets come to the blocks that are entered.
    cold: bool,
    /// Blocks that something jumps to.
    entered: FxHashSet<Block>,
    /// Messages of this function's statements that are put together at run time.
    sites: &'a mut Vec<Site>,
}

struct Scratch {
    slot: cranelift_codegen::ir::StackSlot,
    words: usize,
    free: bool,
}

/// A statement whose text or types are needed while it runs.
#[derive(Clone, Debug)]
pub(crate) enum Site {
    /// `digest`.
    Digest {
        name: String,
        shape: Option<stateplane_runtime::Shape>,
    },
    /// `log_msg`: the text, and the values' widths and whether they are `bool`.
    Log {
        format: String,
        values: Vec<(u32, bool)>,
    },
    /// `assert`.
    Assert { location: String },
}

/// The type of the register of a scalar.
fn clif(width: u32) -> Clif {
    if width <= 64 { types::I64 } else { types::I128 }
}

impl<'a, 'f> Gen<'a, 'f> {
    fn new(
        mut b: FunctionBuilder<'f>,
        plan: &'a Plan,
        sites: &'a mut Vec<Site>,
        call_convention: CallConv,
    ) -> Gen<'a, 'f> {
        let mut region = |name: &'static str, number| {
            let data = AliasRegionData {
                user_id: number,
                description: name.into(),
            };
            b.func.dfg.alias_regions.insert(data)
        };
        let regions = Regions {
            frame: region("frame", 0),
            storage: region("storage", 1),
            context: region("context", 2),
            state: region("state", 3),
            out: region("out", 4),
        };
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let context = b.block_params(entry)[0];
        let mut number = || b.declare_var(types::I64);
        let (cursor, transitions, rounds, fault) = (number(), number(), number(), number());
        let (error, emitted, requests, rest) = (number(), number(), number(), number());
        let out = number();
        let origins = plan.headers.iter().map(|_| number()).collect();
        let mut made = Gen {
            bases: plan.storage.bases.clone(),
            registers: vec![None; plan.storage.words],
            numbers: FxHashMap::default(),
            entry,
            used: vec![false; plan.storage.words],
            origins,
            call_convention,
            context,
            packet: context,
            locals: context,
            frame: context,
            frame_length: context,
            cursor,
            transitions,
            rounds,
            fault,
            error,
            emitted,
            out,
            requests,
            rest,
            in_parser: false,
            quiet: false,
            fresh: false,
            values: paths::Known::new(),
            live: true,
            frames: Vec::new(),
            loops: Vec::new(),
            scratch: Vec::new(),
            regions,
            room: 0,
            shared: Vec::new(),
            locks: locks::Locks::default(),
            rare: rare::Rare::default(),
            deferred: deferred::Deferred::default(),
            costs: None,
            measured: paths::Costs::new(),
            cold: false,
            entered: FxHashSet::default(),
            sites,
            plan,
            b,
        };
        made.packet = made.given(offset_of!(Context, packet));
        made.locals = made.given(offset_of!(Context, locals));
        made.frame = made.given(offset_of!(Context, frame));
        made.frame_length = made.given(offset_of!(Context, frame_length));
        made.start_locks();
        made
    }

    fn program(&self) -> &'a Program {
        &self.plan.program
    }

    fn flags(region: AliasRegion) -> MemFlagsData {
        MemFlagsData::new()
            .with_notrap()
            .with_alias_region(Some(region))
    }

    /// Flags for memory that does not change during a run: an unused load is removed, and a load
    /// used on some paths alone moves there.
    fn lasting(region: AliasRegion) -> MemFlagsData {
        Self::flags(region).with_readonly().with_can_move()
    }

    fn context_field(&mut self, offset: usize) -> Value {
        let flags = Self::flags(self.regions.context);
        self.b
            .ins()
            .load(types::I64, flags, self.context, offset as i32)
    }

    /// A field of the context that the engine sets before the run and that does not change during
    /// it.
    fn given(&mut self, offset: usize) -> Value {
        let flags = Self::lasting(self.regions.context);
        self.b
            .ins()
            .load(types::I64, flags, self.context, offset as i32)
    }

    fn set_context_field(&mut self, offset: usize, value: Value) {
        let flags = Self::flags(self.regions.context);
        self.b
            .ins()
            .store(flags, value, self.context, offset as i32);
    }

    /// A constant of 64 bits: always the same value, so that paths on which a variable has one
    /// number meet without a block parameter.
    fn number(&mut self, value: u64) -> Value {
        let made = self.numbers.entry(value);
        *made.or_insert_with(|| {
            let mut entry = FuncCursor::new(self.b.func).at_first_insertion_point(self.entry);
            entry.ins().iconst(types::I64, value as i64)
        })
    }

    /// A constant in the register of a scalar of `width` bits.
    fn constant(&mut self, value: u128, width: u32) -> Value {
        let low = self.number(value as u64);
        if width <= 64 {
            return low;
        }
        let high = self.number((value >> 64) as u64);
        self.b.ins().iconcat(low, high)
    }

    fn set_number(&mut self, variable: Variable, value: u64) {
        let value = self.number(value);
        self.b.def_var(variable, value);
    }

    /// The register of a word, and that of its upper half if it is wide.
    fn register(&mut self, at: usize) -> (Variable, Variable) {
        match self.registers[at] {
            Some(register) => register,
            None => {
                let halves = [(); 2].map(|()| self.b.declare_var(types::I64));
                self.registers[at] = Some(halves.into());
                halves.into()
            }
        }
    }

    /// The value of a word that lives in a register.
    fn read_register(&mut self, at: usize, width: u32) -> Value {
        self.deferred.note_read(at);
        let (low, high) = self.register(at);
        let low = self.b.use_var(low);
        if width <= 64 {
            return low;
        }
        let high = self.b.use_var(high);
        self.b.ins().iconcat(low, high)
    }

    fn write_register(&mut self, at: usize, width: u32, value: Value) {
        self.deferred.note_write(at);
        self.define_register(at, width, value);
    }

    /// Gives a word the value that it has, or is to have.
    fn define_register(&mut self, at: usize, width: u32, value: Value) {
        let registers = self.register(at);
        if width <= 64 {
            return self.b.def_var(registers.0, value);
        }
        let (low, high) = self.halves(value);
        self.b.def_var(registers.0, low);
        self.b.def_var(registers.1, high);
    }

    /// Pointer to which the offset of a word is relative, and that offset.
    fn address(&self, at: usize) -> (Value, usize) {
        self.deferred.note_memory();
        let packet = self.plan.storage.packet.end;
        if at < packet {
            (self.packet, at * WORD_BYTES)
        } else {
            (self.locals, (at - packet) * WORD_BYTES)
        }
    }

    fn block(&mut self) -> Block {
        self.b.create_block()
    }

    /// Goes on in a block that nothing but callables that are made once will jump to any
    /// more.
    fn enter(&mut self, block: Block) {
        self.enter_open(block);
        // Facts known at the jumps are then known here.
        if self.plan.calls.inline_all {
            self.b.seal_block(block);
        }
    }

    /// Goes on in a block that more will jump to.
    fn enter_open(&mut self, block: Block) {
        self.b.switch_to_block(block);
        if self.cold {
            self.b.set_cold_block(block);
        }
        self.live = true;
    }

    fn jump(&mut self, block: Block) {
        if self.live {
            self.b.ins().jump(block, &[]);
            self.entered.insert(block);
            self.live = false;
        }
    }

    /// Ends the block: to `then` if `condition` is not zero. Of a constant, nothing leads
    /// to the other.
    fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        if let Some(holds) = self.known(condition) {
            return self.jump(if holds != 0 { then } else { otherwise });
        }
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
        self.entered.extend([then, otherwise]);
        self.live = false;
    }

    /// Runs `body` if `guard`, if there is one, is not zero.
    fn guarded(&mut self, guard: Option<Value>, body: impl FnOnce(&mut Self)) {
        let Some(guard) = guard else {
            return body(self);
        };
        let (then, after) = (self.block(), self.block());
        self.branch(guard, then, after);
        if self.go_on(then) {
            body(self);
            self.jump(after);
        }
        self.go_on(after);
    }

    /// Stack memory for a value of `words` words, until the statement ends.
    fn scratch(&mut self, words: usize) -> Value {
        let found = self
            .scratch
            .iter_mut()
            .find(|scratch| scratch.free && scratch.words == words);
        let slot = match found {
            Some(scratch) => {
                scratch.free = false;
                scratch.slot
            }
            None => {
                let size = (words * WORD_BYTES) as u32;
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4);
                let slot = self.b.create_sized_stack_slot(data);
                self.scratch.push(Scratch {
                    slot,
                    words,
                    free: false,
                });
                slot
            }
        };
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    fn free_scratch(&mut self) {
        for scratch in &mut self.scratch {
            scratch.free = true;
        }
    }

    /// Calls a function of the engine; all arguments and the result are 64 bits.
    fn call_engine(&mut self, function: *const u8, args: &[Value], returns: bool) -> Option<Value> {
        let mut signature = Signature::new(self.call_convention);
        signature.params = vec![AbiParam::new(types::I64); args.len()];
        if returns {
            signature.returns.push(AbiParam::new(types::I64));
        }
        let signature = self.b.import_signature(signature);
        let address = self.number(function as usize as u64);
        let call = self.b.ins().call_indirect(signature, address, args);
        returns.then(|| self.b.inst_results(call)[0])
    }

    fn call_for(&mut self, function: *const u8, args: &[Value]) -> Value {
        match self.call_engine(function, args, true) {
            Some(value) => value,
            None => self.number(0),
        }
    }

    fn frame_of(&self) -> Frame {
        self.frames[self.frames.len() - 1]
    }

    /// Ends the block with a parser error.
    fn reject(&mut self, error: u32) {
        self.leave_blocks(0);
        self.set_number(self.error, u64::from(error));
        let reject = self.frame_of().reject;
        self.jump(reject);
    }

    /// Ends the parser if an expression met the end of a stack in it.
    fn check_fault(&mut self) {
        if !self.in_parser || !self.plan.parser_faults || !self.live {
            return;
        }
        let fault = self.b.use_var(self.fault);
        let (failed, fine) = (self.block(), self.block());
        self.branch(fault, failed, fine);
        if self.go_on(failed) {
            self.set_number(self.fault, 0);
            self.reject(stateplane_runtime::parser::core_error::STACK_OUT_OF_BOUNDS);
        }
        self.go_on(fine);
    }

    fn home(&self, at: usize) -> Option<(u32, Home)> {
        let slot = self.plan.slots[at]?;
        Some((slot.width, slot.home))
    }

    fn inlines(&self, callee: Callee) -> bool {
        self.plan.calls.inlines(callee)
    }
}
