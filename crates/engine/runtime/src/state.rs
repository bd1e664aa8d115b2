//! Everything of a loaded program that outlives a packet.

use crate::counter::Counter;
use crate::error::{Kind, StateError};
use crate::hash::{self, CustomCrc, Random};
use crate::locks::{LockBytes, Locks};
use crate::meter::Meter;
use crate::names;
use crate::profile::Profile;
use crate::register::{Memory, Register};
use crate::table::{IdleEntry, Table};
use crate::value::Value;
use crate::value_set::ValueSet;
use stateplane_cells::LockPlan;
use stateplane_ir::{
    ActionProfileId, CounterId, HashAlgorithm, MeterId, Program, RegisterId, TableId, ValueSetId,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of messages or digests that wait for their reader.
pub const QUEUE_LIMIT: usize = 256;

/// Events of a program besides forwarding.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Events {
    /// Calls of `assert` and `assume` that were false.
    pub failed_assertions: u64,
    /// Packets whose parser ended in each error, by its number. The first seven are
    /// those of core.p4 in its order; `NoError` counts explicit `reject`s.
    pub parser_errors: Vec<u64>,
    /// Packets with a wrong checksum.
    pub checksum_errors: u64,
}

/// A bounded queue of what the program tells the outside; the newest are dropped and
/// counted while it is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox<T> {
    queue: VecDeque<T>,
    limit: usize,
    dropped: u64,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Outbox {
            queue: VecDeque::new(),
            limit: QUEUE_LIMIT,
            dropped: 0,
        }
    }
}

impl<T> Outbox<T> {
    /// Changes how many may wait; 0 drops all.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        while self.queue.len() > limit {
            self.queue.pop_back();
            self.dropped += 1;
        }
    }

    /// Adds what `make` makes, unless the queue is full.
    pub fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.queue.len() < self.limit {
            self.queue.push_back(make());
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the oldest.
    pub fn poll(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    /// Puts back the message that was taken last.
    pub fn put_back(&mut self, message: T) {
        self.queue.push_front(message);
    }

    /// Number of waiting messages.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if none waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Number of dropped messages.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A digest for the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Name of the digest.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// Tables, registers, counters and meters of a loaded program.
///
/// Objects are found by full control-plane name, or by the end of it from a dot on
/// where only one name ends so: `nat.port` for `MyIngress.nat.port`.
#[derive(Debug, PartialEq, Eq)]
pub struct TargetState {
    pub(crate) tables: Vec<Table>,
    pub(crate) registers: Vec<Register>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) meters: Vec<Meter>,
    pub(crate) value_sets: Vec<ValueSet>,
    pub(crate) profiles: Vec<Profile>,
    /// Events of the program besides forwarding.
    pub events: Events,
    /// Lines of `log_msg` and of failed assertions.
    pub log: Outbox<String>,
    /// Digests.
    pub digests: Outbox<Digest>,
    /// Entries whose idle timeout has passed.
    pub idle: Outbox<IdleEntry>,
    /// Parameters of the custom CRCs.
    pub custom_crc: CustomCrc,
    /// Source of `random()` and of the hash algorithm `random`.
    pub random: Random,
    pub(crate) locks: Locks,
}

impl Default for TargetState {
    /// The state of a program that has none.
    fn default() -> Self {
        TargetState {
            tables: Vec::new(),
            registers: Vec::new(),
            counters: Vec::new(),
            meters: Vec::new(),
            value_sets: Vec::new(),
            profiles: Vec::new(),
            events: Events::default(),
            log: Outbox::default(),
            digests: Outbox::default(),
            idle: Outbox::default(),
            custom_crc: CustomCrc::default(),
            random: Random::new(0),
            locks: Locks::default(),
        }
    }
}

impl TargetState {
    /// Makes the state of a program: tables with the entries of the source, and
    /// registers, counters and meters at zero. `seed` determines all pseudo-random
    /// numbers.
    ///
    /// # Errors
    ///
    /// [`StateError::TooLarge`] and [`StateError::Unsupported`] for what this target
    /// cannot hold; those of [`Table::insert`] for wrong entries of the source.
    pub fn new(program: &Program, seed: u64) -> Result<TargetState, StateError> {
        TargetState::with(program, None, seed)
    }

    /// Makes the state of a program like [`TargetState::new`], for an engine that gets fellows: its
    /// atomic blocks take the locks of `plan`, which was made for the program.
    ///
    /// # Errors
    ///
    /// Those of [`TargetState::new`].
    pub fn guarded(
        program: &Program,
        plan: LockPlan,
        seed: u64,
    ) -> Result<TargetState, StateError> {
        TargetState::with(program, Some(plan), seed)
    }

    fn with(
        program: &Program,
        plan: Option<LockPlan>,
        seed: u64,
    ) -> Result<TargetState, StateError> {
        let placements = Register::placements(program, plan.as_ref())?;
        let memory = Arc::new(Memory::new(placements.bytes));
        let registers = Register::all(program, placements.registers, &memory);
        Ok(TargetState {
            locks: plan.map_or_else(Locks::default, |plan| {
                Locks::new(plan, placements.locks, memory)
            }),
            tables: program
                .tables
                .iter()
                .map(|table| Table::new(program, table))
                .collect::<Result<_, _>>()?,
            registers,
            counters: program
                .counters
                .iter()
                .map(|counter| Counter::new(program, counter))
                .collect::<Result<_, _>>()?,
            meters: program
                .meters
                .iter()
                .map(|meter| Meter::new(program, meter))
                .collect::<Result<_, _>>()?,
            value_sets: program.value_sets.iter().map(ValueSet::new).collect(),
            profiles: (0..program.action_profiles.len() as u32)
                .map(|id| Profile::new(program, ActionProfileId(id)))
                .collect::<Result<_, _>>()?,
            events: Events {
                parser_errors: vec![0; program.errors.len()],
                ..Events::default()
            },
            random: Random::new(seed),
            ..TargetState::default()
        })
    }

    /// Fills the registers that the program annotates `@drawn_at_start` with random
    /// elements, which is to be done before the first packet: a program that hashes with
    /// them keeps those who send packets from choosing the places of these. `random` gives
    /// 64 random bits at a time.
    pub fn draw(&mut self, random: &mut dyn FnMut() -> u64) {
        for register in &mut self.registers {
            register.draw(random);
        }
    }

    /// Enters an atomic block.
    pub fn enter_atomic(&mut self) {
        self.locks.enter();
    }

    /// Leaves the innermost atomic block; behind the outermost no lock is held.
    pub fn leave_atomic(&mut self) {
        self.locks.leave();
    }

    /// Enters an atomic block that is no part of the one around it. It holds no such block.
    pub fn enter_apart(&mut self) {
        self.locks.enter_apart();
    }

    /// Leaves it.
    pub fn leave_apart(&mut self) {
        self.locks.leave_apart();
    }

    /// Makes sure, within an atomic block, that no fellow uses the elements of registers that are
    /// in these units before the block ends.
    pub fn lock_units(&mut self, units: &str, numbers: &[u64]) {
        let domain = self.locks.plan().and_then(|it| it.of_units(units));
        self.locks.lock_units(domain, numbers);
    }

    /// Makes sure, within an atomic block, that no fellow uses the element `index` of a register
    /// before the block ends.
    pub fn lock_register(&mut self, register: RegisterId, index: u64) {
        let domain = self.locks.plan().and_then(|it| it.of_register(register));
        self.locks.lock(domain, index);
    }

    /// Makes sure of the same for an element of a meter.
    pub fn lock_meter(&mut self, meter: MeterId, index: u64) {
        let domain = self.locks.plan().and_then(|it| it.of_meter(meter));
        self.locks.lock(domain, index);
    }

    /// Takes the lock at `offset` in the memory of registers, for a data plane that takes and releases
    /// locks on its own ([`LockPlacement`](crate::register::LockPlacement)); true if it is biased to the
    /// engine, which then need not release it. In `held` are the addresses of the locks that the block
    /// holds, each at a place of its own until its release, and 0 elsewhere.
    pub fn take_lock(&mut self, offset: usize, held: &[u64]) -> bool {
        self.locks.take(offset, held)
    }

    /// Begins a burst of packets, unless one has begun: up to its end, locks that no fellow takes become
    /// biased to this engine, which takes them without an atomic exchange. It is not to wait for anything
    /// but locks before the end, and to [answer](Self::answer_fellows) between two packets.
    pub fn begin_burst(&mut self) -> LockBytes {
        self.locks.begin_burst()
    }

    /// Ends the burst, behind the last block of a packet.
    pub fn end_burst(&mut self) -> LockBytes {
        self.locks.end_burst()
    }

    /// States of lock cells that the engine compares and writes before its first burst.
    pub fn lock_bytes(&self) -> LockBytes {
        self.locks.bytes()
    }

    /// Lets fellows that ask have locks that are biased to this engine. It holds none.
    #[inline]
    pub fn answer_fellows(&mut self) {
        self.locks.answer();
    }

    /// Locks of atomic blocks and of direct meters that a fellow held, or had to answer for, when this
    /// engine came to them.
    pub fn lock_waits(&self) -> u64 {
        let meters = self.tables.iter().map(Table::meter_waits);
        self.locks.waits() + meters.sum::<u64>()
    }

    /// The memory of all registers and locks, and the bytes that it has, for a data plane that
    /// reads and writes on its own: where the [placements](crate::register::Placements) say.
    pub fn memory(&self) -> Option<(*mut u8, usize)> {
        let memory = self.registers.first().map(Register::memory);
        let locks = || Some((self.locks.memory()?.pointer(), self.locks.memory()?.bytes()));
        memory.or_else(locks)
    }

    /// All tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// All registers.
    pub fn registers(&self) -> &[Register] {
        &self.registers
    }

    /// All counters, the direct ones among them.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// All meters, the direct ones among them.
    pub fn meters(&self) -> &[Meter] {
        &self.meters
    }

    /// All parser value sets.
    pub fn value_sets(&self) -> &[ValueSet] {
        &self.value_sets
    }

    /// All action profiles and selectors.
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// All registers, to change them.
    pub(crate) fn registers_mut(&mut self) -> &mut [Register] {
        &mut self.registers
    }

    /// The table `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn table(&self, name: &str) -> Result<&Table, StateError> {
        let names = self.tables.iter().map(Table::name);
        Ok(&self.tables[names::find(Kind::Table, names, name)?])
    }

    /// The table `name`, to change it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TargetState::table`].
    pub fn table_mut(&mut self, name: &str) -> Result<&mut Table, StateError> {
        let names = self.tables.iter().map(Table::name);
        let position = names::find(Kind::Table, names, name)?;
        Ok(&mut self.tables[position])
    }

    /// The register `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn register(&self, name: &str) -> Result<&Register, StateError> {
        let names = self.registers.iter().map(Register::name);
        Ok(&self.registers[names::find(Kind::Register, names, name)?])
    }

    /// The register `name`, to change it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TargetState::register`].
    pub fn register_mut(&mut self, name: &str) -> Result<&mut Register, StateError> {
        let names = self.registers.iter().map(Register::name);
        let position = names::find(Kind::Register, names, name)?;
        Ok(&mut self.registers[position])
    }

    /// The counter `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn counter(&self, name: &str) -> Result<&Counter, StateError> {
        let names = self.counters.iter().map(Counter::name);
        Ok(&self.counters[names::find(Kind::Counter, names, name)?])
    }

    /// The counter `name`, to change it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TargetState::counter`].
    pub fn counter_mut(&mut self, name: &str) -> Result<&mut Counter, StateError> {
        let names = self.counters.iter().map(Counter::name);
        let position = names::find(Kind::Counter, names, name)?;
        Ok(&mut self.counters[position])
    }

    /// The meter `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn meter(&self, name: &str) -> Result<&Meter, StateError> {
        let names = self.meters.iter().map(Meter::name);
        Ok(&self.meters[names::find(Kind::Meter, names, name)?])
    }

    /// The meter `name`, to change it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TargetState::meter`].
    pub fn meter_mut(&mut self, name: &str) -> Result<&mut Meter, StateError> {
        let names = self.meters.iter().map(Meter::name);
        let position = names::find(Kind::Meter, names, name)?;
        Ok(&mut self.meters[position])
    }

    /// The value set `name`.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] or [`StateError::Ambiguous`].
    pub fn value_set(&self, name: &str) -> Result<&ValueSet, StateError> {
        let names = self.value_sets.iter().map(ValueSet::name);
        Ok(&self.value_sets[names::find(Kind::ValueSet, names, name)?])
    }

    /// The value set `name`, to change it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`TargetState::value_set`].
    pub fn value_set_mut(&mut self, name: &str) -> Result<&mut ValueSet, StateError> {
        let names = self.value_sets.iter().map(ValueSet::name);
        let position = names::find(Kind::ValueSet, names, name)?;
        Ok(&mut self.value_sets[position])
    }

    /// Runs a hash algorithm over `data`, with this state's custom CRCs and random numbers.
    pub fn hash(&mut self, algorithm: HashAlgorithm, data: &[u8]) -> u64 {
        hash::hash(algorithm, data, &self.custom_crc, &mut self.random)
    }

    /// The table of a handle of this state's program.
    pub fn table_at(&mut self, id: TableId) -> &mut Table {
        &mut self.tables[id.index()]
    }

    /// The register of a handle of this state's program.
    pub fn register_at(&mut self, id: RegisterId) -> &mut Register {
        &mut self.registers[id.index()]
    }

    /// The counter of a handle of this state's program.
    pub fn counter_at(&mut self, id: CounterId) -> &mut Counter {
        &mut self.counters[id.index()]
    }

    /// The meter of a handle of this state's program.
    pub fn meter_at(&mut self, id: MeterId) -> &mut Meter {
        &mut self.meters[id.index()]
    }

    /// The value set of a handle of this state's program.
    pub fn value_set_at(&self, id: ValueSetId) -> &ValueSet {
        &self.value_sets[id.index()]
    }
}
