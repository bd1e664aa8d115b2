//! Statements.

use crate::{
    ActionId, ControlId, CounterId, Expr, FunctionId, MeterId, ParserId, Place, RegisterId, TableId,
};
use num_bigint::BigUint;

/// Rounds that all loops of one run of a block may begin; see [`Stmt::Loop`].
pub const LOOP_LIMIT: u32 = 1 << 16;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// `place = value`; both have one type.
    Assign(Place, Expr),
    /// `if`.
    If {
        /// A `bool`.
        condition: Expr,
        /// Statements if true.
        then: Vec<Stmt>,
        /// Statements if false.
        otherwise: Vec<Stmt>,
    },
    /// `switch` on a scalar; the first case whose labels hold the value runs,
    /// else `default`.
    Switch {
        /// The value.
        value: Expr,
        /// Labels and statements; labels are distinct constants below 2^W.
        cases: Vec<(Vec<BigUint>, Vec<Stmt>)>,
        /// Statements if no label fits.
        default: Vec<Stmt>,
    },
    /// `table.apply()`; `switch` on `action_run` follows as a `Switch` on the
    /// place written here.
    Apply {
        /// The table.
        table: TableId,
        /// A `bool` place that gets `hit`.
        hit: Option<Place>,
        /// A `bit<32>` place that gets the position of the executed action in
        /// [`Table::actions`](crate::Table::actions).
        action_run: Option<Place>,
    },
    /// A call of an action, function, control or sub-parser.
    Call {
        /// Callable.
        callee: Callee,
        /// One argument for each parameter.
        args: Vec<Arg>,
        /// Place that gets a function's value.
        result: Option<Place>,
    },
    /// An operation of the architecture or of the core library.
    Op(Op),
    /// `header.setValid()`: fields keep their bits.
    SetValid(Place),
    /// `header.setInvalid()`.
    SetInvalid(Place),
    /// `stack.push_front(count)`.
    PushFront(Place, u32),
    /// `stack.pop_front(count)`.
    PopFront(Place, u32),
    /// Statements in order.
    Block(Vec<Stmt>),
    /// Like [`Stmt::Block`], from a block annotated `@atomic`: no other worker's
    /// register operation comes between its own.
    Atomic(Vec<Stmt>),
    /// An atomic block, from one annotated `@apart`, that is no part of the one around it: others
    /// may see what it did before that ends. Nothing in it leaves it or calls anything.
    Apart(Vec<Stmt>),
    /// Runs `body`, then `update`, over again, until [`Stmt::Break`], `Return` or
    /// `Exit`; [`Stmt::Continue`] goes on with `update`. A loop's condition is an `If`
    /// with a `Break` in front of its body.
    ///
    /// All loops of one run of a pipeline's block (its parser or one of its controls,
    /// with all that it calls) together begin at most [`LOOP_LIMIT`] rounds; where one
    /// more would begin, the packet is given up: nothing more of the program runs for it,
    /// and it is dropped, with all copies of it that were asked for and not yet made.
    Loop {
        /// Statements of a round.
        body: Vec<Stmt>,
        /// Statements between two rounds; neither `Break` nor `Continue` of this loop.
        update: Vec<Stmt>,
    },
    /// Tells that few packets come here, from a block annotated `@unlikely` or beside one
    /// annotated `@likely` (P4-16 1.2.5, predefined annotations). It does nothing; an
    /// engine may make the others faster for it.
    Unlikely,
    /// Tells that the statements that follow come from this place of the source, as
    /// `file:line:column`. It does nothing; programs to be run have none.
    At(String),
    /// Leaves the innermost loop of the callable.
    Break,
    /// Goes on with the `update` of the innermost loop of the callable.
    Continue,
    /// Leaves the callable; a function's value was assigned to its `result`.
    Return,
    /// Leaves all callables up to the architecture's block.
    Exit,
}

/// Callable of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// An action, called directly.
    Action(ActionId),
    /// A function.
    Function(FunctionId),
    /// A control instance.
    Control(ControlId),
    /// A sub-parser; its `reject` rejects the caller.
    Parser(ParserId),
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// For `in` parameters and action data: copied in.
    In(Expr),
    /// For `out` parameters: the parameter starts at its default and is copied out.
    Out(Place),
    /// For `inout` parameters: copied in and out.
    InOut(Place),
}

/// Operations of `core.p4` and `v1model.p4`. The packet itself is implicit: there
/// is one at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `packet.extract(header)`: sets it valid; too short a packet rejects with
    /// `PacketTooShort`. Extracting to `stack.next` advances the stack.
    Extract {
        /// The header; its last step may be [`Projection::Next`](crate::Projection::Next).
        header: Place,
        /// Bits of the header's one `varbit` field, for the two-argument form.
        varbit_size: Option<Expr>,
    },
    /// `packet.lookahead<T>()` into a place without varbits and unions; all headers
    /// in it become valid.
    Lookahead {
        /// Place that gets the value.
        result: Place,
    },
    /// `packet.advance(bits)`.
    Advance {
        /// `bit<32>`.
        bits: Expr,
    },
    /// `packet.length()`, in bytes.
    PacketLength {
        /// `bit<32>`.
        result: Place,
    },
    /// `packet.emit(value)`: headers that are valid, also inside structs, stacks
    /// and unions, in order.
    Emit {
        /// Header, struct, stack or union.
        value: Place,
    },
    /// `verify(condition, error)`.
    Verify {
        /// A `bool`; false rejects.
        condition: Expr,
        /// An `error`.
        error: Expr,
    },
    /// `register.read(result, index)`; out of range reads 0.
    RegisterRead {
        /// The array.
        register: RegisterId,
        /// Element number.
        index: Expr,
        /// Of the element's type.
        result: Place,
    },
    /// `register.write(index, value)`; out of range does nothing.
    RegisterWrite {
        /// The array.
        register: RegisterId,
        /// Element number.
        index: Expr,
        /// Of the element's type.
        value: Expr,
    },
    /// From a block annotated `@uses`: until the outermost atomic block ends or names others, it and what it
    /// calls use no elements of these registers but those in the units at these numbers. An element's
    /// unit is its own number divided by the elements of a unit.
    Uses {
        /// Name of the [`Units`](crate::Units).
        units: String,
        /// Numbers of units, at most [`MOST_UNITS`](crate::MOST_UNITS).
        numbers: Vec<Expr>,
    },
    /// `counter.count(index)`.
    CounterCount {
        /// The array.
        counter: CounterId,
        /// Element number.
        index: Expr,
    },
    /// `direct_counter.count()`; v1model counts at the table's hit in any case.
    DirectCounterCount {
        /// The counter of a table.
        counter: CounterId,
    },
    /// `meter.execute_meter(index, result)`: 0 green, 1 yellow, 2 red.
    MeterExecute {
        /// The array.
        meter: MeterId,
        /// Element number.
        index: Expr,
        /// A number, or an enum of at least [`COLOURS`] members, of which the first is green.
        result: Place,
    },
    /// `direct_meter.read(result)`.
    DirectMeterRead {
        /// The meter of a table.
        meter: MeterId,
        /// As in [`Op::MeterExecute`].
        result: Place,
    },
    /// `hash(result, algorithm, base, data, max)`: base + (hash mod max), modulo the
    /// result's width; max 0 gives base (v1model.p4).
    Hash {
        /// A `bit` place.
        result: Place,
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// Offset.
        base: Expr,
        /// Scalars, in order, concatenated and padded on the right to whole bytes.
        data: Vec<Expr>,
        /// Modulus.
        max: Expr,
    },
    /// `random(result, lo, hi)`, both bounds inclusive.
    Random {
        /// A `bit` place.
        result: Place,
        /// Least value.
        lo: Expr,
        /// Greatest value.
        hi: Expr,
    },
    /// `verify_checksum…`: sets `standard_metadata.checksum_error` if unequal.
    VerifyChecksum {
        /// True if the statement has an effect.
        condition: Expr,
        /// Data, as in [`Op::Hash`].
        data: Vec<Expr>,
        /// The checksum that the packet carries.
        checksum: Expr,
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// True if the unparsed rest of the packet follows the data.
        with_payload: bool,
    },
    /// `update_checksum…`.
    UpdateChecksum {
        /// True if the statement has an effect.
        condition: Expr,
        /// Data, as in [`Op::Hash`].
        data: Vec<Expr>,
        /// Place that gets the checksum.
        checksum: Place,
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// True if the unparsed rest of the packet follows the data.
        with_payload: bool,
    },
    /// `mark_to_drop(standard_metadata)`: `egress_spec = 511`, `mcast_grp = 0`.
    MarkToDrop {
        /// The standard metadata.
        standard_metadata: Place,
    },
    /// `clone(type, session)` and `clone_preserving_field_list(type, session, index)`.
    Clone {
        /// Pipeline in which the clone is taken: ingress or egress.
        kind: CloneKind,
        /// Mirror session number, `bit<32>`.
        session: Expr,
        /// Field list number; `None` preserves nothing.
        field_list: Option<Expr>,
    },
    /// `resubmit_preserving_field_list(index)`.
    Resubmit {
        /// Field list number.
        field_list: Expr,
    },
    /// `recirculate_preserving_field_list(index)`.
    Recirculate {
        /// Field list number.
        field_list: Expr,
    },
    /// `truncate(length)`: at most `length` bytes leave.
    Truncate {
        /// Bytes, `bit<32>`.
        length: Expr,
    },
    /// `digest(receiver, data)`.
    Digest {
        /// Name of the digest for the control plane.
        name: String,
        /// A struct or scalar.
        data: Expr,
    },
    /// `assert(check)` and `assume(check)`: a false one is counted and logged.
    Assert {
        /// A `bool`.
        condition: Expr,
        /// `file:line:column` of the call.
        location: String,
    },
    /// `log_msg(format, {…})`.
    LogMessage {
        /// Text with `{}` for each value.
        format: String,
        /// Scalars.
        values: Vec<Expr>,
    },
}

/// Number of a meter's colours: green, yellow, red.
pub const COLOURS: usize = 3;

/// Pipeline in which a clone is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneKind {
    /// `CloneType.I2E`: the packet as it came, parsed anew.
    IngressToEgress,
    /// `CloneType.E2E`: the headers as they stand at the end of egress.
    EgressToEgress,
}

/// `HashAlgorithm` of v1model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// CRC-32 (IEEE 802.3, reflected).
    Crc32,
    /// CRC-32 with the caller's parameters; the default ones here.
    Crc32Custom,
    /// CRC-16 (ARC, reflected).
    Crc16,
    /// CRC-16 with the caller's parameters; the default ones here.
    Crc16Custom,
    /// A pseudo-random number, seeded by the switch.
    Random,
    /// The data itself.
    Identity,
    /// RFC 1071 checksum.
    Csum16,
    /// XOR of 16-bit words.
    Xor16,
}
