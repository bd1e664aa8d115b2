//! Plan of a program's machine code: the variables in registers, those in memory, and those that
//! are read from the frame itself.

mod calls;
mod locks;
mod writes;

use locks::Locks;

pub(crate) use calls::{Binding, Calls, fixed_place};
pub(crate) use writes::params;

use rustc_hash::FxHashMap;
use stateplane_cells::LockPlan;
use stateplane_ir::{Op, Program, Stmt, StructId, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::{LeafKind, scalar_bits};
use stateplane_runtime::register::Placement;
use stateplane_runtime::{Register, StateError, Storage};
use std::ops::Range;

/// Scalars up to this width live in registers.
pub(crate) const REGISTER_BITS: u32 = 128;

/// Location of a scalar. All of them also have a place in the words of [`Storage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// In a register, wherever the compiler has one free.
    Register,
    /// In its words: it is too wide, or within a stack, whose index is computed.
    Memory,
    /// In the frame, at this bit from where this header of [`Plan::headers`] begins:
    /// nothing but `extract` writes it.
    Frame {
        /// The header.
        header: u32,
        /// Bits before it in the header.
        bit: u32,
    },
}

/// A scalar of the storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Width in bits.
    pub(crate) width: u32,
    /// Location of the scalar.
    pub(crate) home: Home,
}

/// A header of the packet with fields that are read from the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameHeader {
    /// Bytes that it takes.
    pub(crate) bytes: u32,
}

/// A program with what was decided about it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: Program,
    pub(crate) storage: Storage,
    /// For the first word of each scalar, where it lives.
    pub(crate) slots: Vec<Option<Slot>>,
    /// Headers with fields that are read from the frame.
    pub(crate) headers: Vec<FrameHeader>,
    /// Numbers of these headers by the word of their validity.
    pub(crate) header_at: FxHashMap<usize, u32>,
    /// Words of the packet's headers that say whether these are valid, where these words
    /// live in registers.
    pub(crate) validities: Vec<usize>,
    pub(crate) calls: Calls,
    /// Placements of the registers' elements.
    pub(crate) registers: Vec<Placement>,
    /// True if the parser may stand within a byte.
    pub(crate) unaligned: bool,
    /// True if headers that are no whole bytes are emitted.
    pub(crate) emits_bits: bool,
    /// True if the parser has loops.
    pub(crate) counts_transitions: bool,
    /// True if what is read of a frame may be read at any time behind the check of its length:
    /// nothing runs over again, and no bits are moved to other memory.
    pub(crate) reads_at_leisure: bool,
    /// True if there are stacks, whose `next` and `last` end a parser where they are none.
    pub(crate) parser_faults: bool,
    /// True if what is emitted has a length that is known but for which headers are valid.
    pub(crate) emits_plainly: bool,
    /// True if a header may be emitted over again.
    pub(crate) emits_often: bool,
    /// Bytes of the largest header that is extracted, looked at, or read where it lies,
    /// also of one that no state extracts, and of the largest element of a register: what
    /// is not there is read from as many zeros.
    pub(crate) largest: usize,
    /// True if words of the packet live in memory.
    pub(crate) uses_memory: bool,
    /// Locks of atomic blocks, if fellows of the engine run at the same time.
    pub(crate) locks: Option<Locks>,
}

impl Plan {
    /// Plans a verified program.
    pub(crate) fn new(program: Program, locks: Option<LockPlan>) -> Result<Plan, StateError> {
        let storage = Storage::new(&program)?;
        let calls = Calls::new(&program);
        let placements = Register::placements(&program, locks.as_ref())?;
        let mut plan = Plan {
            slots: vec![None; storage.words],
            headers: Vec::new(),
            header_at: FxHashMap::default(),
            validities: Vec::new(),
            calls,
            registers: placements.registers,
            locks: locks.map(|plan| Locks::new(&program, plan, placements.locks)),
            unaligned: false,
            emits_bits: false,
            counts_transitions: program.parsers.iter().any(has_cycle),
            reads_at_leisure: false,
            parser_faults: false,
            emits_plainly: false,
            emits_often: false,
            largest: 0,
            uses_memory: false,
            storage,
            program,
        };
        for var in 0..plan.program.vars.len() {
            plan.place(plan.program.vars[var].ty, plan.storage.bases[var], false);
        }
        plan.validities = plan.validities_of(plan.program.pipeline.headers, 0);
        plan.look_at_statements();
        if !plan.unaligned {
            let written = writes::written(&plan);
            plan.leave_in_frame(plan.program.pipeline.headers, 0, &written);
        }
        plan.uses_memory = !plan.cleared().is_empty();
        for header in &plan.headers {
            plan.largest = plan.largest.max(header.bytes as usize);
        }
        for placement in &plan.registers {
            plan.largest = plan.largest.max(placement.stride);
        }
        Ok(plan)
    }

    /// Words of the packet between blocks: with one for each header whose place in the frame is kept, and
    /// the one of [`Plan::dirty`].
    pub(crate) fn packet_words(&self) -> usize {
        self.dirty() + 1
    }

    /// The word that is 0 as long as all words in memory ([`Plan::cleared`]) are. Few packets write any,
    /// since most headers in stacks are of messages.
    pub(crate) fn dirty(&self) -> usize {
        self.storage.packet.end + self.headers.len()
    }

    /// Words of all variables but the packet's.
    pub(crate) fn local_words(&self) -> usize {
        self.storage.words - self.storage.packet.end
    }

    /// Words of the packet that have to be zero, or what was preserved, before its
    /// parser runs: those in memory. They are zero already while [`Plan::dirty`] is.
    pub(crate) fn cleared(&self) -> Vec<Range<usize>> {
        let mut cleared = vec![false; self.storage.packet.end];
        for at in self.storage.packet.clone() {
            if let Some(slot) = self.slots[at]
                && slot.home == Home::Memory
            {
                cleared[at..at + word_count(slot.width)].fill(true);
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for at in (0..cleared.len()).filter(|at| cleared[*at]) {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => ranges.push(at..at + 1),
            }
        }
        ranges
    }

    fn place(&mut self, ty: Type, at: usize, in_stack: bool) {
        let home = |width: u32| {
            if in_stack || width > REGISTER_BITS {
                Home::Memory
            } else {
                Home::Register
            }
        };
        match ty {
            Type::Stack(id) => {
                let (element, stride, count) = self.storage.layout.stack(id);
                self.set(at, 32, Home::Memory);
                for index in 0..count as usize {
                    self.place(element, at + 1 + index * stride, true);
                }
            }
            Type::Struct(id) | Type::Union(id) | Type::Header(id) => {
                if matches!(ty, Type::Header(_)) {
                    self.set(at, 1, home(1));
                }
                for field in 0..self.program.structs[id.index()].fields.len() {
                    let offset = self.storage.layout.field_offset(ty, field as u32);
                    let inner = self.program.structs[id.index()].fields[field].ty;
                    self.place(inner, at + offset, in_stack);
                }
            }
            Type::Varbit(width) => {
                self.set(at, 32, home(32));
                self.set(at + 1, width, Home::Memory);
            }
            scalar => {
                let width = scalar_bits(scalar);
                self.set(at, width, home(width));
            }
        }
    }

    fn set(&mut self, at: usize, width: u32, home: Home) {
        self.slots[at] = Some(Slot { width, home });
    }

    fn validities_of(&self, ty: Type, at: usize) -> Vec<usize> {
        match ty {
            Type::Struct(id) => {
                let fields = &self.program.structs[id.index()].fields;
                let fields = fields.iter().enumerate();
                let words = fields.flat_map(|(number, field)| {
                    let offset = self.storage.layout.field_offset(ty, number as u32);
                    self.validities_of(field.ty, at + offset)
                });
                words.collect()
            }
            Type::Header(_) => vec![at],
            _ => Vec::new(),
        }
    }

    /// Lets the fields that only `extract` writes stay in the frame, of headers that
    /// are neither in stacks nor in unions nor have varbits.
    fn leave_in_frame(&mut self, ty: Type, at: usize, written: &[bool]) {
        match ty {
            Type::Struct(id) => {
                for field in 0..self.program.structs[id.index()].fields.len() {
                    let offset = self.storage.layout.field_offset(ty, field as u32);
                    let inner = self.program.structs[id.index()].fields[field].ty;
                    self.leave_in_frame(inner, at + offset, written);
                }
            }
            Type::Header(id) => {
                let layout = &self.storage.layout;
                let leaves = layout.header_leaves(id);
                let bits = layout.header_bits(id);
                let narrow = |leaf: &stateplane_runtime::layout::Leaf| {
                    leaf.kind == LeafKind::Scalar && leaf.width <= REGISTER_BITS
                };
                if !leaves.iter().all(narrow) || !bits.is_multiple_of(8) {
                    return;
                }
                let header = self.headers.len() as u32;
                let mut bit = 0;
                let mut any = false;
                let leaves = leaves.to_vec();
                for leaf in leaves {
                    let word = at + 1 + leaf.offset;
                    if !written[word] {
                        self.set(word, leaf.width, Home::Frame { header, bit });
                        any = true;
                    }
                    bit += leaf.width;
                }
                if any {
                    self.headers.push(FrameHeader { bytes: bits / 8 });
                    self.header_at.insert(at, header);
                }
            }
            _ => {}
        }
    }

    /// Bits that a header or another value takes in a packet, varbits left out.
    pub(crate) fn wire_bits(&self, ty: Type) -> u32 {
        let leaves = self.storage.layout.leaves(ty);
        let scalars = leaves.iter().filter(|leaf| leaf.kind == LeafKind::Scalar);
        scalars.map(|leaf| leaf.width).sum()
    }

    fn look_at_statements(&mut self) {
        let program = &self.program;
        let (mut unaligned, mut emits_bits, mut emits_often) = (false, false, false);
        let mut largest = 0;
        each_statement(program, &mut |stmt| {
            let Stmt::Op(op) = stmt else { return };
            match op {
                Op::Extract { header, .. } => {
                    if let Some(Type::Header(id)) = program.place_type(header) {
                        let bits = self.storage.layout.header_bits(id);
                        largest = largest.max(bits);
                        unaligned |= !bits.is_multiple_of(8);
                    }
                }
                Op::Lookahead { result } => {
                    if let Some(ty) = program.place_type(result) {
                        largest = largest.max(self.wire_bits(ty));
                    }
                }
                Op::Advance { bits } => {
                    let constant = match &bits.kind {
                        stateplane_ir::ExprKind::Const(stateplane_ir::Const::Bits(bits)) => {
                            Some(stateplane_runtime::bits::low_word(bits))
                        }
                        _ => None,
                    };
                    unaligned |= constant.is_none_or(|bits| bits % 8 != 0);
                }
                _ => {}
            }
        });
        // Emitted headers: any header within the emitted type.
        each_statement(program, &mut |stmt| {
            if let Stmt::Op(Op::Emit { value }) = stmt
                && let Some(ty) = program.place_type(value)
            {
                emits_bits |= self.has_bit_header(ty);
            }
        });
        each_statement(program, &mut |stmt| {
            if let Stmt::Loop { body, update } = stmt {
                // With what a loop calls.
                let mut inner = false;
                for stmts in [body, update] {
                    each_within(stmts, &mut |stmt| {
                        inner |= matches!(stmt, Stmt::Op(Op::Emit { .. }) | Stmt::Call { .. });
                    });
                }
                emits_often |= inner;
            }
        });
        let mut again = self.counts_transitions || !self.calls.inline_all;
        each_statement(program, &mut |stmt| {
            again |= matches!(stmt, Stmt::Loop { .. });
        });
        self.reads_at_leisure = !again && !unaligned;
        self.emits_often = emits_often || !self.calls.inline_all;
        self.unaligned = unaligned;
        self.emits_bits = emits_bits;
        let fields = program.structs.iter().flat_map(|def| &def.fields);
        let varbit = fields
            .into_iter()
            .any(|field| matches!(field.ty, Type::Varbit(_)));
        self.emits_plainly = !emits_bits && !self.emits_often && !varbit;
        self.parser_faults = !self.program.stacks.is_empty();
        self.largest = largest.div_ceil(8) as usize;
    }

    fn has_bit_header(&self, ty: Type) -> bool {
        let within = |id: StructId| {
            let fields = &self.program.structs[id.index()].fields;
            fields.iter().any(|field| self.has_bit_header(field.ty))
        };
        match ty {
            Type::Header(id) => {
                // A varbit has whole bytes; what is before it must have, too.
                let mut bits = 0;
                let leaves = self.storage.layout.header_leaves(id);
                let odd = leaves.iter().any(|leaf| {
                    let odd = leaf.kind == LeafKind::Varbit && bits % 8 != 0;
                    bits += leaf.width * u32::from(leaf.kind == LeafKind::Scalar);
                    odd
                });
                odd || bits % 8 != 0
            }
            Type::Struct(id) | Type::Union(id) => within(id),
            Type::Stack(id) => self.has_bit_header(self.storage.layout.stack(id).0),
            _ => false,
        }
    }
}

/// True if a parser can come to a state a second time.
fn has_cycle(parser: &stateplane_ir::Parser) -> bool {
    use stateplane_ir::{Target, Transition};
    // Three colours: unseen, on the path, done.
    let mut colours = vec![0u8; parser.states.len()];
    let mut path = vec![(parser.start.index(), 0usize)];
    colours[parser.start.index()] = 1;
    while let Some((state, next)) = path.last_mut() {
        let targets: Vec<Target> = match &parser.states[*state].transition {
            Transition::To(target) => vec![*target],
            Transition::Select { cases, .. } => cases.iter().map(|(_, target)| *target).collect(),
        };
        let Some(target) = targets.get(*next) else {
            colours[*state] = 2;
            path.pop();
            continue;
        };
        *next += 1;
        if let Target::State(target) = target {
            match colours[target.index()] {
                0 => {
                    colours[target.index()] = 1;
                    path.push((target.index(), 0));
                }
                1 => return true,
                _ => {}
            }
        }
    }
    false
}

/// Calls `see` for every statement of a list, outer ones first.
pub(crate) fn each_within<'p>(stmts: &'p [Stmt], see: &mut dyn FnMut(&'p Stmt)) {
    for stmt in stmts {
        see(stmt);
        match stmt {
            Stmt::If {
                then, otherwise, ..
            } => {
                each_within(then, see);
                each_within(otherwise, see);
            }
            Stmt::Switch { cases, default, .. } => {
                for (_, body) in cases {
                    each_within(body, see);
                }
                each_within(default, see);
            }
            Stmt::Loop { body, update } => {
                each_within(body, see);
                each_within(update, see);
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => each_within(body, see),
            _ => {}
        }
    }
}

/// Calls `see` for every statement of a program.
pub(crate) fn each_statement<'p>(program: &'p Program, see: &mut dyn FnMut(&'p Stmt)) {
    for parser in &program.parsers {
        each_within(&parser.init, see);
        for state in &parser.states {
            each_within(&state.body, see);
        }
    }
    for control in &program.controls {
        each_within(&control.body, see);
    }
    for action in &program.actions {
        each_within(&action.body, see);
    }
    for function in &program.functions {
        each_within(&function.body, see);
    }
}
