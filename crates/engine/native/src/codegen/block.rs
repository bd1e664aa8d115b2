//! The functions of a program: the blocks of the pipeline one after the other, and what
//! the architecture does between them.

use super::deferred::Deferred;
use super::paths::{self, Costs};
use super::{Frame, Gen, Site};
use crate::context::{Context, ended, request};
use crate::plan::{Home, Plan};
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, Block, InstBuilder, Value, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use stateplane_ir::passes::parses_only;
use stateplane_ir::{CloneKind, ControlId, LOOP_LIMIT, MatchKind, Op, Stmt};
use stateplane_runtime::DROP_PORT;
use std::mem::offset_of;
use std::ops::Range;

/// A function of a program.
pub(crate) type Function = unsafe extern "C" fn(*mut Context) -> u64;

/// Machine code of a program. The functions live as long as it does.
pub(crate) struct Code {
    module: Option<JITModule>,
    /// Parser, VerifyChecksum, ingress, and perhaps the rest; returns how it ended.
    pub(crate) ingress: Function,
    /// Egress, ComputeChecksum and deparser; returns how it ended.
    pub(crate) egress: Function,
    /// The parser alone, for packets that ingress clones.
    pub(crate) parse: Option<Function>,
    /// The parser, and announcements of the lookups that will follow; `None` where the
    /// parser does more than parse.
    pub(crate) announce: Option<Function>,
    /// Statements whose texts are put together at run time.
    pub(crate) sites: Vec<Site>,
    /// Bytes that the deparser writes at most without asking for room.
    pub(crate) room: usize,
    /// Bytes of machine code.
    pub(crate) bytes: usize,
    /// Lookups that are made in side exits alone, of all ends of the parser.
    pub(crate) deferred: usize,
    /// Words of a packet between ingress and egress that egress, or a later pass, may read.
    pub(crate) kept: Kept,
}

/// Words that are kept in memory between ingress and egress.
pub(crate) struct Kept {
    /// Ranges that have them all, and a few more.
    pub(crate) ranges: Vec<Range<usize>>,
    /// The words themselves.
    pub(crate) words: Vec<usize>,
    /// Those of them that may have more than 64 bits.
    pub(crate) upper: Vec<usize>,
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code")
            .field("bytes", &self.bytes)
            .field("deferred", &self.deferred)
            .finish_non_exhaustive()
    }
}

// SAFETY: code does not change once it is made, and the module is only touched to free
// its memory.
#[allow(unsafe_code, reason = "engines on several threads share the code")]
unsafe impl Send for Code {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "engines on several threads share the code")]
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the functions are called only through this value's owner, which
            // gives them up together with it.
            #[allow(unsafe_code, reason = "frees the code's memory")]
            unsafe {
                module.free_memory();
            }
        }
    }
}

/// Function that is generated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Ingress,
    Egress,
    Parse,
    Announce,
}

/// Makes the code of a program.
///
/// # Errors
///
/// Returns the error of the code generator, as its text: no machine code for this processor, or a
/// program that is too large; with `verify`, what its verifier objects to.
pub(crate) fn compile(plan: &Plan, verify: bool) -> Result<Code, String> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_probestack", "false"),
        ("enable_verifier", if verify { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let isa = cranelift_native::builder().map_err(str::to_owned)?;
    let isa = isa
        .finish(settings::Flags::new(flags))
        .map_err(|error| error.to_string())?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let mut maker = Maker {
        plan,
        module: &mut module,
        frontend: FunctionBuilderContext::new(),
        sites: Vec::new(),
        kept: vec![false; plan.storage.packet.end],
        room: 0,
        bytes: 0,
        deferred: 0,
    };
    for list in &plan.storage.field_lists {
        for leaf in &list.leaves {
            for (at, _) in stateplane_runtime::storage::parts(*leaf) {
                maker.kept[at] = true;
            }
        }
    }
    // Ingress keeps the values that egress reads.
    let egress = maker.function(Part::Egress)?;
    let ingress = maker.function(Part::Ingress)?;
    let parse = if clones_in_ingress(plan) {
        Some(maker.function(Part::Parse)?)
    } else {
        None
    };
    let announce = if announces(plan) {
        Some(maker.function(Part::Announce)?)
    } else {
        None
    };
    let kept = Kept::new(plan, &maker.kept);
    let (sites, room, bytes) = (maker.sites, maker.room, maker.bytes);
    let deferred = maker.deferred;
    module
        .finalize_definitions()
        .map_err(|error| error.to_string())?;
    let function = |id: FuncId| {
        let address = module.get_finalized_function(id);
        // SAFETY: the function has this type; it was made a moment ago.
        #[allow(unsafe_code, reason = "calls what was generated")]
        unsafe {
            std::mem::transmute::<*const u8, Function>(address)
        }
    };
    Ok(Code {
        ingress: function(ingress),
        egress: function(egress),
        parse: parse.map(function),
        announce: announce.map(function),
        module: Some(module),
        sites,
        room,
        bytes,
        deferred,
        kept,
    })
}

/// Words between two ranges that are copied with them.
const GAP: usize = 4;

impl Kept {
    /// Words of `kept`, those that live in memory, and the places of headers.
    fn new(plan: &Plan, kept: &[bool]) -> Kept {
        let mut all = kept.to_vec();
        for range in plan.cleared() {
            all[range].fill(true);
        }
        all.resize(plan.packet_words(), true);
        let words: Vec<usize> = (0..all.len()).filter(|at| all[*at]).collect();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for &at in &words {
            match ranges.last_mut() {
                Some(last) if at - last.end <= GAP => last.end = at + 1,
                _ => ranges.push(at..at + 1),
            }
        }
        // A word in the middle of a wide scalar has no slot; a header's place is a number.
        let is_narrow = |at: usize| match plan.slots.get(at) {
            _ if at >= plan.storage.packet.end => true,
            Some(Some(slot)) => slot.width <= 64,
            _ => false,
        };
        let upper = words.iter().copied().filter(|at| !is_narrow(*at));
        Kept {
            upper: upper.collect(),
            ranges,
            words,
        }
    }
}

fn clones_in_ingress(plan: &Plan) -> bool {
    let mut clones = false;
    crate::plan::each_statement(&plan.program, &mut |stmt| {
        clones |= matches!(
            stmt,
            Stmt::Op(Op::Clone {
                kind: CloneKind::IngressToEgress,
                ..
            })
        );
    });
    clones
}

/// True if lookups can be announced: there is a table of exact keys or prefixes, and the parser
/// leaves no trace.
fn announces(plan: &Plan) -> bool {
    let announced = |table: &stateplane_ir::Table| {
        let mut keys = table.keys.iter();
        !table.keys.is_empty()
            && keys.all(|key| matches!(key.match_kind, MatchKind::Exact | MatchKind::Lpm))
    };
    parses_only(&plan.program) && plan.program.tables.iter().any(announced)
}

struct Maker<'a> {
    plan: &'a Plan,
    module: &'a mut JITModule,
    frontend: FunctionBuilderContext,
    sites: Vec<Site>,
    /// Words of the packet that ingress keeps for egress and later packets.
    kept: Vec<bool>,
    room: usize,
    bytes: usize,
    deferred: usize,
}

impl Maker<'_> {
    fn function(&mut self, part: Part) -> Result<FuncId, String> {
        let mut context = self.module.make_context();
        context
            .func
            .signature
            .params
            .push(AbiParam::new(types::I64));
        context
            .func
            .signature
            .returns
            .push(AbiParam::new(types::I64));
        let func = &mut context.func;
        if part == Part::Ingress && paths::has_ways(self.plan) {
            let found = self.generate(part, Deferred::finding(), None, func)?;
            self.forget(&found, func);
            let costs = Some(found.measured);
            let deferring = Deferred::deferring(found.deferred);
            let made = self.generate(part, deferring, costs.clone(), func)?;
            debug_assert!(!made.deferred.has_failed(), "a lookup is needed in place");
            self.deferred = made.deferred.count();
            if made.deferred.has_failed() {
                self.forget(&made, func);
                self.generate(part, Deferred::default(), costs, func)?;
                self.deferred = 0;
            }
        } else {
            self.generate(part, Deferred::default(), None, func)?;
        }
        let name = match part {
            Part::Ingress => "ingress",
            Part::Egress => "egress",
            Part::Parse => "parse",
            Part::Announce => "announce",
        };
        let id = self
            .module
            .declare_function(name, Linkage::Export, &context.func.signature)
            .map_err(|error| error.to_string())?;
        self.module
            .define_function(id, &mut context)
            .map_err(|error| format!("{error:?}"))?;
        let compiled = context.compiled_code();
        self.bytes += compiled.map_or(0, |code| code.code_buffer().len());
        self.module.clear_context(&mut context);
        Ok(id)
    }

    /// Undoes what [`Maker::generate`] made.
    fn forget(&mut self, made: &Made, func: &mut ir::Function) {
        self.sites.truncate(made.sites);
        self.room = made.room;
        let (name, signature) = (func.name.clone(), func.signature.clone());
        *func = ir::Function::with_name_signature(name, signature);
    }

    /// Generates a function, in which lookups are found or deferred, and the code behind ends of the
    /// parser is measured or ordered by `costs`.
    fn generate(
        &mut self,
        part: Part,
        deferred: Deferred,
        costs: Option<Costs>,
        func: &mut ir::Function,
    ) -> Result<Made, String> {
        let (sites, room) = (self.sites.len(), self.room);
        let call_convention = func.signature.call_conv;
        let config = self.module.target_config();
        let builder = FunctionBuilder::new(func, &mut self.frontend);
        let mut made = Gen::new(builder, self.plan, &mut self.sites, call_convention);
        made.deferred = deferred;
        made.costs = costs;
        match part {
            Part::Egress => {
                made.load_packet();
                made.egress(None);
                for (kept, used) in self.kept.iter_mut().zip(&made.used) {
                    *kept |= *used;
                }
            }
            Part::Ingress => made.ingress(&self.kept),
            Part::Parse => {
                made.start_packet();
                let parsed = made.block();
                made.parse(None, parsed);
                made.go_on(parsed);
                made.end_parser();
                made.keep(&self.kept);
                made.end(ended::INGRESS);
            }
            Part::Announce => {
                made.start_packet();
                made.quiet = true;
                let parsed = made.block();
                made.parse(None, parsed);
                made.go_on(parsed);
                made.announce_lookups();
                made.end(ended::INGRESS);
            }
        }
        if let Some(path) = made.unjoined_exit() {
            return Err(format!("the side exit at {path:?} joins nowhere"));
        }
        made.finish_shared();
        self.room = self.room.max(made.room);
        made.b.seal_all_blocks();
        let deferred = std::mem::take(&mut made.deferred);
        let measured = std::mem::take(&mut made.measured);
        made.b.finalize(config);
        Ok(Made {
            deferred,
            measured,
            sites,
            room,
        })
    }
}

/// A function that was generated.
struct Made {
    deferred: Deferred,
    measured: Costs,
    /// Statements whose texts are put together at run time, before it was made.
    sites: usize,
    /// Bytes that the deparser writes without asking for room, before it was made.
    room: usize,
}

impl Gen<'_, '_> {
    pub(super) fn end(&mut self, how: u64) {
        if self.live {
            let how = self.number(how);
            self.b.ins().return_(&[how]);
            self.live = false;
        }
    }

    /// Words of the packet that live in registers, and their widths.
    fn packet_registers(&self) -> Vec<(usize, u32)> {
        let words = self.plan.storage.packet.clone();
        words
            .filter_map(|at| match self.plan.slots[at] {
                Some(slot) if slot.home == Home::Register => Some((at, slot.width)),
                _ => None,
            })
            .collect()
    }

    /// Word in which the place of a header in the frame is kept.
    fn origin_word(&self, header: usize) -> i32 {
        ((self.plan.storage.packet.end + header) * super::WORD_BYTES) as i32
    }

    fn zeros(&mut self) -> Value {
        self.given(offset_of!(Context, zeros))
    }

    /// The state of a frame that arrives.
    fn start_packet(&mut self) {
        for variable in [
            self.cursor,
            self.transitions,
            self.fault,
            self.error,
            self.requests,
            self.rest,
            self.emitted,
        ] {
            self.set_number(variable, 0);
        }
        let zeros = self.zeros();
        for origin in self.origins.clone() {
            self.b.def_var(origin, zeros);
        }
        for (at, width) in self.packet_registers() {
            let zero = self.constant(0, width);
            self.write_register(at, width, zero);
        }
        // Values preserved from an earlier pass are in memory.
        for list in &self.plan.storage.field_lists {
            for leaf in &list.leaves {
                for (at, width) in stateplane_runtime::storage::parts(*leaf) {
                    if let Some((_, Home::Register)) = self.home(at) {
                        let zero = self.constant(0, width);
                        let value = if self.fresh {
                            zero
                        } else {
                            let value = self.load_kept(at, width);
                            let preserved = self.given(offset_of!(Context, preserved));
                            self.b.ins().select(preserved, value, zero)
                        };
                        self.store(at, None, width, value);
                    }
                }
            }
        }
        let meta = self.plan.storage.meta;
        for (field, offset) in [
            (meta.ingress_port, offset_of!(Context, ingress_port)),
            (meta.packet_length, offset_of!(Context, frame_length)),
            (meta.ingress_global_timestamp, offset_of!(Context, now)),
        ] {
            let value = self.given(offset);
            self.set_meta(field, value);
        }
        let instance_type = self.unless_fresh(offset_of!(Context, instance_type));
        self.set_meta(meta.instance_type, instance_type);
    }

    /// A field of the context that is 0 if the frame came by a port and goes on at once.
    fn unless_fresh(&mut self, offset: usize) -> Value {
        if self.fresh {
            self.number(0)
        } else {
            self.given(offset)
        }
    }

    fn load_kept(&mut self, at: usize, width: u32) -> Value {
        let (base, offset) = self.address(at);
        let flags = Self::flags(self.regions.storage);
        self.b
            .ins()
            .load(super::clif(width), flags, base, offset as i32)
    }

    /// Takes on a packet that was kept.
    fn load_packet(&mut self) {
        for variable in [self.fault, self.error, self.requests, self.emitted] {
            self.set_number(variable, 0);
        }
        let rest = self.context_field(offset_of!(Context, rest));
        self.b.def_var(self.rest, rest);
        for (at, width) in self.packet_registers() {
            let value = self.load_kept(at, width);
            self.store(at, None, width, value);
        }
        let zeros = self.zeros();
        for header in 0..self.origins.len() {
            let flags = Self::flags(self.regions.storage);
            let offset = self.origin_word(header);
            let kept = self.b.ins().load(types::I64, flags, self.packet, offset);
            let place = self.b.ins().iadd(self.frame, kept);
            let place = self.b.ins().iadd_imm_s(place, -1);
            let place = self.b.ins().select(kept, place, zeros);
            self.b.def_var(self.origins[header], place);
        }
    }

    /// Writes the packet to memory as far as others ask for it.
    fn keep(&mut self, kept: &[bool]) {
        for (at, width) in self.packet_registers() {
            if kept[at] {
                let value = self.read_register(at, width);
                self.store_in_memory(at, None, value);
            }
        }
        let zeros = self.zeros();
        let none = self.number(0);
        for header in 0..self.origins.len() {
            let place = self.b.use_var(self.origins[header]);
            let missing = self.b.ins().icmp(IntCC::Equal, place, zeros);
            let from = self.b.ins().isub(place, self.frame);
            let from = self.b.ins().iadd_imm_s(from, 1);
            let from = self.b.ins().select(missing, none, from);
            let flags = Self::flags(self.regions.storage);
            let offset = self.origin_word(header);
            self.b.ins().store(flags, from, self.packet, offset);
        }
        let rest = self.b.use_var(self.rest);
        self.set_context_field(offset_of!(Context, rest), rest);
    }

    /// Runs the parser, to `others` or, with a block where it may run over again, to the ends that it gives.
    fn parse(&mut self, again: Option<Block>, others: Block) -> Vec<Block> {
        let [accepted, rejected] = [(); 2].map(|()| self.block());
        self.in_parser = true;
        self.set_number(self.rounds, u64::from(LOOP_LIMIT));
        let id = self.program().pipeline.parser;
        self.reset(&self.program().parsers[id.index()].locals);
        self.frames.push(Frame {
            after: accepted,
            exit: accepted,
            reject: rejected,
            depth: 0,
        });
        let ends = match again {
            Some(again) => self.ways(again),
            None => {
                self.states(id);
                Vec::new()
            }
        };
        self.frames.pop();
        self.in_parser = false;
        if self.go_on(rejected) {
            let error = self.b.use_var(self.error);
            self.set_meta(self.plan.storage.meta.parser_error, error);
            if !self.quiet {
                let context = self.context;
                self.call_engine(
                    run::count_parser_error as *const u8,
                    &[context, error],
                    false,
                );
            }
            self.jump(others);
        }
        if self.go_on(accepted) {
            self.jump(others);
        }
        ends
    }

    /// Notes where the parser came to.
    fn end_parser(&mut self) {
        let cursor = self.b.use_var(self.cursor);
        let rest = if let Some(cursor) = self.known(cursor) {
            self.number(cursor.div_ceil(8))
        } else if self.plan.unaligned {
            let cursor = self.b.ins().iadd_imm_s(cursor, 7);
            self.shifted_right(cursor, 3)
        } else {
            self.shifted_right(cursor, 3)
        };
        self.b.def_var(self.rest, rest);
    }

    /// Runs a control of the pipeline. No code follows it if all paths take side exits in it.
    fn control(&mut self, id: ControlId) {
        let after = self.block();
        self.set_number(self.rounds, u64::from(LOOP_LIMIT));
        let control = &self.program().controls[id.index()];
        self.reset(&control.locals);
        self.frames.push(Frame {
            after,
            exit: after,
            reject: after,
            depth: 0,
        });
        self.within_control(id, |g| g.stmts(&control.body));
        self.frames.pop();
        self.jump(after);
        self.go_on(after);
    }

    fn ingress(&mut self, kept: &[bool]) {
        let others = self.block();
        let mut room = 0;
        if paths::has_ways(self.plan) {
            let [fresh, known] = [(); 2].map(|()| self.block());
            let is_fresh = self.given(offset_of!(Context, fresh));
            self.branch(is_fresh, fresh, known);
            self.go_on(fresh);
            self.fresh = true;
            self.start_packet();
            let ends = self.parse(Some(known), others);
            let changed = self.block();
            let parsed = |g: &mut Self| g.leaving(|g| g.parsed(kept, Some(changed)));
            room = self.after_each(ends, others, parsed);
            if self.go_on(changed) {
                let before = self.room;
                self.egress(Some(kept));
                room = room.max(self.room);
                self.room = before;
            }
            self.fresh = false;
            self.go_on(known);
        }
        self.start_packet();
        self.parse(None, others);
        self.go_on(others);
        self.joining(|g| g.parsed(kept, None));
        self.room = self.room.max(room);
    }

    /// Generates the code behind the parser. Packets whose valid headers ingress changes continue
    /// in `changed`, if there is one.
    fn parsed(&mut self, kept: &[bool], changed: Option<Block>) {
        self.end_parser();
        let validities = match changed {
            Some(_) => self.known_validities(),
            None => Vec::new(),
        };
        let pipeline = &self.program().pipeline;
        let (verify, ingress) = (pipeline.verify_checksum, pipeline.ingress);
        let meta = self.plan.storage.meta;
        self.control(verify);
        if !self.live {
            return;
        }
        let wrong = self.get_meta(meta.checksum_error);
        let [count, counted] = [(); 2].map(|()| self.block());
        self.b.set_cold_block(count);
        self.branch(wrong, count, counted);
        if self.go_on(count) {
            let context = self.context;
            self.call_engine(run::count_checksum_error as *const u8, &[context], false);
            self.jump(counted);
        }
        self.go_on(counted);
        if changed.is_some() {
            self.deferred.begin();
        }
        self.control(ingress);
        if !self.live {
            self.deferred.finish(kept);
            return;
        }
        let egress_spec = self.get_meta(meta.egress_spec);
        let mcast_grp = self.get_meta(meta.mcast_grp);
        self.deferred.finish(kept);
        let requests = self.b.use_var(self.requests);

        // Egress at once: one copy to one port, and nothing waits before it.
        let [direct, waiting] = [(); 2].map(|()| self.block());
        let drop = self.number(u64::from(DROP_PORT));
        let port = self
            .b
            .ins()
            .icmp(IntCC::UnsignedLessThan, egress_spec, drop);
        let port = self.bit(port);
        let allowed = if self.fresh {
            port
        } else {
            let allowed = self.given(offset_of!(Context, direct));
            self.b.ins().band(allowed, port)
        };
        let others = self.b.ins().bor(requests, mcast_grp);
        let zero = self.number(0);
        let alone = self.b.ins().icmp(IntCC::Equal, others, zero);
        let alone = self.bit(alone);
        let allowed = self.b.ins().band(allowed, alone);
        self.branch(allowed, direct, waiting);
        self.go_on(waiting);
        self.set_context_field(offset_of!(Context, egress_spec), egress_spec);
        self.set_context_field(offset_of!(Context, mcast_grp), mcast_grp);
        self.set_context_field(offset_of!(Context, requests), requests);
        self.keep(kept);
        self.end(ended::INGRESS);
        self.go_on(direct);
        self.b.def_var(self.requests, zero);
        self.set_context_field(offset_of!(Context, egress_port), egress_spec);
        if let Some(changed) = changed {
            self.expect_validities(&validities, changed);
        }
        self.egress(Some(kept));
    }

    /// The headers that are certainly valid or certainly not: the words of their validity,
    /// and what these hold.
    fn known_validities(&mut self) -> Vec<(usize, u64)> {
        let words = self.plan.validities.clone();
        let words = words.into_iter().filter_map(|at| {
            let valid = self.read_register(at, 1);
            Some((at, self.known(valid)?))
        });
        words.collect()
    }

    /// Goes on where headers of which it is no longer known are valid as they were, and from
    /// there on known to be; elsewhere in `others`.
    fn expect_validities(&mut self, validities: &[(usize, u64)], others: Block) {
        let mut differ = self.number(0);
        let mut asked = Vec::new();
        for &(at, before) in validities {
            let valid = self.read_register(at, 1);
            if self.known(valid).is_some() {
                continue;
            }
            asked.push((at, before));
            let differs = match before {
                0 => valid,
                _ => self.opposite(valid),
            };
            differ = self.either(differ, differs);
        }
        let same = self.block();
        self.branch(differ, others, same);
        if self.go_on(same) {
            for (at, before) in asked {
                let before = self.number(before);
                self.write_register(at, 1, before);
            }
        }
    }

    /// Egress and what follows it; `kept` if that is known already.
    fn egress(&mut self, kept: Option<&[bool]>) {
        let meta = self.plan.storage.meta;
        let zero = self.number(0);
        let waited = if self.fresh {
            zero
        } else {
            let now = self.given(offset_of!(Context, now));
            let enqueued_at = self.given(offset_of!(Context, enqueued_at));
            let waited = self.b.ins().isub(now, enqueued_at);
            let early = self.b.ins().icmp(IntCC::UnsignedLessThan, now, enqueued_at);
            self.b.ins().select(early, zero, waited)
        };
        let port = self.context_field(offset_of!(Context, egress_port));
        self.set_meta(meta.egress_port, port);
        for (field, offset) in [
            (meta.enq_timestamp, offset_of!(Context, enqueued_at)),
            (meta.egress_global_timestamp, offset_of!(Context, now)),
        ] {
            let value = self.given(offset);
            self.set_meta(field, value);
        }
        for (field, offset) in [
            (meta.egress_rid, offset_of!(Context, egress_rid)),
            (meta.instance_type, offset_of!(Context, instance_type)),
            (meta.enq_qdepth, offset_of!(Context, enqueue_depth)),
            (meta.deq_qdepth, offset_of!(Context, dequeue_depth)),
        ] {
            let value = self.unless_fresh(offset);
            self.set_meta(field, value);
        }
        self.set_meta(meta.deq_timedelta, waited);
        // As BMv2 does, so that only egress itself can drop here.
        self.set_meta(meta.egress_spec, zero);

        let pipeline = &self.program().pipeline;
        let (egress, compute) = (pipeline.egress, pipeline.compute_checksum);
        let deparser = pipeline.deparser;
        self.control(egress);
        if !self.live {
            return;
        }
        let requests = self.b.use_var(self.requests);
        self.set_context_field(offset_of!(Context, requests), requests);
        let [keeping, ended_egress] = [(); 2].map(|()| self.block());
        self.b.set_cold_block(keeping);
        self.branch(requests, keeping, ended_egress);
        if let Some(kept) = kept {
            if self.go_on(keeping) {
                self.keep(kept);
                self.capture(requests, ended_egress);
            }
            self.go_on(ended_egress);
        } else {
            self.enter_open(ended_egress);
        }
        let egress_spec = self.get_meta(meta.egress_spec);
        let drop = self.number(u64::from(DROP_PORT));
        let dropped = self.b.ins().icmp(IntCC::Equal, egress_spec, drop);
        let [drops, on] = [(); 2].map(|()| self.block());
        self.branch(dropped, drops, on);
        if self.go_on(drops) {
            self.end(ended::DROPPED);
        }
        self.go_on(on);
        self.closed(|g| g.control(compute));
        if self.plan.emits_plainly {
            let context = self.context;
            let out = self.call_for(run::open_output as *const u8, &[context]);
            self.b.def_var(self.out, out);
        }
        self.closed(|g| g.control(deparser));
        let emitted = self.b.use_var(self.emitted);
        let rest = self.b.use_var(self.rest);
        if kept.is_some() && self.plan.emits_plainly && self.live {
            self.sent(emitted, rest);
        }
        self.set_context_field(offset_of!(Context, out_length), emitted);
        self.set_context_field(offset_of!(Context, rest), rest);
        self.end(ended::EGRESS);

        // Made last, when all is known that a clone's own egress asks for.
        if kept.is_none() && self.entered.contains(&keeping) {
            self.enter(keeping);
            let known = self.kept_by_egress();
            self.keep(&known);
            self.capture(requests, ended_egress);
        }
    }

    /// Ends here, with the port in the result, where the output is complete: it is the frame's copy, in
    /// which the headers have their places.
    fn sent(&mut self, emitted: Value, rest: Value) {
        let requests = self.b.use_var(self.requests);
        let limit = self.context_field(offset_of!(Context, limit));
        let copied = self.number(run::COPIED as u64);
        let most = self.b.ins().umin(limit, copied);
        let moved = match (self.known(emitted), self.known(rest)) {
            (Some(emitted), Some(rest)) => self.number(u64::from(emitted != rest)),
            _ => self.b.ins().bxor(emitted, rest),
        };
        let changed = self.either(moved, requests);
        let is_long = self
            .b
            .ins()
            .icmp(IntCC::UnsignedGreaterThan, self.frame_length, most);
        let is_long = self.bit(is_long);
        let incomplete = self.either(changed, is_long);
        let [complete, other] = [(); 2].map(|()| self.block());
        self.branch(incomplete, other, complete);
        if self.go_on(complete) {
            let port = self.context_field(offset_of!(Context, egress_port));
            let port = self.shifted_left(port, ended::PORT_SHIFT);
            let how = self.b.ins().bor_imm_u(port, ended::SENT as i64);
            self.b.ins().return_(&[how]);
            self.live = false;
        }
        self.go_on(other);
    }

    fn kept_by_egress(&self) -> Vec<bool> {
        let mut kept = self.used[..self.plan.storage.packet.end].to_vec();
        for list in &self.plan.storage.field_lists {
            for leaf in &list.leaves {
                for (at, _) in stateplane_runtime::storage::parts(*leaf) {
                    kept[at] = true;
                }
            }
        }
        kept
    }

    fn capture(&mut self, requests: Value, after: Block) {
        let clone = self.number(request::EGRESS_CLONE);
        let clone = self.b.ins().band(requests, clone);
        let copies = self.block();
        self.branch(clone, copies, after);
        if self.go_on(copies) {
            let context = self.context;
            self.call_engine(run::capture as *const u8, &[context], false);
            self.jump(after);
        }
    }
}
